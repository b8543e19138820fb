"""Imitates Colab: a kernel with Colab's versions, a notebook alone in a folder, and the file that Colab saves.

The kernel is this Python, with Colab's versions of the packages that a notebook uses (colab_stand_in/versions.txt) in
front of its own packages, and without the course.
"""

import copy
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

import nbformat
from filelock import FileLock
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

from helpers.authoring.release import student_notebook
from helpers.authoring.text import read_lesson
from helpers.course import Course, Lesson, course

STAND_IN = Path(__file__).parent / "colab_stand_in"
VERSIONS = STAND_IN / "versions.txt"
OWNER, REPOSITORY = "someone", "attention"
CELL_TIMEOUT = 240  # seconds


def built_lessons() -> list[str]:
    """Return the names of the lessons that have an answer key."""
    home = course()
    return [x.name for x in home.lessons if (home.root / "helpers" / "answer_keys" / f"{x.name}.npz").is_file()]


def overlay() -> Path:
    """Return a folder with Colab's versions, installed once per list. Without a network, raise CalledProcessError."""
    name = hashlib.sha256(VERSIONS.read_bytes() + sys.version.encode()).hexdigest()[:12]
    base = Path(os.environ.get("COURSE_COLAB_DIR") or Path(sys.prefix) / "colab")
    base.mkdir(parents=True, exist_ok=True)
    with FileLock(base / f"{name}.lock"):
        if not (base / name).is_dir():
            half = base / f"{name}.half"
            shutil.rmtree(half, ignore_errors=True)
            pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
            subprocess.run([*pip, "--target", str(half), "-r", str(VERSIONS)], check=True, capture_output=True)
            half.rename(base / name)
    return base / name


def packages_without_the_course(folder: Path) -> Path:
    """Fill `folder` with links to this environment's packages, except the installed course, and return it."""
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not re.match(r"attention_course|__editable__|helpers\b|.*\.pth$", path.name):
            (folder / path.name).symlink_to(path)
    return folder


def environment(overlaid: Path, packages: Path, scratch: Path, git: Path | None) -> dict[str, str]:
    """Return the variables of a Colab kernel. git: a folder in place of https://github.com/, None for none."""
    startup = scratch / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True, exist_ok=True)
    (startup / "00-colab.py").write_text("import google.colab\n")
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("COURSE_", "PYTHON", "JUPYTER"))}
    return mine | {
        "PYTHONPATH": os.pathsep.join(map(str, (overlaid, STAND_IN, packages))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "IPYTHONDIR": str(scratch / "ipython"),
        "HOME": str(scratch),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "COLAB_RELEASE_TAG": "release-colab",
        "OMP_NUM_THREADS": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{(git or Path('/nowhere')).as_uri()}/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
    }


class ColabKernel(AsyncKernelManager):
    """A kernel of this Python that imports only from PYTHONPATH, not from site-packages."""

    @property
    def kernel_spec(self) -> KernelSpec:
        options = ["-S", "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(
            argv=[sys.executable, *options, "--log-level=ERROR"], display_name="Python 3", language="python"
        )


def run_in_colab(notebook, folder: Path, variables: dict[str, str]):
    """Run a copy of the notebook from top to bottom in `folder`, even if cells raise errors, and return it."""
    executed = copy.deepcopy(notebook)
    client = NotebookClient(
        executed,
        timeout=CELL_TIMEOUT,
        allow_errors=True,
        store_widget_state=False,
        coalesce_streams=True,
        kernel_manager_class=ColabKernel,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env=variables)
    return executed


def addressed(lessons: list[str]) -> Course:
    """Return the course with these lessons, as in a fork that has set its owner and repository."""
    home = course()
    kept = tuple(lesson for lesson in home.lessons if lesson.name in lessons)
    return replace(home, owner=OWNER, repository=REPOSITORY, lessons=kept)


def handed_out(home: Course, lesson: Lesson):
    """Return the learner's notebook, made from the lesson's text."""
    return nbformat.reads(student_notebook(read_lesson(home, lesson).notebook), as_version=4)


def build_edition(home: Course, root: Path) -> Course:
    """Write the course into the folder `root`, with newly made notebooks, to be packed or cloned."""
    shutil.copytree(home.root / "helpers", root / "helpers", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("course.toml", "LICENSE", "requirements.txt"):
        shutil.copy(home.root / name, root)
    for lesson in home.lessons:
        solution = read_lesson(home, lesson).notebook  # packs make the release from it
        notebooks = {"notebooks": handed_out(home, lesson), "solutions": solution}
        for folder, notebook in notebooks.items():
            path = root / folder / lesson.name / f"{lesson.name}.ipynb"
            path.parent.mkdir(parents=True)
            nbformat.write(notebook, path)
    return replace(home, root=root)


def make_origin(edition: Course, base: Path) -> Path:
    """Make a repository with the edition and its tag under `base`, which replaces https://github.com/."""
    origin = base / edition.owner / edition.repository
    shutil.copytree(edition.root, origin)
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "The course"], ["tag", edition.tag]):
        subprocess.run(["git", *who, *command], cwd=origin, check=True, capture_output=True)
    return base


def grade_id(cell) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def answered(student, home: Course, lesson: Lesson):
    """Return the learner's notebook with the solutions in its answer cells."""
    right = {grade_id(cell): cell.source for cell in read_lesson(home, lesson).notebook.cells if grade_id(cell)}
    notebook = copy.deepcopy(student)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            lines = right[grade_id(cell)].splitlines()
            cell.source = "\n".join(line for line in lines if not re.match(r"\s*### (BEGIN|END) SOLUTION", line))
    return notebook


def with_cells(notebook, before=(), after=()):
    """Return the notebook with code cells of these sources at its beginning and end."""
    made = copy.deepcopy(notebook)
    made.cells = [*map(new_code_cell, before), *made.cells, *map(new_code_cell, after)]
    return made


def as_colab_saves(notebook, name: str, keep: str) -> dict:
    """Return the file that Colab writes: format 4.0, with cell ids in the metadata and its own metadata added.

    keep: what still identifies an answer cell, "nbgrader" (its metadata, with new ids) or "id".
    """
    cells = []
    for number, cell in enumerate(notebook.cells):
        saved = {key: copy.deepcopy(value) for key, value in cell.items() if key not in ("id", "source")}
        saved["source"] = cell.source.splitlines(keepends=True)
        own = hashlib.sha256(cell["id"].encode()).hexdigest()
        saved["metadata"]["id"] = cell["id"] if keep == "id" else own[:12]
        if keep == "id":
            saved["metadata"].pop("nbgrader", None)
        if cell.cell_type == "code":
            user = {"displayName": "Ada", "userId": "0123"}
            saved["metadata"] |= {
                "executionInfo": {"status": "ok", "timestamp": 1700000000000 + number, "user_tz": -60, "user": user},
                "outputId": own[:32],
                "colab": {"base_uri": "https://localhost:8080/", "height": 200},
            }
        cells.append(saved)
    metadata = {
        "colab": {"name": name, "provenance": [], "toc_visible": True},
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "language_info": {"name": "python"},
        "widgets": {"application/vnd.jupyter.widget-state+json": {}},
    }
    return {"nbformat": 4, "nbformat_minor": 0, "metadata": metadata, "cells": cells}
