"""Explorers of lesson 11: the learning rate, a smoothed target, and the cross-attention of a trained model."""

from helpers.lessons.translation.figures import Looks, Rates, Smoothed
from helpers.widgets.controls import choice, decimal, typed, whole
from helpers.widgets.panel import panel


def rates():
    warmup = choice("warm-up", [20, 40, 60, 100, 200, 400, 800], 60)
    panel(Rates(), warmup=warmup, d_model=choice("width", [32, 64, 128, 256, 512], 64))


def smoothed_target():
    panel(Smoothed(), smoothing=decimal("smoothing", 0.1, 0.0, 0.5, 0.01))


def looks(model):
    """A slider over sentences that `model` has not seen, and a box for one of one's own, with its cross-attention."""
    shown = Looks(model)
    panel(shown, sentence=whole("sentence", 0, 0, len(shown.pairs) - 1), own=typed("a sentence"))
