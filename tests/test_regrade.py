"""Points by hand, unreadable submissions and feedback pages when submissions change and are graded again."""

import csv
import dataclasses
import io
import subprocess

import pytest
from nbconvert.filters import Highlight2HTML, ansi2html
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI

from helpers.__main__ import main
from helpers.grading.batch import grade_lesson
from helpers.grading.class_report import as_csv, as_page
from helpers.grading.class_scores import read_class
from helpers.grading.folders import ROOT, load
from helpers.grading.pool import Pool
from helpers.grading.record import _shown, safe_output
from helpers.grading.submission import ExerciseReport, SubmissionReport
from tests.growth import grows_as_a_square
from tests.sample_class import hand_in, hand_in_unreadable

LESSON = "04_scaling"
ODD_NAMES = ("Nan", "Inf", "-inf")


class FullPoints(Pool):
    """Stands in for batch.Pool. Every answer gets full points unless the code says "everything is wrong"."""

    jobs = 1

    def __init__(self, *arguments):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    def self_test(self, when):
        pass

    def judge(self, submissions, release, on_judged, hurried):
        return ((one, self.graded(one, release)) for one in submissions)

    def graded(self, submission, release):
        if submission.problem:
            return None
        right = "everything is wrong" not in submission.code()
        return SubmissionReport(
            {
                name: ExerciseReport(name, worth * right, worth, right, True, None, "", name, "")
                for name, worth in release.checks.items()
            }
        )


def answers(lesson, **changed):
    right = {name: lesson.solutions[name] for name in lesson.exercises}
    return right | {"written_1": "Because of the variance."} | changed


def grade(folders, *options) -> None:
    assert main(["grade", LESSON, "--gradebook", str(folders.gradebook), *options]) == 0


def by_hand(folders, student: str, cell: str, **facts) -> None:
    """Write what a person enters in Formgrader."""
    with Gradebook(folders.db_url, folders.course_id) as gradebook:
        grade = gradebook.find_grade(cell, LESSON, LESSON, student)
        for name, value in facts.items():
            setattr(grade, name, value)
        grade.needs_manual_grade = False
        gradebook.db.commit()


def recorded(folders, student: str, cell: str):
    """(points by hand, extra credit, whether the answer needs manual grading)."""
    with Gradebook(folders.db_url, folders.course_id) as gradebook:
        grade = gradebook.find_grade(cell, LESSON, LESSON, student)
        return grade.manual_score, grade.extra_credit, grade.needs_manual_grade


def table(folders) -> dict[str, dict[str, str]]:
    rows = csv.DictReader(io.StringIO(as_csv(read_class(folders, LESSON)), newline=""))
    return {row["student"]: row for row in rows}


def test_points_by_hand_are_kept_while_the_answer_is_unchanged(folders, lesson, capsys):
    hand_in(folders, lesson, "a", answers(lesson))
    grade(folders)
    assert recorded(folders, "a", "written_1") == (None, None, True)
    by_hand(folders, "a", "written_1", manual_score=12.5)
    by_hand(folders, "a", "check_max_gradient", manual_score=3.0)
    hand_in(folders, lesson, "a", answers(lesson, scaled_scores=lesson.solutions["scaled_scores"] + "\n# mended"))
    for options in ((), ("--force",)):
        grade(folders, *options)
        assert recorded(folders, "a", "written_1") == (12.5, None, False)
        assert recorded(folders, "a", "check_max_gradient") == (3.0, None, False)
    assert "changed since" not in capsys.readouterr().out + as_csv(read_class(folders, LESSON))


def test_a_changed_answer_loses_its_points_by_hand_and_is_reported(folders, lesson, capsys):
    hand_in(folders, lesson, "a", answers(lesson))
    hand_in(folders, lesson, "b", answers(lesson))
    grade(folders)
    for student in "ab":
        by_hand(folders, student, "written_1", manual_score=12.5)
        by_hand(folders, student, "check_max_gradient", manual_score=3.0)
    changed = answers(
        lesson, written_1="Something else.", max_gradient="# all new\n" + lesson.solutions["max_gradient"]
    )
    hand_in(folders, lesson, "a", changed)
    capsys.readouterr()
    for options in ((), ("--force",)):  # grading the same submission again changes nothing
        grade(folders, *options)
        assert recorded(folders, "a", "written_1") == (None, None, True)
        assert recorded(folders, "a", "check_max_gradient") == (None, None, True)
        assert recorded(folders, "b", "written_1") == (12.5, None, False)
        output = capsys.readouterr().out
        assert "2 answers changed since you graded them: a (max_gradient, written_1)" in output
        assert "1 written answer to grade by hand: course hand" in output
        assert "1 answer to read and grade in Formgrader (Manual Grading): a (max_gradient)" in output
        rows, page = table(folders), as_page(read_class(folders, LESSON))
        flag = "2 answers changed since you graded them: max_gradient, which had 3, written_1, which had 12.5"
        assert flag in rows["a"]["flags"]
        assert rows["a"]["written_1"] == "" and rows["a"]["status"] == "waits for a person" and not rows["b"]["flags"]
        assert "2</b><span>of them changed since you graded them" in page and "which had 12.5" in page
    by_hand(folders, "a", "written_1", manual_score=9.0)
    by_hand(folders, "a", "check_max_gradient", manual_score=12.0)
    grade(folders)
    assert "changed since" not in capsys.readouterr().out and table(folders)["a"]["status"] == "graded"


class DoublePoints(FullPoints):
    def graded(self, submission, release):
        report = super().graded(submission, release)
        for name, one in report.verdicts.items():
            report.verdicts[name] = dataclasses.replace(one, points=2 * one.points)
        return report


def test_a_new_version_of_the_lesson_regrades_all_within_the_maximum_points(folders, lesson, monkeypatch):
    hand_in(folders, lesson, "a", answers(lesson))
    for version, pool in (("one", FullPoints), ("two", DoublePoints)):
        monkeypatch.setattr("helpers.grading.batch.Pool", pool)
        monkeypatch.setattr("helpers.grading.batch.lesson_fingerprint", lambda *_, version=version: version)
        outcome = grade_lesson(folders, LESSON, config=load(folders.gradebook)[1])
        assert (outcome.new, outcome.unchanged) == (1, 0)
        assert read_class(folders, LESSON).totals == {"a": 85}


def test_points_by_hand_are_reviewed_if_the_automatic_score_changes(folders, lesson):
    hand_in(folders, lesson, "a", answers(lesson))
    grade(folders)
    by_hand(folders, "a", "check_max_gradient", manual_score=3.0)
    hand_in(folders, lesson, "a", answers(lesson, scaled_scores="# everything is wrong"))
    grade(folders)
    assert recorded(folders, "a", "check_max_gradient") == (None, None, True)


def test_a_new_weights_file_beside_the_notebook_is_a_new_submission(folders, lesson, capsys):
    hand_in(folders, lesson, "a", answers(lesson))
    for new in (1, 0, 1):
        grade(folders)
        assert f"{new} new, {1 - new} unchanged" in capsys.readouterr().out
        if not new:
            (folders.submitted / "a" / LESSON / "model.safetensors").write_bytes(b"numbers")


def test_an_unreadable_submission_has_no_total_anywhere(folders, lesson, capsys):
    for student in ("a", "b"):
        hand_in(folders, lesson, student, answers(lesson))
    hand_in_unreadable(folders, LESSON, "c")
    grade(folders, "--feedback")
    report, rows = read_class(folders, LESSON), table(folders)
    assert report.totals == {"a": 85, "b": 85} and "mean 85.0" in capsys.readouterr().out
    assert [rows["c"][name] for name in ("total", "bonus", "status", "scaled_scores")] == ["", "", "not graded", ""]
    assert [rows["a"][name] for name in ("total", "maximum", "status")] == ["85", "100", "waits for a person"]
    assert score_on_page(folders, "a")
    assert "2 from 80 points" in as_page(report) and "from 0 points" not in as_page(report)


@pytest.mark.full
def test_a_class_with_only_unreadable_submissions_has_a_report(folders, capsys):
    hand_in_unreadable(folders, LESSON, "c")
    grade(folders)
    assert "mean" not in capsys.readouterr().out and "Totals</h2>" not in as_page(read_class(folders, LESSON))


def score_on_page(folders, student: str) -> bool:
    """Whether the feedback page shows full points."""
    return "85 of 100 points" in (folders.feedback / student / LESSON / f"{LESSON}.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("way", ["course grade", "Formgrader", "nbgrader"])
def test_feedback_is_up_to_date_after_a_regrade(folders, lesson, way):
    hand_in(folders, lesson, "a", answers(lesson))
    grade(folders, "--feedback")
    assert score_on_page(folders, "a")
    hand_in(folders, lesson, "a", answers(lesson, scaled_scores="# everything is wrong"))
    config = load(folders.gradebook)[1]
    if way == "course grade":
        grade(folders)
    else:
        assert NbGraderAPI(config=config).autograde(LESSON, "a")["success"]
        assert NbGraderAPI(config=config).generate_feedback(LESSON, force=way == "Formgrader")["success"]
    assert not score_on_page(folders, "a")


@pytest.mark.full
def test_a_name_that_looks_like_a_number_stays_a_name(folders, lesson):
    for name in ODD_NAMES:
        hand_in(folders, lesson, name, answers(lesson))
    grade(folders, "--feedback")
    assert all(score_on_page(folders, name) for name in ODD_NAMES)
    assert {row.student for row in read_class(folders, LESSON).rows} == set(ODD_NAMES)
    assert set(table(folders)) == {"Nan", "Inf", "'-inf"}


GROWING_CODE = {
    "blank lines": lambda n: "x = 1\n" + "\n" * n + "y",
    "spaces": lambda n: "x = 1\n" + " " * n + "y",
    "blank lines here and there": lambda n: ("\n" * 150 + "x") * (n // 150),
    "a chain of names": lambda n: "x = a" + ".b" * (n // 3),
    "a product": lambda n: "x = " + "a*" * (n // 3) + "1",
}


@pytest.mark.parametrize("name", GROWING_CODE)
def test_highlighting_long_code_does_not_take_quadratic_time(name):
    highlight = Highlight2HTML(pygments_lexer="ipython3")
    assert not grows_as_a_square(GROWING_CODE[name], lambda code: highlight(_shown(code)), 3_000)


GROWING_TEXT = {
    "colors": lambda n: "\x1b[31ma" * n,
    "colors without an end": lambda n: "\x1b[31" * n,
    "bare escapes": lambda n: "\x1b" * n,
    "one long color": lambda n: "\x1b[" + "1;" * n,
}


@pytest.mark.parametrize("name", GROWING_TEXT)
def test_converting_terminal_colors_does_not_take_quadratic_time(name):
    def page(text: str) -> str:
        return ansi2html(safe_output({"output_type": "stream", "text": text})["text"])

    assert not grows_as_a_square(GROWING_TEXT[name], page, 6_000)


def test_a_colored_traceback_keeps_its_colors():
    assert safe_output({"output_type": "stream", "text": "\x1b[31mred\x1b[0m"})["text"] == "\x1b[31mred\x1b[0m"


@pytest.mark.parametrize(
    "path",
    (
        "gradebook/gradebook.db class_b/submitted/a/04_scaling/04_scaling.ipynb "
        "class_b/feedback/a/04_scaling/04_scaling.html class_b/gradebook.db "
        "downloaded/04_scaling/archive/a.zip exported/04_scaling.csv grades.csv "
        "attention-course-04_scaling.zip"
    ).split(),
)
def test_git_ignores_files_with_student_data(path):
    result = subprocess.run(["git", "check-ignore", "-q", path], cwd=ROOT)
    if result.returncode == 128:
        pytest.skip("not a clone")
    assert result.returncode == 0
