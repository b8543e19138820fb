"""What to say of a wrong answer: plain sentences about what was seen, never the solution."""

import dataclasses
import functools
import inspect
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator

import torch

from helpers.checking.codec import Odd
from helpers.checking.compare import difference, wrong_entries
from helpers.checking.key import ExerciseKey
from helpers.checking.observe import IN_ALL, NOT_TRIED, WANTS_GRAD, Observation
from helpers.checking.stubs import STUBS
from helpers.checking.trees import leaves
from helpers.checking.verdict import (
    RESERVED,
    WHOLE,
    Part,
    Picture,
    Problem,
    Verdict,
    argument_name,
    decided,
    most_important,
)
from helpers.checking.vocabulary import Case, Stub

MOST_WRITTEN = 8  # numbers of a tensor that is written out
CLOSE = 0.005  # a share of the expected number
MOST_COMPARED = 1_000_000  # pairs of numbers
MOSTLY = 0.8  # a share of an item's, a row's or a column's numbers
TRANSPOSED = "transposed: rows and columns have changed places"
SCATTERED = 0.1  # as few wrong numbers among all are rounding here and there, and no item that is wrong
MOST_TEXT = 120  # characters of a string, list or dictionary
SAID_TOO = ("wrong_shape", "raises", "measured")  # what was seen is said beside a known mistake's words


def with_message(key, verdict: Verdict) -> Verdict:
    """The verdict with what is to be said of its problems: a detail for each part, the message, the picture."""
    if not verdict.problems:
        return verdict
    about = most_important(verdict.problems)
    known = next((mistake for mistake in key.mistakes if mistake.name == verdict.mistake), None)
    label = "" if verdict.mistake in RESERVED else (verdict.mistake or "").replace("_", " ")
    label = label if known is None else known.label.rstrip(".")
    lines = [] if known is None else [f"This looks like: {label}.", known.hint]
    if known is None or about.kind in SAID_TOO:
        lines.append(text(about, key))
    parts = [_detailed(part, verdict.problems, key) for part in verdict.parts]
    return dataclasses.replace(
        verdict, label=label, message="\n".join(lines), parts=parts, picture=picture(key, about), problems=[]
    )


def _detailed(part: Part, problems: list[Problem], key) -> Part:
    of_part = [problem for problem in problems if problem.part == part.name and problem.kind not in WHOLE]
    return dataclasses.replace(part, detail=text(most_important(of_part), key)) if of_part else part


def text(problem: Problem, key) -> str:
    """What was seen on a problem's case, a line for each fact: expected, yours, the call."""
    lines = (_other_form(problem) or _BY_KIND[problem.kind](problem, key)).split("\n")
    if problem.kind == "value" and problem.seen.drew and not problem.expected.drew:
        lines.append("your code draws random numbers, but nothing here is random (dropout? a new layer in each call?)")
    if problem.kind not in WHOLE:
        lines += called(key, problem.case)
    return "\n".join(lines)


def _other_form(problem) -> str:
    """What to say of a right result that is returned in another form: in another order, or only a part of it."""
    if problem.difference is None or problem.where:
        return ""
    expected, actual = problem.expected.output, problem.seen.output
    if isinstance(expected, dict) and isinstance(actual, dict):
        return _exchanged(expected, actual, problem.difference.path)
    if isinstance(expected, list) and isinstance(actual, list):
        return _other_entries(expected, actual)
    return _other_values(expected, actual) if isinstance(expected, (tuple, list)) else ""


def _other_values(expected: tuple | list, actual) -> str:
    """Whether an answer has two or three values in another order, or is only one of them."""
    count = len(expected)
    if count in (2, 3) and isinstance(actual, (tuple, list)) and len(actual) == count:
        _, *orders = itertools.permutations(range(count))  # without the right one, which comes first
        first = [order[0] for order in orders if difference(list(expected), [actual[i] for i in order]) is None]
        return f"the right values, but in another order: [{first[0]}] of your answer should come first" if first else ""
    if count in (2, 3) and isinstance(actual, torch.Tensor):
        same = [i for i, part in enumerate(expected) if difference(part, actual) is None]
        return f"your answer is only [{same[0]}] of the {count} values that are asked for" if same else ""
    return ""


def _exchanged(expected: dict, actual: dict, path) -> str:
    """Which other tensor of a dictionary stands where the first wrong one should; else empty."""
    name = path[0] if path else None
    if isinstance(expected.get(name), torch.Tensor):
        for other, tensor in expected.items():
            if other != name and difference(tensor, actual[name]) is None:
                return f"your [{written(name)}] holds what belongs in [{written(other)}]"
    return ""


def _other_entries(expected: list, actual: list) -> str:
    """How two lists differ where both have the same entries, or where one that is too long to be read lacks some."""
    if any(isinstance(leaf, torch.Tensor) for leaf in leaves([expected, actual])):
        return ""  # of a large tensor only its shape is written
    want, got = [*map(written, expected)], [*map(written, actual)]
    missing, extra = Counter(want) - Counter(got), Counter(got) - Counter(want)
    if not missing and not extra:
        at = next((i for i, (a, b) in enumerate(zip(want, got, strict=True)) if a != b), 0)
        return f"the right entries in another order; at [{at}]: expected {want[at]}, yours {got[at]}"
    if missing and extra or len(_nested(expected)) <= MOST_TEXT:
        return ""
    named = list((missing or extra).elements())
    examples = f"{', '.join(named[:3])}{' …' if len(named) > 3 else ''}"
    verb = "lacks" if missing else "should not have"
    return f"{len(want)} entries are expected, yours has {len(got)} and {verb} {examples}"


def _right_values(problem) -> str:
    """Which of several values are right where another one is not; a line, or empty."""
    expected, actual = problem.expected.output, problem.seen.output
    if not (isinstance(expected, tuple) and isinstance(actual, tuple) and len(actual) == len(expected)):
        return ""
    right = [f"[{i}]" for i, pair in enumerate(zip(expected, actual, strict=True)) if difference(*pair) is None]
    return f"\noutput at {' and '.join(right)}: right" if right else ""


def forbidden_text(name: str, key) -> str:
    if name.startswith("helpers.blocks"):
        block = name.rpartition(".")[2]
        if block != key.name:
            return f"{name} is the course's finished answer to another exercise; use your own {block}."
        return f"{name} is the course's finished answer to this exercise; build your own."
    if name.startswith("helpers."):
        return f"{name} is the course's own code, which an answer cannot call; write your own."
    return f"{name}{',' if ', called inside ' in name else ''} is the answer to this exercise; {key.instead}"


def called(key, case: Case) -> list[str]:
    """The call that failed, and what the functions among its arguments do."""
    call = call_text(key, case)
    lines = [call if call.startswith("with ") else f"with {call}"]
    named = {id(item): name for name, item in _own_stubs(key, case).items()}
    for item in [leaf for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, Stub)]:
        maker = _maker(item)
        doc = inspect.getdoc(maker) if maker and not case.note else ""
        if doc:
            first = doc.splitlines()[0].rstrip(".")
            name, made = named.get(id(item), item.name), _stub(item).removeprefix(item.name)
            made = f" {made}" if name != item.name and item.args else ""
            subject = "" if first.startswith(f"{name}(") else f"{name} is "  # its signature has the name already
            lines.append(f"where {subject}{first[0].lower()}{first[1:]}{made}")
    return list(dict.fromkeys(lines))


def call_text(key, case: Case) -> str:
    """The call as a learner would write it: small inputs written out, large tensors by dtype and shape."""
    if case.note:
        return case.note
    call, only_builds = case.call, _builds(case)
    init = call.args[0] if only_builds else call.init
    made = key.name if init is None else f"{key.name}({', '.join(map(written, init))})"
    stubs = _own_stubs(key, case)
    inner = [_argument(argument_name(key, position), value, stubs) for position, value in enumerate(call.args)]
    inner += [f"{name}={_argument(name, value, stubs)}" for name, value in call.kwargs.items()]
    return made if only_builds else f"{made}({', '.join(inner)})"


def _builds(case: Case) -> bool:
    """Whether a case's scenario builds a module and does no more."""
    call = case.call
    return bool(call.init is None and case.via and call.args and isinstance(call.args[0], tuple))


def _own_stubs(key, case: Case) -> dict[str, Stub]:
    """The Stubs that are arguments themselves, by the exercise's own names for them."""
    call = case.call
    named = {argument_name(key, position): value for position, value in enumerate(call.args)} | call.kwargs
    return {name: value for name, value in named.items() if isinstance(value, Stub) and name.isidentifier()}


def _argument(name: str, value, stubs: dict[str, Stub]) -> str:
    """An argument as it is written in a call: a function of ours by the exercise's name for it."""
    return name if name in stubs else written(value)


def _maker(item: Stub) -> Callable | None:
    try:
        return STUBS[item.name]
    except KeyError:
        return None


def written(value) -> str:
    """A value as a learner would write it, where it is small enough to be read; else what it is."""
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, (str, bytes)):
        whole = repr(value) if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False)
        return whole if len(value) <= MOST_TEXT else f'{whole[: MOST_TEXT - 3]}…"'
    if isinstance(value, (list, tuple, dict)):
        whole = _nested(value)
        return whole if len(whole) <= MOST_TEXT else f"{whole[: MOST_TEXT - 1]}…"
    if isinstance(value, Stub):
        return _stub(value)
    if isinstance(value, Odd):
        return f"{_a(value.type_name)} {value.text}".rstrip()
    return repr(value)


def _tensor(value: torch.Tensor) -> str:
    dtype = str(value.dtype).removeprefix("torch.")
    if value.numel() > MOST_WRITTEN or not value.numel():
        return f"<{dtype} {tuple(value.shape)}>"
    usual = value.dtype in (torch.float32, torch.int64, torch.bool)
    return f"torch.tensor({_numbers(value.tolist())}{'' if usual else f', dtype=torch.{dtype}'})"


def _numbers(tree) -> str:
    if isinstance(tree, list):
        return f"[{', '.join(map(_numbers, tree))}]"
    if not isinstance(tree, float):
        return str(tree)
    short = f"{tree + 0.0:.4g}"  # of -0.0 this makes 0
    return short + "." if short.lstrip("-").isdigit() else short


def _nested(value) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(k)}: {written(v)}" for k, v in value.items()) + "}"
    inner = ", ".join(map(written, value))
    return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"


def _stub(item: Stub) -> str:
    """A function of ours as it is made, with the names of what it is made with where it has one for each."""
    maker = _maker(item)
    names = [*inspect.signature(maker).parameters.values()] if maker else []
    values = [*map(written, item.args)]
    if len(names) >= len(values) and not any(name.kind is name.VAR_POSITIONAL for name in names):
        values = [f"{name.name}={value}" for name, value in zip(names, values, strict=False)]
    return f"{item.name}({', '.join(values)})"


def _a(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def _raises(problem, key) -> str:
    error = problem.seen.gradient_error if problem.where == "gradient" else problem.seen.error
    if error.type == "WrongParts":
        return error.message
    what = "while computing the gradient, your code raised" if problem.where == "gradient" else "your code raised"
    if problem.case.raises is not None:
        what = f"expected {_a(problem.case.raises.error)}, but your code raised"
    body = f"{what} {error.type}: {error.message.splitlines()[0] if error.message else '(no message)'}"
    if len(body) > 200:
        body = body[:199] + "…"
    if error.line:
        body += f"\nin {_helper(error, key)}line {error.lineno}: {error.line[:90]}"
    return body


def _helper(error, key) -> str:
    """ "your helper weights_of, " where the line stands in a function other than the answer itself."""
    name = getattr(error, "function", "").split("<locals>.")[-1]
    is_answer = name == key.name or name.startswith(f"{key.name}.") or "<" in name
    return "" if is_answer or not name else f"your helper {name}, "


def _wrong_type(problem, key) -> str:
    diff = problem.difference
    got = diff.actual
    where = _at(diff.path)
    if got is None:
        return f"your answer returned None{where}; is a return missing?"
    if isinstance(got, Odd) and got.type_name == "unusable":
        return got.text or "your output could not be read"
    return f"expected {_type_words(diff.expected)}{where}, got {_type_words(got)}"


def _type_words(value) -> str:
    if isinstance(value, Odd):
        return written(value)
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}" if value.dim() else "a tensor with a single number, shape ()"
    kind = _a(type(value).__name__)
    if isinstance(value, (list, tuple)):
        many = ("entry", "entries") if isinstance(value, list) else ("value", "values")
        return f"{kind} of {len(value)} {many[len(value) != 1]}"
    kind = {int: "a Python int", float: "a Python float", str: "a string", bytes: "bytes"}.get(type(value), kind)
    shown = f"{value:.6g}" if isinstance(value, float) else written(value)
    return f"{kind}, {shown}" if isinstance(value, (bool, int, float, str, bytes)) else kind


def _at(path) -> str:
    return "" if not path else " at " + "".join(f"[{written(item)}]" for item in path)


def _property(problem) -> str:
    """The name of the property that failed, where a view or scenario names several; else the empty string."""
    path = problem.difference.path
    named = (problem.case.view or problem.case.via) and path and isinstance(path[-1], str)
    return path[-1] if named else ""


def _place(problem) -> str:
    return _property(problem) or f"output{_at(problem.difference.path)}"


def _wrong_shape(problem, key) -> str:
    diff = problem.difference
    if not isinstance(diff.expected, torch.Tensor):
        want, got = (
            f"{len(x)} {'entry' if len(x) == 1 else 'entries'}: {written(x)}" for x in (diff.expected, diff.actual)
        )
        return f"expected {want}{_at(diff.path)}\nyours    {got}"
    shape = tuple(diff.expected.shape)
    axes = () if any(diff.path) else key.axes  # they are the first output's
    lines = f"expected shape {shape}{_axes_words(shape, axes)}\nyours    shape {tuple(diff.actual.shape)}"
    if sorted(diff.actual.shape) == sorted(shape):
        lines += "\nthe sizes are right, but in another order: are two axes swapped?"
    return lines if not diff.path else f"{_place(problem)}:\n{lines}"


def _axes_words(shape, axes) -> str:
    if len(axes) != 2 or len(shape) < 2:
        return ""
    rows, columns = shape[-2:]
    return f": one row for {_count(rows, axes[0])}, one column for {_count(columns, axes[1])}"


def _count(number: int, noun: str) -> str:
    """'each of the 5 queries'; a noun of several words stays as it is: 'each score j (5)'."""
    if number == 1:
        return f"the one {noun}"
    if " " in noun:
        return f"each {noun} ({number})"
    return f"each of the {number} {noun[:-1] + 'ies' if noun.endswith('ry') else noun + 's'}"


def _nan(problem, key) -> str:
    diff = problem.difference
    if problem.where:
        return f"the gradient at {problem.where} is nan"
    want, got = diff.expected, diff.actual
    if not isinstance(got, torch.Tensor) or not got.dim():
        number = want.item() if isinstance(want, torch.Tensor) else want
        return f"expected {_number(number)}, yours is nan"
    bad = got.isnan()
    where = bad.nonzero()[0].tolist()
    axes = () if any(diff.path) else key.axes  # they are the first output's
    if got.dim() >= 2 and not want[tuple(where[:-1])].any():
        sentence = f"expected all zeros in {row_words(where[:-1], axes)}, got nan there"
    else:
        share = f"{int(bad.sum())} of {bad.numel()} numbers are nan"
        sentence = f"{share}; {index_words(where, axes)}: expected {_number(want[tuple(where)].item())}, got nan"
    sentence = f"{_place(problem)}: {sentence}" if diff.path else sentence
    return "\n".join(filter(None, (sentence, _blind_rows(problem.case, bad))))


def _input_changed(problem, key) -> str:
    changed = problem.seen.changed[0]
    position = str(changed).removesuffix(WANTS_GRAD)
    known = not position.isdigit() or int(position) < len(key.arguments)
    name = f"its input {argument_name(key, int(position) if position.isdigit() else position)}" if known else "an input"
    if str(changed).endswith(WANTS_GRAD):
        return f"your code turned requires_grad on for {name}; the caller still needs it as it was"
    return f"your code changed {name} in place; the caller still needs it"


def _dtype_lost(problem, key) -> str:
    diff = problem.difference
    if diff.expected.dtype == diff.actual.dtype:
        return "your float64 result is only as precise as float32: somewhere on the way it is rounded"
    want, got = (str(x.dtype).removeprefix("torch.") for x in (diff.expected, diff.actual))
    name = _property(problem)
    return f"{name + ': ' if name else ''}expected dtype {want}{'' if name else _at(diff.path)}, yours is {got}"


def _detached(problem, key) -> str:
    where = f" {problem.where}" if problem.where else " your inputs"
    return f"no gradient reaches{where}: somewhere the result is cut off from the input (detach, item, numpy, no_grad?)"


def _too_slow(problem, key) -> str:
    limit = f"{key.facts.time_limit:g} {'second' if key.facts.time_limit == 1 else 'seconds'}"
    message = problem.seen.error.message if problem.seen.error else ""
    if message == NOT_TRIED:
        return f"not tried, because another call had no answer after {limit}"
    if message.endswith(IN_ALL):
        return f"{message}: all calls of a check share this time"
    return f"no answer after {limit}; is there an endless loop?"


def _no_error(problem, key) -> str:
    returned = "None" if problem.seen.output is None else f"a value: {written(problem.seen.output)}"
    did = "made the module" if _builds(problem.case) else f"returned {returned}"
    return f"expected {_a(problem.case.raises.error)}, but your code {did}"


def _no_name(problem, key) -> str:
    message = problem.seen.error.message.splitlines()[0] if problem.seen.error.message else "(no message)"
    wanted = problem.case.raises
    only = "only " if wanted.omits and wanted.omits in problem.seen.error.message else ""
    return f"the {wanted.error} should name {only}{wanted.names!r}\nyours says: {message[:120]}"


def _gradient(problem, key) -> str:
    line = f"the output is right, but the gradient at {problem.where} is not"
    diff = problem.difference
    if diff is None or not isinstance(diff.expected, torch.Tensor) or diff.kind != "value":
        return line
    return f"{line}\n{_largest(diff.expected, diff.actual, None, ())}"


def _value(problem, key) -> str:
    diff, name = problem.difference, _property(problem)
    want, got = diff.expected, diff.actual
    if isinstance(want, torch.Tensor):
        return _wrong_tensor(problem, key)
    if isinstance(want, dict) and isinstance(got, dict):
        return _wrong_claim(want, got, bool(problem.case.view)) or _keys_differ(want, got) + _at(diff.path)
    if name and isinstance(want, bool):
        return _broken(name) if want else f"this should not be so, but it is: {name}"
    return _both(name, want, got) if name and isinstance(want, str) else _two_lines(want, got, _at(diff.path))


def _wrong_tensor(problem, key) -> str:
    """What the numbers tell, then where they differ most, then which other values of the answer are right."""
    diff, case = problem.difference, problem.case
    want, got = diff.expected, diff.actual
    axes = () if diff.path else key.axes  # they are the first output's
    seen, _ = _by_values(want, got, axes, case.tolerance)
    if seen.startswith("off by a constant factor"):
        seen += _of_a_size(case, float((want * got).sum() / (want * want).sum()))
    first_by_mask = seen.startswith("right for the first item") and _first_sees_all(case)
    blind = _blind_rows(case, wrong_entries(want, got, case.tolerance))
    lines = [_masked_entries(case, want, got) or blind, "" if first_by_mask or blind else seen]
    if not seen.startswith(("each row", "right, except")):
        lines.append(_largest(want, got, case.tolerance, axes))
    told = "\n".join(filter(None, lines)) + _right_values(problem)
    return f"{_place(problem)}: {told}" if diff.path else told


def _wrong_claim(want: dict, got: dict, by_view: bool) -> str:
    """Which of the properties that were looked at does not hold, with what else was seen; else empty."""
    if broken := [claim for claim, holds in want.items() if holds is True and got.get(claim) is False]:
        more = [f"in your answer, {claim} {value}" for claim, value in got.items() if isinstance(value, str)]
        return "\n".join([_broken(broken[0]), *more])
    told = [claim for claim, value in want.items() if isinstance(value, str) and got.get(claim, value) != value]
    return _both(told[0], want[told[0]], got[told[0]]) if told and by_view else ""  # a view has looked no further


def _broken(claim: str) -> str:
    return f"this should be so, but it isn't yet: {claim}"


def _both(name: str, want, got) -> str:
    return f"{name}:\nexpected {want}\nyours    {got}"


def _of_a_size(case: Case, factor: float) -> str:
    """Of which axis' length a factor is the square root, the length itself, or one over it; empty if of none."""
    for size in sorted({size for tensor in _tensors(case) for size in tensor.shape if size > 1}):
        powers = {
            size: "",
            1 / size: f", which is 1/{size}",
            size**0.5: f", which is √{size}",
            size**-0.5: f", which is 1/√{size}",
        }
        for number, named in powers.items():
            if math.isclose(factor, number, rel_tol=1e-4):
                return f"{named}, and {size} is a size of your inputs"
    return ""


def _masked_entries(case: Case, want: torch.Tensor, got: torch.Tensor) -> str:
    """What to say where a boolean mask of the case should leave one value, 0 or -inf, and does not; else empty."""
    for mask in _masks(case) if got.is_floating_point() else []:
        hidden = ~mask.expand_as(want) if _broadcasts(mask, want) else torch.zeros_like(want, dtype=torch.bool)
        for value in (0.0, -math.inf):
            if hidden.any() and (want[hidden] == value).all() and (got[hidden] != value).any():
                return f"where the mask is False, the result should be {value:g}, and yours is not"
    return ""


def _blind_rows(case: Case, wrong: torch.Tensor) -> str:
    """What to say where all wrong rows are those that a boolean mask of the case leaves nothing to; else empty."""
    if wrong.dim() < 2 or not wrong.any():
        return ""
    rows = wrong.any(-1)
    for mask in _masks(case):
        blind = ~mask.any(-1) if mask.dim() else mask
        blind = blind.any(-2) if blind.dim() == rows.dim() + 1 else blind  # the axis of the heads
        if _broadcasts(blind, rows) and not (rows & ~blind).any():
            return "only fully masked rows are wrong, those for which the mask is False everywhere"
    return ""


def _broadcasts(mask: torch.Tensor, like: torch.Tensor) -> bool:
    """Whether a mask's axes are as long as another tensor's last ones, or 1."""
    sizes = zip(mask.shape[::-1], like.shape[::-1], strict=False)
    return mask.dim() <= like.dim() and all(size in (1, other) for size, other in sizes)


def _keys_differ(want: dict, got: dict) -> str:
    """Which keys a dictionary lacks and which it should not have."""
    missing = [written(key) for key in want if key not in got]
    extra = [written(key) for key in got if key not in want]
    parts = [
        f"{verb} {', '.join(keys[:4])}{' …' if len(keys) > 4 else ''}"
        for verb, keys in (("your dictionary lacks", missing), ("it should not have", extra))
        if keys
    ]
    return "; ".join(parts).replace("it should", "your dictionary should", 0 if missing else 1)


def picture(key, problem: Problem) -> Picture | None:
    """The matrix that came out wrong, of the item that the text names; None where there is no small one."""
    diff = problem.difference
    if problem.kind not in ("value", "nan") or diff is None or problem.where:
        return None
    want, got = diff.expected, diff.actual
    if not isinstance(want, torch.Tensor) or want.dim() < 2:
        return None
    assert isinstance(got, torch.Tensor)  # numbers are compared of two tensors of one shape only
    front = _named_index(problem, want, got)[: want.dim() - 2]
    want, got = want[tuple(front)], got[tuple(front)]
    if want.numel() not in range(2, 401) or not wrong_entries(want, got, problem.case.tolerance).any():
        return None
    worst = tuple(worst_index(want, got, problem.case.tolerance))
    return Picture(want, got, key.axes if len(key.axes) == 2 else (), item_words(front), worst)


def _named_index(problem: Problem, want: torch.Tensor, got: torch.Tensor) -> list[int]:
    """Where in a wrong tensor the text of the problem points to, if only at a row."""
    if problem.kind == "nan":
        return got.isnan().nonzero()[0].tolist()
    _, index = _by_values(want, got, (), problem.case.tolerance)
    return worst_index(want, got, problem.case.tolerance) if index is None else index


def item_words(front: list[int]) -> str:
    """ "item 2", "item [0, 1]"; empty for a matrix alone."""
    if not front:
        return ""
    first, *others = front
    return f"item {front if others else first}"


def row_words(index: list[int], axes: tuple[str, ...] = ()) -> str:
    """Where a row stands: "item [0, 1], row 2 (query 2)"; counted from 0, as in Python."""
    *front, row = index
    return ", ".join(filter(None, (item_words(front), _numbered("row", row, axes[-2:-1]))))


def index_words(index: list[int], axes: tuple[str, ...] = ()) -> str:
    """Where an entry stands: "item [0, 1], row 2 (query 2), column 5 (key 5)", or "entry 3 (token 3)" of a vector."""
    *row, column = index
    if not row:
        return _numbered("entry", column, axes[-1:])
    return f"{row_words(row, axes)}, {_numbered('column', column, axes[1:][-1:])}"


def _numbered(title: str, number: int, nouns: tuple[str, ...]) -> str:
    """ "row 2 (query 2)"; a noun of several words, or the title again, is left out."""
    shown = [noun for noun in nouns if noun != title and " " not in noun]
    return f"{title} {number}" + "".join(f" ({noun} {number})" for noun in shown)


def worst_index(want: torch.Tensor, got: torch.Tensor, tolerance: float | None = None) -> list[int]:
    """The index of the largest difference; where something is not finite, that comes first. Of what is no float, where
    a difference has no size, the first one."""
    wrong = wrong_entries(want, got, tolerance)
    if not want.is_floating_point():
        return wrong.nonzero()[0].tolist()
    gap = (got.double() - want.double()).abs()
    gap = torch.where(gap.isfinite(), gap, torch.inf).masked_fill(~wrong, -1.0)
    return (gap == gap.max()).nonzero()[0].tolist()  # torch.unravel_index imports sympy, which takes a second


def _largest(want, got, tolerance, axes) -> str:
    """How many numbers differ, and both of them where they differ most."""
    if not want.dim():
        return _two_lines(want.item(), got.item())
    wrong = wrong_entries(want, got, tolerance)
    index = worst_index(want, got, tolerance)
    a, b = two_numbers(want[tuple(index)].item(), got[tuple(index)].item())
    most = "differ, most" if want.is_floating_point() else "differ, first"
    differ = "differs," if int(wrong.sum()) == 1 else most
    count = f"{int(wrong.sum())} of {wrong.numel()} numbers {differ}"
    close = _closeness(want[tuple(index)].item(), got[tuple(index)].item())
    return f"{count} at {index_words(index, axes)}: expected {a}, yours {b}{close and f' ({close})'}"


def _two_lines(want, got, at: str = "") -> str:
    a, b = two_numbers(want, got) if isinstance(want, float) else (written(want), written(got))
    lines = [_multiple(want, got), f"expected {a}{at}", f"yours    {b}", _closeness(want, got)]
    return "\n".join(filter(None, lines))


def _multiple(want, got) -> str:
    """Which whole multiple or part of a float another one is, as a sum is of a mean; else empty."""
    if not (isinstance(want, float) and isinstance(got, float)) or not want or not math.isfinite(got / want):
        return ""
    near, ratio = functools.partial(math.isclose, rel_tol=1e-5), got / want
    not_one = want > 0 and round(want, 3) != 1
    tried = [
        (near(ratio, 1 / math.log(2)), "your logarithms are to base 2, and natural ones are asked for"),
        (want < 100 and near(got, math.exp(want)), "your result is e to the power of what is asked for"),
        (near(ratio, -1), "the right number with the opposite sign"),
        (not_one and near(ratio, want), "your result is the square of what is asked for"),
        (not_one and near(ratio * got, 1), "your result is the square root of what is asked for"),
    ]
    for number, words in ((ratio, "{} times"), (1 / ratio if ratio else 0.0, "1/{} of")):
        whole = round(number)
        multiple = whole not in (0, 1) and near(number, whole)
        tried.append((multiple, f"your result is {words.format(whole)} what it should be"))
    return next((sentence for holds, sentence in tried if holds), "")


def _closeness(want, got) -> str:
    """What a small difference of two floats amounts to, as their digits may read as equality; else empty."""
    if not (isinstance(want, float) and isinstance(got, float) and math.isclose(got, want, rel_tol=CLOSE)):
        return ""
    share = abs((got - want) / want)
    return f"close: off by {f'{100 * share:.1g}' if share >= 1e-6 else 'less than 0.0001'}%"


def two_numbers(want, got) -> tuple[str, str]:
    """Both numbers with as many digits as it takes to tell them apart, at least four."""
    for digits in range(4, 18):
        a, b = _number(want, digits), _number(got, digits)
        if a != b:
            return a, b
    return repr(want), repr(got)


def _number(value, digits: int = 4) -> str:
    return f"{value + 0.0:.{digits}g}" if isinstance(value, float) else str(value)


def _by_values(
    want: torch.Tensor, got: torch.Tensor, axes=(), tolerance: float | None = None
) -> tuple[str, list[int] | None]:
    """A diagnosis from the numbers alone, or the empty string, and the index of the row that it names, if it does."""
    tried = _diagnoses(want, got, wrong_entries(want, got, tolerance), axes) if want.numel() > 1 else ()
    return next((diagnosis for diagnosis in tried if diagnosis[0]), ("", None))


def _diagnoses(want, got, wrong, axes) -> Iterator[tuple[str, list[int] | None]]:
    if want.dtype == torch.bool:
        yield _booleans(want, got), None
    elif not want.is_floating_point():
        yield _whole_numbers(want, got), None
    elif not (want.isfinite().all() and got.isfinite().all()):
        yield _blanks(want, got, wrong), None
    else:
        noise = 1e-6 * float(want.abs().max()) if want.dtype == torch.float32 else 1e-12
        yield from _of_finite_numbers(want.double(), got.double(), wrong, noise, axes)


def _booleans(want: torch.Tensor, got: torch.Tensor) -> str:
    """How a mask differs from the one that is expected."""
    if got.dtype != torch.bool:
        return f"expected dtype bool, yours is {str(got.dtype).removeprefix('torch.')}"
    too_many, missing = int((got & ~want).sum()), int((want & ~got).sum())
    if too_many and missing:
        if (want != got).all():
            return "inverted: yours is True wherever it should be False, and False wherever it should be True"
        turned = want.dim() >= 2 and want.shape[-1] == want.shape[-2] and torch.equal(got, want.mT)
        return TRANSPOSED if turned else ""
    number, is_, other = (too_many, "True", "False") if too_many else (missing, "False", "True")
    entries = "entry is" if number == 1 else "entries are"
    return f"{number} {entries} {is_} and should be {other}; no entry is wrong the other way round"


def _whole_numbers(want: torch.Tensor, got: torch.Tensor) -> str:
    want, got = want.double(), got.double()  # an answer may hold numbers of another dtype, with fractions too
    gap = got - want
    if (gap == (first := gap.flatten()[0].item())).all():
        return f"every number is {abs(first):g} too {'large' if first > 0 else 'small'}"
    return _in_another_order(want, got) or ("the right numbers in another order" if _reordered(want, got) else "")


def _in_another_order(want: torch.Tensor, got: torch.Tensor) -> str:
    titles = (title for title, axis in _axes_of(want.dim()) if _permuted(want, got, axis))
    return next((f"the right {title}s in another order" for title in titles), "")


def _of_finite_numbers(want, got, wrong, noise: float, axes) -> Iterator[tuple[str, list[int] | None]]:
    """What the numbers tell, if they do, from the most telling to the least. noise: what rounding may add to one."""
    yield _shifted(got - want, noise), None
    yield _rounding(want, got), None
    if torch.allclose(got, want, 1e-4, 1e-6):
        yield _close(want, got), None
    factor = (want * got).sum() / (want * want).sum().clamp_min(1e-30)
    if factor.abs() > 1e-6 and torch.allclose(got, factor * want, 1e-4, 1e-6):
        if torch.allclose(got, -want, 1e-4, 1e-6):
            yield "the right numbers with the opposite sign", None
        times = two_numbers(1.0, factor.item())[1]
        yield f"off by a constant factor: every number is {times} times what it should be", None
    if want.dim() >= 2 and want.shape[-1] == want.shape[-2] and torch.allclose(got, want.mT, 1e-4, 1e-6):
        yield TRANSPOSED, None
    if (want >= 0).all() and torch.allclose(got, want.square(), 1e-4, 1e-9):
        yield "every number is the square of what it should be", None
    if (want >= 0).all() and torch.allclose(got, want.sqrt(), 1e-4, 1e-9):
        yield "every number is the square root of what it should be", None
    if want.dim() >= 2:
        yield _rows_of_zeros(want, got, axes)
    yield _sums(want, got, axes)
    if want.dim() >= 2 and len(flat := (got - want).flatten(0, -2)) > 1 and (flat - flat[0]).abs().max() <= 100 * noise:
        yield "every row is off by the same numbers: has something that is added to each row been left out?", None
    yield _in_another_order(want, got), None
    moved = want.dim() >= 2 and torch.allclose(got.flatten().sort()[0], want.flatten().sort()[0], 1e-4, 1e-6)
    if moved:
        yield "the right numbers, but at other positions: is there a view or reshape where you need transpose?", None
    if _reordered(want, got):
        yield "the right numbers in another order", None
    items = wrong.flatten(1).any(1) if want.dim() >= 3 else wrong[:0]
    if len(items) > 1 and not items[0] and items[1:].all() and wrong[1:].double().mean() > SCATTERED:
        yield "right for the first item of the batch only", None
    yield _blanks(want, got, wrong), None
    yield _lines_that_differ(wrong, axes), None


def _blanks(want: torch.Tensor, got: torch.Tensor, wrong: torch.Tensor) -> str:
    """Where all is right but numbers that should be 0 or -inf, or are and should not be."""
    count = f"{int(wrong.sum())} {'number' if int(wrong.sum()) == 1 else 'numbers'}"
    for blank, (numbers, should) in itertools.product((0.0, -math.inf), ((want, "should"), (got, "should not"))):
        if (numbers[wrong] == blank).all() and (want[~wrong] != blank).any():
            return f"right, except for {count} that {should} be {blank:g}"
    return ""


def _shifted(gap: torch.Tensor, noise: float) -> str:
    shift = gap.mean().item()
    if abs(shift) > 20 * noise and (gap - shift).abs().max() <= 0.05 * abs(shift) + noise:
        return f"every number is about {abs(shift):.2g} too {'large' if shift > 0 else 'small'}"
    return ""


def _rows_of_zeros(want: torch.Tensor, got: torch.Tensor, axes) -> tuple[str, list[int] | None]:
    """Where all is right but rows that should be all zeros."""
    blank = (want == 0).all(-1)
    wrong_rows = ~torch.isclose(got, want, 1e-4, 1e-6).all(-1)
    if not wrong_rows.any() or (wrong_rows & ~blank).any():
        return "", None
    index = wrong_rows.nonzero()[0].tolist()
    return f"right, except that {row_words(index, axes)} should be all zeros", index


def _sums(want: torch.Tensor, got: torch.Tensor, axes) -> tuple[str, list[int] | None]:
    """Where rows should sum to 1 and do not."""
    total = got.sum(-1)
    ones = torch.ones_like(total)
    if not torch.allclose(want.sum(-1), ones, 1e-4, 1e-4) or (total - 1).abs().max() <= 1e-3:
        return "", None
    if want.dim() > 1 and torch.allclose(columns := got.sum(-2), torch.ones_like(columns), 1e-4, 1e-4):
        return "each row should sum to 1; in your answer each column does", [*worst_index(ones, total)]
    index = worst_index(ones, total) if want.dim() > 1 else []
    number = two_numbers(1.0, total[tuple(index)].item())[1]
    row = f"{row_words(index, axes)} sums" if index else "yours sums"
    return f"each row should sum to 1; {row} to {number}", index or None


def _tensors(case: Case) -> list[torch.Tensor]:
    """The tensors among a case's arguments."""
    return [leaf for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, torch.Tensor)]


def _masks(case: Case) -> list[torch.Tensor]:
    return [tensor for tensor in _tensors(case) if tensor.dtype == torch.bool]


def _first_sees_all(case: Case) -> bool:
    """Whether a mask of the case hides something, but nothing from the first item of its batch."""
    return any(bool(mask[:1].all()) and not mask.all() for mask in _masks(case) if mask.dim() > 2)


def _rounding(want: torch.Tensor, got: torch.Tensor) -> str:
    """Which rounding every number of `got` shows and `want` does not; the empty string where there is none."""
    if want.numel() < 4:
        return ""
    for digits in range(1, 7):
        grid = 10.0**digits
        gap, expected_gap = ((x * grid - (x * grid).round()).abs().max() for x in (got, want))
        if gap < 1e-2 < expected_gap and (got - want).abs().max() <= 0.51 / grid:
            return f"rounded to {digits} decimal {'place' if digits == 1 else 'places'}"
    for dtype, share in ((torch.float16, 1e-3), (torch.bfloat16, 8e-3)):
        rounded = torch.equal(got.to(dtype).double(), got) and not torch.equal(want.to(dtype).double(), want)
        if rounded and torch.allclose(got, want, share, 1e-7):
            return f"rounded on the way: these are {str(dtype).removeprefix('torch.')} numbers"
    return ""


def _close(want: torch.Tensor, got: torch.Tensor) -> str:
    """What small differences look like: a constant share, or only small."""
    share = ((got - want) / want)[want != 0]
    if share.numel() > 1 and (share - share.mean()).abs().max() < 0.1 * share.mean().abs():
        much = abs(share.mean().item())
        return f"every number is about {100 * much:.1g}% too {'far from' if share.mean() > 0 else 'close to'} 0"
    return "close, but not close enough"


def _reordered(want: torch.Tensor, got: torch.Tensor) -> bool:
    """Whether each row, or the one vector, holds the right numbers, all different, in another order."""
    one, other = want.double().sort(-1).values, got.double().sort(-1).values
    return bool(want.shape[-1] > 2 and (one.diff(dim=-1) > 0).all() and torch.allclose(one, other, 1e-5, 1e-7))


def _axes_of(dims: int) -> list[tuple[str, int]]:
    """What lies along the axes of a tensor that a learner can count: items, rows and columns."""
    return [("item", 0)] * (dims > 2) + [("row", -2), ("column", -1)] * (dims > 1)


def _permuted(want: torch.Tensor, got: torch.Tensor, axis: int) -> bool:
    """Whether the same slices lie along an axis, in another order."""
    one, other = (x.movedim(axis, 0).flatten(1) for x in (want, got))
    if len(one) * one.numel() > MOST_COMPARED:
        return False
    close = torch.isclose(one[:, None], other[None], 1e-4, 1e-6).all(-1)
    return bool(close.any(0).all() and close.any(1).all())


def _lines_that_differ(wrong: torch.Tensor, axes) -> str:
    """Which items, rows or columns are wrong, if these are wrong nearly everywhere and all others right."""
    for title, axis in _axes_of(wrong.dim()):
        each = wrong.movedim(axis, 0).flatten(1)
        bad, good = each.any(1).nonzero().flatten().tolist(), (~each.any(1)).nonzero().flatten().tolist()
        if bad and good and each[bad].double().mean() > MOSTLY:
            nouns = () if title == "item" else axes[axis:][:1]
            if min(len(bad), len(good)) == 1:
                which, verdict = (bad[0], "wrong") if len(bad) == 1 else (good[0], "right")
                return f"only {_numbered(title, which, nouns)} is {verdict}"
            named = f"{', '.join(map(str, bad[:-1]))} and {bad[-1]}"
            named = named if len(bad) < 9 else f"{bad[0]}, {bad[1]}, {bad[2]} …"
            return f"{title}s {named} are wrong, and the others right"
    return ""


_BY_KIND = {
    "forbidden_call": lambda problem, key: forbidden_text(problem.where, key),
    "measured": lambda problem, key: problem.where,
    "not_answered": lambda problem, key: "part of it is not answered yet",
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


def decide(key: ExerciseKey, observations: list[Observation]) -> Verdict:
    """The verdict with its message on one answer's observations, one for each of the key's cases, in their order."""
    return with_message(key, decided(key, observations))
