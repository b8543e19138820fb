"""Explorers of lesson 5: masks over words, a mask whose cells are clicked, a fill against an added number."""

import math

import ipywidgets as widgets
import torch
from matplotlib.patches import Rectangle

from helpers.drawing.charts import HATCHED, MovingBars, without_spines
from helpers.drawing.colors import BLUE, RED, RED_INK
from helpers.drawing.style import Picture, new_figure
from helpers.lessons.masking.figures import PAD, WORDS, seen_by
from helpers.widgets.controls import whole
from helpers.widgets.panel import panel

SEEN = {"facecolor": "#4A90C4", "edgecolor": "white", "hatch": "", "linewidth": 1}


class Masks:
    """The mask of `new` queries over `cached` + `new` keys, the last `pads` of which are padding; at most 5 by 8."""

    def __init__(self):
        self.figure, self.ax = new_figure(7.0, 3.6)
        self.cells = {(i, j): Rectangle((j - 0.5, i - 0.5), 1, 1) for i in range(5) for j in range(8)}
        for cell in self.cells.values():
            self.ax.add_patch(cell)
        self.blind = [Rectangle((-0.5, i - 0.5), 8, 1, fill=False, edgecolor=RED, linewidth=2) for i in range(5)]
        for frame in self.blind:
            self.ax.add_patch(frame)
        self.ax.set(xlim=(-0.5, 7.5), ylim=(4.55, -0.55), ylabel="query")
        self.ax.set_yticks(range(5), ["september"] * 5)
        self.ax.set_xticks(range(8), WORDS, fontsize=9)
        self.title = self.ax.set_title("shape (5, 7), 35 of 35 pairs allowed, 5 rows see nothing\n(of 8 only 7 fit)")
        self.ax.xaxis.tick_top()
        without_spines(self.ax)

    def __call__(self, new: int, cached: int, pads: int) -> Picture:
        T_k = cached + new
        asked, pads = pads, min(pads, T_k)
        names = [*WORDS[: T_k - pads], *[PAD] * pads]
        seen = seen_by(new, T_k, pads)
        for (i, j), cell in self.cells.items():
            cell.set_visible(i < new and j < T_k)
            if i < new and j < T_k:
                cell.set(**(SEEN if seen[i, j] else HATCHED))
        for i, frame in enumerate(self.blind):
            frame.set_visible(i < new and not bool(seen[min(i, new - 1)].any()))
            frame.set_width(T_k)
        self.ax.set_xticks(range(T_k), names, fontsize=9)
        self.ax.set_yticks(range(new), names[cached:])
        self.ax.yaxis.label.set_y(1 - (new / 2 + 0.05) / 5.1)  # beside the rows that are there
        allowed, blind = int(seen.sum()), int((~seen.any(-1)).sum())
        rows = f"{blind} row{'s see' if blind != 1 else ' sees'} nothing"
        rows += f"\n(only {pads} of {asked} pads fit)" if asked > pads else ""
        self.title.set_text(f"shape ({new}, {T_k}), {allowed} of {new * T_k} pairs allowed, {rows}")
        alt = f"A mask of {new} queries and {T_k} keys (cached: {cached}, padding: {pads}). "
        alt += f"{allowed} of {new * T_k} pairs are allowed; {rows}.".replace("\n", " ")
        return Picture(self.figure, alt, caption="Blue: this query may see this key. Hatched: it may not.")


def masks():
    panel(Masks(), new=whole("new words", 3, 1, 5), cached=whole("cached", 2, 0, 3), pads=whole("padding", 1, 0, 8))


class Cells:
    """Softmax of scores (T, T) under a mask that is given cell by cell: weights, and NaN where a row sees nothing."""

    def __init__(self, tokens: list[str], scores: torch.Tensor):
        self.tokens, self.scores = tokens, scores
        size = len(tokens)
        self.figure, (left, right) = new_figure(8.0, 2.9, 1, 2)
        self.patches, self.texts = [], []
        for ax, title in ((left, "scores under the mask"), (right, "softmax of each row")):
            ax.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), title=title)
            ax.set_xticks(range(size), tokens)
            ax.set_yticks(range(size), tokens)
            without_spines(ax)
            cells = [(i, j) for i in range(size) for j in range(size)]
            self.patches.append({(i, j): ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1)) for i, j in cells})
            self.texts.append({(i, j): ax.text(j, i, "0.000", ha="center", va="center") for i, j in cells})
        left.set_ylabel("query")

    def __call__(self, **allowed: bool) -> Picture:
        mask = torch.tensor(list(allowed.values())).reshape(self.scores.shape)  # (T, T), row by row
        weights = torch.softmax(self.scores.masked_fill(~mask, -math.inf), dim=-1)
        for (i, j), patch in self.patches[0].items():
            seen, weight = bool(mask[i, j]), float(weights[i, j])
            nan = math.isnan(weight)
            patch.set(**(SEEN | {"facecolor": "#DCE9F5"} if seen else HATCHED))
            self.texts[0][i, j].set_text(f"{float(self.scores[i, j]):g}" if seen else "−∞")
            shade = (1 - 0.75 * weight, 1 - 0.4 * weight, 1 - 0.15 * weight) if not nan else "#F6D5C3"
            self.patches[1][i, j].set(**(HATCHED if not seen and not nan else SEEN | {"facecolor": shade}))
            self.texts[1][i, j].set_text("NaN" if nan else f"{weight:.3f}" if seen else "")
            self.texts[1][i, j].set_color(RED_INK if nan else "black")
        told = [", ".join("NaN" if math.isnan(w) else f"{w:.3f}" for w in row) for row in weights.tolist()]
        rows = (f"{token}: {row}" for token, row in zip(self.tokens, told, strict=True))
        caption = "A button opens or closes one cell. Each row of weights adds up to 1, or is NaN."
        return Picture(self.figure, "Weights under the mask, a row for each query. " + "; ".join(rows) + ".", caption)


def cells(tokens: list[str], scores: torch.Tensor):
    names = {f"{query} sees {key}": j <= i for i, query in enumerate(tokens) for j, key in enumerate(tokens)}
    buttons = {name: widgets.ToggleButton(value=seen, description=name) for name, seen in names.items()}
    panel(Cells(tokens, scores), across=len(tokens), **buttons)


class Fill:
    def __init__(self):
        self.figure, axes = new_figure(8.6, 3.2, columns=2, sharey=True)
        self.bars, self.titles, self.axes = [], [], axes
        names = ["visible\n-10000", "visible\n-10000", "blocked\n-10000", "blocked\n-10000"]
        for ax in axes:
            self.bars.append(MovingBars(ax, names, "0.731", color=[BLUE, BLUE, RED, RED], ylim=(0, 1.12)))
            self.titles.append(ax.set_title("−1,000,000,000 filled in: 0.731 to blocked keys", fontsize=10))
        axes[0].set_ylabel("weight")

    def __call__(self, power: int, visible: int, blocked: int) -> Picture:
        number = -(10.0**power)
        scores = torch.tensor([visible, visible + 1.0, blocked, blocked + 1.0])
        hidden = torch.tensor([False, False, True, True])
        filled = torch.softmax(torch.where(hidden, number, scores), -1)
        added = torch.softmax(scores + hidden * number, -1)
        for k, (weights, way) in enumerate(((filled, "filled in"), (added, "added"))):
            self.bars[k].show(weights.tolist(), ".3g")
            names = ["visible", "visible", "blocked", "blocked"]
            ticks = [f"{n}\n{s:g}" for n, s in zip(names, scores.tolist(), strict=True)]
            self.axes[k].set_xticks(range(4), ticks)
            self.titles[k].set_text(f"{number:,.0f} {way}: {weights[2:].sum():.3g} to blocked keys")
        alt = (
            f"Weights of two visible keys (scores {visible} and {visible + 1}) and two blocked ones ({blocked} and "
            f"{blocked + 1}). With {number:,.0f} filled in, the blocked keys get {filled[2:].sum():.3g}; with the "
            f"number added they get {added[2:].sum():.3g}."
        )
        caption = "Instead of minus infinity, a finite number replaces the score (left) or is added to it (right)."
        return Picture(self.figure, alt, caption)


def fill():
    wide = {"low": -10000, "high": 10000, "step": 1000}
    visible, blocked = whole("visible scores", 0, **wide), whole("blocked scores", 2000, **wide)
    panel(Fill(), power=whole("number: −10 to the", 4, 1, 9), visible=visible, blocked=blocked)
