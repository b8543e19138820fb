"""`course new`: what it begins builds at once, and what it cannot begin it leaves alone."""

import re

import nbformat
import pytest

from tests.small_course import LESSON, make_small_course, run_command, said_by_ruff


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """The small course with a new lesson and two new exercises: (root, what `course build` said of both lessons)."""
    root = make_small_course(tmp_path_factory.mktemp("new") / "course")
    for arguments in (["05_pooling"], ["05_pooling", "pooled_rows"], [LESSON, "doubled_rows"]):
        result = run_command(root, "new", *arguments)
        assert result.returncode == 0 and f"course build {arguments[0]}" in result.stdout, result.stderr
    return root, run_command(root, "build", "--no-run")


def test_a_new_lesson_and_new_exercises_build_at_once(begun):
    root, built = begun
    assert built.returncode == 0, built.stderr
    for lesson, names in (
        (LESSON, ["scaled_scores", "halved", "doubled_rows"]),
        ("05_pooling", ["pooling", "pooled_rows"]),
    ):
        notebook = nbformat.read(root / "notebooks" / lesson / f"{lesson}.ipynb", as_version=4)
        ids = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
        assert [ids.index(f"check_{name}") for name in names] == sorted(ids.index(f"check_{name}") for name in names)
        prose = "\n".join(cell.source for cell in notebook.cells)
        assert re.findall(r"## Exercise (\S+) `(\w+)`", prose) == [
            (f"{int(lesson[:2])}.{k}", name) for k, name in enumerate(names, 1)
        ]
    for place in ("helpers/lessons/pooling/__init__.py", "tests/accepted_variants/pooling.py"):
        assert (root / place).is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pooling"], "is called by a free number and a topic, as 15_pooling is; pooling does not do."),
        (["04_other"], "04_other does not do."),
        ([LESSON], f"Name a new exercise of it: course new {LESSON} EXERCISE"),
        ([LESSON, "halved"], f"{LESSON} has an exercise halved already."),
        ([LESSON, "quiz_2"], "'quiz_2' is no name for an exercise"),
    ],
)
def test_what_cannot_begin_is_a_sentence_and_writes_nothing(begun, arguments, said):
    root, _ = begun
    before = (root / "course.toml").read_text()
    result = run_command(root, "new", *arguments)
    assert result.returncode == 2 and said in result.stderr and result.stderr.count("\n") == 1
    assert (root / "course.toml").read_text() == before


def test_what_is_begun_is_in_the_style_of_the_house(begun):
    root, _ = begun
    for path in (*root.glob("solutions/05_pooling/*.py"), *root.glob("tests/*/*pooling.py")):
        assert said_by_ruff(path.relative_to(root).as_posix(), path.read_text("utf-8")) == ""
