"""matplotlib still works inside as helpers/drawing/matplotlib_insides.py takes for granted."""

import pytest
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from helpers.drawing.matplotlib_insides import keep_title


@pytest.mark.parametrize("kept", [False, True])
def test_a_kept_title_is_not_placed_anew(kept):
    figure = Figure()
    FigureCanvasSVG(figure)
    axes = figure.add_subplot(title="above")
    if kept:
        keep_title(axes)
    axes.xaxis.set_ticks_position("top")  # where a title gives way
    figure.draw_without_rendering()
    assert (axes.title.get_position()[1] == 1.0) == kept
