"""The charts that figures are made of: heat maps, bars and curves, and the axes that they stand on.

Words that every figure keeps: a cell that may not be seen is hatched, and long names are tilted alike. Each chart takes
what `ax.set` takes too, such as title, xlabel and xlim, so that one call draws a panel.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from helpers.drawing.colors import AROUND_ZERO, BLACK, BLUE, RED, WEIGHTS
from helpers.drawing.style import SMALLEST

HATCHED: dict[str, Any] = {"facecolor": "#F4F4F4", "edgecolor": "#A0A0A0", "hatch": "////", "linewidth": 0}
CELLS = {"cmap": WEIGHTS, "vmin": None, "vmax": None, "numbers": True, "digits": 2, "tilted": False, "every": None}


def _array(matrix) -> np.ndarray:
    return np.asarray(matrix.detach().cpu() if hasattr(matrix, "detach") else matrix)


# ---------------------------------------------------------------- heat maps


def heatmap(ax, matrix, rows=None, columns=None, mask=None, **look):
    """Draw a (rows, columns) matrix with token names on its sides and the numbers in the cells. Returns the image.

    mask: boolean (rows, columns), True = may be seen. All other cells are hatched and have no number, whatever the
    matrix holds there. look: those of CELLS, and what `ax.set` takes. vmin, vmax: the limits of the colors; of a map
    around zero they are set alike by themselves. numbers: whether they are written, with so many digits. tilted:
    whether the names of the columns are, where they are long. every: steps between ticks without names.
    """
    cmap, vmin, vmax, numbers, digits, tilted, every = (look.pop(name, usual) for name, usual in CELLS.items())
    values = _array(matrix).astype(float)
    seen = np.isfinite(values) if mask is None else np.broadcast_to(_array(mask).astype(bool), values.shape)
    shown = values[seen & np.isfinite(values)]
    if cmap in AROUND_ZERO and vmin is None and vmax is None:
        vmax = float(abs(shown).max(initial=0.0)) or 1e-9
        vmin = -vmax
    picture = ax.imshow(np.where(seen, values, np.nan), cmap=cmap, vmin=vmin, vmax=vmax, aspect="auto")
    for axis, size, names in ((ax.yaxis, values.shape[0], rows), (ax.xaxis, values.shape[1], columns)):
        step = 1 if names is not None else every or (1 if size <= 16 else 5 if size <= 40 else 10)
        axis.set_ticks(range(0, size, step), range(0, size, step) if names is None else names)
    if mask is not None:
        for i, j in np.argwhere(~seen).tolist():
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **HATCHED))
    if numbers:
        _number_cells(ax, picture, values, seen, digits)
    without_spines(ax)
    if tilted:
        tilt(ax)
    ax.set(**look)
    return picture


def weight_map(ax, weights, queries=None, keys=None, mask=None, **look):
    """Draw attention weights (T_q, T_k), or probabilities, from 0 to 1. keys: their names, if other than the queries'.
    mask and look: as for `heatmap`."""
    return heatmap(ax, weights, queries, queries if keys is None else keys, mask, vmin=0, vmax=1, **look)


def _number_cells(ax, picture, values, seen, digits) -> None:
    """Write the numbers of the cells that are seen in black or white, whichever is read more easily."""
    for i, j in np.argwhere(seen).tolist():
        value = float(values[i, j])
        text = f"{value:.{digits}f}" if np.isfinite(value) else "NaN" if np.isnan(value) else f"{value:+.0f}"
        text = text.lstrip("-") if text.startswith("-") and not text.strip("-0.") else text  # no "-0.00"
        look = {"fontsize": SMALLEST, "color": ink_on(picture.cmap(picture.norm(value)))}
        ax.text(j, i, text, ha="center", va="center", **look)


def ink_on(background) -> str:
    """Black or white, whichever contrasts more with a color (r, g, b, ...) of numbers from 0 to 1."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in background[:3])
    return "white" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.179 else "black"


def frame_cells(ax, cells: Iterable[tuple[int, int]], color=RED, width=2.0) -> None:
    """Frame the cells (row, column) of a heat map."""
    for i, j in cells:
        ax.add_patch(Rectangle((j - 0.46, i - 0.46), 0.92, 0.92, fill=False, edgecolor=color, lw=width, zorder=5))


# ---------------------------------------------------------------- axes


def tilt(ax) -> None:
    """Long names under a heat map or bars: all figures tilt them alike, and each ends below its column."""
    for label in ax.get_xticklabels():
        label.set(rotation=40, ha="right", rotation_mode="anchor")


def without_spines(ax) -> None:
    """Leave the names at the ticks, but neither the ticks' marks nor the lines around the axes."""
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def bare(ax, **look) -> None:
    """Axes that are only a place to draw on: no lines, no ticks, no names. look: what `ax.set` takes."""
    ax.axis("off")
    ax.set(**look)


def name_ticks(ax, x: Sequence[float] = (), y: Sequence[float] = ()) -> None:
    """Ticks at these numbers alone, written out: for logarithmic axes."""
    for axis, numbers in ((ax.xaxis, x), (ax.yaxis, y)):
        if len(numbers):
            axis.set_ticks(numbers, [f"{number:,}" for number in numbers])
            ax.minorticks_off()


# ---------------------------------------------------------------- bars and curves


def bars(ax, names, values, label=None, across=False, **look):
    """Bars over their names, or `across`: from the left, the first at the top. Returns them.

    label: a format for the numbers at their ends, such as ".2f", or the texts themselves. look: color, alpha, left,
    height or width as bars take them, and what `ax.set` takes.
    """
    shape = {name: look.pop(name) for name in ("color", "alpha", "height", "width", "left") if name in look}
    shape = {"color": BLUE} | ({"height": 0.6} if across else {}) | shape
    values, places = _array(values).tolist(), range(len(names))
    drawn = (ax.barh if across else ax.bar)(places, values, **shape)
    (ax.yaxis if across else ax.xaxis).set_ticks(places, names)
    if across and not ax.yaxis_inverted():
        ax.invert_yaxis()
    if label is not None:
        texts = [f"{value:{label}}" for value in values] if isinstance(label, str) else label
        ax.bar_label(drawn, texts, padding=4 if across else 2, fontsize=10)
    ax.set(**look)
    return drawn


def run_bars(ax, rows: Mapping[str, Sequence[float]], start: float = 0, colors: Sequence[str] = (BLUE,), **look):
    """A bar for the mean of several runs in each row, from `start` to the right, and a dot for each run."""
    means = [sum(runs) / len(runs) - start for runs in rows.values()]
    bars(ax, list(rows), means, across=True, left=start, color=colors, **look)
    for i, runs in enumerate(rows.values()):
        heights = [i + 0.15 * (j - (len(runs) - 1) / 2) for j in range(len(runs))]
        ax.plot(runs, heights, "o", ms=4.5, color="white", mec=BLACK, mew=0.9, clip_on=False)


class MovingBars:
    """Bars that an explorer moves. longest: the longest number that will stand at their ends, where some shall."""

    def __init__(self, ax, names, longest: str = "", across: bool = False, **look):
        self.bars, self.across = bars(ax, names, [0.0] * len(names), across=across, **look), across
        low, high = ax.get_xlim() if across else ax.get_ylim()
        self.gap = 0.01 * (high - low)
        at = {"ha": "left", "va": "center"} if across else {"ha": "center", "va": "bottom"}
        places = [(0, i) if across else (i, 0) for i in range(len(names))]
        self.labels = [ax.text(*place, longest, fontsize=10, **at) for place in places] if longest else []

    def show(self, values: Sequence[float], form: str = "", colors: Sequence[str] = ()) -> None:
        """Move the bars to `values`. form: of the numbers at their ends."""
        for bar, value in zip(self.bars, values, strict=True):
            bar.set(**{"width" if self.across else "height": value})
        for text, value in zip(self.labels, values, strict=False):
            text.set(**{"x" if self.across else "y": value + self.gap, "text": f"{value:{form}}"})
        for bar, color in zip(self.bars, colors, strict=False):
            bar.set_color(color)


def curves(ax, x, lines: Mapping[str, Sequence[float]], looks: Mapping[str, tuple], **words) -> None:
    """A curve for each name in `lines`, over x. looks: (color, line style) by name; words: what `ax.set` takes."""
    for name, values in lines.items():
        color, style = looks[name]
        ax.plot(x, values, color=color, ls=style, lw=1.8, label=name)
    ax.set(**words)


def named(names: Iterable, values: Iterable, form: str = ".2f") -> str:
    """The numbers with their names, as an alt text lists them: "jane 0.94, visits 0.86"."""
    values = values.tolist() if hasattr(values, "tolist") else values
    return ", ".join(f"{name} {value:{form}}" for name, value in zip(names, values, strict=True))
