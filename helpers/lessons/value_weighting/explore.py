"""Explorers of lesson 7: a mixture of three values, a search engine that returns a blend, tiles of scores."""

from __future__ import annotations

import ipywidgets as widgets

from helpers.lessons.value_weighting.figures import JANE, Search, Tiles, Triangle
from helpers.widgets.panel import panel


def mixing():
    """Sliders for the scores of three words; their values span a triangle, and the context vector lies in it."""
    sliders = {
        name: widgets.FloatSlider(value=start, min=-6, max=6, step=0.25, description=f"score of {name}")
        for name, start in zip(JANE, (0.0, 0.0, 0.75), strict=True)
    }
    panel(Triangle(), **sliders)


def video_search():
    """Sliders for the temperature and for two features of the query in the video search of lesson 3."""
    panel(
        Search(),
        temperature=widgets.FloatLogSlider(
            value=1.0, base=10, min=-1, max=2, step=0.01, description="temperature", readout_format=".2f"
        ),
        cooking=widgets.FloatSlider(value=2.0, min=0, max=3, step=0.1, description="query: cooking"),
        far=widgets.FloatSlider(value=1.0, min=0, max=3, step=0.1, description="query: far away"),
    )


def tiles():
    """Sliders for the progress through the table of scores and for the two sides of a tile."""
    sides = [4, 6, 8, 12, 24]
    panel(
        Tiles(),
        step=widgets.FloatSlider(value=0.6, min=0, max=1, step=0.1, description="progress", readout_format=".0%"),
        queries=widgets.SelectionSlider(options=sides, value=8, description="queries in a tile"),
        keys=widgets.SelectionSlider(options=sides, value=6, description="keys in a tile"),
    )
