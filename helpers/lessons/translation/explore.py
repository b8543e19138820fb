"""Explorers of lesson 11: the learning rate, a smoothed target, and the cross-attention of a trained model."""

from __future__ import annotations

import ipywidgets as widgets

from helpers.lessons.translation.figures import Looks, Rates, Smoothed
from helpers.widgets.panel import panel


def rates():
    """Sliders for the warm-up and the width of the paper's learning rate."""
    panel(
        Rates(),
        warmup=widgets.SelectionSlider(options=[20, 40, 60, 100, 200, 400, 800], value=60, description="warm-up"),
        d_model=widgets.SelectionSlider(options=[32, 64, 128, 256, 512], value=64, description="width"),
    )


def smoothed_target():
    """A slider for the smoothing."""
    panel(Smoothed(), smoothing=widgets.FloatSlider(value=0.1, min=0.0, max=0.5, step=0.01, description="smoothing"))


def looks(model):
    """A slider over sentences that `model` has not seen, and a box for one of one's own, with its cross-attention."""
    shown = Looks(model)
    panel(
        shown,
        sentence=widgets.IntSlider(value=0, min=0, max=len(shown.pairs) - 1, description="sentence"),
        own=widgets.Text(placeholder="a sentence, then Enter", description="your own", continuous_update=False),
    )
