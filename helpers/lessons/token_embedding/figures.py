"""Figures of lesson 1: tokens, ids and rows; a projection; the gradients of word2vec; words split into pieces."""

import itertools
import math

import torch
from matplotlib.patches import Arc, Circle
from torch.nn.functional import normalize, softplus

from helpers.corpus import COMPANY
from helpers.drawing.charts import bare, heatmap, named, without_spines
from helpers.drawing.colors import BLACK, BLUE, GREEN, ORANGE, PINK, RED, SIGNED, SKY, WEIGHTS
from helpers.drawing.diagrams import arrow, box
from helpers.drawing.style import Picture, new_figure
from helpers.translator.trained import state
from helpers.translator.word_ids import english

GRAY = "0.55"
GROUP_COLORS = dict(zip(COMPANY, (BLUE, ORANGE, GREEN), strict=True))
SMALL_TABLE = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])  # (3, 2), the table in the lesson
SMALL_WORDS = ("Life", "eat", "short")
UNKNOWN = {"facecolor": "#F4F4F4", "edgecolor": GRAY, "hatch": "////"}  # not in the vocabulary
SHOWN = 8  # entries of a row that are shown
MAX_WORDS = 9  # words of a sentence that fit
LINE, LETTER = 0.12, 0.06  # height of a line and width of a letter on a map that is two units wide


def row_lookup(ids, tokens) -> Picture:
    """One-hot rows (T, 3) times a small table (3, 2): each row of the product is a row of the table."""
    hot = torch.eye(3)[torch.as_tensor(ids)]  # (T, 3)
    figure, (left, middle, right) = new_figure(7.6, 2.5, 1, 3, width_ratios=(3, 2, 2))
    look = {"columns": ("x", "y"), "cmap": SIGNED, "vmin": -9, "vmax": 9, "digits": 0}
    heatmap(left, hot, tokens, SMALL_WORDS, cmap=WEIGHTS, vmin=0, vmax=2, digits=0, title="one-hot rows")
    heatmap(middle, SMALL_TABLE, SMALL_WORDS, title="times the table", **look)
    heatmap(right, hot @ SMALL_TABLE, tokens, title="give its rows", **look)
    rows = ", ".join(f"{t} ({x:.0f}, {y:.0f})" for t, (x, y) in zip(tokens, (hot @ SMALL_TABLE).tolist(), strict=True))
    table = "a table with rows Life (1, 2), eat (3, 4), short (5, 6)"
    alt = f"Three tables. One-hot rows of {', '.join(tokens)}, times {table}, give the rows {rows}."
    return Picture(figure, alt, "Figure 1.1. A one-hot row times a table is a row of the table.")


def chip(ax, x, y, text, color=BLUE, **look):
    """Draw a word in a box of the given width, centered at (x, y)."""
    size = (look.pop("width"), 0.48)
    return box(ax, (x, y), size, text, 0.14, **{"facecolor": "white", "edgecolor": color, "lw": 1.4} | look)


def sentence_to_rows(sentence: str, word: int = 1) -> Picture:
    words = "".join(x for x in sentence.lower() if x not in ",.!?;:").split()[:MAX_WORDS]
    ids = [english.get(w) if not w.startswith("<") else None for w in words]
    chosen = min(word, len(words)) - 1
    figure, ax = new_figure(8.4, 4.2)
    ax.axis("off")
    for y, label in ((0.7, "tokens"), (-0.3, "ids"), (-3.2, "rows")):
        ax.text(-1.15, y, label, va="center", color="0.35")
    table, step = state()["encoder.tokens.weight"], MAX_WORDS / max(len(words), 1)
    for index, (text, i) in enumerate(zip(words, ids, strict=True)):
        x, bold = (index + 0.5) * step - 0.1, index == chosen
        size = 11 if len(words) < 7 else 9
        look = {"lw": 3.2 if bold else 1.4, "fontsize": size} | ({} if i is not None else UNKNOWN)
        chip(ax, x, 0.7, text, width=0.92 * step, **look)
        ax.plot([x, x], [0.4, 0.02], color=BLUE if bold else "0.8", lw=2.5 if bold else 1)
        ax.text(x, -0.28, "?" if i is None else str(i), ha="center", va="center", fontsize=12)
        if i is None:
            continue
        ax.plot([x, x], [-0.55, -0.85], color=BLUE if bold else "0.8", lw=2.5 if bold else 1)
        row = table[i, :SHOWN, None].flip(0).numpy()  # (SHOWN, 1), drawn from top to bottom
        half = min(0.42 * step, 0.62)
        ax.imshow(row, cmap=SIGNED, vmin=-0.4, vmax=0.4, extent=(x - half, x + half, -5.5, -0.9), origin="lower")
        ellipsis = f"... {table.shape[1]} entries" if bold else "..."
        ax.text(x, -5.85, ellipsis, ha="center", va="center", fontsize=9)
    ax.set(xlim=(-1.2, MAX_WORDS), ylim=(-6.1, 1.3), aspect="auto")
    return Picture(figure, _lookup_alt(words, ids, chosen, table), "A word's id is the number of its row in the table.")


def _lookup_alt(words, ids, chosen, table) -> str:
    if not words:
        return "An empty sentence: no tokens, no ids, no rows."
    pairs = ", ".join(f"{w} {'has no id' if i is None else i}" for w, i in zip(words, ids, strict=True))
    details = f"The sentence as tokens with their ids in the translator's vocabulary of {len(table)}: {pairs}."
    if ids[chosen] is None:
        return f"{details} {words[chosen]} is not in the vocabulary: encode raises a KeyError."
    numbers = " ".join(f"{x:.2f}" for x in table[ids[chosen], :3].tolist())
    return f"{details} The row of {words[chosen]} begins {numbers}."


def sentence_vectors(vectors, tokens) -> Picture:
    figure, ax = new_figure(7.6, 2.7)
    title = f"{vectors.shape[0]} tokens, {vectors.shape[1]} random entries each"
    picture = heatmap(ax, vectors, tokens, cmap=SIGNED, numbers=False, xlabel="coordinate", title=title)
    figure.colorbar(picture, ax=ax)
    first = ", ".join(f"{x:.4f}" for x in vectors[0, :3].tolist())
    alt = f"Heat map of {vectors.shape[0]} by {vectors.shape[1]} entries, one row for each of {', '.join(tokens)}. The "
    alt += f"entries are random, without a pattern, between {vectors.min():.2f} and {vectors.max():.2f}; the row of "
    alt += f"{tokens[0]} begins {first}."
    return Picture(figure, alt, "Figure 1.2. The running sentence as six rows of an untrained table.")


def projection(a, b) -> Picture:
    a, b = torch.as_tensor(a, dtype=torch.float64), torch.as_tensor(b, dtype=torch.float64)
    dot, unit_a, unit_b = float(a @ b), normalize(a, dim=0), normalize(b, dim=0)
    length, cosine = float(a @ unit_b), float(unit_a @ unit_b)
    foot = length * unit_b
    figure, ax = new_figure(6.4, 4.0)
    ax.axhline(0, color="0.9", zorder=0)
    ax.axvline(0, color="0.9", zorder=0)
    ax.plot([0, foot[0]], [0, foot[1]], color=ORANGE, lw=9, alpha=0.5, solid_capstyle="butt")
    ax.plot([a[0], foot[0]], [a[1], foot[1]], "--", color=GRAY)
    arrow(ax, (0, 0), b.tolist(), BLACK)
    arrow(ax, (0, 0), a.tolist(), BLUE)
    # Next to its tip, or a little higher if a points along b, so that the two names don't overlap.
    tip = a + 0.3 * unit_a + torch.tensor([0, 0.4 if cosine > 0.98 else 0])
    ax.text(*tip.tolist(), "a", color=BLUE, ha="center", va="center", fontsize=14)
    ax.text(*(b + 0.3 * unit_b).tolist(), "b", ha="center", va="center", fontsize=14)
    x, y = (foot / 2).tolist()
    ax.text(x, y - 0.4, f"projection {length:.2f}", color=RED, ha="center", va="center")
    ax.set(xlim=(-6.8, 7), ylim=(-1.2, 6.6), aspect="equal")
    ax.set_title(f"dot product {dot:.2f}   ·   projection of a on b {length:.2f}   ·   cosine {cosine:.2f}")
    alt = f"Vector a = ({a[0]:.2f}, {a[1]:.2f}) has a projection of {length:.2f} on the line of b = "
    alt += f"({b[0]:.0f}, {b[1]:.0f}). Dot product {dot:.2f}, cosine {cosine:.2f}."
    return Picture(figure, alt, "The dot product is the projection times the length of b, which is 5.")


def projection_at_angle(angle: float, length: float) -> Picture:
    """`projection` of a vector of the given length, at `angle` degrees from b = (5, 0)."""
    radians = math.radians(angle)
    return projection([length * math.cos(radians), length * math.sin(radians)], [5.0, 0.0])


def dot_and_cosine(vectors, tokens) -> Picture:
    rows = normalize(vectors, dim=-1)
    dots, cosines = vectors @ vectors.T, rows @ rows.T  # (T, T)
    figure, axes = new_figure(8.6, 3.5, 1, 2)
    look = {"cmap": SIGNED, "tilted": True}
    heatmap(axes[0], dots, tokens, tokens, digits=1, title="dot product", **look)
    heatmap(axes[1], cosines, tokens, tokens, vmin=-1, vmax=1, title="cosine", **look)
    squares = named(tokens, dots.diagonal(), ".1f")
    others = cosines[~torch.eye(len(tokens), dtype=torch.bool)]
    alt = f"Two tables over {', '.join(tokens)}. Dot products: on the diagonal the squared lengths, {squares}. "
    alt += f"Cosines: 1 on the diagonal, elsewhere between {others.min():.2f} and {others.max():.2f}."
    return Picture(figure, alt, "Figure 1.3. The same six vectors, compared by dot product and by cosine.")


def surprise() -> Picture:
    x = torch.linspace(-5, 5, 101)
    figure, (left, right) = new_figure(8.4, 3.2, 1, 2)
    for ax, function, name in ((left, softplus, "loss"), (right, torch.sigmoid, "size of the derivative")):
        ax.plot(x, function(-x), color=GREEN, lw=2, label="positive pair: pull")
        ax.plot(x, function(x), "--", color=RED, lw=2, label="negative sample: push")
        ax.set(xlabel="dot product of the pair", ylabel=name, ylim=(0, None))
        ax.axvline(0, color="0.85", zorder=0)
    left.legend(framealpha=1, edgecolor="white", loc="upper center")
    alt = "Two charts over the dot product, from -5 to 5. Left, the loss: for a positive pair it falls from 5 over "
    alt += "0.69 at 0 to almost 0, for a negative sample it rises in mirror image. Right, the size of the derivative: "
    alt += "the pull falls from 1 over 0.5 at 0 to 0, the push rises from 0 over 0.5 to 1."
    caption = "Figure 1.6. The pull is 1 minus the probability of a positive pair, and the push is the probability of "
    caption += "a negative sample."
    return Picture(figure, alt, caption)


def negative_sampling_gradients() -> Picture:
    figure, (left, right) = new_figure(8.6, 3.6, 1, 2)
    # A center, one context word and two negative samples, with the step that each causes for the center.
    center, context = torch.tensor([1.2, 0.35]), torch.tensor([0.55, 1.6])
    negatives = torch.tensor([[1.75, -0.45], [-0.9, -0.35]])
    p, q = torch.sigmoid(center @ context), torch.sigmoid(negatives @ center)
    left.plot(0, 0, "+", color=GRAY, ms=10)
    left.text(-0.08, 0.1, "0", color=GRAY, ha="right")
    for step, color in (((1 - p) * context, GREEN), *((-push, RED) for push in q[:, None] * negatives)):
        arrow(left, center, center + step, color)
    words = [(center, BLACK, "center", (0.05, -0.3), "left"), (context, GREEN, "context", (0.1, 0.12), "left")]
    words += [(negative, RED, "negative sample", (0.0, -0.3), "center") for negative in negatives]
    for point, color, name, (right_of, above), side in words:
        left.plot([0, point[0]], [0, point[1]], ":", color="0.75", lw=1)
        left.plot(*point, "o", color=color, ms=9)
        left.text(point[0] + right_of, point[1] + above, name, color=color, ha=side)
    left.set(xlim=(-1.9, 2.7), ylim=(-1.6, 2.3), aspect="equal", title="word2vec: one pull, K pushes")
    # Recordings of three speakers as unit vectors, and the weights of one of them in the softmax of GE2E.
    angles = torch.tensor([[30.0, 45.0, 62.0, 112.0], [150.0, 162.0, 175.0, 188.0], [255.0, 268.0, 280.0, 296.0]])
    voices = torch.stack((torch.deg2rad(angles).cos(), torch.deg2rad(angles).sin()), -1)  # (3, 4, 2)
    chosen = voices[0, 3]
    centroids = torch.stack((voices[0, :3].mean(0), voices[1].mean(0), voices[2].mean(0)))  # the chosen one left out
    cosines = (centroids @ chosen) / (centroids.norm(dim=-1) * chosen.norm())
    weights = torch.softmax(10 * cosines - 5, 0)  # w = 10 and b = -5 are the initial values in the paper
    names = (("own\nspeaker", (0.66, 0.3)), ("speaker 2", (-0.5, 0.1)), ("speaker 3", (0.05, -0.6)))
    for points, centroid, color, (name, point) in zip(voices, centroids, (GREEN, RED, PINK), names, strict=True):
        right.plot(*points.T, "o", color=color, alpha=0.45, ms=6)
        right.plot(*centroid, "*", color=color, ms=17)
        right.text(*point, name, color=color, ha="center", va="center", fontsize=10)
    right.add_patch(Circle((0, 0), 1, fill=False, color="0.88"))
    right.plot(*chosen, "o", color=BLACK, ms=9)
    right.text(*(chosen * 1.12), "this recording", ha="right", va="bottom")
    own = centroids[0] / centroids[0].norm()
    right.plot([0, own[0]], [0, own[1]], ":", color=GREEN, lw=1.5)
    begin, end = (math.degrees(math.atan2(float(y), float(x))) for x, y in (chosen, own))
    right.add_patch(Arc((0, 0), 2.16, 2.16, theta1=end + 8, theta2=begin - 5, color=BLACK, lw=2))
    tail, tip = (1.08 * torch.tensor([math.cos(a), math.sin(a)]) for a in map(math.radians, (end + 10, end + 2)))
    arrow(right, tail, tip, BLACK)
    right.set(xlim=(-1.5, 1.5), ylim=(-1.3, 1.5), aspect="equal", title="GE2E: own centroid (★) against the others")
    for ax in (left, right):
        ax.set(xticks=[], yticks=[])
        without_spines(ax)
    pushed, (w1, w2, w3) = " and ".join(f"{x:.2f}" for x in q.tolist()), weights.tolist()
    alt = "Left, word2vec: a center word is pulled in the direction of its context, because the pair has a probability "
    alt += f"of only {p:.2f}, and pushed against the directions of two negative samples, which have {pushed}. Right, "
    alt += "GE2E: recordings of three speakers on a circle with their centroids. One recording lies between its own "
    alt += f"speaker and speaker 2; its softmax weights over the three centroids are {w1:.2f}, {w2:.2f} and {w3:.2f}, "
    alt += "and its arrow runs along the circle, away from speaker 2, to the direction of its own centroid."
    return Picture(figure, alt, "Figure 1.7. The same pull and push, for words and for voices.")


def group_cosines(centers, words) -> tuple[float, float]:
    """Mean cosine of two different words of the same group, and of words of different groups; centers (V, D)."""
    groups = [[words.index(word) for word in group] for group in COMPANY.values()]
    label = torch.tensor([g for g, group in enumerate(groups) for _ in group])
    rows = normalize(centers[torch.tensor(sum(groups, []))], dim=-1)
    cosines, same = rows @ rows.T, label[:, None] == label
    within = cosines[same & ~torch.eye(len(label), dtype=torch.bool)].mean()
    return float(within), float(cosines[~same].mean())


def project_to_plane(history):
    """The directions of the words, (S, V, 2), projected on the plane in which the last snapshot varies most."""
    rows = normalize(history.centers, dim=-1)  # (S, V, D)
    return rows @ _plane(rows[-1] - rows[-1].mean(0)).T


def _plane(rows):
    """The two axes (2, D) along which rows (N, D) vary most, with fixed signs so that a map is never mirrored."""
    axes = torch.linalg.svd(rows, full_matrices=False)[2][:2]
    return axes * torch.sign(axes[torch.arange(2), axes.abs().argmax(1)])[:, None]


def _clusters(points, radius: float) -> list[list[int]]:
    """Cluster points (V, 2): each joins the first cluster whose first member is closer than `radius`."""
    clusters: list[list[int]] = []
    for i, point in enumerate(points):
        own = next((cluster for cluster in clusters if (points[cluster[0]] - point).norm() < radius), None)
        if own is None:
            clusters.append(own := [])
        own.append(i)
    return clusters


def _label_position(cluster, names: list[str], points, taken: list[tuple]) -> tuple[int, float, float]:
    """(side, x, y of the first line) for the names next to a cluster (N, 2), over as few names and dots as possible.

    taken: boxes (left, right, bottom, top) of the names placed so far, to which the new box is added.
    """
    middle, best = float(cluster[:, 1].mean()) + LINE * (len(names) - 1) / 2, None
    width, outer = LETTER * max(map(len, names)), 1 if cluster[:, 0].mean() > 0 else -1
    for side, lift in itertools.product((1, -1), range(-6, 7)):
        edge, top = side * (float((side * cluster[:, 0]).max()) + 0.07), middle + lift * LINE / 2
        left, right = sorted((edge, edge + side * width))
        bottom, above = top - LINE * (len(names) - 0.5), top + LINE / 2
        names_hit = sum(left < r and lo < right and bottom < t and b < above for lo, r, b, t in taken)
        x, y = points.T
        dots_hit = int(((left - 0.03 < x) & (x < right + 0.03) & (bottom < y) & (y < above)).sum())
        outside = max(abs(left), abs(right)) > 1.35 or max(abs(bottom), abs(above)) > 1.1
        cost = 8 * names_hit + 2 * dots_hit + 20 * outside + abs(lift) / 2 + (side != outer)
        if best is None or cost < best[0]:
            best = cost, (left, right, bottom, above), (side, edge, top)
    taken.append(best[1])
    return best[2]


def scatter(ax, points, words):
    """Draw all words as dots, those of COMPANY with colors and names, which are stacked next to clusters of dots."""
    color = {word: GROUP_COLORS[group] for group, members in COMPANY.items() for word in members}
    ax.add_patch(Circle((0, 0), 1, fill=False, color="0.88"))
    for shade in ("0.75", *GROUP_COLORS.values()):
        members = [i for i, word in enumerate(words) if color.get(word, "0.75") == shade]
        ax.plot(*points[members].T, "o", color=shade, ms=4 if shade == "0.75" else 7)
    named = [i for i, word in enumerate(words) if word in color]
    taken = []
    for cluster in sorted(_clusters(points[named], 0.3), key=len, reverse=True):
        members = sorted((named[i] for i in cluster), key=lambda i: -float(points[i, 1]))
        side, edge, top = _label_position(points[members], [words[i] for i in members], points, taken)
        for line, i in enumerate(members):
            align = "left" if side > 0 else "right"
            ax.text(edge, top - LINE * line, words[i], fontsize=9, color=color[words[i]], ha=align, va="center")
    for group, shade in GROUP_COLORS.items():
        ax.plot([], [], "o", color=shade, label=group)
    ax.plot([], [], "o", color="0.75", ms=4, label="all other words")
    ax.set(xlim=(-1.35, 1.35), ylim=(-1.1, 1.1), aspect="equal", xticks=[], yticks=[])
    without_spines(ax)


def before_and_after(history, words) -> Picture:
    points = project_to_plane(history)
    figure, axes = new_figure(8.6, 4.2, 1, 2)
    figure.get_layout_engine().set(h_pad=0.12)
    for ax, k, title in zip(axes, (0, -1), ("before training", "after training"), strict=True):
        scatter(ax, points[k], words)
        ax.set_title(f"{title}: {history.steps[k]} pairs")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    (w0, b0), (w1, b1) = group_cosines(history.centers[0], words), group_cosines(history.centers[-1], words)
    alt = f"Two maps of {len(words)} words. Before training places, foods and animals are mixed: mean cosine {w0:.2f} "
    alt += f"within a group, {b0:.2f} between groups. After training each group is a cluster: {w1:.2f} within, "
    alt += f"{b1:.2f} between."
    return Picture(figure, alt, "Figure 1.4. The directions of the word vectors before and after training.")


def mean_probabilities(history, pairs) -> tuple[float, float]:
    """Mean probability after training of the positive pairs (N, 2), and of all pairs of a word and a context vector."""
    p = torch.sigmoid(history.centers[-1] @ history.contexts[-1].T)  # (V, V)
    return float(p[pairs[:, 0], pairs[:, 1]].mean()), float(p.mean())


def each_part_alone(histories: dict, pairs) -> Picture:
    figure, axes = new_figure(8.6, 3.7, 1, len(histories))
    details = []
    for ax, (name, history) in zip(axes, histories.items(), strict=True):
        unit = normalize(torch.stack((history.centers[-1], history.contexts[-1])), dim=-1)  # (2, V, D)
        flat = unit @ _plane(unit.flatten(0, 1)).T  # (2, V, 2)
        ax.add_patch(Circle((0, 0), 1, fill=False, color="0.88"))
        ax.plot(*flat[1].T, "x", color=ORANGE, ms=6, label="context vectors")
        ax.plot(*flat[0].T, "o", color=BLUE, ms=5, alpha=0.7, label="center vectors")
        positive, random = mean_probabilities(history, pairs)
        cosine = float((unit[0] @ unit[1].T).mean())
        ax.set_title(name)
        ax.set_xlabel(f"probability of a positive pair: {positive:.2f}\nof a random pair: {random:.2f}", fontsize=10)
        ax.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", xticks=[], yticks=[])
        without_spines(ax)
        details.append(
            f"{name}: mean cosine of center and context vectors {cosine:.2f}, probability of a positive pair "
            f"{positive:.2f}, of a random pair {random:.2f}"
        )
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    alt = "Directions of center and context vectors after three training runs. " + "; ".join(details) + "."
    return Picture(figure, alt, "Figure 1.8. What pull and push do alone.")


def windows(tokens, window: int) -> Picture:
    figure, ax = new_figure(8.4, 0.5 + 0.52 * len(tokens))
    for t in range(len(tokens)):
        for s, token in enumerate(tokens):
            if s == t:
                chip(ax, 1.5 * s, -t, token, lw=3.2, width=1.36)
            elif abs(s - t) <= window:
                chip(ax, 1.5 * s, -t, token, GREEN, width=1.36)
            else:
                ax.text(1.5 * s, -t, token, ha="center", va="center", color="0.6")
    bare(ax, xlim=(-0.8, 1.5 * len(tokens) - 0.7), ylim=(0.4 - len(tokens), 0.5))
    near = [tokens[max(0, t - window) : t] + tokens[t + 1 : t + window + 1] for t in range(len(tokens))]
    details = [f"{token} with {', '.join(others)}" for token, others in zip(tokens, near, strict=True)]
    alt = f"Each word of the sentence in turn is the center; its context words are at most {window} away: "
    alt += f"{'; '.join(details)}."
    caption = f"Figure 1.9. Positive pairs for a window of {window}: each blue center with each green word of its line."
    return Picture(figure, alt, caption)


def word_pieces(pieces: dict) -> Picture:
    figure, ax = new_figure(8.4, 0.3 + 0.55 * len(pieces))
    for line, (word, parts) in enumerate(pieces.items()):
        ax.text(2.4, -line, word, ha="right", va="center", fontsize=12)
        x = 2.8
        for part in parts:
            width = 0.2 * len(part) + 0.35
            chip(ax, x + width / 2, -line, part, BLUE if not part.startswith("##") else SKY, width=width)
            x += width + 0.1
    bare(ax, xlim=(0, 9), ylim=(0.5 - len(pieces), 0.5))
    listed = "; ".join(f"{word} into {' '.join(parts)}" for word, parts in pieces.items())
    return Picture(figure, f"Words and their pieces: {listed}.", "Figure 1.5. How BERT's vocabulary splits four words.")
