"""Figures of lesson 7: weighted values, the shapes of a head, words that context moves, memory."""

from __future__ import annotations

from collections.abc import Callable

import torch
from matplotlib.patches import FancyArrowPatch, Rectangle

from helpers.figures.style import BLUE, CYCLE, GREEN, ORANGE, PINK, RED, SIGNED, SKY, Picture, heatmap, new_figure
from helpers.memory import largest_tensor

JANE = ["jane", "visits", "africa"]


def bag_of_words(weights: torch.Tensor, V: torch.Tensor, tokens: list[str], channels: list[str]) -> Picture:
    """Values (T_k, d_v), the same times their weights (T_k,), and the sum."""
    figure, axes = new_figure(9.4, 2.9, 1, 3, width_ratios=(1, 1, 1), gridspec_kw={"wspace": 0.08})
    parts = weights[:, None] * V
    out = weights @ V
    top = float(V.max())
    named = [f"{token} × {weight:g}" for token, weight in zip(tokens, weights.tolist(), strict=True)]
    for ax, matrix, rows, title in zip(
        axes,
        (V, parts, out[None]),
        (tokens, named, ["visits"]),
        ("values", "times their weights", "added up"),
        strict=True,
    ):
        heatmap(ax, matrix, rows, channels, vmin=0, vmax=top)
        ax.set_title(title)
    axes[2].set_box_aspect(1 / 3)
    said = ", ".join(f"{c} {v:g}" for c, v in zip(channels, out.tolist(), strict=True))
    shares = ", ".join(f"{t} {w:g}" for t, w in zip(tokens, weights.tolist(), strict=True))
    return Picture(figure, f"Three values as a heat map, the same times the weights {shares}, and their sum: {said}.")


def context_parts(weights: torch.Tensor, values: torch.Tensor, tokens: list[str]) -> Picture:
    """Each word's share in the context vector: weight × value by channel, and the sum below."""
    parts = weights[:, None] * values
    context = weights @ values
    figure, (top, bottom) = new_figure(9.4, 4.0, 2, 1, sharex=True, height_ratios=(6, 1.15))
    bound = float(parts.abs().max())
    named = [f"{token} × {weight:.4f}" for token, weight in zip(tokens, weights.tolist(), strict=True)]
    heatmap(top, parts, named, cmap=SIGNED, vmin=-bound, vmax=bound, numbers=False)
    picture = heatmap(bottom, context[None], ["sum"], cmap=SIGNED, vmin=-bound, vmax=bound, numbers=False)
    bottom.set_xticks(range(0, values.shape[1], 3), range(0, values.shape[1], 3))
    bottom.set_xlabel("channel of the values")
    top.set_title("what each word adds to the context vector of is")
    figure.colorbar(picture, ax=[top, bottom], shrink=0.8)
    shares = ", ".join(f"{t} {w:.4f}" for t, w in zip(tokens, weights.tolist(), strict=True))
    first = ", ".join(f"{v:.4f}" for v in context[:4].tolist())
    alt = (
        f"Heat map of weight times value for six words and {values.shape[1]} channels, with the sum in a row below. "
        f"Weights: {shares}. The row of eat has the strongest colors, and the sum looks most like it. "
        f"The context vector starts with {first}."
    )
    return Picture(figure, alt)


def triangle(scores: torch.Tensor) -> Picture:
    """Three values in the plane, the weights softmax(scores) (3,), and the context vector between the values."""
    points = torch.tensor([[1.0, 1.0], [5.0, 1.6], [2.2, 4.6]])
    weights = torch.softmax(scores.double(), dim=0).float()
    context = weights @ points
    figure, (ax, bars) = new_figure(8.6, 3.5, 1, 2, width_ratios=(1.6, 1))
    ring = torch.cat([points, points[:1]])
    ax.fill(ring[:, 0], ring[:, 1], color=SKY, alpha=0.25, lw=0)
    ax.plot(ring[:, 0], ring[:, 1], color=SKY, lw=1)
    for token, (px, py), weight, color in zip(JANE, points.tolist(), weights.tolist(), CYCLE, strict=False):
        ax.plot([px, float(context[0])], [py, float(context[1])], color=color, lw=0.5 + 5 * weight, alpha=0.7)
        ax.plot([px], [py], "o", ms=9, color=color)
        above = py > 3
        ax.annotate(
            f"{token} ({px:g}, {py:g})", (px, py), (0, 9 if above else -17), textcoords="offset points", ha="center"
        )
    ax.plot([float(context[0])], [float(context[1])], "*", ms=16, color="black")
    ax.set(xlim=(0, 6), ylim=(0, 5.5), xlabel="channel 0", ylabel="channel 1", title="values, and their mixture (star)")
    drawn = bars.bar(JANE, weights.tolist(), color=CYCLE[:3])
    bars.bar_label(drawn, [f"{w:.3f}" for w in weights.tolist()], fontsize=10)
    bars.set(ylim=(0, 1.12), title="weights")
    shares = ", ".join(f"{t} {w:.3f}" for t, w in zip(JANE, weights.tolist(), strict=True))
    alt = (
        "Three values as corners of a triangle: jane (1, 1), visits (5, 1.6), africa (2.2, 4.6). "
        f"With weights {shares} the context vector is at ({context[0]:.2f}, {context[1]:.2f}), inside the triangle."
    )
    return Picture(figure, alt)


def head_shapes(B: int, T: int, C: int, width: int) -> Picture:
    """The way of a batch through one head, as boxes with shapes."""
    figure, ax = new_figure(9.6, 3.5)
    boxes = [
        ("x", (B, T, C), 0.0, 1.0, "white"),
        ("queries", (B, T, width), 2.1, 2.0, BLUE),
        ("keys", (B, T, width), 2.1, 1.0, BLUE),
        ("values", (B, T, width), 2.1, 0.0, ORANGE),
        ("scores", (B, T, T), 4.2, 1.5, BLUE),
        ("weights", (B, T, T), 6.3, 1.5, BLUE),
        ("output", (B, T, width), 8.4, 0.75, ORANGE),
    ]
    for name, shape, x, y, color in boxes:
        ax.add_patch(Rectangle((x, y), 1.3, 0.66, facecolor=color, edgecolor="black", lw=0.8, alpha=0.25))
        text = ", ".join(map(str, shape))
        ax.text(x + 0.65, y + 0.33, f"{name}\n({text})", ha="center", va="center", fontsize=11)
    middle = {name: (x, y + 0.33) for name, _, x, y, _ in boxes}
    arrows = [
        ("x", "queries", "$W_Q$"),
        ("x", "keys", "$W_K$"),
        ("x", "values", "$W_V$"),
        ("queries", "scores", ""),
        ("keys", "scores", ""),
        ("scores", "weights", "mask,\nsoftmax"),
        ("weights", "output", ""),
        ("values", "output", ""),
    ]
    for start, end, label in arrows:
        (ax0, ay0), (ax1, ay1) = middle[start], middle[end]
        tail, head = (ax0 + 1.32, ay0), (ax1 - 0.02, ay1)
        ax.add_patch(FancyArrowPatch(tail, head, arrowstyle="-|>", mutation_scale=11, lw=1, color="dimgray"))
        middle_x, middle_y = (tail[0] + head[0]) / 2, (tail[1] + head[1]) / 2
        if label.startswith("$"):  # on the arrow
            ax.text(middle_x, middle_y, label, ha="center", va="center", bbox={"facecolor": "white", "lw": 0, "pad": 1})
        else:
            ax.text(middle_x, middle_y + 0.1, label, ha="center", va="bottom", fontsize=10)
    ax.text(3.05, 2.85, "where to look", color=BLUE, fontsize=12, ha="left")
    ax.text(3.05, -0.36, "what to get", color=RED, fontsize=12, ha="left")
    ax.set(xlim=(-0.05, 9.75), ylim=(-0.5, 3.1))
    ax.axis("off")
    path = ", ".join(f"{name} {shape}" for name, shape, *_ in boxes)
    alt = (
        f"Diagram of one head with shapes: {path}. x goes through W_Q, W_K and W_V. Queries and keys make scores, "
        "scores make weights (where to look); weights times values (what to get) make the output."
    )
    return Picture(figure, alt)


def bank() -> Picture:
    """The vector of bank before and after attention, in two phrases."""
    bank_before, neighbors = torch.tensor([1.0, 1.0]), {"river": (3.0, 0.0), "loan": (0.0, 3.0)}
    figure, axes = new_figure(8.2, 3.7, 1, 2, sharey=True)
    said = []
    for ax, (word, value) in zip(axes, neighbors.items(), strict=True):
        other = torch.tensor(value)
        bank_after, other_after = 0.5 * (bank_before + other), 0.9 * other + 0.1 * bank_before
        shift = float(1 - torch.cosine_similarity(bank_before, bank_after, dim=0))
        small = float(1 - torch.cosine_similarity(other, other_after, dim=0))
        for vector, color, style in (
            (bank_before, GREEN, "--"),
            (bank_after, GREEN, "-"),
            (other, PINK, "--"),
            (other_after, PINK, "-"),
        ):
            end = tuple(vector.tolist())
            ax.add_patch(
                FancyArrowPatch(
                    (0, 0),
                    end,
                    arrowstyle="-|>",
                    mutation_scale=12,
                    lw=1.8,
                    color=color,
                    linestyle=style,
                    shrinkA=0,
                    shrinkB=0,
                )
            )
        x, y = bank_after.tolist()
        ax.text(x + 0.08, y + 0.08, f"bank, shift {shift:.3f}", color=GREEN)
        ax.text(1.06, 1.06, "bank before", color=GREEN)
        place = (1.7, -0.33) if word == "river" else (0.16, 2.72)
        ax.text(*place, f"{word}, shift {small:.4f}", color=PINK)
        ax.set(xlim=(-0.25, 3.4), ylim=(-0.45, 3.2), xlabel="water", title=f"{word} bank")
        ax.set_aspect("equal")
        said.append(f"In {word} bank, bank turns toward {word} by {shift:.3f} and {word} by {small:.4f}")
    axes[0].set_ylabel("money")
    return Picture(
        figure,
        "Two planes with the channels water and money; dashed before, solid after attention. " + ". ".join(said) + ".",
    )


def shifts(before: torch.Tensor, after: torch.Tensor, weights: torch.Tensor, tokens: list[str]) -> Picture:
    """Bars of one minus cosine (T,) beside the weights (T, T) that moved the words."""
    moved = (1 - torch.cosine_similarity(before, after, dim=-1)).clamp_min(0).tolist()
    figure, (left, right) = new_figure(9.4, 3.4, 1, 2, width_ratios=(1, 1.25))
    bars = left.barh(tokens, moved, color=BLUE)
    left.bar_label(bars, [f"{m:.2f}" for m in moved], padding=3, fontsize=10)
    left.invert_yaxis()
    left.set(xlim=(0, 1.35), xlabel="1 − cosine of value and context", title="how far each word moved")
    heatmap(right, weights, tokens, tokens, vmin=0, vmax=1)
    right.set(title="where it looked", xlabel="key", ylabel="query")
    shares = ", ".join(f"{t} {m:.2f}" for t, m in zip(tokens, moved, strict=True))
    own = ", ".join(f"{t} {w:.2f}" for t, w in zip(tokens, weights.diagonal().tolist(), strict=True))
    return Picture(figure, f"How far each word moved: {shares}. Its weight on itself: {own}.")


def search_shares(query: torch.Tensor, temperature: float) -> Picture:
    """The video search of lesson 3 as attention: shares of three videos, and the blend of their minutes."""
    titles = ["Rice in one pot", "Jazz for beginners", "Street food of Hanoi"]
    keys = torch.tensor([[3.0, 0, 0], [0, 4, 0], [2, 0, 3]])
    minutes = torch.tensor([10.0, 60.0, 20.0])
    scores = keys @ query
    weights = torch.softmax(scores.double() / temperature, dim=0).float()
    blend = float(weights @ minutes)
    figure, (left, right) = new_figure(9.2, 2.9, 1, 2, sharey=True)
    for ax, numbers, color, digits, title in (
        (left, scores.tolist(), SKY, 1, "query · key"),
        (right, weights.tolist(), BLUE, 3, "share"),
    ):
        bars = ax.barh(titles, numbers, color=color)
        ax.bar_label(bars, [f"{n:.{digits}f}" for n in numbers], padding=3)
        ax.set_title(title)
    left.set_xlim(0, 18)
    right.set_xlim(0, 1.2)
    left.invert_yaxis()
    right.set_title(f"share at temperature {temperature:.2f}: {blend:.1f} minutes")
    shares = ", ".join(f"{t} {w:.3f}" for t, w in zip(titles, weights.tolist(), strict=True))
    return Picture(figure, f"Shares at temperature {temperature:.2f}: {shares}. The blend lasts {blend:.1f} minutes.")


def pressure(weights=(0.5, 0.3, 0.15, 0.05), values=(1.0, 3.0, 0.0, 6.0)) -> Picture:
    """The gradient at the scores of one query whose output should grow: weight × (value − mixture)."""
    w, v = torch.tensor(weights), torch.tensor(values)
    mixture = float(w @ v)
    push = (w * (v - mixture)).tolist()
    names = [f"key {j}" for j in range(1, len(weights) + 1)]
    figure, (left, right) = new_figure(8.8, 3.2, 1, 2)
    bars = left.bar(names, v.tolist(), color=SKY)
    left.bar_label(bars, [f"weight {x:g}" for x in weights], fontsize=10)
    left.axhline(mixture, color=RED, ls="--", lw=1.5, label=f"mixture {mixture:.2f}")
    left.legend(frameon=False, loc="upper left")
    left.set(title="values of one channel", ylim=(0, 7))
    colors = [BLUE if p > 0 else ORANGE for p in push]
    bars = right.bar(names, push, color=colors)
    right.bar_label(bars, [f"{p:+.2f}" for p in push], padding=2)
    right.axhline(0, color="black", lw=0.8)
    right.set(title="gradient at the score", ylim=(min(push) - 0.15, max(push) + 0.15))
    pairs = ", ".join(
        f"{n}: weight {a:g}, value {b:g}, gradient {p:+.2f}"
        for n, a, b, p in zip(names, weights, values, push, strict=True)
    )
    return Picture(figure, f"One query, four keys, mixture {mixture:.2f}. {pairs}. Keys above the mixture gain.")


def memory(answers: dict[str, Callable], lengths=(128, 256, 512, 1024, 2048), width: int = 16) -> Picture:
    """Largest tensor that comes into being in each f(Q, K, V), against T. What is not answered yet is left out."""
    figure, ax = new_figure(6.8, 3.9)
    said = []
    for (name, f), color, style in zip(answers.items(), (ORANGE, GREEN, BLUE), ("o-", "s-", "^--"), strict=False):
        try:
            numbers = [_largest(f, T, width) for T in lengths]
        except NotImplementedError:
            said.append(f"{name} is not answered yet")
            continue
        except Exception as error:  # a half-finished answer may raise anything; its check says more
            said.append(f"{name} raises {type(error).__name__}")
            continue
        ax.plot(lengths, numbers, style, color=color, label=name, ms=7)
        said.append(f"{name}: {numbers[0]:,} numbers at T = {lengths[0]}, {numbers[-1]:,} at T = {lengths[-1]}")
    ax.set(xscale="log", yscale="log", xlabel="tokens T", ylabel="numbers in the largest tensor")
    ax.set_xticks(lengths, lengths)
    ax.minorticks_off()
    ax.legend(frameon=False)
    return Picture(figure, "Memory against the number of tokens, both on logarithmic axes. " + "; ".join(said) + ".")


def _largest(f: Callable, T: int, width: int) -> int:
    generator = torch.Generator().manual_seed(T)
    Q, K, V = (torch.randn(T, width, generator=generator) for _ in range(3))
    return largest_tensor(f, Q, K, V)[1]
