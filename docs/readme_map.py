"""Draws docs/course.webp, the moving picture of the README: the map lights up lesson by lesson.

    python docs/readme_map.py

On the way one answer is checked twice, wrong and mended. The check's words are what it really says to the two.
"""

import contextlib
import io
import textwrap
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import FancyBboxPatch
from PIL import Image

from helpers import check
from helpers.figures import style
from helpers.figures.transformer_map import transformer_map

PIXELS = 150  # an inch
STRIP = 2.3  # inches below the map
CODE = "def scaled_scores(Q, K):\n    d_k = Q.shape[-1]\n    return Q @ K.transpose(-2, -1) / {}"
GREEN, RED, INK = "#00694E", "#B03A00", "#222222"
LAST = "You write every part. At the end:\njane visits africa in september  →  jane visite l' afrique en septembre"


def said(divisor: str) -> str:
    """What the check prints for the answer with this divisor."""
    names: dict = {}
    exec(CODE.format(divisor), names)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(AssertionError):
        check(names["scaled_scores"])
    return printed.getvalue().strip()


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
    wrong, right = (_wrapped(said(divisor)) for divisor in ("d_k", "d_k**0.5"))
    frames = [(frame(0), 900)]
    frames += [(frame(lesson), 600) for lesson in (1, 2, 3)]
    frames += [(frame(4, CODE.format("d_k"), wrong, RED), 3600)]
    frames += [(frame(4, CODE.format("d_k**0.5"), right, GREEN), 2400)]
    frames += [(frame(lesson), 600) for lesson in (5, 6, 7, 8, 9, 10)]
    frames += [(frame(11, LAST), 3600)]
    pictures, times = zip(*frames, strict=True)
    path = Path(__file__).with_name("course.webp")
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=times, loop=0, lossless=True, method=4)
    print(wrong, right, f"{path}: {path.stat().st_size:,} bytes", sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
