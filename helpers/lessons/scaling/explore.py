"""Explorers of lesson 4: the temperature for the scores of one word; and width, initialization and divisor."""

import functools
import math

import torch

from helpers.drawing.charts import MovingBars, name_ticks, named
from helpers.drawing.colors import BLUE, GREEN
from helpers.drawing.style import SMALLEST, Picture, new_figure
from helpers.lessons.scaling import figures
from helpers.lessons.scaling.figures import effective_tokens
from helpers.widgets.panel import choice, keeping, panel, powers

WIDTHS = (1, 4, 16, 64, 256, 1024)
DIVISORS = torch.logspace(-1, 3.5, 46, dtype=torch.float64)
QUERIES, KEYS = 4000, 6  # enough that the medians of all widths agree within 2%


def temperature(scores: torch.Tensor, tokens: list[str], start: float = 1.0):
    """A slider for the temperature, which divides the scores (T,) of a query, and the effective number of words."""
    figure, ax = new_figure(6.4, 3.0)
    bars = MovingBars(ax, tokens, "0.000", ylim=(0, 1.12), ylabel="weight")
    title = ax.set_title("temperature 1000.00: effectively 0.0 words")

    def draw(t: float) -> Picture:
        weights = torch.softmax(scores.detach() / t, dim=0)
        bars.show(weights.tolist(), ".3f")
        summary = f"effectively {float(effective_tokens(weights)):.1f} words"
        title.set_text(f"temperature {t:.2f}: {summary}")
        alt = f"Attention weights at temperature {t:.2f}: {named(tokens, weights, '.3f')}; {summary}."
        return Picture(figure, alt, "The same six scores, divided by the temperature before the softmax.")

    panel(keeping(figure, draw), t=powers("temperature", start, -1, 2, 0.01))


@functools.lru_cache(maxsize=32)
def curves(d_k: int, init: str):
    """Scores (QUERIES, KEYS), and for each of DIVISORS the median of |∂p/∂q| and of softmax's largest derivative."""
    sizes = d_k, QUERIES, KEYS
    q, keys = figures.rotated(*sizes) if init == "variance 1" else figures.queries_and_keys(*sizes, init)
    scores = torch.einsum("nd,nkd->nk", q, keys)
    gradient = figures.query_gradient(scores, keys, DIVISORS[:, None, None]).median(dim=-1).values
    derivative = figures.largest_derivative(scores / DIVISORS[:, None, None]).median(dim=-1).values
    return scores, gradient, derivative


def best_divisor(d_k: int, init: str = "variance 1") -> float:
    """The divisor that gives a typical query the largest gradient."""
    return float(DIVISORS[curves(d_k, init)[1].argmax()])


def width_and_divisor():
    figure, (left, right) = new_figure(8.6, 3.5, 1, 2, width_ratios=(2, 3))
    bars = MovingBars(left, [f"k{i}" for i in range(6)], ylim=(0, 1.05), ylabel="weight")
    left_title = left.set_title("one query: effectively 0.0 keys")
    (gradient_line,) = right.plot(DIVISORS, DIVISORS, color=BLUE, label="size of ∂p/∂q")
    (derivative_line,) = right.plot(DIVISORS, DIVISORS, color=GREEN, ls="--", label="derivative of softmax")
    (square_root,) = right.plot([1, 1], [-0.03, 1.06], color="gray", ls=":", label="square root of the width")
    dots = [right.plot([1], [0], "o", ms=9, mec="black", color=color)[0] for color in (BLUE, GREEN)]
    right.plot([], [], "o", ms=9, mec="black", color="white", label="your divisor")
    right.set(xscale="log", xlim=(0.08, 4000), ylim=(-0.03, 1.4), yticks=[0, 0.5, 1])
    right.set(xlabel="divisor", ylabel="fraction of the maximum")
    name_ticks(right, x=(0.1, 1, 10, 100, 1000))
    right.legend(frameon=False, fontsize=SMALLEST, loc="upper center", ncols=2)
    right_title = right.set_title("standard deviation 1000.00, ∂p/∂q at 100%")

    def draw(d_k: int, init: str, divisor: float) -> Picture:
        scores, gradient, derivative = curves(d_k, init)
        weights = torch.softmax(scores[0] / divisor, dim=0)
        index = int((DIVISORS.log() - math.log(divisor)).abs().argmin())
        fractions = [curve / curve.max() for curve in (gradient, derivative)]
        bars.show(weights.tolist())
        for line, fraction in zip((gradient_line, derivative_line), fractions, strict=True):
            line.set_ydata(fraction)
        square_root.set_xdata([math.sqrt(d_k)] * 2)
        current = [float(fraction[index]) for fraction in fractions]
        for dot, fraction in zip(dots, current, strict=True):
            dot.set_data([divisor], [fraction])
        deviation = float(scores.std()) / divisor
        left_title.set_text(f"one query: effectively {float(effective_tokens(weights)):.1f} keys")
        right_title.set_text(f"standard deviation {deviation:.2f}, ∂p/∂q at {100 * current[0]:.0f}%")
        alt = f"Width {d_k}, initialization {init}, scores divided by {divisor:.3g}, so that their standard deviation "
        alt += f"is {deviation:.2f}. One query's weights: {', '.join(f'{w:.2f}' for w in weights.tolist())}. The size "
        alt += f"of ∂p/∂q is {100 * current[0]:.0f}% of its maximum, which a divisor of {best_divisor(d_k, init):.3g} "
        alt += f"gives; the derivative of softmax is {100 * current[1]:.0f}% of its maximum. The square root of the "
        alt += f"width is {math.sqrt(d_k):.3g}."
        return Picture(figure, alt, "Left: one query's weights. Right: a typical query, over all divisors.")

    width, begin = choice("width", WIDTHS, 64), choice("initialization", figures.INITIALIZATIONS)
    panel(keeping(figure, draw), d_k=width, init=begin, divisor=powers("divisor", 1.0, -1, 3.5, 0.05))
