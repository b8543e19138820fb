"""`course report`: a page with the scores of all students in all graded lessons, and the same as a CSV file."""

import argparse
import statistics
from dataclasses import dataclass, field

from helpers.grading.class_report import difficulty, mistakes
from helpers.grading.class_scores import ClassReport, Row, called, number, read_class
from helpers.grading.due import lateness
from helpers.grading.folders import Folders, load, shown, write_atomically
from helpers.grading.pool import GradingStopped
from helpers.grading.safe_text import as_table, template

# A student has fallen behind if the fraction of points drops this far below earlier lessons, or is less than half.
DROP, HALF = 0.25, 0.5
HARDEST, COMMONEST = 2, 3  # number of exercises and of mistakes that are listed for each lesson


@dataclass
class Student:
    """One student. order: the sort key. rows: by lesson, for lessons with a submission. missing: lessons without one.
    behind: the reasons why the student fell behind, in words, or none."""

    student: str
    name: str
    order: tuple[str, ...]
    rows: dict[str, Row] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)

    @property
    def called(self) -> str:
        return called(self.student, self.name)

    @property
    def total(self) -> float | None:
        given = [row.total for row in self.rows.values() if row.total is not None]
        return sum(given) if given else None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gradebook", metavar="FOLDER", help="another class's folder (default: gradebook)")


def run(args: argparse.Namespace) -> int:
    folders, _ = load(args.gradebook)
    lessons, students = read_course(folders)
    write_atomically(folders.report("course", "html"), as_page(lessons, students))
    write_atomically(folders.report("course", "csv"), as_csv(lessons, students))
    behind = sum(bool(student.behind) for student in students)
    count = "1 lesson" if len(lessons) == 1 else f"{len(lessons)} lessons"
    print(f"{len(students)} students, {count}, {behind} fell behind")
    print(f"report: {shown(folders.report('course', 'html'))}   CSV: {shown(folders.report('course', 'csv'))}")
    return 0


def read_course(folders: Folders) -> tuple[list[ClassReport], list[Student]]:
    """Read the lessons of which something was graded, and the students, sorted by name."""
    from nbgrader.api import MissingEntry

    lessons = []
    for lesson in folders.lessons() if folders.gradebook.is_dir() else ():
        try:
            report = read_class(folders, lesson)
        except MissingEntry:  # Nothing of this lesson was ever graded.
            continue
        if report.rows:
            lessons.append(report)
    if not lessons:
        raise GradingStopped("Nothing is graded yet. Run `course grade LESSON` first, as in: course grade 04_scaling")
    students: dict[str, Student] = {}
    for report in lessons:
        for row in report.rows:
            student = students.setdefault(row.student, Student(row.student, row.name, row.order))
            student.rows[report.lesson] = row
        for student_id in report.missing:
            student = Student(student_id, report.names.get(student_id, ""), report.orders[student_id])
            students.setdefault(student_id, student).missing.append(report.lesson)
    for student in students.values():
        student.behind = fell_behind(student, lessons)
    return lessons, sorted(students.values(), key=lambda student: student.order)


def fell_behind(student: Student, lessons: list[ClassReport]) -> list[str]:
    """The reasons why a student fell behind, in words, or none. Answers that a person has not graded yet are left out
    of the points and of the maximum."""
    reasons = []
    if student.missing and student.missing[-1] == lessons[-1].lesson:
        since = next(i for i in range(len(lessons)) if all(later.lesson in student.missing for later in lessons[i:]))
        reasons.append(f"nothing since {lessons[since - 1].lesson}" if since else "nothing handed in at all")
    elif len(student.missing) > 1:
        reasons.append(f"{len(student.missing)} of {len(lessons)} lessons missing")
    handed_in = [report for report in lessons if report.lesson in student.rows]
    fractions = {report.lesson: fraction(student.rows[report.lesson], report) for report in handed_in}
    earned = {lesson: value for lesson, value in fractions.items() if value is not None}
    if earned:
        *earlier, last = earned.values()
        earlier_mean = statistics.mean(earlier) if earlier else 0.0
        if earlier_mean - last > DROP:
            reasons.append(f"{last:.0%} in {[*earned][-1]}, {earlier_mean:.0%} before")
        elif (mean := statistics.mean(earned.values())) < HALF:
            reasons.append(f"{mean:.0%} of the points so far")
    return reasons


def fraction(row: Row, report: ClassReport) -> float | None:
    """The fraction that a student has of the points of all graded exercises; None if none is graded."""
    columns = [column for column in report.columns if column.kind != "bonus"]
    graded = [column for column in columns if row.scores.get(column.grade_id) is not None]
    worth = sum(column.worth for column in graded)
    return sum(row.scores[column.grade_id] or 0.0 for column in graded) / worth if worth else None


def lesson_row(report: ClassReport) -> dict:
    """The template's row for one lesson, with its hardest exercises and its most frequent mistakes."""
    means = [(mean, column.name) for column in report.columns if (mean := difficulty(report, column)) is not None]
    hardest = [f"{name} ({mean:.0%} of the points)" for mean, name in sorted(means)[:HARDEST] if mean < 0.995]
    common = [mistake for mistake in mistakes(report) if mistake["count"] > 1][:COMMONEST]
    return {
        "lesson": report.lesson,
        "title": report.title or report.lesson,
        "handed_in": f"{len(report.rows)} of {len(report.rows) + len(report.missing)}",
        "late": sum(bool(row.late) for row in report.rows),
        "mean": f"{statistics.mean(report.totals.values()):.1f}" if report.totals else "–",
        "worth": number(report.worth),
        "hardest": hardest,
        "common": ["{label} in {exercise} ({count} students)".format_map(mistake) for mistake in common],
        "to_grade": report.to_grade,
    }


def _cell(student: Student, report: ClassReport) -> dict:
    """The template's cell for one student in one lesson."""
    row = student.rows.get(report.lesson)
    if row is None:
        return {"kind": "none", "text": "missing"} if report.lesson in student.missing else {"kind": "", "text": "–"}
    earned = fraction(row, report)
    kind = "" if earned is None else "full" if earned > 0.9 else "part" if earned >= HALF else "none"
    return {
        "kind": kind,
        "text": number(row.total) or "not graded",
        "late": f"{lateness(row.late)} late" if row.late else "",
        "waits": row.status == "waits for a person",
        "page": f"{report.lesson}/{row.student}.html",
    }


def as_page(lessons: list[ClassReport], students: list[Student]) -> str:
    """The report as an HTML page. All text that came from learners is escaped."""
    return template("course_report.html.jinja", number=number).render(
        lessons=[lesson_row(lesson) for lesson in lessons],
        students=[(student, [_cell(student, lesson) for lesson in lessons]) for student in students],
        behind=[student for student in students if student.behind],
        worth=number(sum(lesson.worth for lesson in lessons)),
    )


def as_csv(lessons: list[ClassReport], students: list[Student]) -> str:
    """One line per student: points and status of each lesson, the total, and why the student fell behind."""
    names = [name for lesson in lessons for name in (lesson.lesson, f"{lesson.lesson} status")]
    rows = [["student", "name", *names, "total", "maximum", "fell behind"]]
    worth = number(sum(lesson.worth for lesson in lessons))
    for student in students:
        cells = [student.student, student.name]
        for name in (lesson.lesson for lesson in lessons):
            if row := student.rows.get(name):
                late = f"; {lateness(row.late)} late" if row.late else ""
                cells += [number(row.total), f"{row.status}{late}"]
            else:
                cells += ["", "nothing handed in" if name in student.missing else "not graded yet"]
        rows.append([*cells, number(student.total), worth, "; ".join(student.behind)])
    return as_table(rows)
