"""Figures of lesson 5. They are drawn from given data, without the learner's functions."""

import functools
import math

import torch
from matplotlib.patches import Rectangle
from torch.nn import functional as F

from helpers.drawing.charts import heatmap, weight_map
from helpers.drawing.colors import BLACK, BLUE, ORANGE, RED, RED_INK
from helpers.drawing.style import SMALLEST, Picture, new_figure
from helpers.running.global_switches import switches_set

WORDS = ("jane", "visits", "africa", "in", "september", "with", "her", "sister")
PAD = "<pad>"


def padded_causal_mask(T_q: int, T_k: int, pads: int = 0) -> torch.Tensor:
    """The mask (T_q, T_k), True where a query may see a key: not in the future, and not among the last `pads` keys."""
    query, key = torch.arange(T_q)[:, None] + T_k - T_q, torch.arange(T_k)[None, :]
    return (key <= query) & (key < T_k - pads)


def _frame_row(ax, row: int, length: int):
    """Draw a red frame around a fully masked row."""
    ax.add_patch(Rectangle((-0.5, row - 0.5), length, 1, fill=False, edgecolor=RED, lw=2, clip_on=False, zorder=2))


def _draw_mask(ax, mask, rows, columns, first: int = 0):
    """Draw a mask: visible cells blue, blocked ones hatched, and fully masked rows from `first` on in a red frame."""
    weight_map(ax, mask.float() * 0.75, rows, columns, numbers=False, mask=mask)
    for i in range(first, mask.shape[0]):
        if not mask[i].any():
            _frame_row(ax, i, mask.shape[1])
    for draw, size in zip((ax.axhline, ax.axvline), mask.shape, strict=True):
        for line in range(1, size):
            draw(line - 0.5, color="white", linewidth=1)


def gallery() -> Picture:
    full, cut = list(WORDS[:5]), [*WORDS[:3], PAD, PAD]
    every = torch.ones(5, 5, dtype=torch.bool)
    real = torch.arange(5) < 3
    panels = (
        ("causal", padded_causal_mask(5, 5), full, full),
        ("causal, three words cached", padded_causal_mask(2, 5), full[3:], full),
        ("padding", every & real, cut, cut),
        ("both", padded_causal_mask(5, 5) & real, cut, cut),
    )
    figure, axes = new_figure(8.6, 6.4, rows=2, columns=2)
    for ax, (title, mask, rows, columns) in zip(axes.flat, panels, strict=True):
        if len(rows) == 2:  # they are drawn as part of the full triangle, below the earlier queries
            full_mask = torch.cat([torch.zeros(3, 5, dtype=torch.bool), mask])
            _draw_mask(ax, full_mask, ["", "", "", *rows], columns, first=3)
            ax.add_patch(Rectangle((-0.5, -0.5), 5, 3, color="white", zorder=3))
            ax.text(2, 1, "earlier queries;\ntheir keys are cached", ha="center", va="center", fontsize=10, zorder=4)
        else:
            _draw_mask(ax, mask, rows, columns)
        ax.set_title(title, fontsize=11)
        ax.tick_params(axis="x", labelsize=9)
        ax.set_ylabel("query")
    alt = "Four masks, a row for each query and a column for each key. Causal over jane visits africa in september: a "
    alt += "lower triangle, 15 of 25 pairs allowed. With a cache of 3 the same triangle's last two rows: in sees four "
    alt += "keys, september all five. Padding over jane visits africa and two pads: the last two columns are blocked "
    alt += "in every row. Both: 12 of 25 pairs allowed."
    return Picture(figure, alt, "Figure 5.1. Four masks. Blue: this query may see this key. Hatched: it may not.")


def first_matmul() -> Picture:
    """The weights of the sources' first sentence, for B, T, C = 4, 8, 32, head size 16 and seed 1337."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1337)
        key, query, _value = (torch.nn.Linear(32, 16, bias=False) for _ in range(3))
        x = torch.randn(4, 8, 32)
    raw = query(x) @ key(x).mT  # (B, T, T), not scaled, as in the source
    mask = torch.ones(8, 8).tril() > 0
    weights = torch.where(mask, raw, -math.inf).softmax(-1)[0].detach()
    figure, ax = new_figure(6.4, 4.0)
    weight_map(ax, weights, mask=mask, xlabel="key", ylabel="query", title="weights of the first sentence, (8, 8)")
    alt = "An 8 by 8 table of attention weights, hatched above the diagonal. Row 0 is 1 on itself, row 1 is "
    alt += f"{weights[1, 0]:.2f} and {weights[1, 1]:.2f}; the largest weight below row 0 is {weights[1:].max():.2f}."
    return Picture(figure, alt, "Figure 5.7. Causal attention weights of eight random tokens.")


def repairs(tokens, scores) -> Picture:
    """Three treatments of the last row of scores (T, T), which is fully masked.

    For each treatment: the weights of this row, and the gradient at its scores of the sum of all squared weights.
    """
    mask = torch.ones(scores.shape, dtype=torch.bool).tril()
    mask[-1] = False
    treatments = {
        "A": lambda scores: torch.where(mask, scores, -math.inf).softmax(-1),
        "B": lambda scores: (scores + torch.where(mask, 0.0, -math.inf)).softmax(-1).nan_to_num(),
        "C": lambda scores: torch.where(mask, scores, -1e9).softmax(-1),
    }
    figure, axes = new_figure(7.6, 2.6, 3, 2)
    details = []
    for pair, (letter, weights_of) in zip(axes, treatments.items(), strict=True):
        leaf = scores.clone().requires_grad_()
        weights = weights_of(leaf)
        (gradient,) = torch.autograd.grad(weights.square().sum(), leaf)
        rows = weights.detach()[-1], gradient[-1]
        texts = [["NaN" if math.isnan(value) else f"{value:.2f}" for value in row.tolist()] for row in rows]
        for ax, row, words in zip(pair, rows, texts, strict=True):
            ax.imshow(row.isnan()[None], cmap="Reds", vmin=0, vmax=5, aspect="auto")
            ax.spines[["left", "bottom"]].set_visible(False)
            for j, text in enumerate(words):
                ax.text(j, 0, text, ha="center", va="center", color=RED_INK if text == "NaN" else BLACK)
            ax.set(xticks=[], yticks=[])
        pair[0].set_ylabel(letter, rotation=0, labelpad=14, va="center", fontsize=12)
        details.append("{}: weights {}, gradient {}".format(letter, *map(", ".join, texts)))
    axes[0, 0].set_title("weights")
    axes[0, 1].set_title("gradient at the scores")
    alt = f"The row of {tokens[-1]}, which is fully masked, under three treatments. " + "; ".join(details) + "."
    return Picture(figure, alt, f"Figure 5.2. The row of {tokens[-1]}, which is fully masked, under three treatments.")


def two_meanings(tokens, right, wrong) -> Picture:
    figure, axes = new_figure(8.4, 3.0, columns=2)
    for ax, weights, title in zip(axes, (right, wrong), ("attn_mask=~mask", "attn_mask=mask"), strict=True):
        weights = weights.detach()
        masked = weights.isnan().any(-1)
        weight_map(ax, weights.nan_to_num(), tokens, mask=(weights > 0) & ~masked[:, None], title=title)
        for row in masked.nonzero().flatten().tolist():
            _frame_row(ax, row, len(tokens))
            box = {"facecolor": "white", "edgecolor": "none", "pad": 2}
            ax.text((len(tokens) - 1) / 2, row, "NaN, NaN, NaN", color=RED_INK, ha="center", va="center", bbox=box)
    axes[0].set_ylabel("query")
    alt = "Weights of nn.MultiheadAttention. With the mask inverted, as it requires, the upper triangle is blocked and "
    alt += f"rows sum to 1. With our mask as it is, {tokens[0]} sees only {' and '.join(tokens[1:])}, and the last row "
    alt += "is NaN."
    caption = "Figure 5.3. nn.MultiheadAttention with an inverted mask, as it requires, and with our mask."
    return Picture(figure, alt, caption)


def before_or_after(tokens, scores, mask) -> Picture:
    exponentials = scores.exp() * mask
    before = exponentials / exponentials.sum(-1, keepdim=True)
    after = scores.softmax(-1).masked_fill(~mask, 0)
    figure, axes = new_figure(8.6, 3.0, columns=2)
    for ax, weights, title in zip(axes, (before, after), ("mask, then softmax", "softmax, then mask"), strict=True):
        heatmap(ax, weights, tokens, tokens, vmin=0, vmax=1.3, digits=3, mask=mask)
        for i, total in enumerate(weights.sum(-1).tolist()):
            color = BLACK if abs(total - 1) < 1e-6 else RED_INK
            ax.text(len(tokens) - 0.4, i, f"sum {total:.3f}", va="center", color=color)
        ax.set_title(title)
    axes[0].set_ylabel("query")
    numbers = ", ".join(f"{value:.3f}" for value in after.sum(-1).tolist())
    alt = "Two tables of weights with the sums of their rows. Mask, then softmax: each row sums to 1, the row of "
    alt += f"{tokens[1]} is {before[1, 0]:.3f}, {before[1, 1]:.3f}. Softmax, then mask: the rows sum to {numbers}."
    return Picture(figure, alt, "Figure 5.5. The same scores and the same mask, in the right and in the wrong order.")


@switches_set()  # these include a single thread, which is faster for such small tensors
def train_on_random_letters(attention, seed: int = 5, letters: int = 8, T: int = 12, width: int = 32, steps: int = 160):
    """(training losses, loss in generation) of a one-layer model with attention(Q, K, V) that predicts random letters.

    In generation the model sees only the letters so far; this loss is the mean over all positions of new letters.
    """
    generator = torch.Generator().manual_seed(seed)

    def weight(*shape, scale):
        return (torch.randn(*shape, generator=generator) * scale).requires_grad_()

    words, positions = weight(letters, width, scale=0.5), weight(T, width, scale=0.5)
    W_q, W_k, W_v = (weight(width, width, scale=width**-0.5) for _ in range(3))
    out = weight(letters, width, scale=width**-0.5)
    adam = torch.optim.Adam([words, positions, W_q, W_k, W_v, out], lr=0.01)

    def model(ids):
        x = words[ids] + positions[: ids.shape[1]]  # (B, T, D)
        return (x + attention(x @ W_q.T, x @ W_k.T, x @ W_v.T)) @ out.T  # (B, T, letters)

    losses = []
    for _ in range(steps):
        ids = torch.randint(0, letters, (64, T + 1), generator=generator)
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    ids = torch.randint(0, letters, (1000, T + 1), generator=generator)
    with torch.no_grad():
        last = [model(ids[:, :t])[:, -1] for t in range(1, T + 1)]  # (B, letters) each, from the first t letters
    writing = [F.cross_entropy(logits, ids[:, t]).item() for t, logits in enumerate(last, 1)]
    return losses, sum(writing) / T


def too_good() -> Picture:
    attend = F.scaled_dot_product_attention
    runs = (train_on_random_letters(functools.partial(attend, is_causal=causal)) for causal in (True, False))
    (honest, _), (leaking, writing) = runs
    ends = [f"ends at {sum(losses[-20:]) / 20:.2f}" for losses in (honest, leaking)]
    figure, ax = new_figure(7.4, 3.8)
    ax.plot(honest, color=BLUE, label=f"causal mask, {ends[0]}")
    ax.plot(leaking, color=RED, label=f"no mask, {ends[1]}")
    ax.axhline(math.log(8), color=BLACK, linestyle="--", linewidth=1, label="ln 8 = 2.079, uniform guessing")
    ax.axhline(writing, color=RED, linestyle="--", linewidth=1, label=f"no mask, while writing: {writing:.2f}")
    ax.axhline(math.log(8) / 12, color=ORANGE, linestyle=":", linewidth=1.5, label="ln 8 / 12 = 0.173")
    ax.set(ylim=(0, 4.6), xlabel="training step", ylabel="loss in nats")
    ax.legend(fontsize=9, loc="upper right", bbox_to_anchor=(1.0, 0.88))
    caption = "Figure 5.4. Without a mask the loss on random letters is too good in training, and bad in writing."
    alt = f"Losses over {len(honest)} training steps on random letters. The causal model stays at the line ln 8 = "
    alt += f"2.079 and {ends[0]}. The model without a mask falls far below it and "
    alt += f"{ends[1]}, near ln 8 / 12 = 0.173. While it writes, its loss is {writing:.2f}."
    return Picture(figure, alt, caption)


def last_loss(attention, seed: int = 5) -> float:
    """The mean of the last 20 training losses of `train_on_random_letters`."""
    return sum(train_on_random_letters(attention, seed)[0][-20:]) / 20


def influence() -> Picture:
    """How much each of six outputs changes when one of six inputs changes, for three kinds of attention."""
    T, d = 6, 4
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(T, d, generator=generator, dtype=torch.float64)
    allowed = torch.ones(T, T, dtype=torch.bool).tril()
    every = torch.ones_like(allowed)
    new = torch.randn(T, d, generator=generator, dtype=torch.float64)  # the same changes in all three tables

    def attend(x, before, after):
        scores = torch.where(before, x @ x.T / d**0.5, -math.inf)
        return torch.where(after, scores.softmax(-1), 0.0) @ x

    kinds = {"masked before": (allowed, allowed), "masked after": (every, allowed), "not masked": (every, every)}
    figure, axes = new_figure(8.6, 3.5, columns=3)
    leaks, later = [], ~allowed
    for ax, (title, masks) in zip(axes, kinds.items(), strict=True):
        change = torch.zeros(T, T)  # (outputs, inputs)
        for source in range(T):
            changed = x.clone()
            changed[source] = new[source]
            change[:, source] = (attend(changed, *masks) - attend(x, *masks)).abs().amax(-1).float()
        leaking = later & (change > 1e-6)
        leaks.append(int(leaking.sum()))
        heatmap(ax, change, cmap="Greens", vmin=0, vmax=2, mask=~later, numbers=False)
        leak = torch.where(leaking, change, math.nan)
        ax.imshow(leak, cmap="Oranges", vmin=-0.3, vmax=1.0, aspect="auto", zorder=3)
        for i, j in (leaking | ~later).nonzero().tolist():
            text = f"{change[i, j]:.2f}" if change[i, j] >= 0.005 or not leaking[i, j] else "<.01"
            color = "white" if not later[i, j] and change[i, j] > 1.2 else BLACK
            ax.text(j, i, text, ha="center", va="center", fontsize=SMALLEST, color=color, zorder=4)
        ax.set_title(f"{title}: {leaks[-1]} leaks", fontsize=11)
        ax.set_xlabel("changed input")
    axes[0].set_ylabel("output")
    alt = "Three tables: how much each of six outputs changes when one of six inputs is changed. Entries above the "
    alt += f"diagonal are leaks. Masked before the softmax: {leaks[0]} leaks. Masked after it: {leaks[1]} of 15 pairs "
    alt += f"leak. Not masked: {leaks[2]}."
    caption = "Figure 5.6. How much each output changes when one input changes. Orange: leaks from the future."
    return Picture(figure, alt, caption)
