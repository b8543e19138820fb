"""Grading end to end: every submission gets exactly the points that it deserves, whatever its code tries."""

import csv
import io
import os
import shutil
import signal
import subprocess
import sys

import nbformat
import pytest

from helpers.__main__ import main
from helpers.checking.messages import decide
from helpers.checking.observe import observe_all
from helpers.grading.batch import batch_seed, grade_lesson
from helpers.grading.class_report import as_csv, as_page
from helpers.grading.class_scores import read_class
from helpers.grading.folders import ROOT, load
from helpers.grading.pool import GradingStopped
from helpers.grading.record import plain_number, safe_output
from tests import sample_class
from tests.sample_class import grade_id, hand_in, hand_in_unreadable
from tests.test_regrade import FullPoints

LESSON = "04_scaling"
needs_bubblewrap = pytestmark = pytest.mark.skipif(
    shutil.which("bwrap") is None and os.environ.get("COURSE_CI") != "1", reason="needs bubblewrap"
)


def points(lesson, **changed):
    """Full points in all exercises except those in `changed`."""
    return {name: float(key.points) for name, key in lesson.keys.items()} | changed


WRONG = "def scaled_scores(Q, K):\n    return Q @ K.transpose(-2, -1)\n"
RAISES = "def scaled_scores(Q, K):\n    raise ValueError('<script>x</script>')"
WARNS = "import sys, warnings\nwarnings.warn('careful')\nprint('x', file=sys.stderr)\n"
FIGURE = "def max_gradient(scores):\n    return figures.largest_slope(scores)"
HALF = (
    "import math\nimport torch\ndef scaled_scores(Q, K):\n"
    "    return (Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1])).to(torch.float32)\n"
)


def half(lesson):
    """The points for a right answer that loses float64, judged here with the stored key."""
    space = {}
    exec(HALF, space)
    key = lesson.keys["scaled_scores"]
    verdict = decide(key, observe_all(space["scaled_scores"], key.cases, key.facts))
    assert verdict.mistake == "dtype_lost" and 0 < verdict.points < key.points
    return float(verdict.points)


@pytest.fixture(scope="module")
def submissions(lesson):
    """Typical submissions: name -> (changed answers, deserved points)."""
    zero = points(lesson, scaled_scores=0.0)
    mistaken = lesson.mistakes["scaled_scores"]["divided_by_d_k"]
    return {
        "right": ({}, points(lesson)),
        "blank": (None, dict.fromkeys(lesson.keys, 0.0)),
        "half-right": ({"scaled_scores": HALF}, points(lesson, scaled_scores=half(lesson))),
        "named-mistake": ({"scaled_scores": mistaken}, zero),
        "raises": ({"scaled_scores": RAISES}, zero),
        "syntax-error": ({"scaled_scores": "def scaled_scores(Q, K) return 1"}, zero),
        "os-exit": ({"scaled_scores": "import os\nos._exit(0)"}, zero),
        "stderr": ({"scaled_scores": WARNS + lesson.solutions["scaled_scores"]}, points(lesson)),
        "a-figure's-function": ({"max_gradient": FIGURE}, points(lesson, max_gradient=0.0)),
    }


@pytest.fixture(scope="module")
def graded(lesson, submissions, tmp_path_factory):
    """All submissions graded by one `nbgrader autograde`: (folders, config, output)."""
    folders, config = load(tmp_path_factory.mktemp("class"))
    for number, (name, (answers, _)) in enumerate(submissions.items()):
        hand_in(folders, lesson, f"{number:02d}-{name}", full_answers(lesson, answers))
    hand_in_unreadable(folders, LESSON, "98-unreadable", '{"cells": [')
    for student in ("97-changes-their-mind", "99-honest"):
        hand_in(folders, lesson, student, full_answers(lesson, {}))
    return folders, config, autograde(folders)


def autograde(folders) -> str:
    """Grade all submissions by `nbgrader autograde` and return its output."""
    done = nbgrader("autograde", LESSON, "--CourseAutograde.cell_seconds=4", gradebook=folders.gradebook)
    assert done.returncode == 0, done.stderr
    return done.stderr


def full_answers(lesson, changed):
    if changed is None:
        return {}
    right = {name: lesson.solutions[name] for name in lesson.exercises}
    right |= {name: f'{name} = "a"' for name in lesson.quizzes}
    return right | {"written_1": "Because of $a<b$ <script>alert(1)</script>"} | changed


def nbgrader(*arguments, gradebook):
    return subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=500,
        env=os.environ | {"COURSE_GRADEBOOK": str(gradebook)},
    )


def course_grade(*arguments, gradebook, code="", **environment):
    """Run `course grade` in a process of its own, in which `code` runs first."""
    program = f"{code}\nimport sys\nfrom helpers.__main__ import main\nsys.exit(main(sys.argv[1:]))\n"
    return subprocess.run(
        [sys.executable, "-c", program, "grade", *arguments, "--gradebook", str(gradebook)],
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=300,
        env=os.environ | environment,
    )


def recorded(folders):
    """student -> grade cell -> (automatic score, extra credit, needs manual grading), from nbgrader's gradebook."""
    from nbgrader.api import Gradebook

    with Gradebook(folders.db_url, folders.course_id) as gradebook:
        return {
            handed_in.student.id: {
                grade.name.removeprefix("check_"): (grade.auto_score, grade.extra_credit, grade.needs_manual_grade)
                for notebook in handed_in.notebooks
                for grade in notebook.grades
            }
            for handed_in in gradebook.assignment_submissions(LESSON)
        }


def scores(folders):
    """student -> exercise -> points with extra credit, without the written answers."""
    return {
        student: {
            name: auto if not extra else auto + extra
            for name, (auto, extra, _) in grades.items()
            if not name.startswith("written")
        }
        for student, grades in recorded(folders).items()
    }


def test_every_submission_gets_exactly_the_points_it_deserves(graded, submissions, lesson):
    found = scores(graded[0])
    deserved = {f"{number:02d}-{name}": points for number, (name, (_, points)) in enumerate(submissions.items())}
    assert {name: found[name] for name in deserved} == deserved
    assert found["99-honest"] == points(lesson)


def test_an_unreadable_notebook_has_a_record_and_needs_manual_grading(graded):
    grades = recorded(graded[0])["98-unreadable"]
    assert all(auto is None and waits for auto, _, waits in grades.values())
    assert graded[2].count("cannot be read as a notebook") == 1
    notebook = nbformat.read(graded[0].autograded_notebook(LESSON, "98-unreadable"), as_version=4)
    assert "was not graded automatically" in notebook.cells[0].source


def test_the_autograded_notebook_contains_reports_and_points(graded, lesson):
    from nbgrader.utils import determine_grade, is_grade

    notebook = nbformat.read(graded[0].autograded_notebook(LESSON, "03-named-mistake"), as_version=4)
    nbformat.validate(notebook)
    cells = {grade_id(cell): cell for cell in notebook.cells if grade_id(cell)}
    report, number = cells["check_scaled_scores"].outputs
    assert "This looks like" in report["data"]["text/html"] and number["data"]["text/plain"] == "0"
    assert cells["check_max_gradient"].outputs[1]["data"]["text/plain"] == "14"
    assert cells["check_scaled_scores"].source.startswith("check(scaled_scores)")
    for cell in notebook.cells:  # nbgrader would give points for a test cell without a number
        if is_grade(cell) and cell.cell_type == "code":
            assert cell.outputs[-1]["output_type"] == "execute_result"
            assert determine_grade(cell)[0] == float(cell.outputs[-1]["data"]["text/plain"])


def test_feedback_shows_points_and_runs_no_code_of_a_learner(graded):
    folders = graded[0]
    done = nbgrader("generate_feedback", LESSON, "--student", "04-raises", gradebook=folders.gradebook)
    assert done.returncode == 0, done.stderr
    page = (folders.feedback / "04-raises" / LESSON / f"{LESSON}.html").read_text()
    assert "<script>alert(1)" not in page and "<script>x" not in page
    assert "&lt; script" in page and "ValueError" in page
    assert "0 of 16 points" in page and "79 of 100 points" in page


def test_formgraders_button_grades_the_same_way_and_keeps_points_by_hand(graded, lesson):
    from nbgrader.api import Gradebook
    from nbgrader.apps.api import NbGraderAPI

    folders, config, _ = graded
    student = "97-changes-their-mind"  # no other test reads this student's scores
    before = scores(folders)
    with Gradebook(folders.db_url, folders.course_id) as gradebook:
        gradebook.find_grade("written_1", LESSON, LESSON, student).manual_score = 12.5
        gradebook.db.commit()
    hand_in(folders, lesson, student, full_answers(lesson, {"scaled_scores": WRONG}))
    answer = NbGraderAPI(config=config).autograde(LESSON, student)
    assert answer["success"], answer
    assert scores(folders) == before | {student: points(lesson, scaled_scores=0.0)}
    assert read_class(folders, LESSON).totals[student] == 79 + 12.5


def test_the_class_report_has_scores_problems_and_common_mistakes(graded):
    report = read_class(graded[0], LESSON)
    rows = {row["student"]: row for row in csv.DictReader(io.StringIO(as_csv(report)))}
    assert len(rows) == len(scores(graded[0])) and rows["03-named-mistake"]["total"] == "79"
    assert "cannot be read" in rows["98-unreadable"]["flags"]
    page = as_page(report)
    assert "divided by the width instead of its square root" in page
    assert "http" not in page.replace("http-equiv", "") and page.count("<script>") == 1  # the one that sorts the table
    assert "can only be observed inside it" in page


KILL = """
import os, signal
from helpers.grading.record import Recorder
write, calls = Recorder._write_gradebook, []
def deadly(*arguments):
    calls.append(1)
    if len(calls) == 2 and {before}:
        os.kill(os.getpid(), signal.SIGKILL)
    write(*arguments)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
Recorder._write_gradebook = deadly
"""


@pytest.mark.full
def test_a_killed_grader_finishes_with_the_same_scores_when_started_again(graded, tmp_path):
    """It is killed immediately before, and then immediately after, the second submission enters the gradebook."""
    folders, config = load(tmp_path)
    chosen = ["00-right", "01-blank", "02-half-right", "03-named-mistake"]
    for student in chosen:
        shutil.copytree(graded[0].submitted / student, folders.submitted / student)
    for before in (True, False):
        killed = course_grade(LESSON, gradebook=folders.gradebook, code=KILL.format(before=before))
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    seed = batch_seed(folders, LESSON)
    outcome = grade_lesson(folders, LESSON, config=config)
    assert (outcome.new, outcome.unchanged) == (2, 2)
    assert batch_seed(folders, LESSON) == seed
    everybody = scores(graded[0])
    assert scores(folders) == {student: everybody[student] for student in chosen}


class BrokenPool(FullPoints):
    """A pool whose self-test fails after a submission."""

    def judge(self, submissions, release, on_judged, hurried):
        if not hurried:
            raise GradingStopped("Stopped: the grader failed its own test after a submission.")
        return ((submission, None) for submission in submissions)


def test_a_grader_that_fails_its_self_test_records_nothing(lesson, tmp_path, monkeypatch):
    folders, config = load(tmp_path)
    hand_in(folders, lesson, "one", full_answers(lesson, {}))
    monkeypatch.setattr("helpers.grading.batch.Pool", BrokenPool)
    with pytest.raises(GradingStopped, match="failed its own test after"):
        grade_lesson(folders, LESSON, config=config)
    assert recorded(folders) == {} and not folders.result(LESSON, "one").exists()


def test_without_bubblewrap_nothing_is_graded_and_one_sentence_says_why(lesson, tmp_path, monkeypatch, capsys):
    folders, _ = load(tmp_path)
    hand_in(folders, lesson, "one", full_answers(lesson, {}))
    monkeypatch.setattr("shutil.which", lambda *arguments, **options: None)
    assert main(["grade", LESSON, "--gradebook", str(tmp_path)]) == 2
    output = capsys.readouterr().err
    assert "bubblewrap is not installed" in output and len(output.splitlines()) == 1
    assert recorded(folders) == {}


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["nope"], "There is no lesson 'nope'"),
        ([LESSON], "Nobody has handed in 04_scaling"),
        ([LESSON, "--student", "nobody"], "No submission of 04_scaling by nobody"),
        (["00_start_here"], "has no exercises to grade"),
    ],
)
def test_invalid_arguments_of_course_grade_are_answered_in_one_sentence(lesson, tmp_path, capsys, arguments, sentence):
    if "nobody" in arguments:
        hand_in(load(tmp_path)[0], lesson, "one", {})
    assert main(["grade", *arguments, "--gradebook", str(tmp_path)]) == 2
    output = capsys.readouterr().err
    assert sentence in output and len(output.splitlines()) == 1


@pytest.mark.full
def test_a_sample_class_gets_the_scores_it_was_made_for(tmp_path, capsys):
    arguments = [LESSON, "--folder", str(tmp_path / "sample"), "--cell-seconds", "4", "--students", "4"]
    assert sample_class.main(arguments) == 0  # `make grade` has thirty
    output = capsys.readouterr().out
    assert "32 scores, none other than deserved" in output and "commonest mistakes" in output
    feedback = tmp_path / "sample" / "feedback"
    assert len(list(feedback.glob(f"*/{LESSON}/{LESSON}.html"))) == 4


def test_a_sample_class_never_overwrites_a_real_class(tmp_path, capsys):
    (tmp_path / "submitted").mkdir()
    assert sample_class.main([LESSON, "--folder", str(tmp_path)]) == 2
    assert "nothing was changed" in capsys.readouterr().err and (tmp_path / "submitted").is_dir()


def test_scripts_in_outputs_of_learners_are_left_out():
    output = safe_output(
        {
            "output_type": "execute_result",
            "data": {
                "text/plain": ["a", "b"],
                "application/javascript": "alert(1)",
                "image/png": "not base64!",
                "image/svg+xml": "<svg onload=a()>",
            },
        }
    )
    assert output["data"] == {"text/plain": "ab"} and output["output_type"] == "display_data"
    assert safe_output({"output_type": "widget"}) is None


def test_points_are_written_as_plain_numbers():
    assert [plain_number(x) for x in (0, 12.0, 13.5)] == ["0", "12", "13.5"]
