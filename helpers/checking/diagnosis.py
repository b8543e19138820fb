"""Diagnose a wrong result from its values, which may be transposed, rounded, scaled, masked differently, and so on."""

import functools
import itertools
import math
from collections.abc import Iterator

import torch

from helpers.checking.codec import leaves
from helpers.checking.compare import wrong_entries
from helpers.checking.verdict import Picture, Problem
from helpers.checking.vocabulary import Case
from helpers.checking.wording import counted, dtype_of, entry_at, item_at, numbered, row_at, short, two_numbers, written

CLOSE = 0.005  # the largest relative difference that is called close
MOST_COMPARED = 1_000_000  # the most pairs of numbers that are compared to find a permutation
MOSTLY = 0.8  # wrong items, rows or columns are named if more than this fraction of their numbers is wrong
SCATTERED = 0.1  # a smaller fraction of wrong numbers is scattered rounding, not wrong items
TRANSPOSED = "transposed: rows and columns have changed places"


def of_tensor(case: Case, want: torch.Tensor, got: torch.Tensor, axes: tuple[str, ...]) -> str:
    """What is wrong with a tensor, one line for each fact, and then the largest difference."""
    diagnosis, _ = by_values(want, got, axes, case.tolerance)
    if diagnosis.startswith("off by a constant factor"):
        diagnosis += _of_a_size(case, float((want * got).sum() / (want * want).sum()))
    # If a mask hides nothing in the first item of the batch, an answer that ignores the mask is right for that item.
    masks = [mask for mask in _masks(case) if mask.dim() > 2]
    first_is_unmasked = any(bool(mask[:1].all()) and not mask.all() for mask in masks)
    first_by_mask = diagnosis.startswith("right for the first item") and first_is_unmasked
    masked = _fully_masked_rows(case, wrong_entries(want, got, case.tolerance))
    lines = [_masked_entries(case, want, got) or masked, "" if first_by_mask or masked else diagnosis]
    if not diagnosis.startswith(("each row", "right, except")):
        lines.append(largest(want, got, case.tolerance, axes))
    return "\n".join(filter(None, lines))


def of_nan(case: Case, want, got, axes: tuple[str, ...]) -> str:
    """Where a number or tensor is nan and should not be."""
    if not isinstance(got, torch.Tensor) or not got.dim():
        return f"expected {short(want.item() if isinstance(want, torch.Tensor) else want)}, yours is nan"
    bad = got.isnan()
    where = bad.nonzero()[0].tolist()
    if got.dim() >= 2 and not want[tuple(where[:-1])].any():
        line = f"expected all zeros in {row_at(where[:-1], axes)}, got nan there"
    else:
        first = f"{entry_at(where, axes)}: expected {short(want[tuple(where)].item())}, got nan"
        line = f"{int(bad.sum())} of {bad.numel()} numbers are nan; {first}"
    return "\n".join(filter(None, (line, _fully_masked_rows(case, bad))))


def picture(key, problem: Problem) -> Picture | None:
    """The wrong matrix, from the batch item that the text names; None if the output has no small matrix."""
    diff = problem.difference
    if diff is None or problem.kind not in ("value", "nan") or problem.where:
        return None
    want, got = diff.expected, diff.actual
    if not isinstance(want, torch.Tensor) or want.dim() < 2:
        return None
    assert isinstance(got, torch.Tensor)  # a difference in values means that type and shape are right
    _, index = by_values(want, got, (), problem.case.tolerance)
    if problem.kind == "nan":
        index = got.isnan().nonzero()[0].tolist()
    front = (index or worst_index(want, got, problem.case.tolerance))[: want.dim() - 2]
    want, got = want[tuple(front)], got[tuple(front)]
    if want.numel() not in range(2, 401) or not wrong_entries(want, got, problem.case.tolerance).any():
        return None
    worst = tuple(worst_index(want, got, problem.case.tolerance))
    return Picture(want, got, key.axes if len(key.axes) == 2 else (), item_at(front), worst)


def worst_index(want: torch.Tensor, got: torch.Tensor, tolerance: float | None = None) -> list[int]:
    """The index of the largest difference, where one that is not finite counts as the largest.

    Differences between integers or booleans are not ranked, so the first one is returned.
    """
    wrong = wrong_entries(want, got, tolerance)
    if not want.is_floating_point():
        return wrong.nonzero()[0].tolist()
    gap = (got.double() - want.double()).abs()
    gap = torch.where(gap.isfinite(), gap, torch.inf).masked_fill(~wrong, -1.0)
    return (gap == gap.max()).nonzero()[0].tolist()  # torch.unravel_index imports sympy, which takes a second


def largest(want: torch.Tensor, got: torch.Tensor, tolerance: float | None, axes: tuple[str, ...]) -> str:
    """How many numbers differ, and the two numbers where they differ most."""
    if not want.dim():
        return two_lines(want.item(), got.item())
    wrong = wrong_entries(want, got, tolerance)
    index = worst_index(want, got, tolerance)
    pair = want[tuple(index)].item(), got[tuple(index)].item()
    a, b = two_numbers(*pair)
    most = "differ, most" if want.is_floating_point() else "differ, first"
    count = f"{int(wrong.sum())} of {wrong.numel()} numbers {'differs,' if int(wrong.sum()) == 1 else most}"
    close = _closeness(*pair)
    return f"{count} at {entry_at(index, axes)}: expected {a}, yours {b}{close and f' ({close})'}"


def two_lines(want, got, at: str = "") -> str:
    """Two values on a line each; for floats, also how one follows from the other and how close they are."""
    a, b = two_numbers(want, got) if isinstance(want, float) else (written(want), written(got))
    lines = [_multiple(want, got), f"expected {a}{at}", f"yours    {b}", _closeness(want, got)]
    return "\n".join(filter(None, lines))


def _multiple(want, got) -> str:
    """How a wrong float follows from the right one, such as a sum from a mean by a whole factor; "" if it does not."""
    if not (isinstance(want, float) and isinstance(got, float)) or not want or not math.isfinite(got / want):
        return ""
    near, ratio = functools.partial(math.isclose, rel_tol=1e-5), got / want
    not_one = round(want, 3) != 1
    diagnoses = [
        (near(ratio, 1 / math.log(2)), "your logarithms are to base 2, and natural ones are asked for"),
        (want < 100 and near(got, math.exp(want)), "your result is e to the power of what is asked for"),
        (near(ratio, -1), "the right number with the opposite sign"),
        (not_one and near(ratio, want), "your result is the square of what is asked for"),
        (not_one and near(ratio * got, 1), "your result is the square root of what is asked for"),
    ]
    for number, words in ((ratio, "{} times"), (ratio and 1 / ratio, "1/{} of")):
        whole = round(number)
        multiple = whole not in (0, 1) and near(number, whole)
        diagnoses.append((multiple, f"your result is {words.format(whole)} what it should be"))
    return next((sentence for holds, sentence in diagnoses if holds), "")


def _closeness(want, got) -> str:
    """The relative difference of two floats that are close, because their digits look almost equal; "" otherwise."""
    if not (isinstance(want, float) and isinstance(got, float) and math.isclose(got, want, rel_tol=CLOSE)):
        return ""
    relative = abs((got - want) / want)
    return f"close: off by {f'{100 * relative:.1g}' if relative >= 1e-6 else 'less than 0.0001'}%"


def by_values(
    want: torch.Tensor, got: torch.Tensor, axes=(), tolerance: float | None = None
) -> tuple[str, list[int] | None]:
    """A diagnosis from the numbers alone ("" if none fits), and the index of the row that it names, or None."""
    found = _diagnoses(want, got, wrong_entries(want, got, tolerance), axes) if want.numel() > 1 else ()
    return next((diagnosis for diagnosis in found if diagnosis[0]), ("", None))


def _diagnoses(want, got, wrong, axes) -> Iterator[tuple[str, list[int] | None]]:
    if want.dtype == torch.bool:
        yield _booleans(want, got), None
    elif not want.is_floating_point():
        gap = got.double() - want.double()  # the answer may have a float dtype
        if (shift := gap.max().item()) == gap.min():
            yield f"every number is {abs(shift):g} too {_by_sign(shift, 'large', 'small')}", None
        yield _in_another_order(want.double(), got.double()), None
        if _reordered(want, got):
            yield "the right numbers in another order", None
    elif not (want.isfinite().all() and got.isfinite().all()):
        yield _blanks(want, got, wrong), None
    else:
        noise = 1e-6 * float(want.abs().max()) if want.dtype == torch.float32 else 1e-12
        yield from _of_finite_numbers(want.double(), got.double(), wrong, noise, axes)


def _booleans(want: torch.Tensor, got: torch.Tensor) -> str:
    if got.dtype != torch.bool:
        return f"expected dtype bool, yours is {dtype_of(got)}"
    too_many, missing = int((got & ~want).sum()), int((want & ~got).sum())
    if too_many and missing:
        if (want != got).all():
            return "inverted: yours is True wherever it should be False, and False wherever it should be True"
        return TRANSPOSED if _is_transposed(want.double(), got.double()) else ""
    is_, other = ("True", "False") if too_many else ("False", "True")
    entries = counted(too_many or missing, "entry is", "entries are")
    return f"{entries} {is_} and should be {other}; no entry is wrong the other way round"


def _is_transposed(want: torch.Tensor, got: torch.Tensor) -> bool:
    return want.dim() >= 2 and want.mT.shape == got.shape and torch.allclose(got, want.mT, 1e-4, 1e-6)


def _in_another_order(want: torch.Tensor, got: torch.Tensor) -> str:
    titles = (title for title, axis in _axes_of(want.dim()) if _permuted(want, got, axis))
    return next((f"the right {title}s in another order" for title in titles), "")


def _of_finite_numbers(want, got, wrong, noise: float, axes) -> Iterator[tuple[str, list[int] | None]]:
    """Diagnoses of finite numbers, the most specific first. noise: how far rounding alone may move a number."""
    gap = got - want
    shift = gap.mean().item()
    if abs(shift) > 20 * noise and (gap - shift).abs().max() <= 0.05 * abs(shift) + noise:
        yield f"every number is about {abs(shift):.2g} too {_by_sign(shift, 'large', 'small')}", None
    yield _rounding(want, got), None
    if torch.allclose(got, want, 1e-4, 1e-6):
        yield _close(want, got), None
    factor = (want * got).sum() / (want * want).sum().clamp_min(1e-30)
    if factor.abs() > 1e-6 and torch.allclose(got, factor * want, 1e-4, 1e-6):
        if torch.allclose(got, -want, 1e-4, 1e-6):
            yield "the right numbers with the opposite sign", None
        times = two_numbers(1.0, factor.item())[1]
        yield f"off by a constant factor: every number is {times} times what it should be", None
    if _is_transposed(want, got):
        yield TRANSPOSED, None
    for power, name in ((2, "square"), (0.5, "square root")):
        if (want >= 0).all() and torch.allclose(got, want**power, 1e-4, 1e-9):
            yield f"every number is the {name} of what it should be", None
    if want.dim() >= 2:
        yield _rows_of_zeros(want, got, axes)
    yield _sums(want, got, axes)
    gaps = gap.reshape(-1, want.shape[-1])
    if len(gaps) > 1 and (gaps.amax(0) - gaps.amin(0)).max() <= 100 * noise:
        yield "every row is off by the same numbers: is something that you add to each row missing or wrong?", None
    yield _in_another_order(want, got), None
    if want.dim() >= 2 and torch.allclose(got.flatten().sort()[0], want.flatten().sort()[0], 1e-4, 1e-6):
        yield "the right numbers, but at other positions: is there a view or reshape where you need transpose?", None
    if _reordered(want, got):
        yield "the right numbers in another order", None
    items = wrong.flatten(1).any(1) if want.dim() >= 3 else wrong[:0]
    if len(items) > 1 and not items[0] and items[1:].all() and wrong[1:].double().mean() > SCATTERED:
        yield "right for the first item of the batch only", None
    yield _blanks(want, got, wrong), None
    yield _lines_that_differ(wrong, axes), None


def _blanks(want: torch.Tensor, got: torch.Tensor, wrong: torch.Tensor) -> str:
    """A sentence if the only wrong numbers are those that should be 0 or -inf, or that are and should not be."""
    count = counted(int(wrong.sum()), "number", "numbers")
    for blank, (numbers, verb) in itertools.product((0.0, -math.inf), ((want, "should"), (got, "should not"))):
        if (numbers[wrong] == blank).all() and (want[~wrong] != blank).any():
            return f"right, except for {count} that {verb} be {blank:g}"
    return ""


def _rows_of_zeros(want: torch.Tensor, got: torch.Tensor, axes) -> tuple[str, list[int] | None]:
    """A sentence if the only wrong rows are those that should be all zeros."""
    zero_rows = (want == 0).all(-1)
    wrong_rows = ~torch.isclose(got, want, 1e-4, 1e-6).all(-1)
    if not wrong_rows.any() or (wrong_rows & ~zero_rows).any():
        return "", None
    index = wrong_rows.nonzero()[0].tolist()
    return f"right, except that {row_at(index, axes)} should be all zeros", index


def _sums(want: torch.Tensor, got: torch.Tensor, axes) -> tuple[str, list[int] | None]:
    """A sentence if each row should sum to 1 and some row does not."""
    total = got.sum(-1)
    ones = torch.ones_like(total)
    if not torch.allclose(want.sum(-1), ones, 1e-4, 1e-4) or (total - 1).abs().max() <= 1e-3:
        return "", None
    if want.dim() > 1 and torch.allclose(columns := got.sum(-2), torch.ones_like(columns), 1e-4, 1e-4):
        return "each row should sum to 1; in your answer each column does", worst_index(ones, total)
    index = worst_index(ones, total)
    number = two_numbers(1.0, total[tuple(index)].item())[1]
    row = f"{row_at(index, axes)} sums" if index else "yours sums"
    return f"each row should sum to 1; {row} to {number}", index


def _rounding(want: torch.Tensor, got: torch.Tensor) -> str:
    """How every number of `got`, but not of `want`, is rounded: to decimal places or to a 16-bit dtype; "" if not."""
    if want.numel() < 4:
        return ""
    for digits in range(1, 7):
        grid = 10.0**digits
        gap, expected_gap = ((x * grid - (x * grid).round()).abs().max() for x in (got, want))
        if gap < 1e-2 < expected_gap and (got - want).abs().max() <= 0.51 / grid:
            return f"rounded to {counted(digits, 'decimal place', 'decimal places')}"
    for dtype, tolerance in ((torch.float16, 1e-3), (torch.bfloat16, 8e-3)):
        rounded = torch.equal(got.to(dtype).double(), got) and not torch.equal(want.to(dtype).double(), want)
        if rounded and torch.allclose(got, want, tolerance, 1e-7):
            return f"rounded on the way: these are {dtype_of(want.to(dtype))} numbers"
    return ""


def _close(want: torch.Tensor, got: torch.Tensor) -> str:
    """A sentence on small differences: a constant percentage, or simply small."""
    relative = ((got - want) / want)[want != 0]
    if relative.numel() > 1 and (relative - relative.mean()).abs().max() < 0.1 * relative.mean().abs():
        percent = 100 * relative.mean().item()
        return f"every number is about {abs(percent):.1g}% too {_by_sign(percent, 'far from', 'close to')} 0"
    return "close, but not close enough"


def _by_sign(gap: float, above: str, below: str) -> str:
    return above if gap > 0 else below


def _reordered(want: torch.Tensor, got: torch.Tensor) -> bool:
    """Whether each row (or the vector) has the right numbers, all different, in another order."""
    a, b = want.double().sort(-1).values, got.double().sort(-1).values
    return bool(want.shape[-1] > 2 and (a.diff(dim=-1) > 0).all() and torch.allclose(a, b, 1e-5, 1e-7))


def _axes_of(dims: int) -> list[tuple[str, int]]:
    """The axes that a message can name, as (title, axis): items, rows and columns."""
    return [("item", 0)] * (dims > 2) + [("row", -2), ("column", -1)] * (dims > 1)


def _permuted(want: torch.Tensor, got: torch.Tensor, axis: int) -> bool:
    """Whether the slices along an axis are the right ones in another order."""
    a, b = (x.movedim(axis, 0).flatten(1) for x in (want, got))
    if len(a) * a.numel() > MOST_COMPARED:
        return False
    close = torch.isclose(a[:, None], b[None], 1e-4, 1e-6).all(-1)
    return bool(close.any(0).all() and close.any(1).all())


def _lines_that_differ(wrong: torch.Tensor, axes) -> str:
    """Which items, rows or columns are wrong, if almost all their numbers are wrong and all others are right."""
    for title, axis in _axes_of(wrong.dim()):
        slices = wrong.movedim(axis, 0).flatten(1)
        bad, good = slices.any(1).nonzero().flatten().tolist(), (~slices.any(1)).nonzero().flatten().tolist()
        if bad and good and slices[bad].double().mean() > MOSTLY:
            nouns = () if title == "item" else axes[axis:][:1]
            for lines, verdict in ((bad, "wrong"), (good, "right")):
                if len(lines) == 1:
                    (line,) = lines
                    return f"only {numbered(title, line, nouns)} is {verdict}"
            numbers = f"{', '.join(map(str, bad[:-1]))} and {bad[-1]}"
            numbers = numbers if len(bad) < 9 else f"{bad[0]}, {bad[1]}, {bad[2]} …"
            return f"{title}s {numbers} are wrong, and the others right"
    return ""


def _of_a_size(case: Case, factor: float) -> str:
    """The end of a sentence if a factor is the length of an input axis, its square root, or 1 over either; else ""."""
    for size in sorted({size for tensor in _tensors(case) for size in tensor.shape if size > 1}):
        for power, sign in ((1, ""), (-1, "1/"), (0.5, "√"), (-0.5, "1/√")):
            if math.isclose(factor, size**power, rel_tol=1e-4):
                return f"{f', which is {sign}{size}' if sign else ''}, and {size} is a size of your inputs"
    return ""


def _masked_entries(case: Case, want: torch.Tensor, got: torch.Tensor) -> str:
    """A sentence if masked entries should all be 0 or all be -inf and are not; "" otherwise."""
    for mask, value in itertools.product(_masks(case), (0.0, -math.inf)):
        if got.is_floating_point() and _broadcasts(mask, want):
            hidden = ~mask.expand_as(want)
            if (want[hidden] == value).all() and (got[hidden] != value).any():
                return f"where the mask is False, the result should be {value:g}, and yours is not"
    return ""


def _fully_masked_rows(case: Case, wrong: torch.Tensor) -> str:
    """A sentence if the only wrong rows are those that a boolean mask of the case masks completely; "" otherwise."""
    if wrong.dim() < 2:
        return ""
    rows = wrong.any(-1)
    for mask in _masks(case):
        fully_masked = ~mask.any(-1)
        if fully_masked.dim() == rows.dim() + 1:  # the mask has an axis for the heads, and the output does not
            fully_masked = fully_masked.any(-2)
        if _broadcasts(fully_masked, rows) and not (rows & ~fully_masked).any():
            return "only fully masked rows are wrong, those for which the mask is False everywhere"
    return ""


def _broadcasts(mask: torch.Tensor, like: torch.Tensor) -> bool:
    """Whether a mask can be broadcast to the shape of `like`."""
    sizes = zip(mask.shape[::-1], like.shape[::-1], strict=False)
    return mask.dim() <= like.dim() and all(size in (1, other) for size, other in sizes)


def _tensors(case: Case) -> list[torch.Tensor]:
    return [leaf for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, torch.Tensor)]


def _masks(case: Case) -> list[torch.Tensor]:
    return [tensor for tensor in _tensors(case) if tensor.dtype == torch.bool]
