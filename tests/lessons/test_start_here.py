"""Lesson 0: its answers against torch's own routes, the numbers its text promises, its figures and explorers."""

import json
import re
from pathlib import Path

import pytest
import torch

from helpers import blocks as lesson
from helpers.check import CheckFailed
from helpers.checking import session
from helpers.checking.key import load_keys
from helpers.lessons.start_here import explore, figures

LESSON = "00_start_here"
ROOT = Path(__file__).parents[2]
X = torch.tensor([[1.0, 2.0, 6.0, 3.0], [0.0, 3.0, 3.0, 6.0], [2.0, 2.0, 2.0, -2.0]])  # (T, D), as in the lesson


def test_numbers_that_the_text_promises():
    assert lesson.center_rows(X).tolist() == [[-2, -1, 3, 0], [-3, 0, 0, 3], [1, 1, 1, -3]]
    assert lesson.fraction_above(X, 2.5).tolist() == [0.5, 0.75, 0.0]
    assert lesson.gather_per_row(X, torch.tensor([2, 3, 0])).tolist() == [6, 6, 2]


def notebook(folder):
    return json.loads((ROOT / folder / LESSON / f"{LESSON}.ipynb").read_text())["cells"]


def text_of(cell):
    """All text that running a cell showed."""
    shown = []
    for output in cell["outputs"]:
        parts = output.get("data", {}).get("text/plain", output.get("text", output.get("traceback", "")))
        shown.append("".join(parts))
    return "\n".join(shown)


def test_printed_numbers_of_the_solution_notebook():
    shown = "\n".join(text_of(cell) for cell in notebook("solutions") if cell["cell_type"] == "code")
    for expected in (
        "[[-2.,  0.,  4.],",
        "[-1.,  0.,  0.]]",  # the square table, centered wrongly
        "[[3., 2.],",
        "[4., 1.]]",  # the Jacobian
        "tensor([0.3000, 0.4000])",
        "tensor([0.3000, 0.4100])",  # promised and found
        "tensor([11.,  4.]) tensor([11.,  4.])",  # the gradient, both ways
    ):
        assert expected in shown


def test_one_deliberate_failure_is_named_and_does_not_stop_run_all():
    cells = notebook("solutions")
    failing = [c for c in cells if any(o.get("output_type") == "error" for o in c.get("outputs", []))]
    assert ["".join(cell["source"]) for cell in failing] == ["check(twice=squared)"]
    assert "raises-exception" in failing[0]["metadata"]["tags"]
    assert "each entry multiplied by itself" in text_of(failing[0])


def test_nothing_in_this_lesson_is_graded():
    for cell in notebook("notebooks"):
        assert not cell["metadata"].get("nbgrader", {}).get("grade", False)
    checks = [c for c in notebook("solutions") if c["cell_type"] == "code" and c["source"][0].startswith("check(")]
    shown = "\n".join(map(text_of, checks))
    assert len(checks) == 12 and "✓ gather_per_row" in shown
    assert not re.search(r"\d of \d+ (bonus )?points", shown)


SHAPES = explore.SHAPES


@pytest.mark.parametrize("a", SHAPES)
def test_broadcasting_picture_says_what_torch_does(a):
    for b in SHAPES:
        alt = figures.broadcast_picture(a, b).alt
        try:
            assert f"a + b has shape {tuple(torch.broadcast_shapes(a, b))}" in alt
        except RuntimeError:
            assert "RuntimeError" in alt


def test_figures_say_their_numbers():
    assert "21 22 23 24" in figures.outer_sum_picture().alt
    jacobian = figures.jacobian_picture().alt
    assert "(8.5, 9.5)" in jacobian and "(8.75, 9.75)" in jacobian
    assert "mix the tokens" in figures.transpose_against_view().alt
    assert "[[0, 2, 4], [1, 3, 5]]" in figures.transpose_against_view().alt


@pytest.mark.parametrize(("tokens", "width"), [(1, 1), (1, 4), (5, 1), (5, 4), (2, 2)])
def test_transpose_and_view_agree_only_for_a_single_row_or_column(tokens, width):
    alt = figures.MemoryOrder()(tokens, width).alt
    assert ("agree" in alt) == (min(tokens, width) == 1)


def test_a_wrong_answer_does_not_have_all_of_no_points(monkeypatch, tmp_path):
    """Nothing is graded in this lesson: zero of zero points are no praise."""
    monkeypatch.setenv("COURSE_PROGRESS_FILE", str(tmp_path / "progress.json"))
    monkeypatch.setattr(session, "find_key", lambda *_: load_keys(LESSON)["twice"])
    with pytest.raises(CheckFailed, match="twice is not right yet"):
        session.check_one("twice", lambda x: x * x, {})


def test_explorers_redraw(monkeypatch):
    shown = []
    monkeypatch.setattr("helpers.widgets.panel.display", shown.append)
    monkeypatch.delenv("COURSE_STATIC_PAGE", raising=False)
    explore.broadcasting()
    explore.memory_order()
    for box, control, value, words in (
        (shown[0], 1, (2, 4), "a + b raises RuntimeError"),
        (shown[1], 0, 1, "the two tables agree"),
    ):
        _, controls, page = box.children
        before = page.value
        controls.children[control].value = value
        assert page.value != before and words in page.value


def test_the_bug_and_its_repair_are_shown_side_by_side(capsys):
    figures.turned_by(lesson.swap_last_two)
    assert capsys.readouterr().out.splitlines() == [
        "published columns: 10 21,  11 30,  20 31",
        "yours     columns: 10 11,  20 21,  30 31",
    ]
