"""The charts and controls that the figures and explorers of all lessons share."""

import ipywidgets as widgets
import numpy as np
import pytest
import torch
from matplotlib.text import Annotation

from helpers.drawing.charts import MovingBars, bars, frame_cells, heatmap, name_ticks, named, run_bars, weight_map
from helpers.drawing.diagrams import SOURCE, arrow, box, flow, tokens
from helpers.drawing.style import new_figure
from helpers.widgets.panel import choice, decimal, powers, typed, whole


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_a_heat_map_has_the_given_labels_and_numbers():
    _, ax = new_figure()
    heatmap(ax, torch.eye(2), ["a", "b"], ["c", "d"], title="two", xlabel="key", digits=0)
    assert (ax.get_title(), ax.get_xlabel()) == ("two", "key")
    assert (labels(ax.yaxis), labels(ax.xaxis)) == (["a", "b"], ["c", "d"])
    assert [text.get_text() for text in ax.texts] == ["1", "0", "0", "1"]


def test_a_map_of_weights_ranges_from_0_to_1_and_hides_masked_cells():
    _, ax = new_figure()
    image = weight_map(ax, [[0.5, 0.0], [0.2, 0.8]], ["a", "b"], mask=np.tri(2, dtype=bool))
    assert image.get_clim() == (0, 1) and labels(ax.xaxis) == labels(ax.yaxis) == ["a", "b"]
    assert [text.get_text() for text in ax.texts] == ["0.50", "0.20", "0.80"] and len(ax.patches) == 1


def test_frames_surround_their_cells():
    _, ax = new_figure()
    frame_cells(ax, [(2, 5)])
    (frame,) = ax.patches
    assert frame.get_bbox().contains(5, 2) and not frame.get_fill()


@pytest.mark.parametrize("across", [False, True])
def test_bars_have_labels_and_numbers(across):
    _, ax = new_figure()
    drawn = bars(ax, ["a", "b"], torch.tensor([0.25, 2.0]), ".1f", across=across, title="sizes")
    assert [bar.get_width() if across else bar.get_height() for bar in drawn] == [0.25, 2.0]
    assert labels(ax.yaxis if across else ax.xaxis) == ["a", "b"] and ax.get_title() == "sizes"
    assert [text.get_text() for text in ax.texts] == ["0.2", "2.0"]


def test_the_first_bar_is_at_the_top_even_in_panels_that_share_an_axis():
    _, axes = new_figure(rows=1, columns=2, sharey=True)
    for ax in axes:
        bars(ax, ["a", "b"], [1, 2], across=True)
        assert ax.yaxis_inverted()


def test_the_bar_of_several_runs_ends_at_their_mean():
    _, ax = new_figure()
    run_bars(ax, {"a": [2.0, 4.0], "b": [5.0]}, start=1.0)
    assert [bar.get_x() + bar.get_width() for bar in ax.patches] == [3.0, 5.0]
    assert [line.get_xdata().tolist() for line in ax.lines] == [[2.0, 4.0], [5.0]]


@pytest.mark.parametrize("across", [False, True])
def test_moving_bars_change_size_color_and_number(across):
    _, ax = new_figure()
    moving = MovingBars(ax, ["a", "b"], "0.00", across=across, **{"xlim" if across else "ylim": (0, 10)})
    moving.show([3.0, 6.5], ".2f", ["red", "blue"])
    sizes = [(bar.get_width() if across else bar.get_height(), bar.get_facecolor()[0]) for bar in moving.bars]
    assert sizes == [(3.0, 1.0), (6.5, 0.0)]
    ends = [(text.get_text(), text.get_position()[0 if across else 1]) for text in moving.labels]
    assert ends == [("3.00", pytest.approx(3.1)), ("6.50", pytest.approx(6.6))]


def test_ticks_of_a_logarithmic_axis_are_plain_numbers():
    _, ax = new_figure()
    ax.set(xscale="log", yscale="log", xlim=(1, 1e5))
    name_ticks(ax, x=(1, 10, 65536))
    assert labels(ax.xaxis) == ["1", "10", "65,536"] and not len(ax.xaxis.get_minorticklocs())


def test_alt_texts_list_names_with_numbers():
    assert named(["a", "b"], torch.tensor([0.5, 1.0])) == "a 0.50, b 1.00"
    assert named({"a": 1}, [1200], ",") == "a 1,200"


def test_parts_of_a_diagram_are_at_their_positions():
    _, ax = new_figure()
    tokens(ax, ["the", "cat"], [1.0, 3.0], 2.0, [0.5, 0.7])
    box(ax, (5, 5), (1, 1), "hidden", hatch="////")
    places = {text.get_text(): text.get_position() for text in ax.texts}
    assert places == {"the": (1.0, 2.0), "cat": (3.0, 2.0), "hidden": (5, 5)}
    assert ax.patches[1].get_bbox().width == pytest.approx(0.7) and ax.texts[2].get_bbox_patch()
    assert arrow(ax, (0, 0), torch.tensor([1.0, 2.0])).xy == (1, 2) and SOURCE["facecolor"] != "white"


def test_arrows_of_a_flow_chart_connect_the_sides_of_boxes():
    _, ax = new_figure()
    boxes = {"x": ((2, 3), 0.0, 0.0, "red"), "y": ((2, 4), 3.0, 0.0, "blue"), "z": ((2,), 3.0, 2.0, "blue")}
    flow(ax, boxes, [("x", "y", "$W$"), ("y", "z", "sum"), ("z", "y", "")], height=1.0)
    texts = [text.get_text() for text in ax.texts if text.get_text()]
    assert texts == ["x\n(2, 3)", "y\n(2, 4)", "z\n(2)", "$W$", "sum"]
    ends = [(text.xyann, text.xy) for text in ax.texts if isinstance(text, Annotation)]
    assert ends == [((1.3, 0.5), (3.0, 0.5)), ((3.65, 1.0), (3.65, 2.0)), ((3.65, 2.0), (3.65, 1.0))]


def test_controls_start_with_the_given_values():
    slider = whole("beams", 3, 1, 9, step=2)
    assert (slider.description, slider.value, slider.min, slider.max, slider.step) == ("beams", 3, 1, 9, 2)
    assert decimal("p", 0.5, 0.0, 1.0, 0.25).step == 0.25
    heat = powers("temperature", 10.0, -1, 2, 0.1)
    assert isinstance(heat, widgets.FloatLogSlider)
    assert (heat.value, heat.min, heat.max, heat.step) == (10.0, -1, 2, 0.1)
    kinds = [("yes", True), ("no", False)]
    assert choice("sentence", ("a", "b")).value == "a" and choice("masked", kinds).value is True
    assert choice("masked", kinds, False).value is False
    assert typed("a sentence").placeholder == "a sentence, then Enter"
