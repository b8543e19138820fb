"""The map that opens every lesson: the Transformer with the lesson's part highlighted and earlier parts in color."""

import textwrap
from dataclasses import dataclass

from matplotlib.patches import Circle, Polygon

from helpers.drawing.colors import K_COLOR, Q_COLOR, V_COLOR
from helpers.drawing.diagrams import arrow, box
from helpers.drawing.style import Picture, new_figure

WIDTH, HEIGHT = 860, 440  # in hundredths of an inch
EDGE, LETTER = "#8C8C8C", "#222222"
FADED = "#6B6B6B"  # the text of later parts
LOOKS = {  # how a part's box is drawn
    "today": {"facecolor": "#FFC94D", "edgecolor": "#7A4B00", "lw": 2.2},
    "near": {"facecolor": "#FFF3D6", "edgecolor": "#7A4B00", "lw": 1.4},  # contains today's part
    "passed": {"facecolor": "#D5E8F5", "edgecolor": "#4D86AF", "lw": 1.0},
    "to come": {"facecolor": "white", "edgecolor": "#A8A8A8", "lw": 0.9, "ls": (0, (4, 2.5))},
}
INK = {"today": "black", "near": "black", "passed": LETTER, "to come": FADED}


@dataclass(frozen=True)
class Part:
    """A box of the map. lesson: the one that teaches it. alt: its name in the alt text. hue: the color of its text."""

    name: str
    text: str
    lesson: int
    x: float
    y: float
    width: float
    height: float
    alt: str = ""
    hue: str = ""


TOP, ENCODER, DECODER = 98, 246, 356  # y of the centers of the three rows
PARTS = (
    Part("Q", "queries", 3, 206, TOP - 52, 70, 28, "queries", Q_COLOR),
    Part("K", "keys", 3, 206, TOP - 14, 70, 28, "keys", K_COLOR),
    Part("V", "values", 7, 206, TOP + 24, 70, 28, "values", V_COLOR),
    Part("scores", "scores\n$QK^T$", 3, 312, TOP - 44, 72, 48, "scores"),
    Part("scale", "scale\n÷ √$d_k$", 4, 404, TOP - 44, 66, 48, "the scale"),
    Part("mask", "mask", 5, 490, TOP - 44, 58, 48, "the mask"),
    Part("softmax", "softmax", 6, 568, TOP - 44, 72, 48, "the softmax"),
    Part("mix", "mix the\nvalues", 7, 662, TOP - 44, 70, 96, "the mixture of values"),
    Part("heads", "join the\nheads,\n$W_O$", 8, 776, TOP - 44, 72, 96, "many heads and the matrix that joins them"),
    Part("embed", "embed", 1, 72, ENCODER - 22, 70, 44, "embedding"),
    Part("place", "position", 2, 160, ENCODER - 22, 76, 44, "position"),
    Part("attention", "attention", 8, 270, ENCODER - 22, 84, 44),
    Part("norm1", "add,\nnorm", 9, 368, ENCODER - 22, 52, 44, "residual and norm"),
    Part("feed", "feed\nforward", 9, 434, ENCODER - 22, 74, 44, "the feed-forward layer"),
    Part("norm2", "add,\nnorm", 9, 522, ENCODER - 22, 52, 44),
    Part("embed2", "embed", 1, 72, DECODER - 22, 70, 44),
    Part("place2", "position", 2, 160, DECODER - 22, 76, 44),
    Part("self", "masked\nattention", 10, 268, DECODER - 22, 80, 44, "masked self-attention of the decoder"),
    Part("norm3", "add,\nnorm", 10, 357, DECODER - 22, 50, 44),
    Part("cross", "cross-\nattention", 10, 416, DECODER - 22, 80, 44, "cross-attention"),
    Part("norm4", "add,\nnorm", 10, 505, DECODER - 22, 50, 44),
    Part("feed2", "feed\nforward", 10, 564, DECODER - 22, 70, 44),
    Part("norm5", "add,\nnorm", 10, 643, DECODER - 22, 50, 44),
    Part("linear", "linear", 10, 708, DECODER - 22, 54, 44, "the last linear layer"),
    Part("loss", "softmax,\nloss", 6, 774, DECODER - 22, 78, 44, "the loss"),
)
HEAD = ("Q", "K", "V", "scores", "scale", "mask", "softmax", "mix", "heads")
TODAY = {  # the topic of each lesson, in the words of the map
    0: "how to read this map",
    1: "words turn into vectors",
    2: "order is added to the vectors",
    3: "each query is scored against each key",
    4: "scores are divided before the softmax",
    5: "what is hidden gets no weight",
    6: "scores become weights; errors become a loss",
    7: "weights mix the values: one head is whole",
    8: "many heads side by side, then joined",
    9: "attention becomes a block of the encoder",
    10: "the decoder, and the whole Transformer",
    11: "the whole model is trained",
    12: "a GPT: the decoder without the encoder",
    13: "a real network: the encoder alone",
    14: "the GPT's block, as it is built today",
}
GPT = ("embed2", "place2", "self", "norm3", "feed2", "norm5", "linear", "loss")
BLOCK = ("place2", "self", "norm3", "feed2", "norm5")  # the parts of the GPT that lesson 14 changes
BERT = ("embed", "place", "attention", "norm1", "feed", "norm2")


def transformer_map(lesson: str) -> Picture:
    """The map of a lesson, such as "08_multi_head"."""
    number = int(str(lesson)[:2])
    looks = {part.name: _look(part, number) for part in PARTS}
    figure, ax = new_figure(WIDTH / 100, HEIGHT / 100)
    figure.set_layout_engine("none")
    ax.set_position((0, 0, 1, 1))
    ax.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0))
    ax.axis("off")
    _draw_rows(ax, number)
    for part in PARTS:
        _draw_part(ax, part, looks[part.name])
    _draw_legend(ax, number)
    return Picture(figure, _alt_text(number, looks))


def _look(part: Part, number: int) -> str:
    if number == 14:
        return "today" if part.name in BLOCK else _look(part, 12).replace("today", "passed")
    if number == 12:
        return "today" if part.name in GPT else "passed" if part.name not in ("cross", "norm4", *BERT) else "to come"
    if number == 13:
        return "today" if part.name in BERT else "passed" if part.name in HEAD else "to come"
    if part.lesson == number or (number == 11 and part.name == "loss"):
        return "today"
    if part.name == "attention" and 3 <= number <= 8:
        return "near"
    return "passed" if part.lesson < number else "to come"


def _draw_part(ax, part: Part, look: str) -> None:
    middle, hue = (part.x + part.width / 2, part.y + part.height / 2), {"edgecolor": part.hue} if part.hue else {}
    box(ax, middle, (part.width, part.height), rounding=6, zorder=3, **LOOKS[look] | hue)
    bold = "bold" if look == "today" else "normal"
    color = part.hue if part.hue and look != "today" else INK[look]  # on yellow only the edge has the hue
    ax.text(*middle, part.text, ha="center", va="center", fontsize=9.5, color=color, weight=bold, zorder=4)
    _badge(ax, part.x + part.width - 2, part.y - 3, part.lesson, look)


def _badge(ax, x: float, y: float, number: int, look: str) -> None:
    """Draw the number of the lesson that teaches a part."""
    edge = LOOKS[look]["edgecolor"]
    face = edge if look in ("today", "near") else "white" if look == "to come" else "#2F6B96"
    ax.add_patch(Circle((x, y), 8.5, facecolor=face, edgecolor=edge, linewidth=0.8, zorder=5))
    ink = FADED if look == "to come" else "white"
    ax.text(x, y + 0.4, str(number), ha="center", va="center_baseline", fontsize=9, color=ink, zorder=6)


def _arrow(ax, *points, color=EDGE, width=1.2, style="-") -> None:
    """Draw a line through the points, with an arrowhead at its end."""
    for start, end in zip(points[:-2], points[1:-1], strict=True):
        ax.plot(*zip(start, end, strict=True), color=color, lw=width, ls=style, solid_capstyle="round", zorder=2)
    arrow(ax, points[-2], points[-1], color, width, linestyle=style, mutation_scale=9)


def _arrows(ax, y: float, *ends: tuple[float, float]) -> None:
    """Draw arrows at height y from each start to its end."""
    for start, end in ends:
        _arrow(ax, (start, y), (end, y))


def _frame(ax, corner, size, **look) -> None:
    middle = [start + length / 2 for start, length in zip(corner, size, strict=True)]
    box(ax, middle, size, rounding=10, **{"facecolor": "#FAFAFA", "edgecolor": "#C4C4C4", "zorder": 0.5} | look)


def _draw_rows(ax, number: int) -> None:
    """Draw the frames, arrows and words, that is, everything except the parts."""
    plain = {"ha": "center", "va": "center", "fontsize": 9.5, "color": LETTER}
    # The zoom from the encoder's attention into one head, with the other heads as cards behind it.
    ax.add_patch(Polygon([(270, 224), (354, 224), (752, 168), (166, 168)], closed=True, facecolor="#F0F0F0", zorder=0))
    for shift in (10, 5, 0):
        _frame(ax, (166 + shift, 34 - shift), (586, 134), zorder=0.6 - shift / 100)
    ax.text(290, TOP + 62, "one head, opened", **plain | {"ha": "left", "va": "bottom", "color": FADED})
    ax.text(181, TOP, "x", **plain | {"fontsize": 12, "style": "italic"})
    for shift in (-38, 0, 38):
        _arrow(ax, (189, TOP), (206, TOP + shift))
    _arrow(ax, (276, TOP - 38), (312, TOP - 26))
    _arrow(ax, (276, TOP), (312, TOP - 14))
    _arrows(ax, TOP - 20, (384, 404), (470, 490), (548, 568), (640, 662))
    _arrows(ax, TOP + 38, (276, 662))
    _arrows(ax, TOP + 4, (732, 776))
    # The encoder.
    ax.text(34, ENCODER, "jane\nvisits\nafrica", **plain)
    _frame(ax, (250, ENCODER - 54), (340, 90))
    ax.text(572, ENCODER - 43, "encoder block × N", **plain | {"ha": "right", "color": FADED})
    _arrows(ax, ENCODER, (58, 72), (142, 160), (236, 270), (354, 368), (420, 434), (508, 522))
    # The decoder, which reads the encoder's output.
    ax.text(34, DECODER, "<bos>\njane\nvisite", **plain)
    _frame(ax, (250, DECODER - 54), (452, 90))
    ax.text(690, DECODER - 43, "decoder block × N", **plain | {"ha": "right", "color": FADED})
    _arrows(ax, DECODER, (58, 72), (142, 160), (236, 268), (348, 357), (407, 416), (496, 505), (555, 564), (634, 643))
    _arrows(ax, DECODER, (693, 708), (762, 774))
    if number not in (12, 14):
        _arrow(ax, (574, ENCODER), (612, ENCODER), (612, 293), (456, 293), (456, DECODER - 22))
    # The residual connections, each around its layer.
    for y, layers in ((ENCODER, ((258, 394), (427, 548))), (DECODER, ((258, 382), (411, 530), (559, 668)))):
        for x0, x1 in layers:
            _arrow(ax, (x0, y), (x0, y + 29), (x1, y + 29), (x1, y + 22), width=0.9)
    # The output, and training.
    _arrow(ax, (813, DECODER - 22), (813, DECODER - 44))
    ax.text(810, DECODER - 66, "jane visite\nl’afrique", **plain)
    lit = number == 11
    color, width = ("#7A4B00", 2.4) if lit else (LOOKS["passed"]["edgecolor"], 1.0) if number > 11 else ("#A8A8A8", 1.0)
    style = "-" if number >= 11 else (0, (4, 2.5))
    _arrow(ax, (813, DECODER + 22), (813, 420), (107, 420), (107, DECODER + 22), color=color, width=width, style=style)
    text = "training: the gradient of the loss goes back through every part"
    look = "today" if lit else "passed" if number > 11 else "to come"
    # A separate frame, because the size of a bbox around the text would differ from what a browser draws.
    _frame(
        ax, (230, 406), (464, 28), facecolor=LOOKS["today"]["facecolor"] if lit else "white", edgecolor="none", zorder=3
    )
    ax.text(452, 420, text, **plain | {"color": LETTER if number >= 11 else FADED}, zorder=4)
    _badge(ax, 813, 420, 11, look)


def _draw_legend(ax, number: int) -> None:
    ax.text(12, 24, "The Transformer", fontsize=11.5, weight="bold", va="center", color="black")
    heading = "\n".join([f"Lesson {number}:", *textwrap.wrap(TODAY[number], 21)])
    ax.text(12, 42, heading, fontsize=10, va="top", color=LETTER, linespacing=1.3)
    for row, (look, text) in enumerate((("today", "today"), ("passed", "behind you"), ("to come", "still to come"))):
        y = 124 + 21 * row
        if number in (12, 13, 14) and look == "to come":
            text = "not part of it"
        box(ax, (22, y), (18, 12), rounding=3, **LOOKS[look] | {"lw": min(LOOKS[look]["lw"], 1.6)})
        ax.text(38, y, text, fontsize=9.5, va="center", color=LETTER)
    _badge(ax, 22, 187, max(number, 1), "passed")
    ax.text(38, 187, "lesson that teaches it", fontsize=9.5, va="center", color=LETTER)


def _alt_text(number: int, looks: dict[str, str]) -> str:
    """The map in words: the model, today's part, and which parts are behind us or still to come."""

    def names(look):
        found = [part.alt for part in PARTS if part.alt and looks[part.name] == look]
        return ", ".join(dict.fromkeys(found))

    start = (
        "Map of the whole Transformer: source words are embedded, get their positions and run through the encoder's "
        "blocks of attention and feed-forward layers; the decoder reads the words written so far and, by "
        "cross-attention, the encoder's output, and gives the next word. Attention is opened into one head: queries, "
        "keys and values, scores, scale, mask, softmax, mixture."
    )
    if number == 0:
        return f"{start} Nothing is lit yet: each part carries the number of the lesson that teaches it, 1 to 11."
    described = {
        11: "softmax and loss, and the arrow by which the gradient goes back through every part",
        12: "the decoder without encoder and cross-attention",
        13: "the encoder alone",
        14: "what is in a block of the GPT, and its positions",
    }
    lit = described.get(number) or names("today")
    passed = f" Behind us: {names('passed')}." if names("passed") and number < 11 else ""
    ahead = f" Still to come: {names('to come')}." if names("to come") and number < 11 else ""
    return f"{start} Lit today, in lesson {number}: {lit} ({TODAY[number]}).{passed}{ahead}"
