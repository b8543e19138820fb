"""Sketches: a few numbers that represent a large tensor which is only ever compared, as a known mistake's outputs are.

A sketch is SUMS weighted sums of sign(x) log(1 + |x|) over the entries x. The logarithm matches the check's tolerance,
which is relative for large entries and absolute for small ones. If two tensors are equal within the tolerance, then so
are their sums; otherwise the sums differ, except by a negligible chance. A reference is never sketched, because
messages and pictures need its numbers.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
import torch

SUMS = 2
SMALL = 8  # tensors with at most this many numbers are stored in full
# The sums are rounded to multiples of 1 / STEPS, far finer than the tolerances, because they then compress better.
STEPS = {torch.float32: 2.0**20, torch.float64: 2.0**30}
NAN, INFINITY = 37.0, 41.0  # the numbers that replace nan and inf in the sums


@dataclass(frozen=True)
class Sketch:
    """A tensor's dtype and shape, whether it is float64 but holds float32 numbers, and the weighted sums."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    rounded: bool
    sums: torch.Tensor

    def is_near(self, other: "Sketch", tolerance: float) -> bool:
        """Whether the sums differ by no more than independent errors of size `tolerance` in every entry would allow."""
        limit = max(tolerance, 1e-9) * math.sqrt(math.prod(self.shape))
        return bool(((self.sums - other.sums).abs() <= limit + 1 / STEPS.get(self.dtype, math.inf)).all())


def can_be_sketched(x) -> bool:
    return isinstance(x, torch.Tensor) and x.dtype in STEPS and x.numel() > SMALL


def sketch(x: torch.Tensor | Sketch) -> Sketch:
    if isinstance(x, Sketch):
        return x
    flat = x.detach().reshape(-1).to(torch.float64)
    curve = flat.sign() * flat.abs().log1p()
    curve = torch.where(flat.isinf(), flat.sign() * INFINITY, torch.where(flat.isnan(), NAN, curve))
    steps = STEPS.get(x.dtype, 2.0**30)
    sums = (_weights(flat.numel()) @ curve * steps).round() / steps
    return Sketch(x.dtype, tuple(x.shape), rounded(x), sums)


def rounded(x: torch.Tensor | Sketch) -> bool:
    """Whether a float64 tensor holds only float32 numbers, as if it had been rounded on the way."""
    if isinstance(x, Sketch):
        return x.rounded
    return x.dtype == torch.float64 and int(x.count_nonzero()) >= 4 and bool((x.float().double() == x).all())


@functools.lru_cache(maxsize=256)
def _weights(n: int) -> torch.Tensor:
    """Weights (SUMS, n) of magnitude 0.4 to 0.8, so that every entry matters.

    They come from NumPy's RandomState because its stream is the same on every computer and never changes.
    """
    drawn = torch.from_numpy(np.random.RandomState(0).random_sample((SUMS, n)) * 2 - 1)
    return 0.4 * (drawn + drawn.sign())
