"""`course report`: all graded lessons on one page, students by lessons, and a CSV file of the same."""

import argparse
import statistics
from dataclasses import dataclass, field

from helpers.grading.class_report import difficulty, mistakes
from helpers.grading.class_scores import ClassReport, Row, called, number, read_class
from helpers.grading.due import lateness
from helpers.grading.folders import Folders, load, shown, write_atomically
from helpers.grading.pages import as_table, template
from helpers.grading.pool import GradingStopped

DROP, HALF = 0.25, 0.5  # of the points: so far below one's own earlier lessons, or so few of all, is falling behind
HARDEST, COMMONEST = 2, 3  # exercises and mistakes that are named of each lesson


@dataclass
class Student:
    """One student over the lessons. rows: by lesson, where something was handed in. behind: why, in words."""

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


@dataclass
class CourseReport:
    lessons: list[ClassReport]
    students: list[Student]

    @property
    def worth(self) -> float:
        return sum(report.worth for report in self.lessons)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gradebook", metavar="FOLDER", help="another class's folder (default: gradebook)")


def run(args: argparse.Namespace) -> int:
    folders, _ = load(args.gradebook)
    report = write_course_report(folders)
    behind = sum(bool(student.behind) for student in report.students)
    lessons = "1 lesson" if len(report.lessons) == 1 else f"{len(report.lessons)} lessons"
    print(f"{len(report.students)} students, {lessons}, {behind} fell behind")
    print(f"report: {shown(folders.report('course', 'html'))}   CSV: {shown(folders.report('course', 'csv'))}")
    return 0


def write_course_report(folders: Folders) -> CourseReport:
    report = read_course(folders)
    write_atomically(folders.report("course", "html"), as_page(report))
    write_atomically(folders.report("course", "csv"), as_csv(report))
    return report


def read_course(folders: Folders) -> CourseReport:
    from nbgrader.api import MissingEntry

    lessons = []
    for lesson in folders.lessons() if folders.gradebook.is_dir() else ():
        try:
            report = read_class(folders, lesson)
        except MissingEntry:  # nothing of it was ever graded
            continue
        if report.rows:
            lessons.append(report)
    if not lessons:
        raise GradingStopped("Nothing is graded yet. Run `course grade LESSON` first, as in: course grade 04_scaling")
    students: dict[str, Student] = {}
    for report in lessons:
        for row in report.rows:
            one = students.setdefault(row.student, Student(row.student, row.name, row.order))
            one.rows[report.lesson] = row
        for student in report.missing:
            name = report.names.get(student, "")
            students.setdefault(student, Student(student, name, report.orders[student])).missing.append(report.lesson)
    for one in students.values():
        one.behind = fell_behind(one, lessons)
    return CourseReport(lessons, sorted(students.values(), key=lambda one: one.order))


def fell_behind(student: Student, lessons: list[ClassReport]) -> list[str]:
    """Why a student fell behind, in words; empty where none of it holds. What a person has not graded yet counts
    neither as points nor as missing ones."""
    reasons = []
    if student.missing and student.missing[-1] == lessons[-1].lesson:
        since = next(i for i in range(len(lessons)) if all(one.lesson in student.missing for one in lessons[i:]))
        reasons.append(f"nothing since {lessons[since - 1].lesson}" if since else "nothing handed in at all")
    elif len(student.missing) > 1:
        reasons.append(f"{len(student.missing)} of {len(lessons)} lessons missing")
    fractions = [
        (report.lesson, earned)
        for report in lessons
        if report.lesson in student.rows and (earned := fraction(student.rows[report.lesson], report)) is not None
    ]
    if fractions:
        *before, (lesson, now) = fractions
        mean = statistics.mean(earned for _, earned in before) if before else 0.0
        if mean - now > DROP:
            reasons.append(f"{now:.0%} in {lesson}, {mean:.0%} before")
        elif statistics.mean(earned for _, earned in fractions) < HALF:
            reasons.append(f"{statistics.mean(earned for _, earned in fractions):.0%} of the points so far")
    return reasons


def fraction(row: Row, report: ClassReport) -> float | None:
    """Of the points of what is graded, what a student has; None where nothing is."""
    graded = [one for one in report.columns if one.kind != "bonus" and row.scores.get(one.grade_id) is not None]
    worth = sum(column.worth for column in graded)
    return sum(row.scores[column.grade_id] or 0.0 for column in graded) / worth if worth else None


def stumbled(report: ClassReport) -> dict:
    """What a lesson's class stumbled over most: its hardest exercises and its commonest mistakes."""
    known = [(value, column.name) for column in report.columns if (value := difficulty(report, column)) is not None]
    hardest = [f"{name} ({value:.0%} of the points)" for value, name in sorted(known)[:HARDEST] if value < 0.995]
    common = [one for one in mistakes(report) if one["count"] > 1][:COMMONEST]
    return {
        "lesson": report.lesson,
        "title": report.title or report.lesson,
        "handed_in": f"{len(report.rows)} of {len(report.rows) + len(report.missing)}",
        "late": sum(bool(row.late) for row in report.rows),
        "mean": f"{statistics.mean(report.totals.values()):.1f}" if report.totals else "–",
        "worth": number(report.worth),
        "hardest": hardest,
        "common": [f"{one['label']} in {one['exercise']} ({one['count']} students)" for one in common],
        "to_grade": report.to_grade,
    }


def _cell(student: Student, report: ClassReport) -> dict:
    """One student's lesson, as the page shows it."""
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


def as_page(report: CourseReport) -> str:
    """The whole page; everything in it that came from learners is escaped text."""
    return template("course_report.html.jinja", number=number).render(
        lessons=[stumbled(lesson) for lesson in report.lessons],
        students=[(student, [_cell(student, lesson) for lesson in report.lessons]) for student in report.students],
        behind=[student for student in report.students if student.behind],
        worth=number(report.worth),
    )


def as_csv(report: CourseReport) -> str:
    """One line a student: points and status of each lesson, the total, why one fell behind."""
    lessons = [name for lesson in report.lessons for name in (lesson.lesson, f"{lesson.lesson} status")]
    rows = [["student", "name", *lessons, "total", "maximum", "fell behind"]]
    for student in report.students:
        cells = [student.student, student.name]
        for lesson in report.lessons:
            row = student.rows.get(lesson.lesson)
            cells += [number(row.total) if row else "", _status(student, lesson.lesson)]
        cells += [number(student.total), number(report.worth), "; ".join(student.behind)]
        rows.append(cells)
    return as_table(rows)


def _status(student: Student, lesson: str) -> str:
    row = student.rows.get(lesson)
    if row is None:
        return "nothing handed in" if lesson in student.missing else "not graded yet"
    return f"{row.status}; {lateness(row.late)} late" if row.late else row.status
