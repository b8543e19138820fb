"""One submission judged without a gradebook, for a workflow on a server and for Gradescope.

`course grade --ci FILE.ipynb` tells of it in Markdown. `course grade LESSON --gradescope /autograder` reads the
submission in Gradescope's folder and writes the results.json that is described in
https://gradescope-autograders.readthedocs.io/en/latest/specs/.
"""

import json
import os
import secrets
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from helpers.course import course
from helpers.errors import CourseError
from helpers.grading.attachments import LARGEST
from helpers.grading.folders import ROOT, write_atomically
from helpers.grading.intake import lesson_of, read_submission
from helpers.grading.lesson_release import course_release
from helpers.grading.notebook_file import Unreadable, read_cells
from helpers.grading.pool import Batch, GradingStopped, Pool
from helpers.grading.repository_files import SKIPPED
from helpers.grading.safe_text import one_line
from helpers.grading.submission import ExerciseReport

SOLUTIONS = ROOT / "solutions"


@dataclass(frozen=True)
class JudgedNotebook:
    """reports: in the lesson's order, each with the points of the release, of a bonus exercise 0: its points are on
    top. waiting: the exercises that wait for a person. written: points of questions that a person grades. flags: for a
    person."""

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
    """Print the summary, and add it to the page that GITHUB_STEP_SUMMARY names. 0: all points that need no person; 1:
    some are missing. Raises GradingStopped if it could not be graded."""
    judged = judge_notebook(course().lesson(lesson).name if lesson else lesson_named_in(notebook), notebook, unsafe)
    summary = as_markdown(judged)
    print(summary, end="")
    if page := os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(page, "a", encoding="utf-8") as file:
            file.write(summary)
    needed = [report for report in judged.reports if report.exercise not in judged.waiting]
    return int(any(report.points < report.max_points for report in needed))


def as_markdown(judged: JudgedNotebook) -> str:
    """The points, a table of the exercises, the report of each that is not right, and what waits for a person."""
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
            # Four spaces make a block of code that nothing in a learner's words can end.
            lines += [f"`{report.exercise}`:", "", *(f"    {line}" for line in report.text.splitlines()), ""]
    if judged.flags:
        lines += ["For a person to look at:", "", *(f"    {one_line(flag)}" for flag in judged.flags), ""]
    return "\n".join(lines)


def grade_folder(autograder: Path, lesson: str, unsafe: bool) -> int:
    """Grade submission/ and write results/results.json, whatever happens. 0: graded; 2: not, and the page says why."""
    try:
        results = as_results(judge_notebook(course().lesson(lesson).name, autograder / "submission", unsafe), unsafe)
    except (CourseError, OSError) as error:
        results = {"score": 0, "output": f"Not graded, so these points do not count: {error}", "output_format": "text"}
    write_atomically(autograder / "results" / "results.json", json.dumps(results, ensure_ascii=False, indent=1))
    return 0 if "tests" in results else 2


def as_results(judged: JudgedNotebook, unsafe: bool) -> dict:
    """What Gradescope shows: one test an exercise, with its report. Flags stand where only instructors see them."""
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
    """The lesson that a notebook is of, as its cells say. Raises GradingStopped if they don't."""
    try:
        read_cells(notebook)
    except Unreadable as problem:
        raise GradingStopped(str(problem)) from None
    releases = [course_release(SOLUTIONS / item.name / f"{item.name}.ipynb") for item in course().lessons]
    lesson, _ = lesson_of(notebook, releases)
    if lesson is None:
        raise GradingStopped(
            f"{notebook} is of no lesson of this course. Name one: course grade LESSON --ci {notebook}"
        )
    return lesson


def judge_notebook(lesson: str, handed_in: Path, unsafe: bool) -> JudgedNotebook:
    """Judge the notebook at `handed_in`, or the one in that folder, with what lies beside it.

    Raises GradingStopped if it cannot be read or judged, or if the grader fails its own test: then it has no points.
    """
    release = course_release(SOLUTIONS / lesson / f"{lesson}.ipynb")
    if not release.checks:
        raise GradingStopped(f"Lesson {lesson} has no exercises to grade.")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "handed_in" / lesson
        if handed_in.is_dir():
            shutil.copytree(handed_in, folder, symlinks=True, ignore=shutil.ignore_patterns(*SKIPPED))
        else:
            folder.mkdir(parents=True)
            beside = [path for path in handed_in.parent.iterdir() if path.suffix in LARGEST]
            for path in [handed_in, *beside]:
                shutil.copy(path, folder, follow_symlinks=False)
        submission = read_submission(Path(scratch), "handed_in", release, SOLUTIONS)
        if submission.problem:
            raise GradingStopped(submission.problem)
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
