"""The learner edition: what is in it, what is not, and that it works where it is unpacked."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from helpers.authoring.blocks import load_blocks
from helpers.authoring.pack import LARGEST, edition, pack
from helpers.checking.making import definition
from helpers.course import CourseError, course

LESSON = "04_scaling"
FORBIDDEN_PLACES = ("solutions/", "tests/", "bench/", "docs/", "helpers/authoring/", "helpers/grading/", ".git")


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "attention-course.zip"
    pack(course(), course().lesson(LESSON), path)
    return path


def names(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return [name.removeprefix("attention-course/") for name in archive.namelist()]


def test_it_holds_lessons_up_to_the_named_one_and_blocks_before_it(packed):
    inside = names(packed)
    assert f"notebooks/{LESSON}/{LESSON}.ipynb" in inside and f"helpers/answer_keys/{LESSON}.npz" in inside
    assert "helpers/blocks/lesson_03.py" in inside and "helpers/blocks/lesson_04.py" not in inside
    assert not [name for name in inside if "05_masking" in name]
    assert not [name for name in inside if name.startswith(FORBIDDEN_PLACES) or name.endswith("answer_key.py")]


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


def test_no_solution_of_its_last_lesson_is_anywhere_in_it():
    """Line by line: what stands only in the solutions of the lesson at hand must not travel with it."""
    files = edition(course(), course().lesson(LESSON))
    text = squeezed("\n".join(body.decode() for name, body in files.items() if name.endswith((".py", ".ipynb"))))
    blocks = Path(load_blocks(course(), course().lesson(LESSON)).__file__).read_text("utf-8")
    for name in ("scaled_scores", "softmax_jacobian", "head_scores"):
        body = definition(blocks, name).split('"""')[-1]
        assert squeezed(body) not in text, name


def test_the_same_course_gives_the_same_bytes_under_the_limit(tmp_path):
    for name in ("one.zip", "two.zip"):
        assert pack(course(), None, tmp_path / name) < LARGEST
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def alone(home: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Python in the unpacked edition, with this environment's packages but not the course that is installed in it."""
    environment = {"PYTHONPATH": sysconfig.get_path("purelib"), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, "-S", *arguments],
        cwd=home / "attention-course",
        env=environment,
        capture_output=True,
        text=True,
    )


def test_unpacked_anywhere_a_lesson_can_be_checked(packed, tmp_path):
    home = tmp_path / "Übung 1"
    zipfile.ZipFile(packed).extractall(home)
    program = (
        "from helpers import setup, check\n"
        f"setup.start('{LESSON}', '0.0.9')\n"
        "def scaled_scores(Q, K):\n    return Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5\n"
        "check(scaled_scores)\n"
        "import helpers; print(helpers.__file__)\n"
    )
    result = alone(home, "-c", program)
    assert "✓ scaled_scores" in result.stdout and "Übung 1" in result.stdout, result.stderr
    assert "of version 0.0.9 of the course, and the course beside it of" in result.stdout
    told = alone(home, "-m", "helpers", "grade")
    assert "not in this edition" in told.stderr and "Traceback" not in told.stderr


def test_what_cannot_be_written_is_one_sentence(tmp_path):
    command = [sys.executable, "-m", "helpers", "pack", LESSON, "--output", str(tmp_path / "no" / "place.zip")]
    told = subprocess.run(command, cwd=course().root, capture_output=True, text=True)
    assert told.returncode == 2 and told.stderr.count("\n") == 1 and "Choose another place" in told.stderr
    with pytest.raises(CourseError, match="There is no lesson"):
        course().lesson("99_none")
