"""Compare two observations of a case in four facets: output, dtype, changed inputs and gradients."""

import torch

from helpers.checking.compare import difference, gradient_tolerance, output_difference
from helpers.checking.observe import Observation, is_required_error
from helpers.checking.sketch import Sketch, rounded
from helpers.checking.vocabulary import Case

FACETS = ("output", "dtype", "changed", "gradient")


def agree(case: Case, first: Observation, second: Observation, facet: str) -> bool | None:
    """Whether `second` agrees with `first` in a facet; None if there is nothing to compare.

    Outputs can always be compared, because a call that raised differs from one that returned. The other facets exist
    only if both calls returned; an answer that raises has no dtype, so it cannot have lost it.
    """
    errors = [error for error in (first.error, second.error) if error is not None]
    if facet == "output" and len(errors) == 2:
        expected = [is_required_error(case, error) for error in errors]
        return all(expected) or expected[0] == expected[1] and errors[0].type == errors[1].type
    if facet == "output":
        diff = None if errors else output_difference(case, first.output, second.output)
        return not errors and (diff is None or diff.kind == "dtype")
    if errors:
        return None
    if facet == "changed":
        return list(first.changed) == list(second.changed)
    return _same_dtypes(first.output, second.output) if facet == "dtype" else _same_gradients(case, first, second)


def differs(case: Case, first: Observation, second: Observation) -> set[str]:
    """The facets in which two observations differ."""
    return {facet for facet in FACETS if agree(case, first, second, facet) is False}


def _same_dtypes(first, second) -> bool | None:
    """Whether the tensors of two trees have the same dtypes; None if no tensor of one has a counterpart."""
    if isinstance(first, (torch.Tensor, Sketch)) and isinstance(second, (torch.Tensor, Sketch)):
        return first.dtype == second.dtype and (rounded(first) or not rounded(second))
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        first, second = list(first.values()), [second[key] for key in first]
    if not (isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)) and len(first) == len(second)):
        return None
    pairs = [same for same in map(_same_dtypes, first, second) if same is not None]
    return all(pairs) if pairs else None


def _same_gradients(case: Case, first: Observation, second: Observation) -> bool | None:
    if errors := [error for error in (first.gradient_error, second.gradient_error) if error is not None]:
        return len(errors) == 2 and errors[0].type == errors[1].type
    if first.gradients is None or second.gradients is None:
        return None
    return len(first.gradients) == len(second.gradients) and all(
        _same_gradient(case, a, b) for a, b in zip(first.gradients, second.gradients, strict=True)
    )


def _same_gradient(case: Case, a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    """Whether two gradients agree. A missing gradient (None) counts as zeros."""
    present = b if a is None else a
    if present is None:
        return True
    zeros = torch.zeros(present.shape, dtype=present.dtype)
    a, b = (zeros if item is None else item for item in (a, b))
    diff = difference(a, b, gradient_tolerance(case, a))
    return diff is None or diff.kind == "dtype"
