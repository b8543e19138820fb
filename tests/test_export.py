"""`course export`: totals and feedback in each platform's format, without unfinished ones."""

import csv
import io
import json
import shutil
import zipfile

import nbformat
import pytest

from helpers.__main__ import main
from helpers.classroom.export import as_canvas, as_csv, as_moodle, read_totals
from helpers.classroom.platforms import PATTERNS
from helpers.grading.class_report import as_csv as report_csv
from helpers.grading.class_report import as_page
from helpers.grading.class_scores import read_class
from helpers.grading.intake import find_submissions, read_submission
from helpers.grading.lesson_release import read_release
from helpers.grading.nbgrader_insides import open_gradebook
from helpers.grading.record import Recorder
from helpers.grading.submission import ExerciseReport, SubmissionReport
from tests.test_collect import LESSON, OTHER, Class, local_time, notebook, zipped

ROSTER = """id,first_name,last_name,email,lms_user_id
ada,Ada,Lovelace,ada@x.org,11
jm,Jörg,Müller,jm@x.org,12
cyd,Cyd,=1+1,cyd@x.org,13
dan,Dan,Dorn,dan@x.org,14
"""


def record(group: Class, lesson: str = LESSON) -> None:
    """Record every submission of a lesson in the gradebook, with all exercises right."""
    release = read_release(group.folders.notebook(lesson))
    right = {
        name: ExerciseReport(name, worth, worth, True, True, None, "", "right", "<p>right</p>")
        for name, worth in release.checks.items()
    }
    with Recorder(group.folders, release, "lesson") as recorder:
        for student in find_submissions(group.folders.submitted, lesson):
            submission = read_submission(group.folders.submitted, student, release, group.folders.release)
            recorder.record(submission, None if submission.problem else SubmissionReport(right))


def give_points(group: Class, *students: str, lesson: str = LESSON, points: float = 10.5) -> None:
    """Grade the written question by hand, with a comment."""
    with open_gradebook(group.folders) as gradebook:
        for student in students:
            for name in read_release(group.folders.notebook(lesson)).written:
                grade = gradebook.find_grade(name, lesson, lesson, student)
                grade.manual_score, grade.needs_manual_grade = points, False
                gradebook.find_comment(name, lesson, lesson, student).manual_comment = "Well put."
        gradebook.db.commit()


def written(answer: str, lesson: str = LESSON) -> bytes:
    """Return a submission with a written answer, which waits for a person."""
    cells = json.loads(notebook(answer, lesson))
    for cell in cells["cells"]:
        facts = cell["metadata"].get("nbgrader", {})
        if facts.get("grade") and facts.get("solution"):
            cell["source"] = answer
    return json.dumps(cells).encode()


@pytest.fixture
def moodle(tmp_path, moodle_class) -> Class:
    shutil.copytree(moodle_class.folders.gradebook, tmp_path / "moodle" / "class")
    return Class(tmp_path / "moodle")


@pytest.fixture
def canvas(tmp_path, canvas_class) -> Class:
    shutil.copytree(canvas_class.folders.gradebook, tmp_path / "canvas" / "class")
    return Class(tmp_path / "canvas")


@pytest.fixture(scope="module")
def moodle_class(tmp_path_factory) -> Class:
    """Ada is graded, Jörg waits for a person, Cyd's notebook is empty, and Dan submitted nothing."""
    one = Class(tmp_path_factory.mktemp("moodle"))
    sheet = "Identifier,Full name,Email address\n" + "".join(
        f"Participant {number},{name},{email}\n"
        for number, name, email in (
            (101, "Ada Lovelace", "ada@x.org"),
            (102, "Jörg Müller", "jm@x.org"),
            (103, "Cyd =1+1", "cyd@x.org"),
            (104, "Dan Dorn", "dan@x.org"),
        )
    )
    folder = "{}_{}_assignsubmission_file_/04_scaling.ipynb"
    files = {
        folder.format("Ada Lovelace", 101): written("ada"),
        folder.format("Jörg Müller", 102): written("jörg"),
        folder.format("Cyd =1+1", 103): b"",
    }
    one.take(files, roster=sheet)
    record(one)
    give_points(one, "ada@x.org")
    return one


@pytest.fixture(scope="module")
def canvas_class(tmp_path_factory) -> Class:
    """Ada and Jörg are graded, Cyd waits for a person, and Dan submitted nothing."""
    one = Class(tmp_path_factory.mktemp("canvas"))
    files = {
        "lovelaceada_11_501_04_scaling.ipynb": written("ada"),
        "müllerjörg_LATE_12_502_04_scaling-1.ipynb": written("jörg"),
        "cyd11_13_503_work.zip": zipped({"04_scaling.ipynb": written("cyd")}),
    }
    one.take(files, roster=ROSTER)
    record(one)
    give_points(one, "ada", "jm")
    return one


def lines(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"))))


def total_of(group: Class, student: str, lesson: str = LESSON) -> str:
    return f"{read_class(group.folders, lesson).totals[student]:g}"


def test_csv_has_ids_email_maximum_and_status(moodle):
    text = as_csv(read_totals(moodle.folders, [LESSON]))
    assert text.startswith("\ufeff")  # without it Excel shows JÃ¶rg
    header, *rows = lines(text)
    table = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert table["ada@x.org"][LESSON] == total_of(moodle, "ada@x.org") != ""
    assert table["ada@x.org"]["maximum"] == "100" and table["jm@x.org"]["first_name"] == "Jörg"
    assert {student: row["status"] for student, row in table.items()} == {
        "ada@x.org": "graded",
        "jm@x.org": "waits for a person",
        "cyd@x.org": "not graded",
        "dan@x.org": "nothing handed in",
    }
    assert table["cyd@x.org"][LESSON] == table["dan@x.org"][LESSON] == ""


def test_a_collected_submission_that_is_not_graded_yet_is_not_missing(moodle):
    moodle.take({"Dan Dorn_104_assignsubmission_file_/x.ipynb": written("dan")})
    table = read_totals(moodle.folders, [LESSON])
    assert table.status(LESSON, "dan@x.org") == "not graded yet" and table.total("dan@x.org") is None


def test_export_as_moodles_grading_worksheet(moodle):
    text = as_moodle(read_totals(moodle.folders, [LESSON]))
    header, *rows = lines(text)
    # assignfeedback_offline needs these three columns, and the number after "Participant ".
    assert {"Identifier", "Grade", "Last modified (grade)"} <= set(header) and text.startswith("\ufeff")
    points = {row[0]: row[header.index("Grade")] for row in rows}
    assert points == {
        "Participant 101": total_of(moodle, "ada@x.org"),
        "Participant 102": "",  # waits for a person
        "Participant 103": "",
        "Participant 104": "",
    }


def test_export_as_canvas_gradebook(canvas):
    text = as_canvas(read_totals(canvas.folders, [LESSON]))
    header, possible, *rows = lines(text)
    assert header == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", LESSON]
    assert possible == ["    Points Possible", "", "", "", "", "100"] and not text.startswith("\ufeff")
    points = {row[1]: row[5] for row in rows}
    assert points == {"11": total_of(canvas, "ada"), "12": total_of(canvas, "jm"), "13": "", "14": ""}
    assert ["Müller, Jörg", "12"] == next(row[:2] for row in rows if row[1] == "12")


def test_export_of_all_lessons_with_a_total(canvas):
    again = {"lovelaceada_11_601_x.ipynb": written("ada", OTHER), "cyd11_13_602_x.ipynb": written("cyd", OTHER)}
    canvas.take(again, lesson=OTHER)
    record(canvas, OTHER)
    give_points(canvas, "ada", "cyd", lesson=OTHER)
    table = read_totals(canvas.folders, canvas.folders.lessons(), several=True)
    both = f"{float(total_of(canvas, 'ada')) + float(total_of(canvas, 'ada', OTHER)):g}"
    header, *rows = lines(as_csv(table))
    found = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert found["ada"]["total"] == both and found["ada"]["maximum"] == "200"
    assert found["jm"]["total"] == total_of(canvas, "jm")  # a missing submission has no points
    assert found["cyd"]["total"] == found["dan"]["total"] == ""
    assert found["cyd"]["status"] == f"{LESSON}: waits for a person"
    assert found["jm"]["status"] == f"{OTHER}: nothing handed in"
    header, *rows = lines(as_moodle(table))
    assert header[-3:] == [OTHER, LESSON, "Total"] and both in [row[-1] for row in rows]
    header, possible, *rows = lines(as_canvas(table))
    assert header[-1] == "Final Points" and possible[-1] == "(read only)"  # Canvas ignores both


def test_no_cell_is_a_formula(moodle, canvas):
    for one, write in ((moodle, as_csv), (moodle, as_moodle), (canvas, as_canvas)):
        cells = [cell for line in lines(write(read_totals(one.folders, [LESSON]))) for cell in line]
        assert any("=1+1" in cell for cell in cells)
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]


def pages(group: Class, *students: str) -> None:
    for student in students:
        page = group.folders.feedback / student / LESSON / f"{LESSON}.html"
        page.parent.mkdir(parents=True)
        page.write_text(f"<p>page of {student}</p>")


def export(group: Class, *more: str) -> int:
    return main(["export", *more, "--gradebook", str(group.folders.gradebook)])


def test_feedback_for_moodle_is_in_moodles_folders(moodle, capsys):
    pages(moodle, "ada@x.org", "jm@x.org", "dan@x.org")
    assert export(moodle, "4", "--format", "moodle", "--feedback") == 0
    with zipfile.ZipFile(moodle.folders.gradebook / "exported" / "04_scaling.moodle.feedback.zip") as archive:
        assert archive.namelist() == [
            "Ada Lovelace_101_assignsubmission_file_/04_scaling_feedback.html",
            "Jörg Müller_102_assignsubmission_file_/04_scaling_feedback.html",
        ]
        assert archive.read(archive.namelist()[0]) == b"<p>page of ada@x.org</p>"
        participants = [PATTERNS["moodle"].fullmatch(name.split("/")[0])["student_id"] for name in archive.namelist()]
        assert participants == ["101", "102"]
    printed = capsys.readouterr().out
    assert "feedback for 2" in printed and "left out, because they were not collected from Moodle: dan@x.org" in printed
    assert "waits for a person: jm@x.org" in printed and "nothing handed in: dan@x.org" in printed


def test_a_total_above_the_maximum_is_written_as_the_maximum_for_moodle(moodle, capsys):
    """Moodle's assignments refuse a higher grade, and the student would keep an old one or none."""
    give_points(moodle, "ada@x.org", points=25.0)
    assert total_of(moodle, "ada@x.org") == "110"
    assert export(moodle, LESSON, "--format", "moodle") == 0
    sheet = lines((moodle.folders.gradebook / "exported" / f"{LESSON}.moodle.csv").read_text("utf-8"))
    assert [row[3] for row in sheet if row[0] == "Participant 101"] == ["100"]
    assert "written as 100, because an assignment in Moodle takes no more: ada@x.org\n" in capsys.readouterr().out


def test_feedback_for_brightspace_lies_where_the_submission_lay(tmp_path):
    group = Class(tmp_path)
    name = "7-4242 - Ada Lovelace - Nov 10, 2026 930 AM"
    group.take({f"{name}/04_scaling.ipynb": notebook("ada"), "8" + name[1:] + " - a - b.ipynb": notebook("eight")})
    record(group)
    pages(group, *group.students())
    assert export(group, LESSON, "--format", "brightspace", "--feedback") == 0
    with zipfile.ZipFile(group.folders.gradebook / "exported" / f"{LESSON}.brightspace.feedback.zip") as archive:
        assert archive.namelist() == [f"{name}/{LESSON}_feedback.html", f"8{name[1:]} - {LESSON}_feedback.html"]


def test_feedback_for_canvas_has_the_names_of_the_download(canvas):
    pages(canvas, "ada", "jm", "cyd")
    assert export(canvas, LESSON, "--format", "canvas", "--feedback") == 0
    with zipfile.ZipFile(canvas.folders.gradebook / "exported" / "04_scaling.canvas.feedback.zip") as archive:
        assert set(archive.namelist()) == {
            "lovelaceada_11_501_04_scaling.ipynb",
            "müllerjörg_LATE_12_502_04_scaling-1.ipynb",
            "cyd11_13_503_work.zip",
        }
        assert all(PATTERNS["canvas"].fullmatch(name) for name in archive.namelist())
        back = nbformat.reads(archive.read("lovelaceada_11_501_04_scaling.ipynb").decode(), as_version=4)
        with zipfile.ZipFile(io.BytesIO(archive.read("cyd11_13_503_work.zip"))) as inner:
            assert inner.read("04_scaling_feedback.html") == b"<p>page of cyd</p>"
    nbformat.validate(back)
    text = "\n".join(cell.source for cell in back.cells)
    assert "**10.5 of 15 points**" in text and "> Well put." in text and "**16 of 16 points**" in text


def test_feedback_for_canvas_on_a_saved_web_page_is_a_web_page(tmp_path):
    group = Class(tmp_path)
    group.take({"lovelaceada_11_501_04_scaling.html": b"<p>my answers</p>"})
    record(group)
    pages(group, *group.students())
    assert export(group, LESSON, "--format", "canvas", "--feedback") == 0
    with zipfile.ZipFile(group.folders.gradebook / "exported" / "04_scaling.canvas.feedback.zip") as archive:
        assert archive.read("lovelaceada_11_501_04_scaling.html") == b"<p>page of lovelaceada-11</p>"


def test_feedback_for_other_platforms_has_the_students_ids(moodle):
    pages(moodle, "ada@x.org")
    assert export(moodle, LESSON, "--format", "csv", "--feedback") == 0
    with zipfile.ZipFile(moodle.folders.gradebook / "exported" / "04_scaling.feedback.zip") as archive:
        assert archive.namelist() == ["ada@x.org/04_scaling.html"]


def test_report_and_csv_show_who_is_missing_and_who_is_late(moodle):
    with open_gradebook(moodle.folders) as gradebook:
        gradebook.update_or_create_assignment(LESSON, duedate=local_time("2026-11-03", "%Y-%m-%d"))
        gradebook.update_or_create_submission(LESSON, "ada@x.org", timestamp=local_time("2026-11-05 12", "%Y-%m-%d %H"))
    report = read_class(moodle.folders, LESSON)
    assert report.missing == ["dan@x.org"]
    page = as_page(report)
    assert (
        "1 of the class: Dan Dorn (dan@x.org)" in page and "handed in 2 days 12 hours late (due Tue 3 Nov 2026" in page
    )
    header, *rows = lines(report_csv(report))
    table = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert table["dan@x.org"]["status"] == "nothing handed in" and table["dan@x.org"]["total"] == ""
    assert table["ada@x.org"]["flags"].startswith("handed in 2 days 12 hours late (due Tue 3 Nov 2026, 00:00")
    header, *rows = lines(as_csv(read_totals(moodle.folders, [LESSON])))
    assert next(row for row in rows if row[0] == "ada@x.org")[header.index("days late")] == "3"


@pytest.mark.parametrize(
    "command, message",
    [
        ([LESSON, "--format", "csv"], "nothing is graded yet. Run `course grade 04_scaling` first."),
        (["--format", "csv"], "Name one lesson, or give --all"),
        (["nope", "--format", "csv"], "There is no lesson 'nope'"),
    ],
)
def test_an_impossible_export_is_refused_with_a_message(tmp_path, capsys, command, message):
    assert export(Class(tmp_path), *command) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_missing_feedback_is_reported_with_the_command_that_makes_it(moodle, capsys):
    assert export(moodle, LESSON, "--format", "moodle", "--feedback") == 2
    assert "`course grade 04_scaling --feedback`" in capsys.readouterr().err
