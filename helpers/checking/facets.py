"""The facets in which two observations of a case can agree: output, dtype, inputs that were changed, gradients."""

from __future__ import annotations

import torch

from helpers.checking.compare import difference
from helpers.checking.observe import Observation
from helpers.checking.vocabulary import Case

FACETS = ("output", "dtype", "changed", "gradient")


def agree(case: Case, one: Observation, other: Observation, facet: str) -> bool:
    """Whether two observations of a case are the same in one facet."""
    if facet == "changed":
        return list(one.changed) == list(other.changed)
    if one.error is not None or other.error is not None:
        same = one.error is not None and other.error is not None and one.error.type == other.error.type
        return same if facet == "output" else True
    if facet == "gradient":
        return _same_gradients(one, other)
    diff = difference(one.output, other.output, case.tolerance)
    if facet == "dtype":
        return diff is None or diff.kind != "dtype"
    return diff is None or diff.kind == "dtype"


def _same_gradients(one: Observation, other: Observation) -> bool:
    if (one.gradient_error is None) != (other.gradient_error is None):
        return False
    if one.gradients is None or other.gradients is None:
        return one.gradients is other.gradients or one.gradient_error is not None
    if len(one.gradients) != len(other.gradients):
        return False
    for a, b in zip(one.gradients, other.gradients, strict=True):
        zero = a is None and b is None
        if zero:
            continue
        a, b = (torch.zeros_like(b) if a is None else a), (torch.zeros_like(a) if b is None else b)
        diff = difference(a, b, 1e-6)
        if diff is not None and diff.kind != "dtype":
            return False
    return True
