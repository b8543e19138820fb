"""The class report: one page of HTML that needs nothing else, and a CSV file for a learning platform."""

from __future__ import annotations

import csv
import io
import re
import statistics
from collections import Counter
from dataclasses import dataclass, field

from helpers.grading.folders import Folders
from helpers.grading.record import Result, read_result, write_atomically


@dataclass
class Column:
    """One graded cell. kind: exercise, bonus, quiz or written."""

    grade_id: str
    name: str
    kind: str
    worth: float


@dataclass
class Row:
    """One student. scores by grade_id, None while one waits for a person; total: None where nothing could be graded."""

    student: str
    scores: dict[str, float | None]
    total: float | None
    penalty: float
    notes: list[str]
    status: str = "graded"  # or "waits for a person", "not graded"
    bonus: float = 0.0  # of the total


@dataclass
class ClassReport:
    lesson: str
    columns: list[Column] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    results: dict[str, Result] = field(default_factory=dict)
    to_grade: int = 0
    changed: dict[str, list[str]] = field(default_factory=dict)  # student -> answers that a person graded as others

    @property
    def totals(self) -> dict[str, float]:
        """Of those who have one."""
        return {row.student: row.total for row in self.rows if row.total is not None}

    @property
    def worth(self) -> float:
        return sum(column.worth for column in self.columns if column.kind != "bonus")


def write_report(folders: Folders, lesson: str) -> ClassReport:
    """Read everybody's scores from the gradebook, hand-given ones included, and write the page and the CSV file."""
    report = read_class(folders, lesson)
    write_atomically(folders.report(lesson, "html"), as_page(report))
    write_atomically(folders.report(lesson, "csv"), as_csv(report))
    return report


def read_class(folders: Folders, lesson: str) -> ClassReport:
    """The scores of everybody who was graded."""
    from nbgrader import api

    report = ClassReport(lesson)
    with api.Gradebook(folders.db_url, folders.course_id) as gradebook:
        for cell in gradebook.find_notebook(lesson, lesson).grade_cells:
            report.columns.append(_column(cell))
        order = _order(folders, lesson)
        report.columns.sort(key=lambda column: order.get(column.grade_id, len(order)))
        found = (
            gradebook.db.query(
                api.Student.id,
                api.GradeCell.name,
                api.Grade.score,
                api.Grade.manual_score,
                api.Grade.needs_manual_grade,
                api.SubmittedNotebook.late_submission_penalty,
            )
            .select_from(api.Grade)
            .join(api.GradeCell, api.GradeCell.id == api.Grade.cell_id)
            .join(api.SubmittedNotebook, api.SubmittedNotebook.id == api.Grade.notebook_id)
            .join(api.SubmittedAssignment, api.SubmittedAssignment.id == api.SubmittedNotebook.assignment_id)
            .join(api.Assignment, api.Assignment.id == api.SubmittedAssignment.assignment_id)
            .join(api.Student, api.Student.id == api.SubmittedAssignment.student_id)
            .filter(api.Assignment.name == lesson)
            .order_by(api.Student.id)
        )
        rows: dict[str, Row] = {}
        for student, grade_id, score, manual, waits, penalty in found:
            if student not in rows:
                result = read_result(folders, lesson, student)
                if result is None:  # its recording was cut short; it is graded again next time
                    continue
                report.results[student] = result
                notes = [text for text in [result.problem, *result.flags] if text]
                rows[student] = Row(student, {}, -(penalty or 0.0), penalty or 0.0, notes)
            row = rows[student]
            waiting = waits and manual is None
            row.scores[grade_id] = None if waiting else score
            row.total += score
            result = report.results[student]
            report.to_grade += bool(waiting) and not result.problem
            if waiting and grade_id in result.changed:
                report.changed.setdefault(student, []).append(grade_id.removeprefix("check_"))
    report.rows = list(rows.values())
    bonus = [column.grade_id for column in report.columns if column.kind == "bonus"]
    for row in report.rows:
        given = [score for score in row.scores.values() if score is not None]
        row.bonus = sum(row.scores.get(name) or 0.0 for name in bonus)
        if len(given) < len(row.scores):
            row.status = "waits for a person" if given else "not graded"
        if not given:
            row.total = None
        if names := report.changed.get(row.student):
            was = ", ".join(f"{name}, which had {_number(_earlier(report, row, name))}" for name in names)
            told = (
                "1 answer changed since you graded it"
                if len(names) == 1
                else f"{len(names)} answers changed since you graded them"
            )
            row.notes.insert(0, f"{told}: {was}")
    return report


def _earlier(report: ClassReport, row: Row, name: str) -> float:
    changed = report.results[row.student].changed
    return changed.get(name, changed.get(f"check_{name}"))


def _column(cell) -> Column:
    name = cell.name.removeprefix("check_")
    if name.startswith("quiz_"):
        kind = "quiz"
    elif not cell.name.startswith("check_"):
        kind = "written"
    else:
        kind = "exercise" if cell.max_score > 0 else "bonus"
    return Column(cell.name, name, kind, cell.max_score)


def _order(folders: Folders, lesson: str) -> dict[str, int]:
    from helpers.grading.intake import read_release

    return {grade_id: index for index, grade_id in enumerate(read_release(folders.notebook(lesson)).graded)}


def as_csv(report: ClassReport) -> str:
    """One line a student: each exercise, the total (with its bonus, of the maximum), what it waits for, and flags. No
    cell can be read as a formula."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    names = [_inert(column.name) for column in report.columns]
    writer.writerow(["student", "lesson", *names, "total", "maximum", "bonus", "status", "flags"])
    for row in report.rows:
        scores = [_number(row.scores.get(column.grade_id)) for column in report.columns]
        points = [_number(row.total), _number(report.worth), _number(row.bonus if row.total is not None else None)]
        cells = [row.student, report.lesson, *scores, *points, row.status, "; ".join(row.notes)]
        writer.writerow([_inert(cell) for cell in cells])
    return file.getvalue()


def _inert(cell: str) -> str:
    """Spreadsheets run a cell that begins like a formula; an apostrophe makes it text. Numbers stay numbers."""
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", cell):
        return cell
    return "'" + cell if cell.lstrip(" ")[:1] in ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%") else cell


def _number(value: float | None) -> str:
    return "" if value is None else f"{round(value, 2):g}"


def as_page(report: ClassReport) -> str:
    """The whole page; everything in it that came from learners is escaped text."""
    from jinja2 import Environment, PackageLoader

    pages = Environment(
        loader=PackageLoader("helpers.grading", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    pages.filters |= {"number": _number, "kind": _kind}
    return pages.get_template("class_report.html.jinja").render(
        lesson=report.lesson,
        to_grade=report.to_grade,
        facts=_facts(report),
        **_histogram(report),
        exercises=[_exercise(report, column) for column in report.columns],
        mistakes=_mistakes(report),
        flagged=[row for row in report.rows if row.notes],
        columns=report.columns,
        rows=report.rows,
        worth=f"{report.worth:g}",
        late=any(row.penalty for row in report.rows),
        unsafe=any(result.unsafe for result in report.results.values()),
    )


def _facts(report: ClassReport) -> list[tuple[str, str]]:
    totals = list(report.totals.values())
    changed = sum(map(len, report.changed.values()))
    facts = [(str(len(report.rows)), "submission" if len(report.rows) == 1 else "submissions")]
    if totals:
        facts += [
            (f"{statistics.mean(totals):.1f}", f"mean of {report.worth:g} points"),
            (f"{statistics.median(totals):.4g}", "median"),
            (str(report.to_grade), "answers to grade by hand"),
            *([(str(changed), "of them changed since you graded them")] if changed else []),
            (str(sum(bool(row.notes) for row in report.rows)), "submissions to look at"),
        ]
    return facts


def _histogram(report: ClassReport) -> dict:
    """How many students lie in each tenth of the points."""
    if not report.totals:
        return {}
    step = max(report.worth / 10, 1e-9)
    counts = Counter(min(int(max(total, 0) / step), 10) for total in report.totals.values())
    groups, most = max(10, max(counts) + 1), max(counts.values())
    bars = [
        {
            "x": 10 + group * 56,
            "height": 110 * counts[group] / most,
            "count": counts[group],
            "label": f"{group * step:.0f}",
        }
        for group in range(groups)
    ]
    return {
        "bars": bars,
        "told": "; ".join(f"{bar['count']} from {bar['label']} points" for bar in bars if bar["count"]),
    }


def _exercise(report: ClassReport, column: Column) -> dict:
    scores = [row.scores[column.grade_id] for row in report.rows if row.scores.get(column.grade_id) is not None]
    if column.kind == "bonus":
        full = sum(score > 0 for score in scores)
    else:
        full = sum(score >= column.worth - 1e-9 for score in scores)
    waiting = sum(_waits(row, report, column) for row in report.rows)
    return {
        "name": column.name,
        "worth": "bonus" if column.kind == "bonus" else f"{column.worth:g}",
        "told": "earned some" if column.kind == "bonus" else "full points",
        "answered": sum(_answered(row, report.results[row.student], column) for row in report.rows),
        "waiting": waiting,
        "share": f"{100 * full / len(scores) if scores else 0:.0f}",
        "choices": _choices(report, column.name) if column.kind == "quiz" else "",
        "mean": f"{statistics.mean(scores):.1f}" if scores and not waiting else "–",
    }


def _choices(report: ClassReport, quiz: str) -> str:
    """How many chose which wrong option; it costs no points, but a teacher wants to know."""
    chosen = Counter(
        result.mistakes[quiz][0].removeprefix("option_")
        for result in report.results.values()
        if result.mistakes.get(quiz, [""])[0].startswith("option_")
    )
    told = ", ".join(f"{option} ({count})" for option, count in sorted(chosen.items()))
    return f"; not the best: {told}" if told else ""


def _answered(row: Row, result: Result, column: Column) -> bool:
    if result.problem:
        return False
    if column.kind == "written":  # nbgrader gives an untouched one 0 at once
        return row.scores.get(column.grade_id) != 0
    return result.mistakes.get(column.name, ["", ""])[0] != "not_answered"


def _waits(row: Row, report: ClassReport, column: Column) -> bool:
    return row.scores.get(column.grade_id) is None and not report.results[row.student].problem


def _mistakes(report: ClassReport) -> list[dict]:
    """Every mistake that was recognised, commonest first."""
    who: dict[tuple, list[str]] = {}
    for result in report.results.values():
        for exercise, (name, label) in result.mistakes.items():
            if name != "not_answered" and not exercise.startswith("quiz_"):
                who.setdefault((exercise, label.rstrip(".")), []).append(result.student)
    return [
        {
            "count": len(students),
            "label": label,
            "exercise": exercise,
            "who": ", ".join(students[:6]) + (f" and {len(students) - 6} more" if len(students) > 6 else ""),
        }
        for (exercise, label), students in sorted(who.items(), key=lambda item: -len(item[1]))
    ]


def _kind(score: float | None, column: Column) -> str:
    """The class of a score's cell."""
    if score is None:
        return ""
    if column.kind == "bonus":
        return " full" if score > 0 else " "
    return " full" if score >= column.worth - 1e-9 else " part" if score > 0 else " none"
