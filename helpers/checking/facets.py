"""The facets in which two observations of a case can agree: output, dtype, inputs that were changed, gradients."""

from __future__ import annotations

import torch

from helpers.checking.compare import difference, gradient_tolerance, output_difference
from helpers.checking.observe import Observation, keeps_promise
from helpers.checking.sketch import Sketch, rounded
from helpers.checking.vocabulary import Case

FACETS = ("output", "dtype", "changed", "gradient")


def agree(case: Case, one: Observation, other: Observation, facet: str) -> bool | None:
    """Whether `other` shows the same as `one` in a facet; None where the two have nothing to compare in it.

    Outputs can always be compared: one that raised is not the same as one that returned. The other facets only where
    both have them: an answer that raises has no dtype, and none that it lost.
    """
    if facet == "output":
        return _same_output(case, one, other)
    if one.error is not None or other.error is not None:
        return None
    if facet == "changed":
        return list(one.changed) == list(other.changed)
    if facet == "dtype":
        return _same_dtypes(one.output, other.output)
    return _same_gradients(case, one, other)


def differs(case: Case, one: Observation, other: Observation) -> set[str]:
    """The facets in which two observations are seen to differ."""
    return {facet for facet in FACETS if agree(case, one, other, facet) is False}


def _same_output(case: Case, one: Observation, other: Observation) -> bool:
    if one.error is None and other.error is None:
        diff = output_difference(case, one.output, other.output)
        return diff is None or diff.kind == "dtype"
    if one.error is None or other.error is None:
        return False
    if case.raises is not None and keeps_promise(case, one.error) != keeps_promise(case, other.error):
        return False
    if case.raises is not None and keeps_promise(case, one.error):
        return True
    return one.error.type == other.error.type


def _same_dtypes(one, other) -> bool | None:
    """None where the two trees are not alike, so that no tensor of one has a partner in the other."""
    if isinstance(one, (torch.Tensor, Sketch)) and isinstance(other, (torch.Tensor, Sketch)):
        return one.dtype == other.dtype and (rounded(one) or not rounded(other))
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return None
        one, other = list(one.values()), [other[key] for key in one]
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)) and len(one) == len(other):
        found = [same for same in map(_same_dtypes, one, other) if same is not None]
        return all(found) if found else None
    return None


def _same_gradients(case: Case, one: Observation, other: Observation) -> bool | None:
    first, second = one.gradient_error, other.gradient_error
    if first is not None or second is not None:
        return first is not None and second is not None and first.type == second.type
    if one.gradients is None or other.gradients is None:
        return None
    return len(one.gradients) == len(other.gradients) and all(
        _same_gradient(case, a, b) for a, b in zip(one.gradients, other.gradients, strict=True)
    )


def _same_gradient(case: Case, a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    """A gradient that does not arrive is as good as one of zeros."""
    shown = [item for item in (a, b) if item is not None]
    if not shown:
        return True
    zeros = torch.zeros(shown[0].shape, dtype=shown[0].dtype)
    a, b = (zeros if item is None else item for item in (a, b))
    diff = difference(a, b, gradient_tolerance(case, a))
    return diff is None or diff.kind == "dtype"
