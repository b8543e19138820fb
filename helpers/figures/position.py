"""Figures of lesson 2. They draw from their own numbers, not from the learner's answers."""

from __future__ import annotations

import numpy as np
from matplotlib.patches import Circle

from helpers.figures.style import BLACK, BLUE, ORANGE, SIGNED, SKY, WEIGHTS, Picture, heatmap, new_figure


def hands(places, d_model: int) -> np.ndarray:
    """The clock hands of the given places as complex numbers: cosine to the right, sine upwards, (T, d_model / 2)."""
    speeds = 10000.0 ** (-2 * np.arange(d_model // 2) / d_model)
    return np.exp(1j * np.outer(places, speeds))


def columns(places, d_model: int) -> np.ndarray:
    """Sines and cosines of the hands, side by side: (T, d_model)."""
    points = hands(places, d_model)
    return np.dstack([points.imag, points.real]).reshape(len(points), d_model)


def two_orders(tokens, x, perm) -> Picture:
    """Attention weights of one sentence in two orders: the table is shuffled, and each weight stays with its pair."""
    weights = (x @ x.T).softmax(-1)
    order = perm.tolist()
    shuffled = [tokens[i] for i in order]
    figure, axes = new_figure(8.2, 3.2, columns=2)
    for ax, names, table in zip(axes, (tokens, shuffled), (weights, weights[perm][:, perm]), strict=True):
        heatmap(ax, table, names, names, cmap=WEIGHTS, vmin=0, vmax=1)
        ax.set_title(" ".join(names))
        ax.set_xlabel("asked (key)")
    axes[0].set_ylabel("asking (query)")
    pair = f"{tokens[0]} gives {tokens[-1]} the weight {weights[0, -1]:.2f}"
    return Picture(
        figure,
        f"Two heat maps of attention weights, for {' '.join(tokens)} and for {' '.join(shuffled)}. Rows and columns "
        f"have changed places, the numbers went with their words: in both {pair} and herself {weights[0, 0]:.2f}.",
    )


def counting(length: int = 16) -> Picture:
    """Binary digits of the places beside four sines: the same idea, sharp and smooth."""
    places = np.arange(length)
    bits = (places[:, None] >> np.arange(4)) & 1
    waves = hands(places, 16).imag[:, :4]
    figure, axes = new_figure(8.2, 5.0, columns=2)
    heatmap(
        axes[0], bits, columns=["every 1", "every 2", "every 4", "every 8"], cmap="Greys", vmin=0, vmax=1.6, digits=0
    )
    heatmap(axes[1], waves, columns=["6", "20", "63", "199"], cmap=SIGNED, vmin=-1, vmax=1)
    axes[0].set_title("binary digits")
    axes[0].set_xlabel("flips after so many steps")
    axes[0].set_ylabel("place")
    axes[1].set_title("sines of the first four pairs, D = 16")
    axes[1].set_xlabel("steps for one round")
    axes[0].set_yticks(places)
    axes[1].set_yticks(places)
    return Picture(
        figure,
        "Left, the binary digits of the places 0 to 15: the first column flips at every step, the others after 2, 4 "
        "and 8. Right, four sines that go round in 6, 20, 63 and 199 steps: the same fast-to-slow pattern without "
        "jumps.",
    )


def sinusoid_map(length: int = 60, d_model: int = 32) -> Picture:
    """The whole table as a heat map: one row a place, one column an entry."""
    figure, ax = new_figure(7.6, 4.4)
    image = heatmap(ax, columns(np.arange(length), d_model), cmap=SIGNED, vmin=-1, vmax=1, numbers=False)
    ax.set_xticks(range(0, d_model, 4), range(0, d_model, 4))
    ax.set_yticks(range(0, length, 10), range(0, length, 10))
    ax.set_xlabel("column (even: sine, odd: cosine)")
    ax.set_ylabel("place t")
    ax.set_title(f"sinusoidal positions, D = {d_model}")
    figure.colorbar(image, ax=ax, shrink=0.8)
    slowest = 10000 ** (-(d_model - 2) / d_model)
    return Picture(
        figure,
        f"Heat map of {length} places by {d_model} columns, values from -1 to 1. The columns on the left change sign "
        f"every three places; towards the right they change ever more slowly, and the last pair stays near 0 and 1: "
        f"its angle at place {length - 1} is only {(length - 1) * slowest:.4f}.",
    )


def position_dots(length: int = 48, d_model: int = 32) -> Picture:
    """Dot products of all pairs of places, and one curve for them all: they depend on the distance."""
    table = columns(np.arange(length), d_model)
    dots = table @ table.T
    figure, axes = new_figure(9.0, 3.8, columns=2)
    image = heatmap(axes[0], dots, cmap=WEIGHTS, vmin=dots.min(), vmax=dots.max(), numbers=False)
    ticks = range(0, length, 10)
    axes[0].set_xticks(ticks, ticks)
    axes[0].set_yticks(ticks, ticks)
    axes[0].set_xlabel("place")
    axes[0].set_ylabel("place")
    axes[0].set_title("dot product of two rows")
    figure.colorbar(image, ax=axes[0], shrink=0.85)
    looks = (
        (5, SKY, {"lw": 7, "alpha": 0.5}),
        (24, BLACK, {"lw": 1.5}),
        (40, ORANGE, {"ls": "", "marker": "o", "ms": 4}),
    )
    for start, color, look in looks:
        axes[1].plot(np.arange(length) - start, dots[start], color=color, label=f"from place {start}", **look)
    axes[1].set_xlabel("distance")
    axes[1].set_ylabel("dot product")
    axes[1].set_title("one curve for all places")
    axes[1].legend(fontsize=9)
    return Picture(
        figure,
        f"Left, a heat map of the dot products of {length} places: stripes along the diagonal, {dots[0, 0]:.0f} on it. "
        f"Right, three of its rows drawn against the distance fall on one curve: {dots[5, 5]:.1f} at distance 0, "
        f"{dots[5, 6]:.2f} at distance 1, {dots[5, 15]:.2f} at distance 10.",
    )


def _circle(ax):
    ax.add_patch(Circle((0, 0), 1, fill=False, color="0.75"))
    ax.set_xlim(-1.35, 1.35)
    ax.set_ylim(-1.35, 1.35)
    ax.set_aspect("equal")
    ax.set_xticks([-1, 0, 1])
    ax.set_yticks([-1, 0, 1])


def _arrow(ax, point, color, label=None):
    ax.annotate(
        "",
        xy=(point.real, point.imag),
        xytext=(0, 0),
        arrowprops={"arrowstyle": "-|>", "color": color, "lw": 2, "shrinkA": 0, "shrinkB": 0},
    )
    if label is not None:
        ax.text(1.17 * point.real, 1.17 * point.imag, label, color=color, ha="center", va="center")


def one_turn(offset: int = 3) -> Picture:
    """The hands of two pairs at a few places: a step of `offset` turns each pair by one fixed angle."""
    figure, axes = new_figure(8.0, 4.1, columns=2)
    speeds = (1.0, 0.1)
    starts = ((0, 2), (0, 12))
    for pair, (ax, speed) in enumerate(zip(axes, speeds, strict=True)):
        _circle(ax)
        for start, color in zip(starts[pair], (BLUE, ORANGE), strict=True):
            for place in (start, start + offset):
                _arrow(ax, np.exp(1j * speed * place), color, f"t={place}")
            arc = 0.62 + 0.16 * (start > 0)
            angles = np.linspace(speed * start, speed * (start + offset), 40)
            ax.plot(arc * np.cos(angles), arc * np.sin(angles), color=color, linestyle=":")
        ax.set_xlabel("cosine column")
        ax.set_ylabel("sine column")
        ax.set_title(f"pair {pair}: {offset} steps turn it by {speed * offset:.1f}")
    return Picture(
        figure,
        f"Two circles with clock hands, pairs 0 and 1 of D = 8. In pair 0 the hands of places 0 and 2 "
        f"each turn by {offset:.1f} radians when the place grows by {offset}; in pair 1 those of places 0 and 12 turn "
        f"by {speeds[1] * offset:.1f}. The turn does not depend on the place.",
    )


def _words(d_model: int) -> tuple[np.ndarray, np.ndarray]:
    """A query and a key, fixed."""
    i = np.arange(d_model)
    return np.cos(1.7 * i + 0.4), np.cos(1.7 * i + 0.9)


def rotary_score(m, n, d_model: int = 16) -> np.ndarray:
    """Dot products of the fixed query turned to the places m with the fixed key turned to the places n, (M, N)."""
    q, k = (v[0::2] + 1j * v[1::2] for v in _words(d_model))
    return ((q * hands(m, d_model)) @ (k * hands(n, d_model)).conj().T).real


def rotary_scores(length: int = 16, d_model: int = 16) -> Picture:
    """Scores of one query and one key at all places: with places added, and with pairs rotated."""
    places = np.arange(length)
    q, k = _words(d_model)
    table = columns(places, d_model)
    added = (q + table) @ (k + table).T
    rotated = rotary_score(places, places, d_model)
    figure, axes = new_figure(9.0, 4.0, columns=2)
    for ax, scores, title in zip(axes, (added, rotated), ("places added", "pairs rotated"), strict=True):
        image = heatmap(ax, scores, cmap=WEIGHTS, numbers=False)
        ax.set_xticks(range(0, length, 3), range(0, length, 3))
        ax.set_yticks(range(0, length, 3), range(0, length, 3))
        ax.set_title(title)
        ax.set_xlabel("place of the key")
        figure.colorbar(image, ax=ax, shrink=0.85)
    axes[0].set_ylabel("place of the query")
    return Picture(
        figure,
        f"Scores of one query and one key at {length} by {length} places. Left, with position vectors added: along "
        f"the diagonal, where the distance is 0, they run from {added.diagonal().min():.2f} to "
        f"{added.diagonal().max():.2f}. Right, with rotated pairs: every diagonal has one color, "
        f"{rotated[0, 0]:.2f} at distance 0 and {rotated[1, 0]:.2f} when the query stands one place after the key.",
    )


def waves(d_model: int, pair: int, t: int) -> Picture:
    """The table with one pair of columns and one place marked, and that pair as two curves."""
    length = 80
    pair = min(pair, d_model // 2 - 1)
    table = columns(np.arange(length), d_model)
    speed = 10000 ** (-2 * pair / d_model)
    figure, axes = new_figure(9.4, 3.8, columns=2, gridspec_kw={"width_ratios": (1, 1.4)})
    heatmap(axes[0], table, cmap=SIGNED, vmin=-1, vmax=1, numbers=False)
    axes[0].set_xticks([2 * pair + 0.5], [f"{2 * pair}, {2 * pair + 1}"])
    axes[0].set_yticks(range(0, length, 20), range(0, length, 20))
    for edge in (2 * pair - 0.5, 2 * pair + 1.5):
        axes[0].axvline(edge, color=BLACK, linewidth=1)
    axes[0].axhline(t, color=BLACK, linewidth=1)
    axes[0].set_xlabel("columns of this pair")
    axes[0].set_ylabel("place t")
    fine = np.linspace(0, length - 1, 800)
    sine, cosine = np.sin(speed * t), np.cos(speed * t)
    for curve, value, color, name in ((np.sin, sine, BLUE, "sine"), (np.cos, cosine, ORANGE, "cosine")):
        axes[1].plot(fine, curve(speed * fine), color=color, label=f"{name} {value:.3f}")
        axes[1].plot([t], [value], "o", color=color)
    axes[1].axvline(t, color="0.7", linewidth=1)
    axes[1].set_ylim(-1.1, 1.45)
    axes[1].set_xlabel("place t")
    axes[1].set_title(f"pair {pair}: once round in {2 * np.pi / speed:,.1f} steps")
    axes[1].legend(loc="upper right", ncols=2, fontsize=9)
    return Picture(
        figure,
        f"The table for D = {d_model} with pair {pair} marked, and its two waves. At place {t} the sine is "
        f"{sine:.3f} and the cosine {cosine:.3f}; one round takes {2 * np.pi / speed:.1f} steps.",
    )


def rotary(query_at: int, key_at: int, pair: int) -> Picture:
    """A query and a key as arrows in one pair, turned to their places, and their score over all pairs by distance."""
    d_model = 16
    speed = 10000 ** (-2 * pair / d_model)
    reach = np.arange(-20, 21)
    by_distance = rotary_score(np.array([0]), reach, d_model)[0]
    score = rotary_score(np.array([query_at]), np.array([key_at]), d_model)[0, 0]
    figure, axes = new_figure(9.4, 4.0, columns=2, gridspec_kw={"width_ratios": (1, 1.4)})
    _circle(axes[0])
    q, k = np.exp(0.3j), np.exp(0.9j)
    for start, place, color, name in ((q, query_at, BLUE, "query"), (k, key_at, ORANGE, "key")):
        axes[0].plot([0, start.real], [0, start.imag], color=color, linestyle=":", linewidth=1)
        _arrow(axes[0], start * np.exp(1j * speed * place), color, name)
    between = np.degrees(np.angle(k / q * np.exp(1j * speed * (key_at - query_at))))
    axes[0].set_title(f"pair {pair}: {abs(between):.0f}° apart")
    axes[1].plot(reach, by_distance, color="0.6", marker=".", linewidth=1)
    axes[1].plot([key_at - query_at], [score], "o", color=BLUE, markersize=10)
    axes[1].set_xlabel("place of the key − place of the query")
    axes[1].set_title(f"score over all 8 pairs: {score:.3f}")
    return Picture(
        figure,
        f"Left, a query at place {query_at} and a key at place {key_at} as arrows of pair {pair}, {abs(between):.0f} "
        f"degrees apart; dotted, where they stood at place 0. Right, the score against the distance: {score:.3f} at "
        f"distance {key_at - query_at}.",
    )
