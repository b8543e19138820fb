"""Reading submissions into cells that can be judged: nothing odd stops a class, and nothing honest is lost."""

import json
import os

import pytest

from helpers.checking.verdict import Verdict
from helpers.grading.attachments import read_files_beside
from helpers.grading.intake import find_misplaced, find_submissions, read_submission
from helpers.grading.lesson_release import UNGRADED, cells_to_judge, course_release, only_shows, read_release
from helpers.grading.name_bindings import TopLevel
from helpers.grading.notebook_file import LARGEST
from helpers.grading.pool import report_of_answer
from helpers.grading.submission import Release, SubmissionReport
from tests.conftest import lesson_names
from tests.lab import ROOT

LESSON = "04_scaling"
EXERCISES = ("first", "second")
STUB = "*Write your answer here.*"
RELEASE = Release(LESSON, {}, {}, {}, {}, set(), demonstrations={"figures.one()": set()})


def cell(kind, source, grade_id=None, grade=False, solution=False, points=None):
    result = {"cell_type": kind, "source": source, "metadata": {}, "id": grade_id or f"id-{abs(hash(source)) % 10**8}"}
    if grade_id:
        facts = {"grade_id": grade_id, "grade": grade, "solution": solution, "locked": grade and not solution}
        result["metadata"]["nbgrader"] = facts | ({"points": points} if grade else {})
    return result | ({"outputs": [], "execution_count": None} if kind == "code" else {})


def lesson_cells(*exercises):
    cells = [cell("markdown", "# Scaling"), cell("code", "import torch")]
    for name in exercises:
        cells.append(cell("code", f"def {name}():\n    raise NotImplementedError", name, solution=True))
        cells.append(cell("code", f"check({name})", f"check_{name}", grade=True, points=10))
    return [*cells, cell("markdown", STUB, "written_1", grade=True, solution=True, points=15)]


def as_notebook(cells, minor=5):
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": minor}


@pytest.fixture
def course(tmp_path):
    """The folder of a course with two lessons."""
    for lesson, exercises in ((LESSON, ("first", "second")), ("03_query_key", ("hard_lookup", "project"))):
        folder = tmp_path / "notebooks" / lesson
        folder.mkdir(parents=True)
        (folder / f"{lesson}.ipynb").write_text(json.dumps(as_notebook(lesson_cells(*exercises))))
    return tmp_path


@pytest.fixture
def read(course):
    def read(content, name=f"{LESSON}.ipynb", student="ada"):
        folder = course / "submitted" / student / LESSON
        folder.mkdir(parents=True, exist_ok=True)
        if content is not None:
            if not isinstance(content, bytes):
                content = json.dumps(content, ensure_ascii=False).encode()
            (folder / name).write_bytes(content)
        release = read_release(course / "notebooks" / LESSON / f"{LESSON}.ipynb")
        return read_submission(course / "submitted", student, release, course / "notebooks")

    return read


def answered(**sources):
    cells = lesson_cells("first", "second")
    for one in cells:
        name = one["metadata"].get("nbgrader", {}).get("grade_id")
        one["source"] = sources.get(name, one["source"])
    return cells


def names(submission):
    return [one.grade_id for one in submission.cells if one.grade_id]


GIVEN = ("rate = 0.1", "def trained():\n    return rate", "model = trained()", "figure = 3")


@pytest.mark.parametrize(
    ("gone", "back"), [((2,), (2,)), ((1, 2), (1, 2)), ((0, 1, 2, 3), (0, 1, 2)), ((0, 3), (0,)), ((3,), ())]
)
def test_a_deleted_lesson_cell_that_an_answer_needs_is_put_back_in_its_place(course, read, gone, back):
    path = course / "notebooks" / LESSON / f"{LESSON}.ipynb"
    cells = lesson_cells("first", "second")
    given = [cell("code", source) for source in GIVEN]
    path.write_text(json.dumps(as_notebook(cells[:4] + given + cells[4:])))
    own = answered(second="def second():\n    return helper()") + [cell("code", "def helper():\n    return model")]
    kept = [one for index, one in enumerate(given) if index not in gone]
    read_in = read(as_notebook(own[:4] + kept + own[4:]))
    found = [one.source for one in read_in.cells if one.source in GIVEN]
    assert found == [source for index, source in enumerate(GIVEN) if index not in gone or index in back]
    expected = [f"deleted cell of the lesson: {GIVEN[index]} (put back)".replace("\n", " ") for index in back]
    assert read_in.flags == expected and len({one.id for one in read_in.cells}) == len(read_in.cells)
    unanswered = read(as_notebook(cells[:4] + kept + cells[4:]), student="eve")
    assert unanswered.flags == []  # no answer needs them


def test_a_deleted_cell_that_the_learner_replaced_is_not_put_back(course, read):
    path = course / "notebooks" / LESSON / f"{LESSON}.ipynb"
    cells = lesson_cells("first", "second")
    path.write_text(json.dumps(as_notebook([*cells[:4], cell("code", GIVEN[2]), *cells[4:]])))
    own = answered(second="def second():\n    return model")
    own.insert(1, cell("code", "model = mine()"))
    assert read(as_notebook(own)).flags == []


WHOLE = ["first", "check_first", "second", "check_second", "written_1"]


def test_an_ordinary_submission_is_read_unchanged(read):
    submission = read(as_notebook(answered(first="def first(): return 1", written_1="Because of the width.")))
    assert submission.problem is None and submission.flags == []
    assert names(submission) == WHOLE
    judged = cells_to_judge(submission, RELEASE)
    parts = [(kind, name) for name in EXERCISES for kind in ("answer", "check")]
    assert [(c.kind, c.exercise) for c in judged] == [("code", None), *parts]
    assert judged[1].source == "def first(): return 1"
    assert submission.cells[-1].source == "Because of the width."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1"])
def test_common_encodings_are_read(read, encoding):
    text = json.dumps(as_notebook(answered(first="def first(): return 'déjà'")), ensure_ascii=False)
    submission = read(text.encode(encoding))
    assert submission.problem is None
    assert submission.cells[2].source == "def first(): return 'déjà'"


def test_an_unknown_minor_version_and_sources_as_lists_are_read(read):
    cells = answered()
    cells[2]["source"] = ["def first():\n", "    return 1"]
    submission = read(as_notebook(cells, minor=99) | {"surprise": {"a": 1}})
    assert submission.problem is None and submission.cells[2].source == "def first():\n    return 1"


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_other_line_ends_do_not_count_as_an_edit(course, end):
    cells = answered(first="def first():\n    return 1")
    setup = cell("code", "import sys\nprint(1)", "setup", grade=False)
    for place in ("notebooks", "submitted/ada"):
        (course / place / LESSON).mkdir(parents=True, exist_ok=True)
    release = course / "notebooks" / LESSON / f"{LESSON}.ipynb"
    release.write_text(json.dumps(as_notebook([setup, *lesson_cells("first", "second")])))
    cells_read = [one | {"source": one["source"].replace("\n", end)} for one in (setup, *cells)]
    (course / "submitted" / "ada" / LESSON / f"{LESSON}.ipynb").write_text(json.dumps(as_notebook(cells_read)))
    submission = read_submission(course / "submitted", "ada", read_release(release), course / "notebooks")
    assert submission.flags == [] and submission.problem is None
    assert {one.grade_id: one.source for one in submission.cells}["first"] == "def first():\n    return 1"


def test_lone_surrogates_are_replaced_when_read(read):
    raw = json.dumps(as_notebook(answered(first="x = 'HERE'"))).replace("HERE", "\\ud800").encode()
    read(raw).cells[2].source.encode("utf-8")


def test_deleted_edited_copied_and_moved_check_cells_are_restored(read):
    cells = answered(first="def first(): return 1")
    deleted = read(as_notebook([c for c in cells if "check_" not in str(c["metadata"])]))
    assert names(deleted) == WHOLE and "deleted cells: check_first, check_second" in deleted.flags[0]
    edited = read(as_notebook(answered(check_first="print('20 points')")))
    assert edited.cells[3].source == "check(first)" and "edited check cell: check_first" in edited.flags[0]
    copied = read(as_notebook([*cells, cells[3]]))
    assert names(copied) == WHOLE and "copied check cell: check_first" in copied.flags[0]
    moved = read(as_notebook([cells[3], *cells[:3], *cells[4:]]))
    assert sorted(names(moved)) == sorted(WHOLE)


def test_copied_answer_cells_all_run_and_the_last_one_counts(read):
    cells = answered(first="def first(): return 1")
    second_try = json.loads(json.dumps(cells[2])) | {"source": "def first(): return 2", "id": "copy"}
    submission = read(as_notebook([*cells[:3], second_try, *cells[3:]]))
    judged = [c for c in cells_to_judge(submission, RELEASE) if "first()" in c.source]
    assert [c.source for c in judged] == ["def first(): return 1", "def first(): return 2"]
    assert [c.exercise for c in judged] == [None, "first"]
    assert names(submission) == WHOLE and submission.flags == ["copied answer cell: first"]


def test_added_cells_stay_where_the_learner_put_them(read):
    cells = answered(first="def first(): return helper()")
    cells.insert(2, cell("code", "def helper(): return 1"))
    judged = cells_to_judge(read(as_notebook(cells)), RELEASE)
    assert [c.source for c in judged[:3]] == ["import torch", "def helper(): return 1", "def first(): return helper()"]


def test_no_cell_of_an_untouched_notebook_runs(read, course):
    release, cells = read_release(course / "notebooks" / LESSON / f"{LESSON}.ipynb"), lesson_cells("first", "second")
    assert [c.kind for c in cells_to_judge(read(as_notebook(cells)), release)] == ["check", "check"]
    cells.append(cell("code", "first = 1"))
    assert len(cells_to_judge(read(as_notebook(cells)), release)) == 5  # the import cell need not run


def test_cells_that_only_draw_the_courses_figures_do_not_run(read):
    cells = answered()
    cells.insert(2, cell("code", "figures.one()"))
    cells.insert(2, cell("code", "figures.one(my_own)"))
    judged = cells_to_judge(read(as_notebook(cells)), RELEASE)
    assert [c.source for c in judged[:2]] == ["import torch", "figures.one(my_own)"]
    assert all(map(only_shows, ("explore.two(1)\n", "figures.one()", 'transformer_map("04_scaling")')))
    assert not any(map(only_shows, ("x = figures.one()", "figures.one(); y = 1", "print(1)", "one()", "1 +", "")))


@pytest.mark.parametrize(
    "own, run",
    [
        ("def first(): return 1", False),
        ("def first():\n    model = 2\n    return model", False),
        ("def first(): return model", True),
        ("def first(): return 1\nprint(model)", True),
    ],
)
def test_an_ungraded_training_runs_only_if_an_answer_uses_its_result(read, course, own, run):
    release = course / "notebooks" / LESSON / f"{LESSON}.ipynb"
    training = cell("code", "model = train()") | {"metadata": {"tags": [UNGRADED]}}
    release.write_text(json.dumps(as_notebook([training, *lesson_cells("first", "second")])))
    facts = read_release(release)
    judged = cells_to_judge(read(as_notebook([training, *answered(first=own)])), facts)
    assert ("model = train()" in [one.source for one in judged]) == run
    changed = cells_to_judge(
        read(as_notebook([training | {"source": "model = train(1)"}, *answered(first=own)])), facts
    )
    assert "model = train(1)" in [one.source for one in changed]


@pytest.mark.parametrize("lesson", lesson_names())
def test_no_other_cell_of_a_lesson_uses_a_name_bound_by_an_ungraded_cell(lesson):
    notebook = json.loads((ROOT / "notebooks" / lesson / f"{lesson}.ipynb").read_text(encoding="utf-8"))
    bound: set[str] = set()
    for one in notebook["cells"]:
        source = "".join(one["source"])
        if one["cell_type"] != "code" or only_shows(source):
            continue
        for statement in TopLevel([source]).statements:
            if UNGRADED in one["metadata"].get("tags", []):
                bound |= statement.binds
            else:
                assert not bound & statement.calls, f"{source}\nreads {bound & statement.calls}"
                bound -= statement.binds


def test_the_set_up_cell_is_shown_with_its_output_and_does_not_run(read, course):
    release = course / "notebooks" / LESSON / f"{LESSON}.ipynb"
    setup = cell("code", "set_up()", "setup") | {"outputs": [{"output_type": "stream", "name": "stdout", "text": "x"}]}
    release.write_text(json.dumps(as_notebook([setup, *lesson_cells("first", "second")])))
    facts = course_release(release)
    assert facts.shown["set_up()"] == setup["outputs"]
    submission = read(as_notebook([setup, *answered(first="def first():\n    return 1")]))
    assert "set_up()" not in [one.source for one in cells_to_judge(submission, facts)]


def test_a_deleted_answer_cell_is_put_back_empty(read):
    cells = [c for c in answered() if c["metadata"].get("nbgrader", {}).get("grade_id") != "first"]
    submission = read(as_notebook([*cells[:2], cell("code", "def first(): return 1"), *cells[2:]]))
    assert sorted(names(submission)) == sorted(WHOLE)
    assert next(c for c in submission.cells if c.grade_id == "first").source == ""
    assert submission.flags == ["deleted cell: first (put back)"]


def test_an_answer_cell_turned_into_markdown_is_read_as_code(read):
    cells = answered(first="def first(): return 1")
    cells[2]["cell_type"] = "markdown"
    submission = read(as_notebook(cells))
    assert submission.cells[2].kind == "answer" and "markdown" in submission.flags[0]


def test_a_split_written_answer_is_joined(read):
    cells = answered(written_1="First half.")
    cells.append(json.loads(json.dumps(cells[-1])) | {"source": "Second half."})
    submission = read(as_notebook(cells))
    assert [c.source for c in submission.cells if c.kind == "written"] == ["First half.\n\nSecond half."]


@pytest.mark.parametrize("colab", [False, True], ids=["an editor dropped it", "Colab keeps ids in it"])
def test_cells_without_metadata_are_recognized_by_their_ids(read, colab):
    cells = answered(first="def first(): return 1", written_1="Mine.")
    cells = [c | {"metadata": {"id": c.pop("id")} if colab else {}} for c in cells]
    submission = read(as_notebook(cells, minor=0 if colab else 5))
    assert names(submission) == WHOLE and submission.flags == []


@pytest.mark.parametrize(
    "content, word",
    [
        (b"", "empty"),
        (b'{"cells": [', "cannot be read"),
        (b"\x00\xff\x13nonsense", "cannot be read"),
        (b"[1, 2]", "cannot be read"),
        (b'{"cells": 3}', "cannot be read"),
        (b'{"cells": ' + b"[" * 100_000, "cannot be read"),
        (b'{\n<<<<<<< HEAD\n"cells": []\n=======\n"cells": [1]\n>>>>>>> main\n}', "the marks of a merge conflict"),
        (as_notebook(lesson_cells("hard_lookup", "project")), "is the notebook of 03_query_key"),
        (as_notebook(lesson_cells("of_a_later_lesson")), "is the notebook of another lesson"),
        (None, "No notebook was handed in"),
    ],
)
def test_an_unreadable_submission_has_one_sentence_and_all_graded_cells(read, content, word):
    submission = read(content)
    assert word in submission.problem and "\n" not in submission.problem
    assert names(submission) == WHOLE


def test_malformed_cells_do_not_stop_reading(read):
    odd = [None, 3, {"cell_type": 7}, {"cell_type": "code", "source": {"a": 1}, "metadata": "x"}]
    odd.append({"cell_type": "code", "source": "", "metadata": {"nbgrader": {"grade_id": ["list"]}}})
    submission = read(as_notebook([*odd, *answered(first="def first(): return 1")]))
    assert submission.problem is None and names(submission) == WHOLE


def test_links_pipes_and_huge_files_are_not_read(course, read):
    read(None)
    path = course / "submitted" / "ada" / LESSON / f"{LESSON}.ipynb"
    secret = course / "secret.ipynb"
    secret.write_text(json.dumps(as_notebook(answered())))
    path.symlink_to(secret)
    assert "link" in read(None).problem
    path.unlink()
    os.mkfifo(path)
    assert "regular file" in read(None).problem
    path.unlink()
    with path.open("wb") as file:
        file.truncate(LARGEST + 1)
    assert "larger than 20 MB" in read(None).problem


@pytest.mark.parametrize(
    "name", [f"{LESSON}.{end}" for end in ("ipynb.txt", "json", "ipynb.json")] + ["my homework.ipynb"]
)
def test_a_renamed_notebook_is_found_and_flagged(read, name):
    submission = read(as_notebook(answered(first="def first(): return 1")), name=name)
    assert submission.problem is None and submission.cells[2].source == "def first(): return 1"
    assert submission.flags == [f"the notebook is called {name}, not {LESSON}.ipynb"]


SAID = "✓ first   10 of 10 points\n  values"
OUTPUTS = {
    "printed": ({"output_type": "stream", "name": "stdout", "text": [SAID]}, True),
    "shown": ({"output_type": "display_data", "data": {"text/plain": SAID, "text/html": "<div>"}}, True),
    "of another exercise": ({"output_type": "stream", "text": "✓ second   10 of 10 points"}, False),
    "not passed": ({"output_type": "stream", "text": "✗ first   0 of 10 points\n  ✓ values"}, False),
    "odd": ({"output_type": "stream", "text": 3, "data": [SAID]}, False),
}


@pytest.mark.parametrize(("output", "passed"), OUTPUTS.values(), ids=OUTPUTS)
def test_a_check_that_passed_in_the_notebook_but_fails_here_is_flagged(read, output, passed):
    cells = answered(first="def first(): return 1")
    next(c for c in cells if c["id"] == "check_first")["outputs"] = [output]
    submission = read(as_notebook(cells))
    half, full = (Verdict("first", points, 10, points == 10) for points in (5.0, 10.0))
    expected = ["The notebook shows that first passed its check at home; here it has 5 of 10 points."]
    flags = report_of_answer(submission, "judged", SubmissionReport({"first": half})).flags
    assert flags == (expected if passed else [])
    assert report_of_answer(submission, "judged", SubmissionReport({"first": full})).flags == []


def test_a_checksum_depends_on_the_submitted_bytes(read):
    first = read(as_notebook(answered(first="def first(): return 1"))).sha
    assert read(as_notebook(answered(first="def first(): return 1"))).sha == first
    assert read(as_notebook(answered(first="def first(): return 2"))).sha != first


def test_a_broken_timestamp_is_flagged_and_ignored(course, read):
    read(as_notebook(answered()))
    stamp = course / "submitted" / "ada" / LESSON / "timestamp.txt"
    stamp.write_text("yesterday-ish")
    submission = read(as_notebook(answered()))
    assert submission.timestamp is None and "timestamp" in submission.flags[0]
    stamp.rename(stamp.with_name("timestamp (2).txt"))
    submission = read(as_notebook(answered()))
    expected = "a timestamp.txt was handed in with the notebook; it says nothing about the time"
    assert (submission.timestamp, submission.flags) == (None, [expected])


def test_students_are_found_by_their_folders(course, read):
    read(as_notebook(answered()), student="ada")
    read(None, student="bert")
    (course / "submitted" / "carla").mkdir()
    (course / "submitted" / ".hidden" / LESSON).mkdir(parents=True)
    assert find_submissions(course / "submitted", LESSON) == ["ada", "bert"]


# Several notebooks in one folder, answers in check cells, lost metadata.


def test_the_notebook_with_most_answers_is_taken_and_the_others_are_named(read):
    blank = lesson_cells("first", "second")
    read(as_notebook(blank))
    read(as_notebook(answered(first="def first(): return 1")), name=f"{LESSON} (1).ipynb")
    both = answered(first="def first(): return 1", second="def second(): return 2")
    taken = read(as_notebook(both), name=f"{LESSON}-Copy1.ipynb")
    assert [c.source for c in taken.cells if c.kind == "answer"] == ["def first(): return 1", "def second(): return 2"]
    assert taken.flags == [
        f"the notebook is called {LESSON}-Copy1.ipynb, not {LESSON}.ipynb",
        f"{LESSON} (1).ipynb is next to it and was not graded",
        f"{LESSON}.ipynb is next to it and was not graded",
    ]
    own = read(as_notebook(answered(first="def first(): return 3")))
    assert own.cells[2].source == "def first(): return 3"
    assert [flag for flag in own.flags if "not graded" not in flag] == []


def test_a_json_file_beside_the_notebook_is_not_named_as_one(read, course):
    read(as_notebook(answered(first="def first(): return 1")))
    (course / "submitted" / "ada" / LESSON / "settings.json").write_text("{}")
    assert read(None).flags == []


@pytest.mark.parametrize("how", ["above", "below", "alone", "in a copy"])
def test_code_in_a_check_cell_runs_before_the_original_check_cell(read, how):
    own = "def first():\n    return 1"
    merged = {"above": f"{own}\n\ncheck(first)", "below": f"check(first)\n{own}"}.get(how, own)
    cells = answered(check_first=merged)
    if how == "in a copy":
        cells[3]["source"] = "check(first)"
        cells.insert(4, cell("code", merged, "check_first", grade=True, points=10))
    submission = read(as_notebook(cells))
    assert names(submission) == WHOLE
    judged = [c for c in cells_to_judge(submission, RELEASE) if "return 1" in c.source or c.exercise == "first"]
    parts = [("answer", "first"), ("code", None), ("check", "first")]
    assert [(c.kind, c.exercise) for c in judged] == (parts if how != "in a copy" else [parts[0], parts[2], parts[1]])
    assert "check(first)" not in next(c.source for c in judged if c.kind == "code")


def test_cells_without_metadata_and_ids_are_recognized_by_their_code(read):
    cells = [
        {**c, "metadata": {}, "id": f"plain-{i}"}
        for i, c in enumerate(
            answered(first="x = 1\ndef first(): return x", second="def second():\n    return first()")
        )
    ]
    cells.insert(2, {**cell("code", "def first(): return 0"), "id": "draft"})
    submission = read(as_notebook(cells))
    judged = [(c.kind, c.exercise) for c in cells_to_judge(submission, RELEASE)]
    assert judged == [("code", None)] * 2 + [(kind, name) for name in EXERCISES for kind in ("answer", "check")]
    assert not any("deleted" in flag for flag in submission.flags)


@pytest.mark.parametrize(
    ("outputs", "count", "ran"), [([], 3, True), ([], None, None), ([{"output_type": "error"}], 3, False)]
)
def test_outputs_show_whether_a_cell_ran_in_the_learners_notebook(read, outputs, count, ran):
    cells = answered(first="def first(): return 1")
    cells[1] |= {"source": "import pandas", "outputs": outputs, "execution_count": count}
    assert next(c for c in read(as_notebook(cells)).cells if c.source == "import pandas").ran is ran


def test_text_and_csv_files_are_read_only_if_the_code_names_them(tmp_path):
    for name in ("notes.txt", "table.csv", "timestamp.txt", "other.txt"):
        (tmp_path / name).write_text("1")
    named = read_files_beside(tmp_path, "open('notes.txt'), read('table.csv')")[0]
    assert named == {"notes.txt": b"1", "table.csv": b"1"}
    assert read_files_beside(tmp_path, "x = 1") == ({}, [])


def test_a_notebook_outside_the_lessons_folder_is_reported(tmp_path):
    for name in ("ada/04_scaling", "ben", "cleo/05_masking", "dan"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("ada/04_scaling.ipynb", "ben/my 04_scaling.ipynb", "cleo/05_masking/05_masking.ipynb", "dan/x.ipynb"):
        (tmp_path / name).write_text("{}")
    expected = "my 04_scaling.ipynb lies outside of the folder 04_scaling; move it there and grade again."
    assert find_misplaced(tmp_path, LESSON) == {"ben": expected}


COLAB = (
    '<a href="https://colab.research.google.com/github/x/y/blob/main/04_scaling.ipynb" target="_parent">'
    '<img src="https://colab.research.google.com/assets/colab-badge.svg" alt="Open In Colab"/></a>'
)
DEEPNOTE = (
    "<a style='text-decoration:none;' href='https://deepnote.com?utm_source=cell' target=\"_blank\">\n"
    "<img alt='Created in deepnote.com' src='data:image/svg+xml;base64,PD94' > </img>\n"
    "Created in <span style='font-weight:600;'>Deepnote</span></a>"
)
MARKDOWN = (
    "[![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com)"
)


@pytest.mark.parametrize("text", [COLAB, DEEPNOTE, MARKDOWN])
@pytest.mark.parametrize("place", [0, None], ids=["above", "below"])
def test_a_badge_of_a_platform_does_not_count_as_the_learners_text(read, text, place):
    cells = answered(first="def first(): return 1")
    cells.insert(len(cells) if place is None else place, cell("markdown", text))
    submission = read(as_notebook(cells))
    assert submission.flags == [] and not any(one.waits for one in submission.cells)


def test_a_link_that_a_learner_wrote_counts_as_text(read):
    cells = answered(first="def first(): return 1")
    cells.insert(0, cell("markdown", "<a href='https://example.org'>my answer</a>"))
    assert any(one.waits for one in read(as_notebook(cells)).cells)


def test_only_some_of_hundreds_of_notebooks_are_examined(course, read):
    read(b"{}", name="n000.ipynb")
    folder = course / "submitted" / "ada" / LESSON
    for number in range(1, 300):
        (folder / f"n{number:03}.ipynb").write_text("{}")
    submission = read(as_notebook(answered()))
    assert len(submission.flags) < 20
    assert "301 notebooks are in its folder; not all of them were examined" in submission.flags


def test_code_with_too_many_statements_waits_for_a_person(read):
    submission = read(as_notebook([*answered(), cell("code", "x=1;" * 30_000)]))
    assert "30,0" in submission.problem and "lines of code" in submission.problem
