"""The class report: one page of HTML that needs nothing else, and a CSV file for a learning platform."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import statistics
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from helpers.grading.folders import Folders
from helpers.grading.intake import find_submissions
from helpers.grading.lesson_release import course_release
from helpers.grading.nbgrader_insides import open_gradebook
from helpers.grading.record import Result, read_result, write_atomically
from helpers.grading.safe_text import inert
from helpers.grading.submission import Release

ENOUGH = 10  # students; a correlation of fewer says nothing
GONE = re.compile(r"The check cell of (\w+) is gone; it counts as it stands at the end\.$")
CHOICE = re.compile(r"^quiz_\d+ = [\"'](\w+)[\"']", re.MULTILINE)


@dataclass
class Column:
    """One graded cell. kind: exercise, bonus, quiz or written."""

    grade_id: str
    name: str
    kind: str
    worth: float


@dataclass
class Row:
    """One student. scores by grade_id, None while one waits for a person; total: None where nothing could be graded.

    unanswered: grade_ids without an answer. feedback, notebook: addresses as seen from the report; feedback is empty
    where there is no page.
    """

    student: str
    scores: dict[str, float | None]
    total: float | None
    penalty: float
    notes: list[str]
    status: str = "graded"  # or "waits for a person", "not graded"
    bonus: float = 0.0  # of the total
    days_late: int = 0  # begun days after nbgrader's due date, extensions included
    unanswered: set[str] = field(default_factory=set)
    feedback: str = ""
    notebook: str = ""


@dataclass
class ClassReport:
    lesson: str
    columns: list[Column] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    results: dict[str, Result] = field(default_factory=dict)
    to_grade: int = 0
    changed: dict[str, list[str]] = field(default_factory=dict)  # student -> answers that a person graded as others
    missing: list[str] = field(default_factory=list)  # of the gradebook's students, who handed in nothing
    choices: dict[str, tuple[list[str], str]] = field(default_factory=dict)  # quiz -> its options and the right one
    title: str = ""  # of the lesson's notebook

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

    report = ClassReport(lesson, title=_title(folders, lesson))
    with open_gradebook(folders) as gradebook:
        for cell in gradebook.find_notebook(lesson, lesson).grade_cells:
            report.columns.append(_column(cell))
        release = course_release(folders.executed(lesson))
        order = {grade_id: place for place, grade_id in enumerate(release.graded)}
        report.choices = _choices(folders, release)
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
        )
        # Sorted here: each database has its own alphabet.
        found = sorted(found, key=lambda one: (one[0], order.get(one[1], len(order))))
        rows: dict[str, Row] = {}
        for student, grade_id, score, manual, waits, penalty in found:
            if student not in rows:
                result = read_result(folders, lesson, student)
                if result is None:  # its recording was cut short; it is graded again next time
                    continue
                report.results[student] = result
                notes = _together([text for text in [result.problem, *result.flags] if text])
                rows[student] = Row(student, {}, -(penalty or 0.0), penalty or 0.0, notes)
                rows[student].notebook = _address(folders, lesson, folders.autograded_notebook(lesson, student))
                page = folders.feedback / student / lesson / f"{lesson}.html"
                rows[student].feedback = _address(folders, lesson, page) if page.is_file() else ""
            row = rows[student]
            waiting = waits and manual is None
            row.scores[grade_id] = None if waiting else score
            row.total += score
            result = report.results[student]
            if manual is None and not waiting and not score and _is_blank(result, grade_id):
                row.unanswered.add(grade_id)
            report.to_grade += bool(waiting) and not result.problem
            if waiting and grade_id in result.changed:
                report.changed.setdefault(student, []).append(grade_id.removeprefix("check_"))
        there = set(find_submissions(folders.submitted, lesson)) | set(rows)
        report.missing = sorted({student for (student,) in gradebook.db.query(api.Student.id)} - there)
        late = {one.student_id: one.total_seconds_late for one in gradebook.assignment_submissions(lesson)}
    report.rows = list(rows.values())
    bonus = [column.grade_id for column in report.columns if column.kind == "bonus"]
    for row in report.rows:
        given = [score for score in row.scores.values() if score is not None]
        row.bonus = sum(row.scores.get(name) or 0.0 for name in bonus)
        if len(given) < len(row.scores):
            row.status = "waits for a person" if given else "not graded"
        if not given:
            row.total = None
        row.days_late = math.ceil(late.get(row.student, 0) / 86_400)
        if row.days_late:
            row.notes.insert(0, f"handed in {row.days_late} {'day' if row.days_late == 1 else 'days'} late")
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


def _is_blank(result: Result, grade_id: str) -> bool:
    """Whether an answer without points is none at all; nbgrader gives an untouched written one 0 at once."""
    if not grade_id.startswith("check_"):
        return True
    return result.mistakes.get(grade_id.removeprefix("check_"), [""])[0] == "not_answered"


def _address(folders: Folders, lesson: str, path: Path) -> str:
    return quote(Path(os.path.relpath(path, folders.report(lesson, "html").parent)).as_posix())


def _together(notes: list[str]) -> list[str]:
    """The notes; what is the same of several check cells is one of them."""
    gone = [found[1] for note in notes if (found := GONE.match(note))]
    if len(gone) < 2:
        return notes
    names = f"{', '.join(gone[:-1])} and {gone[-1]}"
    told = f"The check cells of {names} are gone; they count as they stand at the end."
    return [*(note for note in notes if not GONE.match(note)), told]


def _title(folders: Folders, lesson: str) -> str:
    """The first heading of the lesson's notebook."""
    cells = json.loads(folders.executed(lesson).read_text(encoding="utf-8"))["cells"]
    prose = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    found = re.search(r"^# (.+)$", prose, re.MULTILINE)
    return found[1] if found else lesson


def _choices(folders: Folders, release: Release) -> dict[str, tuple[list[str], str]]:
    """quiz -> its options, as the release names them, and the right one, as the solution has it."""
    try:
        solved = json.loads(folders.executed(release.lesson).read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError):
        return {}
    right = {}
    for cell in solved:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
        if name.startswith("quiz_") and (found := CHOICE.search("".join(cell["source"]))):
            options = re.findall(r"[\"'](\w+)[\"']", release.graded.get(name, {}).get("source", ""))
            right[name] = (sorted({*options, found[1]}), found[1])
    return right


def as_csv(report: ClassReport) -> str:
    """One line a student: each exercise, the total (with its bonus, of the maximum), what it waits for, and flags. No
    cell can be read as a formula."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    names = [inert(column.name) for column in report.columns]
    writer.writerow(["student", "lesson", *names, "total", "maximum", "bonus", "status", "flags"])
    for row in report.rows:
        scores = [_number(row.scores.get(column.grade_id)) for column in report.columns]
        points = [_number(row.total), _number(report.worth), _number(row.bonus if row.total is not None else None)]
        cells = [row.student, report.lesson, *scores, *points, row.status, "; ".join(row.notes)]
        writer.writerow([inert(cell) for cell in cells])
    for student in report.missing:
        blank = [""] * (len(names) + 1)
        writer.writerow([inert(student), report.lesson, *blank, _number(report.worth), "", "nothing handed in", ""])
    return file.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None else f"{round(value, 2):g}"


def as_page(report: ClassReport) -> str:
    """The whole page; everything in it that came from learners is escaped text."""
    from jinja2 import Environment, PackageLoader

    pages = Environment(
        loader=PackageLoader("helpers.grading", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    pages.filters |= {"number": _number}
    pages.globals |= {"score": _score}
    return pages.get_template("class_report.html.jinja").render(
        lesson=report.lesson,
        title=report.title or report.lesson,
        to_grade=report.to_grade,
        facts=_facts(report),
        **_histogram(report),
        exercises=[_exercise(report, column) for column in report.columns],
        **_mistakes(report),
        flagged=[row for row in report.rows if row.notes],
        columns=report.columns,
        rows=report.rows,
        missing=report.missing,
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
    scored = [row for row in report.rows if row.scores.get(column.grade_id) is not None]
    scores = [row.scores[column.grade_id] for row in scored]
    least = column.worth - 1e-9 if column.kind != "bonus" else 1e-9
    full = sum(score >= least for score in scores)
    readable = [row for row in report.rows if not report.results[row.student].problem]
    waiting = sum(row.scores.get(column.grade_id) is None for row in readable)
    known = scores and not waiting
    chosen = _chosen(report, column.name, len(readable)) if column.kind == "quiz" else []
    best, of = next(((count, len(readable)) for _, count, right in chosen if right), (full, len(scores)))
    failed = Counter(part for result in report.results.values() for part in result.failed.get(column.name, ()))
    return {
        "name": column.name,
        "worth": "bonus" if column.kind == "bonus" else f"{column.worth:g}",
        "told": " earned some" if column.kind == "bonus" else "",
        "answered": f"{sum(column.grade_id not in row.unanswered for row in readable)} of {len(report.rows)}",
        "waiting": waiting,
        "full": f"{best} of {of}",  # of a quiz, which pays for an honest attempt: who chose best
        "share": f"{100 * best / of if of else 0:.0f}",
        "chosen": chosen,
        "failed": ", ".join(f"{part} ({count})" for part, count in failed.most_common()),
        "mean": f"{statistics.mean(scores):.1f}" if known else "–",
        "difficulty": f"{statistics.mean(scores) / column.worth:.2f}" if known and column.worth else "–",
        "discrimination": _discrimination(report, column) if known and column.worth else "–",
    }


def _discrimination(report: ClassReport, column: Column) -> str:
    """The corrected item-total correlation: of an exercise's points with the points of all others. Where points are
    all or nothing it is the point-biserial one. Answers that wait for a person are left out for everybody."""
    others = [other.grade_id for other in report.columns if other is not column and other.kind != "bonus"]
    rows = [row for row in report.rows if row.total is not None]
    others = [name for name in others if all(row.scores.get(name) is not None for row in rows)]
    points = [row.scores[column.grade_id] for row in rows]
    rest = [math.fsum(row.scores[name] for name in others) for row in rows]
    if len(rows) < ENOUGH or len(set(points)) < 2 or len(set(rest)) < 2:
        return "–"
    return f"{statistics.correlation(points, rest):.2f}".replace("-", "−")


def _chosen(report: ClassReport, quiz: str, readable: int) -> list[tuple[str, int, bool]]:
    """(option, how many chose it, whether it is right); it costs no points, but a teacher wants to know."""
    made = Counter(result.mistakes[quiz][0] for result in report.results.values() if quiz in result.mistakes)
    options, right = report.choices.get(quiz, ([], ""))
    counts = {option: 0 for option in options}
    counts |= {name.removeprefix("option_"): n for name, n in made.items() if name.startswith("option_")}
    if right:
        counts[right] = readable - made.total()
    return [(option, count, option == right) for option, count in sorted(counts.items())]


def _mistakes(report: ClassReport) -> dict[str, list[dict]]:
    """Every mistake that was recognised, commonest first; apart those of a single student, where others are common."""
    who: dict[tuple, list[str]] = {}
    for result in report.results.values():
        for exercise, (name, label) in result.mistakes.items():
            if name != "not_answered" and not exercise.startswith("quiz_"):
                who.setdefault((exercise, label.rstrip(".")), []).append(result.student)
    found = [
        {"count": len(students), "label": label, "exercise": exercise, "who": ", ".join(students)}
        for (exercise, label), students in sorted(who.items(), key=lambda item: -len(item[1]))
    ]
    common = [one for one in found if one["count"] > 1]
    return {"mistakes": common or found, "single": found[len(common) :] if common else []}


def _score(row: Row, column: Column) -> tuple[str, str, str]:
    """(class, text, title) of one score's cell."""
    score = row.scores.get(column.grade_id)
    if score is None:
        return ("waits", "…", "waits for a person") if row.total is not None else ("blank", "", "not graded")
    if column.grade_id in row.unanswered:
        return "blank", "–", "not answered"
    if column.kind == "bonus":
        return ("full" if score > 0 else ""), _number(score), ""
    return "full" if score >= column.worth - 1e-9 else "part" if score > 0 else "none", _number(score), ""
