"""The look of every figure: sharp lettering, alt text on the page.

A figure function draws on `new_figure(...)`, with the charts of charts.py in the colors of colors.py, and returns
`Picture(figure, alt, caption)`. These two say what is drawn; a docstring says only what they do not.
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

WIDEST = 8.6  # inches: the column of JupyterLab and of Colab
SMALLEST = 9  # points
RC = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 11,
    "axes.titlesize": 12,
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
# Words that say which of the three an axis or a panel shows, and nothing of the other two.
NAMES = {
    Q_COLOR: re.compile(r"(place of the )?(query|queries|Q)\b(?!.*\b(keys?|K)\b)"),
    K_COLOR: re.compile(r"(place of the )?(keys?|K)\b(?!.*\b(query|queries|Q)\b)"),
    V_COLOR: re.compile(r"(values|V)$"),
}


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
        """One HTML <img> with the picture and the alt text in it (display metadata is ignored by viewers), and below
        it the caption. live: for a picture that is gone after the next move of a slider: quicker."""
        # As text an SVG is a quarter smaller than in base64, and shrinks further in a zip.
        data, alt = _in_address(_svg(self.figure, tidy=not live)), html.escape(self.alt, quote=True)
        # A white ground of its own, so that it can be read where DARK does not reach; 12 pixels are the padding.
        size = 'width="{:.0f}" height="{:.0f}"'.format(*(self.figure.get_size_inches() * 96 + 12))
        tag = f'<img alt="{alt}" class="on-white" {size} style="{FRAME}" src="data:image/svg+xml,{data}">'
        # No color of its own: the page's, light or dark.
        look = "max-width:52em;margin:0.3em 0 0.6em;font-size:0.92em;text-wrap:pretty"  # no last line of one word
        return tag + (f'<div style="{look}">{html.escape(self.caption)}</div>' if self.caption else "")

    def __repr__(self) -> str:
        return f"[figure: {self.alt}]"


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


def words_instead(words: str, caption: str) -> Picture:
    """A figure's place where there is nothing to draw: the words that say why."""
    figure, ax = new_figure(8.2, 1.0)
    ax.axis("off")
    ax.text(0, 0.5, words, wrap=True)
    return Picture(figure, words, caption)


def _svg(figure: Figure, tidy: bool = True) -> str:
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
    return tidied(text) if tidy else text


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


def _in_address(svg: str) -> str:
    """The text of an SVG in an address, in double quotes."""
    svg = svg.strip().encode("ascii", "xmlcharrefreplace").decode()
    for plain, written in (("%", "%25"), ("#", "%23"), ("<", "%3C"), (">", "%3E"), ("\n", " "), ("&", "&amp;")):
        svg = svg.replace(plain, written)
    return svg.replace('"', "%22" if "'" in svg else "'")
