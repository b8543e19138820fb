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

    @property
    def runs(self) -> bool:
        return self.kind != "check" and self.kind not in TEXT
