"""Lesson 0's statements about tensors, each tried out."""

import functools
import itertools
import re

import pytest
import torch

from helpers.lessons.start_here import figures
from helpers.or_given import stand_in_for
from tests.lessons.lesson_text import SOLUTIONS, says

says = functools.partial(says, "00_start_here")


def test_view_and_transpose_agree_only_for_a_single_row_or_column():
    says("Only where one of the two sizes is 1.")
    for rows, columns in itertools.product(range(1, 7), repeat=2):
        x = torch.arange(rows * columns).view(rows, columns)
        assert torch.equal(x.view(columns, rows), x.transpose(0, 1)) == (1 in (rows, columns))


def test_which_of_the_two_pairs_of_shapes_works():
    says(
        "`(2, 5, 3, 4)` with `(2, 1, 1, 4)`, and `(2, 3, 4)` with `(2, 4)`",
        "The second pair fails: flush right, 4 meets 4, but then 3 meets 2.",
        "`(2, 1, 4)` would work.",
    )
    assert torch.broadcast_shapes((2, 5, 3, 4), (2, 1, 1, 4)) == (2, 5, 3, 4)
    with pytest.raises(RuntimeError):
        torch.broadcast_shapes((2, 3, 4), (2, 4))
    assert torch.broadcast_shapes((2, 3, 4), (2, 1, 4)) == (2, 3, 4)


def test_four_columns_would_have_been_an_error():
    says("With four columns you would have been luckier: there would have been one.")
    x = torch.zeros(3, 4)
    with pytest.raises(RuntimeError):
        x - x.mean(dim=-1)


def test_neither_copies_and_writing_shows_through():
    says("Neither `view` nor `transpose` copies", "and `y.clone()` makes a copy that you may write into")
    x = torch.zeros(2, 3)
    for y in (x.view(3, 2), x.transpose(0, 1), x):
        assert y.data_ptr() == x.data_ptr()
    x.clone()[0, 0] = 7
    x + 1
    assert not x.any()


def test_bool_tensors_are_summed_and_not_averaged():
    says("You can sum a bool tensor, True counting 1, but you cannot average it")
    above = torch.tensor([1.0, 3.0]) > 2
    assert above.sum().item() == 1
    with pytest.raises(RuntimeError):
        above.mean()


def test_what_waits_for_an_answer_and_what_does_not(capsys):
    says(
        "Where a later part of the lesson needs an answer that you do not have, the course's own part stands in",
        "A cell that shows your own answer prints one line instead, until you have one.",
    )

    def swap_last_two(x):
        raise NotImplementedError

    figures.turned_by(swap_last_two)
    assert capsys.readouterr().out == "swap_last_two runs here once it is answered (NotImplementedError).\n"
    missing = set()
    for lesson in SOLUTIONS.glob("*/[01]*.py"):
        needed = re.findall(r"or_given\((\w+)\)", lesson.read_text(encoding="utf-8"))
        missing |= {name for name in needed if stand_in_for(lesson.stem, name) is None}
    assert missing == {"induction_head"}  # its figure draws the learner's own weights


def test_a_second_backward_adds():
    says(
        "The `backward()` of a second loss **adds** to `.grad`.", "`f(x0).backward(torch.tensor([1.0, 2.0]))` does what"
    )
    x = torch.tensor([2.0, 3.0], requires_grad=True)

    def f(x):
        return torch.stack([x[0] * x[1], x[0] ** 2 + x[1]])

    f(x).backward(torch.tensor([1.0, 2.0]))
    assert x.grad.tolist() == [11, 4]
    f(x).backward(torch.tensor([1.0, 2.0]))
    assert x.grad.tolist() == [22, 8]
