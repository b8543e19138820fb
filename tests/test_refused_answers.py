"""Wrong answers that have no name in the keys are refused all the same, and get none.

tests/refused_answers/TOPIC.py lists them by exercise, REFUSED = {"exercise": [(edit, ...), ...]}: the edits of the
solution, "old -> new" as in the key, that make one answer together. A function stands where no edit can say it.
"""

from pathlib import Path

import pytest

from helpers.authoring.blocks import load_blocks
from helpers.checking.make_keys import wrong_answer
from helpers.checking.mistake_lists import Mistake
from helpers.checking.verdict import RESERVED
from helpers.course import course, load_source
from tests.judged import stored_verdict
from tests.mutation_score import lessons

FOLDER = Path(__file__).parent / "refused_answers"
REFUSED = {
    (lesson, name): answers
    for lesson in lessons()
    if (path := FOLDER / f"{lesson[3:]}.py").is_file()
    for name, answers in load_source(path, f"refused_answers_{lesson[3:]}").REFUSED.items()
}


@pytest.mark.parametrize(("lesson", "name"), REFUSED, ids=map("-".join, REFUSED))
def test_wrong_answers_without_a_name_are_refused_and_given_none(lesson, name):
    reference = getattr(load_blocks(course(), course().lesson(lesson)), name)
    wrong = []
    for edits in REFUSED[lesson, name]:
        verdict = stored_verdict(lesson, name, wrong_answer(Mistake("refused", "", "", edits), reference))
        if verdict.passed or verdict.mistake not in (None, *RESERVED):
            wrong.append((edits, verdict.mistake))
    assert not wrong, f"the check accepts or calls by a name: {wrong}"


def test_each_list_is_that_of_a_lesson():
    assert {path.stem for path in FOLDER.glob("*.py")} <= {lesson[3:] for lesson in lessons()}
