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


def draw_temperature(scores: torch.Tensor, tokens: list[str], temperature: float) -> Picture:
    """softmax(scores / temperature) of scores (T,), beside the entropy at every temperature."""
    weights = torch.softmax(scores / temperature, dim=0)
    here = float(_entropy(weights))
    figure, (left, right) = new_figure(9.6, 3.3, 1, 2)
    bars = left.bar(tokens, weights.tolist(), color=BLUE)
    left.bar_label(bars, [f"{w:.3f}" for w in weights.tolist()], fontsize=9)
    left.set(ylim=(0, 1.12), ylabel="weight", title=f"temperature {temperature:.2f}")
    temperatures = torch.logspace(-1, 3, 121)
    right.plot(temperatures, _entropy(torch.softmax(scores / temperatures[:, None], dim=-1)), color=BLUE)
    right.axhline(math.log(len(tokens)), color="gray", ls=":", label=f"ln {len(tokens)} = {math.log(len(tokens)):.2f}")
    right.plot([temperature], [here], "o", ms=9, color=ORANGE, label=f"H = {here:.2f}, {math.exp(here):.1f} in effect")
    right.set(xscale="log", xlabel="temperature", ylabel="entropy (nats)", ylim=(-0.08, math.log(len(tokens)) + 0.2))
    right.legend(frameon=False, loc="center right")
    shares = ", ".join(f"{t} {w:.3f}" for t, w in zip(tokens, weights.tolist(), strict=True))
    most = math.log(len(tokens))
    alt = f"Weights at temperature {temperature:.2f}: {shares}. Entropy {here:.2f} nats, of at most {most:.2f}."
    return Picture(figure, alt)


def temperature(scores: torch.Tensor, tokens: list[str], start: float = math.sqrt(24)):
    """A slider for the temperature that divides the scores (T,) of one query."""
    slider = widgets.FloatLogSlider(
        value=start, base=10, min=-1, max=3, step=0.01, description="temperature", readout_format=".2f"
    )
    panel(lambda temperature: draw_temperature(scores.detach(), tokens, temperature), temperature=slider)


def draw_stream(block: int, seen: int, tokens: int = 12) -> Picture:
    """Twelve random scores and values, seen in blocks of `block`; `seen` blocks so far."""
    generator = torch.Generator().manual_seed(6)
    scores = torch.randn(tokens, generator=generator, dtype=torch.float64) * 3
    values = torch.randn(tokens, generator=generator, dtype=torch.float64)
    return streamed(scores, values, block, min(seen, math.ceil(tokens / block)))


def stream(block: int = 3, seen: int = 2):
    """Sliders for the size of a block and for how many blocks have been seen."""
    size = widgets.SelectionSlider(options=(1, 2, 3, 4, 6, 12), value=block, description="block size")
    so_far = widgets.IntSlider(value=seen, min=1, max=12, description="blocks seen")
    panel(draw_stream, block=size, seen=so_far)
