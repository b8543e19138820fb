"""The look of every figure: colors that color-blind readers can tell apart, sharp lettering, alt text on the page.

A figure function draws on `new_figure(...)` and returns `Picture(figure, alt, caption)`. Words that every figure keeps:
blue is an attention weight or a probability, Q, K and V have `Q_COLOR`, `K_COLOR` and `V_COLOR`, and a cell that may
not be seen is hatched. Orange, sky and pink are for areas and lines; letters take `ORANGE_INK`, `SKY_INK`, `PINK_INK`.
"""

from __future__ import annotations

import base64
import html
import io
import re

import matplotlib
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from helpers.drawing.dark import DARK

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
# The same hues for letters: at least 4.5 : 1 on white.
ORANGE_INK, SKY_INK, GREEN_INK, PINK_INK, RED_INK, GRAY_INK = (
    "#8F5B00",
    "#1F6FA8",
    "#00735C",
    "#9B3D75",
    "#B23A00",
    "#595959",
)
INK = {ORANGE: ORANGE_INK, SKY: SKY_INK, GREEN: GREEN_INK, PINK: PINK_INK, RED: RED_INK}  # any other color: itself

# Queries, keys and values, in every figure of the course; dark enough for letters too.
Q_COLOR, K_COLOR, V_COLOR = "#B23A00", "#00805F", "#7A2F86"


def _around_zero(name: str, color: str) -> LinearSegmentedColormap:
    """Dark gray below 0, white at 0, `color` above."""
    return LinearSegmentedColormap.from_list(name, ["#4D4D4D", "#FFFFFF", color])


Q_MAP, K_MAP, V_MAP = (
    _around_zero(name, color) for name, color in (("queries", Q_COLOR), ("keys", K_COLOR), ("values", V_COLOR))
)
WEIGHTS = "Blues"  # from 0 up: attention weights, probabilities
SIGNED = "PuOr"  # around 0: scores, embeddings, differences
AROUND_ZERO = (SIGNED, Q_MAP, K_MAP, V_MAP)  # maps whose middle is 0: `heatmap` centers them unless it is told limits

WIDEST = 8.6  # inches: the column of JupyterLab and of Colab
SMALLEST = 9  # points
SVG_LIMIT = 300_000  # bytes; a larger figure becomes a PNG of twice the screen's pixels
RC = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 11,
    "axes.titlesize": 12,
    "legend.fontsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": matplotlib.cycler(color=CYCLE),
    "figure.dpi": 96,  # so that an inch is an inch of the page
    "hatch.linewidth": 0.8,
    "svg.fonttype": "path",  # letters look the same on every machine
    "svg.hashsalt": "course",
}
# In a narrow column a figure scrolls sideways before its letters get too small.
FRAME = "max-width:max(100%,640px);height:auto;box-sizing:border-box;background:#fff;border-radius:8px;padding:6px"
HYPHEN = re.compile(r"(?<![\w.=)\]])-(?=\d)")  # that stands for a minus, and not in code: dim=-1


def new_figure(width: float = 6.4, height: float = 3.6, rows: int = 1, columns: int = 1, **options):
    """A figure in the course's style and its axes (one, or an array as plt.subplots gives); no pyplot state.

    width, height: inches. A figure is never wider than WIDEST, whatever is asked for.
    """
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(min(width, WIDEST), height), layout="constrained")
        axes = figure.subplots(rows, columns, **options)
    return figure, axes


class Picture:
    """A finished figure as notebooks show it: sharp, with alt text, above its caption. A script prints the alt text.

    alt says in words what is to be seen, with the numbers that matter; caption is one sentence with its number:
    "Figure 8.2. Four heads read the same sentence." A figure is laid out once, when it is shown first: one that is
    changed and shown again keeps its margins and costs a third (see helpers/widgets/panel.py).
    """

    def __init__(self, figure: Figure, alt: str, caption: str = ""):
        self.figure, self.alt, self.caption = figure, alt, caption
        _readable(figure)

    def _repr_html_(self) -> str:
        return self.html() + DARK

    def html(self, live: bool = False) -> str:
        """The picture and its caption. live: between two moves of a slider."""
        return _with_caption(image_tag(self.figure, self.alt, live), self.caption)

    def __repr__(self) -> str:
        return f"[figure: {self.alt}]"


# Words that say which of the three an axis or a panel shows, and nothing of the other two.
NAMES = {
    Q_COLOR: re.compile(r"(place of the )?(query|queries|Q)\b(?!.*\b(keys?|K)\b)"),
    K_COLOR: re.compile(r"(place of the )?(keys?|K)\b(?!.*\b(query|queries|Q)\b)"),
    V_COLOR: re.compile(r"(values|V)$"),
}


def _readable(figure: Figure) -> None:
    """No letter under SMALLEST points, and none in a color that is too light for letters: its darker twin instead.
    Names of axes and panels that say query, key or value have the hue of these. Minus signs are those of the axes."""
    for ax in figure.axes:
        for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
            for color, words in NAMES.items():
                if words.match(text.get_text()):
                    text.set_color(color)
    for text in figure.findobj(Text):
        color = text.get_color()
        if isinstance(color, str) and color in INK:
            text.set_color(INK[color])
        if text.get_fontsize() < SMALLEST:
            text.set_fontsize(SMALLEST)
        if HYPHEN.search(text.get_text()):
            text.set_text(HYPHEN.sub("−", text.get_text()))


def tilt(ax) -> None:
    """Long names under a heat map or bars: all figures tilt them alike, and each ends below its column."""
    for label in ax.get_xticklabels():
        label.set(rotation=40, ha="right", rotation_mode="anchor")


def image_tag(figure: Figure, alt: str, live: bool = False) -> str:
    """The figure as one HTML <img> with the picture and the alt text in it (display metadata is ignored by viewers).

    live: for a picture that is gone after the next move of a slider: quicker, and no smaller than it has to be.
    """
    size = figure.get_size_inches()
    svg = _svg(figure, tidy=not live)
    if live or len(svg) <= SVG_LIMIT:
        return _tag("svg+xml", svg, alt, *size)
    buffer = io.BytesIO()
    with matplotlib.rc_context(RC):
        figure.savefig(buffer, format="png", dpi=192, metadata={"Software": None})
    return _tag("png", buffer.getvalue(), alt, *size)


def _svg(figure: Figure, tidy: bool = True) -> bytes:
    """The figure as SVG: the same bytes each time, no date. tidy: coordinates to a hundredth of a point."""
    buffer, dpi = io.BytesIO(), figure.dpi
    figure.dpi = 192 if tidy else 96  # of heat maps: all else is lines
    with matplotlib.rc_context(RC):
        # Not savefig, which draws everything twice.
        FigureCanvasSVG(figure).print_svg(buffer, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
        if figure.get_layout_engine() is not None:
            figure.set_layout_engine("none")  # laid out by now; drawing it again need not do so
    figure.dpi = dpi
    text = buffer.getvalue().decode()
    text = text[text.index("<svg") :]  # without the XML and DTD lines
    return tidied(text).encode() if tidy else text.encode()


def lay_out(figure: Figure) -> None:
    """Gives the figure its margins, once and for all, with the texts that stand in it now."""
    if figure.get_layout_engine() is not None:
        _svg(figure, tidy=False)


def tidied(svg: str) -> str:
    """An SVG, or some tags of one, without what only its makers read; coordinates to a hundredth of a point."""

    def rounded(match):
        return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), match[0])

    svg = re.sub(r"\s*<!--.*?-->", "", svg, flags=re.DOTALL)  # each text again, in words
    svg = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", svg).replace("DejaVuSans", "D")  # names of groups; of letters
    return re.sub(r' (?:(?:d|x|y|points)="|transform="translate)[^"]*"', rounded, re.sub(r">\s+<", "><", svg))


def _tag(kind: str, picture: bytes, alt: str, width: float, height: float) -> str:
    alt = html.escape(alt, quote=True)
    # As text an SVG is a quarter smaller than in base64, and shrinks further in a zip.
    data = f"{kind},{_in_address(picture.decode())}" if kind == "svg+xml" else f"{kind};base64,{_in_base64(picture)}"
    # A white ground of its own, so that it can be read where DARK does not reach; 12 pixels are the padding.
    size = f'width="{round(width * 96) + 12}" height="{round(height * 96) + 12}"'
    return f'<img alt="{alt}" class="on-white" {size} style="{FRAME}" src="data:image/{data}">'


def _in_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _in_address(svg: str) -> str:
    """The text of an SVG in an address, in double quotes."""
    svg = svg.strip().encode("ascii", "xmlcharrefreplace").decode()
    for plain, written in (("%", "%25"), ("#", "%23"), ("<", "%3C"), (">", "%3E"), ("\n", " "), ("&", "&amp;")):
        svg = svg.replace(plain, written)
    return svg.replace('"', "%22" if "'" in svg else "'")


def _with_caption(tag: str, caption: str) -> str:
    if not caption:
        return tag
    # No color of its own: the page's, light or dark.
    look = "max-width:52em;margin:0.3em 0 0.6em;font-size:0.92em;text-wrap:pretty"  # no last line of one word
    return f'{tag}<div style="{look}">{html.escape(caption)}</div>'


def heatmap(ax, matrix, rows=None, columns=None, cmap=WEIGHTS, vmin=None, vmax=None, numbers=True, digits=2, mask=None):
    """Draw a (rows, columns) matrix with token names on its sides and the numbers in the cells. Returns the image.

    mask: boolean (rows, columns), True = may be seen. All other cells are hatched and have no number, whatever the
    matrix holds there. vmin, vmax: the limits of the colors; of a map around zero they are set alike by themselves.
    """
    values = _array(matrix).astype(float)
    seen = np.isfinite(values) if mask is None else np.broadcast_to(_array(mask).astype(bool), values.shape)
    shown = values[seen & np.isfinite(values)]
    if cmap in AROUND_ZERO and vmin is None and vmax is None:
        vmax = max([float(abs(shown).max())] if shown.size else [], default=0.0) or 1e-9
        vmin = -vmax
    picture = ax.imshow(np.where(seen, values, np.nan), cmap=cmap, vmin=vmin, vmax=vmax, aspect="auto")
    for axis, size, names in ((ax.yaxis, values.shape[0], rows), (ax.xaxis, values.shape[1], columns)):
        step = 1 if names is not None or size <= 16 else 5 if size <= 40 else 10
        axis.set_ticks(range(0, size, step), range(0, size, step) if names is None else names)
    if mask is not None:
        hatch_cells(ax, ~seen)
    if numbers:
        number_cells(ax, picture, values, seen, digits)
    for side in ax.spines.values():
        side.set_visible(False)
    ax.tick_params(length=0)
    return picture


def hatch_cells(ax, blocked) -> None:
    """Hatch the cells of a heat map that may not be seen: `blocked` is True there."""
    for i, j in np.argwhere(_array(blocked)).tolist():
        look = {"facecolor": "#F4F4F4", "edgecolor": "#A0A0A0", "hatch": "////", "linewidth": 0}
        ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **look))


def number_cells(ax, picture, values, seen=None, digits=2) -> list:
    """Write each number of a heat map into its cell, in black or white, whichever is read more easily."""
    written = []
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            if seen is None or seen[i, j]:
                text = f"{value:.{digits}f}" if np.isfinite(value) else "NaN" if np.isnan(value) else f"{value:+.0f}"
                text = text.lstrip("-") if text.startswith("-") and not text.strip("-0.") else text  # no "-0.00"
                color = ink_on(picture.cmap(picture.norm(value)))
                written.append(ax.text(j, i, text, ha="center", va="center", fontsize=SMALLEST, color=color))
    return written


def ink_on(background) -> str:
    """Black or white, whichever contrasts more with a color (r, g, b, ...) of numbers from 0 to 1."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in background[:3])
    return "white" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.179 else "black"


def _array(matrix) -> np.ndarray:
    return np.asarray(matrix.detach().cpu() if hasattr(matrix, "detach") else matrix)
