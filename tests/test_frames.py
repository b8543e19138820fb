"""The pictures of an explorer on a page without a kernel: which ones are drawn, and that they equal the notebook's."""

import base64
import io
import itertools
import json
import math
import random
import re
import zlib
from urllib.parse import unquote

import ipywidgets as widgets
import numpy as np
import pytest
from PIL import Image

from helpers.authoring import frames
from helpers.authoring.explorers import caught
from helpers.drawing.style import tidied
from helpers.lessons.masking import explore as masking
from helpers.lessons.token_embedding import explore as token_embedding
from helpers.widgets.panel import Shown
from tests.draws import pictures_of


def unpacked(data: str) -> tuple[list[str], list[str]]:
    """(the pages that a packed explorer shows, their alt texts), assembled as in docs/book/explorers.js."""
    packed = json.loads(zlib.decompress(base64.b64decode(data)))
    pages = ["".join(packed["pieces"][i] for i in itertools.accumulate(steps)) for steps in packed["frames"]]
    return pages, packed["alts"]


@pytest.mark.parametrize("count, room, start", [(181, 40, 53), (80, 7, 10), (301, 25, 100), (21, 6, 20), (4, 3, 1)])
def test_chosen_positions_are_spread_over_the_whole_slider(count, room, start):
    chosen = frames.spread(count, room, start)
    assert {0, start, count - 1} <= set(chosen) and chosen == sorted(set(chosen)) and len(chosen) <= room
    gaps = [after - before for before, after in itertools.pairwise(chosen)]
    assert max(gaps) <= 2 * math.ceil(count / (room - 1))
    assert frames.spread(5, 5, 2) == [0, 1, 2, 3, 4]


def test_the_number_of_drawn_pictures_stays_within_its_limit():
    sliders = {name: widgets.IntSlider(value=value, min=0, max=100) for name, value in (("a", 50), ("b", 3))}
    ways = {name: frames.positions(control) for name, control in sliders.items()}
    chosen = frames.thinned({**ways, "two": frames.Positions([0, 1], ["no", "yes"], 0)}, 64)
    assert math.prod(map(len, chosen.values())) <= 64 and chosen["two"] == [0, 1]
    assert min(len(chosen["a"]), len(chosen["b"])) > 3 and 50 in chosen["a"] and 3 in chosen["b"]
    boxes = {str(i): frames.Positions([0, 1], ["no", "yes"], 0) for i in range(20)}
    many = [len(chosen) for chosen in frames.thinned(boxes, 64).values()]
    assert many == sorted(many, reverse=True) and 1 < math.prod(many) <= frames.STATES and len(many) == 20


def number_kept(size: int) -> int:
    """The number of pictures kept for two sliders of forty positions, if each picture has `size` bytes of its own."""
    noise = random.Random(0)
    sliders = {name: widgets.IntSlider(value=5, min=1, max=40) for name in "ab"}
    explorer = frames.drawn(lambda a, b: f"<p>{a} {b} {noise.randbytes(size // 2).hex()}</p>", sliders)
    assert explorer["coarse"] and all(len(one["labels"]) >= 9 for one in explorer["controls"])
    return len(unpacked(explorer["data"])[0])


def test_more_pictures_are_kept_when_they_are_small():
    assert frames.FEW < 200 < number_kept(10) <= frames.STATES
    assert number_kept(20_000) <= frames.FEW


def test_a_single_slider_keeps_all_its_positions():
    slider = widgets.FloatLogSlider(value=4.9, base=10, min=-1, max=2, step=0.01)
    explorer = frames.drawn(lambda t: f"<p>{t:.3f}</p>", {"t": slider})
    assert not explorer["coarse"] and len(explorer["controls"][0]["labels"]) == 301


def test_a_heat_map_keeps_its_pixels_in_fewer_bytes():
    def coded(pixels):
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "PNG")
        return base64.b64encode(file.getvalue()).decode()

    noise = np.random.default_rng(0)
    pixels = noise.integers(0, 256, (9, 4), dtype=np.uint8)[noise.integers(0, 9, (90, 120))]
    pixels[..., 3] = 255
    lighter = frames._with_palette(coded(pixels))
    shown = np.array(Image.open(io.BytesIO(base64.b64decode(lighter))).convert("RGBA"))
    assert (shown == pixels).all() and len(lighter) < 0.7 * len(coded(pixels))
    pixels[0, 0, 3] = 100
    assert frames._with_palette(coded(pixels)) == coded(pixels)  # a transparent image stays as it is
    many = noise.integers(0, 256, (90, 120, 4), dtype=np.uint8) | np.array([0, 0, 0, 255], dtype=np.uint8)
    assert frames._with_palette(coded(many)) == coded(many)


def test_each_control_keeps_its_values_and_their_names():
    heat = frames.positions(widgets.FloatLogSlider(value=4.9, base=10, min=-1, max=2, step=0.1, readout_format=".2f"))
    assert heat.values[heat.start] == 4.9 and heat.labels[heat.start] == "4.90" and heat.values[0] == pytest.approx(0.1)
    below = frames.positions(widgets.IntSlider(value=-2, min=-4, max=4, step=2))
    assert below.values == [-4, -2, 0, 2, 4] and below.labels[below.start] == "−2"
    named = frames.positions(widgets.SelectionSlider(options=[("with", True), ("without", False)], value=False))
    assert (named.values, named.labels, named.start, named.kind) == ([True, False], ["with", "without"], 1, "select")
    kinds = ["three tastes", "each a different favorite", "no pattern"]
    assert frames.positions(widgets.SelectionSlider(options=kinds)).kind == "select"
    assert frames.positions(widgets.SelectionSlider(options=[1, 64, 1024])).kind == "range"
    box = frames.positions(widgets.Text(value="", placeholder="a sentence"))
    assert box.values == [""] and box.typed
    choice = frames.positions(widgets.Combobox(value="b", options=["a", "b"]))
    assert choice.values == ["a", "b"] and choice.start == 1 and choice.typed


def test_the_pictures_equal_those_of_the_notebook(monkeypatch):
    monkeypatch.setattr(frames, "STATES", 12)
    explorer = caught(masking, masking.masks)
    controls = {one["name"]: one for one in explorer["controls"]}
    assert list(controls) == ["new words", "cached", "padding"] and explorer["coarse"] and not explorer["typed"]
    states = list(itertools.product(*(map(int, one["labels"]) for one in controls.values())))
    pages, alts = unpacked(explorer["data"])
    assert len(states) == len(pages) == len(alts) == len(set(states))
    show, notebook = Shown(pictures_of(masking.masks)), {}
    show({"new": 3, "cached": 2, "pads": 1})  # as the explorer opens
    for at, state in enumerate(states):
        notebook[state] = show(dict(zip(("new", "cached", "pads"), state, strict=True)))
        alt, svg = re.search(r'alt="([^"]*)".*src="data:image/svg\+xml,([^"]*)"', notebook[state]).groups()
        plain = unquote(svg.replace("&amp;", "&"))
        plain = plain if "%22" in svg else plain.replace("'", '"')
        assert pages[at] == re.sub(r">\s+<", "><", tidied(plain)).strip() and alts[at] == alt
    assert len(set(notebook.values())) > 5 and explorer["first"] in alts


def test_a_box_with_suggestions_is_a_choice_of_sentences(monkeypatch):
    monkeypatch.setattr(frames, "STATES", 16)
    explorer = caught(token_embedding, token_embedding.sentence)
    assert explorer["typed"] and explorer["controls"][0]["kind"] == "select"
    assert explorer["controls"][0]["labels"] == list(token_embedding.SENTENCES)
    assert any("pizza has no id" in alt for alt in unpacked(explorer["data"])[1])


def test_html_without_a_picture_is_kept_unchanged():
    slider = widgets.SelectionSlider(options=["a", "b", "c"], value="b", description="letter")
    explorer = frames.drawn(lambda letter: f"<p>{letter} &amp; more</p>", {"letter": slider})
    assert explorer["first"] == "<p>b &amp; more</p>"
    assert unpacked(explorer["data"]) == ([f"<p>{letter} &amp; more</p>" for letter in "abc"], [])
