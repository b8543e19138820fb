"""Explorers of lesson 8: the cost of heads, and what the heads of the translator attend to."""

from helpers.drawing.charts import bare, name_ticks, named, weight_map
from helpers.drawing.colors import BLUE, ORANGE, PINK
from helpers.drawing.style import Picture, new_figure
from helpers.lessons.multi_head.figures import SENTENCES, budget_numbers, encoder_weights
from helpers.widgets.panel import choice, keeping, panel, whole


def budget():
    D, counts = 512, [2**i for i in range(10)]
    lines = (  # the exponent with which a cost depends on the number of heads, color, name and its position
        (0, BLUE, "parameters,\nproducts for scores", (30, 1.4)),
        (1, ORANGE, "attention weights", (2, 100)),
        (-1, PINK, "width of a head", (2, 0.012)),
    )
    figure, (ax, side) = new_figure(8.6, 3.0, 1, 2, width_ratios=(3, 2))
    dots = []
    for exponent, color, name, position in lines:
        ax.plot(counts, [float(heads) ** exponent for heads in counts], color=color, lw=2)
        dots += ax.plot([1], [1], "o", ms=8, color=color)
        ax.text(*position, name, color=color)
    ax.set(xscale="log", yscale="log", ylim=(1 / 900, 900), xlabel="heads", ylabel="relative to one head")
    name_ticks(ax, x=counts[::3], y=(0.01, 1, 100))
    bare(side, xlim=(0, 1), ylim=(-0.6, 5))
    title = side.set_title("512 heads, 4,096 tokens, width 512")
    labels = []
    for i, name in enumerate(budget_numbers(D, 8, 512)):
        side.text(0, 3.6 - 1.1 * i, name)
        labels.append(side.text(1, 3.6 - 1.1 * i, "34,359,738,368", ha="right"))

    def draw(heads: int, tokens: int) -> Picture:
        numbers = budget_numbers(D, heads, tokens)
        for dot, (exponent, *_) in zip(dots, lines, strict=True):
            dot.set_data([heads], [float(heads) ** exponent])
        for label, number in zip(labels, numbers.values(), strict=True):
            label.set_text(f"{number:,}")
        title.set_text(f"{heads} head{'s' if heads > 1 else ''}, {tokens:,} tokens, width {D}")
        details = named(numbers, numbers.values(), ",")
        alt = f"With {heads} heads and {tokens} tokens: {details}. With more heads the first two stay the same, the "
        alt += "attention weights grow with the heads, and a head gets narrower."
        caption = "Figure 8.5. More heads need the same parameters and products but more attention weights, and each "
        caption += "is narrower."
        return Picture(figure, alt, caption)

    tokens = choice("tokens", [2**i for i in range(4, 14)], 512)
    panel(keeping(figure, draw), heads=choice("heads", counts, 8), tokens=tokens)


def heads():
    figure, ax = new_figure(5.4, 4.4)

    def draw(sentence: str, block: int, head: int, positions: bool) -> Picture:
        words = sentence.split()
        weights = encoder_weights(sentence, positions)[block, head]  # (T, T)
        title = f"block {block}, head {head}, {'with positions' if positions else 'positions set to zero'}"
        ax.clear()
        weight_map(ax, weights, words, tilted=True, title=title)
        best = zip(words, weights.argmax(dim=-1).tolist(), strict=True)
        top = "; ".join(f"{word} attends most to {words[key]}" for word, key in best)
        return Picture(figure, f"Attention of {title}: {top}.", "Attention weights of one head.")

    # The rows show the words, because a full sentence next to its slider would run into the next slider.
    sentences = [(str(number), sentence) for number, sentence in enumerate(SENTENCES, 1)]
    sentence, positions = choice("sentence", sentences), choice("positions", [("with", True), ("without", False)])
    head = {"block": whole("block", 1, 0, 1), "head": whole("head", 0, 0, 3)}
    panel(keeping(figure, draw), sentence=sentence, **head, positions=positions)
