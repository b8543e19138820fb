"""Explorers of lesson 8: what heads cost, and what the translator's heads attend to."""

from helpers.lessons.multi_head.figures import SENTENCES, Budget, Heads
from helpers.widgets.controls import choice, whole
from helpers.widgets.panel import panel


def budget():
    heads, tokens = [2**i for i in range(10)], [2**i for i in range(4, 14)]
    panel(Budget(), heads=choice("heads", heads, 8), tokens=choice("tokens", tokens, 512))


def heads():
    # The rows show the words; a full sentence next to its slider would run into the next one.
    sentences = [(str(number), sentence) for number, sentence in enumerate(SENTENCES, 1)]
    sentence, positions = choice("sentence", sentences), choice("positions", [("with", True), ("without", False)])
    place = {"block": whole("block", 1, 0, 1), "head": whole("head", 0, 0, 3)}
    panel(Heads(), sentence=sentence, **place, positions=positions)
