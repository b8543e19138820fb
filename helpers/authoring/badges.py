"""Badges that open a lesson in Colab or Binder. While course.toml names no repository there are none."""

from __future__ import annotations

import re
from urllib.parse import quote

from helpers.course import Course, Lesson

COLAB = "https://colab.research.google.com"
BINDER = "https://mybinder.org"
START, END = "<!-- badges: made by `course build` -->", "<!-- end of badges -->"


def badges(course: Course, lesson: Lesson) -> str:
    """The Markdown of a lesson's two badges; empty while the course has no address."""
    if not course.url:
        return ""
    home, notebook = f"{course.owner}/{course.repository}", f"notebooks/{lesson.name}/{lesson.name}.ipynb"
    colab = f"{COLAB}/github/{home}/blob/{course.tag}/{notebook}"
    binder = f"{BINDER}/v2/gh/{home}/{course.tag}?labpath={quote(notebook, safe='')}"
    return (
        f"[![Open in Colab]({COLAB}/assets/colab-badge.svg)]({colab}) "
        f"[![Open in Binder]({BINDER}/badge_logo.svg)]({binder})"
    )


def with_badges(readme: str, course: Course) -> str:
    """README's text with the badges of the first lesson between its two marks, or nothing between them."""
    shown = badges(course, course.lessons[0]) if course.lessons else ""
    between = f"{START}\n{shown}\n{END}" if shown else f"{START}\n{END}"
    return re.sub(f"{re.escape(START)}.*?{re.escape(END)}", lambda _: between, readme, flags=re.DOTALL)
