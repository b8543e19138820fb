"""How an answer is tried, in the notebook as in the grader: one policy for both, which know only how to run it.

An error is charged once: an answer that fails and calls earlier ones that are wrong too is tried again with finished
pieces in their place. Nor is it charged with Python's own functions where `from torch import *` hides them from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping

from helpers.checking.deciding import Verdict
from helpers.checking.diagnose import worded
from helpers.checking.earlier import charged_once, mend_first
from helpers.checking.key import ExerciseKey


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

    observe: run the answer with finished pieces in place of the earlier answers of these names, and with Python's own
        functions where they are hidden or not; decided, or with its words.
    hides_builtins: whether the names that the answer looks up hide functions of Python's.
    earlier: the verdicts on the earlier answers that it calls, itself or through others, in the lesson's order.
    has_piece: whether a finished piece of an exercise is at hand.
    refuse: another verdict on an answer that failed, which no finished piece changes; else None.
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
        return worded(key, first)
    if missing := [name for name in wrong if not has_piece(name)]:
        return mend_first(first, missing)
    again = tried([*wrong, *others])
    if again.mistake == "forbidden_call":
        return worded(key, again)  # whatever else is wrong: this call is its own
    if wrong:
        unanswered = not any(found[name].answered for name in wrong)
        forbidden = all(found[name].mistake == "forbidden_call" for name in wrong)
        return charged_once(worded(key, first), worded(key, again), wrong, unanswered, forbidden)
    if again.points <= first.points:
        return worded(key, first)
    again = worded(key, again)
    note = f"Judged with a finished {' and '.join(others)}: by here the name stands for something else."
    return dataclasses.replace(again, message=f"{again.message}\n{note}" if again.message else note)
