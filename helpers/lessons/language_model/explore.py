"""Explorers of lesson 12: the next token's probabilities in the source and in the model, and text by temperature."""

import html

import torch

from helpers.drawing.charts import MovingBars
from helpers.drawing.style import Picture, new_figure
from helpers.lessons.language_model.watch import is_sentence, sampled
from helpers.widgets.panel import choice, keeping, panel, whole

TEMPERATURES = (0.3, 0.5, 0.8, 1.0, 1.3, 1.6, 2.0)


def next_token(model):
    from helpers.corpus.source import Source

    source, text = Source(), ".Dqxpd.{[]()}.|rwtyz|rwtyz."
    symbols, ids = source.symbols, source.encode(text)
    with torch.no_grad():
        logits = model(ids[None].to(next(model.parameters()).device))[0].float().cpu()
    predicted = torch.softmax(logits, dim=-1)  # (T, V)
    true = source.next_probabilities(ids)  # (T, V)
    figure, ax = new_figure(8.4, 3.3)
    wide = MovingBars(ax, symbols, color="#D9D9D9", width=0.86)
    narrow = MovingBars(ax, symbols, width=0.5, ylim=(0, 1.02), ylabel="probability")
    style = {"frameon": False, "ncols": 2, "loc": "outside upper right"}
    figure.legend([wide.bars, narrow.bars], ["the source", "the model"], **style)
    title = ax.set_title(f"after {text}")

    def draw(position: int) -> Picture:
        wide.show(true[position].tolist())
        narrow.show(predicted[position].tolist())
        read = text[: position + 1]
        title.set_text(f"after {read}")
        top = true[position].topk(3)
        rows = ((symbols[i], true[position, i], predicted[position, i]) for i in top.indices.tolist())
        described = ", ".join(f"{symbol} {float(p):.2f} and {float(q):.2f}" for symbol, p, q in rows)
        alt = f"What comes after {read}: the source's probability and the model's. {described}."
        caption = "Figure 12.4. Probabilities of the next token. Gray: the source. Blue: the model."
        return Picture(figure, alt, caption)

    panel(keeping(figure, draw), position=whole("position", 21, 0, len(text) - 2))


def written(model, symbols: str, length: int = 150) -> dict[float, str]:
    """One text from the model per temperature, generated in one batch."""
    device = next(model.parameters()).device
    ids = torch.full((len(TEMPERATURES), 1), symbols.index("."), device=device)
    temperatures = torch.tensor(TEMPERATURES, device=device)[:, None]  # (B, 1)
    ids = sampled(model, ids, length, torch.Generator(device).manual_seed(5), temperatures)  # (B, T)
    rows = ["".join(symbols[i] for i in row[1:]) for row in ids.tolist()]
    return dict(zip(TEMPERATURES, rows, strict=True))


def writing(model, symbols: str):
    lines = []
    for temperature, text in written(model, symbols).items():
        sentences = text.split(".")[:-1]  # the last one is unfinished
        right = sum(map(is_sentence, sentences))
        head = f"temperature {temperature:.1f}, {right} of {len(sentences)} sentences follow the rules:"
        lines.append(f"{head}<br>{html.escape(text)}")

    def draw(temperature):
        # All texts are in one grid cell, so that the longest one determines the height on pages of any width.
        shown = TEMPERATURES.index(temperature)
        style = ("grid-area:1/1;visibility:hidden", "grid-area:1/1")
        stack = "".join(f'<div style="{style[i == shown]}">{line}</div>' for i, line in enumerate(lines))
        return f'<div style="display:grid;font:15px/1.6 monospace;overflow-wrap:anywhere">{stack}</div>'

    panel(draw, temperature=choice("temperature", [(f"{t:.1f}", t) for t in TEMPERATURES], 1.0))
