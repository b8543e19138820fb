"""Explorers of lesson 7: a mixture of three values, a search engine that returns a blend, tiles of scores."""

from helpers.lessons.value_weighting.figures import JANE, Search, Tiles, Triangle
from helpers.widgets.controls import choice, decimal, powers
from helpers.widgets.panel import panel


def mixing():
    starts = zip(JANE, (0.0, 0.0, 0.75), strict=True)
    sliders = {name: decimal(f"score of {name}", start, -6, 6, 0.25) for name, start in starts}
    panel(Triangle(), **sliders)


def video_search():
    cooking, far = decimal("query: cooking", 2.0, 0, 3, 0.1), decimal("query: far away", 1.0, 0, 3, 0.1)
    panel(Search(), temperature=powers("temperature", 1.0, -1, 2, 0.01), cooking=cooking, far=far)


def tiles():
    sides = [4, 6, 8, 12, 24]
    queries, keys = choice("queries in a tile", sides, 8), choice("keys in a tile", sides, 6)
    panel(Tiles(), step=decimal("progress", 0.6, 0, 1, 0.1, readout_format=".0%"), queries=queries, keys=keys)
