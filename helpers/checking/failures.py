"""What `check` raises where an answer is not right yet."""

from __future__ import annotations

from helpers.errors import CourseError


class CheckFailed(CourseError, AssertionError):
    """An answer is not right yet. Shown as one line, as the check has already said what it saw."""


class NotAnswered(CheckFailed):
    """There is no answer yet. The check has said so in its own quiet line, so this one is gray."""

    def _render_traceback_(self):
        return [f"\x1b[90m{self}\x1b[0m"]
