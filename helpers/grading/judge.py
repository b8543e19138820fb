"""The trusted side of grading: fresh inputs go into the sandbox, raw tensors come back, the verdict is made here."""

import contextlib

import torch

from helpers.checking.key import ExerciseKey
from helpers.checking.verdict import not_answered
from helpers.course import course
from helpers.grading.judge_lock import JudgeLock
from helpers.grading.name_bindings import TopLevel
from helpers.grading.reference import PRELUDE, GraderBroken, blocks_source, fresh_keys, release_imports, visible_keys
from helpers.grading.reports import SubmissionReport
from helpers.grading.sandbox import Limits, Sandbox, SandboxFailed
from helpers.grading.submission import Cell
from helpers.grading.trial import Trial

TOO_DEEP = "Its code is nested too deeply to be looked at; grade it by hand."


class Judge(contextlib.AbstractContextManager):
    """Judges submissions of one lesson, with inputs drawn from `seed`. Use as a context manager.

    lesson: its name or number. unsafe: run learner code in a plain process where there is no bubblewrap.
    notebook: submissions are notebook cells, else loose files. keys: those of another judge of the same lesson and
    seed. lock_folder: a folder that all judges of a batch know (judge_lock.py).
    Raises CourseError (unknown lesson), GraderBroken (the lesson is not built), SandboxMissing.
    """

    def __init__(
        self,
        lesson: str,
        seed: int,
        unsafe: bool = False,
        notebook: bool = True,
        limits: Limits | None = None,
        keys: dict[str, ExerciseKey] | None = None,
        lock_folder: str | None = None,
    ):
        torch.set_num_threads(1)
        self.lesson = course().lesson(lesson)
        self.seed, self.unsafe, self.notebook = seed, unsafe, notebook
        self.lock = JudgeLock(lock_folder)
        self.limits = limits or Limits(cell_seconds=self.lesson.cell_seconds)
        self.keys = keys if keys is not None else fresh_keys(self.lesson, seed)
        self.visible = visible_keys(self.lesson.name)
        self.blocks = TopLevel([blocks_source(self.lesson)])
        try:
            given = release_imports(self.lesson, self.keys) if notebook else PRELUDE
            self.sandbox = Sandbox(self.lesson.name, notebook, unsafe, self.limits, given)
        except SandboxFailed as error:
            raise GraderBroken(str(error)) from None

    def __exit__(self, *exc) -> None:
        self.close()

    def close(self) -> None:
        self.sandbox.close()

    def judge_cells(
        self,
        cells: list[Cell],
        exercises: list[str] | None = None,
        files: dict[str, bytes] | None = None,
        hurried: bool = False,
    ) -> SubmissionReport:
        """Run the learner's cells in order and judge each exercise at its check cell; one that is not answered
        there, or has none, at the end.

        exercises: those that are judged, else all of the lesson, or of a loose file all that it defines. files: what
        lies beside the notebook (helpers/grading/attachments.py). hurried: others wait, so what takes long is given up
        soon, with the problem TOO_LONG.
        """
        self.sandbox.files = files or {}
        wanted = list(self.keys) if exercises is None else exercises
        try:
            with Trial(self, cells, wanted, hurried, self.visible) as trial:
                if exercises is None and not self.notebook:
                    wanted = [name for name in self.keys if name in trial.code.uses]
                for name in self.keys:
                    if name in wanted:
                        trial.verdict(name)
                return trial.result(wanted)
        except RecursionError:
            return SubmissionReport({key.name: not_answered(key) for key in self.keys.values()}, problem=TOO_DEEP)
