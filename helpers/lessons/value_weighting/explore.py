"""Explorers of lesson 7: an average of three values, a search engine that returns a blend, and tiles of scores."""

import torch
from matplotlib.patches import Rectangle

from helpers.drawing.charts import MovingBars, named
from helpers.drawing.colors import CYCLE, ORANGE, SKY, V_COLOR
from helpers.drawing.style import Picture, new_figure
from helpers.lessons.value_weighting.figures import JANE
from helpers.widgets.panel import choice, decimal, keeping, panel, powers


def mixing():
    points = torch.tensor([[1.0, 1.0], [5.0, 1.6], [2.2, 4.6]])
    figure, (ax, side) = new_figure(8.6, 3.5, 1, 2, width_ratios=(1.6, 1))
    ring = torch.cat([points, points[:1]])
    ax.fill(*ring.T, color=SKY, alpha=0.25, lw=0)
    ax.plot(*ring.T, color=SKY, lw=1)
    lines = []
    for token, (px, py), color in zip(JANE, points.tolist(), CYCLE, strict=False):
        lines += ax.plot([px, px], [py, py], color=color, alpha=0.7)
        ax.plot([px], [py], "o", ms=9, color=color)
        offset = (0, 9 if py > 3 else -17)
        ax.annotate(f"{token} ({px:g}, {py:g})", (px, py), offset, textcoords="offset points", ha="center")
    (star,) = ax.plot([0], [0], "*", ms=16, color="black")
    ax.set(xlim=(0, 6), ylim=(0, 5.5), xlabel="channel 0", ylabel="channel 1", title="values and context vector (star)")
    bars = MovingBars(side, JANE, "0.000", color=CYCLE[:3], ylim=(0, 1.12), title="weights")

    def draw(**scores: float) -> Picture:
        weights = torch.softmax(torch.tensor(list(scores.values()), dtype=torch.float64), dim=0)
        x, y = (weights.float() @ points).tolist()
        star.set_data([x], [y])
        for line, (px, py), w in zip(lines, points.tolist(), weights.tolist(), strict=True):
            line.set(xdata=[px, x], ydata=[py, y], linewidth=0.5 + 5 * w)
        bars.show(weights.tolist(), ".3f")
        alt = "Three values as corners of a triangle: jane (1, 1), visits (5, 1.6), africa (2.2, 4.6). With weights "
        alt += f"{named(JANE, weights, '.3f')} the context vector is at ({x:.2f}, {y:.2f}), inside the triangle."
        return Picture(figure, alt, "The context vector never leaves the triangle of its values.")

    starts = zip(JANE, (0.0, 0.0, 0.75), strict=True)
    sliders = {name: decimal(f"score of {name}", start, -6, 6, 0.25) for name, start in starts}
    panel(keeping(figure, draw), **sliders)


def video_search():
    titles = "Rice in one pot", "Jazz for beginners", "Street food of Hanoi"
    keys = torch.tensor([[3.0, 0, 0], [0, 4, 0], [2, 0, 3]])
    figure, (left, right) = new_figure(8.6, 2.7, 1, 2, sharey=True)
    look = {"across": True, "height": 0.8}
    score_bars = MovingBars(left, titles, "18.0", color=SKY, xlim=(0, 18), title="query · key", **look)
    weight_bars = MovingBars(right, titles, "0.000", xlim=(0, 1.25), title="weight: a blend of 00.0 minutes", **look)

    def draw(temperature: float, cooking: float, far: float) -> Picture:
        scores = keys @ torch.tensor([cooking, 0.0, far])
        weights = torch.softmax(scores.double() / temperature, dim=0).float()
        blend = float(weights @ torch.tensor([10.0, 60.0, 20.0]))  # minutes
        score_bars.show(scores.tolist(), ".1f")
        weight_bars.show(weights.tolist(), ".3f")
        right.set_title(f"weight: a blend of {blend:.1f} minutes")
        alt = f"Weights at temperature {temperature:.2f}: {named(titles, weights, '.3f')}. "
        alt += f"The blend lasts {blend:.1f} minutes."
        caption = "The search returns no single video, but a blend of their lengths with these weights."
        return Picture(figure, alt, caption)

    cooking, far = decimal("query: cooking", 2.0, 0, 3, 0.1), decimal("query: far away", 1.0, 0, 3, 0.1)
    panel(keeping(figure, draw), temperature=powers("temperature", 1.0, -1, 2, 0.01), cooking=cooking, far=far)


def tiles():
    T, width = 24, 4  # number of tokens, and of channels of a value
    figure, (table, side) = new_figure(8.6, 3.9, 1, 2)
    done = table.imshow(torch.zeros(T, T).numpy(), cmap="Blues", vmin=0, vmax=1, extent=(0, T, T, 0))
    tile = table.add_patch(Rectangle((0, 0), 1, 1, facecolor=ORANGE, edgecolor="black", lw=1.2))
    table.set(xlabel="keys", ylabel="queries", xticks=range(0, T + 1, 4), yticks=range(0, T + 1, 4))
    names = "all scores\nat once", "one tile\nof scores", "maximum,\nsum, output"
    look = {"color": [SKY, ORANGE, V_COLOR], "ylim": (0, 660), "title": "values in memory"}
    bars = MovingBars(side, names, "576", **look)

    def draw(step: float, queries: int, keys: int) -> Picture:
        columns = -(-T // keys)
        count = columns * -(-T // queries)
        current = min(int(step * count), count - 1)
        row, column = divmod(current, columns)
        computed = torch.zeros(T, T)
        computed[: row * queries] = 0.35
        computed[row * queries : (row + 1) * queries, : column * keys] = 0.35
        done.set_data(computed.numpy())
        height, tile_width = min(queries, T - row * queries), min(keys, T - column * keys)
        tile.set(x=column * keys, y=row * queries, width=tile_width, height=height)
        stored = [T * T, height * tile_width, height * (2 + width)]
        bars.show(stored, "d")
        table.set_title(f"tile {current + 1} of {count}")
        alt = f"A table of {T} queries and {T} keys. Tile {current + 1} of {count}, {height} queries by {tile_width} "
        alt += f"keys, is computed; the tiles before it are done and forgotten. In memory: {stored[1]} scores instead "
        alt += f"of {stored[0]}, and {stored[2]} running values."
        return Picture(figure, alt, "Orange: the tile of scores that is in memory.")

    sides = [4, 6, 8, 12, 24]
    queries, keys = choice("queries in a tile", sides, 8), choice("keys in a tile", sides, 6)
    step = decimal("progress", 0.6, 0, 1, 0.1, readout_format=".0%")
    panel(keeping(figure, draw), step=step, queries=queries, keys=keys)
