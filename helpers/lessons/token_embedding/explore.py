"""Explorers of lesson 1."""

import ipywidgets as widgets

from helpers.drawing.colors import BLACK, BLUE, RED
from helpers.drawing.style import Picture, new_figure
from helpers.lessons.token_embedding import figures as figures
from helpers.widgets.panel import decimal, keeping, panel, whole

SENTENCES = (  # suggestions, which are the only choices on a web page
    "jane visits africa in september",
    "jane visits jane",
    "she buys a red apple",
    "jane eats pizza in september",
)


def similarity():
    angle = whole("angle of a (°)", 60, 0, 180, continuous_update=False)
    length = decimal("length of a", 4.0, 0.5, 6.0, 0.5, continuous_update=False)
    panel(figures.projection_at_angle, angle=angle, length=length)


def training(history, words):
    figure, (plane, curves) = new_figure(8.6, 3.8, 1, 2)
    points = figures.project_to_plane(history)
    cosines = [figures.group_cosines(centers, words) for centers in history.centers]
    within, between = zip(*cosines, strict=True)
    curves.plot(history.steps, within, color=BLACK, label="two words of one group")
    curves.plot(history.steps, between, color=RED, label="two words of different groups")
    curves.set(xlabel="training pairs", ylabel="mean cosine", ylim=(-0.15, 1.05))
    curves.legend(frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.7))
    marker = curves.axvline(0, color=BLUE, lw=6, alpha=0.25)

    def draw(snapshot: int) -> Picture:
        (within, between), step = cosines[snapshot], history.steps[snapshot]
        plane.clear()
        figures.scatter(plane, points[snapshot], words)
        plane.set_title(f"after {step} pairs")
        marker.set_xdata([step, step])
        curves.set_title(f"cosine {within:.2f} within groups, {between:.2f} between")
        summary = f"mean cosine {within:.2f} within groups and {between:.2f} between groups"
        caption = "Left: the words after this many pairs. Right: mean cosines, with this moment marked."
        return Picture(figure, f"Map of the words after {step} pairs: {summary}.", caption)

    snapshot = whole("snapshot", 0, 0, len(history.steps) - 1, continuous_update=False)
    panel(keeping(figure, draw), snapshot=snapshot)


def sentence():
    sentence = widgets.Combobox(value=SENTENCES[0], options=SENTENCES, description="sentence", continuous_update=False)
    word = whole("word", 2, 1, figures.MAX_WORDS, continuous_update=False)
    panel(figures.sentence_to_rows, sentence=sentence, word=word)
