"""Explorers of lesson 11: the learning rate, label smoothing, and the cross-attention of a trained model."""

import math
import textwrap

import torch

from helpers import corpus, translator
from helpers.drawing.charts import MovingBars, bare
from helpers.drawing.colors import BLUE, RED, RED_INK
from helpers.drawing.style import Picture, new_figure
from helpers.lessons.translation.figures import SENTENCE, SPAN, STEPS, best_smoothed, cross_weights, two_rows, widths
from helpers.translator.finished_parts import noam_lr
from helpers.translator.stage import unknown_words
from helpers.widgets.panel import choice, decimal, keeping, panel, typed, whole


def rates():
    figure, ax = new_figure(8.0, 3.3)
    steps = range(1, STEPS + 1)
    for warmup in (20, 60, 200, 400):
        ax.plot(steps, [noam_lr(step, 64, warmup) for step in steps], color="#D0D0D0", lw=1)
    (line,) = ax.plot([], [], color=BLUE, lw=2.4)
    (top,) = ax.plot([], [], "o", color=BLUE)
    ax.set(xlim=(0, STEPS), ylim=(0, 0.04), xlabel="step", ylabel="learning rate")
    title = ax.set_title("width 512, warm-up 4000: peak 0.02795 at step 4000")

    def draw(warmup: int, d_model: int) -> Picture:
        rates = [noam_lr(step, d_model, warmup) for step in steps]
        line.set_data(steps, rates)
        peak = noam_lr(warmup, d_model, warmup)
        top.set_data([warmup], [peak])
        words = f"width {d_model}, warm-up {warmup}: peak {peak:.5f} at step {warmup}"
        title.set_text(words)
        alt = f"Learning rate over {STEPS} steps. {words}; {rates[0]:.2g} at step 1, {rates[-1]:.2g} at step {STEPS}."
        return Picture(figure, alt, "Figure 11.4. The paper's learning rate. Gray: width 64, warm-up 20 to 400.")

    warmup = choice("warm-up", [20, 40, 60, 100, 200, 400, 800], 60)
    panel(keeping(figure, draw), warmup=warmup, d_model=choice("width", [32, 64, 128, 256, 512], 64))


def smoothed_target():
    figure, (ax, side) = new_figure(8.4, 3.2, 1, 2, width_ratios=(3, 2))
    words = "visite", "visitent", "voit", "jane", "<eos>", "..."
    bars = MovingBars(ax, words, "0.0000", ylim=(0, 1.05), ylabel="target")
    grid = [i / 100 for i in range(1, 51)]
    side.plot(grid, [best_smoothed(x, 194)[2] for x in grid], color="#A0A0A0")
    (dot,) = side.plot([], [], "o", color=RED)
    side.set(xlim=(0, 0.52), ylim=(0, 4), xlabel="smoothing", title="smallest possible loss, nats")
    title = ax.set_title("true word 0.0000, each other word 0.00000")

    def draw(smoothing: float) -> Picture:
        p, margin, loss = best_smoothed(smoothing, 194)
        bars.show([p, *[smoothing / 194] * 5], ".4f")
        dot.set_data([smoothing], [loss])
        title.set_text(f"true word {p:.4f}, each other word {smoothing / 194:.5f}")
        best = f"a margin of {margin:.1f} in logits" if margin < math.inf else "an infinite margin in logits"
        alt = f"Smoothing {smoothing:.2f} over 194 words: the true word's target is {p:.4f}, each other word's "
        alt += f"{smoothing / 194:.5f}. The best model has {best} and a loss of {loss:.2f} nats."
        return Picture(figure, alt, "Figure 11.5. The smoothed target of one position, and the smallest loss.")

    panel(keeping(figure, draw), smoothing=decimal("smoothing", 0.1, 0.0, 0.5, 0.01))


def _fits(words) -> bool:
    return sum(widths(words)) + 0.15 * len(words) < SPAN


def cross_attention(model):
    """The cross-attention of `model` on a sentence: a slider chooses an unseen sentence, and a box takes a typed one.

    The control that changed last counts. The true alignment is shown where there is one.
    """
    fitting = [pair for pair in corpus.unseen_pairs()[:80] if all(_fits(text.split()) for text in pair[:2])]
    pairs = [corpus.translate(SENTENCE), *sorted(fitting, key=lambda pair: -pair.reorderings)[:7]]
    figure, ax = new_figure(8.6, 3.0)
    figure.set_layout_engine("none")
    ax.set_position((0.01, 0.02, 0.98, 0.85))
    typed_before = ""

    def draw(sentence: int, own: str = "") -> Picture:
        nonlocal typed_before
        own, last = " ".join(own.lower().replace(".", " ").split()), typed_before
        typed_before = own
        if own and own != last:
            alt = draw_typed(own)
        else:
            pair = pairs[sentence]
            hits, described = draw_rows(pair.english, pair.french, pair.alignment)
            verdict = f"{hits} of {len(pair.alignment)}"
            ax.set_title(f"{verdict} French words attend to the word that they come from", fontsize=11)
            alt = f"“{pair.english}”: {described}. {verdict} attend to the word that they come from."
        caption = "Figure 11.7. Cross-attention, mean over heads. Blue: to the true source word. Orange: to another "
        return Picture(figure, alt, f"{caption}word.")

    def draw_typed(english: str) -> str:
        """Draw the translation of a typed sentence, and compare it with the grammar's; returns the alt text."""
        if problem := unknown_words(english):
            return draw_message(problem)
        french = translator.translate(model, english)
        if not french or not all(_fits(text.split()) for text in (english, french)):
            return draw_message(f"Your translator writes: {french or '(nothing)'}")
        try:
            pair = corpus.translate(english)
        except ValueError:
            verdict, alignment = "the grammar has no such sentence, so there is no reference", None
        else:
            right = french == pair.french
            verdict = "exactly right" if right else f"the reference is: {pair.french}"
            alignment = pair.alignment if right else None
        _, described = draw_rows(english, french, alignment)
        ax.set_title(verdict, fontsize=11)
        return f"Your translator turns “{english}” into “{french}”: {verdict}. {described}."

    def draw_rows(english: str, french: str, alignment) -> tuple[int, str]:
        """Draw both sentences and the weights between them.

        alignment: the true source index of each French word, or None without a reference. Returns how many French words
        attend most to their true source word, and the source word of each in words.
        """
        source, target = english.split(), french.split()
        tgt_in = torch.tensor([[translator.BOS, *(translator.french[word] for word in target)]])
        weights = cross_weights(model, translator.source_batch([english]), tgt_in)[0].mean(dim=0)[:-1]  # (T_t, T_s)
        best = weights.argmax(dim=-1).tolist()
        true = list(best if alignment is None else alignment)  # without a reference no word is marked as wrong
        ax.clear()
        top, bottom = two_rows(ax, source, target)
        for t, s in (weights > 0.03).nonzero().tolist():
            weight, color = float(weights[t, s]), BLUE if s == true[t] or alignment is None else RED
            style = {"lw": 0.6 + 4.5 * weight, "alpha": 0.35 + 0.65 * weight, "solid_capstyle": "butt"}
            ax.plot([top[s], bottom[t]], [0.8, -0.8], color=color, zorder=0, **style)
        for box, right in zip(ax.patches[len(source) :], map(int.__eq__, best, true), strict=True):
            if not right:
                box.set(facecolor="#F8D9CC", edgecolor=RED_INK)
        rows = ((word, source[s], weights[t, s]) for t, (word, s) in enumerate(zip(target, best, strict=True)))
        described = ", ".join(f"{word} to {key} {float(weight):.2f}" for word, key, weight in rows)
        return sum(map(int.__eq__, best, true)), described

    def draw_message(message: str) -> str:
        ax.clear()
        bare(ax, xlim=(0, 1), ylim=(0, 1))
        ax.text(0.5, 0.5, "\n".join(textwrap.wrap(message, 90)), ha="center", va="center", fontsize=11)
        return message

    panel(keeping(figure, draw), sentence=whole("sentence", 0, 0, len(pairs) - 1), own=typed("a sentence"))
