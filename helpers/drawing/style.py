"""The style of every figure, and how a notebook shows it with its alt text and caption.

A figure function draws on `new_figure(...)`, with the charts of charts.py in the colors of colors.py, and returns
`Picture(figure, alt, caption)`. The alt text and the caption describe the figure, so that its function needs a
docstring only for what they leave out.
"""

import html
import io
import re

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.text import Text

from helpers.drawing.colors import CYCLE, INK, K_COLOR, Q_COLOR, V_COLOR
from helpers.drawing.dark import DARK

WIDEST = 8.6  # inches, which fit into a column of JupyterLab and Colab
SMALLEST = 9  # points
RC = {
    "font.family": "DejaVu Sans",  # is part of matplotlib
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": matplotlib.cycler(color=CYCLE),
    "figure.dpi": 96,  # so that an inch of the figure is a CSS inch of the page
    "hatch.linewidth": 0.8,
    "svg.fonttype": "path",  # letters look the same on every machine
    "svg.hashsalt": "course",
}
# In a narrow column a figure scrolls sideways before its text becomes too small.
FRAME = "max-width:max(100%,640px);height:auto;box-sizing:border-box;background:#fff;border-radius:8px;padding:6px"
HYPHEN = re.compile(r"(?<![\w.=)\]])-(?=\d)")  # a hyphen that means minus, except in code such as dim=-1
# Labels and titles that name only one of queries, keys and values get its color.
NAMES = {
    Q_COLOR: re.compile(r"(place of the )?(query|queries|Q)\b(?!.*\b(keys?|K)\b)"),
    K_COLOR: re.compile(r"(place of the )?(keys?|K)\b(?!.*\b(query|queries|Q)\b)"),
    V_COLOR: re.compile(r"(values|V)$"),
}


def new_figure(width: float = 6.4, height: float = 3.6, rows: int = 1, columns: int = 1, **options):
    """A figure in the style of the course and its axes (one, or an array as plt.subplots returns), without pyplot.

    width, height: in inches; a figure is never wider than WIDEST. options: those of `Figure.subplots`.
    """
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(min(width, WIDEST), height), layout="constrained")
        axes = figure.subplots(rows, columns, **options)
    return figure, axes


class Picture:
    """A finished figure: notebooks show it as an SVG with alt text and a caption; a script prints the alt text.

    alt: what the figure shows, in words and with the numbers that matter. caption: one sentence after the figure's
    number, such as "Figure 8.2. Four heads read the same sentence." The layout is computed only when the figure is
    shown for the first time; showing it again after a change keeps its margins and takes a third of the time (see
    helpers/widgets/panel.py).
    """

    def __init__(self, figure: Figure, alt: str, caption: str = ""):
        self.figure, self.alt, self.caption = figure, alt, caption
        _readable(figure)

    def _repr_html_(self) -> str:
        return self.html() + DARK

    def html(self, live: bool = False) -> str:
        """An HTML <img> with the SVG and its alt text, because viewers ignore display metadata, above the caption.

        live: whether the next move of a slider replaces the picture, so that tidying its SVG isn't worth the time.
        """
        # As text an SVG is a quarter smaller than in base64, and a zip compresses it better.
        data, alt = _in_data_url(_svg(self.figure, tidy=not live)), html.escape(self.alt, quote=True)
        # FRAME adds 12 pixels of padding, and a white background for pages on which DARK has no effect.
        size = 'width="{:.0f}" height="{:.0f}"'.format(*(self.figure.get_size_inches() * 96 + 12))
        tag = f'<img alt="{alt}" class="on-white" {size} style="{FRAME}" src="data:image/svg+xml,{data}">'
        # The caption has the text color of the page, light or dark; "pretty" avoids a last line of a single word.
        look = "max-width:52em;margin:0.3em 0 0.6em;font-size:0.92em;text-wrap:pretty"
        return tag + (f'<div style="{look}">{html.escape(self.caption)}</div>' if self.caption else "")

    def __repr__(self) -> str:
        return f"[figure: {self.alt}]"


def _readable(figure: Figure) -> None:
    """Make all text readable: at least SMALLEST points, dark enough, and with minus signs like those at the ticks.

    Labels and titles that name the queries, the keys or the values get their color.
    """
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


def text_picture(words: str, caption: str) -> Picture:
    """A picture that only says in words why there is nothing to draw."""
    figure, ax = new_figure(8.2, 1.0)
    ax.axis("off")
    ax.text(0, 0.5, words, wrap=True)
    return Picture(figure, words, caption)


def _svg(figure: Figure, tidy: bool = True) -> str:
    """The figure as an SVG without a date, so that its bytes are reproducible. tidy: whether to apply `tidied`."""
    buffer, dpi = io.BytesIO(), figure.dpi
    figure.dpi = 192 if tidy else 96  # matters only for heat maps, which are the only bitmaps
    with matplotlib.rc_context(RC):
        # savefig would draw everything twice.
        FigureCanvasSVG(figure).print_svg(buffer, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
        if figure.get_layout_engine() is not None:
            figure.set_layout_engine("none")  # so that drawing it again doesn't repeat the layout
    figure.dpi = dpi
    text = buffer.getvalue().decode()
    text = text[text.index("<svg") :]  # drops the XML and DTD lines
    return tidied(text) if tidy else text


def lay_out(figure: Figure) -> None:
    """Fix the margins of a figure for good, with the texts that it contains now."""
    if figure.get_layout_engine() is not None:
        _svg(figure, tidy=False)


def tidied(svg: str) -> str:
    """Remove comments, ids and white space from an SVG (or a part of one), and round coordinates to 0.01 points."""

    def rounded(match):
        return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), match[0])

    svg = re.sub(r"\s*<!--.*?-->", "", svg, flags=re.DOTALL)  # each repeats a text in plain words
    svg = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", svg).replace("DejaVuSans", "D")  # ids of groups, names of glyphs
    return re.sub(r' (?:(?:d|x|y|points)="|transform="translate)[^"]*"', rounded, re.sub(r">\s+<", "><", svg))


def _in_data_url(svg: str) -> str:
    """An SVG escaped for a data URL in double quotes."""
    svg = svg.strip().encode("ascii", "xmlcharrefreplace").decode()
    for plain, escaped in (("%", "%25"), ("#", "%23"), ("<", "%3C"), (">", "%3E"), ("\n", " "), ("&", "&amp;")):
        svg = svg.replace(plain, escaped)
    return svg.replace('"', "%22" if "'" in svg else "'")
