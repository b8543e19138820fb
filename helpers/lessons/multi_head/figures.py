"""Figures of lesson 8: splitting, merging and measuring heads, mostly those of the translator.

Blocks and heads are numbered from 0.
"""

import functools
import itertools

import torch
from matplotlib.patches import Rectangle

from helpers import translator
from helpers.blocks import apply_rope
from helpers.drawing.charts import bare, bars, frame_cells, heatmap, named, weight_map
from helpers.drawing.colors import BLUE, GRAY_INK, GREEN, K_COLOR, ORANGE, PINK, Q_COLOR, SIGNED, V_COLOR
from helpers.drawing.diagrams import flow
from helpers.drawing.style import Picture, new_figure
from helpers.translator import evaluation

HEAD_COLORS, LINES = (BLUE, ORANGE, GREEN, PINK), ("-", "--", "-.", ":")
ATTENTIONS = ("encoder.blocks.0.attention", "encoder.blocks.1.attention")
LAST_CROSS = "blocks.1.cross_attention"
DISTANCES = range(-3, 4)
SENTENCES = ("jane visits africa in september", "a clever teacher sees the white house", "the red apple is small")


# ---------------------------------------------------------------- measurements of the translator


def embedded(sentence: str, positions: bool = True) -> torch.Tensor:
    """The input of the first encoder block (1, T, 64): word vectors, with or without position vectors."""
    return evaluation.input_of(_network(positions), "encoder.blocks.0", translator.source_batch([sentence]))


def encoder_weights(sentence: str, positions: bool = True) -> torch.Tensor:
    """The attention weights of all heads of the encoder, (blocks, heads, T, T)."""
    return torch.cat(evaluation.attention_of(_network(positions), translator.source_batch([sentence])).encoder)


@functools.lru_cache(maxsize=2)
def _network(positions: bool):
    network = translator.model()
    if not positions:
        with torch.no_grad():
            network.encoder.positions.weight.zero_()
    return network


def _nats(network) -> float:
    return evaluation.nats_per_word(network, evaluation.unseen(200))


@functools.lru_cache(maxsize=1)
def ablation_losses() -> tuple[float, list[list[float]]]:
    """Nats per word of the full translator, and without each head of the encoder, in one row per block."""
    rows = [[_nats(evaluation.ablated([(block, head)])) for head in range(4)] for block in range(2)]
    return _nats(translator.model()), rows


@functools.lru_cache(maxsize=1)
@torch.no_grad()
def identity_losses() -> tuple[float, float, float]:
    """Nats per word as trained, with the identity instead of the last W_o, and with the same attention ablated."""
    network = translator.model()
    trained = _nats(network)
    W_o = network.get_submodule(LAST_CROSS).W_o.weight
    W_o.copy_(torch.eye(64))
    with_identity = _nats(network)
    W_o.zero_()
    return trained, with_identity, _nats(network)


@functools.lru_cache(maxsize=2)
def weight_by_distance(positions: bool) -> torch.Tensor:
    """The mean weight at each of DISTANCES from the query in the second encoder block, (heads, distances)."""
    src, means = evaluation.unseen(200).src, []  # (B, T), padded with 0
    all_weights = evaluation.attention_of(_network(positions), src).encoder[1]  # (B, H, T, T)
    for distance in DISTANCES:
        weights = all_weights.diagonal(distance, dim1=-2, dim2=-1).transpose(1, 2)  # (B, T - |distance|, H)
        real = src[:, abs(distance) :] != 0  # if the later one of query and key is a word, so is the other
        means.append(weights[real].mean(dim=0))  # (H,)
    return torch.stack(means, dim=-1)


# ---------------------------------------------------------------- figures


def two_questions(fractions: dict[str, float]) -> Picture:
    figure, ax = new_figure(6.4, 2.6)
    names = [name.replace("W_O", "$W_O$") for name in fractions]
    look = {"xlim": (0, 1), "xlabel": "fraction of variance unexplained after training"}
    bars(ax, names, list(fractions.values()), ".2f", across=True, color=[ORANGE, ORANGE, BLUE], **look)
    ax.axvline(0.5, color=GRAY_INK, lw=1, ls="--")
    ax.text(0.51, 2.42, "one half", color=GRAY_INK, fontsize=10, va="bottom")
    details = named(fractions, fractions.values())
    alt = f"Three bars, the fraction of variance unexplained after training: {details}. A dashed line marks one half."
    caption = "Figure 8.1. For a difference of two tokens one head leaves half of the variance unexplained."
    return Picture(figure, alt, caption)


def split_into_heads(x: torch.Tensor, num_heads: int) -> Picture:
    """Tokens (T, D), the heads that split_heads makes of them, and what a view alone would make, colored by token."""
    T, D = x.shape
    width = D // num_heads
    right = x.view(T, num_heads, width).transpose(0, 1)  # (H, T, D/H)
    wrong = x.view(num_heads, T, width)  # (H, T, D/H)
    figure, axes = new_figure(8.6, 1.9, 1, 3, width_ratios=(D, D + 1, D + 1))
    token_of = {int(number): t for t, row in enumerate(x.tolist()) for number in row}
    titles = "x: two tokens", "view, then transpose: right", "view alone: wrong"
    for ax, tables, title in zip(axes, (x[None], right, wrong), titles, strict=True):
        _squares(ax, tables, token_of, width)
        ax.set_title(title)
    details = ((f"head {h} rows {head.int().tolist()}" for h, head in enumerate(heads)) for heads in (right, wrong))
    right_rows, wrong_rows = map("; ".join, details)
    alt = "Two tokens of six channels, colored by token. After view and transpose, each head holds a row of each "
    alt += f"token: {right_rows}. With view alone, each head holds one token only: {wrong_rows}."
    caption = "Figure 8.2. Splitting has two steps. Without the second, each head here would hold parts of one token "
    caption += f"only ({num_heads} heads, {T} tokens)."
    return Picture(figure, alt, caption)


def _squares(ax, tables, token_of, width) -> None:
    """Draw tables of numbers next to each other, each number in the color of its token."""
    left = 0
    for h, table in enumerate(tables):
        for i, row in enumerate(table.tolist()):
            for j, number in enumerate(row):
                color = (BLUE, ORANGE)[token_of[int(number)]]
                ax.add_patch(Rectangle((left + j, -i), 1, 1, facecolor=color, alpha=0.35, edgecolor="white", lw=2))
                ax.text(left + j + 0.5, -i + 0.5, f"{int(number)}", ha="center", va="center")
        if len(tables) > 1:
            ax.text(left + len(table[0]) / 2, -1.5, f"head {h}", ha="center", va="center")
        else:
            ax.plot([width, width], [-1, 1], color="black", lw=1.5, ls="--")
            for i in range(2):
                ax.text(-0.3, -i + 0.5, f"token {i}", ha="right", va="center")
        left += len(table[0]) + 1
    bare(ax, xlim=(-2.6 if len(tables) == 1 else -0.2, left - 0.6), ylim=(-2, 1.2), aspect="equal")


def shapes(B: int, T: int, D: int, H: int) -> Picture:
    d = D // H
    figure, ax = new_figure(8.6, 3.3)
    boxes = {"x": ((B, T, D), 0.0, 1.0, "#AAAAAA")}
    for name, y, color in (("Q", 2.0, Q_COLOR), ("K", 1.0, K_COLOR), ("V", 0.0, V_COLOR)):
        boxes |= {name: ((B, T, D), 1.75, y, color), f"{name} split": ((B, H, T, d), 3.5, y, color)}
    boxes |= {"weights": ((B, H, T, T), 5.25, 1.75, BLUE), "heads": ((B, H, T, d), 5.25, 0.25, V_COLOR)}
    boxes |= {"merged": ((B, T, D), 7.0, 0.25, V_COLOR), "out": ((B, T, D), 7.0, 1.75, "#AAAAAA")}
    arrows = [arrow for name in "QKV" for arrow in (("x", name, f"$W_{name}$"), (name, f"{name} split", "split"))]
    arrows += [("Q split", "weights", ""), ("K split", "weights", ""), ("V split", "heads", "")]
    flow(ax, boxes, [*arrows, ("weights", "heads", ""), ("heads", "merged", "merge"), ("merged", "out", "$W_O$")])
    bare(ax, xlim=(-0.05, 8.4), ylim=(-0.1, 2.85))
    alt = f"Boxes from left to right: x ({B}, {T}, {D}); Q, K and V of the same shape; each split into ({B}, {H}, {T}, "
    alt += f"{d}); weights ({B}, {H}, {T}, {T}) and heads ({B}, {H}, {T}, {d}); merged ({B}, {T}, {D}); and through "
    alt += f"W_O the output ({B}, {T}, {D})."
    caption = "Figure 8.3. The heads don't interact until they are merged and multiplied by the output matrix."
    return Picture(figure, alt, caption)


@torch.no_grad()
def what_heads_write(mha, x: torch.Tensor, token: int) -> Picture:
    weights = mha(x)[1]  # (1, H, T, T)
    H, D = weights.shape[1], x.shape[-1]
    values = mha.W_v(x)[0].unflatten(-1, (H, -1))  # (T, H, D/H)
    heads = torch.einsum("ht,thd->hd", weights[0, :, token], values)  # (H, D/H)
    before = torch.block_diag(*heads[:, None])  # (H, D)
    after = before @ mha.W_o.weight.T  # (H, D)
    figure, axes = new_figure(8.6, 4.3, 3, 1, sharex=True, height_ratios=(4, 4, 1))
    names = [f"head {h}" for h in range(H)]
    total = (after.sum(dim=0) + mha.W_o.bias)[None]
    for ax, table, rows, mask, title in (
        (axes[0], before, names, before != 0, "merged: each head in channels of its own"),
        (axes[1], after, names, None, "each multiplied by its part of $W_O$"),
        (axes[2], total, ["sum"], None, "sum, with the bias: the output"),
    ):
        heatmap(ax, table, rows, cmap=SIGNED, numbers=False, mask=mask)
        ax.set_title(title, fontsize=11)
    axes[2].set(xticks=range(0, D, 16), xticklabels=range(0, D, 16), xlabel="channel of the output")
    alt = f"Three heat maps of {D} columns for the word visits. Above, four heads fill {D // H} columns each and the "
    alt += "rest is hatched. In the middle, after W_O, every head has values in all columns. Below, their sum."
    caption = "Figure 8.4. After the output matrix every head writes into all channels, and the results are summed."
    return Picture(figure, alt, caption)


def without_output_matrix() -> Picture:
    trained, with_identity, ablated = identity_losses()
    losses = {"as trained": trained, "attention ablated": ablated, "identity for $W_O$": with_identity}
    figure = _loss_bars(losses, 2, [BLUE, PINK, ORANGE])
    alt = f"Three bars of the translator's loss in nats per word: as trained {trained:.4f}, the last attention to the "
    alt += f"English words ablated {ablated:.1f}, the identity instead of its W_O {with_identity:.1f}."
    return Picture(figure, alt, "Figure 8.11. Head outputs in the wrong channels hurt more than none.")


def _loss_bars(losses: dict[str, float], longest: float, color):
    """Draw the translator's losses under three conditions, the first of them without any change."""
    figure, ax = new_figure(6.4, 2.4)
    texts = [f"{loss:.1f}" if i else f"{loss:.4f}" for i, loss in enumerate(losses.values())]
    look = {"xlim": (0, longest), "xlabel": "nats per word on 200 unseen sentences"}
    bars(ax, list(losses), list(losses.values()), texts, across=True, color=color, **look)
    return figure


def transplant(load, mine, theirs) -> str:
    """Load torch's weights into a module, and describe how much the outputs of the two modules differ."""
    try:
        load(mine, theirs)
    except NotImplementedError:
        return "load_from_torch is not answered yet; once it is, this cell compares the two modules."
    x = torch.randn(2, 6, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        out, weights = mine(x)
        expected, their_weights = theirs(x, x, x, average_attn_weights=False)
    details = []
    for name, gap in (("weights", weights - their_weights), ("outputs", out - expected)):
        error = gap.abs().max().item()
        details.append(f"{name} differ by at most {error:.0e}" if error else f"{name} are the same to the last digit")
    return f"Two sentences of six tokens, yours against theirs: {' and '.join(details)}."


def budget_numbers(D: int, H: int, T: int) -> dict[str, int]:
    """The cost of a layer of width D with H heads for a sentence of T tokens."""
    return {
        "parameters": 4 * (D * D + D),
        "products for scores": T * T * D,
        "attention weights": H * T * T,
        "width of a head": D // H,
    }


@torch.no_grad()
def influence(layer, x: torch.Tensor) -> torch.Tensor:
    """How much output i changes if token j of x (T, D) is replaced, (T, T)."""
    other = torch.randn(x.shape, generator=torch.Generator().manual_seed(5))
    changed = torch.where(torch.eye(len(x)).bool()[..., None], other, x)  # (T, T, D): token j of row j is new
    before, *after = layer(torch.cat([x[None], changed]))  # (T, D) each
    return (torch.stack(after, dim=1) - before[:, None]).norm(dim=-1)


def leak(layer, x: torch.Tensor) -> Picture:
    changes = influence(layer, x)
    T = len(x)
    figure, ax = new_figure(5.2, 4.2)
    picture = heatmap(ax, changes, cmap="Blues", numbers=False)
    leaks = [(i, j) for i in range(T) for j in range(i + 1, T) if changes[i, j] > 1e-6]
    frame_cells(ax, leaks)
    ax.set(xlabel="token that is replaced", ylabel="output", title="framed: leaks from the future")
    figure.colorbar(picture, ax=ax, shrink=0.8, label="change of the output")
    listed = "; ".join(f"output {i} by tokens {[j for k, j in leaks if k == i]}" for i in sorted({i for i, _ in leaks}))
    alt = f"Heat map of {T} outputs against {T} tokens. Framed are the cells above the diagonal that are not zero, "
    alt += f"where the future leaks: {listed}."
    caption = "Figure 8.6. Which token changes which output of the original function, with a causal mask."
    return Picture(figure, alt, caption)


def by_distance(queries: torch.Tensor, keys: torch.Tensor, query: str, key: str) -> Picture:
    """The score of a query and a key (H, d) in each head with RoPE, over the distance between the two words."""
    distances = torch.arange(-12, 13)
    H, d = queries.shape
    rotated = apply_rope(keys[:, None].expand(H, len(distances), d), distances)  # (H, 25, d)
    scores = (apply_rope(queries[:, None], distances[:1] * 0) * rotated).sum(-1).detach() / d**0.5  # (H, 25)
    figure, ax = new_figure(7.4, 3.0)
    for h in range(H):
        ax.plot(distances, scores[h], color=HEAD_COLORS[h], lw=2, ls=LINES[h], label=f"head {h}")
    ax.axvline(0, color=GRAY_INK, lw=1)
    ax.set(xlabel=f"position of {key} minus position of {query}", ylabel="scaled score")
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    best = ", ".join(f"head {h} at {int(distances[scores[h].argmax()])}" for h in range(H))
    ranges = ", ".join(f"{float(row.max() - row.min()):.2f}" for row in scores)
    alt = f"Four curves, one per head: the score of query {query} and key {key} over the distance between the two, "
    alt += f"from -12 to 12. They are oscillating and not symmetric; the maxima are {best}. From top to bottom they "
    alt += f"measure {ranges}."
    return Picture(figure, alt, "Figure 8.9. With RoPE, the score in each head depends on the signed distance.")


def weights_by_distance() -> Picture:
    figure, axes = new_figure(8.6, 3.0, 1, 2, sharey=True)
    details = []
    for ax, positions, title in zip(axes, (True, False), ("with positions", "positions set to zero"), strict=True):
        weights = weight_by_distance(positions)
        for h in range(4):
            ax.plot(DISTANCES, weights[h], marker="o", ms=4, color=HEAD_COLORS[h], ls=LINES[h], label=f"head {h}")
        ax.set(title=title, xlabel="distance (1 is the next token)", ylim=(0, 0.52))
        percent = [" ".join(f"{100 * value:.0f}" for value in row) for row in weights.tolist()]
        details.append(f"{title}: " + "; ".join(f"head {h} {row}" for h, row in enumerate(percent)))
    axes[0].set_ylabel("mean weight")
    axes[1].legend(loc="upper left", frameon=False, ncols=2)
    alt = "Mean weight in percent at distances -3 to 3 for the four heads of block 1. " + ". ".join(details) + "."
    caption = "Figure 8.10. With positions, heads attend forward or backward. Without them the curves almost coincide."
    return Picture(figure, alt, caption)


def eight_heads(weights: torch.Tensor, words: list[str]) -> Picture:
    """The weights (L, H, T, T) of all heads of the encoder for a sentence."""
    L, H = weights.shape[:2]
    figure, axes = new_figure(8.6, 5.0, L, H, sharex=True, sharey=True)
    best = []
    for b, h in itertools.product(range(L), range(H)):
        ax = axes[b][h]
        weight_map(ax, weights[b, h], words, numbers=False, tilted=True)
        ax.set_title(f"block {b}, head {h}", fontsize=10)
        ax.tick_params(labelsize=9)
        best.append(f"block {b} head {h} gives most to {words[int(weights[b, h].sum(dim=0).argmax())]}")
    alt = f"{L * H} heat maps of attention over the words {' '.join(words)}. Over all queries, " + "; ".join(best) + "."
    caption = "Figure 8.7. Eight heads of the encoder on one sentence, with queries in rows and keys in columns."
    return Picture(figure, alt, caption)


def without_each_head() -> Picture:
    full, rows = ablation_losses()
    figure, ax = new_figure(7.4, 3.0)
    names = [f"block {b}\nhead {h}" for b in range(2) for h in range(4)]
    losses = [loss for row in rows for loss in row]
    worst = max(range(8), key=losses.__getitem__)
    bars(ax, names, losses, ".4f", color=[ORANGE if i == worst else BLUE for i in range(8)], width=0.65)
    ax.set(ylabel="nats per word", ylim=(0, 1.15 * max(losses)), title=f"one head ablated; with all heads {full:.4f}")
    ax.tick_params(axis="x", labelsize=9)
    heads = named((name.replace("\n", " ") for name in names), losses, ".4f")
    alt = f"Loss of the translator in nats per word with one encoder head ablated; with all heads {full:.4f}. {heads}."
    caption = "Figure 8.8. Only one head is expensive to ablate. Each of the others can be ablated alone at little "
    caption += "cost."
    return Picture(figure, alt, caption)


def importance_against_damage(head_importance) -> Picture:
    _, rows = ablation_losses()
    network, details = translator.model(), []
    sentences = [row for row in evaluation.unseen(200).src if (row != 0).sum() == 8][:40]
    src = torch.stack(sentences)[:, :8]
    figure, ax = new_figure(6.4, 3.2)
    for block, name in enumerate(ATTENTIONS):
        sizes = head_importance(network.get_submodule(name), evaluation.input_of(network, name, src)).tolist()
        marker, color = ("o", "s")[block], (BLUE, ORANGE)[block]
        ax.plot(sizes, rows[block], marker, color=color, ms=8, ls="", label=f"block {block}")
        for h, (size, loss) in enumerate(zip(sizes, rows[block], strict=True)):
            ax.annotate(f"{h}", (size, loss), (7, 3), textcoords="offset points", fontsize=10)
            details.append(f"block {block} head {h} importance {size:.1f}, loss {loss:.4f}")
    ax.set(yscale="log", ylim=(1e-4, 0.3), xlabel="head_importance on 40 sentences")
    ax.set(ylabel="nats per word without the head")
    ax.set_xlim(left=0)
    ax.legend(frameon=False, loc="upper left")
    caption = "Figure 8.12. The size of a head's output doesn't tell you how much the model needs the head."
    return Picture(figure, f"Eight dots, importance against the loss without the head: {'; '.join(details)}.", caption)


def _grouped(attend, groups: int) -> type:
    """A class for the translator's attention that averages the heads of keys and values in each group."""

    class Grouped(translator.FINISHED_PARTS["MultiHeadAttention"]):
        def forward(self, query, key=None, value=None, mask=None):
            key = query if key is None else key
            inputs = ((self.W_q, query), (self.W_k, key), (self.W_v, key if value is None else value))
            split = translator.FINISHED_PARTS["split_heads"]
            Q, K, V = (split(layer(x), self.num_heads) for layer, x in inputs)  # (B, H, T, d) each
            K, V = (x.unflatten(1, (groups, -1)).mean(dim=2) for x in (K, V))  # (B, G, T_k, d) each
            return self.W_o(attend(Q, K, V, mask).transpose(1, 2).flatten(2)), None

    return Grouped


def shared_keys(attend) -> Picture:
    losses = [_nats(translator.model(MultiHeadAttention=_grouped(attend, groups))) for groups in (4, 2, 1)]
    names = ["4 heads of keys", "2 groups", "1 group"]
    details = named(names, losses, ".4f")
    alt = f"Three bars of the translator's loss in nats per word, by heads of keys and values: {details}."
    caption = "Figure 8.13. Heads that learned keys of their own can't share them without more training."
    return Picture(_loss_bars(dict(zip(names, losses, strict=True)), 6.5, [BLUE, ORANGE, ORANGE]), alt, caption)
