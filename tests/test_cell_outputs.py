"""Limits on the outputs of a cell that the grader stores and shows."""

import pytest

from helpers.grading.inside.cell_runner import CUT, Outputs
from helpers.grading.record import safe_output


def test_long_text_of_a_cell_is_cut():
    outputs = Outputs()
    for _ in range(3):
        outputs.stream("stdout", "x" * 90_000)
    (shown,) = outputs.items
    assert shown["text"] == "x" * 180_000 + "x" * 20_000 + CUT


def test_pictures_of_a_cell_have_a_common_size_limit():
    outputs = Outputs()
    for size in (1_600_000, 1_300_000, 200_000):
        outputs.rich("display_data", {"image/png": "A" * size})
    assert [item["output_type"] for item in outputs.items] == ["display_data", "display_data", "stream"]
    assert outputs.items[-1]["text"] == CUT


def test_a_cell_shows_at_most_a_hundred_outputs():
    outputs = Outputs()
    for _ in range(120):
        outputs.rich("display_data", {"text/plain": "one more"})
    assert len(outputs.items) == 100


@pytest.mark.parametrize(("size", "stays"), [(3_900_000, True), (4_100_000, False)])
def test_a_picture_too_large_for_a_page_is_left_out(size, stays):
    output = {"output_type": "display_data", "data": {"image/png": "AAAA" * (size // 4)}, "metadata": {}}
    assert (safe_output(output) is not None) == stays


def test_a_text_too_long_for_a_page_is_cut():
    shown = safe_output({"output_type": "stream", "text": "x" * 500_000})
    assert shown["text"] == "x" * 400_000 + "\n... (cut)"
