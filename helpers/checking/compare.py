"""When two outputs are equal: same types, shapes and dtypes, and values within a tolerance."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import torch

from helpers.checking.codec import Odd
from helpers.checking.sketch import Sketch, rounded, sketch
from helpers.checking.vocabulary import DTYPE, Case

# Relative plus absolute, by the dtype of the expected value.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-7}
FLOAT_TOLERANCE = 1e-5
# A Python float in a case about dtypes comes from float64 numbers, and shall be as exact as they are.
EXACT_FLOAT = 1e-7
# A difference of an earlier kind is the more serious one.
KINDS = ("type", "shape", "nan", "value", "dtype")


@dataclass(frozen=True)
class Difference:
    """How an output differs from the expected one: a kind of KINDS, where in the tree, and both values there."""

    kind: str
    path: tuple
    expected: object
    actual: object


def output_difference(case: Case, expected, actual) -> Difference | None:
    """The most serious difference between two outputs of a case."""
    if case.part == DTYPE:
        lost = _lost_digits(expected, actual)
        if lost is not None:
            return lost
    return difference(expected, actual, case.tolerance)


def gradient_tolerance(case: Case, expected: torch.Tensor) -> float:
    """How far a gradient may be off. It comes through more steps than the output: in float32 ten times as far."""
    return max(case.tolerance or 0, 1e-6 if expected.dtype == torch.float64 else 1e-4)


def _lost_digits(expected, actual) -> Difference | None:
    """For a Python float: a value that float32 numbers (or fewer digits) cannot have given."""
    if not isinstance(expected, float) or not isinstance(actual, float) or not math.isfinite(expected):
        return None
    far = not abs(actual - expected) <= EXACT_FLOAT * (1 + abs(expected))
    if far or (_is_single(actual) and not _is_single(expected)):
        return difference(expected, actual, 0.0)
    return None


def _is_single(x: float) -> bool:
    try:
        return struct.unpack("f", struct.pack("f", x))[0] == x
    except OverflowError:
        return False


def difference(expected, actual, tolerance: float | None = None, path: tuple = ()) -> Difference | None:
    """The most serious difference between two trees, or None when they are equal."""
    if isinstance(expected, (torch.Tensor, Sketch)):
        return _tensor_difference(expected, actual, tolerance, path)
    if isinstance(expected, (list, tuple)):
        same_type = isinstance(actual, type(expected))
        return (
            _children(expected, actual, tolerance, path, range(len(expected)))
            if same_type
            else _no("type", path, expected, actual)
        )
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            return _no("type", path, expected, actual)
        if expected.keys() != actual.keys():
            return _no("value", path, expected, actual)
        return _children(expected, actual, tolerance, path, expected)
    if isinstance(expected, bool) or expected is None or isinstance(expected, (str, Odd)):
        if type(actual) is not type(expected):
            return _no("type", path, expected, actual)
        return None if actual == expected else _no("value", path, expected, actual)
    if isinstance(expected, int):
        if isinstance(actual, bool) or not isinstance(actual, int):
            return _no("type", path, expected, actual)
        return None if actual == expected else _no("value", path, expected, actual)
    return _float_difference(expected, actual, tolerance, path)


def _no(kind, path, expected, actual) -> Difference:
    return Difference(kind, path, expected, actual)


def _children(expected, actual, tolerance, path, keys) -> Difference | None:
    if len(expected) != len(actual):
        return _no("shape", path, expected, actual)
    both = (difference(expected[key], actual[key], tolerance, (*path, key)) for key in keys)
    found = [item for item in both if item is not None]
    return min(found, key=lambda item: KINDS.index(item.kind), default=None)


def _float_difference(expected, actual, tolerance, path) -> Difference | None:
    if isinstance(actual, bool) or not isinstance(actual, (int, float)):
        return _no("type", path, expected, actual)
    if actual != actual:
        return None if expected != expected else _no("nan", path, expected, actual)
    limit = FLOAT_TOLERANCE if tolerance is None else tolerance
    if actual == expected or (math.isfinite(expected) and abs(actual - expected) <= limit + limit * abs(expected)):
        return None
    return _no("value", path, expected, actual)


def _tensor_difference(expected, actual, tolerance, path) -> Difference | None:
    if not isinstance(actual, (torch.Tensor, Sketch)):
        return _no("type", path, expected, actual)
    if expected.shape != actual.shape:
        return _no("shape", path, expected, actual)
    if isinstance(expected, Sketch) or isinstance(actual, Sketch):
        wrong = not sketch(expected).is_near(sketch(actual), _limit(expected, tolerance))
    elif expected.dtype == actual.dtype and torch.equal(expected, actual):
        return None  # the usual case, told at once
    elif expected.is_floating_point() and actual.isnan().any() and not expected.isnan().any():
        return _no("nan", path, expected, actual)
    else:
        wrong = bool(wrong_entries(expected, actual, tolerance).any())
    if wrong:
        return _no("value", path, expected, actual)
    if expected.dtype != actual.dtype:
        return _no("dtype", path, expected, actual)
    if expected.dtype == torch.float64 and rounded(actual) and not rounded(expected):
        return _no("dtype", path, expected, actual)
    return None


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
