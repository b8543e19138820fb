"""`check(answer)`: judge an answer in the learner's own notebook, with words that help.

The machinery is imported at the first call, so that `import helpers` stays light.
"""

from __future__ import annotations

from helpers.errors import CourseError, in_one_line


class CheckFailed(CourseError, AssertionError):
    """An answer is not right yet. Shown as one line, as the check has already said what it saw."""


class NotAnswered(CheckFailed):
    """There is no answer yet. The check has said so in its own quiet line, so this one is gray."""

    def _render_traceback_(self):
        return [f"\x1b[90m{self}\x1b[0m"]


def check(*answers, **named):
    """Judge one answer: `check(scaled_scores)`, or by name: `check(quiz_1=quiz_1)`.

    Says what holds and what does not. Raises CheckFailed when the answer is not right yet, NotAnswered when there is
    none, so that Run All, nbgrader's Validate and a script see it too.
    """
    import inspect

    from helpers.checking.session import check_one

    in_one_line()
    caller = inspect.currentframe().f_back
    if len(answers) + len(named) != 1:
        raise CheckFailed("Call check with one answer: check(scaled_scores), or check(quiz_1=quiz_1).")
    if named:
        ((name, answer),) = named.items()
    else:
        name, answer = None, answers[0]
    check_one(name, answer, caller.f_globals)
