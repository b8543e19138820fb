"""The scores of a class in one lesson, read from nbgrader's gradebook and the grader's results."""

import math
import re
import unicodedata
from dataclasses import dataclass, field
from typing import NamedTuple

from helpers.grading.due import lateness, read_due
from helpers.grading.folders import Folders
from helpers.grading.intake import find_submissions
from helpers.grading.lesson_release import course_release
from helpers.grading.nbgrader_insides import open_gradebook
from helpers.grading.record import Result, read_result
from helpers.grading.submission import Release

CHOICE = re.compile(r"^quiz_\d+ = [\"'](\w+)[\"']", re.MULTILINE)


@dataclass
class Column:
    """One graded cell. kind: "exercise", "bonus", "quiz" or "written"."""

    grade_id: str
    name: str
    kind: str
    worth: float


class Grade(NamedTuple):
    """The grade of one cell of one student, with fields named as in nbgrader's Grade."""

    student: str
    name: str
    score: float
    max_score: float
    auto_score: float | None
    manual_score: float | None
    needs_manual_grade: bool
    penalty: float | None

    @property
    def waits(self) -> bool:
        return bool(self.needs_manual_grade) and self.manual_score is None


@dataclass
class Row:
    """One student's row of the report.

    scores: by grade_id, None while an answer waits for manual grading. total: None if nothing could be graded.
    bonus: the part of the total that is bonus. late: seconds after nbgrader's due date, extensions included.
    unanswered: grade_ids without an answer. grades: the gradebook's. name: from the roster, may be empty. order: the
    sort key. feedback, page: URLs relative to the report; feedback is empty if there is no such page.
    """

    student: str
    scores: dict[str, float | None]
    total: float | None
    penalty: float
    notes: list[str]
    status: str = "graded"  # or "waits for a person", "not graded"
    bonus: float = 0.0
    late: float = 0.0
    unanswered: set[str] = field(default_factory=set)
    grades: list[Grade] = field(default_factory=list)
    name: str = ""
    order: tuple[str, ...] = ()
    feedback: str = ""
    page: str = ""

    @property
    def called(self) -> str:
        return called(self.student, self.name)

    @property
    def days_late(self) -> int:
        """Days late, where a day that has begun counts in full."""
        return math.ceil(self.late / 86_400)


@dataclass
class ClassReport:
    lesson: str
    columns: list[Column] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    results: dict[str, Result] = field(default_factory=dict)
    written_waiting: int = 0  # number of answers to written questions that wait for manual grading
    code_waiting: dict[str, list[str]] = field(default_factory=dict)  # student -> code answers that wait for it
    changed: dict[str, list[str]] = field(default_factory=dict)  # student -> answers changed since a person graded them
    missing: list[str] = field(default_factory=list)  # the gradebook's students without a submission
    names: dict[str, str] = field(default_factory=dict)  # student -> name, without students who have none
    orders: dict[str, tuple[str, ...]] = field(default_factory=dict)  # student -> sort key
    choices: dict[str, tuple[list[str], str]] = field(default_factory=dict)  # quiz -> its options and the right one
    title: str = ""  # of the lesson's notebook

    @property
    def totals(self) -> dict[str, float]:
        """The totals of all students who have one."""
        return {row.student: row.total for row in self.rows if row.total is not None}

    @property
    def readable(self) -> list[Row]:
        """The rows of all submissions that could be read. A person may have graded some answers of another one."""
        return [row for row in self.rows if not self.results[row.student].problem]

    @property
    def to_grade(self) -> int:
        return self.written_waiting + sum(map(len, self.code_waiting.values()))

    @property
    def worth(self) -> float:
        return sum(column.worth for column in self.columns if column.kind != "bonus")

    def called(self, student: str) -> str:
        return called(student, self.names.get(student, ""))


def called(student: str, name: str) -> str:
    """How a student is written in lists and sentences: the name with the id in parentheses, or the id alone."""
    return f"{name} ({student})" if name and name != student else student


def full_name(student) -> str:
    """The full name of an nbgrader Student, "" if there is none."""
    return f"{student.first_name or ''} {student.last_name or ''}".strip()


def alphabetical(student) -> tuple[str, ...]:
    """The sort key of an nbgrader Student, with Ångström under A. Each database sorts in its own way."""
    names = (unicodedata.normalize("NFKD", (name or "").casefold()) for name in (student.last_name, student.first_name))
    return (*("".join(char for char in name if not unicodedata.combining(char)) for name in names), student.id)


def graded_cells(gradebook, lesson: str) -> list[Grade]:
    """Every grade of every student in a lesson. Raises nbgrader's MissingEntry if nothing of it was ever graded."""
    from nbgrader import api

    rows = (
        gradebook.db.query(
            api.SubmittedAssignment.student_id,
            api.GradeCell.name,
            api.Grade.score,
            api.GradeCell.max_score,
            api.Grade.auto_score,
            api.Grade.manual_score,
            api.Grade.needs_manual_grade,
            api.SubmittedNotebook.late_submission_penalty,
        )
        .select_from(api.Grade)
        .join(api.Grade.cell.of_type(api.GradeCell))
        .join(api.Grade.notebook)
        .join(api.SubmittedNotebook.assignment)
        .filter(api.SubmittedAssignment.assignment_id == gradebook.find_assignment(lesson).id)
    )
    return [Grade(*row) for row in rows]


def read_class(folders: Folders, lesson: str) -> ClassReport:
    """Read the scores of all students who were graded in a lesson, manual scores included."""
    release = course_release(folders.executed(lesson))
    report = ClassReport(lesson, title=release.title, choices=_choices(release))
    positions = {grade_id: position for position, grade_id in enumerate(release.graded)}

    def position_in_lesson(cell) -> int:
        return positions.get(cell.name, len(positions))

    with open_gradebook(folders) as gradebook:
        cells = gradebook.find_notebook(lesson, lesson).grade_cells
        report.columns = [_column(cell) for cell in sorted(cells, key=position_in_lesson)]
        due = read_due(folders, gradebook, lesson)
        submissions = gradebook.assignment_submissions(lesson)
        late = {submission.student_id: due.late(submission.total_seconds_late) for submission in submissions}
        students = gradebook.students
        report.names = {student.id: name for student in students if (name := full_name(student))}
        report.orders = {student.id: alphabetical(student) for student in students}
        grades: dict[str, list[Grade]] = {}
        for grade in sorted(graded_cells(gradebook, lesson), key=position_in_lesson):
            grades.setdefault(grade.student, []).append(grade)
        for student in sorted(grades, key=report.orders.__getitem__):
            result = read_result(folders, lesson, student)
            if result is not None:  # Without a result, recording was interrupted, and the next run grades this again.
                report.results[student] = result
                report.rows.append(_row(report, grades[student], result, late.get(student, 0.0), str(due)))
        submitted = {*find_submissions(folders.submitted, lesson), *report.results}
        report.missing = sorted(report.orders.keys() - submitted, key=report.orders.__getitem__)
    return report


def _row(report: ClassReport, grades: list[Grade], result: Result, late: float, due: str) -> Row:
    """Make one student's row, and add to the counts of `report`. late: in seconds. due: the due date in words."""
    student, penalty = grades[0].student, grades[0].penalty or 0.0
    scores = {grade.name: None if grade.waits else grade.score for grade in grades}
    given = [score for score in scores.values() if score is not None]
    bonus = sum(scores.get(column.grade_id) or 0.0 for column in report.columns if column.kind == "bonus")
    row = Row(student, scores, None, penalty, [], "graded", bonus, late, grades=grades)
    row.name, row.order = report.names.get(student, ""), report.orders[student]
    if given:
        row.total = sum(grade.score for grade in grades) - penalty
    if len(given) < len(scores):
        row.status = "waits for a person" if given else "not graded"
    row.unanswered = {grade.name for grade in grades if is_unanswered(grade, result)}
    waiting = [grade.name for grade in grades if grade.waits]
    if not result.problem:
        code = [name.removeprefix("check_") for name in waiting if name.startswith("check_")]
        report.written_waiting += len(waiting) - len(code)
        report.code_waiting |= {student: code} if code else {}
    if changed := [name for name in waiting if name in result.changed]:
        report.changed[student] = [name.removeprefix("check_") for name in changed]
        was = ", ".join(f"{name.removeprefix('check_')}, which had {number(result.changed[name])}" for name in changed)
        several = f"{len(changed)} answers changed since you graded them"
        row.notes.append(f"{several if len(changed) > 1 else '1 answer changed since you graded it'}: {was}")
    row.notes += [f"handed in {lateness(late)} late ({due})"] if late else []
    row.notes += [text for text in [result.problem, *result.flags] if text]
    return row


def number(value: float | None) -> str:
    """Points as text with at most two decimals, "" for None."""
    return "" if value is None else f"{round(value, 2):.10g}"


def _column(cell) -> Column:
    name = cell.name.removeprefix("check_")
    kind = "exercise" if cell.max_score > 0 else "bonus"
    if name.startswith("quiz_") or not cell.name.startswith("check_"):
        kind = "quiz" if name.startswith("quiz_") else "written"
    return Column(cell.name, name, kind, cell.max_score)


def is_unanswered(grade, result: Result | None) -> bool:
    """Whether a grade of zero means that there is no answer. nbgrader gives untouched written answers 0 by itself."""
    if grade.manual_score is not None or grade.needs_manual_grade or grade.score:
        return False
    if not grade.name.startswith("check_"):
        return True
    return result is not None and result.mistakes.get(grade.name.removeprefix("check_"), [""])[0] == "not_answered"


def _choices(release: Release) -> dict[str, tuple[list[str], str]]:
    """The options of each quiz, from the release, and the right one, from the solution."""
    right = {}
    for name, source in release.solved.items():
        if name.startswith("quiz_") and (match := CHOICE.search(source)):
            options = re.findall(r"[\"'](\w+)[\"']", release.graded[name]["source"])
            right[name] = (sorted({*options, match[1]}), match[1])
    return right
