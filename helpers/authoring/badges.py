"""Parts of pages that the build writes: badges, minutes and the clone address in README, measured figures in docs."""

import json
import re
from pathlib import Path
from textwrap import TextWrapper
from urllib.parse import quote

from helpers.course import Course, Lesson

COLAB = "https://colab.research.google.com"
BINDER = "https://mybinder.org"
MEASURED, MEASURED_END = "<!-- measured: made by `course build` from bench/results -->", "<!-- end of measured -->"
START, END = "<!-- badges: made by `course build` -->", "<!-- end of badges -->"


def badges(course: Course, lesson: Lesson) -> str:
    """The Markdown of a lesson's two badges; "" if the course has no address."""
    if not course.url:
        return ""
    binder = f"[![Open in Binder]({BINDER}/badge_logo.svg)]({binder_address(course, lesson)})"
    return f"{colab_badge(course, lesson)} {binder}"


def colab_badge(course: Course, lesson: Lesson) -> str:
    return f"[![Open in Colab]({COLAB}/assets/colab-badge.svg)]({colab_address(course, lesson)})"


def colab_address(course: Course, lesson: Lesson) -> str:
    home, notebook = f"{course.owner}/{course.repository}", f"notebooks/{lesson.name}/{lesson.name}.ipynb"
    return f"{COLAB}/github/{home}/blob/{course.tag}/{notebook}"


def binder_address(course: Course, lesson: Lesson) -> str:
    notebook = quote(f"notebooks/{lesson.name}/{lesson.name}.ipynb", safe="")
    return f"{BINDER}/v2/gh/{course.owner}/{course.repository}/{course.tag}?labpath={notebook}"


def with_figures(page: str, folder: Path) -> str:
    """Put an item for each result in `folder` (bench/results) between the two marks of docs/measurements.md."""
    items = [f"- {json.loads(file.read_text(encoding='utf-8'))['says']}" for file in sorted(folder.glob("*.json"))]
    wrapper = TextWrapper(120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    lines = [line for item in items for line in wrapper.wrap(item)]
    between = "\n".join([MEASURED, *lines, MEASURED_END])
    return re.sub(f"{re.escape(MEASURED)}.*?{re.escape(MEASURED_END)}", lambda _: between, page, flags=re.DOTALL)


def with_badges(readme: str, course: Course) -> str:
    """Put the course's address into README's clone line, the badges of the first lesson between the two marks, and a
    badge and the core minutes of each lesson into its table. If the course has no address, there are no badges."""
    shown = badges(course, course.lessons[0]) if course.lessons else ""
    between = f"{START}\n{shown}\n{END}" if shown else f"{START}\n{END}"
    readme = re.sub(f"{re.escape(START)}.*?{re.escape(END)}", lambda _: between, readme, flags=re.DOTALL)
    for lesson in course.lessons:
        link = re.escape(f"| [{lesson.number}](notebooks/{lesson.name}/{lesson.name}.ipynb)")
        badge = f" {colab_badge(course, lesson)}" if course.url else ""
        row = re.compile(rf"^({link})(?: \[!\[Open in Colab\]\S*)? \|(.*)\| \d+ \|$", re.MULTILINE)
        readme = row.sub(rf"\g<1>{badge} |\g<2>| {lesson.minutes} |", readme)
    address = course.url or "<this repository>"
    return re.sub(r"^git clone .+ ", lambda _: f"git clone {address} ", readme, flags=re.MULTILINE)
