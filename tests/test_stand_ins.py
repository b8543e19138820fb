"""Stand-ins for exercises that are not parts of the translator: each does its exercise and is refused as an answer."""

import importlib
import subprocess
import sys

import pytest

from helpers import or_finished
from helpers.checking.forbidden import course_part
from helpers.checking.key import stored_keys
from helpers.grading.folders import ROOT
from helpers.grading.sandbox_files import HELPERS, stage_helpers
from helpers.or_finished import stand_in_for
from tests.conftest import lesson_names, one_of
from tests.judged import differing_parts, stored_verdict
from tests.mutation_score import WHOLES

ROOMS = {lesson: HELPERS / "lessons" / lesson[3:] / "stand_ins.py" for lesson in lesson_names()}
ROOMS = {lesson: path for lesson, path in ROOMS.items() if path.is_file()}
LACKS = {
    "generate": {"values", "top_k", "top_k = 1 at a temperature of 3", "a text longer than the context"},
    "online_softmax": {"one pass, and nothing large kept"},
}
EXERCISES = {name for lesson in lesson_names() for name in stored_keys(lesson)}
TABLES = {lesson: vars(importlib.import_module(f"helpers.lessons.{lesson[3:]}.stand_ins")) for lesson in ROOMS}
PIECES = [(lesson, name) for lesson, table in TABLES.items() for name in table if name in EXERCISES]
IN_SECONDS = [pytest.param(*pair, marks=pytest.mark.full if pair[1] in WHOLES else ()) for pair in PIECES]


@pytest.mark.parametrize(("lesson", "name"), PIECES)
def test_a_stand_in_does_what_the_exercise_does(lesson, name):
    assert differing_parts(lesson, name, TABLES[lesson][name]) <= LACKS.get(name, set())


@pytest.mark.parametrize(("lesson", "name"), IN_SECONDS)
def test_a_stand_in_is_refused_as_an_answer(lesson, name):
    stand_in = TABLES[lesson][name]
    assert course_part(stand_in)
    verdict = stored_verdict(lesson, name, stand_in, forbidden=())
    assert verdict.mistake == "forbidden_call" and verdict.points == 0


@pytest.mark.parametrize(("lesson", "name"), PIECES)
def test_or_finished_finds_each_stand_in(lesson, name, monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["helpers.or_finished"], "_announced", set())
    monkeypatch.setattr(sys.modules["helpers.or_finished"], "PASSED", set())

    def unanswered(*args):
        raise NotImplementedError

    unanswered.__name__ = name
    assert stand_in_for(lesson, name) is TABLES[lesson][name]
    assert or_finished(unanswered) is TABLES[lesson][name]
    assert capsys.readouterr().out.startswith(f"{name}: using the finished block")


@pytest.mark.parametrize("lesson", one_of(ROOMS))
def test_a_sandbox_contains_the_lessons_stand_ins(lesson, tmp_path):
    """Later cells use them for a missing answer, for example a training run, as they did in the learner's notebook."""
    stage_helpers(tmp_path, lesson)
    assert (tmp_path / "helpers" / ROOMS[lesson].relative_to(HELPERS)).is_file()


def test_code_in_a_folder_with_a_similar_name_is_not_the_courses():
    code = compile("def mine(x):\n    return x", f"{HELPERS}_mine/tools.py", "exec")
    space: dict = {"__name__": "tools"}
    exec(code, space)
    assert course_part(space["mine"]) == ""


CALLS = """
from helpers.checking import forbidden
from helpers.grading.inside.watching import report_stand_in_calls
report_stand_in_calls()
from helpers import translator
machine = translator.model()
forbidden.tell = print
ids = getattr(translator, "source_batch")(["jane visits africa"])
getattr(translator.decoding, "greedy")(machine, ids)
getattr(translator.decoding, "write")(machine, ids, {})
translator.FINISHED_PARTS["causal_mask"](2)
"""


def test_the_grader_notices_calls_of_the_courses_code_under_any_name():
    output = subprocess.run([sys.executable, "-c", CALLS], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = ("trained.source_batch", "trained.greedy", "decoding.write", "finished_parts.causal_mask")
    assert output.split() == [f"helpers.translator.{name}" for name in names]
