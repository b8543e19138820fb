"""The charts that figures are made of (heat maps, bars and curves), and helpers for their axes.

In every figure a masked cell is hatched, and long names are tilted by the same angle. Each chart passes its remaining
keyword arguments, such as title, xlabel and xlim, to `ax.set`, so that one call draws a panel.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from helpers.drawing.colors import AROUND_ZERO, BLACK, BLUE, RED, WEIGHTS
from helpers.drawing.style import SMALLEST

HATCHED: dict[str, Any] = {"facecolor": "#F4F4F4", "edgecolor": "#A0A0A0", "hatch": "////", "linewidth": 0}
DEFAULTS = {"cmap": WEIGHTS, "vmin": None, "vmax": None, "numbers": True, "digits": 2, "tilted": False, "every": None}


def _array(matrix) -> np.ndarray:
    return np.asarray(matrix.detach().cpu() if hasattr(matrix, "detach") else matrix)


# ---------------------------------------------------------------- heat maps


def heatmap(ax, matrix, rows=None, columns=None, mask=None, **options):
    """Draw a (rows, columns) matrix with token names on two sides and the values in the cells. Returns the image.

    mask: boolean (rows, columns), True where a cell may be seen. All other cells are hatched and have no number,
    whatever the matrix contains there. options: those of DEFAULTS, and what `ax.set` takes. Without the limits vmin and
    vmax, a color map of AROUND_ZERO is centered at 0. numbers, digits: whether to write the values, and with how many
    decimal places. tilted: whether to tilt the names of the columns. every: the step between ticks without names.
    """
    cmap, vmin, vmax, numbers, digits, tilted, every = (options.pop(name, value) for name, value in DEFAULTS.items())
    values = _array(matrix).astype(float)
    visible = np.isfinite(values) if mask is None else np.broadcast_to(_array(mask).astype(bool), values.shape)
    finite = values[visible & np.isfinite(values)]
    if cmap in AROUND_ZERO and vmin is None and vmax is None:
        vmax = float(abs(finite).max(initial=0.0)) or 1e-9
        vmin = -vmax
    image = ax.imshow(np.where(visible, values, np.nan), cmap=cmap, vmin=vmin, vmax=vmax, aspect="auto")
    for axis, size, names in ((ax.yaxis, values.shape[0], rows), (ax.xaxis, values.shape[1], columns)):
        step = 1 if names is not None else every or (1 if size <= 16 else 5 if size <= 40 else 10)
        axis.set_ticks(range(0, size, step), range(0, size, step) if names is None else names)
    if mask is not None:
        for i, j in np.argwhere(~visible).tolist():
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **HATCHED))
    if numbers:
        _number_cells(ax, image, values, visible, digits)
    without_spines(ax)
    if tilted:
        tilt(ax)
    ax.set(**options)
    return image


def weight_map(ax, weights, queries=None, keys=None, mask=None, **options):
    """Draw attention weights (T_q, T_k), or probabilities, on a scale from 0 to 1.

    queries, keys: their names; keys without names get those of the queries. mask, options: as for `heatmap`.
    """
    return heatmap(ax, weights, queries, queries if keys is None else keys, mask, vmin=0, vmax=1, **options)


def _number_cells(ax, image, values, visible, digits) -> None:
    """Write the values of the visible cells in black or white, whichever is easier to read."""
    for i, j in np.argwhere(visible).tolist():
        value = float(values[i, j])
        text = f"{value:.{digits}f}" if np.isfinite(value) else "NaN" if np.isnan(value) else f"{value:+.0f}"
        text = text.lstrip("-") if text.startswith("-") and not text.strip("-0.") else text  # no "-0.00"
        look = {"fontsize": SMALLEST, "color": ink_on(image.cmap(image.norm(value)))}
        ax.text(j, i, text, ha="center", va="center", **look)


def ink_on(background) -> str:
    """Black or white, whichever contrasts more with a color (r, g, b, ...), whose components run from 0 to 1."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in background[:3])
    return "white" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.179 else "black"


def frame_cells(ax, cells: Iterable[tuple[int, int]], color=RED, width=2.0) -> None:
    """Frame some cells (row, column) of a heat map."""
    for i, j in cells:
        ax.add_patch(Rectangle((j - 0.46, i - 0.46), 0.92, 0.92, fill=False, edgecolor=color, lw=width, zorder=5))


# ---------------------------------------------------------------- axes


def tilt(ax) -> None:
    """Tilt the long names under a heat map or bars, so that each ends below its column."""
    for label in ax.get_xticklabels():
        label.set(rotation=40, ha="right", rotation_mode="anchor")


def without_spines(ax) -> None:
    """Remove the lines around the axes and the tick marks, but keep the tick labels."""
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def bare(ax, **options) -> None:
    """Turn axes into a plain canvas without lines, ticks and labels. options: what `ax.set` takes."""
    ax.axis("off")
    ax.set(**options)


def name_ticks(ax, x: Sequence[float] = (), y: Sequence[float] = ()) -> None:
    """Put ticks only at these numbers, written out in full. For logarithmic axes."""
    for axis, numbers in ((ax.xaxis, x), (ax.yaxis, y)):
        if len(numbers):
            axis.set_ticks(numbers, [f"{number:,}" for number in numbers])
            ax.minorticks_off()


# ---------------------------------------------------------------- bars and curves


def bars(ax, names, values, label=None, across=False, **options):
    """Draw vertical bars, or with `across` horizontal ones from top to bottom, each with its name. Returns the bars.

    label: a format for the numbers at the ends of the bars, such as ".2f", or a list of texts. options: color, alpha,
    left, height and width for the bars, and what `ax.set` takes.
    """
    style = {name: options.pop(name) for name in ("color", "alpha", "height", "width", "left") if name in options}
    style = {"color": BLUE} | ({"height": 0.6} if across else {}) | style
    values, positions = _array(values).tolist(), range(len(names))
    drawn = (ax.barh if across else ax.bar)(positions, values, **style)
    (ax.yaxis if across else ax.xaxis).set_ticks(positions, names)
    if across and not ax.yaxis_inverted():
        ax.invert_yaxis()
    if label is not None:
        texts = [f"{value:{label}}" for value in values] if isinstance(label, str) else label
        ax.bar_label(drawn, texts, padding=4 if across else 2, fontsize=10)
    ax.set(**options)
    return drawn


def run_bars(ax, rows: Mapping[str, Sequence[float]], start: float = 0, colors: Sequence[str] = (BLUE,), **options):
    """Draw for each row a horizontal bar from `start` to the mean of its runs, and a dot for each run."""
    means = [sum(runs) / len(runs) - start for runs in rows.values()]
    bars(ax, list(rows), means, across=True, left=start, color=colors, **options)
    for i, runs in enumerate(rows.values()):
        heights = [i + 0.15 * (j - (len(runs) - 1) / 2) for j in range(len(runs))]
        ax.plot(runs, heights, "o", ms=4.5, color="white", mec=BLACK, mew=0.9, clip_on=False)


class MovingBars:
    """Bars that an explorer moves. longest: the longest number that they will show at their ends, "" for no numbers."""

    def __init__(self, ax, names, longest: str = "", across: bool = False, **options):
        self.bars, self.across = bars(ax, names, [0.0] * len(names), across=across, **options), across
        low, high = ax.get_xlim() if across else ax.get_ylim()
        self.gap = 0.01 * (high - low)
        alignment = {"ha": "left", "va": "center"} if across else {"ha": "center", "va": "bottom"}
        points = [(0, i) if across else (i, 0) for i in range(len(names))]
        self.labels = [ax.text(*point, longest, fontsize=10, **alignment) for point in points] if longest else []

    def show(self, values: Sequence[float], form: str = "", colors: Sequence[str] = ()) -> None:
        """Move the bars to `values`. form: the format of the numbers at their ends, such as ".3f"."""
        for bar, value in zip(self.bars, values, strict=True):
            bar.set(**{"width" if self.across else "height": value})
        for text, value in zip(self.labels, values, strict=False):
            text.set(**{"x" if self.across else "y": value + self.gap, "text": f"{value:{form}}"})
        for bar, color in zip(self.bars, colors, strict=False):
            bar.set_color(color)


def curves(ax, x, lines: Mapping[str, Sequence[float]], styles: Mapping[str, tuple], **options) -> None:
    """Draw a curve over x for each name in `lines`. styles: its (color, line style). options: what `ax.set` takes."""
    for name, values in lines.items():
        color, style = styles[name]
        ax.plot(x, values, color=color, ls=style, lw=1.8, label=name)
    ax.set(**options)


def named(names: Iterable, values: Iterable, form: str = ".2f") -> str:
    """The values with their names, as alt texts list them: "jane 0.94, visits 0.86"."""
    values = values.tolist() if hasattr(values, "tolist") else values
    return ", ".join(f"{name} {value:{form}}" for name, value in zip(names, values, strict=True))
