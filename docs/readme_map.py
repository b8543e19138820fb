"""Draws docs/course.webp, the moving picture of the README: the map lights up lesson by lesson.

    python docs/readme_map.py

On the way one piece of each lesson is checked, and one of them twice, wrong and mended. The words are the check's own.
"""

import contextlib
import importlib
import inspect
import io
import re
import textwrap
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import FancyBboxPatch
from PIL import Image

from helpers import check
from helpers.course import course
from helpers.drawing import style
from helpers.drawing.transformer_map import transformer_map

PIXELS = 150  # an inch
STRIP = 2.3  # inches below the map
CODE = "def scaled_scores(Q, K):\n    d_k = Q.shape[-1]\n    return Q @ K.transpose(-2, -1) / {}"
PIECES = {
    1: "embed",
    2: "add_positions",
    3: "attention_scores",
    5: "masked_softmax",
    6: "softmax",
    7: "attention",
    8: "MultiHeadAttention",
    9: "EncoderBlock",
    10: "DecoderBlock",
}
GREEN, RED, INK = "#00694E", "#B03A00", "#222222"
FIRST = (
    "Fifteen lessons, and each lights up\na part of this map. You write it,\n"
    "it is checked, and it runs at once\nin a translator:",
    "jane visits africa in september\n\n    ↓   2 blocks to read, 2 to write,\n        4 heads, 206,146 numbers\n\n"
    "jane visite l' afrique en septembre",
)
LAST = "You write every part. At the end:\njane visits africa in september  →  jane visite l' afrique en septembre"


def said(name: str, code: str, names: dict) -> str:
    """What the check prints for the answer that this code defines."""
    exec(code, names)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(AssertionError):
        check(names[name])
    return _wrapped(printed.getvalue().strip())


def piece(lesson: int) -> tuple[str, str]:
    """A finished block of a lesson: its first line and what it is for, and what the check says of it."""
    block = importlib.import_module(f"helpers.blocks.{course().lesson(str(lesson)).name}")
    answer = getattr(block, PIECES[lesson])
    code = inspect.getsource(answer)
    about = textwrap.wrap(re.split("[:;]|\n\n", inspect.getdoc(answer))[0], 40)
    names = {name: value for name, value in vars(block).items() if not name.startswith("__")} | {"__name__": "answer"}
    return "\n    ".join([code.split("\n")[0], *about]), said(PIECES[lesson], code, names)


def frame(lesson: int, left: str = "", right: str = "", color: str = INK) -> Image.Image:
    """The map at a lesson, with code at the left and the check's words at the right below it."""
    figure = transformer_map(f"{lesson:02}").figure
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + STRIP)
    share = STRIP / (height + STRIP)
    figure.axes[0].set_position((0, share, 1, 1 - share))
    ax = figure.add_axes((0, 0, 1, share))
    ax.set(xlim=(0, 860), ylim=(STRIP * 100, 0))
    ax.axis("off")
    if left:
        box = "round,pad=0,rounding_size=8"
        ax.add_patch(FancyBboxPatch((14, 4), 832, STRIP * 100 - 16, boxstyle=box, fc="#F6F6F6", ec="#D0D0D0"))
    look = {"family": "DejaVu Sans Mono", "va": "center", "linespacing": 1.5}
    ax.text(30, 50 * STRIP - 5, left, fontsize=10, color=INK, **look)
    ax.text(424, 50 * STRIP - 5, right, fontsize=9, color=color, **look)
    canvas = FigureCanvasAgg(figure)
    figure.dpi = PIXELS
    with matplotlib.rc_context(style.RC):
        canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])


def _wrapped(text: str) -> str:
    lines = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        lines += textwrap.wrap(line, 54, subsequent_indent=indent)
    return "\n".join(lines)


def main() -> int:
    wrong, right = (said("scaled_scores", CODE.format(divisor), {}) for divisor in ("d_k", "d_k**0.5"))
    steps = {lesson: (frame(lesson, *piece(lesson), GREEN), 1100) for lesson in PIECES}
    frames = [(frame(0, *FIRST), 3600), *(steps[lesson] for lesson in (1, 2, 3))]
    frames += [(frame(4, CODE.format("d_k"), wrong, RED), 3600)]
    frames += [(frame(4, CODE.format("d_k**0.5"), right, GREEN), 2400)]
    frames += [steps[lesson] for lesson in (5, 6, 7, 8, 9, 10)]
    frames += [(frame(11, LAST), 3600)]
    # Once, and then it rests on the last one: what moves on and on keeps people from reading.
    pictures, times = zip(*frames, strict=True)
    path = Path(__file__).with_name("course.webp")
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=times, loop=1, lossless=True, method=4)
    print(wrong, right, f"{path}: {path.stat().st_size:,} bytes", sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
