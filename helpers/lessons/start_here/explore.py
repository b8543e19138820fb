"""Explorers of lesson 0."""

from __future__ import annotations

import ipywidgets as widgets

from helpers.lessons.start_here import figures as figures
from helpers.widgets.panel import panel

# Shapes that later lessons add, multiply or mask with one another.
SHAPES = {
    "()": (),
    "(4,)": (4,),
    "(3,)": (3,),
    "(3, 1)": (3, 1),
    "(1, 4)": (1, 4),
    "(3, 4)": (3, 4),
    "(2, 3, 4)": (2, 3, 4),
    "(2, 1, 4)": (2, 1, 4),
    "(2, 4)": (2, 4),
    "(2, 1, 1, 4)": (2, 1, 1, 4),
    "(2, 5, 3, 4)": (2, 5, 3, 4),
}


def broadcasting() -> None:
    """Choose two shapes; the picture sets them flush right and says what their sum is."""
    panel(
        figures.broadcast_picture,
        a=widgets.SelectionSlider(options=list(SHAPES.items()), value=(3, 1), description="shape of a"),
        b=widgets.SelectionSlider(options=list(SHAPES.items()), value=(4,), description="shape of b"),
    )


def memory_order() -> None:
    """Choose a shape; the picture sets transpose beside view."""
    panel(
        figures.MemoryOrder(),
        tokens=widgets.IntSlider(value=4, min=1, max=4, description="tokens"),
        width=widgets.IntSlider(value=3, min=1, max=4, description="width"),
    )
