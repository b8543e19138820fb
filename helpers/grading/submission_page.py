"""One submission to read: answers, the reports on them and whatever the learner added, without the lesson around them.

The class report links to these pages. Writing one takes a few milliseconds, and only what has changed is written.
"""

import hashlib
import json
from pathlib import Path

import nbformat

from helpers.grading.class_scores import ClassReport, Row
from helpers.grading.folders import Folders, write_atomically
from helpers.grading.lesson_release import course_release
from helpers.grading.record import Result
from helpers.grading.submission import Release

TEMPLATE = Path(__file__).parent / "notebook_page.html.jinja"


def write_submission_pages(folders: Folders, report: ClassReport) -> None:
    """A page for each row of the report, where what it would tell is not there yet."""
    release = course_release(folders.executed(report.lesson))
    known = folders.gradebook / "batches" / f"{report.lesson}.pages.json"
    look = hashlib.sha256(TEMPLATE.read_bytes()).hexdigest()
    before = _marks(known)
    now = {}
    for row in report.rows:
        result = report.results[row.student]
        notebook = folders.autograded_notebook(report.lesson, row.student)
        page = folders.submission_page(report.lesson, row.student)
        told = [look, row.called, row.grades, row.notes, row.penalty, row.late, result.sha, _written(notebook)]
        now[row.student] = hashlib.sha256(repr(told).encode("utf-8", "replace")).hexdigest()[:16]
        if before.get(row.student) != now[row.student] or not page.is_file():
            write_atomically(page, _page(notebook, release, row, result, report.title))
    if now != before:
        write_atomically(known, json.dumps(now, indent=0))


def _marks(path: Path) -> dict[str, str]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def _written(path: Path) -> int:
    return path.stat().st_mtime_ns if path.is_file() else 0


def _page(path: Path, release: Release, row: Row, result: Result, title: str) -> str:
    from helpers.grading.notebook_page import as_page, facts

    cells = nbformat.from_dict(json.loads(path.read_text(encoding="utf-8"))).cells if path.is_file() else []
    cells = [cell for cell in cells if _is_learners(cell, release)]
    told, lesson = facts(row.grades, result, row.called, row.penalty), release.lesson
    return as_page(cells, told, lesson, title=title or lesson, notes=row.notes, report=f"../{lesson}.html")


def _is_learners(cell, release: Release) -> bool:
    """Whether a cell is an answer, a check of one, or the learner's own."""
    facts = cell.metadata.get("nbgrader", {})
    is_added = bool(cell.source.strip()) and cell.source not in release.sources
    return bool(facts.get("grade") or facts.get("solution")) or is_added
