"""Small experiments of lesson 1 with the learner's functions from the optional exercises.

Each prints a few lines, or a single line if the learner's function is not answered yet.
"""

import torch

from helpers.lessons.token_embedding import word2vec
from helpers.widgets.answered import answered


@answered
def compare_pairs(skipgram_pairs, sentence_ids, window):
    """How many pairs the learner's function finds in the text, and whether they are those of the training run."""
    pairs = [pair for ids in sentence_ids for pair in skipgram_pairs(ids, window)]
    expected = [tuple(pair) for pair in word2vec.all_pairs(sentence_ids, window).tolist()]
    print(f"{len(pairs)} pairs, {'exactly those' if pairs == expected else 'not those'} of the training run")


@answered
@torch.no_grad()
def loss_during_training(negative_sampling_loss, history, pairs):
    """The loss of all positive pairs at four snapshots, each time with the same five negative samples for each pair."""
    generator = torch.Generator().manual_seed(0)
    noise = word2vec.noise(pairs, history.centers.shape[1])
    negative_samples = torch.multinomial(noise, 5 * len(pairs), replacement=True, generator=generator).view(-1, 5)
    for i in (0, 5, 10, 20):
        centers, contexts = history.centers[i], history.contexts[i]
        loss = negative_sampling_loss(centers[pairs[:, 0]], contexts[pairs[:, 1]], contexts[negative_samples])
        print(f"after {history.steps[i]:>5} pairs: {loss:.3f}")


@answered
def word_pieces(wordpiece, vocab, *words):
    """How the learner's function splits words."""
    for word in words:
        print(f"{word:>16}  {' '.join(wordpiece(word, vocab))}")
