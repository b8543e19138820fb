"""What one move of a slider costs in each explorer: processor milliseconds a redraw, and against the limit of 100.

python -m bench.redraw_time [TOPIC ...]      (topics are the folders of helpers/lessons, such as softmax)

Every control is moved over some of its values, first to last. A redraw is what the kernel does between two pictures:
drawing, and the text of the picture; the browser's part is not in it. The ratio is to the redraw of two plain bar
charts in the same minute, which takes about 25 ms on a machine that does nothing else: so it means the same on a busy
one, and 4 is the limit.
"""

import importlib
import inspect
import pkgutil
import statistics
import sys
import time
from unittest import mock

import ipywidgets as widgets
import torch

from bench.written import keep
from helpers import corpus, lessons, translator
from helpers.corpus.source import Source
from helpers.drawing.style import Picture, new_figure
from helpers.lessons.language_model.stand_ins import GPT
from helpers.lessons.token_embedding import word2vec
from helpers.widgets import panel as panels

LIMIT = 4  # of the yardstick: 100 ms where that takes 25
MOVES = 3  # of each control


def topics() -> list[str]:
    """The lessons that have explorers."""
    return sorted(room.name for room in pkgutil.iter_modules(lessons.__path__))


def arguments(topic: str, name: str) -> tuple:
    """What an explorer is called with, for those that need something."""
    words = ["jane", "visits", "africa", "in", "september", "."]
    generator = torch.Generator().manual_seed(0)
    weights = torch.softmax(torch.randn(6, 6, generator=generator), dim=-1)
    if (topic, name) == ("token_embedding", "training"):
        words = corpus_words()
        centers = torch.randn(9, len(words), 16, generator=generator, dtype=torch.float64)
        steps = [125 * i for i in range(9)]
        return word2vec.History(steps, centers, torch.zeros_like(centers)), words
    if topic == "language_model":
        symbols = Source().symbols
        model = GPT(len(symbols), 64, 64, 2, 2).eval()
        return (model,) if name == "next_token" else (model, symbols)
    return {
        ("query_key", "arcs"): (weights * 20, words),
        ("query_key", "graph"): (torch.tensor([[0.04, 0.94, 0.02], [0.10, 0.04, 0.86], [0.14, 0.76, 0.10]]), words[:3]),
        ("masking", "cells"): (words[:3], torch.tensor([[2.0, 1, 0], [0, 3, 1], [1, 0, 2]])),
        ("scaling", "temperature"): (weights[0] * 10, words),
        ("softmax", "temperature"): (weights[0] * 10, words),
        ("translation", "looks"): (translator.machine(),),
    }.get((topic, name), ())


def corpus_words() -> list[str]:
    return [word for group in corpus.COMPANY.values() for word in group]


def explorers(topics):
    """(topic, name, draw, controls) of each explorer, caught where it would be shown."""
    for topic in topics:
        module = importlib.import_module(f"helpers.lessons.{topic}.explore")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ != module.__name__ or "panel" not in function.__code__.co_names:
                continue
            caught = []

            def catch(draw, across=0, caught=caught, **controls):
                caught.append((draw, controls))

            with mock.patch.object(module, "panel", catch):
                function(*arguments(topic, name))
            for draw, controls in caught:
                yield topic, name, draw, {key: panels._ready(control) for key, control in controls.items()}


def values_of(control) -> list:
    """Some of the values that a control can take, from its first to its last."""
    if hasattr(control, "options"):
        options = [
            option[1] if isinstance(option, tuple) and len(option) == 2 else option for option in control.options
        ]
        return options[:: max(1, len(options) // MOVES)]
    if isinstance(control, widgets.ToggleButton):
        return [False, True]
    if isinstance(control, widgets.Text):
        return ["jane", "jane visits", "the red cat sleeps", "jane visits pizza in september", control.value]
    low, high = control.min, control.max
    if hasattr(control, "base"):
        return [control.base ** (low + (high - low) * i / MOVES) for i in range(MOVES + 1)]
    points = [low + (high - low) * i / MOVES for i in range(MOVES + 1)]
    return [round(point) for point in points] if isinstance(low, int) else points


def milliseconds(draw, controls) -> float:
    """The mean processor time of a redraw, the first picture left out: the best of three times, for busy machines."""
    values = {name: control.value for name, control in controls.items()}
    show = panels.Shown(draw)
    show(values)
    moves = [{**values, name: value} for name, control in controls.items() for value in values_of(control)]
    rounds = []
    for _ in range(3):
        start = time.process_time()
        for move in moves:
            show(move)
        rounds.append(1000 * (time.process_time() - start) / len(moves))
    return min(rounds)


def yardstick() -> float:
    """The redraw of two bar charts of six bars whose figure is kept, in processor milliseconds."""
    figure, axes = new_figure(8.6, 3.3, 1, 2)
    bars = [ax.bar(range(6), [0.5] * 6) for ax in axes]

    def draw(height):
        for bar in (bar for group in bars for bar in group):
            bar.set_height(height)
        return Picture(figure, "two bar charts")

    return milliseconds(draw, {"height": widgets.FloatSlider(value=0.5, min=0, max=1)})


def main(chosen: list[str]) -> int:
    ratios, seconds = {}, {}
    for topic, name, draw, controls in explorers(chosen or topics()):
        plain, spent = yardstick(), milliseconds(draw, controls)
        ratios[f"{topic}.{name}"], seconds[f"{topic}.{name}"] = round(spent / plain, 2), spent
        print(f"{topic + '.' + name:<36}{spent:6.0f} ms   {spent / plain:5.1f} of a plain redraw", flush=True)
    if not chosen:
        slowest = max(seconds, key=seconds.get)
        says = (
            f"When you move a slider, the picture is drawn again in {statistics.median(seconds.values()):.0f} ms "
            f"(median of {len(ratios)} explorers), at most {seconds[slowest]:.0f} ms (`{slowest}`)."
        )
        keep("redraw_time", says, {"over a plain redraw": ratios})
    return int(max(ratios.values()) > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
