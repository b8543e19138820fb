"""What became of one submission, from the judge to the record."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the process that writes the gradebook does without torch
    from helpers.checking.verdict import Verdict


@dataclass(frozen=True)
class ExerciseReport:
    """A verdict that can be read without torch. label: the mistake in words; text and html: the learner's report.

    failed: the parts that do not hold. message: what the report says is wrong.
    """

    exercise: str
    points: float
    max_points: float
    passed: bool
    answered: bool
    mistake: str | None
    label: str
    text: str
    html: str
    failed: tuple[str, ...] = ()
    message: str = ""


@dataclass
class SubmissionReport:
    """What the judge found in one submission.

    verdicts: one for each exercise and quiz of the lesson, in the order of the answer key; rendered, once they leave
    the judge's process.
    outputs: for each cell that ran, a list of nbformat output dicts (bounded in number and bytes).
    flags: sentences about what a person should look at.
    errors: for each cell that raised or ended the process, what happened, in one line.
    problem: a sentence where the points are not to be trusted, so that a person must grade it.
    """

    verdicts: "dict[str, Verdict] | dict[str, ExerciseReport]" = field(default_factory=dict)
    outputs: dict[str, list[dict]] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    problem: str | None = None
