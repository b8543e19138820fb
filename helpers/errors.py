"""Errors that a person reads: one sentence, without a traceback, in a notebook, a terminal and a plain script."""

import sys


class CourseError(Exception):
    """Something a person can mend. Its text is one or two sentences, and just that is shown."""

    def _render_traceback_(self):
        return [f"{type(self).__name__}: {self}"]


class CheckFailed(CourseError, AssertionError):
    """An answer is not right yet. Shown as one line, as the check has already said what it saw."""


class NotAnswered(CheckFailed):
    """There is no answer yet. The check has said so in its own quiet line, so this one is gray."""

    def _render_traceback_(self):
        return [f"\x1b[90m{self}\x1b[0m"]


def in_one_line() -> None:
    """Let a plain script that ends with a CourseError print its sentence only; every other error as ever."""
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
