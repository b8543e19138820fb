"""Explorers of lesson 1."""

from __future__ import annotations

import ipywidgets as widgets

from helpers.lessons.token_embedding import figures as figures
from helpers.widgets.panel import panel

TYPED = (  # suggestions, and on a page the choices
    "jane visits africa in september",
    "jane visits jane",
    "she buys a red apple",
    "jane eats pizza in september",
)


def similarity():
    """Rotate and stretch a next to b = (5, 0); dot product, projection and cosine follow."""
    panel(
        figures.turned,
        angle=widgets.IntSlider(
            value=60, min=0, max=180, step=1, description="angle of a (°)", continuous_update=False
        ),
        length=widgets.FloatSlider(
            value=4.0, min=0.5, max=6.0, step=0.5, description="length of a", continuous_update=False
        ),
    )


def training(history, words):
    """Drag through the snapshots of a training run."""
    panel(
        figures.TrainingStep(history, words),
        snapshot=widgets.IntSlider(
            value=0, min=0, max=len(history.steps) - 1, step=1, description="snapshot", continuous_update=False
        ),
    )


def sentence():
    """Type a sentence; see its tokens, ids and rows in the translator's table."""
    panel(
        figures.SentenceToRows(),
        sentence=widgets.Combobox(value=TYPED[0], options=TYPED, description="sentence", continuous_update=False),
        word=widgets.IntSlider(value=2, min=1, max=figures.ROOM, step=1, description="word", continuous_update=False),
    )
