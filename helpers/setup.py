"""The last step of a notebook's set-up cell: which lesson this is."""

from __future__ import annotations

import importlib.util

_lesson: str | None = None


def start(lesson: str) -> None:
    """Say that this kernel works on `lesson`. Running it again is harmless."""
    global _lesson
    _lesson = lesson
    missing = [name for name in ("torch", "matplotlib", "ipywidgets") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"The course needs {' and '.join(missing)}. Install with: pip install -r requirements.txt")
    else:
        print(f"Ready: {lesson}")


def current_lesson() -> str | None:
    """The lesson this kernel works on, such as "04_scaling"; None outside a notebook."""
    return _lesson
