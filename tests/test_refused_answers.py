"""Wrong answers that have no name in the keys are refused all the same.

tests/refused_answers/TOPIC.py lists them by exercise, REFUSED = {"exercise": [(edit, ...), ...]}: the edits of the
solution, "old -> new" as in the key, that make one answer together. A function stands where no edit can say it.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from helpers.authoring.blocks import load_blocks
from helpers.checking.make_keys import make_key, wrong_answer
from helpers.checking.messages import decide
from helpers.checking.mistake_lists import Mistake
from helpers.checking.observe import Facts, observe_all
from helpers.course import course, load_source
from tests.mutation_score import exercises, lessons

FOLDER = Path(__file__).parent / "refused_answers"
REFUSED = {
    (lesson, name): answers
    for lesson in lessons()
    if (path := FOLDER / f"{lesson[3:]}.py").is_file()
    for name, answers in load_source(path, f"refused_answers_{lesson[3:]}").REFUSED.items()
}


@pytest.mark.parametrize(("lesson", "name"), REFUSED, ids=map("-".join, REFUSED))
def test_wrong_answers_without_a_name_are_refused(lesson, name):
    reference = getattr(load_blocks(course(), course().lesson(lesson)), name)
    (exercise,) = (item for item in exercises(lesson) if item.name == name)
    key = make_key(lesson, replace(exercise, mistakes=()), 100, False, reference, 0)
    facts = Facts(name, "99_refused", key.facts.forbidden, key.facts.time_limit)
    accepted = []
    for edits in REFUSED[lesson, name]:
        answer = wrong_answer(Mistake("refused", "", "", edits), reference)
        if decide(key, observe_all(answer, key.cases, facts)).passed:
            accepted.append(edits)
    assert not accepted, f"the check accepts {accepted}"


def test_each_list_is_that_of_a_lesson():
    assert {path.stem for path in FOLDER.glob("*.py")} <= {lesson[3:] for lesson in lessons()}
