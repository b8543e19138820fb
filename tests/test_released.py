"""The built release is graded, packed and published, even if a teacher works on the copies in notebooks/."""

import dataclasses
import json
import re
import shutil

import nbformat
import pytest
from nbgrader.preprocessors import ClearOutput, ClearSolutions, ComputeChecksums, LockCells

from helpers import doctor
from helpers.__main__ import main
from helpers.authoring.book import lesson_page
from helpers.authoring.build import released_text, solution_path
from helpers.authoring.pack import edition
from helpers.course import course
from helpers.grading import folders as places
from helpers.grading.batch import lesson_fingerprint
from helpers.grading.class_scores import read_class
from helpers.grading.intake import read_submission
from helpers.grading.lesson_release import cells_to_judge, course_release
from helpers.released import (
    BEGIN,
    CODE_STUB,
    END,
    OPTIONS,
    TEXT_STUB,
    released_notebook,
    without_answer,
    working_copies,
    working_copies_note,
)
from tests.sample_class import hand_in
from tests.sandboxes import need_sandbox

LESSON = "04_scaling"


@pytest.mark.parametrize("lesson", course().lessons, ids=lambda lesson: lesson.name)
def test_the_release_equals_what_nbgrader_generates_from_the_solution(lesson):
    path = solution_path(course(), lesson)
    release = nbformat.read(path, as_version=4)
    clear = ClearSolutions(code_stub={"python": CODE_STUB}, text_stub=TEXT_STUB)
    for step in (LockCells(), clear, ClearOutput()):
        release, _ = step.preprocess(release, {})
    for cell in release.cells:  # where our release differs on purpose
        cell.source = re.sub(rf"^(quiz_\d+ = None.*|\w+ = None)\n{CODE_STUB}$", r"\1", cell.source, flags=re.MULTILINE)
        cell.source = cell.source.replace(OPTIONS, "):")
    release, _ = ComputeChecksums().preprocess(release, {})
    assert nbformat.from_dict(released_notebook(path)) == release


@pytest.mark.parametrize("begin", [f"    {BEGIN}", f"\t{BEGIN} of two", f"    # {BEGIN}"])
@pytest.mark.parametrize("end", [f"    {END}", f"    {END} ", f"    {END}  # of one", ""])
def test_no_solution_is_released_whatever_else_the_marker_lines_contain(begin, end):
    indent = begin[: len(begin) - len(begin.lstrip())]
    source = f"def scaled(x):\n{begin}\n    return x / 2\n{end}"
    assert without_answer(source, "code", "scaled") == f"def scaled(x):\n{indent}{CODE_STUB}"


@pytest.fixture
def teacher(tmp_path):
    """A course whose teacher has solved a lesson in notebooks/, clicked a quiz and deleted a check cell."""
    root = tmp_path / "course"
    for part in ("solutions", "notebooks"):
        shutil.copytree(course().root / part / LESSON, root / part / LESSON)
    for part in ("course.toml", "LICENSE", "requirements.txt", "helpers"):
        (root / part).symlink_to(course().root / part)
    solved = json.loads((root / "solutions" / LESSON / f"{LESSON}.ipynb").read_text(encoding="utf-8"))
    solved["cells"] = [cell for cell in solved["cells"] if cell["id"] != "check_score_variance"]
    (root / "notebooks" / LESSON / f"{LESSON}.ipynb").write_text(json.dumps(solved), encoding="utf-8")
    return dataclasses.replace(course(), root=root)


@pytest.fixture
def folders(teacher, tmp_path):
    """The teacher's class."""
    own = places.load(tmp_path / "gradebook")[0]
    return dataclasses.replace(own, source=teacher.root / "solutions", release=teacher.root / "notebooks")


def test_a_teachers_working_copy_does_not_change_grading(folders, lesson, tmp_path):
    untouched, _ = places.load(tmp_path / "gradebook")
    assert lesson_fingerprint(folders, LESSON) == lesson_fingerprint(untouched, LESSON)
    release = course_release(folders.executed(LESSON))
    assert release == course_release(untouched.executed(LESSON)) and "score_variance" in release.checks
    hand_in(untouched, lesson, "ada", {name: lesson.solutions[name] for name in lesson.exercises})
    submission = read_submission(folders.submitted, "ada", release, folders.source)
    own = {cell.exercise for cell in submission.cells if cell.kind == "answer" and not cell.trusted}
    assert own == set(lesson.exercises)  # also where the teacher wrote the same
    assert len(cells_to_judge(submission, release)) > len(release.checks)


def test_pack_and_book_contain_no_answer_of_a_working_copy(teacher, tmp_path):
    name = f"notebooks/{LESSON}/{LESSON}.ipynb"
    lesson = teacher.lesson(LESSON)
    alone = dataclasses.replace(teacher, lessons=(lesson,))
    packed = edition(alone, lesson)[name]
    assert packed == (course().root / name).read_bytes() and b"BEGIN SOLUTION" not in packed
    assert released_text(teacher, lesson).encode() == packed
    page = lesson_page(teacher, lesson, tmp_path / "pictures", answers=False)
    assert page == lesson_page(course(), lesson, tmp_path / "others", answers=False)


def test_a_working_copy_is_reported_once(teacher):
    assert working_copies(teacher.root) == [LESSON] and working_copies(course().root) == []
    (message,) = working_copies_note([LESSON], "packed is")
    assert LESSON in message and "packed is the release" in message and working_copies_note([], "packed is") == []
    lines = [line for _, line in doctor.check_notebooks(dataclasses.replace(teacher, lessons=()))]
    assert len([line for line in lines if "worked in notebooks/: 04_scaling" in line]) == 1
    copy = teacher.root / "notebooks" / LESSON / f"{LESSON}.ipynb"
    copy.write_text("no notebook", encoding="utf-8")
    assert working_copies(teacher.root) == [LESSON]
    ran = released_notebook(teacher.root / "solutions" / LESSON / copy.name)
    ran["cells"][0] |= {"outputs": [{"output_type": "stream", "name": "stdout", "text": "x"}]}
    copy.write_text(json.dumps(ran), encoding="utf-8")
    assert working_copies(teacher.root) == []  # it was run, but nothing was written into it


@pytest.mark.full
def test_a_class_gets_its_points_although_the_teacher_solved_the_lesson(folders, lesson, monkeypatch, capsys, tmp_path):
    need_sandbox()
    hand_in(folders, lesson, "ada", {name: lesson.solutions[name] for name in lesson.exercises})
    loaded = places.load(tmp_path / "gradebook")[1]
    monkeypatch.setattr("helpers.grading.grade.load", lambda gradebook: (folders, loaded))
    assert main(["grade", LESSON, "--gradebook", str(folders.gradebook)]) == 0
    assert capsys.readouterr().out.count("graded against the release") == 1
    (row,) = read_class(folders, LESSON).rows
    assert all(row.scores[f"check_{name}"] for name in lesson.exercises)
