"""Explorers of lesson 3."""

from helpers.lessons.query_key import figures as figures
from helpers.widgets.controls import choice, decimal, whole
from helpers.widgets.panel import panel


def search():
    panel(figures.Search(), angle=whole("angle", 30, 0, 180, step=5))


def arcs(scores, tokens):
    panel(figures.Arcs(scores, tokens), word=choice("word", list(tokens), tokens[1]))


def four_scores():
    angle, length = whole("angle of q", 75, 0, 360, step=15), decimal("length of q", 1.0, 0.2, 2.0, 0.2)
    panel(figures.FourScores(), angle=angle, length=length)


def channels():
    kinds = list(figures.Channels.KINDS)
    panel(figures.Channels(), kind=choice("table", kinds, kinds[0]), d_k=whole("channels", 2, 1, 12))


def circle():
    panel(figures.Circle(), keys=whole("keys", 6, 2, 50), wanted=whole("wanted key", 1, 0, 49))


def training():
    panel(figures.Training(), step=whole("step", 0, 0, 60, step=2))


def graph(weights, tokens):
    panel(figures.GraphBesideTable(weights, tokens), threshold=decimal("threshold", 0.1, 0.02, 0.96, 0.02))
