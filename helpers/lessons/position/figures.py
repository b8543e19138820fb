"""Figures of lesson 2. They compute everything themselves, without the learner's functions."""

import numpy as np
from matplotlib.patches import Circle

from helpers.drawing.charts import heatmap, weight_map
from helpers.drawing.colors import BLUE, GREEN, K_COLOR, ORANGE, Q_COLOR, SIGNED, WEIGHTS
from helpers.drawing.diagrams import arrow
from helpers.drawing.style import Picture, new_figure
from helpers.translator.finished_parts import sinusoidal_positions


def complex_pairs(positions, d_model: int) -> np.ndarray:
    """The pairs of the given positions as complex numbers cosine + i sine, (T, d_model / 2)."""
    speeds = 10000.0 ** (-2 * np.arange(d_model // 2) / d_model)
    return np.exp(1j * np.outer(positions, speeds))


def pair_distances(t: int, s: int, d_model: int) -> np.ndarray:
    """The distance of two positions in each pair, (d_model / 2,), from 0 to 2."""
    first, second = complex_pairs((t, s), d_model)
    return abs(first - second)


def two_orders(tokens, x, perm) -> Picture:
    weights = (x @ x.T).softmax(-1)
    shuffled = [tokens[i] for i in perm]
    figure, axes = new_figure(8.2, 3.2, columns=2)
    for ax, names, table in zip(axes, (tokens, shuffled), (weights, weights[perm][:, perm]), strict=True):
        weight_map(ax, table, names, title=" ".join(names), xlabel="key: the word that is attended to")
    axes[0].set_ylabel("query")
    pair = f"{tokens[0]} gives {tokens[-1]} the weight {weights[0, -1]:.2f}"
    alt = f"Two heat maps of attention weights, for {' '.join(tokens)} and for {' '.join(shuffled)}. Rows and columns "
    alt += f"are permuted together, so in both {pair} and herself {weights[0, 0]:.2f}."
    caption = "Figure 2.1. If we permute the words, each attention weight stays with its pair of words."
    return Picture(figure, alt, caption)


def counting() -> Picture:
    positions = np.arange(16)
    bits = (positions[:, None] >> np.arange(4)) & 1
    sines = complex_pairs(positions, 16).imag[:, :4]
    figure, axes = new_figure(8.2, 5.0, columns=2)
    heatmap(axes[0], bits, columns=["1", "2", "4", "8"], cmap="Greys", vmin=0, vmax=1.6, digits=0)
    heatmap(axes[1], sines, columns=["6", "20", "63", "199"], cmap=SIGNED, vmin=-1, vmax=1)
    axes[0].set(title="binary digits", xlabel="steps between two flips", ylabel="position")
    axes[1].set(title="sines of the first four pairs, D = 16", xlabel="steps in one cycle")
    alt = "Left, the binary digits of the positions 0 to 15: the first column flips at every step, the others after 2, "
    alt += "4 and 8. Right, four sines that repeat after 6, 20, 63 and 199 steps: the same fast-to-slow pattern "
    alt += "without jumps."
    return Picture(figure, alt, "Figure 2.2. Two ways to count: binary digits and sinusoids.")


def sinusoid_map(length: int = 60, d_model: int = 32) -> Picture:
    figure, ax = new_figure(7.6, 4.4)
    image = heatmap(ax, sinusoidal_positions(length, d_model), cmap=SIGNED, vmin=-1, vmax=1, numbers=False)
    ax.set_xticks(range(0, d_model, 4), range(0, d_model, 4))
    ax.set(xlabel="column (even: sine, odd: cosine)", ylabel="position t", title=f"sinusoidal positions, D = {d_model}")
    figure.colorbar(image, ax=ax, shrink=0.8)
    slowest = 10000 ** (-(d_model - 2) / d_model)
    alt = f"Heat map of {length} positions by {d_model} columns, values from -1 to 1. The columns on the left change "
    alt += "sign every three positions; toward the right they change ever more slowly, and the last pair stays near 0 "
    alt += f"and 1: its angle at position {length - 1} is only {(length - 1) * slowest:.4f}."
    caption = f"Figure 2.3. The sinusoids of {length} positions, width {d_model}: fast pairs on the left, slow ones on "
    caption += "the right."
    return Picture(figure, alt, caption)


def position_dots(length: int = 48, d_model: int = 32) -> Picture:
    table = sinusoidal_positions(length, d_model).numpy()
    dots = table @ table.T
    figure, axes = new_figure(8.6, 3.6, columns=2)
    image = heatmap(axes[0], dots, cmap=WEIGHTS, vmin=dots.min(), vmax=dots.max(), numbers=False)
    axes[0].set(xlabel="position", ylabel="position", title="dot product of two rows")
    figure.colorbar(image, ax=axes[0], shrink=0.85)
    for t, color, style in ((5, BLUE, "-"), (24, ORANGE, "--"), (40, GREEN, "-.")):
        axes[0].axhline(t, color=color, linestyle=style)
        axes[1].plot(np.arange(length), dots[t], color=color, linestyle=style, label=f"position {t}")
    axes[1].set(xlabel="position", ylim=(0, 1.35 * d_model / 2), title="three rows of it: one curve, shifted")
    axes[1].legend(loc="upper center", ncols=3, fontsize=9, frameon=False, handlelength=1.6)
    alt = f"Left, a heat map of the dot products of {length} positions: stripes along the diagonal, {dots[0, 0]:.0f} "
    alt += "on it, with the rows of positions 5, 24 and 40 marked. Right, these three rows as curves: the same hill "
    alt += f"with its top at 5, at 24 and at 40; {dots[5, 5]:.1f} at the top, {dots[5, 6]:.2f} one position away, "
    alt += f"{dots[5, 15]:.2f} ten positions away."
    return Picture(figure, alt, "Figure 2.7. The dot product of two position vectors depends only on their distance.")


def words_and_positions(words, x, positions) -> Picture:
    """Word vectors (T, D), position vectors (T, D) and their sum, as three heat maps with the same scale."""
    x, positions = x.numpy(), positions.numpy()
    figure, axes = new_figure(8.6, 4.6, rows=3, sharex=True)
    parts = ((x, "words"), (positions, "positions"), (x + positions, "words + positions"))
    names = words, [f"position {t}" for t in range(len(words))], [f"{word} at {t}" for t, word in enumerate(words)]
    for ax, (part, title), rows in zip(axes, parts, names, strict=True):
        image = heatmap(ax, part, rows, cmap=SIGNED, vmin=-1.3, vmax=1.3, numbers=False, every=8, title=title)
    axes[2].set_xlabel("column")
    figure.colorbar(image, ax=axes, shrink=0.7)
    word_norms, position_norms = (np.linalg.norm(part, axis=1) for part in (x, positions))
    alt = f"Three heat maps of {len(words)} rows ({', '.join(words)}) and {x.shape[1]} columns, in one scale. The "
    alt += f"words are pale: their rows have lengths from {word_norms.min():.2f} to {word_norms.max():.2f}. The "
    alt += "positions are strong sinusoids on the left and stripes of 0 and 1 on the right, every row "
    alt += f"{position_norms.mean():.2f} long. The sum looks like the positions, with a faint grain."
    return Picture(figure, alt, "Figure 2.4. What enters the translator: word plus position, entry by entry.")


def position_per_token() -> Picture:
    figure, axes = new_figure(8.2, 2.5, columns=2)
    by_sentence, by_token = np.repeat([[0], [1]], 3, axis=1), np.tile(np.arange(3), (2, 1))
    rows, names = ["sentence 0", "sentence 1"], ["token 0", "token 1", "token 2"]
    for ax, positions, title in zip(axes, (by_sentence, by_token), ("the published layer", "wanted"), strict=True):
        heatmap(ax, positions, rows, names, vmin=0, vmax=4, digits=0, title=f"position that is added: {title}")
    alt = "Two tables of two sentences with three tokens each. The published layer adds position 0 to all three tokens "
    alt += "of sentence 0 and position 1 to all three tokens of sentence 1. Wanted are the positions 0, 1, 2 in both "
    alt += "sentences."
    caption = "Figure 2.5. The published layer numbers the sentences of a batch, not the words of a sentence."
    return Picture(figure, alt, caption)


def unit_circle(ax, edge: float = 1.35):
    """Draw the unit circle on axes from -edge to edge."""
    ax.add_patch(Circle((0, 0), 1, fill=False, color="0.75"))
    ax.set(xlim=(-edge, edge), ylim=(-edge, edge), aspect="equal", xticks=[-1, 0, 1], yticks=[-1, 0, 1])


def _named_arrow(ax, point, color, label):
    """Draw an arrow from the center to a point of the circle, a complex number, and its name farther out."""
    arrow(ax, (0, 0), (point.real, point.imag), color)
    ax.text(1.17 * point.real, 1.17 * point.imag, label, color=color, ha="center", va="center")


def rotation_by_offset(offset: int = 3) -> Picture:
    """Two pairs at a few positions, where `offset` steps rotate each pair by a fixed angle."""
    figure, axes = new_figure(8.0, 4.1, columns=2)
    speeds = (1.0, 0.1)
    starts = ((0, 2), (0, 12))
    for pair, (ax, speed) in enumerate(zip(axes, speeds, strict=True)):
        unit_circle(ax)
        for start, color in zip(starts[pair], (BLUE, ORANGE), strict=True):
            for t in (start, start + offset):
                _named_arrow(ax, np.exp(1j * speed * t), color, f"t={t}")
            arc = 0.62 + 0.16 * (start > 0)
            angles = np.linspace(speed * start, speed * (start + offset), 40)
            ax.plot(arc * np.cos(angles), arc * np.sin(angles), color=color, linestyle=":")
        ax.set(xlabel="cosine column", ylabel="sine column")
        ax.set_title(f"pair {pair}: {offset} steps rotate it by {speed * offset:.1f}")
    alt = "Two circles with arrows, pairs 0 and 1 of D = 8. In pair 0 the arrows of positions 0 and 2 each rotate by "
    alt += f"{offset:.1f} radians if the position grows by {offset}; in pair 1 those of positions 0 and 12 rotate by "
    alt += f"{speeds[1] * offset:.1f}. The rotation does not depend on the position."
    return Picture(figure, alt, f"Figure 2.8. A step of {offset} rotates a pair by the same angle at every position.")


def rotated_together() -> Picture:
    figure, axes = new_figure(8.6, 3.3, columns=3)
    details = []
    for ax, (m, n) in zip(axes, ((0, 1), (5, 6), (5, 8)), strict=True):
        unit_circle(ax)
        _named_arrow(ax, np.exp(1j * m), Q_COLOR, "q")
        _named_arrow(ax, np.exp(1j * n), K_COLOR, "k")
        angles = np.linspace(m, n, 40)
        ax.plot(0.45 * np.cos(angles), 0.45 * np.sin(angles), color="gray", linestyle=":")
        ax.set_title(f"q at position {m}, k at position {n}\nangle {n - m}, score {np.cos(n - m):.2f}")
        details.append(f"q at position {m} and k at position {n}: angle {n - m}, score {np.cos(n - m):.2f}")
    alt = f"Three circles with a query and a key as arrows of length 1. {'; '.join(details)}."
    caption = "Figure 2.6. If query and key move together, their angle and score stay. If the key moves alone, both "
    caption += "change."
    return Picture(figure, alt, caption)


def example_words(d_model: int) -> tuple[np.ndarray, np.ndarray]:
    """A fixed query and a fixed key."""
    i = np.arange(d_model)
    return np.cos(1.7 * i + 0.4), np.cos(1.7 * i + 0.9)


def rotary_score(m, n, d_model: int = 16) -> np.ndarray:
    """Dot products of the fixed query rotated to positions m with the fixed key rotated to positions n, (M, N)."""
    q, k = (v[0::2] + 1j * v[1::2] for v in example_words(d_model))
    return ((q * complex_pairs(m, d_model)) @ (k * complex_pairs(n, d_model)).conj().T).real


def rotary_scores(length: int = 16, d_model: int = 16) -> Picture:
    positions = np.arange(length)
    q, k = example_words(d_model)
    table = sinusoidal_positions(length, d_model).numpy()
    added = (q + table) @ (k + table).T
    rotated = rotary_score(positions, positions, d_model)
    figure, axes = new_figure(8.6, 3.8, columns=2)
    for ax, scores, title in zip(axes, (added, rotated), ("position vectors added", "RoPE"), strict=True):
        look = {"cmap": "Greys", "vmin": scores.min(), "vmax": scores.max(), "numbers": False, "every": 3}
        image = heatmap(ax, scores, title=title, xlabel="position of the key", **look)
        figure.colorbar(image, ax=ax, shrink=0.85)
    axes[0].set_ylabel("position of the query")
    alt = f"Scores of one query and one key at {length} by {length} positions. Left, with position vectors added: "
    alt += f"along the diagonal, where the distance is 0, they run from {added.diagonal().min():.2f} to "
    alt += f"{added.diagonal().max():.2f}. Right, with RoPE: every diagonal has one color, {rotated[0, 0]:.2f} at "
    alt += f"offset 0, {rotated[1, 0]:.2f} when the query is one position after the key, and {rotated[0, 1]:.2f} when "
    alt += "it is one position before."
    caption = "Figure 2.9. The same query and key at all positions, with position vectors added and with RoPE."
    return Picture(figure, alt, caption)
