"""Small experiments of lesson 1 with the learner's own extras.

Each prints a few lines. A function that is not answered yet leaves one line instead.
"""

import torch

from helpers.lessons.token_embedding import word2vec
from helpers.widgets.answered import answered


@answered
def pairs_of_the_text(skipgram_pairs, sentence_ids, window):
    """How many pairs the learner's function finds in the text, and whether they are those of the training."""
    found = [pair for ids in sentence_ids for pair in skipgram_pairs(ids, window)]
    theirs = [tuple(pair) for pair in word2vec.all_pairs(sentence_ids, window).tolist()]
    print(f"{len(found)} pairs, {'exactly those' if found == theirs else 'not those'} of the training run")


@answered
@torch.no_grad()
def loss_along_the_way(negative_sampling_loss, history, pairs):
    """The loss of all positive pairs, each with five negative samples of one draw, at some snapshots of training."""
    generator = torch.Generator().manual_seed(0)
    chances = word2vec.noise(pairs, history.centers.shape[1])
    negative_samples = torch.multinomial(chances, 5 * len(pairs), replacement=True, generator=generator).view(-1, 5)
    for at in (0, 5, 10, 20):
        centers, contexts = history.centers[at], history.contexts[at]
        loss = negative_sampling_loss(centers[pairs[:, 0]], contexts[pairs[:, 1]], contexts[negative_samples])
        print(f"after {history.steps[at]:>5} pairs: {loss:.3f}")


@answered
def cuts(wordpiece, vocab, *words):
    """How the learner's function splits words."""
    for word in words:
        print(f"{word:>16}  {' '.join(wordpiece(word, vocab))}")
