"""Explorers of lesson 0."""

from helpers.lessons.start_here import figures as figures
from helpers.widgets.panel import choice, panel, whole

# Shapes that later lessons add, multiply or mask with one another.
SHAPES = ((), (4,), (3,), (3, 1), (1, 4), (3, 4), (2, 3, 4), (2, 1, 4), (2, 4), (2, 1, 1, 4), (2, 5, 3, 4))


def broadcasting() -> None:
    shapes = [(str(shape), shape) for shape in SHAPES]
    panel(figures.broadcast_picture, a=choice("shape of a", shapes, (3, 1)), b=choice("shape of b", shapes, (4,)))


def memory_order() -> None:
    panel(figures.memory_order(), tokens=whole("tokens", 4, 1, 4), width=whole("width", 3, 1, 4))
