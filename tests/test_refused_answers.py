"""Wrong answers that are not among a key's known mistakes are also refused, with a message that is true of them.

tests/refused_answers/TOPIC.py lists them by exercise. An answer is one or several edits of the solution, "old -> new"
as in the key, or a function. The answers in REFUSED get no mistake's name. In EXPLAINED each answer is followed by what
must hold: a single word is the name of the mistake that the verdict gives, None stands for no name, a phrase must
occur in the message, one with the prefix "not: " must not, and a number is the maximum of points out of ten.
"""

from pathlib import Path

import pytest

from helpers.authoring.blocks import load_blocks
from helpers.checking.make_keys import wrong_answer
from helpers.checking.mistake_lists import Mistake
from helpers.checking.rendering import as_text
from helpers.checking.verdict import RESERVED
from helpers.course import course, load_source
from tests.judged import stored_verdict
from tests.mutation_score import WHOLES, lessons

FOLDER = Path(__file__).parent / "refused_answers"


def listed(table: str) -> dict[tuple[str, str], list]:
    """The tables of this name from all lessons' files: (lesson, exercise) -> answers."""
    paths = {lesson: FOLDER / f"{lesson[3:]}.py" for lesson in lessons()}
    modules = {
        lesson: load_source(path, f"refused_answers_{path.stem}") for lesson, path in paths.items() if path.is_file()
    }
    return {
        (lesson, name): answers
        for lesson, module in modules.items()
        for name, answers in getattr(module, table, {}).items()
    }


REFUSED, EXPLAINED = listed("REFUSED"), listed("EXPLAINED")


def of_each(table):
    """The table's exercises as parameters. Full models run only in `make test-all`."""
    cases = [
        pytest.param(*case, marks=pytest.mark.full if case[1] in WHOLES else (), id="-".join(case)) for case in table
    ]
    return pytest.mark.parametrize(("lesson", "name"), cases)


def verdict_on(lesson: str, name: str, answer):
    """The verdict on an answer, which is an edit, a tuple of edits, or a function."""
    reference = getattr(load_blocks(course(), course().lesson(lesson)), name)
    edits = (answer,) if isinstance(answer, str) else answer
    return stored_verdict(lesson, name, wrong_answer(Mistake("refused", "", "", edits), reference))


@of_each(REFUSED)
def test_unknown_wrong_answers_are_refused_without_a_mistakes_name(lesson, name):
    wrong = []
    for edits in REFUSED[lesson, name]:
        verdict = verdict_on(lesson, name, edits)
        if verdict.passed or verdict.mistake not in (None, *RESERVED):
            wrong.append((edits, verdict.mistake))
    assert not wrong, f"the check accepts or calls by a name: {wrong}"


@of_each(EXPLAINED)
def test_messages_on_wrong_answers_are_true_of_them(lesson, name):
    wrong = []
    for answer, *expectations in EXPLAINED[lesson, name]:
        verdict = verdict_on(lesson, name, answer)
        words = as_text(verdict)
        for expected in expectations:
            if isinstance(expected, int):
                right = verdict.points <= expected
            elif expected is None or " " not in expected:
                right = verdict.mistake == expected
            else:
                right = (expected.removeprefix("not: ") in words) != expected.startswith("not: ")
            if verdict.passed or not right:
                wrong.append((answer, expected, verdict.mistake, words))
    assert not wrong, wrong


def test_each_list_of_refused_answers_belongs_to_a_lesson():
    assert {path.stem for path in FOLDER.glob("*.py")} <= {lesson[3:] for lesson in lessons()}
