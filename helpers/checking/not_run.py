"""Replace a NameError by a sentence if the cell that defines an answer, or imports `check`, has not run yet."""

import functools
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from helpers.answer_keys import contents

ANSWER_KEYS = Path(__file__).parents[1] / "answer_keys"


def explain_cells_not_run(lesson: str) -> None:
    """Make IPython say which cell to run first when a name of the lesson is not defined. Does nothing elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return
    if not hasattr(shell, "before_the_course"):  # Colab has handlers of its own, which are kept
        shell.before_the_course = shell.custom_exceptions, shell.CustomTB
    shell.set_custom_exc((NameError, *shell.before_the_course[0]), functools.partial(_show, lesson))


def _show(lesson: str, shell, kind: type, error: Any, trace: TracebackType, tb_offset: int | None = None):
    """Show the error, as a sentence if a line of the cell itself reads the name of an answer."""
    cell = trace.tb_next
    in_cell = isinstance(error, NameError) and cell is not None and cell.tb_next is None
    sentence = _sentence(error.name, lesson) if in_cell else None
    others, show = shell.before_the_course
    if sentence:
        error._render_traceback_ = lambda: [sentence]  # IPython shows these lines and no others
    elif isinstance(error, others):
        return show(kind, error, trace, tb_offset)
    return shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def _sentence(name: str | None, lesson: str) -> str | None:
    if name == "check":
        return "check is not defined yet. Run the imports below the set-up cell first, and then this one again."
    if name in {row.name for row in contents(ANSWER_KEYS).get(lesson, [])}:
        return f"{name} is not defined yet. Run its answer cell first, and then this one again."
    return None
