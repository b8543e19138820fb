"""Pictures of lesson 3: the graph of a sentence, scores as tables and as maps, and what d_k channels can hold."""

from __future__ import annotations

import math

import torch
from matplotlib.patches import Circle, FancyArrowPatch

from helpers.figures.style import BLUE, GREEN, ORANGE, SIGNED, WEIGHTS, Picture, heatmap, new_figure

JANE = ("jane", "visits", "africa")
APPLES = ("I", "like", "to", "eat", "apples")
LIFE = ("Life", "is", "short", "eat", "dessert", "first")

# The table of the sources, drawn by hand: query, key, probability.
HAND_DRAWN = ((0, 1, 0.94), (1, 2, 0.86), (2, 1, 0.76))


def draw_wires(ax, tokens, edges, title="", color=BLUE, digits=2):
    """Tokens on a line, an arrow from the query to the key for each (query, key, weight); thick means heavy."""
    heaviest = max((abs(weight) for _, _, weight in edges), default=1.0) or 1.0
    gap = 1.6
    for query, key, weight in edges:
        width = 0.6 + 2.6 * abs(weight) / heaviest
        if query == key:
            ax.add_patch(Circle((gap * query, 0.34), 0.17, fill=False, lw=width, color=color))
            ax.text(gap * query, 0.60, f"{weight:.{digits}f}", ha="center", fontsize=9)
            continue
        bend = -0.35 - 0.1 * abs(key - query)
        arrow = FancyArrowPatch(
            (gap * query, 0),
            (gap * key, 0),
            connectionstyle=f"arc3,rad={bend}",
            arrowstyle="-|>",
            mutation_scale=13,
            lw=width,
            color=color,
            shrinkA=16,
            shrinkB=16,
        )
        ax.add_patch(arrow)
        top = -bend * gap * (key - query) / 2
        ax.text(
            gap * (query + key) / 2,
            top,
            f"{weight:.{digits}f}",
            ha="center",
            va="center",
            fontsize=9,
            zorder=3,
            bbox={"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"},
        )
    for i, token in enumerate(tokens):
        box = {"boxstyle": "round,pad=0.3", "fc": "white", "ec": "0.55"}
        ax.text(gap * i, 0, token, ha="center", va="center", bbox=box, zorder=3)
    up, down = 0.75, 0.35
    for query, key, _ in edges:
        height = (0.175 + 0.05 * abs(key - query)) * gap * abs(key - query) + 0.2
        up, down = (max(up, height), down) if key > query else (up, max(down, height))
    ax.set_xlim(-0.8, gap * (len(tokens) - 1) + 0.8)
    ax.set_ylim(-down, up)
    ax.set_aspect("equal")
    ax.axis("off")
    ax.set_title(title)


def wiring() -> Picture:
    """Left: three tokens without a wire. Right: the wires of the sources' table."""
    figure, axes = new_figure(8.4, 1.9, 1, 2)
    draw_wires(axes[0], JANE, (), "before: tokens in a row, no wires")
    draw_wires(axes[1], JANE, HAND_DRAWN, "after: who looks at whom")
    axes[0].set_ylim(axes[1].get_ylim())
    return Picture(
        figure,
        "Two graphs over the tokens jane, visits, africa. Left: no edges. Right: arrows from query to key with the "
        "hand-drawn probabilities jane to visits 0.94, visits to africa 0.86, africa to visits 0.76.",
    )


def video_search(titles, query, keys) -> Picture:
    """Dot products and cosines of one query with each title's key, as bars; the winner of each is orange."""
    dots = keys @ query  # (N,)
    cosines = dots / (keys.norm(dim=-1) * query.norm())
    figure, axes = new_figure(8.4, 2.2, 1, 2, sharey=True)
    for ax, numbers, name in zip(axes, (dots, cosines), ("dot product", "cosine"), strict=True):
        best = int(numbers.argmax())
        ax.barh(titles, numbers, color=[ORANGE if i == best else BLUE for i in range(len(titles))])
        for i, number in enumerate(numbers.tolist()):
            ax.text(number, i, f" {number:.3g}", va="center")
        ax.set_title(f"{name}: {titles[best]}")
        ax.set_xlim(0, float(numbers.max()) * 1.2)
        ax.invert_yaxis() if ax is axes[0] else None
    said = "; ".join(f"{t}: dot {d:.3g}, cosine {c:.3f}" for t, d, c in zip(titles, dots, cosines, strict=True))
    return Picture(figure, f"Two bar charts of how well a query matches each title. {said}. The winners differ.")


def search_angle(angle: float) -> Picture:
    """Three keys in the plane, a query at `angle` degrees, and the returned value as a function of the angle."""
    keys = torch.tensor([[1.0, 0.2], [0.2, 1.0], [-0.9, 0.4]])
    values = torch.tensor([1.0, 3.0, 2.0])
    names = ("A", "B", "C")

    def winner(degrees):
        turn = torch.deg2rad(torch.as_tensor(degrees, dtype=torch.float32))
        return (keys @ torch.stack((turn.cos(), turn.sin()))).argmax(0)

    figure, (plane, stairs) = new_figure(8.4, 3.2, 1, 2)
    best = int(winner(angle))
    turn = math.radians(angle)
    for i, (x, y) in enumerate(keys.tolist()):
        color = ORANGE if i == best else BLUE
        plane.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": color, "lw": 2})
        plane.text(1.15 * x, 1.15 * y, f"key {names[i]}", ha="center", va="center")
    plane.annotate("", (math.cos(turn), math.sin(turn)), (0, 0), arrowprops={"arrowstyle": "-|>", "lw": 2})
    plane.text(1.42 * math.cos(turn), 1.42 * math.sin(turn), "query", ha="center", va="center", weight="bold")
    plane.set(xlim=(-1.9, 1.9), ylim=(-0.3, 1.6), aspect="equal", title=f"query at {angle:.0f}°")
    degrees = torch.arange(0.0, 181.0)
    stairs.plot(degrees, values[winner(degrees)], color=BLUE)
    stairs.plot([angle], [values[best]], "o", color=ORANGE, markersize=9)
    stairs.set(xlabel="angle of the query (degrees)", ylabel="value returned", yticks=[1, 2, 3], ylim=(0.7, 3.3))
    stairs.set_title("flat, then a jump: no slope to learn from")
    return Picture(
        figure,
        f"A query at {angle:.0f} degrees among three keys; key {names[best]} has the largest dot product and its value "
        f"{values[best]:.0f} is returned. As the angle grows from 0 to 180 the value goes 1, 3, 2 in flat steps.",
    )


def score_table(scores, tokens, title="scores: a row asks, a column answers") -> Picture:
    """A table of scores with the largest of each row outlined."""
    figure, ax = new_figure(1.6 + 0.85 * len(tokens), 1.1 + 0.5 * len(tokens))
    heatmap(ax, scores, tokens, tokens, cmap=SIGNED, digits=1)
    best = scores.argmax(-1).tolist()
    ax.plot(best, range(len(tokens)), "s", markersize=24, fillstyle="none", color=GREEN, markeredgewidth=2)
    ax.set(title=title, xlabel="key", ylabel="query")
    said = "; ".join(f"{tokens[i]} looks most at {tokens[j]} ({scores[i, j]:.2f})" for i, j in enumerate(best))
    return Picture(figure, f"Table of scores, rows are queries and columns keys. {said}.")


def scores_of_is() -> torch.Tensor:
    """The scores of 'is' in 'Life is short, eat dessert first' with the weights of seed 123, (6,)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        x = torch.nn.Embedding(6, 16)(torch.tensor([0, 4, 5, 2, 1, 3])).detach()  # (T=6, D=16)
        W_query, W_key = torch.rand(24, 16), torch.rand(24, 16)
    return torch.stack([(W_query @ x[1]).dot(W_key @ token) for token in x])


def one_row(scores, tokens, query) -> Picture:
    """The scores of one query against every key, as bars."""
    figure, ax = new_figure(6.4, 3.2)
    best = int(scores.argmax())
    ax.bar(tokens, scores, color=[ORANGE if i == best else BLUE for i in range(len(tokens))])
    for i, score in enumerate(scores.tolist()):
        ax.text(i, score, f"{score:.4f}", ha="center", va="bottom" if score > 0 else "top")
    ax.axhline(0, color="0.4", lw=0.8)
    ax.set(title=f"what '{query}' finds in each key", ylabel="score", ylim=(-13.5, 13))
    said = ", ".join(f"{token} {score:.4f}" for token, score in zip(tokens, scores.tolist(), strict=True))
    return Picture(figure, f"Bars of the scores of '{query}': {said}. The largest is {tokens[best]}, not '{query}'.")


def looks_at_itself(rounds: int = 400) -> Picture:
    """How often a random token's largest score is its own, for five ways to make scores (T = 6, D = 16, d_k = 24)."""
    generator = torch.Generator().manual_seed(0)
    T, D, d_k = 6, 16, 24

    def normal():
        return torch.randn(d_k, D, generator=generator)

    def uniform():
        return torch.rand(d_k, D, generator=generator)

    def share(make) -> float:
        hits = 0
        for _ in range(rounds):
            x = torch.randn(T, D, generator=generator)
            q, k = make(x)
            hits += int(((q @ k.T).argmax(-1) == torch.arange(T)).sum())
        return hits / (rounds * T)

    def both(x, W):
        return x @ W.T, x @ W.T

    def same_length(x, W):
        q = torch.nn.functional.normalize(x @ W.T, dim=-1)
        return q, q

    kinds = {
        "no W at all: X Xᵀ": share(lambda x: (x, x)),
        "W_Q = W_K": share(lambda x: both(x, normal())),
        "W_Q = W_K, keys of length 1": share(lambda x: same_length(x, normal())),
        "W_Q, W_K drawn from (0, 1)": share(lambda x: (x @ uniform().T, x @ uniform().T)),
        "W_Q, W_K drawn around 0": share(lambda x: (x @ normal().T, x @ normal().T)),
    }
    figure, ax = new_figure(7.6, 2.7)
    ax.barh(list(kinds), list(kinds.values()), color=BLUE)
    for i, value in enumerate(kinds.values()):
        ax.text(value, i, f" {value:.2f}", va="center")
    ax.axvline(1 / T, color=ORANGE, ls="--")
    ax.set(xlim=(0, 1.12), title="share of tokens that find themselves (dashed: chance)")
    ax.invert_yaxis()
    said = "; ".join(f"{kind}: {value:.2f}" for kind, value in kinds.items())
    return Picture(figure, f"Share of tokens that score themselves highest, six random tokens. {said}. Chance is 0.17.")


def five_by_five(table) -> Picture:
    """The sources' table for 'I like to eat apples' with the sum of each row beside it."""
    figure, ax = new_figure(6.4, 3.2)
    heatmap(ax, table, APPLES, APPLES, vmin=0)
    sums = table.sum(-1).tolist()
    for i, total in enumerate(sums):
        ax.text(len(APPLES) - 0.35, i, f"sum {total:.2f}", va="center")
    ax.set_title("the published table, and what its rows add up to")
    said = ", ".join(f"{token} {total:.2f}" for token, total in zip(APPLES, sums, strict=True))
    return Picture(
        figure,
        f"Five by five table for I like to eat apples: symmetric, 1.00 on the diagonal. Row sums: {said}; none is 1.",
    )


# One fixed choice of the parts that bilinear and additive scores learn.
_BILINEAR = torch.tensor([[0.3, 1.0], [-0.8, 0.5]])
_ADD_QUERY = torch.tensor([[1.2, 0.3], [-0.4, 1.0]])
_ADD_KEY = torch.tensor([[0.9, -1.1], [1.3, 0.8]])
_ADD_OUT = torch.tensor([1.0, 1.0])


def four_kinds_of_score(q, k) -> dict[str, torch.Tensor]:
    """Scores of one query (2,) with keys (..., 2): cosine, dot, bilinear qᵀMk, additive vᵀtanh(W₁q + W₂k)."""
    dot = k @ q
    return {
        "cosine": dot / (k.norm(dim=-1) * q.norm()).clamp_min(1e-9),
        "dot": dot,
        "bilinear": k @ (_BILINEAR.T @ q),
        "additive": torch.tanh(q @ _ADD_QUERY.T + k @ _ADD_KEY.T) @ _ADD_OUT,
    }


def four_scores(angle: float, length: float) -> Picture:
    """Each panel maps the score of a key at that place of the plane, for a query of `angle` degrees and `length`."""
    turn = math.radians(angle)
    q = length * torch.tensor([math.cos(turn), math.sin(turn)])
    line = torch.linspace(-2.4, 2.4, 193)
    grid = torch.stack(torch.meshgrid(line, line, indexing="xy"), dim=-1)  # (193, 193, 2)
    figure, axes = new_figure(9.6, 2.9, 1, 4, sharey=True)
    near = four_kinds_of_score(q, torch.tensor([1.0, 0.5]))
    far = four_kinds_of_score(q, torch.tensor([2.0, 1.0]))
    # The colors belong to a query of length 1.5, so that a longer query shows as a steeper sheet.
    full = four_kinds_of_score(1.5 * q / length, grid)
    for ax, (name, scores) in zip(axes, four_kinds_of_score(q, grid).items(), strict=True):
        top = float(full[name].abs().max())
        bands = (scores / top * 7).round() / 7  # fourteen, as in a contour plot
        edge = (-2.4, 2.4, -2.4, 2.4)
        ax.imshow(bands, cmap=SIGNED, vmin=-1, vmax=1, origin="lower", extent=edge, interpolation="nearest")
        ax.annotate("", q.tolist(), (0, 0), arrowprops={"arrowstyle": "-|>", "lw": 2})
        ax.plot([1, 2], [0.5, 1], "o", color=GREEN)
        ax.set_title(f"{name}\n{near[name]:.2f} and {far[name]:.2f}")
        ax.set(xlim=(-2.4, 2.4), ylim=(-2.4, 2.4), aspect="equal")
    said = "; ".join(f"{name} {near[name]:.2f} and {far[name]:.2f}" for name in near)
    return Picture(
        figure,
        f"Four maps of the score over the plane of keys, for a query of length {length:.1f} at {angle:.0f} degrees. "
        f"For the key (1, 0.5) and the key twice as long: {said}.",
    )


def wanted_table(kind: str, n: int = 12) -> torch.Tensor:
    """How much each of n users wants each of n products, (n, n)."""
    generator = torch.Generator().manual_seed(3)
    if kind == "three tastes":
        return torch.randn(n, 3, generator=generator) @ torch.randn(3, n, generator=generator)
    if kind == "each a different favorite":
        return torch.eye(n)
    return torch.randn(n, n, generator=generator)


def best_with_channels(table: torch.Tensor, d_k: int) -> torch.Tensor:
    """The closest table, in squared error, that n queries and n keys of width d_k can make (Eckart and Young, 1936)."""
    U, S, Vh = torch.linalg.svd(table)
    return (U[:, :d_k] * S[:d_k]) @ Vh[:d_k]


def channels(kind: str, d_k: int) -> Picture:
    """The wanted table, the closest one with d_k channels, and the error that is left for every d_k."""
    table = wanted_table(kind)
    n = len(table)
    errors = [float((table - best_with_channels(table, d)).norm() / table.norm()) for d in range(1, n + 1)]
    figure, axes = new_figure(9.6, 3.0, 1, 3)
    top = float(table.abs().max())
    names = {"xlabel": "product", "ylabel": "user"}
    for ax, numbers, title in (
        (axes[0], table, "wanted"),
        (axes[1], best_with_channels(table, d_k), f"closest with d_k = {d_k}"),
    ):
        heatmap(ax, numbers, cmap=SIGNED, vmin=-top, vmax=top, numbers=False)
        ax.set(title=title, xticks=[0, 5, 11], yticks=[0, 5, 11], **names)
    axes[2].plot(range(1, n + 1), errors, "o-", color=BLUE)
    axes[2].plot([d_k], [errors[d_k - 1]], "o", color=ORANGE, markersize=10)
    axes[2].set(xlabel="d_k", ylabel="share of the table missed", ylim=(-0.05, 1.05), xticks=[1, 3, 6, 9, 12])
    axes[2].set_title(f"missed: {abs(errors[d_k - 1]):.2f}")
    rank = int(torch.linalg.matrix_rank(table))
    return Picture(
        figure,
        f"Twelve users and twelve products, {kind}, a table of rank {rank}. With d_k = {d_k} the closest table of "
        f"scores misses {abs(errors[d_k - 1]):.2f} of it; with {rank} channels it misses nothing.",
    )


def previous_token_target(max_len: int) -> Picture:
    """The puzzle's wish: for every query from 1 on the marked key must win strictly."""
    wanted = torch.diag(torch.ones(max_len - 1), -1)
    figure, ax = new_figure(3.4, 3.0)
    heatmap(ax, wanted, numbers=False, vmin=0, vmax=1.4)
    ax.text((max_len - 1) / 2, 0, "query 0 is free", ha="center", va="center", fontsize=9)
    ax.set(title="dark: the key that must win", xlabel="key", ylabel="query")
    return Picture(
        figure,
        f"A {max_len} by {max_len} table. In row t, from 1 on, the cell of key t - 1 is marked as the one that must "
        "have the largest score; row 0 is free.",
    )


def transitions(chain, tokens) -> Picture:
    """A Markov chain's table: rows are the current word, columns the next."""
    figure, ax = new_figure(1.8 + 0.8 * len(tokens), 1.0 + 0.5 * len(tokens))
    heatmap(ax, chain, tokens, tokens, vmin=0, vmax=1)
    ax.set(title="P(next | current)", xlabel="next", ylabel="current")
    rows = [
        f"after {a} comes {b} with {chain[i, j]:.2f}"
        for i, a in enumerate(tokens)
        for j, b in enumerate(tokens)
        if chain[i, j] > 0
    ]
    return Picture(figure, f"Table of a Markov chain: {'; '.join(rows)}.")


def two_sentences(first, second, chain_edge) -> Picture:
    """The Markov chain's one edge beside the attention edges of the same word in two sentences.

    first, second: (tokens, edges, title); chain_edge: the chain's probability that 'visits' follows 'jane'.
    """
    figure, axes = new_figure(10.4, 1.8, 1, 3)
    draw_wires(axes[0], ("jane", "visits"), ((0, 1, chain_edge),), "Markov chain, always", color=ORANGE)
    draw_wires(axes[1], *first, digits=1)
    draw_wires(axes[2], *second, digits=1)

    def said(sentence):
        tokens, edges, _ = sentence
        return f"in {' '.join(tokens)}: " + ", ".join(f"{tokens[i]} to {tokens[j]} {w:.1f}" for i, j, w in edges)

    return Picture(
        figure,
        f"Left: the Markov chain has one edge from jane to visits, {chain_edge:.2f}, whatever the sentence. "
        f"Attention scores, {said(first)}; {said(second)}.",
    )


def graph_beside_table(weights, tokens, threshold: float) -> Picture:
    """Attention weights as a heat map, and beside it the graph of the edges that reach the threshold."""
    n = len(tokens)
    edges = [(i, j, float(weights[i, j])) for i in range(n) for j in range(n) if float(weights[i, j]) >= threshold]
    figure, axes = new_figure(9.2, 2.8, 1, 2, width_ratios=(1, 1.5))
    heatmap(axes[0], weights, tokens, tokens, cmap=WEIGHTS, vmin=0, vmax=1)
    axes[0].set(xlabel="key", ylabel="query")
    draw_wires(axes[1], tokens, edges, f"edges of at least {threshold:.2f}")
    said = ", ".join(f"{tokens[i]} to {tokens[j]} {w:.2f}" for i, j, w in edges) or "none"
    return Picture(figure, f"A table of attention weights and its graph. Edges of at least {threshold:.2f}: {said}.")


def learning_the_wires(step: int) -> Picture:
    """Scores of jane visits africa after `step` steps of gradient descent from random W_Q and W_K."""
    tables, losses = _training_run()
    figure, (left, right) = new_figure(8.4, 2.8, 1, 2)
    heatmap(left, tables[step].round(decimals=1) + 0.0, JANE, JANE, cmap=SIGNED, vmin=-8, vmax=8, digits=1)
    wanted = [key for _, key, _ in HAND_DRAWN]
    left.plot(wanted, range(3), "s", markersize=30, fillstyle="none", color=GREEN, markeredgewidth=2)
    left.set(title=f"scores after {step} steps", xlabel="key", ylabel="query")
    right.plot(losses, color=BLUE)
    right.plot([step], [losses[step]], "o", color=ORANGE, markersize=9)
    right.set(xlabel="step", ylabel="loss", title=f"loss {losses[step]:.2f}", ylim=(0, None))
    best = tables[step].argmax(-1).tolist()
    said = ", ".join(f"{JANE[i]} to {JANE[j]}" for i, j in enumerate(best))
    return Picture(
        figure,
        f"After {step} training steps the loss is {losses[step]:.2f} and the largest scores are {said}. "
        "Wanted: jane to visits, visits to africa, africa to visits.",
    )


def _training_run(steps: int = 60):
    """Tables of scores and losses of a seeded run, from step 0 to `steps`."""
    generator = torch.Generator().manual_seed(5)
    x = torch.eye(3)
    wanted = torch.tensor([key for _, key, _ in HAND_DRAWN])
    W_q, W_k = (torch.randn(2, 3, generator=generator).requires_grad_() for _ in range(2))
    tables, losses = [], []
    for _ in range(steps + 1):
        scores = (x @ W_q.T) @ (x @ W_k.T).T  # (3, 3)
        loss = torch.nn.functional.cross_entropy(scores, wanted)
        tables.append(scores.detach())
        losses.append(float(loss.detach()))
        gradients = torch.autograd.grad(loss, (W_q, W_k))
        with torch.no_grad():
            for W, gradient in zip((W_q, W_k), gradients, strict=True):
                W -= 0.25 * gradient
    return tables, losses
