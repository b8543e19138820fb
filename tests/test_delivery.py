"""Graders outside of a class folder: `course grade --ci` in a workflow, and Gradescope with imitated folders."""

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from helpers.__main__ import main
from helpers.grading import grade, one_notebook
from helpers.grading.one_notebook import grade_folder, judge_notebook
from tests.sandboxes import need_sandbox
from tests.small_course import LESSON, ROOT, make_small_course, run_command
from tests.test_regrade import FullPoints

ANSWER = "width = Q.shape[-1]\n    return Q @ K.transpose(-2, -1) / {by}"


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """The small course, built without outputs, which tests only read."""
    need_sandbox()
    root = make_small_course(tmp_path_factory.mktemp("small") / "course")
    for name in ("LICENSE", "requirements.txt", "requirements.lock", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, root)
    built = run_command(root, "build", "--no-run")
    assert built.returncode == 0, built.stderr
    return root


def hand_in(root: Path, path: Path, by: str) -> Path:
    """Write a notebook with answers that divide by `by`; all are right if it is width**0.5."""
    notebook = json.loads((root / "notebooks" / LESSON / f"{LESSON}.ipynb").read_text("utf-8"))
    answers = {"scaled_scores": ANSWER.format(by=by), "halved": "return x / 2"}
    for cell in notebook["cells"]:
        name, source = cell["metadata"].get("nbgrader", {}).get("grade_id"), "".join(cell["source"])
        if name in answers:
            cell["source"] = source.replace("raise NotImplementedError", answers[name])
        elif name == "quiz_1":
            cell["source"] = source.replace("None", '"b"')
    path.write_text(json.dumps(notebook), "utf-8")
    return path


@pytest.mark.full
def test_a_workflow_gets_the_points_and_an_exit_code(small, tmp_path, monkeypatch):
    page = tmp_path / "summary.md"
    (tmp_path / "notes.txt").mkdir()  # a folder beside the notebook does no harm, whatever its name
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    full = run_command(small, "grade", "--ci", str(hand_in(small, tmp_path / "my answers.ipynb", "width**0.5")))
    assert full.returncode == 0, full.stderr
    assert full.stdout.startswith(f"## {LESSON}: 85 of 85 points and 5 bonus points\n")
    assert "The written question (15 points) waits for a person." in full.stdout
    assert "| ✓ | `scaled_scores` | 83 of 83 |  |" in full.stdout and page.read_text("utf-8") == full.stdout
    wrong = run_command(small, "grade", "--ci", str(hand_in(small, tmp_path / f"{LESSON}.ipynb", "width")))
    assert wrong.returncode == 1, wrong.stderr
    assert "| ✗ | `scaled_scores` | 0 of 83 | divided by the width |" in wrong.stdout
    assert "\n      What is its standard deviation?\n" in wrong.stdout
    lacking = hand_in(small, tmp_path / f"{LESSON}.ipynb", "of_home.root(width)")
    lacking.write_text(lacking.read_text("utf-8").replace("def scaled_scores", "import of_home\\ndef scaled_scores"))
    waits = run_command(small, "grade", "--ci", str(lacking))
    assert waits.returncode == 0, waits.stdout
    assert "| ✗ | `scaled_scores` | 0 of 83 | waits for a person |" in waits.stdout


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.ipynb", None, "gone.ipynb was not read: it cannot be opened (No such file or directory)."),
        ("notes.ipynb", '{"cells": []}', "notes.ipynb belongs to no lesson of this course. Name one: course grade "),
        ("empty.ipynb", "", "empty.ipynb cannot be read as a notebook: it is empty. Hand in the notebook again."),
    ],
)
def test_a_notebook_that_cannot_be_graded_gives_a_message_and_exit_code_2(small, tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_text(content)
    result = run_command(small, "grade", "--ci", str(tmp_path / name))
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ["04_scaling.ipynb", ""])
def test_files_beside_a_notebook_are_not_copied(tmp_path, monkeypatch, name):
    """Large ones would fill the disk, and many of them would take minutes."""
    monkeypatch.setattr(one_notebook, "Pool", FullPoints)
    shutil.copy(ROOT / "notebooks" / "04_scaling" / "04_scaling.ipynb", tmp_path)
    with open(tmp_path / "data.csv", "wb") as file:
        file.truncate(20_000_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000_000, hard))
    try:
        assert judge_notebook("04_scaling", tmp_path / name, unsafe=False).points > 0
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def autograder(small, tmp_path_factory) -> Path:
    """A folder like Gradescope's /autograder: the zip unpacked into source/, and run_autograder copied beside it."""
    home = tmp_path_factory.mktemp("gradescope") / "autograder"
    packed = home.parent / "grader.zip"
    result = run_command(small, "pack", "gradescope", LESSON, "--output", str(packed))
    assert result.returncode == 0 and f"the grader of {LESSON}" in result.stdout, result.stderr
    with zipfile.ZipFile(packed) as archive:
        assert {"setup.sh", "run_autograder"} <= set(archive.namelist())
        archive.extractall(home / "source")
        for info in archive.infolist():
            (home / "source" / info.filename).chmod(info.external_attr >> 16)
    shutil.copy(home / "source" / "run_autograder", home)
    return home


def run_autograder(home: Path, **more: str) -> dict:
    """Run the autograder and return the results that Gradescope would read."""
    shutil.rmtree(home / "results", ignore_errors=True)
    environment = os.environ | {"AUTOGRADER": str(home), "PYTHON": sys.executable} | more
    environment.pop("PYTHONPATH", None)
    subprocess.run([str(home / "run_autograder")], cwd=home, env=environment, capture_output=True)
    return json.loads((home / "results" / "results.json").read_text("utf-8"))


def test_gradescope_gets_one_test_per_exercise(small, autograder):
    (autograder / "submission").mkdir(exist_ok=True)
    hand_in(small, autograder / "submission" / f"{LESSON}.ipynb", "width")
    results = run_autograder(autograder)
    assert results["score"] == 7 and results["output"] == "The written question (15 points) is graded by a person."
    tests = {test["name"]: test for test in results["tests"]}
    assert [(test["score"], test["max_score"]) for test in tests.values()] == [(0, 83), (5, 0), (2, 2)]
    assert tests["scaled_scores"]["status"] == "failed" and tests["halved (bonus)"]["status"] == "passed"
    assert "divided by the width" in tests["scaled_scores"]["output"]
    assert {"name", "score", "max_score", "output", "output_format"} <= set(tests["quiz_1"])


@pytest.mark.full
def test_gradescope_gets_the_reason_why_nothing_was_graded(autograder, tmp_path):
    """Without a notebook, in a container that allows no sandbox, and if the grader does not even start."""
    shutil.rmtree(autograder / "submission", ignore_errors=True)
    (autograder / "submission").mkdir()
    nothing = run_autograder(autograder)
    assert nothing["score"] == 0 and "tests" not in nothing
    assert nothing["output"].startswith("Not graded, so these points do not count: No notebook was handed in;")
    notebook = autograder / "source" / "notebooks" / LESSON / f"{LESSON}.ipynb"
    shutil.copy(notebook, autograder / "submission")
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho bwrap: No permissions to create a new namespace >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    refused = run_autograder(autograder, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert refused["score"] == 0 and "tests" not in refused
    assert "cannot be isolated here (bwrap: No permissions to create a new namespace)" in refused["output"]
    assert "did not start" in run_autograder(autograder, PYTHON="no-such-python")["output"]


def test_gradescope_gets_a_message_about_an_unknown_lesson(tmp_path):
    assert grade_folder(tmp_path, "99_none", unsafe=False) == 2
    results = json.loads((tmp_path / "results" / "results.json").read_text("utf-8"))
    assert results["score"] == 0 and results["output"].startswith("Not graded, so these points do not count: ")


def test_a_full_disk_ends_grading_with_a_message(tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "gradebook.db")

    monkeypatch.setattr(grade, "grade_and_print", full)
    assert main(["grade", "04_scaling", "--gradebook", str(tmp_path)]) == 2
    message = "Grading stopped: No space left on device (gradebook.db). What was recorded so far stays.\n"
    assert capsys.readouterr().err == message


def test_scripts_of_the_autograder_are_valid_and_install_bubblewrap(autograder):
    for name in ("setup.sh", "run_autograder"):
        assert subprocess.run(["bash", "-n", str(autograder / "source" / name)]).returncode == 0
    assert "bubblewrap" in (autograder / "source" / "setup.sh").read_text()
