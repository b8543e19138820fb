"""One submission judged without a gradebook: what a workflow on a server and Gradescope are told of it."""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from helpers.grading.attachments import LARGEST
from helpers.grading.folders import ROOT
from helpers.grading.intake import read_submission
from helpers.grading.lesson_release import course_release
from helpers.grading.pool import Batch, GradingStopped, Pool
from helpers.grading.reports import ExerciseReport
from helpers.grading.whole_clone import SKIPPED

NAMED = re.compile(r"set_up\('(\w+)'|\b(\d\d_[a-z_]+)")  # in the set-up cell, or the file's name


@dataclass(frozen=True)
class Scored:
    """An exercise or quiz of one submission. worth: its points, of a bonus exercise 0: those are on top."""

    name: str
    points: float
    worth: float
    report: ExerciseReport

    @property
    def full(self) -> bool:
        return self.points >= self.worth


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
        """On top of the points."""
        return sum(item.points for item in self.scored if not item.worth)

    @property
    def worth(self) -> float:
        return sum(item.worth for item in self.scored)


def lesson_of(notebook: Path, lessons: list[str]) -> str:
    """The lesson that a notebook is of, as its set-up cell or its name says. GradingStopped."""
    try:
        text = notebook.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise GradingStopped(f"{notebook} cannot be read ({error.strerror}).") from None
    for match in NAMED.finditer(f"{text}\n{notebook.name}"):
        if (match[1] or match[2]) in lessons:
            return match[1] or match[2]
    raise GradingStopped(f"{notebook} is of no lesson of this course. Name one: course grade LESSON --ci {notebook}")


def judge_notebook(lesson: str, handed_in: Path, unsafe: bool = False) -> JudgedNotebook:
    """Judge the notebook at `handed_in`, or the one in that folder, with what lies beside it.

    GradingStopped where it cannot be read or judged, or where the grader fails its own test: then it has no points.
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
    scored = []
    for name, worth in release.checks.items():
        report = graded.verdicts[name]
        scored.append(Scored(name, min(report.points, worth) if worth else report.points, worth, report))
    return JudgedNotebook(lesson, scored, sum(release.written.values()), [*submission.flags, *graded.flags])
