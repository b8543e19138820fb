"""Explorers of lesson 13: any head of the network on a sentence, and a search among video titles."""

import textwrap

from helpers import pretrained
from helpers.drawing.charts import MovingBars, weight_map
from helpers.drawing.colors import BLUE, ORANGE
from helpers.drawing.style import SMALLEST, Picture, new_figure
from helpers.lessons.real_model import network as real_network
from helpers.lessons.real_model import stand_ins
from helpers.lessons.real_model.figures import SENTENCES, TIRED, TITLES, WIDE, MissingWeights, needs_weights
from helpers.lessons.real_model.network import among_words
from helpers.widgets.panel import choice, keeping, panel, typed, whole

CHOICES = (*SENTENCES, TIRED, WIDE)
LONGEST = 14  # words of a typed sentence; more rows would be illegible


@needs_weights
def draw_head(sentence: str, layer: int, head: int, ends: bool = False) -> Picture:
    """The weights of one head on a sentence. ends: include [CLS] and [SEP]."""
    read = real_network.reading(sentence)
    weights, tokens = read.attention[layer, 0, head], read.tokens[0]
    if not ends:
        weights, tokens = among_words(weights), tokens[1:-1]
    figure, ax = new_figure(7.4, 4.4)
    figure.set_layout_engine("none")  # the same margins for all sentences
    ax.set_position((0.17, 0.25, 0.81, 0.67))
    weight_map(ax, weights, tokens, numbers=len(tokens) <= 8, tilted=len(tokens) > 8)
    ax.tick_params(labelsize=SMALLEST)
    ax.set(xlabel="key", ylabel="query", title=f"layer {layer}, head {head}")
    top = zip(tokens, weights.argmax(-1).tolist(), weights.amax(-1).tolist(), strict=True)
    best = [f"{token} attends to {tokens[key]} {weight:.2f}" for token, key, weight in top]
    alt = f"Layer {layer}, head {head} on “{sentence}”: {', '.join(best)}."
    return Picture(figure, alt, caption="One head on one sentence.")


def heads():
    """One head on a sentence of the lesson or on a typed one; the control that changed last counts."""
    chosen, typed_before, shown = CHOICES[0], "", CHOICES[0]

    def draw(sentence: str, own: str, layer: int, head: int, ends: bool) -> Picture:
        nonlocal chosen, typed_before, shown
        own = " ".join(own.split()[:LONGEST])
        shown = (own or sentence) if own != typed_before else sentence if sentence != chosen else shown
        chosen, typed_before = sentence, own
        return draw_head(shown, layer, head, ends)

    # The slider shows numbers, because a whole sentence would run into the next control; the rows show the words.
    sentences = [(str(number), sentence) for number, sentence in enumerate(CHOICES, 1)]
    panel(
        draw,
        sentence=choice("sentence", sentences),
        own=typed("a sentence"),
        layer=whole("layer", 1, 0, pretrained.LAYERS - 1),
        head=whole("head", 8, 0, pretrained.HEADS - 1),
        ends=choice("[CLS] and [SEP]", [("without", False), ("with", True)]),
    )


QUESTIONS = (
    "my dog chews my fingers",
    "baking a loaf",
    "why is there so much scattered light above us",
    "how do immune shots protect me",
    "what happened to ancient caesar",
    "how neural networks read sentences",
    "a kite in the wind",
    "jane visits africa",
)


def titles():
    options = [(str(number), question) for number, question in enumerate(QUESTIONS, 1)]
    controls = {"question": choice("question", options), "own": typed("a question")}
    if not pretrained.is_real():
        return panel(lambda question, own: MissingWeights()._repr_html_(), **controls)
    network, typed_before = real_network.network(), ""
    keys = network.vectors(list(TITLES))
    figure, ax = new_figure(8.0, 4.6)
    bars = MovingBars(ax, TITLES, across=True, height=0.8)
    ax.tick_params(axis="y", labelsize=SMALLEST)
    ax.axvline(0, color="#8C8C8C", lw=0.8)
    ax.set(xlim=(-0.2, 0.8), xlabel="cosine with the question", title=max(QUESTIONS, key=len))

    def draw(question: str, own: str = "") -> Picture:
        """The cosines of the typed question if it is new, else of the slider's."""
        nonlocal typed_before
        own = " ".join(own.split())
        typed_before, question = own, own if own and own != typed_before else question
        found = stand_ins.search(network.vectors([question])[0], keys, TITLES, len(TITLES))
        scores = dict(found)
        bars.show([scores[title] for title in TITLES], colors=[ORANGE if t == found[0][0] else BLUE for t in TITLES])
        ax.set_title(textwrap.shorten(f"“{question}”", 70, placeholder=" …”"))
        best = ", ".join(f"{title} {score:.2f}" for title, score in found[:3])
        alt = f"Cosines of sixteen video titles with “{question}”. The best: {best}."
        return Picture(figure, alt, "Orange: the best title.")

    return panel(keeping(figure, draw), **controls)
