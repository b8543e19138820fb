"""Put a verdict's problems into words: plain sentences about what was observed, never the solution."""

import dataclasses
import itertools
from collections import Counter

import torch

from helpers.checking.codec import Odd, leaves
from helpers.checking.compare import difference
from helpers.checking.diagnosis import largest, of_nan, of_tensor, picture, two_lines
from helpers.checking.key import ExerciseKey
from helpers.checking.observe import IN_ALL, NOT_TRIED, WANTS_GRAD, Observation
from helpers.checking.verdict import RESERVED, WHOLE_ANSWER, Problem, Verdict, argument_name, assess, most_important
from helpers.checking.wording import (
    a_or_an,
    at,
    builds,
    call_lines,
    counted,
    dtype_of,
    fits,
    some_of,
    type_words,
    written,
)

WITH_DETAIL = ("wrong_shape", "raises", "measured")  # described in detail even if a known mistake explains them


def with_message(key, verdict: Verdict) -> Verdict:
    """The verdict with its problems put into words: a detail for each failed part, the message and the picture."""
    if not verdict.problems:
        return verdict
    main = most_important(verdict.problems)
    known = next((mistake for mistake in key.mistakes if mistake.name == verdict.mistake), None)
    label = "" if verdict.mistake in RESERVED else (verdict.mistake or "").replace("_", " ")
    label = label if known is None else known.label.rstrip(".")
    lines = [] if known is None else [f"This looks like: {label}.", known.hint]
    if known is None or main.kind in WITH_DETAIL:
        lines.append(text(main, key))
    parts, of_cases = [], [problem for problem in verdict.problems if problem.kind not in WHOLE_ANSWER]
    for part in verdict.parts:
        found = [problem for problem in of_cases if problem.part == part.name]
        parts.append(dataclasses.replace(part, detail=text(most_important(found), key)) if found else part)
    return dataclasses.replace(
        verdict, label=label, message="\n".join(lines), parts=parts, picture=picture(key, main), problems=[]
    )


def text(problem: Problem, key) -> str:
    """The problem in words, one line for each fact: expected, yours, the call."""
    lines = (_other_form(problem) or _by_kind(problem, key)).split("\n")
    if problem.kind == "value" and problem.seen.drew and not problem.expected.drew:
        lines.append("your code draws random numbers, but nothing here is random (dropout? a new layer in each call?)")
    if problem.kind not in WHOLE_ANSWER:
        lines += call_lines(key, problem.case)
    return "\n".join(lines)


def _other_form(problem) -> str:
    """A sentence for right values in the wrong form, such as another order or only some of them; "" otherwise."""
    expected, actual = problem.expected.output, problem.seen.output
    if isinstance(expected, dict) and isinstance(actual, dict):
        return _exchanged(expected, actual, problem.difference.path)
    if isinstance(expected, list) and isinstance(actual, list):
        return _other_entries(expected, actual)
    return _other_values(expected, actual) if isinstance(expected, (tuple, list)) else ""


def _other_values(expected: tuple | list, actual) -> str:
    """A sentence if the answer has the two or three values in another order or is only one of them; "" otherwise."""
    count = len(expected)
    if count in (2, 3) and isinstance(actual, (tuple, list)) and len(actual) == count:
        _, *orders = itertools.permutations(range(count))  # the first permutation is the right order
        first = [order[0] for order in orders if difference(list(expected), [actual[i] for i in order]) is None]
        return f"the right values, but in another order: [{first[0]}] of your answer should come first" if first else ""
    if count in (2, 3) and isinstance(actual, torch.Tensor):
        same = [i for i, part in enumerate(expected) if difference(part, actual) is None]
        return f"your answer is only [{same[0]}] of the {count} values that are asked for" if same else ""
    return ""


def _exchanged(expected: dict, actual: dict, path: tuple) -> str:
    """A sentence if the wrong tensor at `path` is the one expected under another key of the dict; "" otherwise."""
    for name, other in itertools.product(path[:1], expected):
        is_candidate = other != name and isinstance(expected[name], torch.Tensor)
        if is_candidate and difference(expected[other], actual[name]) is None:
            return f"your [{written(name)}] holds what belongs in [{written(other)}]"
    return ""


def _other_entries(expected: list, actual: list) -> str:
    """How two lists differ if only their order differs, or if a long one lacks or adds entries; "" otherwise."""
    if any(isinstance(leaf, torch.Tensor) for leaf in leaves([expected, actual])):
        return ""  # `written` gives only the shape of a large tensor, so equal texts would not mean equal entries
    want, got = [*map(written, expected)], [*map(written, actual)]
    missing, extra = Counter(want) - Counter(got), Counter(got) - Counter(want)
    if want != got and not missing and not extra:
        first = next(i for i, (a, b) in enumerate(zip(want, got, strict=True)) if a != b)
        return f"the right entries in another order; at [{first}]: expected {want[first]}, yours {got[first]}"
    if bool(missing) == bool(extra) or fits(expected):
        return ""
    verb = "lacks" if missing else "should not have"
    entries = some_of([*(missing or extra).elements()], 3)
    return f"{len(want)} entries are expected, yours has {len(got)} and {verb} {entries}"


def forbidden_text(name: str, key) -> str:
    if name.startswith("helpers.blocks"):
        block = name.rpartition(".")[2]
        which = "this exercise; build your own" if block == key.name else f"another exercise; use your own {block}"
        return f"{name} is the course's finished answer to {which}."
    if name.startswith("helpers."):
        return f"{name} is the course's own code, which an answer cannot call; write your own."
    return f"{name}{',' if ', called inside ' in name else ''} is the answer to this exercise; {key.instead}"


def _by_kind(problem, key) -> str:
    seen, diff, raises = problem.seen, problem.difference, problem.case.raises
    match problem.kind:
        case "forbidden_call":
            return forbidden_text(problem.where, key)
        case "measured":
            return problem.where
        case "not_answered":
            return "part of it is not answered yet"
        case "raises":
            return _raises(problem, key)
        case "wrong_type" if diff.actual is None:
            return f"your answer returned None{at(diff.path)}; is a return missing?"
        case "wrong_type" if isinstance(diff.actual, Odd) and diff.actual.type_name == "unusable":
            return diff.actual.text or "your output could not be read"
        case "wrong_type":
            return f"expected {type_words(diff.expected)}{at(diff.path)}, got {type_words(diff.actual)}"
        case "wrong_shape":
            return _wrong_shape(problem, key)
        case "nan" if problem.where:
            return f"the gradient at {problem.where} is nan"
        case "nan":
            found = of_nan(problem.case, diff.expected, diff.actual, _axes(diff.path, key))
            has_axes = isinstance(diff.actual, torch.Tensor) and diff.actual.dim()
            return f"{_output_name(problem)}: {found}" if diff.path and has_axes else found
        case "input_changed":
            return _input_changed(str(seen.changed[0]), key)
        case "dtype_lost" if diff.expected.dtype == diff.actual.dtype:
            return "your float64 result is only as precise as float32: somewhere on the way it is rounded"
        case "dtype_lost":
            want, got, name = dtype_of(diff.expected), dtype_of(diff.actual), _property(problem)
            return f"{name + ': ' if name else ''}expected dtype {want}{'' if name else at(diff.path)}, yours is {got}"
        case "detached":
            cut_off = "somewhere the result is cut off from the input (detach, item, numpy, no_grad?)"
            return f"no gradient reaches {problem.where or 'your inputs'}: {cut_off}"
        case "too_slow":
            return _too_slow(seen.error.message, key.facts.time_limit)
        case "no_error":
            returned = "None" if seen.output is None else f"a value: {written(seen.output)}"
            did = "made the module" if builds(problem.case) else f"returned {returned}"
            return f"expected {a_or_an(raises.error)}, but your code {did}"
        case "no_name":
            only = "only " if raises.omits and raises.omits in seen.error.message else ""
            first = _first_line(seen.error)
            return f"the {raises.error} should name {only}{raises.names!r}\nyours says: {first[:120]}"
        case "gradient":
            worst = largest(diff.expected, diff.actual, None, ())
            return f"the output is right, but the gradient at {problem.where} is not\n{worst}"
        case _:
            return _value(problem, key)


def _axes(path: tuple, key) -> tuple[str, ...]:
    """What the axes of the output at `path` mean. The key describes the first output only."""
    return () if any(path) else key.axes


def _first_line(error) -> str:
    return error.message.splitlines()[0] if error.message else "(no message)"


def _raises(problem, key) -> str:
    in_gradient = problem.where == "gradient"
    error = problem.seen.gradient_error if in_gradient else problem.seen.error
    if error.type == "WrongParts":
        return error.message
    opening = "while computing the gradient, " if in_gradient else ""
    if problem.case.raises is not None:
        opening = f"expected {a_or_an(problem.case.raises.error)}, but "
    message = f"{opening}your code raised {error.type}: {_first_line(error)}"
    if len(message) > 200:
        message = message[:199] + "…"
    if error.line:
        message += f"\nin {_helper(error, key)}line {error.lineno}: {error.line[:90]}"
    return message


def _helper(error, key) -> str:
    """ "your helper weights_of, " if the error's line is in a function other than the answer itself; "" otherwise."""
    name = error.function.split("<locals>.")[-1]
    is_answer = name == key.name or name.startswith(f"{key.name}.") or "<" in name
    return "" if is_answer or not name else f"your helper {name}, "


def _property(problem) -> str:
    """The name of the property that failed, if a view or scenario returned named properties; "" otherwise."""
    path = problem.difference.path
    has_name = (problem.case.view or problem.case.via) and path and isinstance(path[-1], str)
    return path[-1] if has_name else ""


def _output_name(problem) -> str:
    return _property(problem) or f"output{at(problem.difference.path)}"


def _wrong_shape(problem, key) -> str:
    diff = problem.difference
    if not isinstance(diff.expected, torch.Tensor):
        want, got = (f"{counted(len(x), 'entry', 'entries')}: {written(x)}" for x in (diff.expected, diff.actual))
        return f"expected {want}{at(diff.path)}\nyours    {got}"
    shape, axes, meaning = tuple(diff.expected.shape), _axes(diff.path, key), ""
    if len(axes) == 2 and len(shape) >= 2:
        rows, columns = (_each(size, noun) for size, noun in zip(shape[-2:], axes, strict=True))
        meaning = f": one row for {rows}, one column for {columns}"
    lines = f"expected shape {shape}{meaning}\nyours    shape {tuple(diff.actual.shape)}"
    if sorted(diff.actual.shape) == sorted(shape):
        lines += "\nthe sizes are right, but in another order: are two axes swapped?"
    return lines if not diff.path else f"{_output_name(problem)}:\n{lines}"


def _each(size: int, noun: str) -> str:
    """'each of the 5 queries'. A noun of several words has no plural here: 'each score j (5)'."""
    if size == 1:
        return f"the one {noun}"
    if " " in noun:
        return f"each {noun} ({size})"
    return f"each of the {size} {noun[:-1] + 'ies' if noun.endswith('ry') else noun + 's'}"


def _input_changed(changed: str, key) -> str:
    position = changed.removesuffix(WANTS_GRAD)
    known = not position.isdigit() or int(position) < len(key.arguments)
    name = f"its input {argument_name(key, int(position) if position.isdigit() else position)}" if known else "an input"
    if changed.endswith(WANTS_GRAD):
        return f"your code turned requires_grad on for {name}; the caller still needs it as it was"
    return f"your code changed {name} in place; the caller still needs it"


def _too_slow(message: str, seconds: float) -> str:
    limit = f"{seconds:g} {'second' if seconds == 1 else 'seconds'}"
    if message == NOT_TRIED:
        return f"not tried, because another call had no answer after {limit}"
    if message.endswith(IN_ALL):
        return f"{message}: all calls of a check share this time"
    return f"no answer after {limit}; is there an endless loop?"


def _value(problem, key) -> str:
    diff, name = problem.difference, _property(problem)
    want, got = diff.expected, diff.actual
    if isinstance(want, torch.Tensor):
        found = of_tensor(problem.case, want, got, () if diff.path else key.axes)
        expected, actual = problem.expected.output, problem.seen.output
        pairs = zip(expected, actual, strict=True) if isinstance(expected, tuple) else ()
        if right := [f"[{i}]" for i, pair in enumerate(pairs) if difference(*pair) is None]:
            found += f"\noutput at {' and '.join(right)}: right"
        return f"{_output_name(problem)}: {found}" if diff.path else found
    if isinstance(want, dict) and isinstance(got, dict):
        return _wrong_claim(want, got, bool(problem.case.view)) or _keys_differ(want, got) + at(diff.path)
    if name and isinstance(want, bool):
        verb = "be so, but it isn't yet" if want else "not be so, but it is"
        return f"this should {verb}: {name}"
    return _two_texts(name, want, got) if name and isinstance(want, str) else two_lines(want, got, at(diff.path))


def _wrong_claim(want: dict, got: dict, by_view: bool) -> str:
    """The lines about the first property that should hold and does not, with the properties that are texts.

    If all hold, the lines about the first text that differs, but only for a view; "" otherwise.
    """
    if broken := [claim for claim, holds in want.items() if holds is True and got.get(claim) is False]:
        texts = [f"in your answer, {claim} {value}" for claim, value in got.items() if isinstance(value, str)]
        return "\n".join([f"this should be so, but it isn't yet: {broken[0]}", *texts])
    differing = [claim for claim, value in want.items() if isinstance(value, str) and got.get(claim, value) != value]
    if not differing or not by_view:
        return ""
    name = differing[0]  # a view may stop at this property, so that keys missing after it mean nothing
    return _two_texts(name, want[name], got[name])


def _two_texts(name: str, want, got) -> str:
    return f"{name}:\nexpected {want}\nyours    {got}"


def _keys_differ(want: dict, got: dict) -> str:
    missing = [written(key) for key in want if key not in got]
    extra = [written(key) for key in got if key not in want]
    verbs = (("lacks", missing), ("should not have", extra))
    return "your dictionary " + "; it ".join(f"{verb} {some_of(keys, 4)}" for verb, keys in verbs if keys)


def decide(key: ExerciseKey, observations: list[Observation]) -> Verdict:
    """The verdict on an answer, with its message, given one observation for each case of the key, in the same order."""
    return with_message(key, assess(key, observations))
