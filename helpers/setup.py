"""The last step of a notebook's set-up cell: which lesson this is."""

from __future__ import annotations

import importlib.util

import helpers

_lesson: str | None = None


def start(lesson: str, version: str) -> None:
    """Say that this kernel works on `lesson`. Running it again is harmless.

    version: that of the notebook. One sentence where the course beside it is of another one.
    """
    global _lesson
    _lesson = lesson
    if version != helpers.__version__:
        print(
            f"This notebook is of version {version} of the course, and the course beside it of {helpers.__version__}: "
            "checks may be wrong. Take both from the same edition."
        )
    missing = [name for name in ("torch", "matplotlib", "ipywidgets") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"The course needs {' and '.join(missing)}. Install with: pip install -r requirements.txt")
    else:
        print(f"Ready: {lesson}")


def current_lesson() -> str | None:
    """The lesson this kernel works on, such as "04_scaling"; None outside a notebook."""
    return _lesson
