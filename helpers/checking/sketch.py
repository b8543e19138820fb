"""A few numbers in place of a large tensor that is only ever compared: what a known mistake gives.

A sketch is SUMS weighted sums of a tensor's entries, after a curve that is as steep everywhere as the check's tolerance
is fine. Two tensors that are equal within a tolerance have sums that are; two that are not, have not, but by a chance
that no learner meets. A reference is never sketched: messages and pictures are made of its numbers.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
import torch

SUMS = 2
SMALL = 8  # a tensor of so few numbers stays as it is
# The sums are kept in steps far finer than the tolerances, as round numbers take less room.
STEPS = {torch.float32: 2.0**20, torch.float64: 2.0**30}
NAN, INFINITY = 37.0, 41.0  # what stands for them in a sum


@dataclass(frozen=True)
class Sketch:
    """Of a tensor: its dtype, its shape, whether it is float64 rounded to float32, and the sums."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    rounded: bool
    sums: torch.Tensor

    def is_near(self, other: "Sketch", tolerance: float) -> bool:
        """Whether the sums are no further apart than if every entry were off by the tolerance."""
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
    """Whether a float64 tensor holds float32 numbers only, as if it had been rounded on the way."""
    if isinstance(x, Sketch):
        return x.rounded
    return x.dtype == torch.float64 and int(x.count_nonzero()) >= 4 and bool((x.float().double() == x).all())


@functools.lru_cache(maxsize=256)
def _weights(n: int) -> torch.Tensor:
    """(SUMS, n) of size 0.4 to 0.8, so that no entry has next to no say, the same on every machine: this generator's
    numbers never change."""
    drawn = torch.from_numpy(np.random.RandomState(0).random_sample((SUMS, n)) * 2 - 1)
    return 0.4 * (drawn + drawn.sign())
