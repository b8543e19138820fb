"""Any submission, and any reply of a sandbox, is either read or refused in a sentence (property-based tests)."""

import copy
import json

import nbformat
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.checking.codec import BadTree, Odd, dumps, loads
from helpers.checking.observe import Observation
from helpers.grading.intake import read_submission
from helpers.grading.lesson_release import read_release
from helpers.grading.record import finished_notebook, safe_output
from helpers.grading.submission_run import clean_output
from tests.test_intake import LESSON, WHOLE, answered, as_notebook, lesson_cells

TEXTS = st.text(max_size=12) | st.sampled_from(
    ["\ud800", "\x1b[31m", "def first(): return 1", "check(first)", "<script>"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(["cell_type", "source", "metadata", "id", "attachments", "outputs", "input", "surprise"])


@st.composite
def notebooks(draw):
    """The lesson's notebook with cells deleted, copied, moved or overwritten by arbitrary JSON."""
    cells = copy.deepcopy(answered(first="def first(): return 1"))
    for _ in range(draw(st.integers(0, 6))):
        if not cells:
            break
        index = draw(st.integers(0, len(cells) - 1))
        what = draw(st.sampled_from(["delete", "copy", "move", "change", "change", "odd", "facts"]))
        if what == "delete":
            del cells[index]
        elif what == "copy":
            cells.insert(draw(st.integers(0, len(cells))), copy.deepcopy(cells[index]))
        elif what == "move":
            cells.append(cells.pop(index))
        elif what == "odd":
            cells[index] = draw(JSON)
        elif isinstance(cells[index], dict):
            if what == "change":
                cells[index][draw(KEYS)] = draw(JSON)
            else:
                cells[index]["metadata"] = {"nbgrader": draw(JSON), "id": draw(JSON)}
    notebook = as_notebook(cells)
    if draw(st.integers(0, 9)) == 0:
        notebook[draw(st.sampled_from(["cells", "metadata", "nbformat", "worksheets"]))] = draw(JSON)
    return notebook


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    root = tmp_path_factory.mktemp("course")
    folder = root / "notebooks" / LESSON
    folder.mkdir(parents=True)
    (folder / f"{LESSON}.ipynb").write_text(json.dumps(as_notebook(lesson_cells("first", "second"))))
    (root / "submitted" / "ada" / LESSON).mkdir(parents=True)
    return root, read_release(folder / f"{LESSON}.ipynb")


def handed_in(course, content: bytes):
    root, release = course
    (root / "submitted" / "ada" / LESSON / f"{LESSON}.ipynb").write_bytes(content)
    submission = read_submission(root / "submitted", "ada", release, root / "notebooks")
    assert sorted(cell.grade_id for cell in submission.cells if cell.grade_id) == sorted(WHOLE)
    assert all(note.isprintable() for note in [*submission.flags, submission.problem or ""])
    notebook = finished_notebook(submission, None, release)
    nbformat.validate(notebook)
    nbformat.writes(notebook).encode("utf-8")
    assert len({cell.id for cell in submission.cells}) == len(submission.cells)
    return submission


@given(notebooks())
def test_any_edited_notebook_is_read_with_all_its_graded_cells(course, notebook):
    handed_in(course, json.dumps(notebook).encode())


@given(st.binary(max_size=200) | JSON.map(lambda tree: json.dumps(tree).encode()))
def test_a_submission_of_arbitrary_bytes_is_recorded(course, content):
    handed_in(course, content)


@given(st.data())
def test_a_notebook_with_lost_or_changed_bytes_is_recorded(course, data):
    content = bytearray(json.dumps(as_notebook(answered(first="def first(): return 1"))).encode())
    for _ in range(data.draw(st.integers(1, 5))):
        index = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            content[index] = data.draw(st.integers(0, 255))
        else:
            del content[index : index + data.draw(st.integers(0, 300))]
            content = content or bytearray(b" ")
    handed_in(course, bytes(content))


TENSORS = st.builds(
    lambda shape, dtype: torch.ones(shape).to(dtype),
    st.lists(st.integers(0, 3), max_size=4),
    st.sampled_from([torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16, torch.uint8]),
)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=8) | TENSORS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=4) | st.integers(0, 9), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(TREES, st.data())
def test_changed_bytes_of_a_reply_are_read_or_refused(tree, data):
    content = bytearray(dumps({"observations": [tree]}))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        loads(bytes(content[: data.draw(st.integers(0, len(content)))]))
    except BadTree:
        pass


@given(JSON)
def test_an_arbitrary_reply_is_unpacked_or_refused(packed):
    header = json.dumps([packed, dict.fromkeys(("float32", "float64", "int64", "bool"), 0)]).encode()
    try:
        loads(len(header).to_bytes(8, "little") + header)
    except BadTree:
        pass


FIELDS = "output error gradients gradient_error changed forbidden said left".split()


@given(st.dictionaries(st.sampled_from(FIELDS), JSON | TREES, min_size=5) | JSON)
def test_an_arbitrary_tree_is_an_observation_or_refused(tree):
    try:
        observation = Observation.from_tree(tree)
    except ValueError:
        return
    assert max(len(observation.changed), len(observation.forbidden)) <= 50 and not isinstance(observation.error, Odd)


@given(
    st.dictionaries(st.sampled_from(["output_type", "name", "text", "ename", "evalue", "traceback", "data"]), JSON)
    | st.builds(lambda kind, data: {"output_type": kind, "data": data}, st.sampled_from(["display_data"]), JSON)
)
def test_an_arbitrary_output_is_cleaned_or_refused(output):
    try:
        cleaned = clean_output(output)
    except (TypeError, KeyError, ValueError, AttributeError):
        return
    output = safe_output(cleaned)
    if output is not None:
        json.dumps(output, ensure_ascii=False).encode("utf-8")
