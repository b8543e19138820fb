"""Explorers of lesson 3."""

from __future__ import annotations

import ipywidgets as widgets

from helpers.lessons.query_key import figures as figures
from helpers.widgets.panel import panel


def search():
    """Turn the query: the hard lookup returns flat steps."""
    panel(figures.Search(), angle=widgets.IntSlider(value=30, min=0, max=180, step=5, description="angle"))


def arcs(scores, tokens):
    """Slide along the words of a sentence: arcs from each word to the keys that it finds."""
    panel(
        figures.Arcs(scores, tokens),
        word=widgets.SelectionSlider(options=list(tokens), value=tokens[1], description="word"),
    )


def four_scores():
    """Cosine, dot, bilinear and additive scores over the plane of keys."""
    panel(
        figures.FourScores(),
        angle=widgets.IntSlider(value=75, min=0, max=360, step=15, description="angle of q"),
        length=widgets.FloatSlider(value=1.0, min=0.2, max=2.0, step=0.2, description="length of q"),
    )


def channels():
    """How many channels a table of likes needs."""
    kinds = list(figures.Channels.KINDS)
    panel(
        figures.Channels(),
        kind=widgets.SelectionSlider(options=kinds, value=kinds[0], description="table"),
        d_k=widgets.IntSlider(value=2, min=1, max=12, description="channels"),
    )


def circle():
    """Keys on a circle: each can win, and the margin shrinks as keys are added."""
    panel(
        figures.Circle(),
        keys=widgets.IntSlider(value=6, min=2, max=50, description="keys"),
        wanted=widgets.IntSlider(value=1, min=0, max=49, description="wanted key"),
    )


def training():
    """Gradient descent wires three words, step by step."""
    panel(figures.Training(), step=widgets.IntSlider(value=0, min=0, max=60, step=2, description="step"))


def graph(weights, tokens):
    """Raise the threshold: light edges leave the graph."""
    slider = widgets.FloatSlider(value=0.1, min=0.02, max=0.96, step=0.02, description="threshold")
    panel(figures.GraphBesideTable(weights, tokens), threshold=slider)
