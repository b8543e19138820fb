"""Figures of lesson 5. They draw from given numbers, not from the learner's answers."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from helpers.figures.style import BLACK, BLUE, ORANGE, RED, WEIGHTS, Picture, heatmap, new_figure

WORDS = ("I", "like", "to", "eat", "apples", "every", "single", "day")


def _seen(T_q: int, T_k: int, pads: int = 0) -> torch.Tensor:
    """True where a query may see a key: no future, and none of the last `pads` keys, (T_q, T_k)."""
    query, key = torch.arange(T_q)[:, None] + T_k - T_q, torch.arange(T_k)[None, :]
    return (key <= query) & (key < T_k - pads)


def _draw_mask(ax, seen, rows, columns):
    """A mask as colored cells: dark may be seen, light may not, red frames a row with nothing to see."""
    heatmap(ax, seen.float() * 0.75, rows, columns, cmap=WEIGHTS, vmin=0, vmax=1, numbers=False)
    for i in range(seen.shape[0]):
        for j in range(seen.shape[1]):
            yes = bool(seen[i, j])
            ax.text(j, i, "yes" if yes else "·", ha="center", va="center", fontsize=8, color="white" if yes else "0.5")
        if not seen[i].any():
            ax.plot(
                [-0.5, seen.shape[1] - 0.5, seen.shape[1] - 0.5, -0.5, -0.5],
                [i - 0.5, i - 0.5, i + 0.5, i + 0.5, i - 0.5],
                color=RED,
                linewidth=2,
            )
    for line in range(1, seen.shape[0]):
        ax.axhline(line - 0.5, color="white", linewidth=1)
    for line in range(1, seen.shape[1]):
        ax.axvline(line - 0.5, color="white", linewidth=1)


def gallery() -> Picture:
    """The four masks of the lesson over their tokens."""
    full, cut = list(WORDS[:5]), ["jane", "visits", "africa", "<pad>", "<pad>"]
    every = torch.ones(5, 5, dtype=torch.bool)
    real = torch.arange(5) < 3
    panels = (
        ("causal", _seen(5, 5), full, full),
        ("causal with a cache of 3", _seen(2, 5), full[3:], full),
        ("padding", every & real, cut, cut),
        ("both", _seen(5, 5) & real, cut, cut),
    )
    figure, axes = new_figure(9.2, 7.4, rows=2, columns=2)
    for ax, (title, seen, rows, columns) in zip(axes.flat, panels, strict=True):
        _draw_mask(ax, seen, rows, columns)
        ax.set_title(title)
        ax.set_ylabel("query")
    return Picture(
        figure,
        "Four masks, a row for each query and a column for each key. Causal over I like to eat apples: a lower "
        "triangle, 15 of 25 pairs allowed. With a cache of 3: eat sees four keys, apples all five. Padding over jane "
        "visits africa and two pads: the last two columns are blocked in every row. Both: 12 of 25 pairs allowed.",
    )


def one_mask(new: int, cached: int, pads: int) -> Picture:
    """The combined mask of `new` queries over `cached` + `new` keys, the last `pads` of which are padding."""
    T_k = cached + new
    pads = min(pads, T_k)
    names = [*WORDS[: T_k - pads], *["<pad>"] * pads]
    seen = _seen(new, T_k, pads)
    figure, ax = new_figure(7.0, 1.5 + 0.42 * new)
    _draw_mask(ax, seen, names[cached:], names)
    blind = int((~seen.any(-1)).sum())
    ax.set_title(f"shape ({new}, {T_k}), {int(seen.sum())} of {new * T_k} pairs allowed")
    ax.set_ylabel("query")
    return Picture(
        figure,
        f"A mask of {new} queries and {T_k} keys, of which {cached} are cached and {pads} are padding. "
        f"{int(seen.sum())} of {new * T_k} pairs are allowed; {blind} rows see nothing.",
    )


def fill(power: int, visible: int, blocked: int) -> Picture:
    """Weights of two visible and two blocked keys when a large negative number is filled in, or added."""
    number = -(10.0**power)
    scores = torch.tensor([visible, visible + 1.0, blocked, blocked + 1.0])
    hidden = torch.tensor([False, False, True, True])
    filled = torch.softmax(torch.where(hidden, number, scores), -1)
    added = torch.softmax(scores + hidden * number, -1)
    figure, axes = new_figure(8.6, 3.2, columns=2, sharey=True)
    names = ["visible", "visible", "blocked", "blocked"]
    for ax, weights, title in zip(axes, (filled, added), ("filled in", "added"), strict=True):
        bars = ax.bar(range(4), weights, color=[BLUE, BLUE, RED, RED])
        ax.bar_label(bars, [f"{w:.3g}" for w in weights.tolist()], fontsize=9)
        ax.set_xticks(range(4), [f"{n}\n{s:g}" for n, s in zip(names, scores.tolist(), strict=True)])
        ax.set_ylim(0, 1.12)
        ax.set_title(f"{number:,.0f} {title}: {weights[2:].sum():.3g} on blocked keys")
    axes[0].set_ylabel("weight")
    return Picture(
        figure,
        f"Weights of two visible keys (scores {visible} and {visible + 1}) and two blocked ones ({blocked} and "
        f"{blocked + 1}). With {number:,.0f} filled in, the blocked keys get {filled[2:].sum():.3g}; with the number "
        f"added they get {added[2:].sum():.3g}.",
    )


def two_meanings(tokens, right, wrong) -> Picture:
    """Attention weights of nn.MultiheadAttention under a mask in its own meaning, and under its opposite."""
    figure, axes = new_figure(8.4, 3.2, columns=2)
    for ax, weights, title in zip(axes, (right, wrong), ("attn_mask=~mask", "attn_mask=mask"), strict=True):
        heatmap(ax, weights.detach(), tokens, tokens, cmap=WEIGHTS, vmin=0, vmax=1)
        ax.set_title(title)
    for row in range(len(tokens)):
        if wrong[row].isnan().any():
            ax.text((len(tokens) - 1) / 2, row, "NaN", color=RED, ha="center", va="center", backgroundcolor="white")
    axes[0].set_ylabel("query")
    return Picture(
        figure,
        "Weights of nn.MultiheadAttention. With the mask inverted, as it wants it, the upper triangle is 0 and rows "
        f"sum to 1. With our mask as it is, {tokens[0]} sees only {' and '.join(tokens[1:])}, and the last row is NaN.",
    )


def before_or_after(tokens, scores, mask) -> Picture:
    """Weights with the mask before the softmax and after it, with the sum of each row."""
    powers = scores.exp() * mask
    before = powers / powers.sum(-1, keepdim=True)
    after = scores.softmax(-1).masked_fill(~mask, 0)
    figure, axes = new_figure(8.8, 3.4, columns=2)
    titles = ("mask, then softmax", "softmax, then mask")
    for ax, weights, title in zip(axes, (before, after), titles, strict=True):
        sums = weights.sum(-1, keepdim=True)
        table = torch.cat([weights, torch.full_like(sums, math.nan), sums], -1)
        heatmap(ax, table, tokens, [*tokens, "", "sum"], cmap=WEIGHTS, vmin=0, vmax=1.3, numbers=False)
        for i, row in enumerate(table.tolist()):
            for j, value in enumerate(row):
                if not math.isnan(value):
                    ax.text(
                        j,
                        i,
                        f"{value:.3f}",
                        ha="center",
                        va="center",
                        fontsize=9,
                        color="white" if value > 0.7 else BLACK,
                    )
        ax.set_title(title)
    axes[0].set_ylabel("query")
    numbers = ", ".join(f"{value:.3f}" for value in after.sum(-1).tolist())
    return Picture(
        figure,
        "Two tables of weights with the sums of their rows. Mask, then softmax: each row sums to 1, the row of "
        f"{tokens[1]} is {before[1, 0]:.3f}, {before[1, 1]:.3f}, 0. Softmax, then mask: the rows sum to {numbers}.",
    )


def _train(masked: bool, letters: int = 8, T: int = 12, width: int = 32, steps: int = 160) -> list[float]:
    """Losses of a one-layer model that guesses the next of T random letters, with or without a causal mask."""
    generator = torch.Generator().manual_seed(5)

    def weight(*shape, scale):
        return (torch.randn(*shape, generator=generator) * scale).requires_grad_()

    words, places = weight(letters, width, scale=0.5), weight(T, width, scale=0.5)
    W_q, W_k, W_v = (weight(width, width, scale=width**-0.5) for _ in range(3))
    out = weight(letters, width, scale=width**-0.5)
    adam = torch.optim.Adam([words, places, W_q, W_k, W_v, out], lr=0.01)
    allowed = torch.ones(T, T, dtype=torch.bool).tril() if masked else torch.ones(T, T, dtype=torch.bool)
    losses = []
    for _ in range(steps):
        ids = torch.randint(0, letters, (64, T + 1), generator=generator)
        x = words[ids[:, :-1]] + places  # (B, T, D)
        scores = (x @ W_q.T) @ (x @ W_k.T).mT / width**0.5  # (B, T, T)
        weights = torch.where(allowed, scores, -math.inf).softmax(-1)
        logits = (x + weights @ (x @ W_v.T)) @ out.T  # (B, T, letters)
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return losses


def too_good() -> Picture:
    """Training losses of a causal and of a leaking model on random letters, with the line that honesty cannot pass."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tensors this small only lose by being shared out
    try:
        honest, leaking = _train(masked=True), _train(masked=False)
    finally:
        torch.set_num_threads(threads)
    figure, ax = new_figure(7.4, 3.6)
    ax.plot(honest, color=BLUE, label=f"causal mask, ends at {sum(honest[-20:]) / 20:.2f}")
    ax.plot(leaking, color=RED, label=f"no mask, ends at {sum(leaking[-20:]) / 20:.2f}")
    ax.axhline(math.log(8), color=BLACK, linestyle="--", linewidth=1, label="ln 8 = 2.079, the best honest loss")
    ax.axhline(math.log(8) / 12, color=ORANGE, linestyle=":", linewidth=1.5, label="ln 8 / 12 = 0.173")
    ax.set_ylim(0, 2.8)
    ax.set_xlabel("training step")
    ax.set_ylabel("loss in nats")
    ax.legend(fontsize=9, loc="center right")
    return Picture(
        figure,
        f"Losses over {len(honest)} training steps on random letters. The causal model stays at the line ln 8 = 2.079 "
        f"and ends at {sum(honest[-20:]) / 20:.2f}. The model without a mask falls far below it and ends at "
        f"{sum(leaking[-20:]) / 20:.2f}, near ln 8 / 12 = 0.173.",
    )


def influence() -> Picture:
    """Which outputs move when one input changes: attention with a mask, without, and masked after the softmax."""
    T, d = 6, 4
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(T, d, generator=generator, dtype=torch.float64)
    allowed = torch.ones(T, T, dtype=torch.bool).tril()

    def attend(x, before, after):
        scores = torch.where(before, x @ x.T / d**0.5, -math.inf)
        return torch.where(after, scores.softmax(-1), 0.0) @ x

    kinds = {
        "masked before the softmax": (allowed, allowed),
        "masked after the softmax": (torch.ones_like(allowed), allowed),
        "not masked": (torch.ones_like(allowed), torch.ones_like(allowed)),
    }
    figure, axes = new_figure(10.0, 3.9, columns=3)
    leaks = []
    for ax, (title, masks) in zip(axes, kinds.items(), strict=True):
        moved = torch.zeros(T, T)
        for source in range(T):
            changed = x.clone()
            changed[source] = torch.randn(d, generator=generator, dtype=torch.float64)
            moved[:, source] = (attend(changed, *masks) - attend(x, *masks)).abs().amax(-1).float()
        heatmap(ax, moved, cmap="Greens", vmin=0, vmax=2, digits=1)
        leaks.append(int((moved.triu(1) > 1e-6).sum()))
        for t in range(T - 1):
            ax.plot([t + 0.5, t + 0.5, t + 1.5], [t - 0.5, t + 0.5, t + 0.5], color=RED, linewidth=1.5)
        ax.set_title(title, fontsize=11)
        ax.set_xlabel("input that was changed")
    axes[0].set_ylabel("output that moved, and by how much")
    return Picture(
        figure,
        f"Three tables: how far each of six outputs moves when one of six inputs is changed. Entries above the "
        f"diagonal are leaks. Masked before the softmax: {leaks[0]} leaks. Masked after it: {leaks[1]} of 15 places "
        f"leak. Not masked: {leaks[2]}.",
    )


def first_matmul() -> Picture:
    """The sources' first MatMul, mask and softmax: B, T, C = 4, 8, 32, head size 16, seed 1337, first sentence."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1337)
        key, query, _value = (torch.nn.Linear(32, 16, bias=False) for _ in range(3))
        x = torch.randn(4, 8, 32)
    raw = query(x) @ key(x).mT  # (B, T, T), not scaled, as in the source
    weights = torch.where(torch.ones(8, 8).tril() > 0, raw, -math.inf).softmax(-1)[0].detach()
    figure, ax = new_figure(6.4, 4.2)
    heatmap(ax, weights, cmap=WEIGHTS, vmin=0, vmax=1)
    ax.set_xlabel("key")
    ax.set_ylabel("query")
    ax.set_title("weights of the first sentence, (8, 8)")
    return Picture(
        figure,
        "An 8 by 8 table of attention weights with zeros above the diagonal. Row 0 is 1 on itself, row 1 is "
        f"{weights[1, 0]:.2f} and {weights[1, 1]:.2f}; the largest weight below row 0 is {weights[1:].max():.2f}.",
    )


def repairs(tokens, scores) -> Picture:
    """Value and gradient of the row that sees nothing, under four treatments, measured."""
    size = len(tokens)
    seen = torch.ones(size, size, dtype=torch.bool).tril()
    seen[-1] = False
    treatments = {
        "1  replace by −∞": (torch.where, -math.inf, lambda w: w),
        "2  replace by −∞, NaN to 0": (torch.where, -math.inf, torch.nan_to_num),
        "3  add −∞, NaN to 0": (lambda seen, s, no: s + torch.where(seen, 0.0, no), -math.inf, torch.nan_to_num),
        "4  replace by −10⁹, times mask": (torch.where, -1e9, lambda w: w * seen),
    }
    rows = []
    for block, no, finish in treatments.values():
        leaf = scores.clone().requires_grad_()
        weights = finish(block(seen, leaf, no).softmax(-1))
        weights.square().sum().backward()
        rows.append((weights[-1].tolist(), leaf.grad[-1].tolist()))
    figure, ax = new_figure(7.6, 2.4)
    ax.axis("off")
    cells = [["  ".join(_short(v) for v in part) for part in row] for row in rows]
    table = ax.table(
        cells,
        rowLabels=list(treatments),
        colLabels=["value of the row", "gradient at its scores"],
        cellLoc="center",
        loc="center",
    )
    table.scale(1, 1.7)
    for (i, j), cell in table.get_celld().items():
        if i > 0 and j >= 0:
            bad = "NaN" in cell.get_text().get_text()
            cell.set_facecolor("#F6D5C3" if bad else "#D2EBE1")
    rows = zip(treatments, cells, strict=True)
    words = "; ".join(f"{name}: value {value}, gradient {gradient}" for name, (value, gradient) in rows)
    return Picture(figure, f"The row of {tokens[-1]}, which sees nothing, under four treatments. {words}.")


def _short(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{value:.0f}"
