"""Data classes for a release, a submission with its cells, and the reports on them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the process that writes the gradebook does not import torch
    from helpers.checking.verdict import Verdict

TEXT = ("markdown", "raw", "written")


@dataclass
class Cell:
    """One cell of a submission, whose cells are in the learner's order.

    kind: markdown, raw or written (a question for a person) for text; check for a cell that is not run, but at which
    its `exercise` is judged; code, answer or any other name for code that is run, including the release's locked cells.
    trusted: the source comes from the release, so it is not searched for suspicious code.
    gone: the learner deleted it and the intake restored it. The exercise of such a check cell is judged at the end.
    ran: whether it ran on the learner's computer without an error, as far as its outputs show; None if they don't.
    passed: whether the outputs of a check cell show that the answer passed on the learner's computer.
    waits: a person must look, because a written answer seems unchanged although there is other text, or because the
    answer needs newer syntax or a package that the grader lacks.
    """

    id: str
    source: str
    kind: str = "code"
    exercise: str | None = None
    grade_id: str | None = None
    metadata: dict = field(default_factory=dict)
    attachments: dict = field(default_factory=dict)
    trusted: bool = False
    gone: bool = False
    waits: bool = False
    ran: bool | None = None
    passed: bool = False

    @property
    def runs(self) -> bool:
        return self.kind != "check" and self.kind not in TEXT


@dataclass
class Release:
    """The original student notebook of a lesson, as it was published."""

    lesson: str
    metadata: dict
    graded: dict[str, dict]  # grade_id -> cell, in the notebook's order
    checks: dict[str, float]  # exercise -> points of its check cell (0 for a bonus exercise)
    written: dict[str, float]  # grade_id -> points of a question that a person grades
    sources: set[str]  # of all cells; the release's own text needs neither sanitizing nor a flag
    shown: dict[str, list] = field(default_factory=dict)  # source of a cell that need not run -> its stored outputs
    ids: dict[str, str] = field(default_factory=dict)  # cell id -> grade_id
    texts: set[str] = field(default_factory=set)  # sources of all cells with white space normalized
    above: dict[str, str] = field(default_factory=dict)  # grade_id -> source of the cell above it
    code: list[tuple[str | None, str]] = field(default_factory=list)  # grade_id, source of each code cell, in order
    ungraded: dict[str, set[str]] = field(default_factory=dict)  # source of a cell that no points need -> names bound
    demonstrations: dict[str, set[str]] = field(default_factory=dict)  # cell that is the same for all -> its names
    given: dict[str, set[str]] = field(default_factory=dict)  # as returned by `import_names` of lesson_release.py
    solved: dict[str, str] = field(default_factory=dict)  # grade_id -> source of the published solution's cell
    title: str = ""  # its first heading, else its name


@dataclass
class Submission:
    """What a student handed in for a lesson. problem: one sentence if only a person can grade it."""

    student: str
    lesson: str
    cells: list[Cell]
    sha: str
    flags: list[str] = field(default_factory=list)
    problem: str | None = None
    timestamp: str | None = None
    again: bool = False  # the problem is the grader's, so the submission is graded again next time
    folder: Path | None = None  # holds the notebook and its attachments (helpers/grading/attachments.py)

    def code(self) -> str:
        return "\n".join(cell.source for cell in self.cells if cell.kind in ("code", "answer"))


@dataclass(frozen=True)
class ExerciseReport:
    """A verdict that can be read without torch. label: the mistake in words. text, html: the report for the learner.
    failed: the parts that failed. message: the report's explanation of what is wrong."""

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

    verdicts: by name, one for each exercise and quiz of the lesson in the order of the answer key; ExerciseReports
    outside the judge's process.
    outputs: cell id -> list of nbformat output dicts, limited in number and bytes, for each cell that ran.
    flags: sentences about what a person should check.
    errors: cell id -> what happened, in one line, for each cell that raised or ended the process.
    problem: a sentence if the points cannot be trusted, so that a person must grade the submission.
    """

    verdicts: "dict[str, Verdict] | dict[str, ExerciseReport]" = field(default_factory=dict)
    outputs: dict[str, list[dict]] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    problem: str | None = None
