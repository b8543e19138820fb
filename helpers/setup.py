"""The last step of a notebook's set-up cell: set the kernel's lesson and check that the packages are installed."""

import importlib
import importlib.util
import sys

from helpers.checking.not_run import explain_cells_not_run
from helpers.course import course
from helpers.errors import CourseError

NEEDED = ("numpy", "torch", "matplotlib", "ipywidgets", "safetensors")

_lesson: str | None = None


def start(lesson: str, version: str) -> None:
    """Set the lesson that this kernel works on. Running it again is harmless.

    version: the version of the notebook; if the course next to it has another one, a sentence is printed. Raises
    CourseError, which says what to do, if that course lacks the lesson or if a package is missing or does not load.
    """
    global _lesson
    lessons = [item.name for item in course().lessons]
    if lesson not in lessons:
        raise CourseError(
            f"The course beside this notebook ends with {lessons[-1]}, and this is {lesson}. Put the zip that came "
            "with this notebook beside it, restart the kernel and run this cell again."
        )
    beside = sys.modules[__package__].__version__
    if version != beside:
        print(
            f"This notebook is of version {version} of the course, and the course beside it of {beside}: "
            "checks may be wrong. Take both from the same edition."
        )
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise CourseError(
            f"{_listed(missing)} not installed for the Python of this notebook, {sys.executable}. "
            "Install with: pip install -r requirements.txt"
        )
    try:
        importlib.import_module("ipywidgets")
    except Exception as error:
        raise CourseError(
            f"ipywidgets is here and does not load ({type(error).__name__}: {error}). "
            "Reinstall it with: pip install -U ipywidgets, restart the kernel and run this cell again."
        ) from None
    _lesson = lesson
    explain_cells_not_run(lesson)
    print(f"Ready: {lesson}")


def _listed(names: list[str]) -> str:
    """ "torch is" for one name, "numpy, torch and matplotlib are" for several."""
    return f"{', '.join(names[:-1])} and {names[-1]} are" if names[1:] else f"{names[0]} is"


def current_lesson() -> str | None:
    """The lesson that this kernel works on, such as "04_scaling"; None outside a notebook."""
    return _lesson
