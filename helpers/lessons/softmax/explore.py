"""Explorers of lesson 6: the loss of a target word, and online softmax."""

import math

import torch
from matplotlib.patches import Patch

from helpers.drawing.charts import MovingBars, named
from helpers.drawing.colors import BLACK, BLUE, GREEN, ORANGE
from helpers.drawing.style import Picture, new_figure
from helpers.lessons.softmax.figures import online_states
from helpers.widgets.panel import choice, decimal, keeping, panel, whole

BLOCK, BLOCKS = 3, 4  # scores per block, number of blocks


def surprise():
    words = "est", "regarde", "visite"
    figure, (left, right) = new_figure(8.6, 3.3, 1, 2, width_ratios=(2, 3))
    look = {"ylim": (0, 1.12), "ylabel": "probability", "title": "next word"}
    bars = MovingBars(left, words, "0.000", **look)
    p = torch.linspace(0.001, 1, 400)
    right.plot(p, -p.log(), color=BLUE)
    (dot,) = right.plot([1.0], [0.0], "o", ms=9, color=ORANGE)
    right.set(xlim=(-0.02, 1.02), ylim=(-0.3, 7.2), xlabel="probability p of the target", ylabel="loss −ln p")
    title = right.set_title("loss 0.000, gradient at the logit −0.000")

    def draw(target: str, score: float) -> Picture:
        index = words.index(target)
        scores = torch.tensor([1, 2, 5], dtype=torch.float64).log()
        scores[index] = score
        probabilities = torch.softmax(scores, dim=0)
        p = float(probabilities[index])
        loss = -math.log(p)
        bars.show(probabilities.tolist(), ".3f", [ORANGE if i == index else BLUE for i in range(3)])
        dot.set_data([p], [loss])
        shown = f"{loss:.3f}" if loss >= 0.01 else f"{loss:.2g}"
        title.set_text(f"loss {shown}, gradient at the logit {p - 1:.3g}".replace("-", "−"))
        alt = f"Probabilities: {named(words, probabilities, '.3f')}. The target {target} has score {score:.2f}, "
        alt += f"loss {shown} and gradient {p - 1:.3g}."
        return Picture(figure, alt, "Orange: the target. The higher its probability, the smaller the loss.")

    target, score = choice("target", words, "visite"), decimal("its score", math.log(5), -5, 10, 0.05)
    panel(keeping(figure, draw), target=target, score=score)


def stream():
    generator, tokens = torch.Generator().manual_seed(6), BLOCK * BLOCKS
    noise, values = (torch.randn(tokens, generator=generator, dtype=torch.float64) for _ in range(2))
    figure, (left, right) = new_figure(8.6, 3.7, 1, 2)
    bars = MovingBars(left, [""] * tokens)
    (line,) = left.plot([-0.5, tokens - 0.5], [0, 0], color=BLACK, ls="--")
    kinds = [(GREEN, "read before"), (ORANGE, "this block"), ("0.85", "to come")]
    patches = [Patch(color=color) for color, _ in kinds]
    left.legend(handles=[*patches, line], labels=[*(name for _, name in kinds), "maximum m"], ncols=2)
    left.get_legend().set(frame_on=False)
    left.set(xlabel="token", ylabel="score", ylim=(-6.5, 19), xticks=range(1, tokens, BLOCK))
    left.set_xticklabels([f"block {i + 1}" for i in range(BLOCKS)])
    state = left.set_title("m = 00.00   ℓ = 00.000   o = −00.000", fontsize=11)
    (goal,) = right.plot([0.5, BLOCKS + 0.5], [0, 0], color="gray", ls=":")
    (path,) = right.plot([1], [0], "o-", color=BLUE)
    right.set(xlabel="blocks read", ylabel="o / ℓ, the average so far", xlim=(0.5, 4.5), ylim=(-2.2, 2.2))
    right.set_xticks(range(1, BLOCKS + 1))
    end = right.set_title("o / ℓ = −0.0000, all at once −0.0000", fontsize=11)

    def draw(seen: int, lift: float) -> Picture:
        scores = 2 * noise
        scores[2 * BLOCK : 3 * BLOCK] += lift
        states = online_states(scores, values, BLOCK)
        maximum, total, out = states[seen - 1]
        blocks = [i // BLOCK + 1 for i in range(len(scores))]
        colors = [GREEN if block < seen else ORANGE if block == seen else "0.85" for block in blocks]
        bars.show(scores.tolist(), colors=colors)
        line.set_ydata([maximum, maximum])
        exact = float((torch.softmax(scores, dim=0) * values).sum())
        goal.set_ydata([exact, exact])
        means = [state[2] / state[1] for state in states[:seen]]
        path.set_data(range(1, seen + 1), means)
        state.set_text(f"m = {maximum:.2f}   ℓ = {total:.3f}   o = {out:.3f}".replace("-", "−"))
        end.set_text(f"o / ℓ = {means[-1]:.4f}, all at once {exact:.4f}".replace("-", "−"))
        alt = f"After {seen} of {BLOCKS} blocks of {BLOCK} scores, the third raised by {lift:g}: running maximum "
        alt += f"{maximum:.2f}, sum {total:.3f}, weighted values {out:.3f}, their quotient {means[-1]:.4f}; softmax "
        alt += f"over all scores at once gives {exact:.4f}."
        return Picture(figure, alt, caption="Online softmax keeps only m, ℓ and o between blocks.")

    read, lift = whole("blocks read", 2, 1, BLOCKS), decimal("raise block 3 by", 0, 0, 10, 0.5)
    panel(keeping(figure, draw), seen=read, lift=lift)
