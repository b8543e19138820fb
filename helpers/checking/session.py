"""The check in a learner's session: find the exercise, observe, decide, show, remember."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from helpers.checking.key import ExerciseKey, lesson_of, stored_keys
from helpers.checking.names import namespace, used_names
from helpers.checking.observe import observe_all
from helpers.checking.quiz_buttons import buttons
from helpers.checking.rendering import as_html, as_text, counted
from helpers.checking.retry import TriedAnswer, finished_block, hidden_builtins, put_in
from helpers.checking.verdict import Verdict, assess, decide_quiz, not_answered, refused
from helpers.errors import CheckFailed, NotAnswered
from helpers.progress import remember, remember_passed
from helpers.running.global_switches import switches_set
from helpers.setup import current_lesson
from helpers.widgets.progress_bar import in_notebook

INSTANCE = "instance"


def check_one(name: str | None, answer, names: Mapping[str, object]) -> None:
    """Judge `answer`, show the verdict, record it, and raise CheckFailed or NotAnswered unless it passed.

    A wrong option of a quiz raises nothing, because it earns the points and its explanation is shown.
    """
    with switches_set():
        key = find_key(name, answer, names)
        verdict = verdict_on(key, answer)
    best = remember(key.lesson, key.name, verdict.points, key.points, verdict.passed)
    if verdict.answered and best > verdict.points:
        note = f"Your best check so far stays in progress(): {counted(best, key.bonus)}."
        verdict = dataclasses.replace(verdict, message=f"{verdict.message}\n{note}")
    chosen = (verdict.mistake or "").removeprefix("option_")
    show(verdict, buttons(key.name, key.explanations, chosen) if key.kind == "quiz" and not verdict.passed else "")
    remember_passed(key.name, verdict.passed and verdict.unassisted)
    if not verdict.answered:
        raise NotAnswered(f"{key.name} is not answered yet.")
    wrong_option = key.kind == "quiz" and verdict.points == key.points and (verdict.mistake or "").startswith("option_")
    if not verdict.passed and not wrong_option:
        if 0 < key.points == verdict.points:  # a metric may give all points to an answer that does not pass
            raise CheckFailed(f"{key.name} has all its points, and misses what the check asks for by little.")
        raise CheckFailed(f"{key.name} is not right yet; the lines above say what to look at.")


def find_key(name: str | None, answer, names: Mapping[str, object]) -> ExerciseKey:
    """The key of the exercise that an answer belongs to. Raises CheckFailed if there is none.

    The exercise is found by `name`, or else by the names that the answer is bound to in the notebook (`names`), by the
    answer's own name, or by the name of its class.
    """
    lesson = current_lesson()
    keys = stored_keys(lesson) if lesson else {}
    own_name = getattr(answer, "__name__", "")
    candidates = [name] if name else [*(n for n, value in names.items() if value is answer), own_name]
    candidates.append(type(answer).__name__)  # the answer may be an instance of the learner's class
    here = (keys[candidate] for candidate in candidates if candidate in keys)
    elsewhere = (stored_keys(home)[candidate] for candidate in candidates if (home := lesson_of(candidate)))
    key = next(here, None) or next(elsewhere, None)  # the latter reads the index of all lessons
    if key is None:
        shown = name or own_name or type(answer).__name__
        exercises = ", ".join(keys) or "none: run the set-up cell first"
        raise CheckFailed(f"No exercise is called {shown}. Exercises of this lesson: {exercises}.")
    return key


def verdict_on(key: ExerciseKey, answer) -> Verdict:
    """The verdict on an answer in this process."""
    if key.kind == "quiz":
        return decide_quiz(key, answer)
    if answer is None or answer is Ellipsis:
        return not_answered(key)
    kind = "" if callable(answer) else type(answer).__name__
    if type(answer).__name__ == key.name and not isinstance(answer, type):
        kind = INSTANCE  # an object of the class that the exercise asks for, instead of the class itself
    return refused(key, "wrong_type", wrong_kind_text(key, kind)) if kind else NotebookAnswer(key, answer).verdict()


class NotebookAnswer(TriedAnswer):
    """An answer that is judged in the learner's own kernel."""

    def __init__(self, key: ExerciseKey, answer: Callable):
        super().__init__(key)
        self.answer = answer
        self.names = namespace(answer) or {}
        self.blocks: dict[str, Callable] = {}

    def observe(self, replaced: Sequence[str], builtins: bool) -> Verdict:
        key, blocks = self.key, {name: self.blocks[name] for name in replaced}
        hidden = hidden_builtins(self.names) if builtins else {}
        with put_in(self.names, blocks), put_in(self.names, hidden, watched=True):
            observations = observe_all(self.answer, key.cases, key.facts)
        return dataclasses.replace(assess(key, observations), printed=observations[0].said)

    def hides_builtins(self) -> bool:
        return bool(hidden_builtins(self.names))

    def earlier(self) -> dict[str, Verdict]:
        used, verdicts = used_names(self.answer), {}
        for exercise in stored_keys(self.key.lesson).values():
            if exercise.name == self.key.name:
                break
            if exercise.kind == "exercise" and exercise.name in used:
                verdicts[exercise.name] = verdict_on(exercise, self.names.get(exercise.name))
        return verdicts

    def has_block(self, name: str) -> bool:
        if (block := finished_block(self.key.lesson, name)) is not None:
            self.blocks[name] = block
        return block is not None


def wrong_kind_text(key: ExerciseKey, kind: str) -> str:
    if kind == INSTANCE:
        return f"this is an object that {key.name} made; the check makes its own: check({key.name}), without arguments."
    return f"{key.name} is a {kind}, not a function or class; define it with def or class, and check({key.name})."


def show(verdict: Verdict, below: str = "") -> None:
    """Display the verdict in a notebook, followed by the HTML `below`; elsewhere, print it as text."""
    text = as_text(verdict)
    if in_notebook():  # a terminal's IPython would print a dictionary
        from IPython.display import display

        display({"text/plain": text, "text/html": as_html(verdict) + below}, raw=True)
    else:
        print(text)
