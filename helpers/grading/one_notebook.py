"""Judges one submission without a gradebook, for continuous integration and for Gradescope.

`course grade --ci FILE.ipynb` prints a summary in Markdown. `course grade LESSON --gradescope /autograder` reads the
submission from Gradescope's folder and writes results.json in the format of
https://gradescope-autograders.readthedocs.io/en/latest/specs/.
"""

import json
import os
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from helpers.course import course
from helpers.errors import CourseError
from helpers.grading.folders import ROOT, write_atomically
from helpers.grading.intake import lesson_of, read_folder
from helpers.grading.lesson_release import course_release
from helpers.grading.notebook_file import Unreadable, read_cells
from helpers.grading.pool import Batch, GradingStopped, Pool
from helpers.grading.safe_text import one_line
from helpers.grading.submission import ExerciseReport

SOLUTIONS = ROOT / "solutions"


@dataclass(frozen=True)
class JudgedNotebook:
    """What the judge found in one notebook. reports: in the lesson's order, with the points of the release; a bonus
    exercise has 0 as max_points, because its points are extra. waiting: exercises that a person must grade. written:
    points of the questions that a person grades. flags: sentences about what a person should check."""

    lesson: str
    reports: list[ExerciseReport]
    waiting: set[str]
    written: float
    flags: list[str]

    @property
    def points(self) -> float:
        return sum(report.points for report in self.reports if report.max_points)

    @property
    def bonus(self) -> float:
        return sum(report.points for report in self.reports if not report.max_points)


def grade_file(notebook: Path, lesson: str | None, unsafe: bool) -> int:
    """Print a summary and append it to the file that GITHUB_STEP_SUMMARY names. Returns the exit code: 0 if all answers
    that need no person have full points, otherwise 1. Raises GradingStopped if the notebook could not be graded."""
    judged = judge_notebook(course().lesson(lesson).name if lesson else lesson_named_in(notebook), notebook, unsafe)
    summary = as_markdown(judged)
    print(summary, end="")
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(summary)
    return int(
        any(report.points < report.max_points for report in judged.reports if report.exercise not in judged.waiting)
    )


def as_markdown(judged: JudgedNotebook) -> str:
    """The points, a table of the exercises, the report on each wrong answer, and whatever a person must check."""
    bonus = f" and {judged.bonus:g} bonus points" if judged.bonus else ""
    worth = sum(report.max_points for report in judged.reports)
    lines = [f"## {judged.lesson}: {judged.points:g} of {worth:g} points{bonus}", ""]
    lines += ["| | exercise | points | |", "|---|---|---|---|"]
    for report in judged.reports:
        mark = "✓" if report.passed else "✗" if report.answered else "–"
        score = f"{report.points:g} of {report.max_points:g}" if report.max_points else f"{report.points:g} bonus"
        label = "waits for a person" if report.exercise in judged.waiting else report.label.replace("|", "\\|")
        lines.append(f"| {mark} | `{report.exercise}` | {score} | {'' if report.passed else label} |")
    lines.append("")
    if judged.written:
        lines += [f"The written question ({judged.written:g} points) waits for a person.", ""]
    for report in judged.reports:
        if report.answered and not report.passed:
            # Nothing in a learner's text can end a code block that is indented by four spaces.
            lines += [f"`{report.exercise}`:", "", *(f"    {line}" for line in report.text.splitlines()), ""]
    if judged.flags:
        lines += ["For a person to look at:", "", *(f"    {one_line(flag)}" for flag in judged.flags), ""]
    return "\n".join(lines)


def grade_folder(autograder: Path, lesson: str, unsafe: bool) -> int:
    """Grade submission/ and write results/results.json in any case. Returns 0, or 2 if it could not be graded."""
    try:
        results = as_results(judge_notebook(course().lesson(lesson).name, autograder / "submission", unsafe), unsafe)
    except (CourseError, OSError) as error:
        results = {"score": 0, "output": f"Not graded, so these points do not count: {error}", "output_format": "text"}
    write_atomically(autograder / "results" / "results.json", json.dumps(results, ensure_ascii=False, indent=1))
    return 0 if "tests" in results else 2


def as_results(judged: JudgedNotebook, unsafe: bool) -> dict:
    """Results for Gradescope: one test per exercise, with its report. Only instructors see the flags."""
    output = [f"The written question ({judged.written:g} points) is graded by a person."] if judged.written else []
    if unsafe:
        output.append("Judged without a sandbox.")
    return {
        "score": judged.points + judged.bonus,
        "output": " ".join(output),
        "output_format": "text",
        "test_output_format": "text",
        "visibility": "visible",
        "extra_data": {"flags": judged.flags},
        "tests": [
            {
                "name": report.exercise if report.max_points else f"{report.exercise} (bonus)",
                "score": report.points,
                "max_score": report.max_points,
                "status": "passed" if report.passed else "failed",
                "output": "This answer waits for a person.\n" * (report.exercise in judged.waiting) + report.text,
                "output_format": "text",
            }
            for report in judged.reports
        ],
    }


def lesson_named_in(notebook: Path) -> str:
    """The name of the lesson that a notebook belongs to. Raises GradingStopped if its cells don't tell."""
    try:
        read_cells(notebook)
    except Unreadable as problem:
        raise GradingStopped(_for_learner(str(problem))) from None
    releases = [course_release(SOLUTIONS / item.name / f"{item.name}.ipynb") for item in course().lessons]
    lesson, _ = lesson_of(notebook, releases)
    if lesson is None:
        raise GradingStopped(
            f"{notebook} belongs to no lesson of this course. Name one: course grade LESSON --ci {notebook}"
        )
    return lesson


def _for_learner(problem: str) -> str:
    """A problem in the words for the learner, who reads the page of the run. Elsewhere, a teacher reads it."""
    return problem.replace("Ask for", "Hand in")


def judge_notebook(lesson: str, handed_in: Path, unsafe: bool) -> JudgedNotebook:
    """Judge the notebook at the path `handed_in`, or the one in that folder, together with the files beside it.

    Raises GradingStopped if it cannot be read or judged, or if the grader fails its self test.
    """
    release = course_release(SOLUTIONS / lesson / f"{lesson}.ipynb")
    if not release.checks:
        raise GradingStopped(f"Lesson {lesson} has no exercises to grade.")
    folder = (handed_in if handed_in.is_dir() else handed_in.parent).resolve()
    notebook = None if handed_in.is_dir() else folder / handed_in.name
    submission = read_folder(folder, "handed_in", release, SOLUTIONS, notebook)
    if submission.problem:
        raise GradingStopped(_for_learner(submission.problem))
    with Pool(Batch(lesson, secrets.randbelow(2**31), unsafe), 1) as pool:
        pool.self_test("before it judged")
        [(_, graded)] = pool.judge([submission], release, lambda student: None, hurried=False)
    if graded is None or submission.problem:
        raise GradingStopped(submission.problem or "The grader could not judge this notebook.")
    waits = {cell.exercise for cell in submission.cells if cell.kind == "check" and cell.waits}
    reports = []
    for name, worth in release.checks.items():
        report = graded.verdicts[name]
        points = min(report.points, worth) if worth else report.points
        reports.append(replace(report, points=points, max_points=worth))
    waiting = {report.exercise for report in reports if report.exercise in waits and not report.passed}
    flags = [*submission.flags, *graded.flags]
    return JudgedNotebook(lesson, reports, waiting, sum(release.written.values()), flags)
