"""Figures of lesson 3: sentences as graphs, queries and keys, tables of scores, and the Markov chain of a text."""

import functools

import torch
from matplotlib.patches import Circle as Ring

from helpers.drawing.charts import bare, bars, heatmap, named, weight_map
from helpers.drawing.colors import BLUE, GREEN, K_MAP, ORANGE, Q_MAP, SIGNED
from helpers.drawing.diagrams import arrow
from helpers.drawing.style import Picture, new_figure
from helpers.translator.evaluation import head_inputs
from helpers.widgets.answered import answered

JANE = ("jane", "visits", "africa")
APPLES = ("I", "like", "to", "eat", "apples")
LIFE = ("Life", "is", "short", "eat", "dessert", "first")

REAL_HEAD = 1, 3  # the block and head of the translator's encoder, from 0, whose scores the lesson shows

# The edges (query, key, weight) of the sources' table; they don't say where it comes from.
SKETCHED = ((0, 1, 0.94), (1, 2, 0.86), (2, 1, 0.76))


def draw_wires(ax, tokens, edges, title="", color=BLUE, digits=2):
    """Draw tokens in a row and, for each edge (query, key, weight), an arrow as thick as its weight."""
    heaviest = max((abs(weight) for _, _, weight in edges), default=1.0) or 1.0
    gap = 1.6
    for query, key, weight in edges:
        width = 0.6 + 2.6 * abs(weight) / heaviest
        if query == key:
            ax.add_patch(Ring((gap * query, 0.34), 0.17, fill=False, lw=width, color=color))
            ax.text(gap * query, 0.60, f"{weight:.{digits}f}", ha="center", fontsize=9)
            continue
        curvature = -0.35 - 0.1 * abs(key - query)
        look = {"connectionstyle": f"arc3,rad={curvature}", "shrinkA": 16, "shrinkB": 16}
        arrow(ax, (gap * query, 0), (gap * key, 0), color, width, **look)
        middle, top = gap * (query + key) / 2, -curvature * gap * (key - query) / 2
        background = {"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"}
        ax.text(middle, top, f"{weight:.{digits}f}", ha="center", va="center", fontsize=9, zorder=3, bbox=background)
    for i, token in enumerate(tokens):
        box = {"boxstyle": "round,pad=0.3", "fc": "white", "ec": "0.55"}
        ax.text(gap * i, 0, token, ha="center", va="center", bbox=box, zorder=3)
    up, down = 0.75, 0.35
    for query, key, _ in edges:
        height = (0.175 + 0.05 * abs(key - query)) * gap * abs(key - query) + 0.2
        up, down = (max(up, height), down) if key > query else (up, max(down, height))
    bare(ax, xlim=(-0.8, gap * (len(tokens) - 1) + 0.8), ylim=(-down, up), aspect="equal", title=title)


def wiring() -> Picture:
    """Three tokens without edges, and below them the same tokens with the edges of the sources' table."""
    figure, axes = new_figure(7.0, 2.8, 2, 1, height_ratios=(1, 2.4))
    for ax, edges, words in zip(axes, ((), SKETCHED), ("before\nattention", "after\nattention"), strict=True):
        draw_wires(ax, JANE, edges)
        ax.text(-2.3, 0, words, va="center")
        ax.set_xlim(-2.4, 4.0)
    axes[0].set_ylim(-0.25, 0.25)
    alt = "Two graphs over the tokens jane, visits, africa. Above: no edges. Below: arrows from query to key with the "
    alt += "source's weights jane to visits 0.94, visits to africa 0.86, africa to visits 0.76."
    return Picture(figure, alt, "Figure 3.1. The tokens of a sentence, first unconnected and then as a graph.")


def video_search(titles, query, keys) -> Picture:
    dots = keys @ query  # (N,)
    cosines = dots / (keys.norm(dim=-1) * query.norm())
    figure, axes = new_figure(8.4, 2.2, 1, 2, sharey=True)
    for ax, numbers, name in zip(axes, (dots, cosines), ("dot product", "cosine"), strict=True):
        best = int(numbers.argmax())
        colors = [ORANGE if i == best else BLUE for i in range(len(titles))]
        bars(ax, titles, numbers, ".3g", across=True, color=colors, height=0.8)
        ax.set(title=f"{name}: {titles[best]}", xlim=(0, float(numbers.max()) * 1.2))
    details = "; ".join(f"{t}: dot {d:.3g}, cosine {c:.3f}" for t, d, c in zip(titles, dots, cosines, strict=True))
    alt = f"Two bar charts of how well a query matches each title. {details}. The winners differ."
    return Picture(figure, alt, "Figure 3.2. The dot product and the cosine pick different videos.")


def _rows(matrix) -> str:
    return ", ".join("(" + " ".join(f"{number:g}" for number in row) + ")" for row in matrix.tolist())


def projections(X, W_q, W_k, tokens=JANE) -> Picture:
    figure, axes = new_figure(8.6, 4.2, 2, 3, width_ratios=(3, 2, 2))
    features = ("person", "action", "location")
    kinds = (W_q, Q_MAP, "Q: what it looks for"), (W_k, K_MAP, "K: what it offers")
    for (left, middle, right), (W, cmap, title) in zip(axes, kinds, strict=True):
        top = max(float(W.abs().max()), 1.0)
        look = {"columns": features[1:], "cmap": cmap, "vmin": -top, "vmax": top, "digits": 0}
        heatmap(left, X, tokens, features, cmap=SIGNED, vmin=-2, vmax=2, digits=0, title="X")
        heatmap(middle, W.T, features, title=f"·  $W_{title[0]}^\\top$", **look)
        heatmap(right, X @ W.T, tokens, title=f"=  {title}", **look)
    alt = "Two products of colored matrices. X, the identity, holds the words jane, visits, africa as rows. Times the "
    alt += f"transpose of W_Q it gives the queries {_rows(X @ W_q.T)}; times the transpose of W_K the keys "
    alt += f"{_rows(X @ W_k.T)}."
    caption = "Figure 3.3. The same words as queries (what they look for) and as keys (what they offer)."
    return Picture(figure, alt, caption)


def scores_of_graph(X, W_q, W_k, tokens=JANE) -> Picture:
    Q, K = X @ W_q.T, X @ W_k.T
    scores = Q @ K.T
    figure, axes = new_figure(8.6, 2.6, 1, 4, width_ratios=(1.2, 1.7, 1.9, 3.2))
    top, features = float(max(Q.abs().max(), scores.abs().max())), ("action", "location")
    look = {"digits": 0, "tilted": True}
    heatmap(axes[0], Q, tokens, features, cmap=Q_MAP, vmin=-top, vmax=top, title="Q", **look)
    heatmap(axes[1], K.T, features, tokens, cmap=K_MAP, vmin=-1.5, vmax=1.5, title="·  $K^\\top$", **look)
    heatmap(axes[2], scores, tokens, tokens, cmap=SIGNED, vmin=-top, vmax=top, title="=  S", **look)
    best = scores.argmax(-1).tolist()
    axes[2].plot(best, range(len(tokens)), "s", markersize=26, fillstyle="none", color=GREEN, markeredgewidth=2)
    draw_wires(axes[3], tokens, [(i, j, float(scores[i, j])) for i, j in enumerate(best)], "the graph", digits=0)
    details = "; ".join(f"{tokens[i]} attends most to {tokens[j]} ({scores[i, j]:.0f})" for i, j in enumerate(best))
    alt = f"Queries times keys: a table of scores, rows are queries and columns keys: {_rows(scores)}. {details}."
    caption = "Figure 3.4. The scores of all queries with all keys, and the graph of the largest ones."
    return Picture(figure, alt, caption)


@functools.lru_cache(maxsize=1)
def one_real_head():
    """The input (5, 64) of the translator's last encoder head for one sentence, and its W_Q and W_K, (16, 64) each."""
    x, weights = head_inputs("jane visits africa in september", *REAL_HEAD)
    return x, weights["W_q.weight"], weights["W_k.weight"]


def scores_of_is() -> torch.Tensor:
    """The scores (6,) of 'is' in 'Life is short, eat dessert first', with random weights of seed 123."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        x = torch.nn.Embedding(6, 16)(torch.tensor([0, 4, 5, 2, 1, 3])).detach()  # (T=6, D=16)
        W_query, W_key = torch.rand(24, 16), torch.rand(24, 16)
    x, W_query, W_key = x.double(), W_query.double(), W_key.double()  # so that every machine gets the same last digit
    return torch.stack([(W_query @ x[1]).dot(W_key @ token) for token in x]).float()


def one_row(scores, tokens, query) -> Picture:
    figure, ax = new_figure(6.4, 3.2)
    best = int(scores.argmax())
    look = {"title": f"scores of '{query}' with each key", "ylabel": "score", "ylim": (-13.5, 13)}
    bars(ax, tokens, scores, ".3f", color=[ORANGE if i == best else BLUE for i in range(len(tokens))], **look)
    ax.axhline(0, color="0.4", lw=0.8)
    details = f"{named(tokens, scores, '.3f')}. The largest is {tokens[best]}, not '{query}'."
    caption = "Figure 3.5. Scores of one untrained query with all keys."
    return Picture(figure, f"Bars of the scores of '{query}': {details}", caption)


def self_scores_by_kind(rounds: int = 400) -> Picture:
    """How often a random token scores highest with itself, for five kinds of scores (T = 6, D = 16, d_k = 24)."""
    generator = torch.Generator().manual_seed(0)
    T, D, d_k = 6, 16, 24

    def projected(x, draw=torch.randn):
        return x @ draw(d_k, D, generator=generator).T

    def fraction(make) -> float:
        hits = 0
        for _ in range(rounds):
            q, k = make(torch.randn(T, D, generator=generator))
            hits += int(((q @ k.T).argmax(-1) == torch.arange(T)).sum())
        return hits / (rounds * T)

    kinds = {
        "no W at all: X Xᵀ": fraction(lambda x: (x, x)),
        "$W_Q = W_K$": fraction(lambda x: [projected(x)] * 2),
        "$W_Q = W_K$, keys of length 1": fraction(lambda x: [torch.nn.functional.normalize(projected(x), dim=-1)] * 2),
        "$W_Q$, $W_K$ uniform in (0, 1)": fraction(lambda x: (projected(x, torch.rand), projected(x, torch.rand))),
        "$W_Q$, $W_K$ normal, mean 0": fraction(lambda x: (projected(x), projected(x))),
    }
    figure, ax = new_figure(7.6, 2.7)
    bars(ax, list(kinds), list(kinds.values()), ".3f", across=True, height=0.8)
    ax.axvline(1 / T, color=ORANGE, ls="--")
    ax.set(xlim=(0, 1.12), title="fraction that attend most to themselves (dashed: chance)")
    details = "; ".join(f"{kind}: {value:.3f}" for kind, value in kinds.items()).replace("$", "")
    alt = f"How often the largest score of a token, among six random ones, is with itself. {details}. Chance is 0.17."
    caption = "Figure 3.9. How often a token attends most to itself, for five ways to compute scores."
    return Picture(figure, alt, caption)


def five_by_five(table) -> Picture:
    """The sources' table for 'I like to eat apples', with the sum of each row on the right."""
    figure, ax = new_figure(6.4, 3.2)
    heatmap(ax, table, APPLES, APPLES, vmin=0, title="the published table, and the sums of its rows")
    for i, total in enumerate(table.sum(-1).tolist()):
        ax.text(len(APPLES) - 0.35, i, f"sum {total:.2f}", va="center")
    details = f"symmetric, 1.00 on the diagonal. Row sums: {named(APPLES, table.sum(-1))}; none is 1."
    caption = "Figure 3.10. The published table, and the sums of its rows."
    return Picture(figure, f"Five by five table for I like to eat apples: {details}", caption)


def previous_token_target(max_len: int) -> Picture:
    wanted = torch.diag(torch.ones(max_len - 1), -1)
    figure, ax = new_figure(3.4, 3.0)
    heatmap(ax, wanted, numbers=False, vmin=0, vmax=1.4)
    ax.text((max_len - 1) / 2, 0, "query 0 is free", ha="center", va="center", fontsize=9)
    ax.set(title="blue: the key with the largest score", xlabel="key", ylabel="query")
    alt = f"A {max_len} by {max_len} table. In row t, from 1 on, the cell of key t - 1 is marked as the one that must "
    alt += "have the largest score; row 0 is free."
    caption = "Figure 3.6. The goal: from the second row on, the blue key must have the largest score."
    return Picture(figure, alt, caption)


def transitions(chain, tokens) -> Picture:
    figure, ax = new_figure(1.8 + 0.8 * len(tokens), 1.0 + 0.5 * len(tokens))
    weight_map(ax, chain, tokens, title="P(next | current)", xlabel="next", ylabel="current")
    edges = (chain > 0).nonzero().tolist()
    rows = [f"after {tokens[i]} comes {tokens[j]} with {chain[i, j]:.2f}" for i, j in edges]
    caption = "Figure 3.7. The Markov chain of a text of six words."
    return Picture(figure, f"Table of a Markov chain: {'; '.join(rows)}.", caption)


def two_sentences(W_q, W_k, chain_edge: float) -> Picture:
    """One edge of the Markov chain and the scores of jane in two sentences; loves is a strong action, (0, 2, 0).

    chain_edge: the probability in the chain that visits follows jane.
    """
    vectors = {"jane": (1.0, 0, 0), "visits": (0, 1.0, 0), "africa": (0, 0, 1.0), "loves": (0, 2.0, 0)}
    figure, axes = new_figure(8.6, 1.9, 1, 3, width_ratios=(1, 1.5, 1.5))
    draw_wires(axes[0], ("jane", "visits"), ((0, 1, chain_edge),), "Markov chain, always", color=ORANGE)
    details = []
    for ax, tokens in zip(axes[1:], (JANE, ("jane", "loves", "visits")), strict=True):
        x = torch.tensor([vectors[token] for token in tokens])  # (3, 3)
        scores = ((x @ W_q.T) @ (x @ W_k.T).T)[0].tolist()  # jane's row
        edges = [(0, j, score) for j, score in enumerate(scores) if score]
        draw_wires(ax, tokens, edges, " ".join(tokens), digits=1)
        details.append(f"in {' '.join(tokens)}: " + ", ".join(f"jane to {tokens[j]} {w:.1f}" for _, j, w in edges))
    alt = f"Left: the Markov chain has one edge from jane to visits, {chain_edge:.2f}, whatever the sentence. "
    alt += f"The scores of jane that are not 0, {details[0]}; {details[1]}."
    caption = "Figure 3.8. A Markov chain has one fixed edge; in the two sentences the largest score of jane differs."
    return Picture(figure, alt, caption)


@answered
def graph_of_edges(find_edges, weights, tokens, threshold: float) -> Picture:
    """The graph of the edges that `find_edges(weights, tokens, threshold)` returns."""
    edges = [(tokens.index(q), tokens.index(k), float(w)) for q, k, w in find_edges(weights, tokens, threshold)]
    figure, ax = new_figure(8.6, 2.6)
    draw_wires(ax, tokens, edges, "")
    details = ", ".join(f"{tokens[i]} to {tokens[j]} {w:.2f}" for i, j, w in edges)
    caption = "Figure 3.11. A graph from a trained head of the translator, with all weights of one third or more."
    return Picture(figure, f"The graph of one head of the translator: {details}.", caption)
