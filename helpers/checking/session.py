"""The check in a learner's session: find the exercise, observe, decide, show, remember."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from helpers.check import CheckFailed, NotAnswered
from helpers.checking.key import ExerciseKey, lesson_of, load_keys
from helpers.checking.observe import observe_all
from helpers.checking.report import as_html, as_text
from helpers.checking.verdict import Verdict, decide, decide_quiz, not_answered, refused
from helpers.or_given import remember_passed
from helpers.progress import remember
from helpers.setup import current_lesson


def check_one(name: str | None, answer, names: Mapping[str, object]) -> None:
    """Judge `answer`, show the verdict, remember it; raise CheckFailed or NotAnswered unless it passed."""
    key = find_key(name, answer, names)
    verdict = verdict_on(key, answer)
    show(verdict)
    remember(key.lesson, key.name, verdict.points, key.points, verdict.passed)
    remember_passed(key.name, verdict.passed)
    if not verdict.answered:
        raise NotAnswered(f"{key.name} is not answered yet.")
    if not verdict.passed:
        raise CheckFailed(f"{key.name} is not right yet; the lines above say what to look at.")


def find_key(name: str | None, answer, names: Mapping[str, object]) -> ExerciseKey:
    """The key of the exercise that an answer belongs to: by the given name, by the name it is bound to in the
    notebook, or by its own name. CheckFailed with one sentence where there is none."""
    lesson = current_lesson()
    own = _keys(lesson) if lesson else {}
    bound = [n for n, value in names.items() if value is answer and (n in own or lesson_of(n))]
    candidates = [name] if name else [*bound, getattr(answer, "__name__", "")]
    for candidate in candidates:
        if candidate in own:
            return own[candidate]
    for candidate in candidates:
        home = lesson_of(candidate) if candidate else None
        if home:
            return _keys(home)[candidate]
    shown = next((c for c in candidates if c), type(answer).__name__)
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
    return decide(key, observe_all(answer, key.cases, key.facts))


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
