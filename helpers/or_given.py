"""`or_given(answer)`: the learner's own function once its check has passed, else the machine's part of that name.

The machine is the translator, in lesson 12 a GPT, and in lesson 13 the real network. What is no part of a machine has
a stand-in of its lesson's own. Stand-ins are public like the solutions: they keep later cells running and withhold
nothing. An answer that calls one is refused; one that copies its text is flagged (helpers/grading/public_solution.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from helpers.progress import PASSED

_SAID: set[str] = set()
_JUDGED: list[None] = []  # an entry for each answer that is being judged now


@contextlib.contextmanager
def nothing_given() -> Iterator[None]:
    """While active, `or_given` hands on every answer as it is: an answer that is judged gets no finished block, and
    where an earlier one that it calls is wrong, the check puts in the finished block itself (see checking/retry.py).
    """
    _JUDGED.append(None)
    try:
        yield
    finally:
        _JUDGED.pop()


def or_given(answer):
    """`answer` itself where its check has passed in this kernel; else a finished block that does the same.

    Says so in one quiet line the first time. Where there is no finished block, or an answer that is being judged asks,
    the answer is returned as it is.
    """
    if _JUDGED:
        return answer
    import inspect

    names = inspect.currentframe().f_back.f_globals
    bound = [name for name, value in list(names.items()) if value is answer]
    bound.append(getattr(answer, "__name__", ""))
    if any(name in PASSED for name in bound):
        return answer
    from helpers.setup import current_lesson

    for name in bound:
        piece = stand_in_for(current_lesson() or "", name)
        if piece is not None:
            break
    else:
        return answer
    if name not in _SAID:
        _SAID.add(name)
        print(f"{name}: the course's own part for now; yours follows once its check, and those of what it calls, pass.")
    return piece


def stand_in_for(lesson: str, name: str):
    """What stands in for the exercise `name`: the lesson's own (helpers/lessons/TOPIC/given.py), else the translator's.

    lesson: such as "12_language_model"; an empty string looks in all of them. None where nothing stands in.
    """
    import importlib
    import importlib.util
    import pkgutil

    from helpers import lessons
    from helpers.translator import GIVEN as TRANSLATOR

    for room in pkgutil.iter_modules(lessons.__path__, f"{lessons.__name__}."):
        home = f"{room.name}.given"
        if lesson and room.name != f"{lessons.__name__}.{lesson[3:]}":
            continue
        if importlib.util.find_spec(home):  # a lesson that is being graded is without
            piece = importlib.import_module(home).GIVEN.get(name)
            if piece is not None:
                return piece
    return TRANSLATOR.get(name)
