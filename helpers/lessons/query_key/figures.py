"""Pictures of lesson 3: the graph of a sentence, scores as tables and as maps, and what d_k channels can hold."""

import functools
import math

import torch
from matplotlib import patheffects
from matplotlib.patches import Circle as Ring
from matplotlib.patches import FancyArrowPatch, Rectangle

from helpers.drawing.charts import bare, bars, heatmap, named, weight_map
from helpers.drawing.colors import BLUE, GREEN, K_COLOR, K_MAP, ORANGE, Q_COLOR, Q_MAP, SIGNED
from helpers.drawing.diagrams import arrow
from helpers.drawing.style import Picture, new_figure
from helpers.translator.evaluation import read_by_a_head
from helpers.widgets.answered import answered

JANE = ("jane", "visits", "africa")
APPLES = ("I", "like", "to", "eat", "apples")
LIFE = ("Life", "is", "short", "eat", "dessert", "first")

ARCS = 1, 3  # the block and the head of the translator's encoder, counted from 0, whose arcs the lesson draws

# The table of the sources, which do not say where it comes from: query, key, probability.
SKETCHED = ((0, 1, 0.94), (1, 2, 0.86), (2, 1, 0.76))


def draw_wires(ax, tokens, edges, title="", color=BLUE, digits=2):
    """Tokens on a line, an arrow from the query to the key for each (query, key, weight); thick means heavy."""
    heaviest = max((abs(weight) for _, _, weight in edges), default=1.0) or 1.0
    gap = 1.6
    for query, key, weight in edges:
        width = 0.6 + 2.6 * abs(weight) / heaviest
        if query == key:
            ax.add_patch(Ring((gap * query, 0.34), 0.17, fill=False, lw=width, color=color))
            ax.text(gap * query, 0.60, f"{weight:.{digits}f}", ha="center", fontsize=9)
            continue
        bend = -0.35 - 0.1 * abs(key - query)
        look = {"connectionstyle": f"arc3,rad={bend}", "shrinkA": 16, "shrinkB": 16}
        arrow(ax, (gap * query, 0), (gap * key, 0), color, width, **look)
        middle, top = gap * (query + key) / 2, -bend * gap * (key - query) / 2
        ground = {"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"}
        ax.text(middle, top, f"{weight:.{digits}f}", ha="center", va="center", fontsize=9, zorder=3, bbox=ground)
    for i, token in enumerate(tokens):
        box = {"boxstyle": "round,pad=0.3", "fc": "white", "ec": "0.55"}
        ax.text(gap * i, 0, token, ha="center", va="center", bbox=box, zorder=3)
    up, down = 0.75, 0.35
    for query, key, _ in edges:
        height = (0.175 + 0.05 * abs(key - query)) * gap * abs(key - query) + 0.2
        up, down = (max(up, height), down) if key > query else (up, max(down, height))
    bare(ax, xlim=(-0.8, gap * (len(tokens) - 1) + 0.8), ylim=(-down, up), aspect="equal", title=title)


def wiring() -> Picture:
    """Three tokens without a wire, and below them the same with the wires of the sources' table."""
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
    said = "; ".join(f"{t}: dot {d:.3g}, cosine {c:.3f}" for t, d, c in zip(titles, dots, cosines, strict=True))
    alt = f"Two bar charts of how well a query matches each title. {said}. The winners differ."
    return Picture(figure, alt, "Figure 3.2. The dot product and the cosine pick different videos.")


class Search:
    KEYS = torch.tensor([[1.0, 0.2], [0.2, 1.0], [-0.9, 0.4]])
    VALUES = torch.tensor([1.0, 3.0, 2.0])
    LABELS = ((1.22, 0.12), (0.26, 1.17), (-1.22, 0.42))

    def __init__(self):
        self.figure, (plane, stairs) = new_figure(8.4, 3.2, 1, 2)
        self.arrows = []
        for (x, y), point, name in zip(self.KEYS.tolist(), self.LABELS, "ABC", strict=True):
            self.arrows.append(arrow(plane, (0, 0), (x, y), K_COLOR))
            plane.text(*point, f"key {name}", ha="center", va="center", color=K_COLOR)
        self.query = arrow(plane, (0, 0), (1, 0), Q_COLOR)
        # The query's name stands outside the keys' names, whatever the angle.
        self.name = plane.text(1.5, 0, "query", ha="center", va="center", weight="bold", color=Q_COLOR)
        plane.set(xlim=(-1.9, 1.9), ylim=(-0.3, 1.75), aspect="equal")
        self.title = plane.set_title("query at 180°: key A wins")
        degrees = torch.arange(0.0, 181.0)
        stairs.plot(degrees, self.VALUES[self.winner(degrees)], color=BLUE)
        (self.dot,) = stairs.plot([0], [1], "o", color=ORANGE, markersize=9)
        stairs.set(xlabel="angle of the query (degrees)", ylabel="value returned", yticks=[1, 2, 3], ylim=(0.7, 3.3))
        stairs.set_title("flat, a jump, and flat again")

    def winner(self, degrees):
        turn = torch.deg2rad(torch.as_tensor(degrees, dtype=torch.float32))
        return (self.KEYS @ torch.stack((turn.cos(), turn.sin()))).argmax(0)

    def __call__(self, angle: float) -> Picture:
        best, turn = int(self.winner(angle)), math.radians(angle)
        for i, key in enumerate(self.arrows):
            key.arrow_patch.set_linewidth(4 if i == best else 1.5)
        self.query.xy = (math.cos(turn), math.sin(turn))
        self.name.set_position((1.58 * math.cos(turn), 1.5 * math.sin(turn)))
        self.title.set_text(f"query at {angle:.0f}°: key {'ABC'[best]} wins")
        self.dot.set_data([angle], [float(self.VALUES[best])])
        alt = (
            f"A query at {angle:.0f} degrees among three keys; key {'ABC'[best]} has the largest dot product and its "
            f"value {self.VALUES[best]:.0f} is returned. As the angle grows from 0 to 180 the value goes 1, 3, 2 in "
            "flat steps."
        )
        return Picture(self.figure, alt, "Left: the thick key wins. Right: the returned value as the query rotates.")


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
    return Picture(
        figure,
        "Two products of colored matrices. X, the identity, holds the words jane, visits, africa as rows. Times the "
        f"transpose of W_Q it gives the queries {_rows(X @ W_q.T)}; times the transpose of W_K the keys "
        f"{_rows(X @ W_k.T)}.",
        "Figure 3.3. The same words as queries (what they look for) and as keys (what they offer).",
    )


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
    said = "; ".join(f"{tokens[i]} attends most to {tokens[j]} ({scores[i, j]:.0f})" for i, j in enumerate(best))
    alt = f"Queries times keys: a table of scores, rows are queries and columns keys: {_rows(scores)}. {said}."
    caption = "Figure 3.4. The scores of all queries with all keys, and the graph of the largest ones."
    return Picture(figure, alt, caption)


@functools.lru_cache(maxsize=1)
def one_real_head():
    """The translator's second block, last head: what comes in for its sentence (5, 64), W_Q and W_K (16, 64)."""
    x, numbers = read_by_a_head("jane visits africa in september", *ARCS)
    return x, numbers["W_q.weight"], numbers["W_k.weight"]


class Arcs:
    def __init__(self, scores, tokens, width: int = 16):
        self.scores, self.tokens = scores, tokens
        self.weights = torch.softmax(scores / width**0.5, dim=-1)
        n = len(tokens)
        self.figure, (table, ax) = new_figure(8.6, 3.1, 1, 2, width_ratios=(1, 1.5))
        heatmap(table, scores, tokens, tokens, cmap=SIGNED, digits=0, tilted=True, title="scores of all pairs")
        table.set(xlabel="key", ylabel="query")
        self.frame = Rectangle((-0.5, -0.5), n, 1, fill=False, lw=3, color=Q_COLOR)
        table.add_patch(self.frame)
        self.ax, self.arcs = ax, []
        self.names = [ax.text(1.25 * i, 0, word, ha="center", va="center", zorder=3) for i, word in enumerate(tokens)]
        self.numbers = [ax.text(1.25 * i, -0.42, "", ha="center", va="center", fontsize=10) for i in range(n)]
        ax.text(-0.6, -0.95, "score, and below it the attention weight: softmax of score / 4 (lesson 4)", fontsize=9)
        bare(ax, xlim=(-0.7, 1.25 * (n - 1) + 0.7), ylim=(-1.2, 2.0), title="jane, visits, africa attends to")

    def __call__(self, word: str) -> Picture:
        query = self.tokens.index(word)
        self.frame.set_xy((-0.5, query - 0.5))
        for arc in self.arcs:
            arc.remove()
        self.arcs = []
        for key, weight in enumerate(self.weights[query].tolist()):
            self.numbers[key].set_text(f"{self.scores[query, key]:.1f}\n{weight:.2f}")
            ends = (1.25 * query, 0.16), (1.25 * key, 0.16)
            bend = 0.5 if key < query else -0.5
            look = {"lw": 0.4 + 5 * weight, "color": BLUE, "alpha": 0.25 + 0.75 * weight}
            if key == query:
                self.arcs.append(Ring((1.25 * query, 0.44), 0.24, fill=False, **look))
            else:
                look |= {"arrowstyle": "-|>", "mutation_scale": 12}
                self.arcs.append(FancyArrowPatch(*ends, connectionstyle=f"arc3,rad={bend}", **look))
            self.ax.add_patch(self.arcs[-1])
        for i, name in enumerate(self.names):
            name.set(color=Q_COLOR if i == query else "black", weight="bold" if i == query else "normal")
        self.ax.set_title(f"{word} attends to")
        numbers = zip(self.tokens, self.scores[query].tolist(), self.weights[query].tolist(), strict=True)
        said = ", ".join(f"{key} {score:.1f} (weight {weight:.2f})" for key, score, weight in numbers)
        alt = f"The table of a head's scores, and arcs from {word} to every key: {said}."
        return Picture(self.figure, alt, "The thicker the arc, the larger the attention weight.")


class Circle:
    def __init__(self, most: int = 50):
        self.figure, (self.plane, ax) = new_figure(8.6, 3.4, 1, 2, width_ratios=(1, 1.25))
        turn = torch.linspace(0, 2 * math.pi, 200)
        self.plane.plot(turn.cos(), turn.sin(), color="0.85", lw=1)
        (self.keys,) = self.plane.plot([], [], "o", color=K_COLOR, markersize=7, label="keys")
        (self.best,) = self.plane.plot([], [], "o", color=GREEN, markersize=14, fillstyle="none", markeredgewidth=2)
        self.query = arrow(self.plane, (0, 0), (1, 0), Q_COLOR, 2.5)
        self.names = [self.plane.text(0, 0, "", ha="center", va="center", color=K_COLOR) for _ in range(12)]
        bare(self.plane, xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal")
        self.plane.set_title("40 keys; the query should find key 39\n(there is no key 49)")
        sizes = torch.arange(2, most + 1)
        ax.semilogy(sizes, 1 - torch.cos(2 * math.pi / sizes), color=BLUE)
        (self.dot,) = ax.semilogy([2], [2], "o", color=ORANGE, markersize=9)
        ax.set(xlabel="number of keys", ylabel="margin", ylim=(4e-3, 4))
        self.title = ax.set_title("best 1.000, next 0.992: margin 0.008")

    def __call__(self, keys: int, wanted: int) -> Picture:
        asked, wanted = wanted, min(wanted, keys - 1)
        there = "" if asked == wanted else f"\n(there is no key {asked})"
        angle = 2 * math.pi * torch.arange(keys) / keys
        points = torch.stack((angle.cos(), angle.sin()), dim=1)  # (n, 2)
        scores = points @ points[wanted]
        second = float(scores.topk(2).values[1])
        self.keys.set_data(*points.T.tolist())
        x, y = points[wanted].tolist()
        self.best.set_data([x], [y])
        self.query.xy = (0.9 * x, 0.9 * y)
        for i, name in enumerate(self.names):
            shown = keys <= len(self.names) and i < keys
            name.set_text(str(i) if shown else "")
            if shown:
                name.set_position((1.22 * float(points[i, 0]), 1.22 * float(points[i, 1])))
        self.plane.set_title(f"{keys} keys; the query should find key {wanted}{there}")
        self.dot.set_data([keys], [1 - second])
        self.title.set_text(f"best 1.000, next {second:.3f}: margin {1 - second:.3f}")
        alt = f"{keys} keys on a circle. The query points at key {wanted} and scores it 1; the next best key has "
        alt += f"{second:.3f}, a margin of {1 - second:.3f}. The margin falls as keys are added."
        caption = "All keys are equally long. The more keys there are, the smaller the margin to the second best."
        return Picture(self.figure, alt, caption)


def scores_of_is() -> torch.Tensor:
    """The scores of 'is' in 'Life is short, eat dessert first' with the weights of seed 123, (6,)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        x = torch.nn.Embedding(6, 16)(torch.tensor([0, 4, 5, 2, 1, 3])).detach()  # (T=6, D=16)
        W_query, W_key = torch.rand(24, 16), torch.rand(24, 16)
    x, W_query, W_key = x.double(), W_query.double(), W_key.double()  # the same last digit on every machine
    return torch.stack([(W_query @ x[1]).dot(W_key @ token) for token in x]).float()


def one_row(scores, tokens, query) -> Picture:
    figure, ax = new_figure(6.4, 3.2)
    best = int(scores.argmax())
    look = {"title": f"scores of '{query}' with each key", "ylabel": "score", "ylim": (-13.5, 13)}
    bars(ax, tokens, scores, ".3f", color=[ORANGE if i == best else BLUE for i in range(len(tokens))], **look)
    ax.axhline(0, color="0.4", lw=0.8)
    said = f"{named(tokens, scores, '.3f')}. The largest is {tokens[best]}, not '{query}'."
    caption = "Figure 3.5. Scores of one untrained query with all keys."
    return Picture(figure, f"Bars of the scores of '{query}': {said}", caption)


def self_scores_by_kind(rounds: int = 400) -> Picture:
    """How often a random token's largest score is its own, for five ways to make scores (T = 6, D = 16, d_k = 24)."""
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
    said = "; ".join(f"{kind}: {value:.3f}" for kind, value in kinds.items()).replace("$", "")
    alt = f"How often the largest score of a token, among six random ones, is with itself. {said}. Chance is 0.17."
    caption = "Figure 3.9. How often a token attends most to itself, for five ways to compute scores."
    return Picture(figure, alt, caption)


def five_by_five(table) -> Picture:
    """The sources' table for 'I like to eat apples' with the sum of each row beside it."""
    figure, ax = new_figure(6.4, 3.2)
    heatmap(ax, table, APPLES, APPLES, vmin=0, title="the published table, and the sums of its rows")
    for i, total in enumerate(table.sum(-1).tolist()):
        ax.text(len(APPLES) - 0.35, i, f"sum {total:.2f}", va="center")
    said = f"symmetric, 1.00 on the diagonal. Row sums: {named(APPLES, table.sum(-1))}; none is 1."
    caption = "Figure 3.10. The published table, and the sums of its rows."
    return Picture(figure, f"Five by five table for I like to eat apples: {said}", caption)


def four_kinds_of_score(q, k) -> dict[str, torch.Tensor]:
    """Scores of one query (2,) with keys (..., 2): cosine, dot, bilinear qᵀMk, additive vᵀtanh(W₁q + W₂k), with one
    fixed choice of M, W₁ and W₂, and v of ones."""
    M = torch.tensor([[0.3, 1.0], [-0.8, 0.5]])
    W1, W2 = torch.tensor([[1.2, 0.3], [-0.4, 1.0]]), torch.tensor([[0.9, -1.1], [1.3, 0.8]])
    dot = k @ q
    return {
        "cosine": dot / (k.norm(dim=-1) * q.norm()).clamp_min(1e-9),
        "dot": dot,
        "bilinear": k @ (M.T @ q),
        "additive": torch.tanh(q @ W1.T + k @ W2.T).sum(-1),
    }


class FourScores:
    def __init__(self):
        line = torch.linspace(-2.4, 2.4, 121)
        self.grid = torch.stack(torch.meshgrid(line, line, indexing="xy"), dim=-1)  # (121, 121, 2)
        self.figure, axes = new_figure(8.6, 2.9, 1, 4, sharey=True)
        edge = (-2.4, 2.4, -2.4, 2.4)
        self.maps, self.titles, self.arrows = [], [], []
        for ax in axes:
            look = {"origin": "lower", "extent": edge, "interpolation": "nearest"}
            self.maps.append(ax.imshow(self.grid[..., 0], cmap=SIGNED, vmin=-1, vmax=1, **look))
            halo = [patheffects.withStroke(linewidth=4, foreground="white")]  # all colors of the map lie behind it
            self.arrows.append(arrow(ax, (0, 0), (1, 0), Q_COLOR, path_effects=halo))
            ax.plot([1, 2], [0.5, 1], "o", color=K_COLOR, markeredgecolor="white")
            self.titles.append(ax.set_title("name\n0.00 and 0.00"))
            ax.set(xlim=(-2.4, 2.4), ylim=(-2.4, 2.4))

    def __call__(self, angle: float, length: float) -> Picture:
        """The picture for a query of `angle` degrees and `length`."""
        turn = math.radians(angle)
        q = length * torch.tensor([math.cos(turn), math.sin(turn)])
        near = four_kinds_of_score(q, torch.tensor([1.0, 0.5]))
        far = four_kinds_of_score(q, torch.tensor([2.0, 1.0]))
        # The colors belong to a query of length 1.5, so that a longer query shows as a steeper sheet.
        full = four_kinds_of_score(1.5 * q / length, self.grid)
        here = four_kinds_of_score(q, self.grid)
        for name, image, title, query in zip(here, self.maps, self.titles, self.arrows, strict=True):
            share = here[name] / full[name].abs().max()
            image.set_data((share * 7).round() / 7)  # fourteen bands, as in a contour plot
            title.set_text(f"{name}\n{near[name]:.2f} and {far[name]:.2f}")
            query.xy = tuple(q.tolist())
        said = "; ".join(f"{name} {near[name]:.2f} and {far[name]:.2f}" for name in near)
        alt = f"Four maps of the score over the plane of keys; the query: length {length:.1f}, {angle:.0f} degrees. "
        alt += f"For the key (1, 0.5) and the key twice as long: {said}."
        caption = "Purple: a key there scores high. Orange: low. The two green keys point the same way."
        return Picture(self.figure, alt, caption)


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


class Channels:
    KINDS = ("three tastes", "each a different favorite", "no pattern")

    def __init__(self, n: int = 12):
        self.tables = {kind: wanted_table(kind, n) for kind in self.KINDS}
        self.missed = {}  # fractions of each table's sum of squares
        for kind, table in self.tables.items():
            gaps = (table - best_with_channels(table, d_k) for d_k in range(1, n + 1))
            self.missed[kind] = [float(gap.square().sum() / table.square().sum()) for gap in gaps]
        self.figure, axes = new_figure(8.6, 3.0, 1, 3)
        self.images = []
        for ax, title in ((axes[0], "wanted"), (axes[1], "closest with 12 channels")):
            self.images.append(heatmap(ax, torch.eye(n), cmap=SIGNED, vmin=-1, vmax=1, numbers=False))
            ax.set(title=title, xticks=[0, 5, 11], yticks=[0, 5, 11], xlabel="product", ylabel="user")
        self.closest = axes[1].title
        (self.line,) = axes[2].plot(range(1, n + 1), [0] * n, "o-", color=BLUE)
        (self.dot,) = axes[2].plot([1], [0], "o", color=ORANGE, markersize=10)
        axes[2].set(xlabel="channels", ylabel="relative squared error", ylim=(-0.05, 1.05), xticks=[1, 3, 6, 9, 12])
        self.title = axes[2].set_title("error: 0.00")

    def __call__(self, kind: str, d_k: int) -> Picture:
        table, missed = self.tables[kind], self.missed[kind]
        top = float(table.abs().max())
        for image, numbers in zip(self.images, (table, best_with_channels(table, d_k)), strict=True):
            image.set_data(numbers)
            image.set_clim(-top, top)
        self.closest.set_text(f"closest with {d_k} channel{'s' * (d_k > 1)}")
        self.line.set_ydata(missed)
        self.dot.set_data([d_k], [missed[d_k - 1]])
        self.title.set_text(f"error: {missed[d_k - 1]:.2f}")
        rank = int(torch.linalg.matrix_rank(table))
        alt = f"Twelve users and twelve products, {kind}, a table of rank {rank}. With d_k = {d_k} the closest table "
        alt += f"of scores has a relative squared error of {missed[d_k - 1]:.2f}; with {rank} channels the error is 0."
        return Picture(self.figure, alt, "How well a table can be represented with this number of channels.")


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
    found = (chain > 0).nonzero().tolist()
    rows = [f"after {tokens[i]} comes {tokens[j]} with {chain[i, j]:.2f}" for i, j in found]
    caption = "Figure 3.7. The Markov chain of a text of six words."
    return Picture(figure, f"Table of a Markov chain: {'; '.join(rows)}.", caption)


def two_sentences(W_q, W_k, chain_edge: float) -> Picture:
    """The Markov chain's one edge beside the scores of jane in two sentences; loves is a strong action, (0, 2, 0).

    chain_edge: the chain's probability that visits follows jane.
    """
    vectors = {"jane": (1.0, 0, 0), "visits": (0, 1.0, 0), "africa": (0, 0, 1.0), "loves": (0, 2.0, 0)}
    figure, axes = new_figure(8.6, 1.9, 1, 3, width_ratios=(1, 1.5, 1.5))
    draw_wires(axes[0], ("jane", "visits"), ((0, 1, chain_edge),), "Markov chain, always", color=ORANGE)
    said = []
    for ax, tokens in zip(axes[1:], (JANE, ("jane", "loves", "visits")), strict=True):
        x = torch.tensor([vectors[token] for token in tokens])  # (3, 3)
        scores = ((x @ W_q.T) @ (x @ W_k.T).T)[0].tolist()  # jane's row
        edges = [(0, j, score) for j, score in enumerate(scores) if score]
        draw_wires(ax, tokens, edges, " ".join(tokens), digits=1)
        said.append(f"in {' '.join(tokens)}: " + ", ".join(f"jane to {tokens[j]} {w:.1f}" for _, j, w in edges))
    alt = f"Left: the Markov chain has one edge from jane to visits, {chain_edge:.2f}, whatever the sentence. "
    alt += f"Attention scores that are not 0, {said[0]}; {said[1]}."
    caption = "Figure 3.8. A Markov chain has one fixed edge; in the two sentences the largest score of jane differs."
    return Picture(figure, alt, caption)


class GraphBesideTable:
    def __init__(self, weights, tokens):
        self.weights, self.tokens = weights, tokens
        self.figure, axes = new_figure(8.6, 2.8, 1, 2, width_ratios=(1, 1.5))
        weight_map(axes[0], weights, tokens, xlabel="key", ylabel="query")
        self.ax = axes[1]

    def __call__(self, threshold: float) -> Picture:
        tokens, n = self.tokens, len(self.tokens)
        edges = [(i, j, float(self.weights[i, j])) for i in range(n) for j in range(n)]
        edges = [edge for edge in edges if edge[2] > threshold - 1e-6]  # 0.76 is stored as 0.7599999905
        self.ax.clear()
        draw_wires(self.ax, tokens, edges, f"edges of at least {threshold:.2f}")
        self.ax.set_ylim(-0.9, 1.0)
        said = ", ".join(f"{tokens[i]} to {tokens[j]} {w:.2f}" for i, j, w in edges) or "none"
        alt = f"A table of attention weights and its graph. Edges of at least {threshold:.2f}: {said}."
        return Picture(self.figure, alt, "The same weights as a table and as a graph.")


@answered
def drawn_by(find_edges, weights, tokens, threshold: float) -> Picture:
    """The graph of the edges that `find_edges(weights, tokens, threshold)` returns."""
    found = [(tokens.index(q), tokens.index(k), float(w)) for q, k, w in find_edges(weights, tokens, threshold)]
    figure, ax = new_figure(8.6, 2.6)
    draw_wires(ax, tokens, found, "")
    said = ", ".join(f"{tokens[i]} to {tokens[j]} {w:.2f}" for i, j, w in found)
    caption = "Figure 3.11. A graph from a trained head of the translator, with all weights of one third or more."
    return Picture(figure, f"The graph of one head of the translator: {said}.", caption)


class Training:
    def __init__(self):
        self.tables, self.losses = _training_run()
        self.figure, (left, right) = new_figure(8.4, 2.8, 1, 2)
        self.image = heatmap(left, torch.zeros(3, 3), JANE, JANE, cmap=SIGNED, vmin=-8, vmax=8, numbers=False)
        self.numbers = [left.text(j, i, "", ha="center", va="center") for i in range(3) for j in range(3)]
        wanted = [key for _, key, _ in SKETCHED]
        left.plot(wanted, range(3), "s", markersize=30, fillstyle="none", color=GREEN, markeredgewidth=2)
        left.set(xlabel="key", ylabel="query")
        self.left, self.right = left.set_title("scores after 60 steps"), right.set_title("loss 0.00")
        right.plot(self.losses, color=BLUE)
        (self.dot,) = right.plot([0], [self.losses[0]], "o", color=ORANGE, markersize=9)
        right.set(xlabel="step", ylabel="loss", ylim=(0, None))

    def __call__(self, step: int) -> Picture:
        table, loss = self.tables[step].round(decimals=1) + 0.0, self.losses[step]
        self.image.set_data(table)
        for text, number in zip(self.numbers, table.flatten().tolist(), strict=True):
            text.set(text=f"{number:.1f}", color="white" if abs(number) > 5 else "black")
        self.left.set_text(f"scores after {step} steps")
        self.right.set_text(f"loss {loss:.2f}")
        self.dot.set_data([step], [loss])
        said = ", ".join(f"{JANE[i]} to {JANE[j]}" for i, j in enumerate(self.tables[step].argmax(-1).tolist()))
        wanted = "Wanted: jane to visits, visits to africa, africa to visits."
        alt = f"After {step} training steps the loss is {loss:.2f} and the largest scores are {said}. {wanted}"
        return Picture(self.figure, alt, "Squares: the keys that should win. Dot: the current point on the loss curve.")


@functools.lru_cache(maxsize=1)
def _training_run(steps: int = 60):
    """Tables of scores and losses of a seeded run, from step 0 to `steps`."""
    generator = torch.Generator().manual_seed(5)
    x = torch.eye(3)
    wanted = torch.tensor([key for _, key, _ in SKETCHED])
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
