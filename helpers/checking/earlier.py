"""Whose fault is it? Earlier exercises that an answer calls, and the finished pieces that stand in for them.

An answer is judged by what it does itself: where an earlier answer that it calls is not there, raises or is wrong, the
answer is observed again with the finished piece in that one's place, in the notebook as in the grader.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import dis
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping

from helpers.checking.forbidden import not_watched
from helpers.checking.verdict import Verdict
from helpers.or_given import given_piece

LOADS = ("LOAD_GLOBAL", "LOAD_NAME")


def used_names(answer: Callable) -> set[str]:
    """The global names that an answer loads, itself or through the learner's own functions and classes."""
    found, waiting, seen = set(), [answer], set()
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        for function in _functions(current):
            for name in _loaded(function.__code__) - found:
                found.add(name)
                thing = function.__globals__.get(name)
                if _home(thing) is function.__globals__:
                    waiting.append(thing)
    return found


def namespace(answer: Callable) -> dict | None:
    """The namespace in which an answer looks up what it calls; None where it has none of its own."""
    return next((function.__globals__ for function in _functions(answer)), None)


def _functions(thing) -> list[types.FunctionType]:
    thing = inspect.unwrap(thing) if callable(thing) else thing
    if isinstance(thing, types.FunctionType):
        return [thing]
    if isinstance(thing, type):
        return [item for item in vars(thing).values() if isinstance(item, types.FunctionType)]
    inner = getattr(thing, "func", None)  # functools.partial
    return _functions(inner) if inner is not None else []


def _home(thing) -> dict | None:
    return namespace(thing) if isinstance(thing, (types.FunctionType, type)) else None


def _loaded(code: types.CodeType) -> set[str]:
    names = {item.argval for item in dis.get_instructions(code) if item.opname in LOADS}
    return names.union(*(_loaded(inner) for inner in code.co_consts if isinstance(inner, types.CodeType)))


def finished_piece(lesson: str, name: str) -> Callable | None:
    """The finished piece of an exercise as far as this edition has one: the lesson's block, else a machine's."""
    with contextlib.suppress(Exception):  # no file of it need be here
        return getattr(importlib.import_module(f"helpers.blocks.{lesson}"), name)
    piece = given_piece(lesson, name)
    return piece if callable(piece) else None


def hidden_builtins(names: Mapping[str, object]) -> dict[str, object]:
    """Python's own functions that `from torch import *` and its like hide in a namespace, as `float` and `range`."""
    homes = [sys.modules.get(home) for home in ("torch", "torch.nn.functional", "numpy", "math")]
    return {
        name: own
        for name, own in vars(builtins).items()
        if names.get(name, own) is not own and any(names[name] is getattr(home, name, None) for home in homes)
    }


@contextlib.contextmanager
def in_place(names: dict, pieces: Mapping[str, Callable], watched: bool = False) -> Iterator[None]:
    """While active, finished pieces stand in a namespace under the names of earlier answers. Their calls are nobody's:
    what an exercise forbids is not looked for inside them, unless they are `watched`."""
    before = {name: names[name] for name in pieces if name in names}
    names.update({name: piece if watched else not_watched(piece) for name, piece in pieces.items()})
    try:
        yield
    finally:
        for name in pieces:
            if name in before:
                names[name] = before[name]
            else:
                names.pop(name, None)


def charged_once(first: Verdict, again: Verdict, replaced: list[str], missing: bool) -> Verdict:
    """The verdict on an answer whose earlier ones are wrong: `again` is the one with finished pieces in their place.

    missing: whether none of them is answered.
    """
    if again.points < first.points:
        return first
    names = " and ".join(replaced)
    verb = "are" if len(replaced) > 1 else "is"
    state = "not there yet" if missing else "not right yet"
    note = f"Judged with a finished {names} in place of yours, which {verb} {state}."
    return dataclasses.replace(again, message=f"{again.message}\n{note}" if again.message else note, alone=False)


def mend_first(verdict: Verdict, wrong: list[str]) -> Verdict:
    """The verdict where no finished piece is at hand: it names no mistake, as it may be the earlier answer's."""
    names = " and ".join(wrong)
    message = f"It calls {names}, which {'are' if len(wrong) > 1 else 'is'} not right yet: mend {names} first."
    parts = [dataclasses.replace(part, detail="") for part in verdict.parts]
    return dataclasses.replace(verdict, mistake=None, label="", message=message, parts=parts, picture=None)
