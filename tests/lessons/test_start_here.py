"""Lesson 0: the numbers in its text, its figures and explorers, and its statements about tensors."""

import functools
import itertools
import json
import re

import pytest
import torch

from helpers import blocks as lesson
from helpers.authoring.lesson_rules import core_prose, minutes_of
from helpers.authoring.text import read_lesson
from helpers.check import CheckFailed
from helpers.checking import session
from helpers.checking.key import load_keys
from helpers.course import course
from helpers.drawing.measured import measured
from helpers.lessons.start_here import explore, figures
from helpers.or_finished import stand_in_for
from tests.conftest import ROOT
from tests.lessons.lesson_text import SOLUTIONS, says

LESSON = "00_start_here"


def notebook(folder):
    return json.loads((ROOT / folder / LESSON / f"{LESSON}.ipynb").read_text())["cells"]


def text_of(cell):
    """Return all text in the outputs of a cell."""
    shown = []
    for output in cell["outputs"]:
        parts = output.get("data", {}).get("text/plain", output.get("text", output.get("traceback", "")))
        shown.append("".join(parts))
    return "\n".join(shown)


def test_the_solution_notebook_prints_the_numbers_of_the_text():
    shown = "\n".join(text_of(cell) for cell in notebook("solutions") if cell["cell_type"] == "code")
    for expected in (
        "[[-2.,  0.,  4.],",
        "[-1.,  0.,  0.]]",  # the square table, centered along the wrong axis
        "[[3., 2.],",
        "[4., 1.]]",  # the Jacobian
        "tensor([0.3000, 0.4000])",
        "tensor([0.3000, 0.4100])",  # predicted and found
        "tensor([11.,  4.]) tensor([11.,  4.])",  # the gradient, computed in two ways
    ):
        assert expected in shown


def test_the_deliberate_failure_is_explained_and_does_not_stop_run_all():
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
def test_the_broadcasting_figure_shows_what_torch_does(a):
    for b in SHAPES:
        alt = figures.broadcast_picture(a, b).alt
        try:
            assert f"a + b has shape {tuple(torch.broadcast_shapes(a, b))}" in alt
        except RuntimeError:
            assert "RuntimeError" in alt


def test_figures_state_their_numbers():
    assert "21 22 23 24" in figures.outer_sum_picture().alt
    jacobian = figures.jacobian_picture().alt
    assert "(8.5, 9.5)" in jacobian and "(8.75, 9.75)" in jacobian
    assert "mix the tokens" in figures.transpose_against_view().alt
    assert "[[0, 2, 4], [1, 3, 5]]" in figures.transpose_against_view().alt


@pytest.mark.parametrize(("tokens", "width"), [(1, 1), (1, 4), (5, 1), (5, 4), (2, 2)])
def test_transpose_and_view_agree_only_for_a_single_row_or_column(tokens, width):
    alt = figures.memory_order()(tokens, width).alt
    assert ("agree" in alt) == (min(tokens, width) == 1)


def test_a_wrong_answer_is_not_praised_for_all_of_zero_points(monkeypatch, tmp_path):
    """Nothing is graded in this lesson, so a wrong answer must not be praised for zero of zero points."""
    monkeypatch.setenv("COURSE_PROGRESS_FILE", str(tmp_path / "progress.json"))
    monkeypatch.setattr(session, "find_key", lambda *_: load_keys(LESSON)["twice"])
    with pytest.raises(CheckFailed, match="twice is not right yet"):
        session.check_one("twice", lambda x: x * x, {})


def test_explorers_redraw_when_a_control_moves(monkeypatch):
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


def test_the_bug_and_its_fix_are_shown_side_by_side(capsys):
    figures.compare_columns(lesson.swap_last_two)
    assert capsys.readouterr().out.splitlines() == [
        "Informer  columns: 10 21,  11 30,  20 31",
        "yours     columns: 10 11,  20 21,  30 31",
    ]


# Measured claims. The lesson has to contain each sentence that is quoted here.

says = functools.partial(says, "00_start_here")


def test_view_and_transpose_agree_only_for_a_single_row_or_column():
    says("They give the same table only if one of the two sizes is 1")
    for rows, columns in itertools.product(range(1, 7), repeat=2):
        x = torch.arange(rows * columns).view(rows, columns)
        assert torch.equal(x.view(columns, rows), x.transpose(0, 1)) == (1 in (rows, columns))


def test_one_vector_fails_on_long_sentences_and_attention_does_not():
    says(
        "With one vector, accuracy falls to 75% at eight words and to 8% at twelve, whereas with attention the mean",
        "never falls below 97%. (The thin lines show three training runs of each translator.)",
        "| one vector | 100, 99, 98.5 | 71, 75.5, 77.5 | 9.5, 7, 8.5 |",
        "| attention | 100, 100, 100 | 100, 99.5, 99 | 99.5, 97.5, 96.5 |",
        "169,826",
    )
    stored = measured("start_here", "why_attention")
    assert stored["lengths"] == list(range(4, 13)) and stored["sentences"] == 200 and stored["parameters"] == 169_826
    means = {kind: 100 * torch.tensor(rows).mean(dim=0) for kind, rows in stored["accuracy"].items()}
    one, attention = means["one vector"], means["attention"]
    assert [len(rows) for rows in stored["accuracy"].values()] == [3, 3]
    assert abs(one[0] - attention[0]) < 1 and [round(one[i].item()) for i in (4, 8)] == [75, 8]
    assert attention.min() > 97 and (one.diff() < 0).all()
    last = {kind: [row[-1] for row in rows] for kind, rows in stored["accuracy"].items()}
    assert max(last["one vector"]) < 0.1 and min(last["attention"]) > 0.96
    alt = figures.why_attention().alt
    assert "with one vector 99, 96," in alt and "3 training runs" in alt


def test_both_paths_take_as_long_as_the_text_says():
    says(
        "takes about 20 hours",
        "| core | 0 to 14 | 20 |",
        "| attention only | 0, 1, and 3 to 8 | 8 |",
        "in lesson 1 the sections *Similar words get similar vectors* through *Words that are not in the vocabulary*,",
        "and in lesson 3 everything from exercise 3.4 through exercise 3.5.",
    )
    assert abs(sum(lesson.minutes for lesson in course().lessons) - 20 * 60) < 30
    ends = {
        "01": ("## Similar words get similar vectors", "## At work"),
        "03": ("### Exercise 3.4 `previous_token_weights`", "## The same pair in two sentences"),
    }
    minutes = 0
    for number in ("00", "01", "03", "04", "05", "06", "07", "08"):
        prose = core_prose(read_lesson(course(), course().lesson(number)))
        minutes += minutes_of(prose) - sum(
            map(minutes_of, re.findall(r"^## Written question$.*?(?=^## )", prose, re.M | re.S))
        )
        if number in ends:
            first, last = (prose.index(f"\n{heading}\n") for heading in ends[number])
            minutes -= minutes_of(prose[first:last])
    assert abs(minutes - 8 * 60) < 30


def test_which_pairs_of_shapes_can_be_broadcast():
    says(
        "`(2, 5, 3, 4)` with `(2, 1, 1, 4)`, or `(2, 3, 4)` with `(2, 4)`",
        "The second pair fails, because flush right, `4` is paired with `4`, but then `3` is paired with `2`.",
        "With `(2, 1, 4)` it would work.",
    )
    assert torch.broadcast_shapes((2, 5, 3, 4), (2, 1, 1, 4)) == (2, 5, 3, 4)
    with pytest.raises(RuntimeError):
        torch.broadcast_shapes((2, 3, 4), (2, 4))
    assert torch.broadcast_shapes((2, 3, 4), (2, 1, 4)) == (2, 3, 4)


def test_with_four_columns_the_bug_raises_an_error():
    says("With four columns you would have been luckier, because PyTorch would have raised an error.")
    x = torch.zeros(3, 4)
    with pytest.raises(RuntimeError):
        x - x.mean(dim=-1)


def test_view_and_transpose_do_not_copy_and_clone_does():
    says("Neither `view` nor `transpose` copies anything", "and `y.clone()` makes a copy that you may write into")
    x = torch.zeros(2, 3)
    for y in (x.view(3, 2), x.transpose(0, 1), x):
        assert y.data_ptr() == x.data_ptr()
    x.clone()[0, 0] = 7
    x + 1
    assert not x.any()


def test_bool_tensors_have_a_sum_and_no_mean():
    says("You can sum a bool tensor, where True counts as 1, but you can't average it")
    above = torch.tensor([1.0, 3.0]) > 2
    assert above.sum().item() == 1
    with pytest.raises(RuntimeError):
        above.mean()


def test_every_later_part_but_the_induction_figure_has_a_stand_in(capsys):
    says("Where a later part of the lesson needs an answer that you don't have, we use the course's own version,")

    def swap_last_two(x):
        raise NotImplementedError

    figures.compare_columns(swap_last_two)
    assert capsys.readouterr().out == "swap_last_two runs here once it is answered (NotImplementedError).\n"
    missing = set()
    for path in SOLUTIONS.glob("*/[01]*.py"):
        needed = re.findall(r"or_finished\((\w+)\)", path.read_text(encoding="utf-8"))
        missing |= {name for name in needed if stand_in_for(path.stem, name) is None}
    assert missing == {"induction_head"}  # its figure needs the learner's own weights


def test_a_second_backward_adds_to_the_gradient():
    says(
        "The `backward()` of a second loss **adds** to `.grad`, which",
        "`f(x0).backward(torch.tensor([1.0, 2.0]))` does what",
    )
    x = torch.tensor([2.0, 3.0], requires_grad=True)

    def f(x):
        return torch.stack([x[0] * x[1], x[0] ** 2 + x[1]])

    f(x).backward(torch.tensor([1.0, 2.0]))
    assert x.grad.tolist() == [11, 4]
    f(x).backward(torch.tensor([1.0, 2.0]))
    assert x.grad.tolist() == [22, 8]
