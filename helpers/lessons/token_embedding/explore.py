"""Explorers of lesson 1."""

import ipywidgets as widgets

from helpers.lessons.token_embedding import figures as figures
from helpers.widgets.controls import decimal, whole
from helpers.widgets.panel import panel

TYPED = (  # suggestions, and on a page the choices
    "jane visits africa in september",
    "jane visits jane",
    "she buys a red apple",
    "jane eats pizza in september",
)


def similarity():
    angle = whole("angle of a (°)", 60, 0, 180, continuous_update=False)
    length = decimal("length of a", 4.0, 0.5, 6.0, 0.5, continuous_update=False)
    panel(figures.turned, angle=angle, length=length)


def training(history, words):
    snapshot = whole("snapshot", 0, 0, len(history.steps) - 1, continuous_update=False)
    panel(figures.TrainingStep(history, words), snapshot=snapshot)


def sentence():
    sentence = widgets.Combobox(value=TYPED[0], options=TYPED, description="sentence", continuous_update=False)
    word = whole("word", 2, 1, figures.ROOM, continuous_update=False)
    panel(figures.sentence_to_rows, sentence=sentence, word=word)
