"""Explorers of lesson 3."""

from __future__ import annotations

import ipywidgets as widgets

from helpers.explore.panel import panel
from helpers.figures import query_key as figures


def search():
    """Turn the query: the hard lookup returns flat steps."""
    panel(figures.search_angle, angle=widgets.IntSlider(value=30, min=0, max=180, step=5, description="angle"))


def four_scores():
    """Cosine, dot, bilinear and additive scores over the plane of keys."""
    panel(
        figures.four_scores,
        angle=widgets.IntSlider(value=75, min=0, max=360, step=15, description="angle of q"),
        length=widgets.FloatSlider(value=1.0, min=0.2, max=2.0, step=0.2, description="length of q"),
    )


def channels():
    """How many channels a table of likes needs."""
    kinds = ["three tastes", "each a different favorite", "no pattern"]
    panel(
        figures.channels,
        kind=widgets.SelectionSlider(options=kinds, value=kinds[0], description="table"),
        d_k=widgets.IntSlider(value=2, min=1, max=12, description="d_k"),
    )


def training():
    """Gradient descent wires three words, step by step."""
    panel(figures.learning_the_wires, step=widgets.IntSlider(value=0, min=0, max=60, step=2, description="step"))


def graph(weights, tokens):
    """Raise the threshold: light edges leave the graph."""

    def draw(threshold):
        return figures.graph_beside_table(weights, tokens, threshold)

    panel(draw, threshold=widgets.FloatSlider(value=0.1, min=0.02, max=0.96, step=0.02, description="threshold"))
