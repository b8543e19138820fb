"""Small experiments of lesson 3 with heads of the translator and with the learner's functions.

Each prints a few lines, or a single line if the learner's function is not answered yet.
"""

import random

import torch

from helpers import translator
from helpers.corpus import index_words, sentence_pairs
from helpers.translator import evaluation
from helpers.translator.network import Transformer
from helpers.translator.word_ids import PAD
from helpers.widgets.answered import answered

SENTENCES = 300


def ablate(heads: list[tuple[int, int]]):
    """The loss and the exact translations on unseen sentences without some encoder heads, (block, head) from 0."""
    network, batch = evaluation.ablated(heads), evaluation.unseen(SENTENCES)
    correct = round(SENTENCES * evaluation.exact(network, batch))
    loss = evaluation.nats_per_word(network, batch)
    print(f"without {len(heads)} of 8 heads: {correct} of {SENTENCES} right, loss {loss:.5f} nats per word")


def untrained(seed: int) -> Transformer:
    """An untrained network with the sizes and the position table of the translator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Transformer(*translator.SIZES)
    network.encoder.positions.weight.data = translator.state()["encoder.positions.weight"].clone()
    return network.eval()


def choices(network) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Three tensors (2, 4), one number per head of the encoder, measured on 300 unseen sentences.

    They are the fraction of words that attend most to themselves, the fraction (without first words) that attend most
    to the previous token, and the mean weight on the previous token.
    """
    batch = evaluation.unseen(SENTENCES)
    weights = torch.stack(evaluation.attention_of(network, batch.src).encoder)  # (L, B, H, T, T)
    real = batch.src != PAD  # (B, T)
    best = weights.argmax(-1).transpose(1, 2)  # (L, H, B, T)
    positions = torch.arange(best.shape[-1])
    own = (best == positions)[..., real].float().mean(-1)
    not_first = real[:, 1:]
    previous = (best == positions - 1)[..., 1:][..., not_first].float().mean(-1)
    weight = weights.diagonal(-1, -2, -1).transpose(1, 2)[..., not_first].mean(-1)
    return own, previous, weight


def chance_of_itself() -> float:
    """How often a word would pick itself by chance among the words of its sentence, in the same 300 sentences."""
    lengths = (evaluation.unseen(SENTENCES).src != PAD).sum(1)
    return len(lengths) / float(lengths.sum())


def largest_weight_on_itself():
    """How often a word attends most to itself: by chance, in untrained networks, and in the trained translator."""
    print(f"over {SENTENCES} unseen sentences, in all 8 heads of the encoder")
    print(f"{'by chance':<32}{chance_of_itself():.2f}")
    networks = {f"untrained, seed {seed}": untrained(seed) for seed in range(3)} | {"trained": translator.model()}
    for name, network in networks.items():
        own = choices(network)[0].flatten()
        print(f"{name:<32}{own.mean():.2f}   (heads: {own.min():.2f} to {own.max():.2f})")


@answered
def margins(two_channel_graph):
    """The smallest margin between the best and the second-best key, on rings of more and more tokens."""
    for T in (5, 10, 20, 50):
        target = torch.arange(T).roll(-1)
        W_q, W_k = two_channel_graph(target)
        scores = (W_q / W_q.norm(dim=0)).T @ (W_k / W_k.norm(dim=0).max())  # (T, T), lengths of at most 1
        correct = int((scores.argmax(-1) == target).sum())
        best = scores.topk(2).values
        print(f"{T:>3} tokens: {correct} of {T} attend where they should; margin {(best[:, 0] - best[:, 1]).min():.4f}")


@answered
def corpus_chain(bigram_probabilities):
    """The likeliest next words after jane and visits, in 2,000 English sentences of the course's corpus."""
    sentences = [pair.english + " <eos>" for pair in sentence_pairs(2000, random.Random(3))]
    words, ids = index_words(sentences)
    chain = bigram_probabilities(torch.tensor([i for row in ids for i in row]), len(words))
    for word in ("jane", "visits"):
        likeliest = chain[words.index(word)].topk(4)
        details = (f"{words[i]} {p:.2f}" for p, i in zip(likeliest.values.tolist(), likeliest.indices, strict=True))
        print(f"after {word}:", ",  ".join(details))
