"""Matplotlib's private parts still behave as helpers/drawing/matplotlib_insides.py assumes."""

import pytest

from helpers.drawing import matplotlib_insides
from helpers.drawing.style import new_figure


@pytest.mark.parametrize("kept", [False, True])
def test_a_kept_title_is_not_moved_when_drawn(kept):
    figure, axes = new_figure()
    axes.set_title("above")
    axes.xaxis.set_ticks_position("top")  # Matplotlib moves a title above them
    if kept:
        matplotlib_insides.keep_title(axes)
    figure.draw_without_rendering()
    assert (axes.title.get_position()[1] == 1.0) == kept
