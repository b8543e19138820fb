"""`course doctor`: check whether the course can run here. Prints one line per requirement, and how to fix a failure.

For learners it checks Python, packages, sliders and the names of notebooks. The teacher's edition also checks whether
grading works (helpers/grading/readiness.py).
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
Finding = tuple[bool, str]  # whether it works, and the line to print


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no arguments."""


def run(args: argparse.Namespace) -> int:
    """Print the findings; exit code 0 when everything works, 1 otherwise."""
    return told(findings())


def findings() -> list[Finding]:
    return [
        (True, f"Python {sys.version.split()[0]}"),  # importing `helpers` fails with an older one
        check_torch(),
        *map(check_package, PACKAGES),
        check_widgets(),
        *check_course(),
    ]


def told(found: list[Finding]) -> int:
    """Print the findings. Returns 0 if all of them are good, otherwise 1."""
    for good, line in found:
        print(f"{'✓' if good else '✗'} {line}")
    return 0 if all(good for good, _ in found) else 1


def check_torch() -> Finding:
    try:
        import torch

        total = float((torch.ones(2, 2) @ torch.ones(2, 2)).sum())
    except Exception as error:
        return False, f"torch does not work ({_in_a_line(error)}). Install with: pip install -r requirements.txt"
    return total == 8, f"torch {torch.__version__}"


def check_package(name: str) -> Finding:
    how = 'pip install -e ".[grade]"' if name in GRADING_PACKAGES else "pip install -r requirements.txt"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return False, f"{name} is not installed. Install with: {how}"
    try:
        importlib.import_module(name)
    except Exception as error:
        return (False, f"{name} {version} does not load ({_in_a_line(error)}). Reinstall with: pip install -U {name}")
    return True, f"{name} {version}"


def _in_a_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def check_widgets() -> Finding:
    """Whether ipywidgets in the kernel and its extension in JupyterLab have matching major versions."""
    try:
        kernel = metadata.version("ipywidgets").split(".")[0]
    except metadata.PackageNotFoundError:
        return False, "sliders will not show: ipywidgets is not installed. Install with: pip install ipywidgets"
    try:
        extension = metadata.version("jupyterlab-widgets")
    except metadata.PackageNotFoundError:
        return True, f"sliders: ipywidgets {kernel}; JupyterLab is elsewhere, or this is not its Python"
    major = extension.split(".")[0]
    needed = {"7": "1", "8": "3"}.get(kernel, major)
    if major != needed:
        return False, (
            f"sliders will not show: ipywidgets {kernel} needs jupyterlab-widgets {needed}, and {extension} is here. "
            "Install with: pip install -U ipywidgets jupyterlab-widgets, then reload the page."
        )
    return True, f"sliders: ipywidgets {kernel} with jupyterlab-widgets {extension}"


def check_course() -> list[Finding]:
    """Findings about lessons that are not built and notebooks that the grader would not find."""
    try:
        home = course()
    except CourseError as error:
        return [(False, str(error))]
    keys = home.root / "helpers" / "answer_keys"
    if missing := [lesson.name for lesson in home.lessons if not (keys / f"{lesson.name}.npz").is_file()]:
        return [(False, f"not built: {', '.join(missing)}. Download the course again, or run: course build")]
    return [(True, f"{len(home.lessons)} lessons"), *check_notebooks(home)]


def check_notebooks(home: Course) -> list[Finding]:
    """Findings about the course's notebooks that were renamed, moved or copied, or are missing."""
    found, here = [], set()
    for path in sorted([*home.root.glob("*.ipynb"), *(home.root / "notebooks").rglob("*.ipynb")]):
        if ".ipynb_checkpoints" in path.parts:
            continue
        lesson, relative = lesson_in(path), path.relative_to(home.root).as_posix()
        expected = f"notebooks/{lesson}/{lesson}.ipynb"
        if lesson is None:
            found.append((True, f"{relative} is not a notebook of the course; it is left alone"))
            continue
        here.add(lesson)
        if relative != expected and (home.root / expected).is_file():
            message = f"{relative} is a copy of lesson {lesson}; {expected} is handed in. Keep one of the two."
            found.append((False, message))
        elif relative != expected:
            change = "in another place" if path.stem == lesson else "under another name"
            found.append((False, f"{relative} is lesson {lesson} {change}. Rename or move it to {expected}."))
    has_notebooks = (home.root / "notebooks").is_dir()  # an installed package has none
    for name in (lesson.name for lesson in home.lessons if has_notebooks):
        expected = f"notebooks/{name}/{name}.ipynb"
        if name not in here and not (home.root / expected).is_file():
            found.append(
                (False, f"{expected} is not there. If you moved it, put it back; otherwise, copy it from the course.")
            )
    found = found or [(True, "every notebook has its own name and place")]
    if names := ", ".join(working_copies(home.root)):
        found.append((True, f"somebody has worked in notebooks/: {names}. Grader, pack and book use the release."))
    return found


def lesson_in(path: Path) -> str | None:
    """The lesson whose set-up cell a notebook contains; None if there is no such cell or the file cannot be read."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    match = SET_UP.search(text)
    return match[1] if match else None
