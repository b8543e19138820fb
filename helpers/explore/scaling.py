"""Explorers of lesson 4: temperature on one word's scores, and the divisor against the width."""

from __future__ import annotations

import math

import ipywidgets as widgets
import torch

from helpers.explore.panel import panel
from helpers.figures.scaling import effective_tokens, largest_slope, random_scores
from helpers.figures.style import BLUE, ORANGE, Picture, new_figure

WIDTHS = (1, 4, 16, 64, 256, 1024)


def draw_temperature(scores: torch.Tensor, tokens: list[str], temperature: float) -> Picture:
    """Weights softmax(scores / temperature) of one query, scores (T,), with entropy and effective tokens."""
    weights = torch.softmax(scores / temperature, dim=0)
    entropy = float(torch.special.entr(weights).sum())
    figure, ax = new_figure(6.4, 3.0)
    bars = ax.bar(tokens, weights.tolist(), color=BLUE)
    ax.bar_label(bars, [f"{w:.3f}" for w in weights.tolist()], fontsize=10)
    summary = f"entropy {entropy:.2f} nats, {math.exp(entropy):.1f} tokens in effect"
    ax.set(ylim=(0, 1.12), ylabel="weight", title=f"temperature {temperature:.2f}: {summary}")
    shares = ", ".join(f"{t} {w:.3f}" for t, w in zip(tokens, weights.tolist(), strict=True))
    return Picture(figure, f"Attention weights at temperature {temperature:.2f}: {shares}; {summary}.")


def temperature(scores: torch.Tensor, tokens: list[str], start: float = 1.0):
    """A slider for the temperature that divides the scores (T,) of one query."""
    slider = widgets.FloatLogSlider(
        value=start, base=10, min=-1, max=3, step=0.01, description="temperature", readout_format=".2f"
    )
    panel(lambda t: draw_temperature(scores.detach(), tokens, t), t=slider)


def draw_width_and_divisor(d_k: int, divisor: float) -> Picture:
    """One random query's weights over six keys, and the largest slope of softmax against every divisor."""
    scores = random_scores(d_k, 300, 6)
    weights = torch.softmax(scores[0] / divisor, dim=0)
    figure, (left, right) = new_figure(9.0, 3.3, 1, 2, width_ratios=(2, 3))
    left.bar([f"k{i}" for i in range(6)], weights.tolist(), color=BLUE)
    left.set(ylim=(0, 1.05), ylabel="weight", title=f"one query: {float(effective_tokens(weights)):.1f} keys in effect")
    divisors = torch.logspace(-1, 3, 81, dtype=torch.float64)
    curve = largest_slope(scores / divisors[:, None, None]).median(dim=-1).values
    here = float(largest_slope(scores / divisor).median())
    right.plot(divisors, curve, color=BLUE)
    right.axvline(math.sqrt(d_k), color="gray", ls=":", label=f"√$d_k$ = {math.sqrt(d_k):g}")
    right.plot([divisor], [here], "o", ms=9, color=ORANGE, label=f"your divisor {divisor:.3g}: slope {here:.3g}")
    right.set(xscale="log", ylim=(-0.005, 0.26), xlabel="divisor", ylabel="largest slope (median)")
    right.set_title(f"scores of width {d_k} spread by {float(scores.std()) / divisor:.2f}")
    right.legend(frameon=True, framealpha=0.9, fontsize=9, loc="lower right")
    alt = (
        f"Width {d_k}, scores divided by {divisor:.3g}, so that their standard deviation is "
        f"{float(scores.std()) / divisor:.2f}. One query's weights: {', '.join(f'{w:.2f}' for w in weights.tolist())}. "
        f"The median largest slope of softmax is {here:.3g}; at the square root of the width it would be "
        f"{float(largest_slope(scores / math.sqrt(d_k)).median()):.3g}."
    )
    return Picture(figure, alt)


def width_and_divisor(d_k: int = 64, divisor: float = 1.0):
    """Sliders for the width of queries and keys and for the number that divides their scores."""
    width = widgets.SelectionSlider(options=WIDTHS, value=d_k, description="width d_k")
    by = widgets.FloatLogSlider(
        value=divisor, base=10, min=-1, max=3, step=0.05, description="divisor", readout_format=".2f"
    )
    panel(lambda d_k, divisor: draw_width_and_divisor(d_k, divisor), d_k=width, divisor=by)
