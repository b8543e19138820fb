"""`course doctor`: whether the course can run here, a line for each thing it needs, and what to do about it.

For learners: Python, packages, sliders, notebooks under another name. With the teacher's wing: whether it can grade.
"""

import argparse
import importlib
import json
import re
import sys
from importlib import metadata
from pathlib import Path

from helpers.course import Course, CourseError, course
from helpers.released import working_copies

PACKAGES = ("numpy", "matplotlib", "ipywidgets", "safetensors")
GRADING_PACKAGES = ("nbgrader", "nh3", "psutil", "rich")
SET_UP = re.compile(r"set_up\('(\w+)'")
Finding = tuple[bool, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There is nothing to choose."""


def run(args: argparse.Namespace) -> int:
    """Print the findings; exit code 0 when everything works, 1 otherwise."""
    return told(findings())


def findings() -> list[Finding]:
    return [
        (True, f"Python {sys.version.split()[0]}"),  # `helpers` itself refuses an older one
        look_at_torch(),
        *map(look_at_package, PACKAGES),
        look_at_widgets(),
        *look_at_course(),
    ]


def told(found: list[Finding]) -> int:
    """Print the findings; 0 when all are good, else 1."""
    for good, line in found:
        print(f"{'✓' if good else '✗'} {line}")
    return 0 if all(good for good, _ in found) else 1


def look_at_torch() -> Finding:
    try:
        import torch

        total = float((torch.ones(2, 2) @ torch.ones(2, 2)).sum())
    except Exception as error:
        return False, f"torch does not work ({_in_a_line(error)}). Install with: pip install -r requirements.txt"
    return total == 8, f"torch {torch.__version__}"


def look_at_package(name: str) -> Finding:
    how = 'pip install -e ".[grade]"' if name in GRADING_PACKAGES else "pip install -r requirements.txt"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return False, f"{name} is not installed. Install with: {how}"
    try:
        importlib.import_module(name)
    except Exception as error:
        return (False, f"{name} {version} does not load ({_in_a_line(error)}). Install anew: pip install -U {name}")
    return True, f"{name} {version}"


def _in_a_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def look_at_widgets() -> Finding:
    """Sliders need the same generation of ipywidgets in the kernel and of its extension in JupyterLab."""
    try:
        kernel = metadata.version("ipywidgets").split(".")[0]
    except metadata.PackageNotFoundError:
        return False, "sliders will not show: ipywidgets is not installed. Install with: pip install ipywidgets"
    try:
        page = metadata.version("jupyterlab-widgets")
    except metadata.PackageNotFoundError:
        return True, f"sliders: ipywidgets {kernel}; JupyterLab is elsewhere, or this is not its Python"
    wanted = {"7": "1", "8": "3"}.get(kernel, page.split(".")[0])
    if page.split(".")[0] != wanted:
        return False, (
            f"sliders will not show: ipywidgets {kernel} needs jupyterlab-widgets {wanted}, and {page} is here. "
            "Install with: pip install -U ipywidgets jupyterlab-widgets, then reload the page."
        )
    return True, f"sliders: ipywidgets {kernel} with jupyterlab-widgets {page}"


def look_at_course() -> list[Finding]:
    """Lessons that are not built, and notebooks that are not where submissions are looked for."""
    try:
        home = course()
    except CourseError as error:
        return [(False, str(error))]
    keys = home.root / "helpers" / "answer_keys"
    if missing := [lesson.name for lesson in home.lessons if not (keys / f"{lesson.name}.npz").is_file()]:
        return [(False, f"not built: {', '.join(missing)}. Take the course anew, or run: course build")]
    return [(True, f"{len(home.lessons)} lessons"), *look_at_notebooks(home)]


def look_at_notebooks(home: Course) -> list[Finding]:
    """A sentence for each notebook of the course that was renamed, moved or copied, or is not there."""
    found, here = [], set()
    for path in sorted([*home.root.glob("*.ipynb"), *(home.root / "notebooks").rglob("*.ipynb")]):
        if ".ipynb_checkpoints" in path.parts:
            continue
        lesson, inside = lesson_in(path), path.relative_to(home.root).as_posix()
        place = f"notebooks/{lesson}/{lesson}.ipynb"
        if lesson is None:
            found.append((True, f"{inside} is not a notebook of the course; it is left alone"))
            continue
        here.add(lesson)
        if inside != place and (home.root / place).is_file():
            found.append((False, f"{inside} is a copy of lesson {lesson}; {place} is handed in. Keep one of the two."))
        elif inside != place:
            odd = "in another place" if path.stem == lesson else "under another name"
            found.append((False, f"{inside} is lesson {lesson} {odd}. Rename or move it to {place}."))
    has_notebooks = (home.root / "notebooks").is_dir()  # an installed package has none
    for name in (one.name for one in home.lessons if has_notebooks):
        place = f"notebooks/{name}/{name}.ipynb"
        if name not in here and not (home.root / place).is_file():
            found.append((False, f"{place} is not there. If you moved it, put it back; else take it from the course."))
    found = found or [(True, "every notebook has its own name and place")]
    if names := ", ".join(working_copies(home.root)):
        found.append((True, f"somebody has worked in notebooks/: {names}. Grader, pack and book use the release."))
    return found


def lesson_in(path: Path) -> str | None:
    """The lesson whose set-up cell a notebook holds; None where it holds none, or cannot be read."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    match = SET_UP.search(text)
    return match[1] if match else None
