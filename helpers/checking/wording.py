"""Write values, calls and positions in messages as a learner would."""

import inspect
import json

import torch

from helpers.checking.codec import Odd, leaves
from helpers.checking.registry import STUBS
from helpers.checking.verdict import argument_name
from helpers.checking.vocabulary import Case, Stub

MOST_WRITTEN = 8  # the most numbers of a tensor that is written in full
MOST_TEXT = 120  # the most characters of a string, list or dictionary


def written(value) -> str:
    """A value as a learner would write it, shortened if it is too long to read (tensors to dtype and shape)."""
    if isinstance(value, torch.Tensor):
        if value.numel() > MOST_WRITTEN or not value.numel():
            return f"<{dtype_of(value)} {tuple(value.shape)}>"
        usual = value.dtype in (torch.float32, torch.int64, torch.bool)
        return f"torch.tensor({_numbers(value.tolist())}{'' if usual else f', dtype={value.dtype}'})"
    if isinstance(value, (str, bytes)):
        text = repr(value) if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False)
        return text if len(value) <= MOST_TEXT else f'{text[: MOST_TEXT - 3]}…"'
    if isinstance(value, (list, tuple, dict)):
        text = _nested(value)  # called only once, because the time would double with every level of nesting
        return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"
    if isinstance(value, Stub):
        return _stub(value)
    if isinstance(value, Odd):
        return f"{a_or_an(value.type_name)} {value.text}".rstrip()
    return repr(value)


def dtype_of(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _numbers(tree) -> str:
    if isinstance(tree, list):
        return f"[{', '.join(map(_numbers, tree))}]"
    text = short(tree)
    return text + "." if isinstance(tree, float) and text.lstrip("-").isdigit() else text


def short(value, digits: int = 4) -> str:
    return f"{value + 0.0:.{digits}g}" if isinstance(value, float) else str(value)  # -0.0 + 0.0 is 0.0


def two_numbers(want, got) -> tuple[str, str]:
    """Both numbers with as many digits as are needed to tell them apart, but at least four."""
    pairs = ((short(want, digits), short(got, digits)) for digits in range(4, 18))
    return next((pair for pair in pairs if pair[0] != pair[1]), (repr(want), repr(got)))


def fits(value: list | tuple | dict) -> bool:
    """Whether a list, tuple or dictionary is short enough to be written in full."""
    return len(_nested(value)) <= MOST_TEXT


def _nested(value: list | tuple | dict) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(k)}: {written(v)}" for k, v in value.items()) + "}"
    inner = ", ".join(map(written, value))
    return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"


def _stub(item: Stub) -> str:
    """The call that makes the stub, with the names of its parameters unless they are *args."""
    parameters = inspect.signature(STUBS[item.name]).parameters.values()
    values = [*map(written, item.args)]
    if not any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        values = [f"{parameter.name}={value}" for parameter, value in zip(parameters, values, strict=False)]
    return f"{item.name}({', '.join(values)})"


def a_or_an(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def type_words(value) -> str:
    if isinstance(value, Odd):
        return written(value)
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}" if value.dim() else "a tensor with a single number, shape ()"
    kind = a_or_an(type(value).__name__)
    if isinstance(value, (list, tuple)):
        nouns = ("entry", "entries") if isinstance(value, list) else ("value", "values")
        return f"{kind} of {counted(len(value), *nouns)}"
    kind = {int: "a Python int", float: "a Python float", str: "a string", bytes: "bytes"}.get(type(value), kind)
    shown = f"{value:.6g}" if isinstance(value, float) else written(value)
    return f"{kind}, {shown}" if isinstance(value, (bool, int, float, str, bytes)) else kind


def counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def some_of(words: list[str], most: int) -> str:
    return f"{', '.join(words[:most])}{' …' if len(words) > most else ''}"


def at(path: tuple) -> str:
    """ " at [0]["name"]" for a path in lists, tuples and dictionaries; "" for the output as a whole."""
    return "" if not path else " at " + "".join(f"[{written(item)}]" for item in path)


def call_lines(key, case: Case) -> list[str]:
    """The lines of a message about a case's call: the call, and what each stub among its arguments computes."""
    call = call_text(key, case)
    lines = [call if call.startswith("with ") else f"with {call}"]
    arguments = {argument_name(key, position): value for position, value in enumerate(case.call.args)}
    names = {id(value): name for name, value in (arguments | case.call.kwargs).items() if name.isidentifier()}
    for item in leaves((case.args, case.kwargs)):
        doc = inspect.getdoc(STUBS[item.name]) if isinstance(item, Stub) and not case.note else ""
        if doc:
            summary = doc.splitlines()[0].rstrip(".")
            name = names.get(id(item), item.name)
            stub_args = f" {_stub(item).removeprefix(item.name)}" if name != item.name and item.args else ""
            subject = "" if summary.startswith(f"{name}(") else f"{name} is "  # the summary may begin with the name
            lines.append(f"where {subject}{summary[0].lower()}{summary[1:]}{stub_args}")
    return list(dict.fromkeys(lines))


def call_text(key, case: Case) -> str:
    """The call as a learner would write it, with large tensors by dtype and shape; or the case's note."""
    if case.note:
        return case.note
    call, only_builds = case.call, builds(case)
    init = call.args[0] if only_builds else call.init
    callee = key.name if init is None else f"{key.name}({', '.join(map(written, init))})"
    arguments = [_argument(argument_name(key, position), value) for position, value in enumerate(call.args)]
    arguments += [f"{name}={_argument(name, value)}" for name, value in call.kwargs.items()]
    return callee if only_builds else f"{callee}({', '.join(arguments)})"


def builds(case: Case) -> bool:
    """Whether a case's scenario builds a module and does not call it."""
    call = case.call
    return bool(call.init is None and case.via and call.args and isinstance(call.args[0], tuple))


def _argument(name: str, value) -> str:
    return name if isinstance(value, Stub) and name.isidentifier() else written(value)


def item_at(front: list[int]) -> str:
    """ "item 2", "item [0, 1]"; "" for a matrix without a batch."""
    if not front:
        return ""
    first, *others = front
    return f"item {front if others else first}"


def row_at(index: list[int], axes: tuple[str, ...] = ()) -> str:
    """The position of a row, such as "item [0, 1], row 2 (query 2)", counted from 0 as in Python."""
    *front, row = index
    return ", ".join(filter(None, (item_at(front), numbered("row", row, axes[-2:-1]))))


def entry_at(index: list[int], axes: tuple[str, ...] = ()) -> str:
    """The position of an entry: "item 1, row 2 (query 2), column 5 (key 5)", or "entry 3 (token 3)" in a vector."""
    *row, column = index
    if not row:
        return numbered("entry", column, axes[-1:])
    return f"{row_at(row, axes)}, {numbered('column', column, axes[1:][-1:])}"


def numbered(title: str, number: int, nouns: tuple[str, ...]) -> str:
    """ "row 2 (query 2)". Nouns of several words and nouns equal to the title are left out."""
    shown = [noun for noun in nouns if noun != title and " " not in noun]
    return f"{title} {number}" + "".join(f" ({noun} {number})" for noun in shown)
