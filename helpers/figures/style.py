"""The look of every figure: colors that color-blind readers can tell apart, and alt text that reaches the page."""

from __future__ import annotations

import base64
import html
import io

import matplotlib
from matplotlib.figure import Figure

# Okabe and Ito's palette (2008), in the order in which figures use it.
BLUE, ORANGE, GREEN, PINK, SKY, RED, YELLOW, BLACK = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#000000",
)
CYCLE = (BLUE, ORANGE, GREEN, PINK, SKY, RED)
WEIGHTS = "Blues"  # from 0 up: attention weights, probabilities
SIGNED = "PuOr"  # around 0: scores, embeddings, differences

RC = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": matplotlib.cycler(color=CYCLE),
    "figure.dpi": 110,
    "svg.hashsalt": "course",
}


def new_figure(width: float = 6.4, height: float = 3.6, rows: int = 1, columns: int = 1, **options):
    """A figure in the course's style and its axes (one, or an array as plt.subplots gives); no pyplot state."""
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(rows, columns, **options)
    return figure, axes


def image_tag(figure: Figure, alt: str) -> str:
    """The figure as one HTML <img> with the PNG and the alt text in it (display metadata is ignored by viewers)."""
    buffer = io.BytesIO()
    with matplotlib.rc_context(RC):
        figure.savefig(buffer, format="png", metadata={"Software": None})
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html.escape(alt, quote=True)}" style="max-width:100%" src="data:image/png;base64,{data}">'


class Picture:
    """A finished figure that notebooks show with its alt text; a plain script prints the alt text."""

    def __init__(self, figure: Figure, alt: str):
        self.figure, self.alt = figure, alt

    def _repr_html_(self) -> str:
        return image_tag(self.figure, self.alt)

    def __repr__(self) -> str:
        return f"[figure: {self.alt}]"


def heatmap(ax, matrix, rows=None, columns=None, cmap=WEIGHTS, vmin=None, vmax=None, numbers=True, digits=2):
    """Draw a (rows, columns) matrix with token names on its sides and, where they fit, the numbers in the cells."""
    values = matrix.detach().cpu().numpy() if hasattr(matrix, "detach") else matrix
    if cmap == SIGNED and vmin is None:
        vmax = max(abs(float(values.min())), abs(float(values.max())), 1e-9)
        vmin = -vmax
    picture = ax.imshow(values, cmap=cmap, vmin=vmin, vmax=vmax, aspect="auto")
    ax.set_yticks(range(values.shape[0]), rows if rows is not None else range(values.shape[0]))
    ax.set_xticks(range(values.shape[1]), columns if columns is not None else range(values.shape[1]))
    if numbers:
        for i, row in enumerate(values):
            for j, value in enumerate(row):
                red, green, blue, _ = picture.cmap(picture.norm(value))
                dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
                text = f"{value:.{digits}f}"
                ax.text(j, i, text, ha="center", va="center", fontsize=9, color="white" if dark else "black")
    for side in ax.spines.values():
        side.set_visible(False)
    ax.tick_params(length=0)
    return picture
