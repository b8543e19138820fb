"""`course new`: the exercise that it creates builds at once, and invalid names change nothing."""

import re

import nbformat
import pytest

from helpers.authoring.scaffold import IMPORT, KEY, SECTION
from tests.small_course import LESSON, make_small_course, run_command, said_by_ruff


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """The small course with a new exercise: (root, the result of `course build`)."""
    root = make_small_course(tmp_path_factory.mktemp("new") / "course")
    result = run_command(root, "new", LESSON, "doubled_rows")
    assert result.returncode == 0 and f"course build {LESSON}" in result.stdout, result.stderr
    return root, run_command(root, "build", "--no-run")


def test_a_new_exercise_builds_at_once(begun):
    root, built = begun
    assert built.returncode == 0, built.stderr
    names = ["scaled_scores", "halved", "doubled_rows"]
    notebook = nbformat.read(root / "notebooks" / LESSON / f"{LESSON}.ipynb", as_version=4)
    ids = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
    assert [ids.index(f"check_{name}") for name in names] == sorted(ids.index(f"check_{name}") for name in names)
    prose = "\n".join(cell.source for cell in notebook.cells)
    numbered = [(f"{int(LESSON[:2])}.{k}", name) for k, name in enumerate(names, 1)]
    assert re.findall(r"## Exercise (\S+) `(\w+)`", prose) == numbered


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["15_pooling", "pooled"], "There is no lesson '15_pooling'."),
        ([LESSON, "halved"], f"{LESSON} has an exercise halved already."),
        ([LESSON, "quiz_2"], "'quiz_2' cannot name an exercise"),
    ],
)
def test_an_invalid_new_exercise_is_refused_in_a_sentence_and_writes_nothing(begun, arguments, message):
    root, _ = begun
    before = (root / "course.toml").read_text()
    result = run_command(root, "new", *arguments)
    assert result.returncode == 2 and message in result.stderr and result.stderr.count("\n") == 1
    assert (root / "course.toml").read_text() == before


def test_the_template_of_an_exercise_passes_ruff():
    section = "from helpers import check\n\n" + SECTION.format(number=4, k=3, name="halved")
    key = f"{IMPORT}Exercise, tensor_cases\n\nexercises = []\n{KEY.format(name='halved')}"
    for name, text in ((f"{LESSON}.py", section), ("answer_key.py", key)):
        assert said_by_ruff(f"solutions/{LESSON}/{name}", text) == ""
