"""The report over all lessons: points, students who fell behind and why, and the hardest exercises of each lesson."""

import csv
import io
import re

import pytest

from helpers.__main__ import main
from helpers.grading.class_scores import ClassReport, Column, Row
from helpers.grading.course_report import Student, fell_behind, fraction, lesson_row
from helpers.grading.nbgrader_insides import open_gradebook
from helpers.grading.record import Result
from tests import lab
from tests.sample_class import enroll, hand_in
from tests.test_regrade import LESSON, answers, grade


def course(**points: list[float | None]) -> tuple[list[ClassReport], Student]:
    """Return lessons with an exercise and a written question of ten points each, and a student with the given points.
    None: no submission. A single number: the written question waits for a person."""
    lessons, one = [], Student("ada", "Ada Lovelace", ("lovelace", "ada", "ada"))
    for name, given in points.items():
        columns = [Column("check_a", "a", "exercise", 10.0), Column("written_1", "written_1", "written", 10.0)]
        report = ClassReport(name, columns, title=name)
        lessons.append(report)
        if given is None:
            report.missing, one.missing = ["ada"], [*one.missing, name]
            continue
        scores = dict(zip(("check_a", "written_1"), [*given, None][:2], strict=True))
        row = Row("ada", scores, sum(given), 0.0, [], "graded" if len(given) == 2 else "waits for a person")
        report.rows, one.rows[name] = [row], row
        report.results["ada"] = Result("ada", "", "", {}, {}, {}, [], None, False)
    return lessons, one


@pytest.mark.parametrize(
    "points, why",
    [
        ({"1": [10, 10], "2": [9, 9]}, []),
        ({"1": [10, 10], "2": [10]}, []),  # a waiting question counts neither way
        ({"1": [10, 10], "2": None}, ["nothing since 1"]),
        ({"1": None, "2": None}, ["nothing handed in at all"]),
        ({"1": None, "2": [10, 10], "3": None, "4": [9, 9]}, ["2 of 4 lessons missing"]),
        ({"1": None, "2": [10, 10]}, []),  # a gap that was followed by a good lesson
        ({"1": [10, 10], "2": [10, 8], "3": [6, 6]}, ["60% in 3, 95% before"]),
        ({"1": [10, 10], "2": [8, 8]}, []),
        ({"1": [4, 4], "2": [4, 4]}, ["40% of the points so far"]),
    ],
)
def test_reasons_for_falling_behind(points, why):
    lessons, one = course(**points)
    assert fell_behind(one, lessons) == why


def test_the_hardest_exercises_and_most_common_mistakes_of_a_lesson():
    columns = [Column(f"check_{name}", name, "exercise", 4.0) for name in ("easy", "hard", "middle")]
    report = ClassReport("04_tiny", columns)
    for number in range(4):
        points = (4.0, 4.0 * (number == 0), 4.0 * (number < 2))
        scores = dict(zip((one.grade_id for one in columns), points, strict=True))
        report.rows.append(Row(f"s{number}", scores, sum(points), 0.0, []))
        mistakes = {"hard": ["scaled", "divided by d_k"]} if number else {"middle": ["rare", "rare one"]}
        report.results[f"s{number}"] = Result(f"s{number}", "", "", {}, {}, mistakes, [], None, False)
    found = lesson_row(report)
    assert found["hardest"] == ["hard (25% of the points)", "middle (50% of the points)"]
    assert found["common"] == ["divided by d_k in hard (3 students)"]
    assert fraction(report.rows[0], report) == 1.0


@pytest.fixture
def graded(folders, lesson):
    """A class of three with one graded lesson: one student on time, one late, one missing."""
    enroll(folders, ada="Ada Lovelace", ben="Ben <i>Berg", cyd="=1+1 Dorn")
    hand_in(folders, lesson, "ada", answers(lesson))
    hand_in(folders, lesson, "ben", answers(lesson, scaled_scores="# everything is wrong"))
    (folders.submitted / "ben" / LESSON / "timestamp.txt").write_text("2026-11-03 14:30:00 UTC")
    grade(folders)
    with open_gradebook(folders) as gradebook:
        gradebook.update_or_create_assignment(LESSON, duedate="2026-11-03 12:00:00 UTC")
    return folders


def test_the_page_and_the_csv_file_agree(graded, capsys):
    assert main(["report", "--gradebook", str(graded.gradebook)]) == 0
    assert "3 students, 1 lesson, 2 fell behind" in capsys.readouterr().out
    page = graded.report("course", "html").read_text(encoding="utf-8")
    rows = dict(re.findall(r'data-key="[^"]* (\w+)">(.*?)</tr>', page, re.DOTALL))
    assert "Ada Lovelace" in rows["ada"] and ">85</a> …" in rows["ada"]
    assert "2 hours 30 minutes late" in rows["ben"] and "Ben &lt;i&gt;Berg" in rows["ben"]
    assert "missing" in rows["cyd"]
    assert "nothing handed in at all" in page and "<script>hit" not in page
    table = csv.DictReader(io.StringIO(graded.report("course", "csv").read_text(encoding="utf-8"), newline=""))
    read = {row["student"]: row for row in table}
    assert (read["ada"][LESSON], read["ada"]["total"], read["ada"]["maximum"]) == ("85", "85", "100")
    assert read["ben"][f"{LESSON} status"] == "waits for a person; 2 hours 30 minutes late"
    assert (read["cyd"][f"{LESSON} status"], read["cyd"][LESSON]) == ("nothing handed in", "")
    assert read["cyd"]["name"] == "'=1+1 Dorn" and read["cyd"]["fell behind"] == "nothing handed in at all"
    links = set(re.findall(r'href="([^"]*)"', page))
    assert links and all((graded.report("course", "html").parent / link).is_file() for link in links)


def test_without_graded_lessons_there_is_a_message(tmp_path, capsys):
    assert main(["report", "--gradebook", str(tmp_path)]) == 2
    assert "Nothing is graded yet" in capsys.readouterr().err


@pytest.mark.full
def test_the_page_fits_a_narrow_screen_and_sorts(graded):
    main(["report", "--gradebook", str(graded.gradebook)])
    with lab.browser(width=390) as page:
        page.goto(graded.report("course", "html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.locator("#students thead button", has_text="total").click()
        page.locator("#students thead button", has_text="total").click()
        assert page.locator("#students tbody th").first.inner_text().startswith("Ada")
        assert lab.faults_by_day_and_night(page) == []
