"""Skip-gram with negative sampling (Mikolov et al. 2013), trained by its two forces; small enough for a second.

Nothing is differentiated here: as in the original program, every pair of words moves its vectors by hand, with a pull
or a push. The loss is only kept to look at.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from helpers.bar import bar


@dataclass
class Words:
    """Two vectors for each of V words: one as the center of a window, one as a neighbor. Both (V, D), float64."""

    center: torch.Tensor
    context: torch.Tensor


@dataclass
class History:
    """What training leaves: the center vectors (S, V, D) and losses (S,) at the S steps that are in `steps`."""

    steps: list[int]
    centers: torch.Tensor
    losses: torch.Tensor


def all_pairs(sentences: list[list[int]], window: int) -> torch.Tensor:
    """(N, 2): every word with every other one at most `window` places away in the same sentence."""
    found = []
    for sentence in sentences:
        ids = torch.tensor(sentence)
        near = (ids.new_ones(len(ids), len(ids)).triu(-window).tril(window)).fill_diagonal_(0)
        found.append(ids[near.nonzero()])  # (pairs, 2)
    return torch.cat(found)


def train(sentences, size: int, generator: torch.Generator, *, width=16, window=2, steps=1000, batch=128, negatives=5):
    """Train vectors for ids below `size` and return the History. The same generator state gives the same numbers.

    21 snapshots are kept, closer together at the start, where most happens.
    """
    pairs = all_pairs(sentences, window)  # (N, 2)
    noise = torch.bincount(pairs[:, 0], minlength=size).double() ** 0.75  # the paper's noise distribution
    edges = noise.cumsum(0) / noise.sum()
    words = Words(
        (torch.rand(size, width, generator=generator, dtype=torch.float64) - 0.5) / width**0.5,
        torch.zeros(size, width, dtype=torch.float64),
    )
    history = History([], [], [])
    keep = {steps * k * k // 400 for k in range(20)}
    for step in bar(range(steps), "skip-gram"):
        chosen = torch.randint(len(pairs), (batch,), generator=generator)
        draws = torch.rand(batch, negatives, generator=generator, dtype=torch.float64)
        bad = torch.searchsorted(edges, draws).clamp(max=size - 1)  # (batch, negatives)
        before = words.center.clone() if step in keep else None
        loss = pull_and_push(words, *pairs[chosen].T, bad, rate=0.02 * (1 - step / steps) + 0.001)
        if before is not None:
            _keep(history, step, before, loss)
    _keep(history, steps, words.center, loss)
    return History(history.steps, torch.stack(history.centers), torch.tensor(history.losses))


def _keep(history, step, centers, loss):
    history.steps.append(step)
    history.centers.append(centers)
    history.losses.append(loss)


def pull_and_push(words: Words, center, good, bad, rate: float) -> float:
    """One step in place: centers (B,) meet their neighbors `good` (B,) and strangers `bad` (B, K). Returns the loss.

    A pair's force is what its sigmoid still lacks: 1 - p pulls a true pair together, p pushes a false pair apart.
    """
    others = torch.cat((good[:, None], bad), 1)  # (B, 1 + K)
    c, o = words.center[center], words.context[others]  # (B, D), (B, 1 + K, D)
    p = torch.sigmoid((o @ c[:, :, None])[..., 0])  # (B, 1 + K): how likely each pair looks
    lack = -p
    lack[:, 0] += 1
    words.center.index_add_(0, center, rate * (lack[:, None] @ o)[:, 0])
    moves = rate * lack[..., None] * c[:, None]  # (B, 1 + K, D)
    words.context.index_add_(0, others.flatten(), moves.flatten(0, 1))
    right = torch.cat((p[:, :1], 1 - p[:, 1:]), 1)
    return -right.clamp_min(1e-12).log().sum(1).mean().item()
