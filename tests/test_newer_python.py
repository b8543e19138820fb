"""A statement in the syntax of a newer Python is left out. An answer that depends on it waits for a person."""

import json
import sys
import time

import pytest

from helpers.authoring.build import released_text
from helpers.course import course
from helpers.grading.folders import ROOT, load
from helpers.grading.intake import read_submission
from helpers.grading.lesson_release import course_release
from helpers.grading.not_supported import MARK, without_newer_syntax
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
@pytest.mark.parametrize("ran", [True, False])
def test_only_the_statement_in_newer_syntax_is_left_out(statement, ran):
    source = f"%%time\n{RIGHT}\nnames = ['a']\n{statement}\nafter = 1\n"
    kept, left_out = without_newer_syntax(source, ran)
    namespace: dict = {}
    exec(kept.removeprefix("%%time"), namespace)
    assert namespace["after"] == 1 and "scaled_scores" in namespace and kept.count("\n") == source.count("\n")
    assert [line for line in kept.split("\n") if line.startswith(MARK)][0] == MARK + statement.split("\n")[0]
    assert left_out == [statement]


SLOW = {"blank lines": "x = (\n" + (" " * 49 + "\n") * 4000 + " 1 1", "an unfinished alias": "type x" + " " * 100_000}


@pytest.mark.parametrize("part", SLOW)
def test_unreadable_code_is_searched_quickly(part):
    """4,000 blank lines once took 20 seconds."""
    began = time.process_time()
    assert without_newer_syntax(SLOW[part], ran=False) == (SLOW[part], [])
    assert time.process_time() - began < 2


def test_readable_code_and_text_that_is_not_python_stay_unchanged():
    for source in ("%time x = 1\ny = 2", RIGHT, "", "    x = (1", "?? 3\n" * 30):
        assert without_newer_syntax(source, ran=True) == (source, [])
    for source in ("x = (1\ny = 2", "def f(:\n    pass", "a = 1\n  b = 2"):  # it may never have run
        assert without_newer_syntax(source, ran=False) == (source, [])


def read(tmp_path, **sources):
    notebook = json.loads(released_text(course(), course().lesson(LESSON)))
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            cell["execution_count"] = number
        if grade_id(cell) in sources:
            cell["source"] = sources[grade_id(cell)]
    folder = tmp_path / "ada" / LESSON
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{LESSON}.ipynb").write_text(json.dumps(notebook))
    folders = load(tmp_path / "class")[0]
    return read_submission(tmp_path, "ada", course_release(folders.executed(LESSON)), ROOT / "solutions")


def waiting(submission) -> list[str]:
    return [cell.exercise for cell in submission.cells if cell.waits]


def test_an_answer_beside_such_a_statement_is_judged_and_flagged(tmp_path):
    submission = read(tmp_path, scaled_scores=f"{RIGHT}\nprint(f\"{{'\\n'.join('ab')}}\")")
    assert waiting(submission) == [] and len(submission.flags) == 1
    assert "Cell scaled_scores has a statement that the grader's Python 3.11 cannot read" in submission.flags[0]
    (cell,) = [cell for cell in submission.cells if cell.exercise == "scaled_scores" and cell.kind == "answer"]
    compile(cell.source, "cell", "exec")


def test_an_answer_in_newer_syntax_and_its_callers_wait_for_a_person(tmp_path):
    submission = read(
        tmp_path,
        scaled_scores="def scaled_scores[T](Q: T, K: T) -> T:\n    return Q @ K.mT",
        head_scores="def head_scores(x, W_q, W_k):\n    return scaled_scores(x @ W_q.T, x @ W_k.T)",
    )
    assert waiting(submission) == ["scaled_scores", "head_scores"]
    assert submission.flags[-1].startswith("scaled_scores, head_scores wait for a person, unless they pass")
