"""Explorers of lesson 10: a beam over a small model, and what is removed before a word is sampled."""

from __future__ import annotations

import ipywidgets as widgets

from helpers.lessons.decoder_block.figures import Beams, NextWord
from helpers.widgets.panel import panel


def beams():
    """A slider for the size of the beam."""
    panel(Beams(), width=widgets.IntSlider(value=1, min=1, max=5, description="beam size"))


def next_word():
    """Sliders for temperature, top-k and top-p on the translator's first word, its source hidden."""
    panel(
        NextWord(),
        temperature=widgets.FloatLogSlider(
            value=1.0, base=10, min=-1, max=1, step=0.05, description="temperature", readout_format=".2f"
        ),
        top_k=widgets.SelectionSlider(options=[1, 2, 3, 5, 10, 20, 50, 194], value=194, description="top-k"),
        top_p=widgets.FloatSlider(value=0.9, min=0.05, max=1.0, step=0.05, description="top-p (1: off)"),
    )
