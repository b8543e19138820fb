"""The commands of docs/teaching.md, run in order in a copy of the course: from a platform's download to the points and
pages that go back to it."""

import csv
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from helpers.grading.folders import load
from tests import lab, sample_class
from tests.test_regrade import LESSON, answers

WORKSHEET = """Identifier,Full name,Email address,Status,Grade,Maximum grade,Last modified (submission)
Participant 11,Ada Lovelace,ada@x.org,Submitted,,100,"Tuesday, 3 November 2026, 10:30 AM"
Participant 12,Ben Berg,ben@x.org,Submitted,,100,"Tuesday, 3 November 2026, 11:30 AM"
Participant 13,Cyd Dorn,cyd@x.org,No submission,,100,-
"""
WRONG = "def scaled_scores(Q, K):\n    return Q @ K.transpose(-2, -1) / Q.shape[-1]"
# The guide's commands run with this Python instead of an activated environment.
SHELL = """set -e
course() {{ "{python}" -m helpers "$@"; }}
python() {{ "{python}" "$@"; }}
nbgrader() {{ "{python}" -m nbgrader "$@"; }}
"""


def blocks() -> dict[str, str]:
    """The guide's commands by the heading of their section."""
    text = (lab.ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    return {
        heading: "".join(re.findall(r"^```\n(.*?)^```", body, re.MULTILINE | re.DOTALL))
        for heading, body in zip(sections[::2], sections[1::2], strict=True)
    }


class Teacher:
    """Runs commands in a copy of the course. Its browser only records the address that it should open."""

    def __init__(self, root: Path):
        self.root, self.opened = root, root / "opened"
        browser = root / "browser"
        browser.write_text(f'#!/bin/sh\nprintf %s "$1" > "{self.opened}.new"\nmv "{self.opened}.new" "{self.opened}"\n')
        browser.chmod(0o755)
        self.environment = os.environ | {"PYTHONPATH": str(root), "BROWSER": f"{browser} %s", "OMP_NUM_THREADS": "1"}

    def start(self, commands: str) -> subprocess.Popen:
        script = SHELL.format(python=sys.executable) + commands
        return subprocess.Popen(
            ["bash", "-c", script], cwd=self.root, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def types(self, commands: str) -> str:
        running = self.start(commands)
        output, _ = running.communicate(timeout=300)
        assert running.returncode == 0, f"{commands}\n{output}"
        return output

    def table(self, path: str, column: str) -> dict[str, dict[str, str]]:
        """The rows of a CSV file in the gradebook's folder, by one of its columns."""
        with (self.root / "gradebook" / path).open(encoding="utf-8-sig", newline="") as file:
            return {row[column]: row for row in csv.DictReader(file)}


@pytest.fixture
def teacher(lesson, tmp_path):
    root = tmp_path / "course"
    left_out = (".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "gradebook", "tests", "*.zip", "*.egg-info")
    shutil.copytree(lab.ROOT, root, ignore=shutil.ignore_patterns(*left_out))
    folders = load(tmp_path / "folders")[0]
    sample_class.hand_in(folders, lesson, "ada", answers(lesson, quiz_1='quiz_1 = "a"'))
    sample_class.hand_in(folders, lesson, "ben", answers(lesson, scaled_scores=WRONG))
    with zipfile.ZipFile(root / "submissions.zip", "w") as archive:  # as Moodle packs them
        for student, folder in (("ada", "Ada Lovelace_11"), ("ben", "Ben Berg_12")):
            notebook = folders.submitted / student / LESSON / f"{LESSON}.ipynb"
            archive.write(notebook, f"{folder}_assignsubmission_file_/{LESSON}.ipynb")
    (root / "class.csv").write_text(WORKSHEET, encoding="utf-8")
    return Teacher(root)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_commands_of_the_teaching_guide_work_in_order(teacher):
    sections = blocks()
    teacher.types(sections.pop("Hand out"))
    assert zipfile.is_zipfile(teacher.root / f"attention-course-{LESSON}.zip")

    collect, extension = sections.pop("Collect").split("python -c")  # the guide gives it here for later
    output = teacher.types(collect)
    students = [folder.name for folder in sorted((teacher.root / "gradebook" / "submitted").iterdir())]
    assert len(students) == 2 and "1 missing: cyd@x.org" in output
    ada, ben = students
    teacher.types(sections.pop("Grade").replace("--student ada ben", f"--student {ada} {ben}"))
    teacher.types("python -c" + extension.replace("'ada'", f"'{ada}'"))
    before = teacher.table(f"reports/{LESSON}.csv", "student")
    assert before[ada]["status"] == "waits for a person" and len(before) == 3

    grading = teacher.start(sections.pop("Grade the written question"))
    for _ in range(600):
        if teacher.opened.exists() or grading.poll() is not None:
            break
        time.sleep(0.1)
    with lab.browser() as page:
        page.goto(teacher.opened.read_text())
        for points in ("12.5", "9"):
            page.keyboard.type(points)
            page.keyboard.press("Enter")
        page.wait_for_function("() => document.getElementById('count').textContent.startsWith('2')")
        page.locator("#done").click()
        page.locator("main", has_text="Saved").wait_for()
    assert grading.wait(60) == 0, grading.stdout.read()

    teacher.types(sections.pop("Give back"))
    pages = {path.parts[-3] for path in (teacher.root / "gradebook" / "feedback").rglob("*.html")}
    assert pages == {ada, ben}

    teacher.types(sections.pop("Back to the platform"))
    given = {
        row["Full name"]: row["Grade"] for row in teacher.table(f"exported/{LESSON}.moodle.csv", "Identifier").values()
    }
    totals = teacher.table(f"reports/{LESSON}.csv", "student")
    assert [float(given["Ada Lovelace"]), float(given["Ben Berg"])] == [
        min(float(totals[one]["total"]), 100.0) for one in (ada, ben)
    ]
    assert float(given["Ada Lovelace"]) > 90 > float(given["Ben Berg"]) and given["Cyd Dorn"] == ""
    (packed,) = (teacher.root / "gradebook" / "exported").glob("*.zip")
    with zipfile.ZipFile(packed) as archive:
        assert {name.partition("/")[0] for name in archive.namelist()} == {
            "Ada Lovelace_11_assignsubmission_file_", "Ben Berg_12_assignsubmission_file_",
        }  # fmt: skip
    assert {heading for heading, commands in sections.items() if commands} <= {
        "A fork of your own",
        "Set up, once",
        "Read the report",
        "Grade again",
        "Grade elsewhere",
        "Several classes",
        "Many machines",
    }
