"""A loose answer file in the judge's process: its verdicts, each in one line of JSON or in a check's lines."""

from __future__ import annotations

import json

from helpers.checking.rendering import as_text
from helpers.checking.verdict import Verdict
from helpers.grading.judge import TOO_DEEP, Judge
from helpers.grading.submission import Cell, LooseFile


def judged_file(judge: Judge, file: LooseFile) -> list[tuple[str, bool]]:
    """(text, whether it is right) for each verdict; one verdict without an exercise where the file defines none."""
    verdicts = _verdicts(judge, file)
    return [((as_json if file.as_json else as_lines)(file.name, verdict), is_right(verdict)) for verdict in verdicts]


def _verdicts(judge: Judge, file: LooseFile) -> list[Verdict]:
    only = [file.exercise] if file.exercise else None
    result = judge.judge_cells([Cell(file.name, file.source)], only, file.files)
    if result.problem == TOO_DEEP:
        raise RecursionError(TOO_DEEP)
    if result.verdicts:
        return list(result.verdicts.values())
    points = sum(key.points for key in judge.keys.values() if not key.bonus)
    if error := result.errors.get(file.name):
        return [Verdict("", 0, points, False, "raises", message=error)]
    message = f"defines none of the exercises of {judge.lesson.name}"
    return [Verdict("", 0, points, False, "not_answered", message=message, answered=False)]


def is_right(verdict: Verdict) -> bool:
    return verdict.passed and verdict.points == verdict.max_points


def as_json(file: str, verdict: Verdict) -> str:
    """One line: a file, an exercise (null where the file defines none) and what became of it."""
    fields = {
        "file": file,
        "exercise": verdict.exercise or None,
        "points": verdict.points,
        "max_points": verdict.max_points,
        "passed": is_right(verdict),
        "mistake": verdict.mistake,
        "message": verdict.message,
    }
    return json.dumps(fields, ensure_ascii=False)


def as_lines(file: str, verdict: Verdict) -> str:
    return f"{file}\n{as_text(verdict)}" if verdict.exercise else f"✗ {file}\n  {verdict.message}"
