"""Explorers of lesson 5: the mask of a sentence, a mask with clickable cells, and a filled-in or added number."""

import itertools
import math

import ipywidgets as widgets
import torch
from matplotlib.patches import Rectangle

from helpers.drawing.charts import HATCHED, MovingBars, without_spines
from helpers.drawing.colors import BLUE, RED, RED_INK
from helpers.drawing.style import Picture, new_figure
from helpers.lessons.masking.figures import PAD, WORDS, padded_causal_mask
from helpers.widgets.panel import keeping, panel, whole

SEEN = {"facecolor": "#4A90C4", "edgecolor": "white", "hatch": "", "linewidth": 1}


def squares(ax, rows: int, columns: int) -> dict[tuple[int, int], Rectangle]:
    """Draw the cells of a table, and return their patches by (row, column)."""
    cells = itertools.product(range(rows), range(columns))
    return {(i, j): ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1)) for i, j in cells}


def masks():
    """The mask of `new` queries and `cached` + `new` keys, of which the last `pads` are padding; at most (5, 8)."""
    figure, ax = new_figure(7.0, 3.6)
    cells = squares(ax, 5, 8)
    look = {"fill": False, "edgecolor": RED, "linewidth": 2}
    frames = [ax.add_patch(Rectangle((-0.5, i - 0.5), 8, 1, **look)) for i in range(5)]
    ax.set(xlim=(-0.5, 7.5), ylim=(4.55, -0.55), ylabel="query")
    ax.set_yticks(range(5), ["september"] * 5)
    ax.set_xticks(range(8), WORDS, fontsize=9)
    title = ax.set_title("shape (5, 7), 35 of 35 pairs allowed, 5 rows see nothing\n(of 8 only 7 fit)")
    ax.xaxis.tick_top()
    without_spines(ax)

    def draw(new: int, cached: int, pads: int) -> Picture:
        T_k = cached + new
        chosen, pads = pads, min(pads, T_k)
        names = [*WORDS[: T_k - pads], *[PAD] * pads]
        mask = padded_causal_mask(new, T_k, pads)
        for (i, j), cell in cells.items():
            cell.set_visible(i < new and j < T_k)
            if i < new and j < T_k:
                cell.set(**(SEEN if mask[i, j] else HATCHED))
        for i, frame in enumerate(frames):
            frame.set_visible(i < new and not bool(mask[min(i, new - 1)].any()))
            frame.set_width(T_k)
        ax.set_xticks(range(T_k), names, fontsize=9)
        ax.set_yticks(range(new), names[cached:])
        ax.yaxis.label.set_y(1 - (new / 2 + 0.05) / 5.1)  # next to the visible rows
        allowed, masked = int(mask.sum()), int((~mask.any(-1)).sum())
        rows = f"{masked} row{'s see' if masked != 1 else ' sees'} nothing"
        rows += f"\n(only {pads} of {chosen} pads fit)" if chosen > pads else ""
        title.set_text(f"shape ({new}, {T_k}), {allowed} of {new * T_k} pairs allowed, {rows}")
        alt = f"A mask of {new} queries and {T_k} keys (cached: {cached}, padding: {pads}). "
        alt += f"{allowed} of {new * T_k} pairs are allowed; {rows}.".replace("\n", " ")
        return Picture(figure, alt, caption="Blue: this query may see this key. Hatched: it may not.")

    new, cached = whole("new words", 3, 1, 5), whole("cached", 2, 0, 3)
    panel(keeping(figure, draw), new=new, cached=cached, pads=whole("padding", 1, 0, 8))


def cells(tokens: list[str], scores: torch.Tensor):
    """Softmax of scores (T, T) under a mask with a button for each cell; a fully masked row becomes NaN."""
    size = len(tokens)
    figure, (left, right) = new_figure(8.0, 2.9, 1, 2)
    patches, texts = [], []
    for ax, title in ((left, "scores under the mask"), (right, "softmax of each row")):
        ax.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), title=title)
        ax.set_xticks(range(size), tokens)
        ax.set_yticks(range(size), tokens)
        without_spines(ax)
        patches.append(squares(ax, size, size))
        texts.append({(i, j): ax.text(j, i, "0.000", ha="center", va="center") for i, j in patches[-1]})
    left.set_ylabel("query")

    def draw(**allowed: bool) -> Picture:
        mask = torch.tensor(list(allowed.values())).reshape(scores.shape)  # (T, T), row by row
        weights = torch.softmax(torch.where(mask, scores, -math.inf), dim=-1)
        for (i, j), patch in patches[0].items():
            seen, weight = bool(mask[i, j]), float(weights[i, j])
            nan = math.isnan(weight)
            patch.set(**(SEEN | {"facecolor": "#DCE9F5"} if seen else HATCHED))
            texts[0][i, j].set_text(f"{float(scores[i, j]):g}" if seen else "−∞")
            shade = (1 - 0.75 * weight, 1 - 0.4 * weight, 1 - 0.15 * weight) if not nan else "#F6D5C3"
            patches[1][i, j].set(**(HATCHED if not seen and not nan else SEEN | {"facecolor": shade}))
            texts[1][i, j].set_text("NaN" if nan else f"{weight:.3f}" if seen else "")
            texts[1][i, j].set_color(RED_INK if nan else "black")
        numbers = [", ".join("NaN" if math.isnan(w) else f"{w:.3f}" for w in row) for row in weights.tolist()]
        rows = (f"{token}: {row}" for token, row in zip(tokens, numbers, strict=True))
        caption = "A button opens or closes one cell. Each row of weights adds up to 1, or is NaN."
        return Picture(figure, "Weights under the mask, a row for each query. " + "; ".join(rows) + ".", caption)

    names = {f"{query} sees {key}": j <= i for i, query in enumerate(tokens) for j, key in enumerate(tokens)}
    buttons = {name: widgets.ToggleButton(value=seen, description=name) for name, seen in names.items()}
    panel(keeping(figure, draw), across=len(tokens), **buttons)


def fill():
    figure, axes = new_figure(8.6, 3.2, columns=2, sharey=True)
    kinds, look = ("visible", "visible", "blocked", "blocked"), {"color": [BLUE, BLUE, RED, RED], "ylim": (0, 1.12)}
    bars = [MovingBars(ax, [f"{kind}\n-10000" for kind in kinds], "0.731", **look) for ax in axes]
    titles = [ax.set_title("−1,000,000,000 filled in: 0.731 to blocked keys", fontsize=10) for ax in axes]
    axes[0].set_ylabel("weight")

    def draw(power: int, visible: int, blocked: int) -> Picture:
        number = -(10.0**power)
        scores = torch.tensor([visible, visible + 1.0, blocked, blocked + 1.0])
        hidden = torch.tensor([False, False, True, True])
        filled = torch.softmax(torch.where(hidden, number, scores), -1)
        added = torch.softmax(scores + hidden * number, -1)
        for k, (weights, method) in enumerate(((filled, "filled in"), (added, "added"))):
            bars[k].show(weights.tolist(), ".3g")
            axes[k].set_xticks(range(4), [f"{n}\n{s:g}" for n, s in zip(kinds, scores.tolist(), strict=True)])
            titles[k].set_text(f"{number:,.0f} {method}: {weights[2:].sum():.3g} to blocked keys")
        alt = f"Weights of two visible keys (scores {visible} and {visible + 1}) and two blocked ones ({blocked} and "
        alt += f"{blocked + 1}). With {number:,.0f} filled in, the blocked keys get {filled[2:].sum():.3g}; with the "
        alt += f"number added they get {added[2:].sum():.3g}."
        caption = "Instead of minus infinity, a finite number replaces the score (left) or is added to it (right)."
        return Picture(figure, alt, caption)

    score_range = {"low": -10000, "high": 10000, "step": 1000}
    visible, blocked = whole("visible scores", 0, **score_range), whole("blocked scores", 2000, **score_range)
    panel(keeping(figure, draw), power=whole("number: −10 to the", 4, 1, 9), visible=visible, blocked=blocked)
