"""Explorers of lesson 11: the learning rate, a smoothed target, and the cross-attention of a trained model."""

import math

from helpers.drawing.charts import MovingBars
from helpers.drawing.colors import BLUE, RED
from helpers.drawing.style import Picture, new_figure
from helpers.lessons.translation.figures import STEPS, Looks, best_smoothed
from helpers.translator.finished_parts import noam_lr
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
        said = f"width {d_model}, warm-up {warmup}: peak {peak:.5f} at step {warmup}"
        title.set_text(said)
        alt = f"Learning rate over {STEPS} steps. {said}; {rates[0]:.2g} at step 1, {rates[-1]:.2g} at step {STEPS}."
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
    title = ax.set_title("true word 0.0000, each other 0.00000")

    def draw(smoothing: float) -> Picture:
        p, lead, loss = best_smoothed(smoothing, 194)
        bars.show([p, *[smoothing / 194] * 5], ".4f")
        dot.set_data([smoothing], [loss])
        title.set_text(f"true word {p:.4f}, each other {smoothing / 194:.5f}")
        best = f"a margin of {lead:.1f} in logits" if lead < math.inf else "an infinite margin in logits"
        alt = f"Smoothing {smoothing:.2f} over 194 words: the true word's target is {p:.4f}, each other's "
        alt += f"{smoothing / 194:.5f}. The best model has {best} and a loss of {loss:.2f} nats."
        return Picture(figure, alt, "Figure 11.5. The smoothed target of one position, and the smallest loss.")

    panel(keeping(figure, draw), smoothing=decimal("smoothing", 0.1, 0.0, 0.5, 0.01))


def looks(model):
    """A slider over sentences that `model` has not seen, and a box for one of one's own, with its cross-attention."""
    shown = Looks(model)
    panel(shown, sentence=whole("sentence", 0, 0, len(shown.pairs) - 1), own=typed("a sentence"))
