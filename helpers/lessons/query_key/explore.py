"""Explorers of lesson 3."""

import functools
import math

import torch
from matplotlib import patheffects
from matplotlib.patches import Circle as Ring
from matplotlib.patches import FancyArrowPatch, Rectangle

from helpers.drawing.charts import bare, heatmap, weight_map
from helpers.drawing.colors import BLUE, GREEN, K_COLOR, ORANGE, Q_COLOR, SIGNED
from helpers.drawing.diagrams import arrow
from helpers.drawing.style import Picture, new_figure
from helpers.lessons.query_key.figures import JANE, SKETCHED, draw_wires
from helpers.widgets.panel import choice, decimal, keeping, panel, whole


def search():
    points, values = torch.tensor([[1.0, 0.2], [0.2, 1.0], [-0.9, 0.4]]), torch.tensor([1.0, 3.0, 2.0])
    label_points = (1.22, 0.12), (0.26, 1.17), (-1.22, 0.42)

    def winner(degrees):
        angle = torch.deg2rad(torch.as_tensor(degrees, dtype=torch.float32))
        return (points @ torch.stack((angle.cos(), angle.sin()))).argmax(0)

    figure, (plane, steps) = new_figure(8.4, 3.2, 1, 2)
    keys = [arrow(plane, (0, 0), point, K_COLOR) for point in points.tolist()]
    for point, name in zip(label_points, "ABC", strict=True):
        plane.text(*point, f"key {name}", ha="center", va="center", color=K_COLOR)
    query = arrow(plane, (0, 0), (1, 0), Q_COLOR)
    # The name of the query is farther out than those of the keys, whatever the angle.
    name = plane.text(1.5, 0, "query", ha="center", va="center", weight="bold", color=Q_COLOR)
    plane.set(xlim=(-1.9, 1.9), ylim=(-0.3, 1.75), aspect="equal")
    title = plane.set_title("query at 180°: key A wins")
    degrees = torch.arange(0.0, 181.0)
    steps.plot(degrees, values[winner(degrees)], color=BLUE)
    (dot,) = steps.plot([0], [1], "o", color=ORANGE, markersize=9)
    steps.set(xlabel="angle of the query (degrees)", ylabel="value returned", yticks=[1, 2, 3], ylim=(0.7, 3.3))
    steps.set_title("flat, a jump, and flat again")

    def draw(angle: float) -> Picture:
        best, radians = int(winner(angle)), math.radians(angle)
        for i, key in enumerate(keys):
            key.arrow_patch.set_linewidth(4 if i == best else 1.5)
        query.xy = (math.cos(radians), math.sin(radians))
        name.set_position((1.58 * math.cos(radians), 1.5 * math.sin(radians)))
        title.set_text(f"query at {angle:.0f}°: key {'ABC'[best]} wins")
        dot.set_data([angle], [float(values[best])])
        alt = f"A query at {angle:.0f} degrees among three keys; key {'ABC'[best]} has the largest dot product and its "
        alt += f"value {values[best]:.0f} is returned. As the angle grows from 0 to 180 the value goes 1, 3, 2 in flat "
        alt += "steps."
        return Picture(figure, alt, "Left: the thick key wins. Right: the returned value as the query rotates.")

    panel(keeping(figure, draw), angle=whole("angle", 30, 0, 180, step=5))


def arcs(scores, tokens):
    weights, n = torch.softmax(scores / 4, dim=-1), len(tokens)
    figure, (table, ax) = new_figure(8.6, 3.1, 1, 2, width_ratios=(1, 1.5))
    heatmap(table, scores, tokens, tokens, cmap=SIGNED, digits=0, tilted=True, title="scores of all pairs")
    table.set(xlabel="key", ylabel="query")
    frame = table.add_patch(Rectangle((-0.5, -0.5), n, 1, fill=False, lw=3, color=Q_COLOR))
    names = [ax.text(1.25 * i, 0, word, ha="center", va="center", zorder=3) for i, word in enumerate(tokens)]
    numbers = [ax.text(1.25 * i, -0.42, "", ha="center", va="center", fontsize=10) for i in range(n)]
    ax.text(-0.6, -0.95, "score, and below it the attention weight: softmax of score / 4 (lesson 4)", fontsize=9)
    bare(ax, xlim=(-0.7, 1.25 * (n - 1) + 0.7), ylim=(-1.2, 2.0), title="jane, visits, africa attends to")

    def draw(word: str) -> Picture:
        query = tokens.index(word)
        frame.set_xy((-0.5, query - 0.5))
        for arc in list(ax.patches):
            arc.remove()
        for key, weight in enumerate(weights[query].tolist()):
            numbers[key].set_text(f"{scores[query, key]:.1f}\n{weight:.2f}")
            ends = (1.25 * query, 0.16), (1.25 * key, 0.16)
            curvature = 0.5 if key < query else -0.5
            look = {"lw": 0.4 + 5 * weight, "color": BLUE, "alpha": 0.25 + 0.75 * weight}
            if key == query:
                ax.add_patch(Ring((1.25 * query, 0.44), 0.24, fill=False, **look))
            else:
                look |= {"arrowstyle": "-|>", "mutation_scale": 12, "connectionstyle": f"arc3,rad={curvature}"}
                ax.add_patch(FancyArrowPatch(*ends, **look))
        for i, name in enumerate(names):
            name.set(color=Q_COLOR if i == query else "black", weight="bold" if i == query else "normal")
        ax.set_title(f"{word} attends to")
        row = zip(tokens, scores[query].tolist(), weights[query].tolist(), strict=True)
        details = ", ".join(f"{key} {score:.1f} (weight {weight:.2f})" for key, score, weight in row)
        alt = f"The table of a head's scores, and arcs from {word} to every key: {details}."
        return Picture(figure, alt, "The thicker the arc, the larger the attention weight.")

    panel(keeping(figure, draw), word=choice("word", list(tokens), tokens[1]))


def four_kinds_of_score(q, k) -> dict[str, torch.Tensor]:
    """Scores of one query (2,) with keys (..., 2): cosine, dot, bilinear qᵀMk, and additive vᵀtanh(W₁q + W₂k).

    M, W₁ and W₂ are fixed, and v contains only ones.
    """
    M = torch.tensor([[0.3, 1.0], [-0.8, 0.5]])
    W1, W2 = torch.tensor([[1.2, 0.3], [-0.4, 1.0]]), torch.tensor([[0.9, -1.1], [1.3, 0.8]])
    dot = k @ q
    return {
        "cosine": dot / (k.norm(dim=-1) * q.norm()).clamp_min(1e-9),
        "dot": dot,
        "bilinear": k @ (M.T @ q),
        "additive": torch.tanh(q @ W1.T + k @ W2.T).sum(-1),
    }


def four_scores():
    line = torch.linspace(-2.4, 2.4, 121)
    grid = torch.stack(torch.meshgrid(line, line, indexing="xy"), dim=-1)  # (121, 121, 2)
    figure, axes = new_figure(8.6, 2.9, 1, 4, sharey=True)
    halo = [patheffects.withStroke(linewidth=4, foreground="white")]  # because the map behind it has all colors
    look = {"vmin": -1, "vmax": 1, "origin": "lower", "extent": (-2.4, 2.4, -2.4, 2.4), "interpolation": "nearest"}
    maps, titles, arrows = [], [], []
    for ax in axes:
        maps.append(ax.imshow(grid[..., 0], cmap=SIGNED, **look))
        arrows.append(arrow(ax, (0, 0), (1, 0), Q_COLOR, path_effects=halo))
        ax.plot([1, 2], [0.5, 1], "o", color=K_COLOR, markeredgecolor="white")
        titles.append(ax.set_title("name\n0.00 and 0.00"))
        ax.set(xlim=(-2.4, 2.4), ylim=(-2.4, 2.4))

    def draw(angle: float, length: float) -> Picture:
        radians = math.radians(angle)
        q = length * torch.tensor([math.cos(radians), math.sin(radians)])
        near = four_kinds_of_score(q, torch.tensor([1.0, 0.5]))
        far = four_kinds_of_score(q, torch.tensor([2.0, 1.0]))
        # The color scale is that of a query of length 1.5, so that a longer query gives stronger colors.
        full = four_kinds_of_score(1.5 * q / length, grid)
        scores = four_kinds_of_score(q, grid)
        for name, image, title, query in zip(scores, maps, titles, arrows, strict=True):
            relative = scores[name] / full[name].abs().max()
            image.set_data((relative * 7).round() / 7)  # fourteen bands, as in a contour plot
            title.set_text(f"{name}\n{near[name]:.2f} and {far[name]:.2f}")
            query.xy = tuple(q.tolist())
        details = "; ".join(f"{name} {near[name]:.2f} and {far[name]:.2f}" for name in near)
        alt = f"Four maps of the score over the plane of keys; the query: length {length:.1f}, {angle:.0f} degrees. "
        alt += f"For the key (1, 0.5) and the key twice as long: {details}."
        caption = "Purple: a key there scores high. Orange: low. The two green keys point the same way."
        return Picture(figure, alt, caption)

    angle, length = whole("angle of q", 75, 0, 360, step=15), decimal("length of q", 1.0, 0.2, 2.0, 0.2)
    panel(keeping(figure, draw), angle=angle, length=length)


def wanted_table(kind: str, n: int = 12) -> torch.Tensor:
    """A table (n, n) of how much each of n users wants each of n products."""
    generator = torch.Generator().manual_seed(3)
    if kind == "three tastes":
        return torch.randn(n, 3, generator=generator) @ torch.randn(3, n, generator=generator)
    if kind == "each a different favorite":
        return torch.eye(n)
    return torch.randn(n, n, generator=generator)


def best_with_channels(table: torch.Tensor, d_k: int) -> torch.Tensor:
    """The table of rank d_k with the smallest squared error: the best scores of width d_k (Eckart and Young, 1936)."""
    U, S, Vh = torch.linalg.svd(table)
    return (U[:, :d_k] * S[:d_k]) @ Vh[:d_k]


def channels():
    n, kinds = 12, ("three tastes", "each a different favorite", "no pattern")
    tables, errors = {kind: wanted_table(kind, n) for kind in kinds}, {}
    for kind, table in tables.items():
        residuals = (table - best_with_channels(table, d_k) for d_k in range(1, n + 1))
        errors[kind] = [float(residual.square().sum() / table.square().sum()) for residual in residuals]
    figure, axes = new_figure(8.6, 3.0, 1, 3)
    images = []
    for ax, title in ((axes[0], "wanted"), (axes[1], "closest with 12 channels")):
        images.append(heatmap(ax, torch.eye(n), cmap=SIGNED, vmin=-1, vmax=1, numbers=False))
        ax.set(title=title, xticks=[0, 5, 11], yticks=[0, 5, 11], xlabel="product", ylabel="user")
    closest = axes[1].title
    (line,) = axes[2].plot(range(1, n + 1), [0] * n, "o-", color=BLUE)
    (dot,) = axes[2].plot([1], [0], "o", color=ORANGE, markersize=10)
    axes[2].set(xlabel="channels", ylabel="relative squared error", ylim=(-0.05, 1.05), xticks=[1, 3, 6, 9, 12])
    title = axes[2].set_title("error: 0.00")

    def draw(kind: str, d_k: int) -> Picture:
        table, error = tables[kind], errors[kind]
        top = float(table.abs().max())
        for image, scores in zip(images, (table, best_with_channels(table, d_k)), strict=True):
            image.set_data(scores)
            image.set_clim(-top, top)
        closest.set_text(f"closest with {d_k} channel{'s' * (d_k > 1)}")
        line.set_ydata(error)
        dot.set_data([d_k], [error[d_k - 1]])
        title.set_text(f"error: {error[d_k - 1]:.2f}")
        rank = int(torch.linalg.matrix_rank(table))
        alt = f"Twelve users and twelve products, {kind}, a table of rank {rank}. With d_k = {d_k} the closest table "
        alt += f"of scores has a relative squared error of {error[d_k - 1]:.2f}; with {rank} channels the error is 0."
        return Picture(figure, alt, "How well a table can be represented with this number of channels.")

    panel(keeping(figure, draw), kind=choice("table", kinds), d_k=whole("channels", 2, 1, 12))


def circle():
    figure, (plane, ax) = new_figure(8.6, 3.4, 1, 2, width_ratios=(1, 1.25))
    angles = torch.linspace(0, 2 * math.pi, 200)
    plane.plot(angles.cos(), angles.sin(), color="0.85", lw=1)
    (dots,) = plane.plot([], [], "o", color=K_COLOR, markersize=7)
    (best,) = plane.plot([], [], "o", color=GREEN, markersize=14, fillstyle="none", markeredgewidth=2)
    query = arrow(plane, (0, 0), (1, 0), Q_COLOR, 2.5)
    names = [plane.text(0, 0, "", ha="center", va="center", color=K_COLOR) for _ in range(12)]
    bare(plane, xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal")
    plane.set_title("40 keys; the query should find key 39\n(there is no key 49)")
    sizes = torch.arange(2, 51)
    ax.semilogy(sizes, 1 - torch.cos(2 * math.pi / sizes), color=BLUE)
    (dot,) = ax.semilogy([2], [2], "o", color=ORANGE, markersize=9)
    ax.set(xlabel="number of keys", ylabel="margin", ylim=(4e-3, 4))
    title = ax.set_title("best 1.000, next 0.992: margin 0.008")

    def draw(keys: int, wanted: int) -> Picture:
        chosen, wanted = wanted, min(wanted, keys - 1)
        note = "" if chosen == wanted else f"\n(there is no key {chosen})"
        angles = 2 * math.pi * torch.arange(keys) / keys
        points = torch.stack((angles.cos(), angles.sin()), dim=1)  # (n, 2)
        scores = points @ points[wanted]
        second = float(scores.topk(2).values[1])
        dots.set_data(*points.T.tolist())
        x, y = points[wanted].tolist()
        best.set_data([x], [y])
        query.xy = (0.9 * x, 0.9 * y)
        for i, name in enumerate(names):
            shown = keys <= len(names) and i < keys
            name.set_text(str(i) if shown else "")
            if shown:
                name.set_position((1.22 * float(points[i, 0]), 1.22 * float(points[i, 1])))
        plane.set_title(f"{keys} keys; the query should find key {wanted}{note}")
        dot.set_data([keys], [1 - second])
        title.set_text(f"best 1.000, next {second:.3f}: margin {1 - second:.3f}")
        alt = f"{keys} keys on a circle. The query points at key {wanted} and scores it 1; the next best key has "
        alt += f"{second:.3f}, a margin of {1 - second:.3f}. The margin falls as keys are added."
        caption = "All keys are equally long. The more keys there are, the smaller the margin to the second best."
        return Picture(figure, alt, caption)

    panel(keeping(figure, draw), keys=whole("keys", 6, 2, 50), wanted=whole("wanted key", 1, 0, 49))


@functools.lru_cache(maxsize=1)
def training_run(steps: int = 60):
    """The tables of scores and the losses of a training run with a fixed seed, after 0, 1, ..., `steps` steps."""
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


def training():
    tables, losses = training_run()
    figure, (left, right) = new_figure(8.4, 2.8, 1, 2)
    image = heatmap(left, torch.zeros(3, 3), JANE, JANE, cmap=SIGNED, vmin=-8, vmax=8, numbers=False)
    numbers = [left.text(j, i, "", ha="center", va="center") for i in range(3) for j in range(3)]
    wanted = [key for _, key, _ in SKETCHED]
    left.plot(wanted, range(3), "s", markersize=30, fillstyle="none", color=GREEN, markeredgewidth=2)
    left.set(xlabel="key", ylabel="query")
    titles = left.set_title("scores after 60 steps"), right.set_title("loss 0.00")
    right.plot(losses, color=BLUE)
    (dot,) = right.plot([0], [losses[0]], "o", color=ORANGE, markersize=9)
    right.set(xlabel="step", ylabel="loss", ylim=(0, None))

    def draw(step: int) -> Picture:
        table, loss = tables[step].round(decimals=1) + 0.0, losses[step]
        image.set_data(table)
        for text, number in zip(numbers, table.flatten().tolist(), strict=True):
            text.set(text=f"{number:.1f}", color="white" if abs(number) > 5 else "black")
        titles[0].set_text(f"scores after {step} steps")
        titles[1].set_text(f"loss {loss:.2f}")
        dot.set_data([step], [loss])
        details = ", ".join(f"{JANE[i]} to {JANE[j]}" for i, j in enumerate(tables[step].argmax(-1).tolist()))
        wanted = "Wanted: jane to visits, visits to africa, africa to visits."
        alt = f"After {step} training steps the loss is {loss:.2f} and the largest scores are {details}. {wanted}"
        return Picture(figure, alt, "Squares: the keys that should win. Dot: the current point on the loss curve.")

    panel(keeping(figure, draw), step=whole("step", 0, 0, 60, step=2))


def graph(weights, tokens):
    figure, (table, ax) = new_figure(8.6, 2.8, 1, 2, width_ratios=(1, 1.5))
    weight_map(table, weights, tokens, xlabel="key", ylabel="query")

    def draw(threshold: float) -> Picture:
        edges = [(i, j, weight) for i, row in enumerate(weights.tolist()) for j, weight in enumerate(row)]
        edges = [edge for edge in edges if edge[2] > threshold - 1e-6]  # because 0.76 is stored as 0.7599999905
        ax.clear()
        draw_wires(ax, tokens, edges, f"edges of at least {threshold:.2f}")
        ax.set_ylim(-0.9, 1.0)
        details = ", ".join(f"{tokens[i]} to {tokens[j]} {w:.2f}" for i, j, w in edges) or "none"
        alt = f"A table of attention weights and its graph. Edges of at least {threshold:.2f}: {details}."
        return Picture(figure, alt, "The same weights as a table and as a graph.")

    panel(keeping(figure, draw), threshold=decimal("threshold", 0.1, 0.02, 0.96, 0.02))
