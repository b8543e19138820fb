"""A submitted copy of the course's solution is flagged. Of a submitted clone only the owner's notebook counts."""

import json
import shutil
import zipfile

import pytest

from helpers.classroom.collect import collect
from helpers.grading.class_report import as_csv
from helpers.grading.class_scores import read_class
from helpers.grading.folders import ROOT, load
from helpers.grading.grade import grade_and_print
from helpers.grading.intake import read_submission
from helpers.grading.lesson_release import course_release
from helpers.grading.public_solution import repeats, stand_ins
from helpers.grading.repository_files import own_files
from tests.sample_class import grade_id, hand_in, text

LESSON = "04_scaling"
NAME = f"{LESSON}.ipynb"
SOLUTION = ROOT / "solutions" / LESSON / NAME
BLANK = (ROOT / "notebooks" / LESSON / NAME).read_text("utf-8")
CLONE = {
    ".git/objects/ab/cdef": b"x",
    ".venv/lib/site-packages/other/README.ipynb": b"{}",
    "node_modules/left-pad/index.js": b"",
    "README.md": b"the course",
    "nbgrader_config.py": b"raise SystemExit",
    "helpers/__init__.py": b"",
    "helpers/__pycache__/x.pyc": b"",
    f"solutions/{LESSON}/{NAME}": SOLUTION.read_bytes(),
    f"solutions/{LESSON}/answer_key.py": b"",
    "notebooks/00_start_here/00_start_here.ipynb": (ROOT / "notebooks/00_start_here/00_start_here.ipynb").read_bytes(),
}


def answered(name: str = "scaled_scores", source: str = "def scaled_scores(Q, K):\n    return Q @ K.mT") -> str:
    notebook = json.loads(BLANK)
    for cell in notebook["cells"]:
        if grade_id(cell) == name:
            cell["source"] = source
    return json.dumps(notebook)


OWN = answered()


def write(folder, files: dict[str, bytes | str]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def read(folders, files: dict[str, bytes | str]):
    write(folders.submitted / "ada" / LESSON, files)
    return read_submission(folders.submitted, "ada", course_release(SOLUTION), folders.source)


def answers(submission) -> list[str]:
    return [cell.exercise for cell in submission.cells if cell.kind == "answer" and not cell.trusted and cell.source]


def flags(submission) -> list[str]:
    return [flag for flag in submission.flags if "identical" in flag]


def test_a_submitted_solution_is_flagged_with_the_number_of_identical_answers(folders):
    submission = read(folders, {NAME: SOLUTION.read_bytes()})
    assert flags(submission) == [
        "identical to the published solution: 6 of 6 answers",
        "identical to the published model answer: written_1",
    ]


def test_a_pasted_answer_is_flagged_whatever_its_white_space(folders, lesson):
    cells = {grade_id(cell): text(cell) for cell in json.loads(SOLUTION.read_text())["cells"]}
    pasted = cells["scaled_scores"].replace("    ### BEGIN SOLUTION\n", "\n").replace("    ### END SOLUTION", "\n\n")
    assert flags(read(folders, {NAME: answered("scaled_scores", pasted)})) == [
        "identical to the published solution: 1 of 6 answers"
    ]
    hand_in(folders, lesson, "ben", {name: lesson.solutions[name] for name in lesson.exercises})
    assert flags(read_submission(folders.submitted, "ben", course_release(SOLUTION), folders.source)) == []
    assert flags(read(folders, {NAME: BLANK})) == []


def test_a_long_pasted_answer_is_flagged_without_its_comments():
    published = f"    mean = x.mean(-1)  # one per row\n    {' + '.join(['mean'] * 20)}\n"
    without = published.replace("  # one per row", "")
    assert repeats(f"def f(x):\n{published}", published) and repeats(f"def f(x):  # mine\n{without}", published)
    assert not repeats(without.replace("mean", "average"), published)
    assert not repeats("    return x @ y", "    return x @ y  # (T, T)"), "many people write this"


def test_a_pasted_stand_in_of_the_course_is_flagged(folders):
    source = (ROOT / "helpers" / "lessons" / "scaling" / "stand_ins.py").read_text(encoding="utf-8")
    name = next(iter(stand_ins(LESSON)))
    submission = read(folders, {NAME: answered("scaled_scores", source)})
    assert any(flag.startswith("identical to the course's stand-ins") and name in flag for flag in submission.flags)


@pytest.mark.parametrize("inside", ["", "attention-course-main/", "a/b/"])
@pytest.mark.parametrize("own", [OWN, BLANK], ids=["answered", "blank"])
def test_the_owners_notebook_is_found_in_a_submitted_clone(folders, inside, own):
    files = CLONE | {f"notebooks/{LESSON}/{NAME}": own}
    submission = read(folders, {inside + name: content for name, content in files.items()})
    assert submission.problem is None and submission.flags == []
    assert answers(submission) == (["scaled_scores"] if own == OWN else [])


@pytest.mark.parametrize("own", [OWN, BLANK], ids=["answered", "blank"])
@pytest.mark.parametrize("other", ["solution.ipynb", "04_scaling (2).ipynb"])
def test_a_solution_beside_the_learners_notebook_is_not_graded(folders, own, other):
    submission = read(folders, {NAME: own, other: SOLUTION.read_bytes()})
    assert answers(submission) == (["scaled_scores"] if own == OWN else [])
    assert submission.flags == [f"{other} is next to it and was not graded"]


def test_a_learners_notebook_counts_although_the_solution_has_the_expected_name(folders):
    assert answers(read(folders, {NAME: SOLUTION.read_bytes(), "mine.ipynb": OWN})) == ["scaled_scores"]


PLACES = {
    "moodle": ("Ada L_11_assignsubmission_file/", "Ben M_12_assignsubmission_file/04_scaling.ipynb"),
    "folders": ("ada/clone/", "ben/04_scaling.ipynb"),
    "classroom": ("scaling-ada/", "scaling-ben/04_scaling.ipynb"),
    "one alone": ("ada/", None),
}


@pytest.mark.parametrize(
    ("place", "packed", "named"),
    [
        ("moodle", "zip", True),
        ("moodle", "zip in zip", False),
        ("folders", "folder", True),
        ("folders", "zip", False),
        ("classroom", "zip in zip", True),
        ("classroom", "folder", False),
        ("one alone", "zip in zip", True),
        ("one alone", "zip", False),
    ],
)
def test_the_owners_notebook_is_found_in_clones_of_a_download(folders, tmp_path, place, packed, named):
    ada, ben = PLACES[place]
    files = CLONE | {f"notebooks/{LESSON}/{NAME}": OWN}
    inside = {ada + name: content for name, content in files.items()}
    if packed == "zip in zip":
        with zipfile.ZipFile(tmp_path / "inner.zip", "w") as archive:
            for name, content in files.items():
                archive.writestr(f"attention-course-main/{name}", content)
            for number in range(600):
                archive.writestr(f"attention-course-main/tests/{number}.py", "")
        inside = {f"{ada}clone.zip": (tmp_path / "inner.zip").read_bytes()}
    inside |= {ben: OWN} if ben else {}
    path = tmp_path / "download"
    write(path, inside)
    if packed != "folder":
        path = shutil.make_archive(str(tmp_path / "download"), "zip", path)
    room = tmp_path / "room"
    room.mkdir()
    (outcome,), notes = collect(folders, type(tmp_path)(path), LESSON if named else None, [], room)
    assert outcome.lesson == LESSON and len(outcome.status) == (2 if ben else 1) and notes == []
    for student in outcome.status:
        submission = read_submission(folders.submitted, student, course_release(SOLUTION), folders.source)
        assert answers(submission) == ["scaled_scores"] and submission.flags == []


def test_a_folder_that_is_not_a_clone_keeps_all_its_files():
    names = [("ada", "notebooks", NAME), ("ada", "notes", "x.txt"), ("solutions", NAME), (NAME,)]
    assert own_files(names) == {name: name for name in names}


def test_the_flag_appears_in_report_and_csv_and_costs_no_points(folders, lesson):
    write(folders.submitted / "ada" / LESSON, {NAME: SOLUTION.read_bytes()})
    options = dict.fromkeys(("student", "jobs", "unsafe", "cell_seconds", "scheduler", "cluster", "feedback", "force"))
    config = load(folders.gradebook)[1]
    grade_and_print(folders, config, type("Options", (), {**options, "lesson": LESSON}))
    page = folders.report(LESSON, "html").read_text(encoding="utf-8")
    table = as_csv(read_class(folders, LESSON))
    assert all("identical to the published solution: 6 of 6 answers" in shown for shown in (page, table))
    (row,) = read_class(folders, LESSON).rows
    assert all(row.scores[f"check_{name}"] for name in lesson.exercises if not lesson.keys[name].bonus)
