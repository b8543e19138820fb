"""`course doctor`: whether this machine can grade, one line for each thing it needs, and what to do about it."""

from __future__ import annotations

import argparse
import sys
from importlib import metadata

from helpers.course import CourseError, course
from helpers.grading import sandbox

OLDEST_PYTHON = (3, 11)
# What `course grade` needs besides torch, with its place in pyproject.toml.
PACKAGES = ("numpy", "matplotlib", "ipywidgets", "nbgrader", "psutil", "rich")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There is nothing to choose."""


def run(args: argparse.Namespace) -> int:
    """Print the findings; exit code 0 when everything works, 1 otherwise."""
    findings = [look_at_python(), look_at_torch(), *map(look_at_package, PACKAGES)]
    findings += [look_at_lessons(), look_at_sandbox()]
    for good, line in findings:
        print(f"{'✓' if good else '✗'} {line}")
    return 0 if all(good for good, _ in findings) else 1


def look_at_python() -> tuple[bool, str]:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        return False, f"Python {version}: 3.11 or newer is needed."
    return True, f"Python {version}"


def look_at_torch() -> tuple[bool, str]:
    try:
        import torch

        total = float((torch.ones(2, 2) @ torch.ones(2, 2)).sum())
    except Exception as error:
        return False, f"torch does not work ({type(error).__name__}: {error}). Install with: pip install torch"
    return total == 8, f"torch {torch.__version__}"


def look_at_package(name: str) -> tuple[bool, str]:
    try:
        return True, f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return False, f'{name} is not installed. Install with: pip install -e ".[grade]"'


def look_at_lessons() -> tuple[bool, str]:
    try:
        lessons = course().lessons
    except CourseError as error:
        return False, str(error)
    keys = sandbox.HELPERS / "answer_keys"
    blocks = sandbox.HELPERS / "blocks"
    missing = [
        lesson.name
        for lesson in lessons
        if not (keys / f"{lesson.name}.npz").is_file() or not (blocks / f"lesson_{lesson.number}.py").is_file()
    ]
    if missing:
        return False, f"not built: {', '.join(missing)}. Run: course build"
    return True, f"{len(lessons)} lessons built"


def look_at_sandbox() -> tuple[bool, str]:
    """Start the sandbox for real, and run one line in it."""
    try:
        with sandbox.Sandbox("99_none", notebook=False) as box, box.submission() as submission:
            reply = submission.ask({"do": "cell", "id": "doctor", "source": "1 + 1", "seconds": 20}, 30)
            nested = box.nested
    except (sandbox.SandboxMissing, sandbox.SandboxFailed) as error:
        return False, str(error)
    except sandbox.Lost as lost:
        return False, f"the sandbox starts, but code in it gives no answer ({lost.reason})."
    if reply.get("error"):
        return False, f"the sandbox starts, but code in it fails: {reply['error']}"
    if not nested:
        return True, "bubblewrap works, but not one sandbox inside another: each submission starts its own (slower)"
    return True, "bubblewrap works, with namespaces of its own for each submission"
