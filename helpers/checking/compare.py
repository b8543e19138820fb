"""When two outputs are equal: same types, shapes and dtypes, and values within a tolerance.

In place of a large tensor that is only ever compared, as what a known mistake gives, stands its sketch: SUMS weighted
sums of its entries, after a curve that is as steep everywhere as the check's tolerance is fine. Two tensors that are
equal within a tolerance have sums that are; two that are not, have not, but by a chance that no learner meets. A
reference is never sketched: messages and pictures are made of its numbers.
"""

import functools
import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch

from helpers.checking.vocabulary import DTYPE, Case

# Relative plus absolute, by the dtype of the expected value.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-7}
FLOAT_TOLERANCE = 1e-5
# A Python float in a case about dtypes comes from float64 numbers, and shall be as exact as they are.
EXACT_FLOAT = 1e-7
# A difference of an earlier kind is the more serious one.
KINDS = ("type", "shape", "nan", "value", "dtype")
SUMS = 2
SMALL = 8  # a tensor of so few numbers stays as it is
# The sums are kept in steps far finer than the tolerances, as round numbers take less room.
STEPS = {torch.float32: 2.0**20, torch.float64: 2.0**30}
NAN = 37.0  # what stands for these two in a sum
INFINITY = 41.0


@dataclass(frozen=True)
class Difference:
    """How an output differs from the expected one: a kind of KINDS, where in the tree, and both values there."""

    kind: str
    path: tuple
    expected: object
    actual: object


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


def output_difference(case: Case, expected, actual) -> Difference | None:
    """The most serious difference between two outputs of a case."""
    if case.part == DTYPE and isinstance(expected, float) and isinstance(actual, float) and math.isfinite(expected):
        # A value that float32 numbers (or fewer digits) cannot have given.
        far = not abs(actual - expected) <= EXACT_FLOAT * (1 + abs(expected))
        if (far or _is_single(actual) and not _is_single(expected)) and (lost := difference(expected, actual, 0.0)):
            return lost
    return difference(expected, actual, case.tolerance)


def gradient_tolerance(case: Case, expected: torch.Tensor) -> float:
    """How far a gradient may be off. It comes through more steps than the output: in float32 ten times as far."""
    return max(case.tolerance or 0, 1e-6 if expected.dtype == torch.float64 else 1e-4)


def _is_single(x: float) -> bool:
    try:
        return struct.unpack("f", struct.pack("f", x))[0] == x
    except OverflowError:
        return False


def difference(expected, actual, tolerance: float | None = None, path: tuple = ()) -> Difference | None:
    """The most serious difference between two trees, or None when they are equal."""
    if kind := _kind(expected, actual, tolerance):
        return Difference(kind, path, expected, actual)
    keys: Iterable = range(len(expected)) if isinstance(expected, (list, tuple)) else ()
    keys = expected if isinstance(expected, dict) else keys
    inner = (difference(expected[key], actual[key], tolerance, (*path, key)) for key in keys)
    return min(filter(None, inner), key=lambda item: KINDS.index(item.kind), default=None)


def _kind(expected, actual, tolerance: float | None) -> str:
    """How two values differ, as one of KINDS, but for the parts of lists, tuples and dicts; empty where they do not."""
    if isinstance(expected, (torch.Tensor, Sketch)):
        return _tensor_kind(expected, actual, tolerance)
    if not is_alike(expected, actual):
        return "type"
    if isinstance(expected, (list, tuple)):
        return "" if len(expected) == len(actual) else "shape"
    if isinstance(expected, dict):
        return "" if expected.keys() == actual.keys() else "value"
    if not isinstance(expected, float):
        return "" if actual == expected else "value"
    if actual != actual:
        return "nan" if expected == expected else ""
    limit = FLOAT_TOLERANCE if tolerance is None else tolerance
    near = math.isfinite(expected) and abs(actual - expected) <= limit + limit * abs(expected)
    return "" if actual == expected or near else "value"


def is_alike(expected, actual) -> bool:
    """Whether a value is of the expected type: a bool is no number, and a whole number is a float too."""
    if isinstance(expected, (list, tuple, dict)):
        return isinstance(actual, type(expected))
    if isinstance(expected, (int, float)) and not isinstance(expected, bool):
        kinds = int if isinstance(expected, int) else (int, float)
        return isinstance(actual, kinds) and not isinstance(actual, bool)
    return type(actual) is type(expected)


def _tensor_kind(expected: torch.Tensor | Sketch, actual, tolerance: float | None) -> str:
    if not isinstance(actual, (torch.Tensor, Sketch)):
        return "type"
    if expected.shape != actual.shape:
        return "shape"
    if isinstance(expected, Sketch) or isinstance(actual, Sketch):
        wrong = not sketch(expected).is_near(sketch(actual), _limit(expected, tolerance))
    elif expected.dtype == actual.dtype and torch.equal(expected, actual):
        return ""  # the usual case, told at once
    elif expected.is_floating_point() and actual.isnan().any() and not expected.isnan().any():
        return "nan"
    else:
        wrong = bool(wrong_entries(expected, actual, tolerance).any())
    if wrong:
        return "value"
    lost = expected.dtype == torch.float64 and rounded(actual) and not rounded(expected)
    return "dtype" if lost or expected.dtype != actual.dtype else ""


def misfit(truth, output) -> Difference | None:
    """How an output is not of the truth's type and shape, whatever its values; None where it is."""
    if isinstance(truth, dict) and "shape" in truth:
        truth = torch.zeros(()).expand(tuple(truth["shape"]))
        if isinstance(output, torch.Tensor) and not output.is_floating_point():
            return Difference("type", (), truth, output)
    found = None if truth is None else difference(truth, output)
    unlike = found is not None and (found.kind in ("type", "shape", "nan") or isinstance(found.expected, dict))
    return found if unlike else None  # a dict differs by its keys


def wrong_entries(expected: torch.Tensor, actual: torch.Tensor, tolerance: float | None = None) -> torch.Tensor:
    """Boolean tensor: True where `actual` is further from `expected` than the tolerance. Shapes must agree."""
    if not expected.is_floating_point():
        return expected.to(torch.float64) != actual.to(torch.float64)
    limit = _limit(expected, tolerance)
    a, b = expected.to(torch.float64), actual.to(torch.float64)
    close = ((a - b).abs() <= limit + limit * a.abs()) & a.isfinite()
    return ~(close | (a == b) | (a.isnan() & b.isnan()))


def _limit(expected: torch.Tensor | Sketch, tolerance: float | None) -> float:
    return TOLERANCE.get(expected.dtype, 1e-5) if tolerance is None else tolerance
