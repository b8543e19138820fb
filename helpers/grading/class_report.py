"""The class report: one self-contained HTML page, and a CSV file for a learning platform."""

import contextlib
import hashlib
import json
import math
import os
import statistics
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import nbformat

from helpers.grading.class_scores import ClassReport, Column, Row, number, read_class
from helpers.grading.folders import Folders, write_atomically
from helpers.grading.lesson_release import course_release
from helpers.grading.pool import MISTAKE_LABELS
from helpers.grading.record import Result
from helpers.grading.safe_text import as_table, template
from helpers.grading.submission import Release

FEWEST_STUDENTS = 10  # for a correlation; with fewer it would say nothing
TEMPLATE = Path(__file__).parent / "notebook_page.html.jinja"


def write_report(folders: Folders, lesson: str) -> ClassReport:
    """Read all scores from the gradebook, manual ones included, and write the report and a page for each submission."""
    report = read_class(folders, lesson)
    write_submission_pages(folders, report)
    for row in report.rows:
        page = folders.feedback / row.student / lesson / f"{lesson}.html"
        row.feedback = _address(folders, lesson, page) if page.is_file() else ""
        row.page = _address(folders, lesson, folders.submission_page(lesson, row.student))
    write_atomically(folders.report(lesson, "html"), as_page(report))
    write_atomically(folders.report(lesson, "csv"), as_csv(report))
    return report


def _address(folders: Folders, lesson: str, path: Path) -> str:
    """The URL of a file relative to the lesson's report."""
    return quote(Path(os.path.relpath(path, folders.report(lesson, "html").parent)).as_posix())


def as_csv(report: ClassReport) -> str:
    """One line per student: score of each exercise, total (bonus included), maximum, bonus, status and flags."""
    names = [column.name for column in report.columns]
    rows = [["student", "name", "lesson", *names, "total", "maximum", "bonus", "status", "flags"]]
    for row in report.rows:
        scores = [number(row.scores.get(column.grade_id)) for column in report.columns]
        points = [number(row.total), number(report.worth), number(row.bonus if row.total is not None else None)]
        rows.append([row.student, row.name, report.lesson, *scores, *points, row.status, "; ".join(row.notes)])
    for student in report.missing:
        blank = [""] * (len(names) + 1)
        name = report.names.get(student, "")
        rows.append([student, name, report.lesson, *blank, number(report.worth), "", "nothing handed in", ""])
    return as_table(rows)


def as_page(report: ClassReport) -> str:
    """The report as an HTML page. All text that came from learners is escaped."""
    return template("class_report.html.jinja", number=number).render(
        score=_score,
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
        missing=[report.called(student) for student in report.missing],
        worth=f"{report.worth:g}",
        late=any(row.penalty for row in report.rows),
        unsafe=any(result.unsafe for result in report.results.values()),
    )


def _facts(report: ClassReport) -> list[tuple[str, str]]:
    totals = list(report.totals.values())
    changed = sum(map(len, report.changed.values()))
    facts = [(str(len(report.rows)), "submission" if len(report.rows) == 1 else "submissions")]
    if totals:
        facts.append((f"{statistics.mean(totals):.1f}", f"mean of {report.worth:g} points"))
        facts.append((f"{statistics.median(totals):.4g}", "median"))
        facts.append((str(report.to_grade), "answers to grade by hand"))
        facts += [(str(changed), "of them changed since you graded them")] if changed else []
        facts.append((str(sum(bool(row.notes) for row in report.rows)), "submissions to look at"))
    return facts


def _histogram(report: ClassReport) -> dict:
    """The histogram of totals for the template: bars as (count, label), the largest count, and the same in words."""
    if not report.totals:
        return {}
    step = max(report.worth / 10, 1e-9)
    counts = Counter(min(int(max(total, 0) / step), 10) for total in report.totals.values())
    bars = [(counts[group], f"{group * step:.0f}") for group in range(max(10, max(counts) + 1))]
    told = "; ".join(f"{count} from {label} points" for count, label in bars if count)
    return {"bars": bars, "most": max(counts.values()), "told": told}


def _exercise(report: ClassReport, column: Column) -> dict:
    """The template's row for one exercise."""
    scores = [score for row in report.rows if (score := row.scores.get(column.grade_id)) is not None]
    readable = report.readable
    answered = [row for row in readable if column.grade_id not in row.unanswered]
    waiting = sum(row.scores.get(column.grade_id) is None for row in readable)
    mean = difficulty(report, column)
    chosen = _chosen(report, column.name, len(readable)) if column.kind == "quiz" else []
    full = sum(_is_full(row, column) for row in answered)
    # A quiz pays for any honest attempt, so those who chose its best option are counted and not those with full points.
    best, of = next(((count, len(readable)) for _, count, right in chosen if right), (full, len(scores)))
    failed = Counter(reason for row in answered if (reason := _reason(report, row, column)))
    return {
        "name": column.name,
        "worth": "bonus" if column.kind == "bonus" else f"{column.worth:g}",
        "told": " earned some" if column.kind == "bonus" else "",
        "answered": f"{len(answered)} of {len(report.rows)}",
        "waiting": waiting,
        "full": f"{best} of {of}",
        "share": f"{100 * best / of if of else 0:.0f}",
        "chosen": chosen,
        "failed": ", ".join(f"{reason} ({count})" for reason, count in failed.most_common()),
        "mean": f"{statistics.mean(scores):.1f}" if scores and not waiting else "–",
        "difficulty": "–" if mean is None else f"{mean:.2f}",
        "discrimination": "–" if mean is None else _discrimination(report, column),
    }


def difficulty(report: ClassReport, column: Column) -> float | None:
    """The mean fraction of an exercise's points; None for a bonus, and while any answer waits for manual grading."""
    scores = [score for row in report.rows if (score := row.scores.get(column.grade_id)) is not None]
    waiting = any(row.scores.get(column.grade_id) is None for row in report.readable)
    return statistics.mean(scores) / column.worth if scores and column.worth and not waiting else None


def _is_full(row: Row, column: Column) -> bool:
    score = row.scores.get(column.grade_id)
    return score is not None and score >= (1e-9 if column.kind == "bonus" else column.worth - 1e-9)


def _reason(report: ClassReport, row: Row, column: Column) -> str:
    """Why an answer doesn't have full points, in one phrase, so that the counts of the reasons and of full points add
    up to the number of answers. Returns "" for full points, written answers and quizzes."""
    if column.kind not in ("exercise", "bonus") or _is_full(row, column):
        return ""
    if row.scores.get(column.grade_id) is None:
        return "waits for a person"
    result = report.results[row.student]
    name, label = result.mistakes.get(column.name, ("", ""))
    parts = " and ".join(result.failed.get(column.name, ()))
    return (label or MISTAKE_LABELS[name]) if name in MISTAKE_LABELS else parts or label.rstrip(".") or "graded by hand"


def _discrimination(report: ClassReport, column: Column) -> str:
    """The corrected item-total correlation: that of an exercise's points with the sum of all other exercises' points.

    It is the point-biserial correlation if the exercise gives all points or none. The sum leaves out bonus exercises
    and exercises of which any answer waits for manual grading.
    """
    others = [other.grade_id for other in report.columns if other is not column and other.kind != "bonus"]
    rows = report.readable
    others = [name for name in others if all(row.scores.get(name) is not None for row in rows)]
    points = [row.scores[column.grade_id] for row in rows]
    sums = [math.fsum(row.scores[name] for name in others) for row in rows]
    if len(rows) < FEWEST_STUDENTS or len(set(points)) < 2 or len(set(sums)) < 2:
        return "–"
    return f"{statistics.correlation(points, sums):.2f}".replace("-", "−")


def _chosen(report: ClassReport, quiz: str, readable: int) -> list[tuple[str, int, bool]]:
    """The options of a quiz, each with the number of students who chose it, and whether it is right. Wrong options cost
    no points, but teachers want to know. readable: the number of submissions that could be read."""
    recorded = Counter(result.mistakes[quiz][0] for result in report.results.values() if quiz in result.mistakes)
    options, right = report.choices.get(quiz, ([], ""))
    counts = dict.fromkeys(options, 0)
    counts |= {name.removeprefix("option_"): n for name, n in recorded.items() if name.startswith("option_")}
    if right:
        counts[right] = readable - recorded.total()
    chosen = [(option, count, option == right) for option, count in sorted(counts.items())]
    invalid = sum(n for name, n in recorded.items() if not name.startswith("option_") and name != "not_answered")
    return [*chosen, *([("no option", invalid, False)] if invalid else [])]


def mistakes(report: ClassReport) -> list[dict]:
    """All recognized mistakes, the most frequent first, as dicts with count, label, exercise and who (names)."""
    students: dict[tuple, list[str]] = {}
    for result in report.results.values():
        for exercise, (name, label) in result.mistakes.items():
            if name != "not_answered" and not exercise.startswith("quiz_"):
                students.setdefault((exercise, label.rstrip(".")), []).append(report.called(result.student))
    return [
        {"count": len(names), "label": label, "exercise": exercise, "who": ", ".join(names)}
        for (exercise, label), names in sorted(students.items(), key=lambda item: -len(item[1]))
    ]


def _mistakes(report: ClassReport) -> dict[str, list[dict]]:
    """The recognized mistakes. Those of a single student are listed separately if there are more frequent ones."""
    recognized = mistakes(report)
    common = [mistake for mistake in recognized if mistake["count"] > 1] or recognized
    return {"mistakes": common, "single": recognized[len(common) :]}


def _score(row: Row, column: Column) -> tuple[str, str, str]:
    """The CSS class, text and title of a score's table cell."""
    score = row.scores.get(column.grade_id)
    if score is None:
        return ("waits", "…", "waits for a person") if row.total is not None else ("blank", "", "not graded")
    if column.grade_id in row.unanswered:
        return "blank", "–", "not answered"
    if column.kind == "bonus":
        return ("full" if score > 0 else ""), number(score), ""
    return "full" if _is_full(row, column) else "part" if score > 0 else "none", number(score), ""


def write_submission_pages(folders: Folders, report: ClassReport) -> None:
    """Write a page for each submission with its answers, the reports on them and whatever the learner added, but not
    the rest of the lesson. A page with the same contents is not written again."""
    release = course_release(folders.executed(report.lesson))
    digests_path = folders.gradebook / "batches" / f"{report.lesson}.pages.json"
    template_digest = hashlib.sha256(TEMPLATE.read_bytes()).hexdigest()
    before, now = {}, {}
    with contextlib.suppress(OSError, ValueError, TypeError):
        before = dict(json.loads(digests_path.read_text(encoding="utf-8")))
    for row in report.rows:
        result = report.results[row.student]
        notebook = folders.autograded_notebook(report.lesson, row.student)
        mtime = notebook.stat().st_mtime_ns if notebook.is_file() else 0
        page = folders.submission_page(report.lesson, row.student)
        contents = [template_digest, row.called, row.grades, row.notes, row.penalty, row.late, result.sha, mtime]
        now[row.student] = hashlib.sha256(repr(contents).encode("utf-8", "replace")).hexdigest()[:16]
        if before.get(row.student) != now[row.student] or not page.is_file():
            cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"] if mtime else []
            write_atomically(page, _submission_page(cells, release, row, result, report.title))
    if now != before:
        write_atomically(digests_path, json.dumps(now, indent=0))


def _submission_page(cells: list[dict], release: Release, row: Row, result: Result, title: str) -> str:
    from helpers.grading.notebook_page import as_page, facts

    def is_learners(cell: dict) -> bool:
        """Whether a cell is an answer, the check of an answer, or one that the learner added."""
        nbgrader = cell["metadata"].get("nbgrader", {})
        is_added = bool(cell["source"].strip()) and cell["source"] not in release.sources
        return bool(nbgrader.get("grade") or nbgrader.get("solution")) or is_added

    shown = [nbformat.from_dict(cell) for cell in cells if is_learners(cell)]
    page_facts, lesson = facts(row.grades, result, row.called, row.penalty), release.lesson
    return as_page(shown, page_facts, lesson, title=title or lesson, notes=row.notes, report=f"../{lesson}.html")
