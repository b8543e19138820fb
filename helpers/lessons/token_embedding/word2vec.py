"""Skip-gram with negative sampling (Mikolov et al. 2013), trained pair by pair in a second or two.

`train` takes the function that computes the gradients of one pair, which learners write in lesson 1, or else uses the
finished one.
"""

from dataclasses import dataclass

import torch

from helpers.translator.finished_parts import negative_sampling_gradients
from helpers.widgets.progress_bar import bar

SNAPSHOTS = 20
WIDTH, WINDOW, LEARNING_RATE = 16, 2, 0.2  # width of the vectors, words to each side, initial learning rate


@dataclass
class History:
    """Snapshots of both vectors of every word, (S, V, D) in float64, taken after the S numbers of pairs in `steps`.

    centers: the vectors of the words as centers of a window. contexts: those of the same words as context words.
    """

    steps: list[int]
    centers: torch.Tensor
    contexts: torch.Tensor


def all_pairs(sentences: list[list[int]], window: int) -> torch.Tensor:
    """All pairs of two words in the same sentence at most `window` positions apart, as ids (N, 2)."""
    pairs = []
    for sentence in sentences:
        ids = torch.tensor(sentence)
        near = (ids.new_ones(len(ids), len(ids)).triu(-window).tril(window)).fill_diagonal_(0)
        pairs.append(ids[near.nonzero()])  # (pairs, 2)
    return torch.cat(pairs)


def noise(pairs: torch.Tensor, size: int) -> torch.Tensor:
    """The probability of each word as a negative sample, (V,), by its count to the power 0.75 as in the paper."""
    weights = torch.bincount(pairs[:, 0], minlength=size).double() ** 0.75
    return weights / weights.sum()


@torch.no_grad()
def train(sentences: list[list[int]], size: int, generator, gradients=negative_sampling_gradients, negatives=5):
    """Take one step of gradient descent for each positive pair of the text, in random order. Returns a History.

    gradients(center (D,), context (D,), negatives (K, D)) returns the gradients of the pair's loss with respect to the
    three, in the same shapes. The learning rate falls linearly to 0. The same generator state gives the same vectors.
    The 21 snapshots are closer together at the start, where most changes happen.
    """
    pairs = all_pairs(sentences, WINDOW)
    pairs = pairs[torch.randperm(len(pairs), generator=generator)]  # (N, 2)
    negative_ids = torch.multinomial(noise(pairs, size), len(pairs) * negatives, replacement=True, generator=generator)
    centers = (torch.rand(size, WIDTH, generator=generator, dtype=torch.float64) - 0.5) / WIDTH**0.5
    contexts = torch.zeros_like(centers)
    steps = len(pairs)
    snapshot_steps, snapshots = {steps * k * k // SNAPSHOTS**2 for k in range(SNAPSHOTS)}, []
    rows = zip(pairs.tolist(), negative_ids.view(-1, negatives), strict=True)
    for step, ((word, neighbor), sampled) in enumerate(bar(list(rows), "pull and push")):
        if step in snapshot_steps:
            snapshots.append((step, centers.clone(), contexts.clone()))
        rate = LEARNING_RATE * (1 - step / steps)
        grads = gradients(centers[word].clone(), contexts[neighbor].clone(), contexts[sampled])
        centers[word] -= rate * grads[0]
        contexts[neighbor] -= rate * grads[1]
        contexts.index_add_(0, sampled, grads[2], alpha=-rate)
    taken_at, *vectors = zip(*snapshots, (steps, centers, contexts), strict=True)
    return History(list(taken_at), *map(torch.stack, vectors))
