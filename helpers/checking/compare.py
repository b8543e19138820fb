"""Compare two outputs, which are equal if they have the same types, shapes, dtypes and, within a tolerance, values."""

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from helpers.checking.sketch import Sketch, rounded, sketch
from helpers.checking.vocabulary import DTYPE, Case

# Relative plus absolute, by the dtype of the expected value.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-7}
FLOAT_TOLERANCE = 1e-5
# In a case about dtypes, a Python float is computed from float64 numbers and must be as exact as they are.
EXACT_FLOAT = 1e-7
# From the most to the least serious.
KINDS = ("type", "shape", "nan", "value", "dtype")


@dataclass(frozen=True)
class Difference:
    """How an output differs from the expected one: one of KINDS, the path in the tree, and the two values there."""

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
    """The tolerance for a gradient, by default ten times an output's, because computing it takes more steps."""
    return max(case.tolerance or 0, 1e-6 if expected.dtype == torch.float64 else 1e-4)


def _lost_digits(expected, actual) -> Difference | None:
    """The difference between two Python floats if `actual` is less exact than float64 arithmetic; None otherwise."""
    if not isinstance(expected, float) or not isinstance(actual, float) or not math.isfinite(expected):
        return None
    far = not abs(actual - expected) <= EXACT_FLOAT * (1 + abs(expected))
    lost = far or _is_single(actual) and not _is_single(expected)
    return difference(expected, actual, 0.0) if lost else None


def _is_single(x: float) -> bool:
    try:
        return struct.unpack("f", struct.pack("f", x))[0] == x
    except OverflowError:
        return False


def difference(expected, actual, tolerance: float | None = None, path: tuple = ()) -> Difference | None:
    """The most serious difference between two trees, or None when they are equal."""
    kind = _kind(expected, actual, tolerance)
    if kind:
        return Difference(kind, path, expected, actual)
    return most_serious(difference(expected[key], actual[key], tolerance, (*path, key)) for key in keys_of(expected))


def keys_of(tree) -> Iterable:
    """The indices of a list or tuple, or the keys of a dict; empty for any other value."""
    return tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, (list, tuple)) else ()


def most_serious(differences: Iterable[Difference | None]) -> Difference | None:
    """The first difference of the most serious kind; None if there is none."""
    seen = [item for item in differences if item is not None]
    return min(seen, key=lambda item: KINDS.index(item.kind), default=None)


def _kind(expected, actual, tolerance: float | None) -> str:
    """How two values differ, as one of KINDS; "" if they do not. The items of lists, tuples and dicts are ignored."""
    if isinstance(expected, (torch.Tensor, Sketch)):
        return _tensor_kind(expected, actual, tolerance)
    if not has_expected_type(expected, actual):
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


def has_expected_type(expected, actual) -> bool:
    """Whether a value has the expected type. An int is accepted as a float, but a bool is not accepted as a number."""
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
        return ""  # this is the usual case, and quick to decide
    elif expected.is_floating_point() and actual.isnan().any() and not expected.isnan().any():
        return "nan"
    else:
        wrong = bool(wrong_entries(expected, actual, tolerance).any())
    if wrong:
        return "value"
    lost = expected.dtype == torch.float64 and rounded(actual) and not rounded(expected)
    return "dtype" if lost or expected.dtype != actual.dtype else ""


def wrong_entries(expected: torch.Tensor, actual: torch.Tensor, tolerance: float | None = None) -> torch.Tensor:
    """Boolean tensor, True where `actual` differs from `expected` by more than the tolerance. Shapes must agree."""
    if not expected.is_floating_point():
        return expected.to(torch.float64) != actual.to(torch.float64)
    limit = _limit(expected, tolerance)
    a, b = expected.to(torch.float64), actual.to(torch.float64)
    close = ((a - b).abs() <= limit + limit * a.abs()) & a.isfinite()
    return ~(close | (a == b) | (a.isnan() & b.isnan()))


def _limit(expected: torch.Tensor | Sketch, tolerance: float | None) -> float:
    return TOLERANCE.get(expected.dtype, 1e-5) if tolerance is None else tolerance
