"""Figures of lesson 0: two recurrent translators, broadcasting, the order of memory, and a Jacobian."""

import functools

import numpy as np
import torch
from matplotlib.collections import PatchCollection, PathCollection
from matplotlib.colors import to_rgba
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

from helpers.drawing.charts import bare, frame_cells, heatmap, without_spines
from helpers.drawing.colors import BLACK, BLUE, CYCLE, GREEN, ORANGE, RED
from helpers.drawing.diagrams import arrow
from helpers.drawing.measured import measured
from helpers.drawing.style import Picture, new_figure
from helpers.widgets.answered import answered
from helpers.widgets.panel import keeping

TOKENS = ["jane", "visits", "africa"]
WHY_ATTENTION = measured("start_here", "why_attention")  # made by bench/why_attention.py
MEMORY = "Each color is a token. Transpose keeps the tokens together, and view may mix them."


def why_attention() -> Picture:
    lengths = WHY_ATTENTION["lengths"]
    figure, ax = new_figure(7.6, 3.6)
    details = []
    kinds = WHY_ATTENTION["accuracy"].items()
    for (kind, rows), color, marker, above in zip(kinds, (ORANGE, BLUE), "so", (-15, 7), strict=True):
        percent = 100 * np.array(rows)  # (seeds, lengths)
        mean = percent.mean(axis=0)  # (lengths,)
        ax.plot(lengths, percent.T, color=color, alpha=0.3, linewidth=1)
        ax.plot(lengths, mean, color=color, marker=marker, linewidth=2.5, label=kind)
        for length, value in zip(lengths[::2], mean[::2], strict=True):
            ax.annotate(f"{value:.0f}", (length, value), (0, above), "data", "offset points", ha="center", fontsize=9)
        details.append(f"with {kind} " + ", ".join(f"{value:.0f}" for value in mean))
    ax.set(xlabel="English words in the sentence", ylabel="translated exactly (%)", ylim=(-12, 112), xticks=lengths)
    ax.legend(frameon=False, loc="lower left")
    seeds = len(next(iter(WHY_ATTENTION["accuracy"].values())))
    alt = f"Percentage of unseen sentences translated exactly, by length from {lengths[0]} to {lengths[-1]} words, "
    alt += f"mean of {seeds} training runs: {'; '.join(details)}."
    caption = "Figure 0.1. With one vector for the sentence, accuracy falls with length; with attention it barely does."
    return Picture(figure, alt, caption)


def outer_sum_picture() -> Picture:
    column = torch.tensor([[10.0], [20.0], [30.0]])  # (3, 1)
    row = torch.tensor([[1.0, 2.0, 3.0, 4.0]])  # (1, 4)
    figure, axes = new_figure(8.2, 2.6, columns=5, width_ratios=[1, 0.35, 4, 0.35, 4])
    pieces = [(axes[0], column, "(3, 1)"), (axes[2], row, "(1, 4)"), (axes[4], column + row, "(3, 4)")]
    for ax, values, title in pieces:
        heatmap(ax, values, [""] * len(values), [""] * values.shape[1], digits=0, vmin=0, vmax=60, title=title)
    axes[2].set_box_aspect(1 / 4)
    _signs(axes, "+=")
    alt = "A column of shape (3, 1) holding 10, 20, 30 plus a row of shape (1, 4) holding 1, 2, 3, 4 "
    alt += "gives a table of shape (3, 4): 11 12 13 14, then 21 22 23 24, then 31 32 33 34."
    caption = "Figure 0.2. Broadcasting fills the table: the column is repeated to the right, the row downward."
    return Picture(figure, alt, caption)


def _signs(axes, signs: str) -> None:
    """Draw the signs of a calculation, each on the axes between two tables."""
    for ax, sign in zip(axes[1::2], signs, strict=True):
        ax.axis("off")
        ax.text(0.5, 0.5, sign, ha="center", va="center", fontsize=18, transform=ax.transAxes)


def memory_order():
    """A function (tokens, width) that draws the tensor 0, 1, 2, ... of this shape, its transpose and its view.

    The last two have equal shapes but different entries; each row of the tensor has its own color. To redraw without
    delay, the figure is kept, and in each table all cells are one artist and all numbers another.
    """
    figure, above = new_figure(8.4, 3.9)
    figure.set_layout_engine("none")  # the same margins for all shapes, with space for words on the left
    margins = {"left": 0.08, "right": 0.99, "top": 0.92, "bottom": 0.08, "wspace": 0.25, "hspace": 0.3}
    grid = figure.add_gridspec(2, 3, height_ratios=[1, 4], **margins)
    above.set_subplotspec(grid[0, :])
    axes = [figure.add_subplot(grid[1, column]) for column in range(3)]
    for ax in (above, *axes):
        ax.set_aspect("equal")
        without_spines(ax)
    bare(above, title="in memory: one line, row after row")
    artists: list = []

    def draw(tokens: int, width: int, caption: str = MEMORY) -> Picture:
        x = torch.arange(tokens * width).view(tokens, width)  # (tokens, width)
        transposed, viewed = x.transpose(0, 1), x.view(width, tokens)  # (width, tokens), (width, tokens)
        while artists:
            artists.pop().remove()
        artists.extend(_cells(above, x.view(1, -1), width, 0.5, BLACK))
        names = TOKENS[:tokens] if tokens <= len(TOKENS) else [f"t{t}" for t in range(tokens)]
        features = [f"f{j}" for j in range(width)]
        sides = (names, features), (features, names), (features, names)
        tables = (x, "x"), (transposed, "transpose"), (viewed, "view")
        for ax, (table, name), (rows, columns) in zip(axes, tables, sides, strict=True):
            artists.extend(_cells(ax, table, width, 0.47, "none"))
            ax.set_title(f"{name}  {tuple(table.shape)}")
            ax.set_yticks(range(len(rows)), rows)
            ax.set_xticks(range(len(columns)), columns)
        verdict = "here the two tables agree" if torch.equal(transposed, viewed) else "its columns mix the tokens"
        alt = f"x, with one row and one color for each token, is {x.tolist()}. Its transpose, {transposed.tolist()}, "
        alt += f"has one color in each column, so every column is still one token. Its view, {viewed.tolist()}, cuts "
        alt += f"the same line of memory into rows of {tokens}: {verdict}."
        return Picture(figure, alt, caption)

    return keeping(figure, draw)


def transpose_against_view() -> Picture:
    cuts = "Transpose swaps the axes and keeps each token together; view cuts the same line at other points."
    return memory_order()(3, 2, f"Figure 0.3. {cuts}")


def _cells(ax, table: torch.Tensor, width: int, half: float, edge: str):
    """Draw a table of whole numbers on boxes in the colors of the tokens they belong to. Returns the two artists."""
    rows, columns = table.shape
    centers, numbers = [(j, i) for i in range(rows) for j in range(columns)], table.flatten().tolist()
    colors = [to_rgba(CYCLE[n // width % len(CYCLE)], 0.35) for n in numbers]
    boxes = [Rectangle((x - half, y - half), 2 * half, 2 * half) for x, y in centers]
    boxes = PatchCollection(boxes, facecolor=colors, edgecolor=edge, linewidth=0.5)
    look = {"offset_transform": ax.transData, "facecolor": BLACK, "linewidth": 0}
    digits = PathCollection([_number(n) for n in numbers], offsets=centers, **look)
    digits.set_transform(Affine2D().scale(1 / 72) + ax.figure.dpi_scale_trans)  # paths in points
    ax.set(xlim=(-0.55, columns - 0.45), ylim=(rows - 0.45, -0.55))  # space for the edges of the boxes
    return ax.add_collection(boxes, autolim=False), ax.add_collection(digits, autolim=False)


@functools.lru_cache(maxsize=32)
def _number(n: int):
    """The outline of a number in 11-point type, centered at (0, 0)."""
    path = TextPath((0, 0), str(n), size=11, prop=FontProperties(family="DejaVu Sans"))
    box = path.get_extents()
    return path.transformed(Affine2D().translate(-(box.x0 + box.x1) / 2, -(box.y0 + box.y1) / 2))


def jacobian_picture(step: float = 0.5) -> Picture:
    """A small square around x = (2, 3), its image under f, and the parallelogram that the Jacobian predicts.

    f(x) = (x1 x2, x1^2 + x2), J = [[3, 2], [4, 1]] at (2, 3).
    """
    start, jacobian = np.array([2.0, 3.0]), np.array([[3.0, 2.0], [4.0, 1.0]])  # (2,), (2, 2)
    corners = step * np.array([[0, 1, 1, 0, 0], [0, 0, 1, 1, 0]])
    outline = np.stack([np.interp(np.linspace(0, 4, 161), range(5), side) for side in corners], axis=1)  # (161, 2)
    x1, x2 = points = (start + outline).T  # (161,) each
    image = np.stack([x1 * x2, x1**2 + x2])  # (2, 161)
    predicted = np.array([6.0, 7.0]) + outline @ jacobian.T  # (161, 2)

    figure, (left, right) = new_figure(8.4, 3.9, columns=2)
    left.fill(*points, color=BLUE, alpha=0.15)
    left.plot(*points, color=BLACK, linewidth=1)
    right.fill(*image, color=BLUE, alpha=0.15)
    right.plot(*image, color=BLACK, linewidth=1, label="image of the square under f")
    right.plot(*predicted.T, color=BLACK, linestyle="--", linewidth=1, label="prediction of J")
    for ax, origin, columns in ((left, start, np.eye(2)), (right, np.array([6.0, 7.0]), jacobian)):
        for k, color in ((0, RED), (1, GREEN)):
            arrow(ax, origin, origin + step * columns[:, k], color)
        ax.plot(*origin, "o", color=BLACK)
    left.text(2.25, 2.96, "step in $x_1$", color=RED, ha="center", va="top")
    left.text(1.97, 3.25, "step in $x_2$", color=GREEN, ha="right", va="center")
    left.set(xlim=(1.65, 2.65), ylim=(2.8, 3.65), xlabel="$x_1$", ylabel="$x_2$", title="around $x = (2, 3)$")
    right.set(xlabel="$y_1 = x_1 x_2$", ylabel="$y_2 = x_1^2 + x_2$", title="around $f(x) = (6, 7)$", ylim=(6.8, 10.9))
    right.text(6.75, 8.35, "along (3, 4)", color=RED, ha="right")
    right.text(6.75, 7.15, "along (2, 1)", color=GREEN, ha="left")
    right.legend(frameon=False, loc="upper left", fontsize=9)
    alt = f"Left: a square of side {step:g} at x = (2, 3). Right: its image under f, which starts at (6, 7). The step "
    alt += "in x1 becomes an arrow along (3, 4), the first column of J, and the step in x2 an arrow along (2, 1), the "
    alt += "second column. The parallelogram of the two arrows lies on the curved image near (6, 7) and leaves it "
    alt += f"farther out: J predicts the far corner at ({6 + 5 * step:g}, {7 + 5 * step:g}), f sends it to "
    alt += f"({(2 + step) * (3 + step):g}, {(2 + step) ** 2 + 3 + step:g})."
    caption = "Figure 0.6. Near the point, f does what its Jacobian says; farther out it curves away."
    return Picture(figure, alt, caption)


def broadcast_picture(a: tuple[int, ...], b: tuple[int, ...]) -> Picture:
    rank = max(len(a), len(b), 1)
    padded = [(None,) * (rank - len(shape)) + tuple(shape) for shape in (a, b)]
    pairs = [(m or 1, n or 1) for m, n in zip(*padded, strict=True)]
    result = [max(m, n) if m == n or 1 in (m, n) else None for m, n in pairs]
    fits = None not in result
    figure, ax = new_figure(6.4, 2.7)
    for row, (name, sizes) in enumerate((("a", padded[0]), ("b", padded[1]), ("a + b", result))):
        ax.text(-0.9, -row, name, ha="right", va="center", fontsize=13, family="monospace")
        for axis, size in enumerate(sizes):
            _shape_box(ax, axis, row, size, result[axis], fits)
    ax.plot([-0.6, rank - 0.4], [-1.5, -1.5], color=BLACK, linewidth=1)
    bare(ax, xlim=(-2.2, max(rank, 4) - 0.3), ylim=(-2.7, 0.7))
    verdict = f"a + b has shape {tuple(result)}" if fits else "these shapes do not fit: a + b raises RuntimeError"
    if not a and not b:
        verdict = "a + b has shape (): one number"
    ax.set_title(verdict, color=BLACK if fits else RED)
    alt = f"Shape {tuple(a)} above shape {tuple(b)}, set flush right: {verdict}."
    return Picture(figure, alt, "Dashed: a size of 1 that is stretched. Dotted: an axis that is added in front.")


def _shape_box(ax, axis, row, size, outcome, fits):
    """Draw one size in a box, dashed where broadcasting stretches the axis, dotted where it adds it, red in a clash."""
    clash = outcome is None
    if row == 2 and clash:
        text, color, style = "✗", RED, "-"
    elif row < 2 and size is None:
        text, color, style = "1", "#999999", ":"
    else:
        stretched = row < 2 and size == 1 and outcome not in (1, None)
        text, color, style = str(size), ORANGE if stretched else RED if clash else BLUE, "--" if stretched else "-"
    if row == 2 and not fits and not clash:
        color = "#999999"
    frame = {"boxstyle": "square,pad=0.45", "facecolor": "white", "edgecolor": color, "linestyle": style}
    look = {"ha": "center", "va": "center", "fontsize": 13, "family": "monospace"}
    ax.text(axis, -row, text, color=color, bbox=frame, **look)


def picked_entries(x: torch.Tensor, index: torch.Tensor, tokens: list[str]) -> Picture:
    """x (T, V) with the entry that index (T,) selects in each row, and the result of plain indexing, (T, T)."""
    figure, (left, right) = new_figure(7.6, 2.5, columns=2, width_ratios=[x.shape[1], len(index)])
    look = {"cmap": "Greys", "vmin": -6, "vmax": 18, "digits": 0, "xlabel": "column"}
    heatmap(left, x, tokens, title="x: one entry from each row", **look)
    heatmap(right, x[..., index], tokens, index.tolist(), title="x[..., index]", **look)
    frame_cells(left, enumerate(index.tolist()), BLUE)
    frame_cells(right, ((t, t) for t in range(len(index))), BLUE)
    picked = x.gather(-1, index[:, None])[:, 0]
    alt = "Left: the table x, with the entry that each row's own index names in a frame: "
    alt += f"{', '.join(f'{v:g} for {token}' for v, token in zip(picked.tolist(), tokens, strict=True))}. Right: what "
    alt += "plain indexing gives, every index in every row; the wanted entries are on its diagonal."
    caption = "Figure 0.5. The entries that we want are framed. Plain indexing returns them on the diagonal, among "
    caption += "others."
    return Picture(figure, alt, caption)


def row_times_jacobian() -> Picture:
    g, jacobian = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 2.0], [4.0, 1.0]])  # (1, 2), (2, 2)
    figure, axes = new_figure(7.6, 2.3, columns=5, width_ratios=[2, 0.4, 2, 0.4, 2])
    _signs(axes, "×=")
    outputs, inputs = ["$f_1$", "$f_2$"], ["$x_1$", "$x_2$"]
    tables = (g, ["g"], outputs), (jacobian, outputs, inputs), (g @ jacobian, ["gradient"], inputs)
    titles = "at the outputs", "Jacobian", "at the inputs"
    for ax, (table, rows, columns), title in zip(axes[::2], tables, titles, strict=True):
        heatmap(ax, table, rows, columns, vmin=0, vmax=22, digits=0, title=title, box_aspect=len(rows) / 2)
    alt = "The row (1, 2), the gradient at the two outputs, times the Jacobian with rows (3, 2) and (4, 1) "
    alt += "gives the row (11, 4), the gradient at the two inputs."
    return Picture(figure, alt, "Figure 0.4. One step of backpropagation: a row vector times a Jacobian.")


@answered
def compare_columns(swap_last_two) -> None:
    """Print the columns of a table of three tokens after the view of Informer and after the learner's function."""
    tokens = torch.tensor([[10.0, 11.0], [20.0, 21.0], [30.0, 31.0]])  # (T, D): token 1, 2 and 3
    for name, table in (("Informer", tokens.view(2, 3)), ("yours", swap_last_two(tokens))):
        print(f"{name:<10}columns:", ",  ".join(" ".join(f"{x:g}" for x in column) for column in table.mT.tolist()))
