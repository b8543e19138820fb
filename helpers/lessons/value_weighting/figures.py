"""Figures of lesson 7: weighted values, a head and its shapes, trained heads, context shifts, memory."""

from collections.abc import Callable

import torch
from matplotlib.patches import Rectangle

from helpers import translator
from helpers.checking.tensor_memory import tensors_alive
from helpers.drawing.charts import MovingBars, bare, bars, heatmap, name_ticks, named, weight_map
from helpers.drawing.colors import (
    BLUE,
    CYCLE,
    GRAY_INK,
    GREEN,
    K_COLOR,
    ORANGE,
    PINK,
    Q_COLOR,
    RED,
    SKY,
    V_COLOR,
    V_MAP,
)
from helpers.drawing.diagrams import flow
from helpers.drawing.style import Picture, new_figure
from helpers.translator import evaluation

JANE = ["jane", "visits", "africa"]


def bag_of_words(weights: torch.Tensor, V: torch.Tensor, tokens: list[str], channels: list[str]) -> Picture:
    """Values (T_k, d_v), the same times their weights (T_k,), and the sum."""
    figure, axes = new_figure(8.6, 2.8, 1, 3, width_ratios=(1, 1, 1), gridspec_kw={"wspace": 0.08})
    parts = weights[:, None] * V
    out = weights @ V
    top = float(V.max())
    weighted = [f"{token} × {weight:g}" for token, weight in zip(tokens, weights.tolist(), strict=True)]
    panels = ("values", V, tokens), ("weight × value", parts, weighted), ("sum", out[None], ["visits"])
    for ax, (title, matrix, rows) in zip(axes, panels, strict=True):
        heatmap(ax, matrix, rows, channels, cmap=V_MAP, vmin=-top, vmax=top, title=title)
    axes[2].set_box_aspect(1 / 3)
    said = named(channels, out, "g")
    listed = named(tokens, weights, "g")
    alt = f"Three values as a heat map, the same times the weights {listed}, and their sum: {said}."
    caption = "Figure 7.1. Values, the same times their weights, and their sum, the context vector of visits."
    return Picture(figure, alt, caption)


def context_range(weights: torch.Tensor, values: torch.Tensor, tokens: list[str]) -> Picture:
    """The values (T, d_v) as they are, and below the range of each channel with the context vector in it."""
    context = weights @ values
    figure, (top, bottom) = new_figure(8.6, 4.6, 2, 1, sharex=True, height_ratios=(1.1, 1))
    rows = [f"{token}, weight {weight:.4f}" for token, weight in zip(tokens, weights.tolist(), strict=True)]
    picture = heatmap(top, values, rows, cmap=V_MAP, numbers=False, title="values, not yet weighted", every=3)
    figure.colorbar(picture, ax=top, shrink=0.9)
    channels = range(values.shape[1])
    low, high = values.amin(dim=0), values.amax(dim=0)
    bottom.bar(channels, (high - low).tolist(), bottom=low.tolist(), color="#E3D3E6", label="range of the six values")
    bottom.plot(channels, context.tolist(), "*", color="black", ms=9, label="context vector of is")
    bottom.set(xlabel="channel of the values", ylim=(float(low.min()) - 0.4, float(high.max()) + 2.2))
    bottom.legend(frameon=False, ncols=2, loc="upper left")
    listed = named(tokens, weights, ".4f")
    first = ", ".join(f"{v:.4f}" for v in context[:4].tolist())
    inside = int(((low <= context) & (context <= high)).sum())
    return Picture(
        figure,
        f"Heat map of six values with {values.shape[1]} channels; weights {listed}. Below, in each channel, a bar from "
        f"smallest to largest value and a star for the context vector, which starts with {first}. The star is in "
        f"its bar in {inside} of {values.shape[1]} channels.",
        "Figure 7.2. Six values and their weighted average, which stays within their range in every channel.",
    )


class Triangle:
    points = torch.tensor([[1.0, 1.0], [5.0, 1.6], [2.2, 4.6]])

    def __init__(self):
        self.figure, (ax, side) = new_figure(8.6, 3.5, 1, 2, width_ratios=(1.6, 1))
        ring = torch.cat([self.points, self.points[:1]])
        ax.fill(ring[:, 0], ring[:, 1], color=SKY, alpha=0.25, lw=0)
        ax.plot(ring[:, 0], ring[:, 1], color=SKY, lw=1)
        self.threads = []
        for token, (px, py), color in zip(JANE, self.points.tolist(), CYCLE, strict=False):
            self.threads += ax.plot([px, px], [py, py], color=color, alpha=0.7)
            ax.plot([px], [py], "o", ms=9, color=color)
            offset = (0, 9 if py > 3 else -17)
            ax.annotate(f"{token} ({px:g}, {py:g})", (px, py), offset, textcoords="offset points", ha="center")
        (self.star,) = ax.plot([0], [0], "*", ms=16, color="black")
        ax.set(xlim=(0, 6), ylim=(0, 5.5), xlabel="channel 0", ylabel="channel 1")
        ax.set_title("values and context vector (star)")
        self.bars = MovingBars(side, JANE, "0.000", color=CYCLE[:3], ylim=(0, 1.12), title="weights")

    def __call__(self, **scores: float) -> Picture:
        weights = torch.softmax(torch.tensor(list(scores.values()), dtype=torch.float64), dim=0)
        x, y = (weights.float() @ self.points).tolist()
        self.star.set_data([x], [y])
        for thread, (px, py), w in zip(self.threads, self.points.tolist(), weights.tolist(), strict=True):
            thread.set(xdata=[px, x], ydata=[py, y], linewidth=0.5 + 5 * w)
        self.bars.show(weights.tolist(), ".3f")
        listed = named(JANE, weights, ".3f")
        alt = "Three values as corners of a triangle: jane (1, 1), visits (5, 1.6), africa (2.2, 4.6). "
        alt += f"With weights {listed} the context vector is at ({x:.2f}, {y:.2f}), inside the triangle."
        return Picture(self.figure, alt, "The context vector never leaves the triangle of its values.")


def head_shapes(B: int, T: int, C: int, width: int) -> Picture:
    figure, ax = new_figure(8.6, 3.3)
    boxes = {
        "x": ((B, T, C), 0.0, 1.0, "white"),
        "queries": ((B, T, width), 2.1, 2.0, Q_COLOR),
        "keys": ((B, T, width), 2.1, 1.0, K_COLOR),
        "values": ((B, T, width), 2.1, 0.0, V_COLOR),
        "scores": ((B, T, T), 4.2, 1.5, BLUE),
        "weights": ((B, T, T), 6.3, 1.5, BLUE),
        "output": ((B, T, width), 8.4, 0.75, V_COLOR),
    }
    arrows = [("x", "queries", "$W_Q$"), ("x", "keys", "$W_K$"), ("x", "values", "$W_V$"), ("queries", "scores", "")]
    arrows += [("keys", "scores", ""), ("scores", "weights", "mask,\nsoftmax")]
    flow(ax, boxes, [*arrows, ("weights", "output", ""), ("values", "output", "")], height=0.66)
    ax.text(3.05, 2.85, "where to attend", color=BLUE, fontsize=12, ha="left")
    ax.text(3.05, -0.36, "what to get", color=V_COLOR, fontsize=12, ha="left")
    bare(ax, xlim=(-0.05, 9.75), ylim=(-0.5, 3.1))
    path = ", ".join(f"{name} {shape}" for name, (shape, *_) in boxes.items())
    alt = f"Diagram of one head with shapes: {path}. x goes through W_Q, W_K and W_V. Queries and keys make scores, "
    alt += "scores make weights (where to attend); weights times values (what to get) make the output."
    return Picture(figure, alt, "Figure 7.3. One attention head with the shape of every tensor.")


def inside_the_translator(sentence: str, head: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """What the last block of the translator's encoder reads, (T, 64), and the weights of one of its heads."""
    return evaluation.read_by_a_head(sentence, translator.NUM_LAYERS - 1, head)


def head_weights(numbers: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Attention weights (T, T) of a head with these parameters on x (T, D)."""
    q, k = (x @ numbers[f"{name}.weight"].T for name in ("W_q", "W_k"))
    return torch.softmax(q @ k.T / q.shape[-1] ** 0.5, dim=-1)


def random_heads(head_class, count: int) -> dict:
    """{"random 1": head_class(64, 16) with its own initialization, ...}; the global generator is left as it was."""
    heads = {}
    with torch.random.fork_rng(devices=[]):
        for seed in range(count):
            torch.manual_seed(seed)
            heads[f"random {seed + 1}"] = head_class(translator.D_MODEL, translator.D_MODEL // translator.NUM_HEADS)
    return heads


def trained_head(numbers: dict[str, torch.Tensor], x: torch.Tensor, found: torch.Tensor, words: list[str]) -> Picture:
    """Weights of a trained head, its values, and the outputs `found` (T, d_head) that a learner's head made."""
    weights, values = head_weights(numbers, x), x @ numbers["W_v.weight"].T
    figure, (left, middle, right) = new_figure(8.6, 2.9, 1, 3, width_ratios=(1.1, 1, 1))
    weight_map(left, weights, words, tilted=True, title="weights", ylabel="query")
    top = float(values.abs().max())
    for ax, rows, title in ((middle, values, "values"), (right, found, "outputs")):
        look = {"cmap": V_MAP, "vmin": -top, "vmax": top, "numbers": False, "every": 5}
        colors = heatmap(ax, rows, words, title=title, xlabel="channel", **look)
    right.set_yticks([])
    figure.colorbar(colors, ax=right, shrink=0.9)
    best = weights.max(dim=-1)
    best_keys = zip(words, best.indices.tolist(), best.values.tolist(), strict=True)
    said = ", ".join(f"{word} attends to {words[j]} ({w:.2f})" for word, j, w in best_keys)
    to_jane, own = torch.cosine_similarity(found[1], values[:2], dim=-1).tolist()
    return Picture(
        figure,
        f"Heat maps of a trained head: its weights, its values and its outputs, 16 channels per word. {said}. "
        f"The output of visits has a cosine of {to_jane:.2f} with the value of jane and {own:.2f} with its own.",
        "Figure 7.4. A trained head of the translator in your AttentionHead. Most words get the previous word's value.",
    )


def shifts(moved: torch.Tensor, numbers: dict[str, torch.Tensor], x: torch.Tensor, words: list[str]) -> Picture:
    """The context shift of each word (T,) in a trained head, next to the head's weights."""
    weights, moved = head_weights(numbers, x), moved.clamp_min(0).tolist()
    figure, (left, right) = new_figure(8.6, 3.5, 1, 2, width_ratios=(1, 1.25))
    bars(left, words, moved, ".2f", across=True, height=0.8)
    left.axvline(1, color=GRAY_INK, ls=":", lw=1)
    left.set(xlim=(0, 1.45), xlabel="1 − cosine (dotted: a right angle)", title="context shift of each word")
    weight_map(right, weights, words, title="attention weights", xlabel="key", ylabel="query")
    listed = named(words, moved)
    best = ", ".join(f"{w} to {words[int(j)]}" for w, j in zip(words, weights.argmax(dim=-1), strict=True))
    return Picture(
        figure,
        f"Context shifts: {listed}. Each word attends most: {best}.",
        "Figure 7.5. A trained head moves articles and adjectives toward their noun, and leaves the nouns unchanged.",
    )


class Search:
    titles = ("Rice in one pot", "Jazz for beginners", "Street food of Hanoi")
    keys = torch.tensor([[3.0, 0, 0], [0, 4, 0], [2, 0, 3]])
    minutes = torch.tensor([10.0, 60.0, 20.0])

    def __init__(self):
        self.figure, (left, self.right) = new_figure(8.6, 2.7, 1, 2, sharey=True)
        look = {"across": True, "height": 0.8}
        self.scores = MovingBars(left, self.titles, "18.0", color=SKY, xlim=(0, 18), title="query · key", **look)
        self.weights = MovingBars(self.right, self.titles, "0.000", xlim=(0, 1.25), **look)
        self.right.set_title("weight: a blend of 00.0 minutes")

    def __call__(self, temperature: float, cooking: float, far: float) -> Picture:
        scores = self.keys @ torch.tensor([cooking, 0.0, far])
        weights = torch.softmax(scores.double() / temperature, dim=0).float()
        blend = float(weights @ self.minutes)
        self.scores.show(scores.tolist(), ".1f")
        self.weights.show(weights.tolist(), ".3f")
        self.right.set_title(f"weight: a blend of {blend:.1f} minutes")
        listed = named(self.titles, weights, ".3f")
        alt = f"Weights at temperature {temperature:.2f}: {listed}. The blend lasts {blend:.1f} minutes."
        caption = "The search returns no single video, but a blend of their lengths with these weights."
        return Picture(self.figure, alt, caption)


def pressure(weights=(0.5, 0.3, 0.15, 0.05), values=(1.0, 3.0, 0.0, 6.0)) -> Picture:
    w, v = torch.tensor(weights), torch.tensor(values)
    mixture = float(w @ v)
    gradient = (-w * (v - mixture)).tolist()
    names = [f"key {j}" for j in range(1, len(weights) + 1)]
    figure, (left, right) = new_figure(8.6, 3.2, 1, 2)
    bars(left, names, v, [f"weight {x:g}" for x in weights], color=V_COLOR, alpha=0.6)
    left.axhline(mixture, color=RED, ls="--", lw=1.5, label=f"output {mixture:.2f}; it should grow")
    left.legend(frameon=False, loc="upper left")
    left.set(title="values of one channel", ylim=(0, 8))
    moves = ["down" if s > 0 else "up" for s in gradient]
    texts = [f"{s:+.2f}\npushed {move}" for s, move in zip(gradient, moves, strict=True)]
    bars(right, names, gradient, texts, color=[ORANGE if s > 0 else BLUE for s in gradient])
    right.axhline(0, color="black", lw=0.8)
    right.set(title="gradient of the loss at the score", ylim=(min(gradient) - 0.24, max(gradient) + 0.24))
    keys = zip(names, weights, values, gradient, moves, strict=True)
    said = (f"{n}: weight {a:g}, value {b:g}, gradient {s:+.2f}, score pushed {move}" for n, a, b, s, move in keys)
    return Picture(
        figure,
        f"One query, four keys, output {mixture:.2f}, and a loss that falls when the output grows. {', '.join(said)}.",
        "Figure 7.6. The output should grow, so the gradient pushes up the scores of keys whose values lie above it.",
    )


class Tiles:
    tokens, width = 24, 4

    def __init__(self):
        T = self.tokens
        self.figure, (self.table, ax) = new_figure(8.6, 3.9, 1, 2, width_ratios=(1, 1))
        self.done = self.table.imshow(torch.zeros(T, T).numpy(), cmap="Blues", vmin=0, vmax=1, extent=(0, T, T, 0))
        self.tile = Rectangle((0, 0), 1, 1, facecolor=ORANGE, edgecolor="black", lw=1.2)
        self.table.add_patch(self.tile)
        self.table.set(xlabel="keys", ylabel="queries", xticks=range(0, T + 1, 4), yticks=range(0, T + 1, 4))
        names = ["all scores\nat once", "one tile\nof scores", "maximum,\nsum, output"]
        look = {"color": [SKY, ORANGE, V_COLOR], "ylim": (0, 660), "title": "values in memory"}
        self.bars = MovingBars(ax, names, "576", **look)

    def __call__(self, step: float, queries: int, keys: int) -> Picture:
        T, across = self.tokens, -(-self.tokens // keys)
        count = across * -(-T // queries)
        now = min(int(step * count), count - 1)
        row, column = divmod(now, across)
        seen = torch.zeros(T, T)
        seen[: row * queries] = 0.35
        seen[row * queries : (row + 1) * queries, : column * keys] = 0.35
        self.done.set_data(seen.numpy())
        high, wide = min(queries, T - row * queries), min(keys, T - column * keys)
        self.tile.set(x=column * keys, y=row * queries, width=wide, height=high)
        held = [T * T, high * wide, high * (2 + self.width)]
        self.bars.show(held, "d")
        self.table.set_title(f"tile {now + 1} of {count}")
        alt = (
            f"A table of {T} queries and {T} keys. Tile {now + 1} of {count}, {high} queries by {wide} keys, is "
            f"computed; the tiles before it are done and forgotten. In memory: {held[1]} scores instead of {held[0]}, "
            f"and {held[2]} running values."
        )
        return Picture(self.figure, alt, "Orange: the tile of scores that is in memory.")


def memory(answers: dict[str, Callable], lengths=(128, 256, 512, 1024, 2048), width: int = 16) -> Picture:
    """Largest tensor that each f(Q, K, V) creates, against T. What is not answered yet is left out."""
    figure, ax = new_figure(7.6, 3.9)
    said = []
    looks = (ORANGE, "o-"), (PINK, "s-"), (GREEN, "^--"), (BLUE, "D:")
    for (name, f), (color, style) in zip(answers.items(), looks, strict=False):
        try:
            numbers = [_largest(f, T, width) for T in lengths]
        except NotImplementedError:
            said.append(f"{name} is not answered yet")
            continue
        except Exception as error:  # a half-finished answer may raise anything; its check says more
            said.append(f"{name} raises {type(error).__name__}")
            continue
        ax.plot(lengths, numbers, style, color=color, label=name, ms=7)
        said.append(f"{name}: {numbers[0]:,} entries at T = {lengths[0]}, {numbers[-1]:,} at T = {lengths[-1]}")
    ax.set(xscale="log", yscale="log", xlabel="tokens T", ylabel="entries of the largest tensor")
    name_ticks(ax, x=lengths)
    ax.legend(frameon=False)
    alt = "Memory against the number of tokens, both on logarithmic axes. " + "; ".join(said) + "."
    caption = "Figure 7.7. The largest intermediate tensor. It grows least if both queries and keys are split."
    return Picture(figure, alt, caption)


def _largest(f: Callable, T: int, width: int) -> int:
    generator = torch.Generator().manual_seed(T)
    Q, K, V = (torch.randn(T, width, generator=generator) for _ in range(3))
    return tensors_alive(f, Q, K, V)[1].largest
