"""Syntax of a newer Python is no mistake: where points depend on it, a person decides."""

import json
import sys

import pytest

from helpers.authoring.build import released_text
from helpers.course import course
from helpers.grading.folders import ROOT, load
from helpers.grading.intake import read_submission
from helpers.grading.lesson_release import course_release
from helpers.grading.newer_python import names_in_newer_syntax
from tests.sample_class import grade_id

LESSON = "04_scaling"
RIGHT = "def scaled_scores(Q, K):\n    return Q @ K.mT / math.sqrt(Q.size(-1))\n"
NEWER = {
    "a backslash in an f-string": "print(f\"{'\\n'.join(names)}\")",
    "quotes in an f-string": 'print(f"{names["a"]}")',
    "a type statement": "type Vector = list[float]",
    "a generic function": "def first[T](x: list[T]) -> T:\n    return x[0]",
    "a generic class": "class Box[T]:\n    pass",
    "two exceptions": "try:\n    pass\nexcept ValueError, TypeError:\n    pass",
}
pytestmark = pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python can read it")


@pytest.mark.parametrize("statement", NEWER.values(), ids=NEWER)
@pytest.mark.parametrize("ran", [True, None])
def test_the_names_of_a_cell_in_newer_syntax_are_told(statement, ran):
    names = names_in_newer_syntax(f"{RIGHT}\nnames = ['a']\n{statement}\nafter = 1\n", ran)
    assert names >= {"scaled_scores", "names", "after"}


@pytest.mark.parametrize("source", ["x = (1", "def f(:\n    pass", "a = 1\n  b = 2", "%time x = 1\ny = 2", RIGHT, ""])
def test_what_no_python_can_read_and_what_this_one_can_is_not_newer(source):
    assert names_in_newer_syntax(source, None) == set()
    assert names_in_newer_syntax(NEWER["a type statement"], False) == set()  # it raised at home too


def test_what_ran_at_home_is_newer_whatever_it_is():
    assert names_in_newer_syntax("x = 1\ny = 2 ?? 3\n", True) == {"x", "y"}


def read(tmp_path, **sources):
    notebook = json.loads(released_text(course(), course().lesson(LESSON)))
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            cell["execution_count"] = number
        if grade_id(cell) in sources:
            cell["source"] = sources[grade_id(cell)]
    folder = tmp_path / "ada" / LESSON
    folder.mkdir(parents=True)
    (folder / f"{LESSON}.ipynb").write_text(json.dumps(notebook))
    folders = load(tmp_path / "class")[0]
    return read_submission(tmp_path, "ada", course_release(folders.executed(LESSON)), ROOT / "solutions")


def waiting(submission) -> list[str]:
    return [cell.exercise for cell in submission.cells if cell.waits]


def test_an_answer_in_such_syntax_and_what_hangs_on_it_wait_for_a_person(tmp_path):
    submission = read(
        tmp_path,
        scaled_scores="def scaled_scores[T](Q: T, K: T) -> T:\n    return Q @ K.mT",
        head_scores="def head_scores(x, W_q, W_k):\n    return scaled_scores(x @ W_q.T, x @ W_k.T)",
    )
    assert waiting(submission) == ["scaled_scores", "head_scores"]
    assert submission.flags[-2].startswith("Cell scaled_scores has syntax of a newer Python, which the grader's 3.11")
    assert submission.flags[-1] == "scaled_scores, head_scores wait for a person"
