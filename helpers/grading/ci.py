"""`course grade --ci FILE.ipynb`: one notebook graded where its learner pushed it, told in Markdown."""

from __future__ import annotations

import os
from pathlib import Path

from helpers.course import course
from helpers.grading.one_notebook import JudgedNotebook, Scored, judge_notebook, lesson_of
from helpers.grading.safe_text import one_line

MARKS = {True: "✓", False: "✗"}


def grade_file(notebook: Path, lesson: str | None, unsafe: bool) -> int:
    """Print the summary, and add it to the page that GITHUB_STEP_SUMMARY names. 0: all points that need no person; 1:
    some are missing. GradingStopped where it could not be graded."""
    lessons = [item.name for item in course().lessons]
    lesson = course().lesson(lesson).name if lesson else lesson_of(notebook, lessons)
    judged = judge_notebook(lesson, notebook, unsafe)
    summary = as_markdown(judged)
    print(summary, end="")
    if page := os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(page, "a", encoding="utf-8") as file:
            file.write(summary)
    return int(not all(item.full for item in judged.scored))


def as_markdown(judged: JudgedNotebook) -> str:
    """The points, a table of the exercises, the report of each that is not right, and what waits for a person."""
    bonus = f" and {judged.bonus:g} bonus points" if judged.bonus else ""
    lines = [f"## {judged.lesson}: {judged.points:g} of {judged.worth:g} points{bonus}", ""]
    lines += ["| | exercise | points | |", "|---|---|---|---|", *map(_row, judged.scored), ""]
    if judged.waiting:
        lines += [f"The written question ({judged.waiting:g} points) waits for a person.", ""]
    for item in judged.scored:
        if item.report.answered and not item.report.passed:
            # Four spaces make a block of code that nothing in a learner's words can end.
            lines += [f"`{item.name}`:", "", *(f"    {line}" for line in item.report.text.splitlines()), ""]
    if judged.flags:
        lines += ["For a person to look at:", "", *(f"    {one_line(flag)}" for flag in judged.flags), ""]
    return "\n".join(lines)


def _row(scored: Scored) -> str:
    score = f"{scored.points:g} of {scored.worth:g}" if scored.worth else f"{scored.points:g} bonus"
    label = "" if scored.report.passed else scored.report.label.replace("|", "\\|")
    return f"| {MARKS[scored.report.passed] if scored.report.answered else '–'} | `{scored.name}` | {score} | {label} |"
