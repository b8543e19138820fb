"""The trusted side of grading: fresh inputs go into the sandbox, raw tensors come back, the verdict is made here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from helpers.check.verdict import Verdict


class GraderBroken(RuntimeError):
    """The grader itself failed its own test: nobody may be graded. The message is one sentence for a person."""


@dataclass(frozen=True)
class Cell:
    """One code cell of a submission, in the order in which it stands.

    kind: "learner" cells run (locked cells of the release too); "check" cells are not run: the verdict of
    their `exercise` stands in their place.
    """

    id: str
    source: str
    kind: Literal["learner", "check"] = "learner"
    exercise: str | None = None


@dataclass
class SubmissionResult:
    """What became of one submission.

    outputs: for each cell that ran, a list of nbformat output dicts (bounded in number and bytes).
    verdicts: one for each exercise and quiz of the lesson, in the order of the answer key.
    flags: sentences about what a person should look at.
    """

    outputs: dict[str, list[dict]] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)


class Judge:
    """Judges submissions of one lesson, with inputs drawn from `seed`.

    unsafe: run learner code in a plain process where there is no bubblewrap. Use as a context manager.
    Raises SandboxMissing (helpers.grading.sandbox) where learner code cannot be isolated.
    """

    def __init__(self, lesson: str, seed: int, unsafe: bool = False):
        raise NotImplementedError

    def __enter__(self) -> Judge:
        raise NotImplementedError

    def __exit__(self, *exc) -> None:
        raise NotImplementedError

    def judge_cells(self, cells: list[Cell], exercises: list[str] | None = None) -> SubmissionResult:
        """Run the learner's cells in order, then judge each exercise (all of the lesson, or those named)."""
        raise NotImplementedError

    def judge_source(self, source: str, exercises: list[str] | None = None, name: str = "answer.py") -> list[Verdict]:
        """Judge a loose file; without `exercises`, those that it defines."""
        raise NotImplementedError

    def self_test(self) -> None:
        """Reference full, blank 0, hostile canary 0; otherwise GraderBroken."""
        raise NotImplementedError
