"""What diagrams are made of: arrows, boxes, rows of tokens, and tensors on their way through a module."""

from collections.abc import Iterable, Mapping, Sequence

from matplotlib.colors import to_rgba
from matplotlib.patches import FancyBboxPatch, Rectangle

from helpers.drawing.colors import BLACK

# A word in a sentence, and one in its translation.
SOURCE, TARGET = {"facecolor": "#EAF2F8", "edgecolor": "#4D86AF"}, {"facecolor": "#FFF3D6", "edgecolor": "#7A4B00"}


def arrow(ax, start, end, color=BLACK, width=2.0, **look):
    """An arrow from one point to another, which is returned: its end is `xy`."""
    look = {"arrowstyle": "-|>", "color": color, "lw": width, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 14} | look
    return ax.annotate("", xy=tuple(end), xytext=tuple(start), arrowprops=look, zorder=2)


def box(ax, center, size, text="", rounding=0.1, **look):
    """A box with round corners and a text in its middle. size: width and height; fontsize is the text's. Returns it."""
    corner = [middle - length / 2 for middle, length in zip(center, size, strict=True)]
    letters = {"fontsize": look.pop("fontsize", 10.5), "zorder": look.get("zorder", 1) + 1}
    if "hatch" in look:  # letters on hatching need a ground
        letters["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    ax.text(*center, text, ha="center", va="center", **letters)
    return ax.add_patch(FancyBboxPatch(corner, *size, boxstyle=f"round,pad=0,rounding_size={rounding}", **look))


def flow(ax, boxes: Mapping[str, tuple], arrows: Iterable[tuple[str, str, str]], height: float = 0.7) -> None:
    """Tensors on their way from left to right. boxes: name -> (shape, x, y, color), of the lower left corner; arrows:
    (from, to, label), on an arrow where the label is a matrix, else beside it."""
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


def tokens(ax, words: Sequence[str], places: Sequence[float], y: float, widths: Sequence[float], **look) -> None:
    """A row of words in boxes. look: that of `box`; SOURCE or TARGET for words that are translated."""
    for word, x, width in zip(words, places, widths, strict=True):
        box(ax, (x, y), (width, 0.4), word, **SOURCE | look)
