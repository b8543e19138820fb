"""What a class has in one lesson, read from nbgrader's gradebook and the grader's results."""

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
    """One graded cell. kind: exercise, bonus, quiz or written."""

    grade_id: str
    name: str
    kind: str
    worth: float


class Grade(NamedTuple):
    """One graded cell of one student; the fields are called as those of nbgrader's Grade."""

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
    """One student. scores by grade_id, None while one waits for a person; total: None where nothing could be graded.

    name: as the roster has it, empty where it has none; order: what rows are sorted by. late: seconds after nbgrader's
    due date, extensions included. unanswered: grade_ids without an answer. grades: what the gradebook has of the cells.
    feedback, page: addresses as seen from the report; feedback is empty where there is no page.
    """

    student: str
    scores: dict[str, float | None]
    total: float | None
    penalty: float
    notes: list[str]
    status: str = "graded"  # or "waits for a person", "not graded"
    bonus: float = 0.0  # of the total
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
        """Begun days."""
        return math.ceil(self.late / 86_400)


@dataclass
class ClassReport:
    lesson: str
    columns: list[Column] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    results: dict[str, Result] = field(default_factory=dict)
    written_waiting: int = 0  # answers to written questions that wait for a person
    code_waiting: dict[str, list[str]] = field(default_factory=dict)  # student -> other answers that do
    changed: dict[str, list[str]] = field(default_factory=dict)  # student -> answers that a person graded as others
    missing: list[str] = field(default_factory=list)  # of the gradebook's students, who handed in nothing
    names: dict[str, str] = field(default_factory=dict)  # of all students of the gradebook that have one
    orders: dict[str, tuple[str, ...]] = field(default_factory=dict)  # what all students are sorted by
    choices: dict[str, tuple[list[str], str]] = field(default_factory=dict)  # quiz -> its options and the right one
    title: str = ""  # of the lesson's notebook

    @property
    def totals(self) -> dict[str, float]:
        """Of those who have one."""
        return {row.student: row.total for row in self.rows if row.total is not None}

    @property
    def to_grade(self) -> int:
        return self.written_waiting + sum(map(len, self.code_waiting.values()))

    @property
    def worth(self) -> float:
        return sum(column.worth for column in self.columns if column.kind != "bonus")

    def called(self, student: str) -> str:
        return called(student, self.names.get(student, ""))


def called(student: str, name: str) -> str:
    """A student in a list or a sentence: the name with the id, or the id alone."""
    return f"{name} ({student})" if name and name != student else student


def full_name(student) -> str:
    """The name of one of nbgrader's students."""
    return f"{student.first_name or ''} {student.last_name or ''}".strip()


def alphabetical(student) -> tuple[str, ...]:
    """What one of nbgrader's students is sorted by, Ångström under A; each database has an alphabet of its own."""
    names = (unicodedata.normalize("NFKD", (name or "").casefold()) for name in (student.last_name, student.first_name))
    return (*("".join(char for char in name if not unicodedata.combining(char)) for name in names), student.id)


def graded_cells(gradebook, lesson: str) -> list[Grade]:
    """Every graded cell of every student of a lesson. MissingEntry where nothing of it was ever graded."""
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
    """The scores of everybody who was graded, hand-given ones included."""
    release = course_release(folders.executed(lesson))
    report = ClassReport(lesson, title=release.title, choices=_choices(release))
    with open_gradebook(folders) as gradebook:
        places = {grade_id: place for place, grade_id in enumerate(release.graded)}
        cells = gradebook.find_notebook(lesson, lesson).grade_cells
        report.columns = [_column(cell) for cell in sorted(cells, key=lambda one: places.get(one.name, len(places)))]
        due = read_due(folders, gradebook, lesson)
        late = {one.student_id: due.late(one.total_seconds_late) for one in gradebook.assignment_submissions(lesson)}
        students = {one.id: one for one in gradebook.students}
        report.names = {student: name for student, one in students.items() if (name := full_name(one))}
        report.orders = {student: alphabetical(one) for student, one in students.items()}
        grades: dict[str, list[Grade]] = {}
        for grade in sorted(graded_cells(gradebook, lesson), key=lambda one: places.get(one.name, len(places))):
            grades.setdefault(grade.student, []).append(grade)
        for student in sorted(grades, key=report.orders.__getitem__):
            result = read_result(folders, lesson, student)
            if result is not None:  # else its recording was cut short; it is graded again next time
                report.results[student] = result
                report.rows.append(_row(report, grades[student], result, late.get(student, 0.0), str(due)))
        there = {*find_submissions(folders.submitted, lesson), *report.results}
        report.missing = sorted(students.keys() - there, key=report.orders.__getitem__)
    return report


def _row(report: ClassReport, grades: list[Grade], result: Result, late: float, due: str) -> Row:
    """One student's row, and what it adds to the counts of the class."""
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
    return "" if value is None else f"{round(value, 2):.10g}"


def _column(cell) -> Column:
    name = cell.name.removeprefix("check_")
    kind = "exercise" if cell.max_score > 0 else "bonus"
    if name.startswith("quiz_") or not cell.name.startswith("check_"):
        kind = "quiz" if name.startswith("quiz_") else "written"
    return Column(cell.name, name, kind, cell.max_score)


def is_unanswered(grade, result: Result | None) -> bool:
    """Whether a cell without points has no answer at all; nbgrader gives an untouched written one 0 at once."""
    if grade.manual_score is not None or grade.needs_manual_grade or grade.score:
        return False
    if not grade.name.startswith("check_"):
        return True
    return result is not None and result.mistakes.get(grade.name.removeprefix("check_"), [""])[0] == "not_answered"


def _choices(release: Release) -> dict[str, tuple[list[str], str]]:
    """quiz -> its options, as the release names them, and the right one, as the solution has it."""
    right = {}
    for name, source in release.solved.items():
        if name.startswith("quiz_") and (match := CHOICE.search(source)):
            options = re.findall(r"[\"'](\w+)[\"']", release.graded[name]["source"])
            right[name] = (sorted({*options, match[1]}), match[1])
    return right
