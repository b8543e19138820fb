"""The parts of diagrams: arrows, boxes, rows of tokens, and the flow of tensors through a module."""

from collections.abc import Iterable, Mapping, Sequence

from matplotlib.colors import to_rgba
from matplotlib.patches import FancyBboxPatch, Rectangle

from helpers.drawing.colors import BLACK

# The looks of a word in the source sentence and of one in the translation.
SOURCE, TARGET = {"facecolor": "#EAF2F8", "edgecolor": "#4D86AF"}, {"facecolor": "#FFF3D6", "edgecolor": "#7A4B00"}


def arrow(ax, start, end, color=BLACK, width=2.0, **look):
    """Draw an arrow from `start` to `end`. Returns it, so that an explorer can move its tip, which is `xy`."""
    look = {"arrowstyle": "-|>", "color": color, "lw": width, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 14} | look
    return ax.annotate("", xy=tuple(end), xytext=tuple(start), arrowprops=look, zorder=2)


def box(ax, center, size, text="", rounding=0.1, **look):
    """Draw a box with round corners and a text in its middle. size: (width, height). look: the text's fontsize, and the
    properties of the patch, which is returned."""
    corner = [middle - length / 2 for middle, length in zip(center, size, strict=True)]
    text_look = {"fontsize": look.pop("fontsize", 10.5), "zorder": look.get("zorder", 1) + 1}
    if "hatch" in look:  # text on hatching needs a background
        text_look["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    ax.text(*center, text, ha="center", va="center", **text_look)
    return ax.add_patch(FancyBboxPatch(corner, *size, boxstyle=f"round,pad=0,rounding_size={rounding}", **look))


def flow(ax, boxes: Mapping[str, tuple], arrows: Iterable[tuple[str, str, str]], height: float = 0.7) -> None:
    """Draw tensors as boxes and the operations between them as arrows.

    boxes: name -> (shape, x, y, color), where (x, y) is the lower left corner. arrows: (from, to, label); a label in
    math mode, such as a matrix, is written on its arrow, any other next to it.
    """
    width, small = 1.3, {"va": "center", "fontsize": 10}
    for name, (shape, x, y, color) in boxes.items():
        ax.add_patch(Rectangle((x, y), width, height, facecolor=to_rgba(color, 0.2), edgecolor="black", lw=0.8))
        text = f"{name}\n({', '.join(map(str, shape))})"
        ax.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=11)
    for start, end, label in arrows:
        (_, x, y, _), (_, to_x, to_y, _) = boxes[start], boxes[end]
        if x == to_x:
            lift = height if to_y > y else 0
            ends = (x + width / 2, y + lift), (to_x + width / 2, to_y + height - lift)
        else:
            ends = (x + width, y + height / 2), (to_x, to_y + height / 2)
        arrow(ax, *ends, "#595959", 1, shrinkA=2, shrinkB=2, mutation_scale=10)
        middle, level = ((a + b) / 2 for a, b in zip(*ends, strict=True))
        if x == to_x:
            ax.text(middle + 0.08, level, label, **small)
        elif label.startswith("$"):
            ax.text(middle, level, label, ha="center", **small, bbox={"facecolor": "white", "lw": 0, "pad": 1})
        else:
            ax.text(middle, level + 0.1, label, ha="center", va="bottom", fontsize=9)


def tokens(ax, words: Sequence[str], centers: Sequence[float], y: float, widths: Sequence[float], **look) -> None:
    """Draw a row of words in boxes around (center, y). look: options of `box`, such as those in TARGET."""
    for word, x, width in zip(words, centers, widths, strict=True):
        box(ax, (x, y), (width, 0.4), word, **SOURCE | look)
