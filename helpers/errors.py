"""Errors for people, shown as one sentence without a traceback in notebooks, terminals and plain scripts."""

import sys


class CourseError(Exception):
    """A problem that a person can fix. Only its message, one or two sentences, is shown."""

    def _render_traceback_(self):
        return [f"{type(self).__name__}: {self}"]


class CheckFailed(CourseError, AssertionError):
    """An answer is not right yet. The error is one line, because the check has already shown the details."""


class NotAnswered(CheckFailed):
    """There is no answer yet. The error is shown in gray, because the check has already said so."""

    def _render_traceback_(self):
        return [f"\x1b[90m{self}\x1b[0m"]


def in_one_line() -> None:
    """Make a plain script that ends with a CourseError print only its message. Other errors are shown as before."""
    before = sys.excepthook
    if getattr(before, "of_the_course", False):
        return

    def hook(kind, error, trace):
        if issubclass(kind, CourseError):
            print(f"{kind.__name__}: {error}", file=sys.stderr)
        else:
            before(kind, error, trace)

    hook.of_the_course = True
    sys.excepthook = hook
