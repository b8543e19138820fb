"""`check(answer)`: judge an answer in the learner's own notebook, with helpful messages.

The code behind it is imported at the first call, so that `import helpers` stays quick.
"""

from helpers.errors import CheckFailed, CourseError, in_one_line
from helpers.errors import NotAnswered as NotAnswered


def check(*answers, **named):
    """Judge one answer: `check(scaled_scores)`, or by name: `check(quiz_1=quiz_1)`.

    Shows what is right and what is not. Raises CheckFailed if the answer is not right yet, or NotAnswered if there is
    none, so that Run All, nbgrader's Validate and scripts notice it as well.
    """
    import inspect

    from helpers.checking.session import check_one

    caller = inspect.currentframe().f_back
    try:
        if len(answers) + len(named) != 1:
            raise CheckFailed("Call check with one answer: check(scaled_scores), or check(quiz_1=quiz_1).")
        ((name, answer),) = named.items() or [(None, *answers)]
        check_one(name, answer, caller.f_globals)
    except CourseError:
        in_one_line()
        raise
