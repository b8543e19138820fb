"""How long each explorer takes to redraw its picture when a slider moves, in processor milliseconds.

python -m bench.redraw_time [TOPIC ...]      (topics are the folders of helpers/lessons, such as softmax)

Every control is moved over some of its values, from first to last. A redraw is the work of the kernel between two
pictures, that is, drawing and the picture's text, but not the browser's part. The limit of about 100 ms is checked as a
ratio of 4 to the redraw of two plain bar charts at the same time, which takes about 25 ms on an idle computer, so that
the result is the same on a busy one.
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

LIMIT = 4  # times the yardstick; 100 ms if that takes 25
MOVES = 3  # per control


def topics() -> list[str]:
    """The topics of all lessons."""
    return sorted(module.name for module in pkgutil.iter_modules(lessons.__path__))


def arguments(topic: str, name: str) -> tuple:
    """The arguments for an explorer, if it needs any."""
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
        ("translation", "cross_attention"): (translator.model(),),
    }.get((topic, name), ())


def corpus_words() -> list[str]:
    return [word for group in corpus.COMPANY.values() for word in group]


def explorers(topics):
    """Yield (topic, name, draw, controls) for each explorer, intercepted at its call of `panel`."""
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
    """Some of a control's values, from first to last."""
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
    """The mean processor time of a redraw, without the first picture. It is the best of three rounds."""
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
    """The processor milliseconds to redraw two bar charts of six bars in an existing figure."""
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
