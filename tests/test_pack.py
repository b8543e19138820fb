"""The learner edition: its contents, and that it works wherever it is unpacked."""

import functools
import json
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from helpers.__main__ import main
from helpers.authoring.build import released_text
from helpers.authoring.pack import LARGEST, edition, pack
from helpers.course import CourseError, course

LESSON = "04_scaling"
FOLDER = f"attention-course-{LESSON}"  # a folder per lesson, so that no zip overwrites the notebooks of another
FORBIDDEN_PLACES = ("solutions/", "tests/", "bench/", "docs/", "helpers/authoring/", "helpers/grading/", ".git")


pytestmark = pytest.mark.xdist_group("pack")  # one worker reads the editions of all lessons


@functools.cache
def released(lesson: str) -> str:
    """The built notebook. tests/test_build.py checks that each is up to date; only LESSON's is built again here."""
    if lesson == LESSON:
        return released_text(course(), course().lesson(lesson))
    return (course().root / "notebooks" / lesson / f"{lesson}.ipynb").read_text("utf-8")


@pytest.fixture(autouse=True)
def released_once(monkeypatch):
    """Every edition contains all earlier notebooks, which need not be built again each time."""
    monkeypatch.setattr("helpers.authoring.pack.released_text", lambda _, lesson: released(lesson.name))


def names(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return [name.removeprefix(f"{FOLDER}/") for name in archive.namelist()]


def test_it_contains_lessons_up_to_the_named_one_and_earlier_blocks(packed):
    inside = names(packed)
    assert f"notebooks/{LESSON}/{LESSON}.ipynb" in inside and f"helpers/answer_keys/{LESSON}.npz" in inside
    assert "helpers/blocks/03_query_key.py" in inside and "helpers/blocks/04_scaling.py" not in inside
    assert not [name for name in inside if "05_masking" in name]
    assert not [name for name in inside if name.startswith(FORBIDDEN_PLACES) or name.endswith("answer_key.py")]


@functools.cache
def squeezed(text: str) -> str:
    return "".join(text.split())


def long_lines(text: str) -> set[str]:
    return {line for line in map(squeezed, text.splitlines()) if len(line) >= 50}


@functools.cache
def read(name: str, body: bytes) -> str:
    """The readable text of a file in an edition: its source, or the cells of a notebook."""
    if name.endswith((".npz", ".safetensors")):
        return ""
    return "\n".join("".join(c["source"]) for c in json.loads(body)["cells"]) if name.endswith("nb") else body.decode()


def test_it_contains_no_text_of_answer_keys_authoring_grading_or_tests():
    """Less than half of the long lines of each such file occur in it, apart from setup_cell.py's, which every notebook
    contains."""
    inside = set().union(*(long_lines(read(*file)) for file in edition(course(), None).items()))
    root, found = course().root, {}
    places = ("solutions/*/answer_key.py helpers/authoring/*.py helpers/grading/*.py tests/**/*.py bench/*.py").split()
    paths = [path for place in places for path in root.glob(place) if path.name != "setup_cell.py"]
    for path in paths:
        own = long_lines(path.read_text("utf-8"))
        found[path.relative_to(root).as_posix()] = len(own & inside) / max(len(own), 1)
    assert len(paths) > 80 and {name: share for name, share in found.items() if share >= 0.5} == {}


def test_the_same_course_gives_the_same_bytes_under_the_limit(packed, tmp_path):
    assert pack(course(), None, tmp_path / "all.zip") < LARGEST
    pack(course(), course().lesson(LESSON), tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


def alone(home: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run Python in the unpacked edition with this environment's packages, but without the course installed in it."""
    environment = {"PYTHONPATH": sysconfig.get_path("purelib"), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, "-S", *arguments], cwd=home / FOLDER, env=environment, capture_output=True, text=True
    )


def test_answers_can_be_checked_wherever_it_is_unpacked(packed, tmp_path):
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
    result = alone(home, "-m", "helpers", "grade")
    assert "not in this edition" in result.stderr and "Traceback" not in result.stderr


def test_an_edition_that_cannot_be_written_is_reported_in_one_sentence(tmp_path, capsys):
    assert main(["pack", LESSON, "--output", str(tmp_path / "no" / "place.zip")]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "Choose another path" in message
    assert {course().lesson(name).name for name in ("4", "04", LESSON)} == {LESSON}
    with pytest.raises(CourseError, match="There is no lesson"):
        course().lesson("99_none")
