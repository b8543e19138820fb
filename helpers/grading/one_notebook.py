"""One submission judged without a gradebook, for a workflow on a server and for Gradescope.

`course grade --ci FILE.ipynb` tells of it in Markdown. `course grade LESSON --gradescope /autograder` reads the
submission in Gradescope's folder and writes the results.json that is described in
https://gradescope-autograders.readthedocs.io/en/latest/specs/.
"""

import json
import os
import re
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from helpers.course import course
from helpers.errors import CourseError
from helpers.grading.attachments import LARGEST
from helpers.grading.folders import ROOT, write_atomically
from helpers.grading.intake import read_submission
from helpers.grading.lesson_release import course_release
from helpers.grading.pool import Batch, GradingStopped, Pool
from helpers.grading.reports import ExerciseReport
from helpers.grading.repository_files import SKIPPED
from helpers.grading.safe_text import one_line

NAMED = re.compile(r"set_up\('(\w+)'|\b(\d\d_[a-z_]+)")  # in the set-up cell, or the file's name


@dataclass(frozen=True)
class Scored:
    """An exercise or quiz of one submission. worth: its points, of a bonus exercise 0: those are on top. waits: a
    person must look, as in Cell."""

    name: str
    points: float
    worth: float
    report: ExerciseReport
    waits: bool = False


@dataclass(frozen=True)
class JudgedNotebook:
    """scored: in the lesson's order. waiting: points of questions that a person grades. flags: for a person."""

    lesson: str
    scored: list[Scored]
    waiting: float
    flags: list[str]

    @property
    def points(self) -> float:
        return sum(item.points for item in self.scored if item.worth)

    @property
    def bonus(self) -> float:
        return sum(item.points for item in self.scored if not item.worth)


def grade_file(notebook: Path, lesson: str | None, unsafe: bool) -> int:
    """Print the summary, and add it to the page that GITHUB_STEP_SUMMARY names. 0: all points that need no person; 1:
    some are missing. Raises GradingStopped if it could not be graded."""
    judged = judge_notebook(course().lesson(lesson).name if lesson else lesson_named_in(notebook), notebook, unsafe)
    summary = as_markdown(judged)
    print(summary, end="")
    if page := os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(page, "a", encoding="utf-8") as file:
            file.write(summary)
    return int(any(item.points < item.worth and not item.waits for item in judged.scored))


def as_markdown(judged: JudgedNotebook) -> str:
    """The points, a table of the exercises, the report of each that is not right, and what waits for a person."""
    bonus = f" and {judged.bonus:g} bonus points" if judged.bonus else ""
    worth = sum(item.worth for item in judged.scored)
    lines = [f"## {judged.lesson}: {judged.points:g} of {worth:g} points{bonus}", ""]
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
    report = scored.report
    score = f"{scored.points:g} of {scored.worth:g}" if scored.worth else f"{scored.points:g} bonus"
    label = "" if report.passed else "waits for a person" if scored.waits else report.label.replace("|", "\\|")
    return f"| {'✓' if report.passed else '✗' if report.answered else '–'} | `{scored.name}` | {score} | {label} |"


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
    output = [f"The written question ({judged.waiting:g} points) is graded by a person."] if judged.waiting else []
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
                "name": item.name if item.worth else f"{item.name} (bonus)",
                "score": item.points,
                "max_score": item.worth,
                "status": "passed" if item.report.passed else "failed",
                "output": ("This answer waits for a person.\n" if item.waits else "") + item.report.text,
                "output_format": "text",
            }
            for item in judged.scored
        ],
    }


def lesson_named_in(notebook: Path) -> str:
    """The lesson that a notebook is of, as its set-up cell or its name says. Raises GradingStopped if neither does."""
    lessons = [item.name for item in course().lessons]
    try:
        text = notebook.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise GradingStopped(f"{notebook} cannot be read ({error.strerror}).") from None
    for match in NAMED.finditer(f"{text}\n{notebook.name}"):
        if (match[1] or match[2]) in lessons:
            return match[1] or match[2]
    raise GradingStopped(f"{notebook} is of no lesson of this course. Name one: course grade LESSON --ci {notebook}")


def judge_notebook(lesson: str, handed_in: Path, unsafe: bool) -> JudgedNotebook:
    """Judge the notebook at `handed_in`, or the one in that folder, with what lies beside it.

    Raises GradingStopped if it cannot be read or judged, or if the grader fails its own test: then it has no points.
    """
    solutions = ROOT / "solutions"
    release = course_release(solutions / lesson / f"{lesson}.ipynb")
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
        submission = read_submission(Path(scratch), "handed_in", release, solutions)
        if submission.problem:
            raise GradingStopped(submission.problem)
        with Pool(Batch(lesson, secrets.randbelow(2**31), unsafe), 1) as pool:
            pool.self_test("before it judged")
            [(_, graded)] = pool.judge_each([submission], release, lambda student: None)
    if graded is None or submission.problem:
        raise GradingStopped(submission.problem or "The grader could not judge this notebook.")
    waiting = {cell.exercise for cell in submission.cells if cell.kind == "check" and cell.waits}
    scored = []
    for name, worth in release.checks.items():
        report = graded.verdicts[name]
        points = min(report.points, worth) if worth else report.points
        scored.append(Scored(name, points, worth, report, name in waiting and not report.passed))
    return JudgedNotebook(lesson, scored, sum(release.written.values()), [*submission.flags, *graded.flags])
