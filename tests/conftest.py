"""Shared by all tests: what is slow is made once in a run, whatever the number of workers."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import nbformat
import pytest
from filelock import FileLock
from hypothesis import settings

from helpers.course import course

ROOT = course().root

# In one run of all suites each lesson's untouched notebook runs once, in a plain kernel or in Colab's, and the solved
# one in a plain kernel and in one more place: Colab's kernel or JupyterLab. COURSE_EVERY=1 runs all of them in all.
EVERY = bool(os.environ.get("COURSE_EVERY"))
SOLVED_IN_COLAB = ("00", "02", "04", "08", "10", "11", "12")

# The same examples in each run, and no time limit on one of them: a machine may be busy.
settings.register_profile("course", derandomize=True, deadline=None)
settings.load_profile("course")


def lesson_names() -> list[str]:
    """The lessons of course.toml, in order."""
    return [lesson.name for lesson in course().lessons]


def of_these(names, solved: bool) -> list[str]:
    """The lessons that run solved in Colab's kernel, or the others: untouched there, and solved in JupyterLab."""
    return [name for name in names if EVERY or (name[:2] in SOLVED_IN_COLAB) == solved]


# A file stays with one worker: those that take minutes begin, so that none of them is left for the end.
OF_ALL = ("test_mistakes_are_caught", "test_clumsy_answers_fail", "test_a_stored_key_names")
# Judged in many ways.
WHOLES = ("Attention]", "Encoder]", "EncoderBlock]", "DecoderBlock]", "Transformer]", "GPT]", "LlamaBlock]")
FIRST = "training_class mutation_score browser colab grading build figures costs make cluster".split()


def pytest_collection_modifyitems(items):
    """What waits for an executed notebook takes long; the longest files come first."""
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(3600))  # whole trainings, by name
        if "executed_solution" in item.fixturenames:
            item.add_marker("long")
        if item.name.startswith(OF_ALL) and item.name.endswith(WHOLES):
            item.add_marker("whole")
    names = [f"test_{name}.py" for name in FIRST]
    items.sort(key=lambda item: names.index(item.path.name) if item.path.name in names else len(names))


@pytest.fixture(scope="session")
def executed_folder(tmp_path_factory) -> Path:
    """Where executed notebooks of this run are kept: COURSE_EXECUTED_DIR, or a folder that pytest's workers share."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = Path(os.environ.get("COURSE_EXECUTED_DIR") or shared / "executed")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def executed_solution(executed_folder):
    """executed_solution(lesson) -> the solution notebook, run from top to bottom; an error in it fails the test.

    The seconds that each took are kept beside it, in LESSON.json, and what its trainings kept, in LESSON.kept.
    """
    from helpers.authoring.execute import run_notebook
    from helpers.authoring.text import read_lesson

    def execute(lesson: str):
        path = executed_folder / f"{lesson}.ipynb"
        with FileLock(f"{path}.lock"):
            if not path.exists():
                text = read_lesson(course(), course().lesson(lesson))
                start = time.perf_counter()
                keep = path.with_suffix(".kept")
                keep.mkdir(exist_ok=True)
                notebook = run_notebook(course(), text.notebook, ROOT / "solutions" / lesson, lesson, keep=keep)
                seconds = time.perf_counter() - start
                path.with_suffix(".json").write_text(json.dumps({"lesson": lesson, "seconds": round(seconds, 1)}))
                nbformat.write(notebook, path)
        return nbformat.read(path, as_version=4)

    return execute
