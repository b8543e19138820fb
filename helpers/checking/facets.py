"""The facets in which two observations of a case can agree: output, dtype, inputs that were changed, gradients."""

import torch

from helpers.checking.compare import difference, gradient_tolerance, output_difference
from helpers.checking.observe import Observation, keeps_promise
from helpers.checking.sketch import Sketch, rounded
from helpers.checking.vocabulary import Case

FACETS = ("output", "dtype", "changed", "gradient")


def agree(case: Case, first: Observation, second: Observation, facet: str) -> bool | None:
    """Whether `second` shows the same as `first` in a facet; None where the two have nothing to compare in it.

    Outputs can always be compared: one that raised is not the same as one that returned. The other facets only where
    both have them: an answer that raises has no dtype, and none that it lost.
    """
    errors = [error for error in (first.error, second.error) if error is not None]
    if facet == "output" and len(errors) == 2:
        kept = [keeps_promise(case, error) for error in errors]
        return all(kept) or kept[0] == kept[1] and errors[0].type == errors[1].type
    if facet == "output":
        diff = None if errors else output_difference(case, first.output, second.output)
        return not errors and (diff is None or diff.kind == "dtype")
    if errors:
        return None
    if facet == "changed":
        return list(first.changed) == list(second.changed)
    return _same_dtypes(first.output, second.output) if facet == "dtype" else _same_gradients(case, first, second)


def differs(case: Case, first: Observation, second: Observation) -> set[str]:
    """The facets in which two observations are seen to differ."""
    return {facet for facet in FACETS if agree(case, first, second, facet) is False}


def _same_dtypes(first, second) -> bool | None:
    """None where the two trees are not alike, so that no tensor of one has a partner in the other."""
    if isinstance(first, (torch.Tensor, Sketch)) and isinstance(second, (torch.Tensor, Sketch)):
        return first.dtype == second.dtype and (rounded(first) or not rounded(second))
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        first, second = list(first.values()), [second[key] for key in first]
    if not (isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)) and len(first) == len(second)):
        return None
    pairs = [same for same in map(_same_dtypes, first, second) if same is not None]
    return all(pairs) if pairs else None


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
    some = b if a is None else a
    if some is None:
        return True
    zeros = torch.zeros(some.shape, dtype=some.dtype)
    a, b = (zeros if item is None else item for item in (a, b))
    diff = difference(a, b, gradient_tolerance(case, a))
    return diff is None or diff.kind == "dtype"
