"""What was handed out, what was submitted and what became of it: a release, a submission with its cells, its report."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the process that writes the gradebook does without torch
    from helpers.checking.verdict import Verdict

TEXT = ("markdown", "raw", "written")


@dataclass
class Cell:
    """One cell, as it stands in the learner's order.

    kind: markdown, raw or written (no code); check: it is not run, its `exercise` is judged there; code, answer, or
    what a caller calls it otherwise: the learner's code, locked cells of the release too.
    trusted: the source is the release's own, so it is not searched for what learners should not write.
    gone: the learner had deleted it and the intake put it back, so that its exercise counts as it stands at the end.
    ran: whether it ran at home without an error, as far as its outputs tell.
    passed: of a check, whether its outputs say that the answer passed at home.
    waits: a written answer that looks untouched, though there is other text, or a check whose answer has syntax that
    the grader cannot read or a package that it does not have: a person must look.
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
    """The pristine student notebook of a lesson, as it was handed out."""

    lesson: str
    metadata: dict
    graded: dict[str, dict]  # grade_id -> cell, in the notebook's order
    checks: dict[str, float]  # exercise -> points of its check cell (0 for a bonus exercise)
    written: dict[str, float]  # grade_id -> points of a question that a person grades
    sources: set[str]  # source of every cell: the release's own text needs neither sanitizing nor a flag
    shown: dict[str, list] = field(default_factory=dict)  # source of a cell that need not run -> its outputs, made once
    ids: dict[str, str] = field(default_factory=dict)  # cell id -> grade_id
    texts: set[str] = field(default_factory=set)  # sources of all cells, whatever the white space
    above: dict[str, str] = field(default_factory=dict)  # grade_id -> source of the cell above it
    code: list[tuple[str | None, str]] = field(default_factory=list)  # grade_id, source of each code cell, in order
    ungraded: dict[str, set[str]] = field(default_factory=dict)  # source of a cell that no point needs -> what it binds
    demonstrations: dict[str, set[str]] = field(default_factory=dict)  # source of a cell that does the same for all
    given: dict[str, set[str]] = field(default_factory=dict)  # as `import_names` of lesson_release.py tells
    solved: dict[str, str] = field(default_factory=dict)  # grade_id -> source of the published solution's cell
    title: str = ""  # its first heading, else its name


@dataclass
class Submission:
    """What a student handed in for a lesson. `problem`: one sentence if it cannot be graded without a person."""

    student: str
    lesson: str
    cells: list[Cell]
    sha: str
    flags: list[str] = field(default_factory=list)
    problem: str | None = None
    timestamp: str | None = None
    again: bool = False  # the problem is the grader's: grade it again next time
    folder: Path | None = None  # where it lies, with what belongs to it (helpers/grading/attachments.py)

    def code(self) -> str:
        return "\n".join(cell.source for cell in self.cells if cell.kind in ("code", "answer"))


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
