"""Figures of lesson 7: weighted values, the shapes in a head, trained heads, context shifts, and memory."""

from collections.abc import Callable

import torch

from helpers import translator
from helpers.checking.tensor_memory import tensors_alive
from helpers.drawing.charts import bare, bars, heatmap, name_ticks, named, weight_map
from helpers.drawing.colors import BLUE, GRAY_INK, GREEN, K_COLOR, ORANGE, PINK, Q_COLOR, RED, V_COLOR, V_MAP
from helpers.drawing.diagrams import flow
from helpers.drawing.style import Picture, new_figure
from helpers.translator import evaluation

JANE = ["jane", "visits", "africa"]


def bag_of_words(weights: torch.Tensor, V: torch.Tensor, tokens: list[str], channels: list[str]) -> Picture:
    """Values (T_k, d_v), the same values times their weights (T_k,), and the sum."""
    figure, axes = new_figure(8.6, 2.8, 1, 3, width_ratios=(1, 1, 1), gridspec_kw={"wspace": 0.08})
    parts = weights[:, None] * V
    out = weights @ V
    top = float(V.max())
    weighted = [f"{token} × {weight:g}" for token, weight in zip(tokens, weights.tolist(), strict=True)]
    panels = ("values", V, tokens), ("weight × value", parts, weighted), ("sum", out[None], ["visits"])
    for ax, (title, matrix, rows) in zip(axes, panels, strict=True):
        heatmap(ax, matrix, rows, channels, cmap=V_MAP, vmin=-top, vmax=top, title=title)
    axes[2].set_box_aspect(1 / 3)
    details = named(channels, out, "g")
    listed = named(tokens, weights, "g")
    alt = f"Three values as a heat map, the values times the weights {listed}, and the sum: {details}."
    caption = "Figure 7.1. Values, the values times their weights, and the sum, the context vector of visits."
    return Picture(figure, alt, caption)


def context_range(weights: torch.Tensor, values: torch.Tensor, tokens: list[str]) -> Picture:
    """The values (T, d_v), and below them the range of each channel with the context vector in it."""
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
    alt = f"Heat map of six values with {values.shape[1]} channels; weights {listed}. Below, in each channel, a bar "
    alt += f"from smallest to largest value and a star for the context vector, which starts with {first}. The star is "
    alt += f"in its bar in {inside} of {values.shape[1]} channels."
    caption = "Figure 7.2. Six values and their weighted average, which stays within their range in every channel."
    return Picture(figure, alt, caption)


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
    """The input (T, 64) of the last block of the translator's encoder, and the parameters of one of its heads."""
    return evaluation.head_inputs(sentence, translator.NUM_LAYERS - 1, head)


def head_weights(parameters: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """The attention weights (T, T) of a head with these parameters for x (T, D)."""
    q, k = (x @ parameters[f"{name}.weight"].T for name in ("W_q", "W_k"))
    return torch.softmax(q @ k.T / q.shape[-1] ** 0.5, dim=-1)


def random_heads(head_class, count: int) -> dict:
    """{"random 1": head_class(64, 16) with its own initialization, ...}; the global random state is restored."""
    heads = {}
    with torch.random.fork_rng(devices=[]):
        for seed in range(count):
            torch.manual_seed(seed)
            heads[f"random {seed + 1}"] = head_class(translator.D_MODEL, translator.D_MODEL // translator.NUM_HEADS)
    return heads


def trained_head(parameters: dict[str, torch.Tensor], x: torch.Tensor, out: torch.Tensor, words: list[str]) -> Picture:
    """The weights and values of a trained head, and the output (T, d_head) of a learner's head with its parameters."""
    weights, values = head_weights(parameters, x), x @ parameters["W_v.weight"].T
    figure, (left, middle, right) = new_figure(8.6, 2.9, 1, 3, width_ratios=(1.1, 1, 1))
    weight_map(left, weights, words, tilted=True, title="weights", ylabel="query")
    top = float(values.abs().max())
    for ax, rows, title in ((middle, values, "values"), (right, out, "outputs")):
        look = {"cmap": V_MAP, "vmin": -top, "vmax": top, "numbers": False, "every": 5}
        colors = heatmap(ax, rows, words, title=title, xlabel="channel", **look)
    right.set_yticks([])
    figure.colorbar(colors, ax=right, shrink=0.9)
    best = weights.max(dim=-1)
    best_keys = zip(words, best.indices.tolist(), best.values.tolist(), strict=True)
    details = ", ".join(f"{word} attends to {words[j]} ({w:.2f})" for word, j, w in best_keys)
    to_jane, own = torch.cosine_similarity(out[1], values[:2], dim=-1).tolist()
    alt = f"Heat maps of a trained head: its weights, its values and its outputs, 16 channels per word. {details}. The "
    alt += f"output of visits has a cosine of {to_jane:.2f} with the value of jane and {own:.2f} with its own."
    caption = "Figure 7.4. A trained head of the translator in your AttentionHead. Most words get the previous word's "
    caption += "value."
    return Picture(figure, alt, caption)


def shifts(shift: torch.Tensor, parameters: dict[str, torch.Tensor], x: torch.Tensor, words: list[str]) -> Picture:
    """The context shift of each word (T,) in a trained head, next to the head's weights."""
    weights, lengths = head_weights(parameters, x), shift.clamp_min(0).tolist()
    figure, (left, right) = new_figure(8.6, 3.5, 1, 2, width_ratios=(1, 1.25))
    bars(left, words, lengths, ".2f", across=True, height=0.8)
    left.axvline(1, color=GRAY_INK, ls=":", lw=1)
    left.set(xlim=(0, 1.45), xlabel="1 − cosine (dotted: a right angle)", title="context shift of each word")
    weight_map(right, weights, words, title="attention weights", xlabel="key", ylabel="query")
    listed = named(words, lengths)
    best = ", ".join(f"{w} to {words[int(j)]}" for w, j in zip(words, weights.argmax(dim=-1), strict=True))
    alt = f"Context shifts: {listed}. Each word attends most: {best}."
    caption = "Figure 7.5. A trained head moves articles and adjectives toward their noun, and leaves the nouns "
    caption += "unchanged."
    return Picture(figure, alt, caption)


def pressure(weights=(0.5, 0.3, 0.15, 0.05), values=(1.0, 3.0, 0.0, 6.0)) -> Picture:
    w, v = torch.tensor(weights), torch.tensor(values)
    output = float(w @ v)
    gradient = (-w * (v - output)).tolist()
    names = [f"key {j}" for j in range(1, len(weights) + 1)]
    figure, (left, right) = new_figure(8.6, 3.2, 1, 2)
    bars(left, names, v, [f"weight {x:g}" for x in weights], color=V_COLOR, alpha=0.6)
    left.axhline(output, color=RED, ls="--", lw=1.5, label=f"output {output:.2f}; it should grow")
    left.legend(frameon=False, loc="upper left")
    left.set(title="values of one channel", ylim=(0, 8))
    moves = ["down" if s > 0 else "up" for s in gradient]
    texts = [f"{s:+.2f}\npushed {move}" for s, move in zip(gradient, moves, strict=True)]
    bars(right, names, gradient, texts, color=[ORANGE if s > 0 else BLUE for s in gradient])
    right.axhline(0, color="black", lw=0.8)
    right.set(title="gradient of the loss at the score", ylim=(min(gradient) - 0.24, max(gradient) + 0.24))
    keys = zip(names, weights, values, gradient, moves, strict=True)
    rows = (f"{n}: weight {a:g}, value {b:g}, gradient {s:+.2f}, score pushed {move}" for n, a, b, s, move in keys)
    alt = f"One query, four keys, output {output:.2f}, and a loss that falls when the output grows. {', '.join(rows)}."
    caption = "Figure 7.6. The output should grow, so the gradient pushes up the scores of keys whose values lie above "
    caption += "it."
    return Picture(figure, alt, caption)


def memory(answers: dict[str, Callable], lengths=(128, 256, 512, 1024, 2048), width: int = 16) -> Picture:
    """The size of the largest tensor that each f(Q, K, V) creates, against T. Unanswered functions are left out."""

    def largest(f, T: int) -> int:
        generator = torch.Generator().manual_seed(T)
        return tensors_alive(f, *(torch.randn(T, width, generator=generator) for _ in range(3)))[1].largest

    figure, ax = new_figure(7.6, 3.9)
    details = []
    looks = (ORANGE, "o-"), (PINK, "s-"), (GREEN, "^--"), (BLUE, "D:")
    for (name, f), (color, style) in zip(answers.items(), looks, strict=False):
        try:
            sizes = [largest(f, T) for T in lengths]
        except NotImplementedError:
            details.append(f"{name} is not answered yet")
            continue
        except Exception as error:  # an unfinished answer may raise anything; its check explains it
            details.append(f"{name} raises {type(error).__name__}")
            continue
        ax.plot(lengths, sizes, style, color=color, label=name, ms=7)
        details.append(f"{name}: {sizes[0]:,} entries at T = {lengths[0]}, {sizes[-1]:,} at T = {lengths[-1]}")
    ax.set(xscale="log", yscale="log", xlabel="tokens T", ylabel="entries of the largest tensor")
    name_ticks(ax, x=lengths)
    ax.legend(frameon=False)
    alt = "Memory against the number of tokens, both on logarithmic axes. " + "; ".join(details) + "."
    caption = "Figure 7.7. The largest intermediate tensor. It grows least if both queries and keys are split."
    return Picture(figure, alt, caption)
