"""A sentence's attention as arcs beside its heat map."""

from __future__ import annotations

import torch
from matplotlib.patches import FancyArrowPatch

from helpers.drawing.style import BLACK, BLUE, Picture, heatmap, new_figure

BEND = 0.5  # the height of an arc's control point, as a share of its length


def arcs_and_heatmap(weights: torch.Tensor, tokens: list[str], title: str = "", threshold: float = 0.05) -> Picture:
    """Attention of one head: weights (T, T), rows are queries, columns keys.

    An arc runs from each query to each key with at least `threshold` of its attention; its width is the weight.
    """
    figure, (left, right) = new_figure(9.0, 3.4, columns=2, width_ratios=(1.35, 1))
    spots = range(len(tokens))
    for query in spots:
        for key in spots:
            weight = float(weights[query, key])
            if query != key and weight >= threshold:
                # Arcs to the right pass above the words, arcs to the left below them.
                side = 1 if key > query else -1
                start, end = (query + 0.06 * side, 0.11 * side), (key - 0.06 * side, 0.11 * side)
                arc = FancyArrowPatch(
                    start,
                    end,
                    connectionstyle=f"arc3,rad={-BEND}",
                    arrowstyle="-|>",
                    mutation_scale=14,
                    linewidth=0.6 + 4 * weight,
                    color=BLUE,
                    alpha=0.35 + 0.6 * weight,
                    shrinkA=0,
                    shrinkB=0,
                )
                left.add_patch(arc)
                peak = side * (0.11 + BEND / 2 * abs(key - query) + 0.1)
                left.text((query + key) / 2, peak, f"{weight:.2f}", ha="center", va="center")
    for spot, token in enumerate(tokens):
        left.text(spot, 0, token, ha="center", va="center", fontsize=14, color=BLACK)
    left.set_aspect("equal")
    left.set_xlim(-0.5, len(tokens) - 0.5)
    left.set_ylim(-0.6, 0.6)
    left.axis("off")
    heatmap(right, weights, tokens, tokens, vmin=0, vmax=1)
    right.set_xlabel("key: looked at")
    right.set_ylabel("query: looks")
    if title:
        figure.suptitle(title, fontsize=11)
    best = [int(row.argmax()) for row in weights]
    pairs = [f"{tokens[q]} looks at {tokens[k]} {float(weights[q, k]):.2f}" for q, k in enumerate(best)]
    return Picture(figure, f"One head's attention in {' '.join(tokens)}, as arcs and as a heat map: {', '.join(pairs)}")
