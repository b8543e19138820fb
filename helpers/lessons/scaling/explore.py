"""Explorers of lesson 4: temperature on one word's scores; width, start and divisor against what training can move."""

from __future__ import annotations

import functools
import math

import ipywidgets as widgets
import torch

from helpers.drawing.style import BLUE, GREEN, SMALLEST, Picture, new_figure
from helpers.lessons.scaling.figures import (
    STARTS,
    effective_tokens,
    largest_slope,
    queries_and_keys,
    query_hold,
    rotated,
)
from helpers.widgets.panel import panel

WIDTHS = (1, 4, 16, 64, 256, 1024)
DIVISORS = torch.logspace(-1, 3.5, 46, dtype=torch.float64)
QUERIES, KEYS = 4000, 6  # so many that the medians of all widths lie within two percent of each other


class Temperature:
    """Weights softmax(scores / temperature) of one query, scores (T,), with words in effect."""

    def __init__(self, scores: torch.Tensor, tokens: list[str]):
        self.scores, self.tokens = scores.detach(), tokens
        self.figure, ax = new_figure(6.4, 3.0)
        self.bars = ax.bar(tokens, [0.0] * len(tokens), color=BLUE)
        self.labels = [ax.text(i, 0, "0.000", ha="center", va="bottom", fontsize=10) for i in range(len(tokens))]
        ax.set(ylim=(0, 1.12), ylabel="weight")
        self.title = ax.set_title("temperature 1000.00: 0.0 words in effect")

    def __call__(self, t: float) -> Picture:
        weights = torch.softmax(self.scores / t, dim=0)
        for bar, label, weight in zip(self.bars, self.labels, weights.tolist(), strict=True):
            bar.set_height(weight)
            label.set_y(weight + 0.01)
            label.set_text(f"{weight:.3f}")
        summary = f"{float(effective_tokens(weights)):.1f} words in effect"
        self.title.set_text(f"temperature {t:.2f}: {summary}")
        shares = ", ".join(f"{name} {w:.3f}" for name, w in zip(self.tokens, weights.tolist(), strict=True))
        return Picture(
            self.figure,
            f"Attention weights at temperature {t:.2f}: {shares}; {summary}.",
            caption="The same six scores, divided by the temperature before the softmax.",
        )


def temperature(scores: torch.Tensor, tokens: list[str], start: float = 1.0):
    """A slider for the temperature that divides the scores (T,) of one query."""
    slider = widgets.FloatLogSlider(
        value=start, base=10, min=-1, max=2, step=0.01, description="temperature", readout_format=".2f"
    )
    panel(Temperature(scores, tokens), t=slider)


@functools.lru_cache(maxsize=32)
def curves(d_k: int, start: str):
    """(scores (QUERIES, KEYS), medians of |∂p/∂q| and of the largest slope of softmax over DIVISORS), float64."""
    q, keys = rotated(d_k, QUERIES, KEYS) if start == "variance 1" else queries_and_keys(d_k, QUERIES, KEYS, start)
    scores = torch.einsum("nd,nkd->nk", q, keys)
    hold = query_hold(scores, keys, DIVISORS[:, None, None]).median(dim=-1).values
    slope = largest_slope(scores / DIVISORS[:, None, None]).median(dim=-1).values
    return scores, hold, slope


def best_divisor(d_k: int, start: str = "variance 1") -> float:
    """The divisor with which a typical query has the best hold on its weights."""
    return float(DIVISORS[curves(d_k, start)[1].argmax()])


class WidthAndDivisor:
    """One random query's weights over six keys; against the divisor, the slope of softmax and the size of ∂p/∂q."""

    def __init__(self):
        self.figure, (left, right) = new_figure(8.6, 3.5, 1, 2, width_ratios=(2, 3))
        self.bars = left.bar([f"k{i}" for i in range(6)], [0.0] * 6, color=BLUE)
        left.set(ylim=(0, 1.05), ylabel="weight")
        self.left_title = left.set_title("one query: 0.0 keys in effect")
        (self.hold,) = right.plot(DIVISORS, DIVISORS, color=BLUE, label="size of ∂p/∂q")
        (self.slope,) = right.plot(DIVISORS, DIVISORS, color=GREEN, ls="--", label="slope of softmax")
        (self.root,) = right.plot([1, 1], [-0.03, 1.06], color="gray", ls=":", label="root of the width")
        self.here = [right.plot([1], [0], "o", ms=9, mec="black", color=color)[0] for color in (BLUE, GREEN)]
        right.plot([], [], "o", ms=9, mec="black", color="white", label="your divisor")
        right.set(xscale="log", xlim=(0.08, 4000), ylim=(-0.03, 1.4), yticks=[0, 0.5, 1])
        right.set(xlabel="divisor", ylabel="share of the best")
        right.set_xticks([0.1, 1, 10, 100, 1000], ["0.1", "1", "10", "100", "1000"])
        right.minorticks_off()
        right.legend(frameon=False, fontsize=SMALLEST, loc="upper center", ncols=2)
        self.right_title = right.set_title("spread 1000.00, ∂p/∂q at 100 % of its best")

    def __call__(self, d_k: int, start: str, divisor: float) -> Picture:
        scores, hold, slope = curves(d_k, start)
        weights = torch.softmax(scores[0] / divisor, dim=0)
        index = int((DIVISORS.log() - math.log(divisor)).abs().argmin())
        shares = [curve / curve.max() for curve in (hold, slope)]
        for bar, weight in zip(self.bars, weights.tolist(), strict=True):
            bar.set_height(weight)
        for line, share in zip((self.hold, self.slope), shares, strict=True):
            line.set_ydata(share)
        self.root.set_xdata([math.sqrt(d_k)] * 2)
        at = [float(share[index]) for share in shares]
        for dot, share in zip(self.here, at, strict=True):
            dot.set_data([divisor], [share])
        spread = float(scores.std()) / divisor
        self.left_title.set_text(f"one query: {float(effective_tokens(weights)):.1f} keys in effect")
        self.right_title.set_text(f"spread {spread:.2f}, ∂p/∂q at {100 * at[0]:.0f} % of its best")
        alt = (
            f"Width {d_k}, start {start}, scores divided by {divisor:.3g}, so that their standard deviation is "
            f"{spread:.2f}. One query's weights: {', '.join(f'{w:.2f}' for w in weights.tolist())}. The size of ∂p/∂q "
            f"is {100 * at[0]:.0f} % of its best, which a divisor of {best_divisor(d_k, start):.3g} gives; the slope "
            f"of softmax is {100 * at[1]:.0f} % of its best. The square root of the width is {math.sqrt(d_k):.3g}."
        )
        return Picture(
            self.figure, alt, caption="Left: one query's weights. Right: a typical query, over all divisors."
        )


def width_and_divisor(d_k: int = 64, divisor: float = 1.0):
    """Sliders for the width, for how queries and keys start, and for the number that divides their scores."""
    width = widgets.SelectionSlider(options=WIDTHS, value=d_k, description="width")
    begin = widgets.SelectionSlider(options=STARTS, value=STARTS[0], description="start")
    by = widgets.FloatLogSlider(
        value=divisor, base=10, min=-1, max=3.5, step=0.05, description="divisor", readout_format=".2f"
    )
    panel(WidthAndDivisor(), d_k=width, start=begin, divisor=by)
