"""Explorers of lesson 7: a mixture of three values, and a search engine that returns a blend."""

from __future__ import annotations

import ipywidgets as widgets
import torch

from helpers.explore.panel import panel
from helpers.figures.value_weighting import JANE, search_shares, triangle


def mixing():
    """Sliders for the scores of three words; their values span a triangle, and the context vector lies in it."""
    sliders = {
        name: widgets.FloatSlider(value=start, min=-6, max=6, step=0.25, description=f"score of {name}")
        for name, start in zip(JANE, (0.0, 0.0, 0.75), strict=True)
    }
    panel(lambda **scores: triangle(torch.tensor([scores[name] for name in JANE])), **sliders)


def video_search():
    """Sliders for the temperature and for two features of the query in the video search of lesson 3."""
    temperature = widgets.FloatLogSlider(
        value=1.0, base=10, min=-1, max=2, step=0.02, description="temperature", readout_format=".2f"
    )
    cooking = widgets.FloatSlider(value=2.0, min=0, max=3, step=0.1, description="query: cooking")
    far = widgets.FloatSlider(value=1.0, min=0, max=3, step=0.1, description="query: far away")
    panel(
        lambda temperature, cooking, far: search_shares(torch.tensor([cooking, 0.0, far]), temperature),
        temperature=temperature,
        cooking=cooking,
        far=far,
    )
