"""One cell of a hand-in, from the intake to the record."""

from __future__ import annotations

from dataclasses import dataclass, field

TEXT = ("markdown", "raw", "written")


@dataclass
class Cell:
    """One cell, as it stands in the learner's order.

    kind: markdown, raw or written (no code); check: it is not run, its `exercise` is judged there; code, answer, or
    what a caller calls it otherwise: the learner's code, locked cells of the release too.
    trusted: the source is the release's own, so it is not searched for what learners should not write.
    gone: the learner had deleted it and the intake put it back, so that its exercise counts as it stands at the end.
    ran: whether it ran at home without an error, as far as its outputs tell.
    waits: a written answer that looks untouched, though there is other text: a person must look.
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

    @property
    def runs(self) -> bool:
        return self.kind != "check" and self.kind not in TEXT


@dataclass(frozen=True)
class LooseFile:
    """What is judged. name: what its errors call it; files: what lies beside it; exercise: this one only, or None for
    all that it defines; as_json: how the verdicts are written."""

    name: str
    source: str
    files: dict[str, bytes]
    exercise: str | None
    as_json: bool
