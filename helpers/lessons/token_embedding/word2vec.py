"""Skip-gram with negative sampling (Mikolov et al. 2013), trained pair by pair; a second or two.

`train` takes the function that computes the gradients of one pair, which the learner of lesson 1 may write; without
one it uses the finished block.
"""

from dataclasses import dataclass

import torch

from helpers.translator.finished_parts import negative_sampling_gradients
from helpers.widgets.progress_bar import bar

SNAPSHOTS = 20
WIDTH, WINDOW, RATE = 16, 2, 0.2  # of the vectors, to each side, of the first step


@dataclass
class History:
    """What training leaves, at each of the S steps in `steps`: both vectors of every word, (S, V, D), float64.

    centers: a word in the middle of a window; contexts: the same word as a context of another one.
    """

    steps: list[int]
    centers: torch.Tensor
    contexts: torch.Tensor


def all_pairs(sentences: list[list[int]], window: int) -> torch.Tensor:
    """(N, 2): every word with every other one at most `window` positions away in the same sentence."""
    found = []
    for sentence in sentences:
        ids = torch.tensor(sentence)
        near = (ids.new_ones(len(ids), len(ids)).triu(-window).tril(window)).fill_diagonal_(0)
        found.append(ids[near.nonzero()])  # (pairs, 2)
    return torch.cat(found)


def noise(pairs: torch.Tensor, size: int) -> torch.Tensor:
    """(V,): the probability of each word as a negative sample, its count to the power 0.75 as in the paper."""
    weights = torch.bincount(pairs[:, 0], minlength=size).double() ** 0.75
    return weights / weights.sum()


@torch.no_grad()
def train(sentences: list[list[int]], size: int, generator, gradients=negative_sampling_gradients, negatives=5):
    """Walk once through all positive pairs of the text, in random order; each moves its vectors against `gradients`.

    gradients(center (D,), context (D,), negatives (K, D)) returns the gradients of the pair's loss at the three, in the
    same shapes. The same generator state gives the same vectors. 21 snapshots are kept, closer together at the start,
    where most happens.
    """
    pairs = all_pairs(sentences, WINDOW)
    pairs = pairs[torch.randperm(len(pairs), generator=generator)]  # (N, 2)
    drawn_ids = torch.multinomial(noise(pairs, size), len(pairs) * negatives, replacement=True, generator=generator)
    centers = (torch.rand(size, WIDTH, generator=generator, dtype=torch.float64) - 0.5) / WIDTH**0.5
    contexts = torch.zeros_like(centers)
    steps = len(pairs)
    keep, kept = {steps * k * k // SNAPSHOTS**2 for k in range(SNAPSHOTS)}, []
    rows = zip(pairs.tolist(), drawn_ids.view(-1, negatives), strict=True)
    for step, ((word, neighbor), drawn) in enumerate(bar(list(rows), "pull and push")):
        if step in keep:
            kept.append((step, centers.clone(), contexts.clone()))
        slow = RATE * (1 - step / steps)
        moves = gradients(centers[word].clone(), contexts[neighbor].clone(), contexts[drawn])
        centers[word] -= slow * moves[0]
        contexts[neighbor] -= slow * moves[1]
        contexts.index_add_(0, drawn, moves[2], alpha=-slow)
    at, *vectors = zip(*kept, (steps, centers, contexts), strict=True)
    return History(list(at), *map(torch.stack, vectors))
