"""Pictures of lesson 1: a lookup, a projection, two forces, and words that move together."""

from __future__ import annotations

import math

import torch
from matplotlib.patches import Circle

from helpers.corpus import COMPANY
from helpers.figures.style import BLACK, BLUE, GREEN, ORANGE, PINK, RED, SIGNED, WEIGHTS, Picture, heatmap, new_figure

GRAY = "0.55"
GROUP_COLORS = dict(zip(COMPANY, (BLUE, ORANGE, GREEN), strict=True))
SMALL_TABLE = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])  # (3, 2), the one on the lesson's page
SMALL_WORDS = ("Life", "eat", "short")


def arrow(ax, start, end, color=BLACK, width=2.0, **options):
    """An arrow from one point to another."""
    look = {"arrowstyle": "-|>", "color": color, "lw": width, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 14}
    ax.annotate("", xy=tuple(end), xytext=tuple(start), arrowprops=look | options)


def row_lookup(ids, tokens) -> Picture:
    """One-hot rows (T, 3) times a small table (3, 2): each row of the product is a row of the table."""
    hot = torch.eye(3)[torch.as_tensor(ids)]  # (T, 3)
    figure, axes = new_figure(7.6, 2.5, 1, 3, gridspec_kw={"width_ratios": (3, 2, 2)})
    heatmap(axes[0], hot, tokens, SMALL_WORDS, WEIGHTS, 0, 2, digits=0)
    heatmap(axes[1], SMALL_TABLE, SMALL_WORDS, ("x", "y"), SIGNED, -9, 9, digits=0)
    heatmap(axes[2], hot @ SMALL_TABLE, tokens, ("x", "y"), SIGNED, -9, 9, digits=0)
    for ax, title in zip(axes, ("one-hot rows", "times the table", "gives its rows"), strict=True):
        ax.set_title(title)
    rows = ", ".join(f"{t} ({x:.0f}, {y:.0f})" for t, (x, y) in zip(tokens, (hot @ SMALL_TABLE).tolist(), strict=True))
    return Picture(
        figure,
        f"Three tables. One-hot rows of {', '.join(tokens)}, times a table with rows Life (1, 2), eat (3, 4), "
        f"short (5, 6), give the rows {rows}.",
    )


def sentence_vectors(vectors, tokens) -> Picture:
    """The sentence as a heat map: a row for each token, a column for each coordinate."""
    figure, ax = new_figure(7.6, 2.7)
    picture = heatmap(ax, vectors, tokens, cmap=SIGNED, numbers=False)
    ax.set_xlabel("coordinate")
    ax.set_title(f"{vectors.shape[0]} tokens, {vectors.shape[1]} random numbers each")
    figure.colorbar(picture, ax=ax)
    first = ", ".join(f"{x:.4f}" for x in vectors[0, :3].tolist())
    return Picture(
        figure,
        f"Heat map of {vectors.shape[0]} by {vectors.shape[1]} numbers, one row for each of {', '.join(tokens)}. The "
        f"numbers are random, without pattern, between {vectors.min():.2f} and {vectors.max():.2f}; the row of "
        f"{tokens[0]} begins {first}.",
    )


def projection(a, b, left: float = -1.0) -> Picture:
    """Two arrows in the plane, the shadow of a on b's line, and three numbers that compare them, from x = `left` on."""
    a, b = torch.as_tensor(a, dtype=torch.float64), torch.as_tensor(b, dtype=torch.float64)
    dot, length_a, length_b = float(a @ b), float(a.norm()), float(b.norm())
    shadow, cosine = dot / length_b, dot / (length_a * length_b)
    foot = b / length_b * shadow
    figure, ax = new_figure(6.4, 4.0)
    ax.axhline(0, color="0.9", zorder=0)
    ax.axvline(0, color="0.9", zorder=0)
    ax.plot([0, foot[0]], [0, foot[1]], color=ORANGE, lw=9, alpha=0.5, solid_capstyle="butt")
    ax.plot([a[0], foot[0]], [a[1], foot[1]], "--", color=GRAY)
    arrow(ax, (0, 0), b.tolist(), BLACK)
    arrow(ax, (0, 0), a.tolist(), BLUE)
    ax.text(*(a + 0.3 * a / length_a).tolist(), "a", color=BLUE, ha="center", va="center", fontsize=14)
    ax.text(*(b + 0.3 * b / length_b).tolist(), "b", ha="center", va="center", fontsize=14)
    ax.text(float(foot[0]) / 2, float(foot[1]) / 2 - 0.4, f"shadow {shadow:.2f}", color=RED, ha="center", va="center")
    ax.set(xlim=(left, 7), ylim=(-1.2, 6.6), aspect="equal")
    ax.set_title(f"dot {dot:.1f}   ·   shadow of a on b {shadow:.2f}   ·   cosine {cosine:.2f}")
    return Picture(
        figure,
        f"Vector a = ({a[0]:.2f}, {a[1]:.2f}) casts a shadow of length {shadow:.2f} on the line of b = "
        f"({b[0]:.0f}, {b[1]:.0f}). Dot product {dot:.2f}, cosine {cosine:.2f}.",
    )


def turned(angle: float, length: float) -> Picture:
    """`projection` of a vector of the given length, at `angle` degrees from b = (5, 0)."""
    turn = math.radians(angle)
    return projection([length * math.cos(turn), length * math.sin(turn)], [5.0, 0.0], -6.8)


def dot_and_cosine(vectors, tokens) -> Picture:
    """All pairs of rows: dot products on the left, cosines on the right."""
    unit = vectors / vectors.norm(dim=-1, keepdim=True)
    dots, cosines = vectors @ vectors.T, unit @ unit.T  # (T, T)
    figure, axes = new_figure(8.6, 3.5, 1, 2)
    heatmap(axes[0], dots, tokens, tokens, SIGNED, digits=1)
    heatmap(axes[1], cosines, tokens, tokens, SIGNED, -1, 1)
    axes[0].set_title("dot product")
    axes[1].set_title("cosine")
    for ax in axes:
        ax.tick_params(axis="x", rotation=40)
    squares = ", ".join(f"{token} {x:.1f}" for token, x in zip(tokens, dots.diagonal().tolist(), strict=True))
    off = cosines[~torch.eye(len(tokens), dtype=torch.bool)]
    return Picture(
        figure,
        f"Two tables over {', '.join(tokens)}. Dot products: on the diagonal the squared lengths, {squares}. "
        f"Cosines: 1 on the diagonal, elsewhere between {off.min():.2f} and {off.max():.2f}.",
    )


def _skip_gram_forces():
    """A center, one neighbor and two strangers in the plane, with the force that each puts on the center."""
    center = torch.tensor([1.2, 0.35])
    neighbor, strangers = torch.tensor([0.55, 1.6]), torch.tensor([[1.75, -0.45], [-0.9, -0.35]])
    pull = (1 - torch.sigmoid(center @ neighbor)) * neighbor
    pushes = -torch.sigmoid(strangers @ center)[:, None] * strangers
    return center, neighbor, strangers, pull, pushes


def _voice_forces():
    """Three speakers' recordings as unit vectors, one of them chosen, and minus the gradient of GE2E's softmax loss."""
    angles = torch.tensor([[30.0, 45.0, 62.0, 112.0], [150.0, 162.0, 175.0, 188.0], [255.0, 268.0, 280.0, 296.0]])
    voices = torch.stack((torch.deg2rad(angles).cos(), torch.deg2rad(angles).sin()), -1)  # (3, 4, 2)
    chosen = voices[0, 3].clone().requires_grad_()
    centroids = torch.stack((voices[0, :3].mean(0), voices[1].mean(0), voices[2].mean(0)))  # its own without itself
    cosines = (centroids @ chosen) / (centroids.norm(dim=-1) * chosen.norm())
    weights = torch.log_softmax(10 * cosines - 5, 0)  # w = 10, b = -5: the paper's first values
    (-weights[0]).backward()
    return voices, centroids, chosen.detach(), -chosen.grad, weights.exp().tolist()


def pull_and_push() -> Picture:
    """Left: word2vec's forces on a center word. Right: GE2E's centroids and the force on one recording."""
    center, neighbor, strangers, pull, pushes = _skip_gram_forces()
    figure, (left, right) = new_figure(8.8, 4.0, 1, 2)
    left.plot(*neighbor, "o", color=GREEN, ms=9)
    left.text(*(neighbor + torch.tensor([0.1, 0.12])), "neighbor", color=GREEN)
    left.plot(0, 0, "+", color=GRAY, ms=10)
    left.text(-0.08, 0.1, "0", color=GRAY, ha="right")
    for point in (center, neighbor, *strangers):
        left.plot([0, point[0]], [0, point[1]], ":", color="0.75", lw=1)
    for stranger, push in zip(strangers, pushes, strict=True):
        left.plot(*stranger, "o", color=RED, ms=9)
        left.text(*(stranger + torch.tensor([0.0, -0.3])), "stranger", color=RED, ha="center")
        arrow(left, center, center + push, RED)
    arrow(left, center, center + pull, GREEN)
    left.plot(*center, "o", color=BLACK, ms=9)
    left.text(*(center + torch.tensor([0.05, -0.3])), "center")
    left.set(xlim=(-1.9, 2.7), ylim=(-1.6, 2.3), aspect="equal", title="word2vec: one pull, K pushes")
    voices, centroids, chosen, force, weights = _voice_forces()
    names = ("own speaker", "speaker 2", "speaker 3")
    for points, centroid, color, name in zip(voices, centroids, (GREEN, RED, PINK), names, strict=True):
        right.plot(*points.T, "o", color=color, alpha=0.45, ms=6)
        right.plot(*centroid, "*", color=color, ms=17)
        right.text(*(centroid * 0.62), name, color=color, ha="center", va="center", fontsize=10)
    right.add_patch(Circle((0, 0), 1, fill=False, color="0.88"))
    right.plot(*chosen, "o", color=BLACK, ms=9)
    right.text(*(chosen * 1.12), "this recording", ha="right", va="bottom")
    arrow(right, chosen, chosen + force * (0.8 / force.norm()), BLACK)
    right.set(xlim=(-1.5, 1.5), ylim=(-1.3, 1.5), aspect="equal", title="GE2E: own centroid (★) against the others")
    for ax in (left, right):
        ax.set(xticks=[], yticks=[])
        for side in ax.spines.values():
            side.set_visible(False)
    p = torch.sigmoid(center @ neighbor)
    q = ", ".join(f"{x:.2f}" for x in torch.sigmoid(strangers @ center).tolist())
    return Picture(
        figure,
        f"Left, word2vec: a center word is pulled in the direction of its neighbor, as the pair looks true with only "
        f"{p:.2f}, and pushed against the directions of two strangers, which look true with {q}. Right, GE2E: "
        f"recordings of three speakers on a circle with their centroids. One recording lies between its own speaker "
        f"and speaker 2; its softmax weights over the three centroids are {weights[0]:.2f}, {weights[1]:.2f} and "
        f"{weights[2]:.2f}, and its arrow points away from speaker 2 towards its own centroid.",
    )


def company(centers, words) -> tuple[float, float]:
    """Mean cosine of two different words of one group, and of two words of different groups; centers (V, D)."""
    groups = [[words.index(word) for word in group] for group in COMPANY.values()]
    label = torch.tensor([g for g, group in enumerate(groups) for _ in group])
    rows = centers[torch.tensor(sum(groups, []))]
    unit = rows / rows.norm(dim=-1, keepdim=True)
    cosines, same = unit @ unit.T, label[:, None] == label
    within = cosines[same & ~torch.eye(len(label), dtype=torch.bool)].mean()
    return float(within), float(cosines[~same].mean())


def _flat(history):
    """(S, V, 2): shadows of the words' directions on the plane in which the last snapshot's directions vary most."""
    unit = history.centers / history.centers.norm(dim=-1, keepdim=True)  # (S, V, D)
    _, _, axes = torch.linalg.svd(unit[-1] - unit[-1].mean(0), full_matrices=False)
    axes = axes[:2]
    signs = torch.sign(axes[torch.arange(2), axes.abs().argmax(1)])  # so that the map is never mirrored
    return unit @ (axes * signs[:, None]).T


def _heaps(points, near: float) -> list[list[int]]:
    """Points (V, 2) in groups: a point joins the first group whose first member is closer than `near`."""
    heaps: list[list[int]] = []
    for i, point in enumerate(points):
        for heap in heaps:
            if (points[heap[0]] - point).norm() < near:
                heap.append(i)
                break
        else:
            heaps.append([i])
    return heaps


def _scatter(ax, points, words):
    """All words as dots; those of COMPANY in color with names, which are stacked where the dots lie in a heap."""
    color = {word: GROUP_COLORS[group] for group, members in COMPANY.items() for word in members}
    ax.add_patch(Circle((0, 0), 1, fill=False, color="0.88"))
    for (x, y), word in zip(points.tolist(), words, strict=True):
        ax.plot(x, y, "o", color=color.get(word, "0.75"), ms=7 if word in color else 4)
    named = [i for i, word in enumerate(words) if word in color]
    for heap in _heaps(points[named], 0.3):
        members = sorted((named[i] for i in heap), key=lambda i: -float(points[i, 1]))
        x, y = points[members].mean(0).tolist()
        side = -1 if x < 0 else 1
        edge = side * float((side * points[members, 0]).max()) + side * 0.06
        for line, i in enumerate(members):
            height = y + 0.11 * ((len(members) - 1) / 2 - line)
            align = "left" if side > 0 else "right"
            ax.text(edge, height, words[i], fontsize=8, color=color[words[i]], ha=align, va="center")
    for group, shade in GROUP_COLORS.items():
        ax.plot([], [], "o", color=shade, label=group)
    ax.plot([], [], "o", color="0.75", ms=4, label="all other words")
    ax.set(xlim=(-1.35, 1.35), ylim=(-1.1, 1.1), aspect="equal", xticks=[], yticks=[])
    for side in ax.spines.values():
        side.set_visible(False)


def before_and_after(history, words) -> Picture:
    """The words on a flat map before and after training, groups in color."""
    flat = _flat(history)
    figure, axes = new_figure(8.8, 4.0, 1, 2)
    for ax, k, title in zip(axes, (0, -1), ("before training", "after training"), strict=True):
        _scatter(ax, flat[k], words)
        ax.set_title(f"{title}: step {history.steps[k]}")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    (w0, b0), (w1, b1) = company(history.centers[0], words), company(history.centers[-1], words)
    return Picture(
        figure,
        f"Two maps of {len(words)} words. Before training places, foods and animals are mixed: mean cosine {w0:.2f} "
        f"within a group, {b0:.2f} between groups. After training each group is a cluster: {w1:.2f} within, {b1:.2f} "
        f"between.",
    )


def _curves(ax, history, words):
    numbers = [company(centers, words) for centers in history.centers]
    ax.plot(history.steps, [w for w, _ in numbers], "o-", color=BLACK, ms=4, label="two words of one group")
    ax.plot(history.steps, [b for _, b in numbers], "s-", color=RED, ms=4, label="two words of different groups")
    ax.set(xlabel="step", ylabel="mean cosine", ylim=(-0.15, 1.05))
    ax.legend(frameon=False, loc="center right")
    return numbers


def company_curve(history, words) -> Picture:
    """Mean cosine within and between groups against the training step."""
    figure, ax = new_figure(6.4, 3.0)
    numbers = _curves(ax, history, words)
    return Picture(
        figure,
        f"Mean cosine against training step. Within a group it rises from {numbers[0][0]:.2f} to {numbers[-1][0]:.2f}, "
        f"between groups from {numbers[0][1]:.2f} over {max(b for _, b in numbers):.2f} to {numbers[-1][1]:.2f}.",
    )


def training_step(history, words, place: int) -> Picture:
    """The flat map at one snapshot, beside the curves of the mean cosines with the same step marked."""
    figure, (plane, curves) = new_figure(8.8, 3.8, 1, 2)
    _scatter(plane, _flat(history)[place], words)
    within, between = _curves(curves, history, words)[place]
    step = history.steps[place]
    curves.axvline(step, color=BLUE, lw=6, alpha=0.25)
    plane.set_title(f"step {step}")
    curves.set_title(f"cosine {within:.2f} within groups, {between:.2f} between")
    return Picture(
        figure,
        f"Map of the words at step {step}: mean cosine {within:.2f} within groups and {between:.2f} between groups.",
    )
