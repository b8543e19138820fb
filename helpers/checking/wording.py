"""How a message writes values, calls and positions: as a learner would."""

import inspect
import json

import torch

from helpers.checking.codec import Odd, leaves
from helpers.checking.registry import STUBS
from helpers.checking.verdict import argument_name
from helpers.checking.vocabulary import Case, Stub

MOST_WRITTEN = 8  # numbers of a tensor that is written out
MOST_TEXT = 120  # characters of a string, list or dictionary


def written(value) -> str:
    """A value as a learner would write it, where it is small enough to be read; else what it is."""
    if isinstance(value, torch.Tensor):
        if value.numel() > MOST_WRITTEN or not value.numel():
            return f"<{dtype_of(value)} {tuple(value.shape)}>"
        usual = value.dtype in (torch.float32, torch.int64, torch.bool)
        return f"torch.tensor({_numbers(value.tolist())}{'' if usual else f', dtype={value.dtype}'})"
    if isinstance(value, (str, bytes)):
        whole = repr(value) if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False)
        return whole if len(value) <= MOST_TEXT else f'{whole[: MOST_TEXT - 3]}…"'
    if isinstance(value, (list, tuple, dict)):
        whole = _nested(value)  # once: twice at each level would never end where it is nested deep
        return whole if len(whole) <= MOST_TEXT else f"{whole[: MOST_TEXT - 1]}…"
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
    return f"{value + 0.0:.{digits}g}" if isinstance(value, float) else str(value)  # of -0.0 this makes 0


def two_numbers(want, got) -> tuple[str, str]:
    """Both numbers with as many digits as it takes to tell them apart, at least four."""
    pairs = ((short(want, digits), short(got, digits)) for digits in range(4, 18))
    return next((pair for pair in pairs if pair[0] != pair[1]), (repr(want), repr(got)))


def fits(value: list | tuple | dict) -> bool:
    """Whether a list, tuple or dictionary is written in full."""
    return len(_nested(value)) <= MOST_TEXT


def _nested(value: list | tuple | dict) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(k)}: {written(v)}" for k, v in value.items()) + "}"
    inner = ", ".join(map(written, value))
    return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"


def _stub(item: Stub) -> str:
    """A function of ours as it is made, with the names of what it is made with where it has one for each."""
    names = inspect.signature(STUBS[item.name]).parameters.values()
    values = [*map(written, item.args)]
    if not any(name.kind is name.VAR_POSITIONAL for name in names):
        values = [f"{name.name}={value}" for name, value in zip(names, values, strict=False)]
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
        of = ("entry", "entries") if isinstance(value, list) else ("value", "values")
        return f"{kind} of {counted(len(value), *of)}"
    kind = {int: "a Python int", float: "a Python float", str: "a string", bytes: "bytes"}.get(type(value), kind)
    shown = f"{value:.6g}" if isinstance(value, float) else written(value)
    return f"{kind}, {shown}" if isinstance(value, (bool, int, float, str, bytes)) else kind


def counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def some_of(words: list[str], most: int) -> str:
    return f"{', '.join(words[:most])}{' …' if len(words) > most else ''}"


def at(path: tuple) -> str:
    """Where in a list, tuple or dictionary a value stands; empty for the whole."""
    return "" if not path else " at " + "".join(f"[{written(item)}]" for item in path)


def called(key, case: Case) -> list[str]:
    """The call that failed, and what the functions among its arguments do."""
    call = call_text(key, case)
    lines = [call if call.startswith("with ") else f"with {call}"]
    arguments = {argument_name(key, position): value for position, value in enumerate(case.call.args)}
    named = {id(value): name for name, value in (arguments | case.call.kwargs).items() if name.isidentifier()}
    for item in leaves((case.args, case.kwargs)):
        doc = inspect.getdoc(STUBS[item.name]) if isinstance(item, Stub) and not case.note else ""
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
    call, only_builds = case.call, builds(case)
    init = call.args[0] if only_builds else call.init
    made = key.name if init is None else f"{key.name}({', '.join(map(written, init))})"
    inner = [_argument(argument_name(key, position), value) for position, value in enumerate(call.args)]
    inner += [f"{name}={_argument(name, value)}" for name, value in call.kwargs.items()]
    return made if only_builds else f"{made}({', '.join(inner)})"


def builds(case: Case) -> bool:
    """Whether a case's scenario builds a module and does no more."""
    call = case.call
    return bool(call.init is None and case.via and call.args and isinstance(call.args[0], tuple))


def _argument(name: str, value) -> str:
    return name if isinstance(value, Stub) and name.isidentifier() else written(value)


def item_at(front: list[int]) -> str:
    """ "item 2", "item [0, 1]"; empty for a matrix alone."""
    if not front:
        return ""
    first, *others = front
    return f"item {front if others else first}"


def row_at(index: list[int], axes: tuple[str, ...] = ()) -> str:
    """Where a row stands: "item [0, 1], row 2 (query 2)"; counted from 0, as in Python."""
    *front, row = index
    return ", ".join(filter(None, (item_at(front), numbered("row", row, axes[-2:-1]))))


def entry_at(index: list[int], axes: tuple[str, ...] = ()) -> str:
    """Where an entry stands: "item [0, 1], row 2 (query 2), column 5 (key 5)", or "entry 3 (token 3)" of a vector."""
    *row, column = index
    if not row:
        return numbered("entry", column, axes[-1:])
    return f"{row_at(row, axes)}, {numbered('column', column, axes[1:][-1:])}"


def numbered(title: str, number: int, nouns: tuple[str, ...]) -> str:
    """ "row 2 (query 2)"; a noun of several words, or the title again, is left out."""
    shown = [noun for noun in nouns if noun != title and " " not in noun]
    return f"{title} {number}" + "".join(f" ({noun} {number})" for noun in shown)
