"""Explorers of lesson 6: temperature with its entropy, and a softmax that streams."""

from __future__ import annotations

import math

import ipywidgets as widgets
import torch

from helpers.explore.panel import panel
from helpers.figures.softmax import streamed
from helpers.figures.style import BLUE, ORANGE, Picture, new_figure


def _entropy(weights: torch.Tensor) -> torch.Tensor:
    return torch.special.entr(weights).sum(dim=-1)


class Temperature:
    """softmax(scores / temperature) of scores (T,), beside the entropy at every temperature."""

    def __init__(self, scores: torch.Tensor, tokens: list[str]):
        self.scores, self.tokens = scores, tokens
        self.most = math.log(len(tokens))
        self.figure, (left, right) = new_figure(8.6, 3.3, 1, 2)
        self.bars = left.bar(tokens, [0.0] * len(tokens), color=BLUE)
        self.labels = [left.text(i, 0, "", ha="center", va="bottom", fontsize=9) for i in range(len(tokens))]
        left.set(ylim=(0, 1.12), ylabel="weight")
        self.title = left.set_title("temperature")
        temperatures = torch.logspace(-1, 3, 121)
        right.plot(temperatures, _entropy(torch.softmax(scores / temperatures[:, None], dim=-1)), color=BLUE)
        right.axhline(self.most, color="gray", ls=":")
        right.text(0.12, self.most + 0.03, f"ln {len(tokens)} = {self.most:.2f}", fontsize=9, va="bottom")
        (self.dot,) = right.plot([1.0], [0.0], "o", ms=9, color=ORANGE)
        self.here = right.set_title("entropy")
        right.set(xscale="log", xlabel="temperature", ylabel="entropy (nats)", ylim=(-0.08, self.most + 0.3))
        right.minorticks_off()

    def __call__(self, temperature: float) -> Picture:
        """The picture at one temperature."""
        weights = torch.softmax(self.scores / temperature, dim=0)
        here = float(_entropy(weights))
        for bar, label, weight in zip(self.bars, self.labels, weights.tolist(), strict=True):
            bar.set_height(weight)
            label.set(y=weight + 0.01, text=f"{weight:.3f}")
        self.dot.set_data([temperature], [here])
        self.title.set_text(f"temperature {temperature:.2f}")
        self.here.set_text(f"entropy {here:.2f}: {math.exp(here):.1f} tokens in effect")
        shares = ", ".join(f"{t} {w:.3f}" for t, w in zip(self.tokens, weights.tolist(), strict=True))
        alt = (
            f"Weights at temperature {temperature:.2f}: {shares}. Entropy {here:.2f} nats, of at most {self.most:.2f}."
        )
        return Picture(self.figure, alt)


def temperature(scores: torch.Tensor, tokens: list[str], start: float = math.sqrt(24)):
    """A slider for the temperature that divides the scores (T,) of one query."""
    slider = widgets.FloatLogSlider(
        value=start, base=10, min=-1, max=3, step=0.01, description="temperature", readout_format=".2f"
    )
    panel(Temperature(scores.detach(), tokens), temperature=slider)


def draw_stream(block: int, seen: int, tokens: int = 12) -> Picture:
    """Twelve random scores and values, seen in blocks of `block`; `seen` blocks so far."""
    generator = torch.Generator().manual_seed(6)
    scores = torch.randn(tokens, generator=generator, dtype=torch.float64) * 3
    values = torch.randn(tokens, generator=generator, dtype=torch.float64)
    return streamed(scores, values, block, min(seen, math.ceil(tokens / block)))


def stream(block: int = 3, seen: int = 2):
    """Sliders for the size of a block and for how many blocks have been seen."""
    size = widgets.SelectionSlider(options=(1, 2, 3, 4, 6, 12), value=block, description="block size")
    so_far = widgets.IntSlider(value=seen, min=1, max=math.ceil(12 / block), description="blocks seen")
    size.observe(lambda change: setattr(so_far, "max", math.ceil(12 / change["new"])), names="value")
    panel(draw_stream, block=size, seen=so_far)
