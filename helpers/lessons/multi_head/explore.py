"""Explorers of lesson 8: what heads cost, and what the translator's heads attend to."""

from __future__ import annotations

import ipywidgets as widgets

from helpers.lessons.multi_head.figures import Budget, Heads, known_sentences
from helpers.widgets.panel import panel


def budget():
    """Sliders for the number of heads and of tokens of a layer of width 512."""
    panel(
        Budget(),
        heads=widgets.SelectionSlider(options=[2**i for i in range(10)], value=8, description="heads"),
        tokens=widgets.SelectionSlider(options=[2**i for i in range(4, 14)], value=512, description="tokens"),
    )


def heads():
    """Sliders for sentence, block and head of the translator's encoder, and a switch for the position vectors."""
    # The rows show the words; a full sentence next to its slider would run into the next one.
    sentences = [(str(number), sentence) for number, sentence in enumerate(known_sentences(), 1)]
    panel(
        Heads(),
        sentence=widgets.SelectionSlider(options=sentences, description="sentence"),
        block=widgets.IntSlider(value=1, min=0, max=1, description="block"),
        head=widgets.IntSlider(value=0, min=0, max=3, description="head"),
        positions=widgets.SelectionSlider(options=[("with", True), ("without", False)], description="positions"),
    )
