"""How an answer is tried again, in the notebook as in the grader, and how two verdicts on it become one.

An error is charged once: an answer that fails and calls earlier ones that are wrong too is tried again with finished
blocks in their place. Nor is it charged with Python's own functions where `from torch import *` hides them from it.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import importlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping

from helpers.checking.forbidden import not_watched
from helpers.checking.key import ExerciseKey
from helpers.checking.messages import with_message
from helpers.checking.verdict import Verdict
from helpers.or_finished import stand_in_for


def judged(
    key: ExerciseKey,
    observe: Callable[[list[str], bool], Verdict],
    hides_builtins: Callable[[], bool],
    earlier: Callable[[], Mapping[str, Verdict]],
    has_piece: Callable[[str], bool],
    refuse: Callable[[Verdict], Verdict | None] = lambda verdict: None,
    rebound: Callable[[], Collection[str]] = tuple,
) -> Verdict:
    """The verdict on an answer, with its words. What the notebook and the grader each do in their way:

    observe: run the answer with finished blocks in place of the earlier answers of these names, and with Python's own
        functions where they are hidden or not; decided, or with its words.
    hides_builtins: whether the names that the answer looks up hide functions of Python's.
    earlier: the verdicts on the earlier answers that it calls, itself or through others, in the lesson's order.
    has_piece: whether a finished block of an exercise is at hand.
    refuse: another verdict on an answer that failed, which no finished block changes; else None.
    rebound: earlier answers that passed, and whose names stand for something else by now.

    None of them is asked before it matters: of a right answer only the first.
    """

    def tried(replaced: list[str]) -> Verdict:
        verdict = observe(replaced, False)
        if verdict.passed or not verdict.answered or not hides_builtins():
            return verdict
        again = observe(replaced, True)
        return again if again.points > verdict.points else verdict

    first = tried([])
    if first.passed or not first.answered:
        return first
    other = refuse(first)
    if other is not None:
        return other
    found, others = earlier(), list(rebound())
    wrong = [name for name, verdict in found.items() if not verdict.passed]
    theirs = any(found[name].mistake == "forbidden_call" for name in wrong)
    if not wrong and not others or first.mistake == "forbidden_call" and not theirs:
        return with_message(key, first)
    if missing := [name for name in wrong if not has_piece(name)]:
        return mend_first(first, missing)
    again = tried([*wrong, *others])
    if again.mistake == "forbidden_call":
        return with_message(key, again)  # whatever else is wrong: this call is its own
    if wrong:
        unanswered = not any(found[name].answered for name in wrong)
        forbidden = all(found[name].mistake == "forbidden_call" for name in wrong)
        return charged_once(with_message(key, first), with_message(key, again), wrong, unanswered, forbidden)
    if again.points <= first.points:
        return with_message(key, first)
    again = with_message(key, again)
    note = f"Judged with a finished {' and '.join(others)}: by here the name stands for something else."
    return dataclasses.replace(again, message=f"{again.message}\n{note}" if again.message else note)


def finished_block(lesson: str, name: str) -> Callable | None:
    """The finished block of an exercise as far as this edition has one: the lesson's block, else a machine's."""
    with contextlib.suppress(Exception):  # no file of it need be here
        return getattr(importlib.import_module(f"helpers.blocks.{lesson}"), name)
    piece = stand_in_for(lesson, name)
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
    """While active, finished blocks stand in a namespace under the names of earlier answers. Their calls are nobody's:
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
    """The verdict on an answer whose earlier ones are wrong: `again` is the one with finished blocks in their place.

    missing: whether none of them is answered. forbidden: whether each is or uses what it may not, as a finished block.
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
    """The verdict where no finished block is at hand: it names no mistake, as it may be the earlier answer's."""
    names = " and ".join(wrong)
    message = f"It calls {names}, which {'are' if len(wrong) > 1 else 'is'} not right yet: mend {names} first."
    parts = [dataclasses.replace(part, detail="") for part in verdict.parts]
    return dataclasses.replace(verdict, mistake=None, label="", message=message, parts=parts, picture=None, problems=[])
