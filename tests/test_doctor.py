"""`course doctor` for learners: what it reports about notebooks, packages and folders, with advice."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from helpers import doctor
from helpers.authoring.setup_cell import set_up_source
from helpers.course import CourseError, course

LESSON = "04_scaling"


def notebook(lesson: str = LESSON) -> str:
    """Return a notebook with only its lesson's set-up cell, whose source is a list of lines, as editors save it."""
    source = set_up_source(course(), lesson).splitlines(keepends=True)
    cell = {"cell_type": "code", "id": "setup", "metadata": {}, "source": source, "outputs": []}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]})


@pytest.fixture
def home(tmp_path):
    """A course in a folder with spaces and an umlaut in its name, with one notebook in its place."""
    root = tmp_path / "Übungen zu Ostern"
    place = root / "notebooks" / LESSON
    place.mkdir(parents=True)
    (place / f"{LESSON}.ipynb").write_text(notebook(), "utf-8")
    made = replace(course(), root=root, lessons=(course().lesson(LESSON),))
    keys = root / "helpers" / "answer_keys"
    keys.mkdir(parents=True)
    (keys / f"{LESSON}.npz").write_bytes(b"")
    return made


def notebooks(home) -> list[tuple[bool, str]]:
    return doctor.check_notebooks(home)


def own(home) -> Path:
    return home.root / "notebooks" / LESSON / f"{LESSON}.ipynb"


def bad(findings) -> str:
    """Return the only line that reports a problem."""
    (line,) = [line for good, line in findings if not good]
    return line


def test_a_course_in_order_has_no_problems(home):
    assert notebooks(home) == [(True, "every notebook has its own name and place")]


@pytest.mark.parametrize("name", ["scaling.ipynb", "Copy of 04_scaling.ipynb", "04_scaling (1).ipynb", "Schön.ipynb"])
def test_a_renamed_notebook_is_reported_with_its_right_name(home, name):
    own(home).rename(own(home).with_name(name))
    line = bad(notebooks(home))
    assert f"notebooks/{LESSON}/{name}" in line and f"notebooks/{LESSON}/{LESSON}.ipynb" in line and "Rename" in line


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (f"notebooks/05_masking/{LESSON}.ipynb", f"Rename or move it to notebooks/{LESSON}/{LESSON}.ipynb"),
        (f"{LESSON}.ipynb", f"{LESSON}.ipynb is lesson {LESSON} in another place"),
        (f"../{LESSON}.ipynb", f"notebooks/{LESSON}/{LESSON}.ipynb is not there"),
    ],
)
def test_a_moved_or_missing_notebook_is_reported(home, place, words):
    (home.root / place).parent.mkdir(exist_ok=True)
    own(home).rename(home.root / place)
    assert words in bad(notebooks(home))


def test_a_copy_of_a_notebook_is_reported_with_the_one_to_submit(home):
    shutil.copy(own(home), own(home).with_name(f"{LESSON}-Copy1.ipynb"))
    line = bad(notebooks(home))
    assert f"{LESSON}-Copy1.ipynb is a copy" in line and f"{LESSON}.ipynb is handed in" in line


def test_checkpoints_and_other_notebooks_are_not_reported(home):
    folder = own(home).parent / ".ipynb_checkpoints"
    folder.mkdir()
    shutil.copy(own(home), folder / f"{LESSON}-checkpoint.ipynb")
    own(home).with_name("my notes.ipynb").write_text('{"cells": []}')
    own(home).with_name("broken.ipynb").write_text("{")
    assert all(good for good, _ in notebooks(home))


def pretend(monkeypatch, **versions: str | None):
    """Pretend that packages have these versions; None: not installed."""
    real = metadata.version

    def version(name):
        short = name.replace("-", "_")
        if short in versions and versions[short] is None:
            raise metadata.PackageNotFoundError(name)
        return versions.get(short) or real(name)

    monkeypatch.setattr(doctor.metadata, "version", version)


@pytest.mark.parametrize(
    "kernel, page, good",
    [
        ("8.1.9", "3.0.17", True),
        ("7.7.1", "1.1.11", True),
        ("7.7.1", "3.0.17", False),
        ("8.1.9", "1.1.11", False),
        ("8.1.9", None, True),
        (None, "3.0.17", False),
    ],
)
def test_versions_of_widgets_that_do_not_fit_are_reported(monkeypatch, kernel, page, good):
    pretend(monkeypatch, ipywidgets=kernel, jupyterlab_widgets=page)
    found, line = doctor.check_widgets()
    assert found == good
    assert good or "pip install" in line


def test_a_missing_package_is_reported_with_its_installation(monkeypatch):
    pretend(monkeypatch, safetensors=None, nbgrader=None)
    assert doctor.check_package("safetensors") == (
        False,
        "safetensors is not installed. Install with: pip install -r requirements.txt",
    )
    assert '".[grade]"' in doctor.check_package("nbgrader")[1]


def test_a_package_that_does_not_load_is_reported(monkeypatch, tmp_path):
    (tmp_path / "safetensors.py").write_text("raise ImportError('a library\\nis missing')")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.split(".")[0] == "safetensors"]:
        monkeypatch.delitem(sys.modules, name)
    good, line = doctor.check_package("safetensors")
    assert not good and "does not load (ImportError: a library is missing)" in line and "pip install -U" in line


def test_with_nothing_installed_every_package_has_a_line():
    """It runs in the full course, where the doctor also checks the sandbox."""
    command = [sys.executable, "-S", "-m", "helpers", "doctor"]
    environment = {"PATH": os.environ["PATH"], "PYTHONIOENCODING": "utf-8"}
    result = subprocess.run(command, cwd=course().root, env=environment, capture_output=True, encoding="utf-8")
    assert result.returncode == 1 and result.stderr == ""
    learning, grading = result.stdout.split("\nOnly for grading")
    assert all(f"✗ {name}" in learning for name in ("torch", "numpy", "ipywidgets"))
    assert all(f"✗ {name}" in grading for name in ("rich", "the sandbox"))
    assert "✓ Python" in learning and "lessons" in learning


def test_lessons_that_are_not_built_are_reported(home, monkeypatch):
    (home.root / "helpers" / "answer_keys" / f"{LESSON}.npz").unlink()
    monkeypatch.setattr(doctor, "course", lambda: home)
    ((good, line),) = doctor.check_course()
    assert not good and LESSON in line


def test_a_broken_course_toml_gives_a_line_and_no_traceback(monkeypatch):
    def broken():
        raise CourseError("course.toml is not valid TOML.")

    monkeypatch.setattr(doctor, "course", broken)
    assert doctor.check_course() == [(False, "course.toml is not valid TOML.")]
