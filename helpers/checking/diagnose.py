"""What to say of a wrong answer that is no known mistake: plain sentences, never the solution."""

from __future__ import annotations

import torch

from helpers.checking.codec import Odd
from helpers.checking.compare import wrong_entries
from helpers.checking.vocabulary import LEADING, Case

NUMBER = {1: "one", 2: "two", 3: "three", 4: "four"}


def text(problem, key) -> str:
    """One to three lines on a problem."""
    body = _BY_KIND[problem.kind](problem, key)
    if problem.kind in ("raises", "too_slow", "no_error", "no_name"):
        body += f"\n  with {call_text(key, problem.case)}"
    return body


def short(problem, key) -> str:
    """The same in one line, for the list of parts."""
    return _BY_KIND[problem.kind](problem, key).split("\n")[0]


def forbidden_text(name: str, key) -> str:
    if name.startswith("helpers.blocks"):
        return f"{name} is the course's finished answer to this exercise; build your own."
    return f"{name} is the answer to this exercise; {key.instead}"


def call_text(key, case: Case) -> str:
    """The call as a learner would write it, with tensors as their shapes."""
    if case.note:
        return case.note
    if case.via == "module":
        init, _, args, kwargs = case.args
        inner = ", ".join([*map(_brief, args), *(f"{name}={_brief(value)}" for name, value in kwargs.items())])
        return f"{key.name}({', '.join(map(_brief, init))})({inner})"
    inner = ", ".join([*map(_brief, case.args), *(f"{name}={_brief(value)}" for name, value in case.kwargs.items())])
    return f"{key.name}({inner})"


def leaf_name(key, case: Case, number: int) -> str:
    """The name of the number-th differentiable input, or of a parameter of the module."""
    inputs = case.args[2] if case.via == "module" else case.args
    names = []
    for position, item in enumerate(inputs):
        if position not in case.no_gradient:
            names += [argument_name(key, position)] * _floats(item)
    extra = case.args[3] if case.via == "module" else case.kwargs
    for name, item in extra.items():
        names += [name] * _floats(item)
    if number < len(names):
        return names[number]
    state = list(case.args[1]) if case.via == "module" else []
    return state[number - len(names)] if number - len(names) < len(state) else "a parameter"


def argument_name(key, position) -> str:
    if isinstance(position, int):
        return key.arguments[position] if position < len(key.arguments) else f"argument {position + 1}"
    return str(position)


def _floats(tree) -> int:
    if isinstance(tree, torch.Tensor):
        return int(tree.is_floating_point())
    if isinstance(tree, dict):
        tree = list(tree.values())
    return sum(map(_floats, tree)) if isinstance(tree, (list, tuple)) else 0


def _brief(value) -> str:
    if isinstance(value, torch.Tensor):
        if value.numel() <= 4 and value.dim() <= 1 and not value.is_floating_point():
            return f"torch.tensor({value.tolist()})"
        return f"<{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}>"
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 60 else f'"{value[:57]}…"'
    if isinstance(value, (list, tuple, dict)):
        whole = _nested(value)
        return whole if len(whole) <= 80 else f"{whole[:77]}…"
    return f"<{value.name}>" if hasattr(value, "name") else repr(value)


def _nested(value) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_brief(k)}: {_brief(v)}" for k, v in value.items()) + "}"
    inner = ", ".join(map(_brief, value))
    return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"


def _not_answered(problem, key) -> str:
    return "part of it is not answered yet"


def _raises(problem, key) -> str:
    error = problem.seen.gradient_error if problem.where == "gradient" else problem.seen.error
    what = "while computing the gradient, your code raised" if problem.where == "gradient" else "your code raised"
    body = f"{what} {error.type}: {error.message.splitlines()[0] if error.message else '(no message)'}"
    if len(body) > 200:
        body = body[:199] + "…"
    if error.line:
        body += f"\n  in line {error.lineno}:   {error.line[:90]}"
    return body


def _wrong_type(problem, key) -> str:
    diff = problem.difference
    got = diff.actual
    place = _place(diff.path)
    if got is None:
        return f"your answer returned None{place}; is a return missing?"
    if isinstance(got, Odd) and got.type_name == "unusable":
        return got.text or "your output could not be read"
    return f"expected {_type_words(diff.expected)}{place}, got {_type_words(got)}"


def _type_words(value) -> str:
    if isinstance(value, Odd):
        return f"a {value.type_name} {value.text}".rstrip()
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    names = {bool: "True or False (bool)", int: "a Python int", float: "a Python float", str: "a string"}
    return names.get(type(value), f"a {type(value).__name__}")


def _place(path) -> str:
    return "" if not path else " at " + "".join(f"[{item!r}]" for item in path)


def _wrong_shape(problem, key) -> str:
    diff = problem.difference
    if not isinstance(diff.expected, torch.Tensor):
        return f"expected {len(diff.expected)} entries{_place(diff.path)}, yours has {len(diff.actual)}"
    want, got = tuple(diff.expected.shape), tuple(diff.actual.shape)
    words = _axes_words(want, key.axes) if problem.part != LEADING or len(want) <= 2 else ""
    lines = f"expected shape {want}{words}\nyours    shape {got}"
    return lines if not diff.path else f"{lines}\n(output {_place(diff.path).strip()})"


def _axes_words(shape, axes) -> str:
    if len(axes) != 2 or len(shape) < 2:
        return ""
    rows, columns = shape[-2:]
    return f": one row for each {_count(rows, axes[0])}, one column for each {_count(columns, axes[1])}"


def _count(number: int, noun: str) -> str:
    """'of the 5 queries'; a noun of several words stays as it is: 'score j (5)'."""
    if number == 1 or " " in noun:
        return f"{noun} ({number})"
    return f"of the {number} {noun[:-1] + 'ies' if noun.endswith('ry') else noun + 's'}"


def _nan(problem, key) -> str:
    diff = problem.difference
    if problem.where:
        return f"the gradient at {problem.where} is nan"
    if isinstance(diff.actual, torch.Tensor) and diff.actual.dim():
        bad = diff.actual.isnan().nonzero()[0].tolist()
        want = diff.expected[tuple(bad)].item()
        return f"expected no nan, got nan at {bad} (expected {_number(want)} there)"
    return "expected a number, got nan"


def _input_changed(problem, key) -> str:
    name = argument_name(key, problem.seen.changed[0])
    return f"your code changed its input {name} in place; the caller still needs it"


def _dtype_lost(problem, key) -> str:
    diff = problem.difference
    if diff.expected.dtype == diff.actual.dtype:
        return "your float64 answer holds float32 numbers only: somewhere on the way it is rounded"
    want, got = (str(x.dtype).removeprefix("torch.") for x in (diff.expected, diff.actual))
    return f"expected dtype {want}{_place(diff.path)}, yours is {got}"


def _detached(problem, key) -> str:
    where = f" {problem.where}" if problem.where else " your inputs"
    return f"no gradient reaches{where}: somewhere the result is cut off from the input (detach, item, numpy, no_grad?)"


def _too_slow(problem, key) -> str:
    return f"no answer after {key.facts.time_limit:g} seconds; is there an endless loop?"


def _no_error(problem, key) -> str:
    return f"expected a {problem.case.raises.error}, but your code returned a value"


def _no_name(problem, key) -> str:
    return f"the {problem.case.raises.error} should name {problem.case.raises.names!r}"


def _gradient(problem, key) -> str:
    return f"the output is right, but the gradient at {problem.where} is not"


def _value(problem, key) -> str:
    diff = problem.difference
    want, got = diff.expected, diff.actual
    if not isinstance(want, torch.Tensor):
        if isinstance(want, bool) and diff.path:
            return f"not so: {diff.path[-1]}"
        return f"expected {_brief(want)}{_place(diff.path)}, got {_brief(got)}"
    return _by_values(want, got, problem) or _first_wrong(want, got, problem.case.tolerance)


def _first_wrong(want, got, tolerance) -> str:
    wrong = wrong_entries(want, got, tolerance)
    if not want.dim():
        return f"expected {_number(want.item())}, got {_number(got.item())}"
    place = wrong.nonzero()[0].tolist()
    share = f"{int(wrong.sum())} of {wrong.numel()} numbers differ; "
    index = ", ".join(map(str, place))
    return f"{share}at [{index}] expected {_number(want[tuple(place)].item())}, got {_number(got[tuple(place)].item())}"


def _number(value) -> str:
    return str(value) if isinstance(value, (bool, int)) else f"{value:.4g}"


def _by_values(want: torch.Tensor, got: torch.Tensor, problem) -> str:
    """A diagnosis from the numbers alone, or the empty string. Tried from the most telling to the least."""
    if not want.is_floating_point() or want.numel() < 2:
        return ""
    want, got = want.double(), got.double()
    if not (want.isfinite().all() and got.isfinite().all()):
        return ""
    if torch.allclose(got, want, 1e-4, 1e-6):
        return "close, but not close enough: somewhere on the way numbers are rounded"
    factor = (want * got).sum() / (want * want).sum().clamp_min(1e-30)
    if factor.abs() > 1e-6 and torch.allclose(got, factor * want, 1e-4, 1e-6):
        return f"a constant factor off: every number is {factor.item():.4g} times what it should be"
    if want.dim() >= 2 and want.shape[-1] == want.shape[-2] and torch.allclose(got, want.mT, 1e-4, 1e-6):
        return "transposed: rows and columns have changed places"
    if want.dim() >= 2:
        blank = (want == 0).all(-1)
        wrong_rows = ~torch.isclose(got, want, 1e-4, 1e-6).all(-1)
        if blank.any() and bool((wrong_rows & ~blank).any()) is False and wrong_rows.any():
            return "right but for the rows that see nothing: they should be all zeros"
    ones = torch.ones(want.shape[:-1], dtype=want.dtype)
    if torch.allclose(want.sum(-1), ones, 1e-4, 1e-4) and not torch.allclose(got.sum(-1), ones, 1e-3, 1e-3):
        total = got.sum(-1).reshape(-1)[0].item()
        return f"its rows should sum to 1; your first one sums to {total:.4g}"
    if want.dim() >= 2 and _columns_permuted(want, got):
        return "the right columns in another order"
    if want.dim() >= 3 and want.shape[0] > 1 and torch.allclose(got[0], want[0], 1e-4, 1e-6):
        return "right for the first item of the batch only"
    return ""


def _columns_permuted(want, got) -> bool:
    flat_want, flat_got = want.reshape(-1, want.shape[-1]), got.reshape(-1, got.shape[-1])
    close = torch.isclose(flat_want[:, :, None], flat_got[:, None, :], 1e-4, 1e-6).all(0)
    return bool(close.any(0).all() and close.any(1).all())


_BY_KIND = {
    "not_answered": _not_answered,
    "raises": _raises,
    "wrong_type": _wrong_type,
    "wrong_shape": _wrong_shape,
    "nan": _nan,
    "input_changed": _input_changed,
    "dtype_lost": _dtype_lost,
    "detached": _detached,
    "too_slow": _too_slow,
    "no_error": _no_error,
    "no_name": _no_name,
    "gradient": _gradient,
    "value": _value,
}
