"""Explorers of lesson 2: two positions compared pair by pair, and a query and a key rotated by their positions."""

import numpy as np

from helpers.drawing.charts import MovingBars
from helpers.drawing.colors import BLUE, K_COLOR, ORANGE, Q_COLOR, SKY
from helpers.drawing.diagrams import arrow
from helpers.drawing.style import Picture, new_figure
from helpers.lessons.position.figures import example_words, pair_distances, rotary_score, unit_circle
from helpers.widgets.panel import keeping, panel, whole

D_MODEL, LENGTH = 16, 80
SPEEDS = 10000.0 ** (-2 * np.arange(D_MODEL // 2) / D_MODEL)


def sinusoids():
    fine = np.linspace(0, LENGTH - 1, 600)
    figure, (left, right) = new_figure(8.6, 3.4, 1, 2, width_ratios=(3, 2))
    (sine,) = left.plot(fine, fine, color=BLUE, label="sine")
    (cosine,) = left.plot(fine, fine, color=ORANGE, ls="--", label="cosine")
    lines = [left.axvline(0, color="0.45", ls=style) for style in ("-", ":")]
    (sines,) = left.plot([0, 0], [0, 0], "o", color=BLUE)
    (cosines,) = left.plot([0, 0], [0, 0], "o", color=ORANGE)
    left.set(xlim=(-1, LENGTH), ylim=(-1.1, 1.5), yticks=[-1, 0, 1], xlabel="position")
    left.legend(loc="upper right", ncols=2, fontsize=9, frameon=False)
    title = left.set_title("pair 7: one cycle in 19,869.2 steps")
    labels = {"xlabel": "pair", "title": "distance of the two positions"}
    bars = MovingBars(right, range(len(SPEEDS)), ylim=(0, 2.1), **labels)

    def draw(pair: int, t: int, s: int) -> Picture:
        speed, positions = SPEEDS[pair], np.array([t, s])
        sine.set_ydata(np.sin(speed * fine))
        cosine.set_ydata(np.cos(speed * fine))
        sines.set_data(positions, np.sin(speed * positions))
        cosines.set_data(positions, np.cos(speed * positions))
        for line, position in zip(lines, positions, strict=True):
            line.set_xdata([position, position])
        title.set_text(f"pair {pair}: one cycle in {2 * np.pi / speed:,.1f} steps")
        distances = pair_distances(t, s, D_MODEL)
        bars.show(distances, colors=[BLUE if i == pair else SKY for i in range(len(distances))])
        details = ", ".join(f"pair {i} {distance:.3f}" for i, distance in enumerate(distances))
        alt = f"Width {D_MODEL}, pair {pair}, one cycle in {2 * np.pi / speed:.1f} steps. At position {t} its sine is "
        alt += f"{np.sin(speed * t):.3f} and its cosine {np.cos(speed * t):.3f}; at position {s} "
        alt += f"{np.sin(speed * s):.3f} and {np.cos(speed * s):.3f}. Distance of the two positions in each pair: "
        alt += f"{details}."
        return Picture(figure, alt, "Left: one pair of columns. Right: the distance of the two positions in each pair.")

    t, s = whole("position", 10, 0, LENGTH - 1), whole("another one", 11, 0, LENGTH - 1)
    panel(keeping(figure, draw), pair=whole("pair", 0, 0, len(SPEEDS) - 1), t=t, s=s)


def rotary():
    at_zero = np.array([np.exp(1j * np.arctan2(v[1::2], v[0::2])) for v in example_words(D_MODEL)])  # (2, 8) pairs
    offsets = np.arange(-20, 21)
    figure, (left, right) = new_figure(8.6, 3.6, 1, 2, width_ratios=(1, 1.4))
    unit_circle(left, 1.4)
    arrows, names, dotted = [], [], []
    for color, name in ((Q_COLOR, "query"), (K_COLOR, "key")):
        dotted += left.plot([0, 0], [0, 0], color=color, ls=":", lw=1)
        arrows.append(arrow(left, (0, 0), (1, 0), color))
        names.append(left.text(1, 0, name, color=color, ha="center", va="center"))
    left_title = left.set_title("pair 0: key 180° ahead")
    scores = rotary_score(np.array([0]), offsets, D_MODEL)[0]
    right.plot(offsets, scores, color="0.6", marker=".", lw=1)
    right.axvline(0, color="0.8", lw=1)
    (dot,) = right.plot([0], [0], "o", color=BLUE, ms=10)
    right.set(xlabel="offset: position of the key − position of the query")
    right_title = right.set_title("score over all 8 pairs: −0.000")

    def draw(query_at: int, key_at: int, pair: int) -> Picture:
        starts = at_zero[:, pair]
        for line, start in zip(dotted, starts, strict=True):
            line.set_data([0, start.real], [0, start.imag])
        rotated = starts * np.exp(1j * SPEEDS[pair] * np.array([query_at, key_at]))
        angle = np.degrees(np.angle(rotated[1] / rotated[0]))
        # If the arrows are close together, their names move apart along the circle.
        shift = np.radians(max(0, 40 - abs(angle)) / 2) * (1 if angle >= 0 else -1)
        for arrow_artist, name, tip, turn in zip(arrows, names, rotated, (-shift, shift), strict=True):
            arrow_artist.xy = (tip.real, tip.imag)
            point = 1.22 * tip * np.exp(1j * turn)
            name.set_position((point.real, point.imag))
        offset = key_at - query_at
        score = scores[offset - offsets[0]]
        left_title.set_text(f"pair {pair}: key {abs(angle):.0f}° {'ahead' if angle >= 0 else 'behind'}")
        dot.set_data([offset], [score])
        right_title.set_text(f"score over all 8 pairs: {score:.3f}")
        alt = f"Left, a query at position {query_at} and a key at position {key_at} as arrows of pair {pair}, "
        alt += f"{abs(angle):.0f} degrees apart; dotted, the arrows at position 0. Right, the score against the "
        alt += f"offset: {score:.3f} at offset {offset}, {scores[-offset - offsets[0]]:.3f} at offset {-offset}."
        caption = "Left: one pair, rotated by its position. Right: the score for each offset from query to key."
        return Picture(figure, alt, caption)

    query_at, key_at = whole("query at", 5, 0, 20), whole("key at", 6, 0, 20)
    panel(keeping(figure, draw), query_at=query_at, key_at=key_at, pair=whole("pair", 0, 0, 7))
