"""Whose fault is it? Earlier exercises that an answer calls, and the finished pieces that stand in for them.

An answer is judged by what it does itself: where an earlier answer that it calls is not there, raises or is wrong, the
answer is observed again with the finished piece in that one's place, in the notebook as in the grader.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping

from helpers.checking.deciding import Verdict
from helpers.checking.forbidden import not_watched
from helpers.or_given import given_piece


def finished_piece(lesson: str, name: str) -> Callable | None:
    """The finished piece of an exercise as far as this edition has one: the lesson's block, else a machine's."""
    with contextlib.suppress(Exception):  # no file of it need be here
        return getattr(importlib.import_module(f"helpers.blocks.{lesson}"), name)
    piece = given_piece(lesson, name)
    return piece if callable(piece) else None


def hidden_builtins(names: Mapping[str, object]) -> dict[str, Callable]:
    """Python's own functions that `from torch import *` and its like hide in a namespace, as `float` and `range`."""
    homes = [sys.modules.get(home) for home in ("torch", "torch.nn.functional", "numpy", "math")]
    return {
        name: own
        for name, own in vars(builtins).items()
        if names.get(name, own) is not own and any(names[name] is getattr(home, name, None) for home in homes)
    }


@contextlib.contextmanager
def put_in(names: dict, pieces: Mapping[str, Callable], watched: bool = False) -> Iterator[None]:
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


def charged_once(first: Verdict, again: Verdict, replaced: list[str], missing: bool, forbidden: bool) -> Verdict:
    """The verdict on an answer whose earlier ones are wrong: `again` is the one with finished pieces in their place.

    missing: whether none of them is answered. forbidden: whether each is or uses what it may not, as a finished piece.
    """
    if again.points < first.points:
        return first
    names = " and ".join(replaced)
    several = len(replaced) > 1
    state = f"{'are' if several else 'is'} not {'there' if missing else 'right'} yet"
    note = f"Judged with a finished {names} in place of yours, which {state}."
    if forbidden:
        yours = "yours are finished ones too, or call" if several else "yours is a finished one too, or calls"
        note = f"Judged with a finished {names}: {yours} what is forbidden there. Here that does not count."
    return dataclasses.replace(again, message=f"{again.message}\n{note}" if again.message else note, alone=False)


def mend_first(verdict: Verdict, wrong: list[str]) -> Verdict:
    """The verdict where no finished piece is at hand: it names no mistake, as it may be the earlier answer's."""
    names = " and ".join(wrong)
    message = f"It calls {names}, which {'are' if len(wrong) > 1 else 'is'} not right yet: mend {names} first."
    parts = [dataclasses.replace(part, detail="") for part in verdict.parts]
    return dataclasses.replace(verdict, mistake=None, label="", message=message, parts=parts, picture=None, problems=[])
