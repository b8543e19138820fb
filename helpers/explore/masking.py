"""Explorers of lesson 5."""

from __future__ import annotations

import ipywidgets as widgets

from helpers.explore.panel import panel
from helpers.figures import masking as figures


def masks():
    """Sliders for the number of queries, of cached keys and of padding."""
    panel(
        figures.one_mask,
        new=widgets.IntSlider(value=3, min=1, max=5, description="new words"),
        cached=widgets.IntSlider(value=2, min=0, max=3, description="cached"),
        pads=widgets.IntSlider(value=1, min=0, max=8, description="padding"),
    )


def fill():
    """Sliders for a large negative number and for the scores of visible and blocked keys."""
    panel(
        figures.fill,
        power=widgets.IntSlider(value=4, min=1, max=9, description="number: −10 to the"),
        visible=widgets.IntSlider(value=0, min=-10000, max=10000, step=1000, description="visible scores"),
        blocked=widgets.IntSlider(value=2000, min=-10000, max=10000, step=1000, description="blocked scores"),
    )
