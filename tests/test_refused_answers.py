"""Wrong answers that are no known mistake of a key are refused all the same, and are told what is true of them.

tests/refused_answers/TOPIC.py lists them by exercise: the edits of the solution, "old -> new" as in the key, that make
one answer together, or a function where no edit can say it. Those of REFUSED get no name. Those of TOLD stand before
what is said of them: a single word is the name that they get, None means none, a phrase stands in the words that a
learner reads, and one behind "not: " does not; a number is the most points of ten.
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
    """A table of all lessons' files, by lesson and exercise."""
    paths = {lesson: FOLDER / f"{lesson[3:]}.py" for lesson in lessons()}
    modules = {
        lesson: load_source(path, f"refused_answers_{path.stem}") for lesson, path in paths.items() if path.is_file()
    }
    return {
        (lesson, name): answers
        for lesson, module in modules.items()
        for name, answers in getattr(module, table, {}).items()
    }


REFUSED, TOLD = listed("REFUSED"), listed("TOLD")


def of_each(table):
    """The table's exercises as parameters; whole models are for `make test-all`."""
    cases = [
        pytest.param(*case, marks=pytest.mark.full if case[1] in WHOLES else (), id="-".join(case)) for case in table
    ]
    return pytest.mark.parametrize(("lesson", "name"), cases)


def verdict_on(lesson: str, name: str, answer):
    """answer: an edit, several of them, or a function."""
    reference = getattr(load_blocks(course(), course().lesson(lesson)), name)
    edits = (answer,) if isinstance(answer, str) else answer
    return stored_verdict(lesson, name, wrong_answer(Mistake("refused", "", "", edits), reference))


@of_each(REFUSED)
def test_wrong_answers_without_a_name_are_refused_and_given_none(lesson, name):
    wrong = []
    for edits in REFUSED[lesson, name]:
        verdict = verdict_on(lesson, name, edits)
        if verdict.passed or verdict.mistake not in (None, *RESERVED):
            wrong.append((edits, verdict.mistake))
    assert not wrong, f"the check accepts or calls by a name: {wrong}"


@of_each(TOLD)
def test_wrong_answers_are_told_what_is_true_of_them(lesson, name):
    wrong = []
    for answer, *told in TOLD[lesson, name]:
        verdict = verdict_on(lesson, name, answer)
        words = as_text(verdict)
        for one in told:
            if isinstance(one, int):
                right = verdict.points <= one
            elif one is None or " " not in one:
                right = verdict.mistake == one
            else:
                right = (one.removeprefix("not: ") in words) != one.startswith("not: ")
            if verdict.passed or not right:
                wrong.append((answer, one, verdict.mistake, words))
    assert not wrong, wrong


def test_each_list_is_that_of_a_lesson():
    assert {path.stem for path in FOLDER.glob("*.py")} <= {lesson[3:] for lesson in lessons()}
