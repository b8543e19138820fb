"""The check in a learner's session: find the exercise, observe, decide, show, remember."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping

from helpers.check import CheckFailed, NotAnswered
from helpers.checking.earlier import (
    charged_once,
    finished_piece,
    hidden_builtins,
    in_place,
    mend_first,
    namespace,
    used_names,
)
from helpers.checking.key import ExerciseKey, lesson_of, load_keys
from helpers.checking.observe import observe_all
from helpers.checking.report import as_html, as_text
from helpers.checking.verdict import Verdict, decide, decide_quiz, not_answered, refused
from helpers.or_given import remember_passed
from helpers.progress import remember
from helpers.setup import current_lesson


def check_one(name: str | None, answer, names: Mapping[str, object]) -> None:
    """Judge `answer`, show the verdict, remember it; raise CheckFailed or NotAnswered unless it passed.

    A wrong option of a quiz raises nothing: it has earned its points, and the explanation stands there.
    """
    key = find_key(name, answer, names)
    verdict = verdict_on(key, answer)
    show(verdict)
    remember(key.lesson, key.name, verdict.points, key.points, verdict.passed)
    remember_passed(key.name, verdict.passed and verdict.alone)
    if not verdict.answered:
        raise NotAnswered(f"{key.name} is not answered yet.")
    tried = key.kind == "quiz" and verdict.points == key.points and (verdict.mistake or "").startswith("option_")
    if not verdict.passed and not tried:
        raise CheckFailed(f"{key.name} is not right yet; the lines above say what to look at.")


def find_key(name: str | None, answer, names: Mapping[str, object]) -> ExerciseKey:
    """The key of the exercise that an answer belongs to: by the given name, by the name it is bound to in the
    notebook, or by its own name. CheckFailed with one sentence where there is none."""
    lesson = current_lesson()
    own = _keys(lesson) if lesson else {}
    named = getattr(answer, "__name__", "")
    candidates = [name] if name else [*(n for n, value in names.items() if value is answer), named]
    for candidate in candidates:
        if candidate in own:
            return own[candidate]
    for candidate in candidates:  # only now, as it takes the keys of all lessons
        home = lesson_of(candidate) if candidate else None
        if home:
            return _keys(home)[candidate]
    shown = name or named or type(answer).__name__
    known = ", ".join(own) or "none: run the set-up cell first"
    raise CheckFailed(f"No exercise is called {shown}. Exercises of this lesson: {known}.")


def _keys(lesson: str) -> dict[str, ExerciseKey]:
    try:
        return load_keys(lesson)
    except FileNotFoundError:
        return {}


def verdict_on(key: ExerciseKey, answer) -> Verdict:
    """The verdict on an answer in this process."""
    if key.kind == "quiz":
        return decide_quiz(key, answer)
    if answer is None or answer is Ellipsis:
        return not_answered(key)
    if not callable(answer):
        return refused(key, "wrong_type", wrong_kind_text(key, type(answer).__name__))
    verdict = _decided(key, answer)
    if verdict.passed or not verdict.answered:
        return verdict
    return _with_earlier_ones_right(key, answer, verdict)


def _with_earlier_ones_right(key: ExerciseKey, answer, verdict: Verdict) -> Verdict:
    """The same verdict, or the one with finished pieces in place of earlier answers that are wrong."""
    names, used = namespace(answer), used_names(answer)
    if names is None:
        return verdict
    order = list(_keys(key.lesson).values())
    place = next((i for i, other in enumerate(order) if other.name == key.name), 0)
    earlier = [other for other in order[:place] if other.kind == "exercise" and other.name in used]
    found = {other.name: verdict_on(other, names.get(other.name)) for other in earlier}
    wrong = [name for name, one in found.items() if not one.passed]
    theirs = any(found[name].mistake == "forbidden_call" for name in wrong)
    if not wrong or verdict.mistake == "forbidden_call" and not theirs:
        return verdict
    pieces = {name: finished_piece(key.lesson, name) for name in wrong}
    if None in pieces.values():
        return mend_first(verdict, [name for name, piece in pieces.items() if piece is None])
    with in_place(names, pieces):
        again = _decided(key, answer, scan=False)
    return charged_once(verdict, again, wrong, missing=not any(found[name].answered for name in wrong))


def _decided(key: ExerciseKey, answer, scan: bool = True) -> Verdict:
    """The verdict on an answer; where it fails and `from torch import *` hides Python's `float` or `range` from it, the
    better one of that and of the one with Python's own in their places."""
    verdict, names = _observed(key, answer, scan), namespace(answer)
    hidden = hidden_builtins(names) if names is not None and not verdict.passed else {}
    if not hidden:
        return verdict
    with in_place(names, hidden, watched=True):
        again = _observed(key, answer, scan)
    return again if again.points > verdict.points else verdict


def _observed(key: ExerciseKey, answer, scan: bool) -> Verdict:
    observations = observe_all(answer, key.cases, key.facts, scan)
    return dataclasses.replace(decide(key, observations), said=observations[0].said)


def wrong_kind_text(key: ExerciseKey, kind: str) -> str:
    return f"{key.name} is a {kind}, not a function or class; define it with def or class, and check({key.name})."


def show(verdict: Verdict) -> None:
    """Display in a notebook, print elsewhere."""
    text = as_text(verdict)
    if _in_notebook():
        from IPython.display import display

        display({"text/plain": text, "text/html": as_html(verdict)}, raw=True)
    else:
        print(text)


def _in_notebook() -> bool:
    """Whether this is a Jupyter kernel (a terminal's IPython would print a dictionary)."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")
