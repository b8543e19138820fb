"""Explorers of lesson 10: beam search on a small model, and what top-k and top-p remove before a word is sampled."""

import torch

from helpers import translator
from helpers.drawing.charts import MovingBars, bare, tilt
from helpers.drawing.colors import BLUE
from helpers.drawing.diagrams import box
from helpers.drawing.style import Picture, new_figure
from helpers.lessons.decoder_block.figures import SHOWN, SMALL, first_word_logits, words_of
from helpers.widgets.panel import choice, decimal, keeping, panel, powers, whole


def beams():
    figure, ax = new_figure(8.0, 3.9)
    points = {("<bos>",): (0, 2.0), ("<bos>", "le"): (1.3, 3.0), ("<bos>", "la"): (1.3, 0.5)}
    ends = [(*words, word) for words in list(points)[1:] for word in SMALL[words]]
    points |= {words: (2.6, y) for words, y in zip(ends, (4.0, 3.0, 2.0, 1.0, 0.0), strict=True)}
    lines, boxes = {}, {}
    for words, (x, y) in points.items():
        if len(words) > 1:
            x0, y0 = points[words[:-1]]
            (lines[words],) = ax.plot([x0 + 0.3, x - 0.3], [y0, y], lw=1, color="#B0B0B0", zorder=0)
            style = {"fontsize": 9.5, "ha": "center", "va": "center", "bbox": {"fc": "white", "ec": "none", "pad": 1.5}}
            ax.text(x0 + 0.62 * (x - x0), y0 + 0.62 * (y - y0), f"{SMALL[words[:-1]][words[-1]]:g}", **style)
        boxes[words] = box(ax, (x, y), (0.6, 0.48), words[-1], fontsize=11)
        if len(words) == 3:
            p = SMALL[words[:1]][words[1]] * SMALL[words[:2]][words[2]]
            ax.text(x + 0.4, y, f"{p:.2f}", va="center", fontsize=10.5)
    title = ax.set_title("a beam of 5 finds: la reine, 0.36")
    bare(ax, xlim=(-0.4, 3.5), ylim=(-0.45, 4.45))

    def draw(width: int) -> Picture:
        beam: list[tuple[tuple[str, ...], float]] = [(("<bos>",), 1.0)]
        beams = []  # the prefixes that each step keeps
        for _ in range(2):
            longer = [((*words, word), p * q) for words, p in beam for word, q in SMALL[words].items()]
            beam = sorted(longer, key=lambda item: -item[1])[:width]
            beams.append(beam)
        winner, p = beam[0]
        kept = {words for step in beams for words, _ in step} | {("<bos>",)}
        for words, patch in boxes.items():
            on, best = words in kept, words == winner
            patch.set(facecolor="#FFF3D6" if best else "#D5E8F5" if on else "white")
            patch.set(edgecolor=BLUE if on else "#B0B0B0", linewidth=2.2 if best else 1.6 if on else 1)
        for words, line in lines.items():
            line.set(color=BLUE if words in kept else "#B0B0B0", linewidth=2.2 if words in kept else 1)
        found = " ".join(winner[1:])
        title.set_text(f"a beam of {width} finds: {found}, {p:.2f}")
        prefixes = (", ".join(f"{' '.join(words[1:])} {q:.2f}" for words, q in step) for step in beams)
        steps = "; ".join(f"step {i}: {text}" for i, text in enumerate(prefixes, 1))
        alt = f"A tree of two words. A beam of {width} keeps {steps}. It finds {found} with {p:.2f}."
        caption = "Figure 10.8. Blue: what the beam keeps at each step. Yellow: what it returns."
        return Picture(figure, alt, caption)

    panel(keeping(figure, draw), width=whole("beam size", 1, 1, 5))


def next_word():
    usual, order = first_word_logits().sort(descending=True)
    figure, ax = new_figure(8.0, 3.3)
    names = words_of(order[:SHOWN])
    wide = MovingBars(ax, names, color="#D9D9D9", width=0.86)
    narrow = MovingBars(ax, names, width=0.56, ylim=(0, 1), ylabel="probability")
    tilt(ax)
    ax.legend([wide.bars, narrow.bars], ["temperature alone", "after top-k and top-p"], frameon=False)
    title = ax.set_title("194 words can be sampled, effective number 194.00")

    def draw(temperature: float, top_k: int, top_p: float) -> Picture:
        logits = usual / temperature
        cut = translator.FINISHED_PARTS["filter_logits"](logits, top_k=top_k, top_p=None if top_p >= 1 else top_p)
        before, after = torch.softmax(logits, dim=0), torch.softmax(cut, dim=0)  # (V,)
        wide.show(before[:SHOWN].tolist())
        narrow.show(after[:SHOWN].tolist())
        survivors, effect = int((after > 0).sum()), torch.special.entr(after).sum().exp().item()
        title.set_text(f"{survivors} words can be sampled, effective number {effect:.2f}")
        words = ", ".join(f"{n} {x:.2f}" for n, x in zip(words_of(order[:5]), after.tolist(), strict=False))
        alt = f"Temperature {temperature:.2f}, top-k {top_k}, top-p {top_p:.2f}: {survivors} words can be sampled, "
        alt += f"effective number {effect:.2f}. {words}."
        caption = "Figure 10.7. Gray: the softmax at this temperature. Blue: what the filters leave, renormalized."
        return Picture(figure, alt, caption)

    top_k = choice("top-k", [1, 2, 3, 5, 10, 20, 50, 194], 194)
    top_p = decimal("top-p (1: off)", 0.9, 0.05, 1.0, 0.05)
    panel(keeping(figure, draw), temperature=powers("temperature", 1.0, -1, 1, 0.05), top_k=top_k, top_p=top_p)
