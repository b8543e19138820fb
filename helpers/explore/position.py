"""Explorers of lesson 2."""

from __future__ import annotations

import ipywidgets as widgets

from helpers.explore.panel import panel
from helpers.figures import position as figures


def waves():
    """Sliders for the width of the table, one of its pairs and one place."""
    width = widgets.SelectionSlider(options=[4, 8, 16, 32, 64], value=16, description="D")
    pair = widgets.IntSlider(value=1, min=0, max=7, description="pair")
    width.observe(lambda change: setattr(pair, "max", change["new"] // 2 - 1), names="value")
    panel(figures.waves, d_model=width, pair=pair, t=widgets.IntSlider(value=10, min=0, max=79, description="t"))


def rotary():
    """Sliders for the places of a query and a key and for the pair that is drawn."""
    panel(
        figures.rotary,
        query_at=widgets.IntSlider(value=5, min=0, max=20, description="query at"),
        key_at=widgets.IntSlider(value=6, min=0, max=20, description="key at"),
        pair=widgets.IntSlider(value=0, min=0, max=7, description="pair"),
    )
