"""Figures of lesson 11: alignments, batches, warm-up, label smoothing, runs with bugs, and two models side by side."""

import math
import textwrap
from itertools import accumulate

import torch
from matplotlib.patches import Rectangle

from helpers import corpus, translator
from helpers.drawing.charts import HATCHED, bare, bars, heatmap, name_ticks, run_bars, weight_map
from helpers.drawing.colors import BLUE, GREEN, K_COLOR, ORANGE, PINK, Q_COLOR, SIGNED
from helpers.drawing.diagrams import TARGET, tokens
from helpers.drawing.measured import measured
from helpers.drawing.style import Picture, new_figure, text_picture
from helpers.errors import CourseError
from helpers.translator import evaluation

RECIPES = measured("translation", "recipes")
EVERY, RUNS = RECIPES["every"], RECIPES["runs"]  # EVERY: steps between two values of a curve
SENTENCE = "jane visits africa in september"
SPAN = 10.6  # width of a row of words
LONG = "the old woman often paints a white house in september"
BATCH = (("jane sleeps", "jane dort"), ("a red apple", "une pomme rouge"), ("kenya", "le kenya"))
STEPS = 1000  # in the chart of the learning rate
BROKEN = {
    "right": (BLUE, "correct"),
    "mask leaks": (PINK, "leaking mask"),
    "not shifted": (ORANGE, "targets not shifted"),
    "sorted apart": (GREEN, "sorted separately"),
}
READS = ("W_q.weight", "W_k.weight", "W_v.weight", "up.weight", "unembed.weight")  # the columns are channels
COMPARED = "red green white jane anna sara cat dog horse kenya peru".split()


def widths(words):
    return [0.13 * max(3, len(word)) + 0.12 for word in words]


def _centers(words):
    """The center of each word's box, distributed from left to right over SPAN."""
    sizes = widths(words)
    gap = (SPAN - sum(sizes)) / max(1, len(words) - 1)
    return [end - size / 2 + gap * i for i, (end, size) in enumerate(zip(accumulate(sizes), sizes, strict=True))]


def two_rows(ax, english, french) -> tuple[list[float], list[float]]:
    """Draw an English sentence above a French one, each word in a box; returns the centers of both rows."""
    top, bottom = _centers(english), _centers(french)
    tokens(ax, english, top, 1, widths(english))
    tokens(ax, french, bottom, -1, widths(french), **TARGET)
    bare(ax, xlim=(-0.3, SPAN + 0.3), ylim=(-1.35, 1.3))
    return top, bottom


def word_by_word() -> Picture:
    figure, axes = new_figure(8.6, 3.9, 2, 1)
    described = []
    for ax, sentence in zip(axes, (SENTENCE, LONG), strict=True):
        pair = corpus.translate(sentence)
        english, french = pair.english.split(), pair.french.split()
        top, bottom = two_rows(ax, english, french)
        for t, source in enumerate(pair.alignment):
            crossed = any((s - source) * (u - t) < 0 for u, s in enumerate(pair.alignment))
            ax.plot([top[source], bottom[t]], [0.8, -0.8], color=ORANGE if crossed else BLUE, lw=2, zorder=0)
        joined = ", ".join(f"{word} from {english[s]}" for word, s in zip(french, pair.alignment, strict=True))
        described.append(f"“{sentence}”: {joined}")
    alt = "English above, French below, each French word joined to the word that it comes from. "
    alt += f"{'; '.join(described)}."
    caption = "Figure 11.1. Two sentences and where each French word comes from. Orange: words that changed their "
    caption += "order."
    return Picture(figure, alt, caption)


def batch_of_three() -> Picture:
    sources, targets = [[text.split() for text in column] for column in zip(*BATCH, strict=True)]
    begun, ended = [["<bos>", *row] for row in targets], [[*row, "<eos>"] for row in targets]
    rows = {"src": sources, "tgt_in": begun, "tgt_out": ended}
    figure, axes = new_figure(8.6, 2.3, 1, 3)
    described = []
    for ax, (name, words) in zip(axes, rows.items(), strict=True):
        width = max(map(len, words))
        for i, row in enumerate(words):
            row += ["<pad>"] * (width - len(row))
            for j, word in enumerate(row):
                face = "#FFC94D" if word in ("<bos>", "<eos>") else "#EAF2F8" if name == "src" else "#FFF3D6"
                style = HATCHED if word == "<pad>" else {"facecolor": face, "edgecolor": "#8C8C8C"}
                ax.add_patch(Rectangle((j, -i), 0.96, 0.9, **style | {"linewidth": 0.8}))
                if word != "<pad>":
                    ax.text(j + 0.48, -i + 0.45, word, ha="center", va="center", fontsize=9.5)
        bare(ax, xlim=(-0.05, width), ylim=(-2.1, 1.05))
        ax.set_title(f"{name}  (3, {width})", family="monospace", fontsize=10.5)
        described.append(f"{name}: " + " / ".join(map(" ".join, words)))
    caption = "Figure 11.2. A batch of three pairs. Hatched: padding, on the right. Yellow: special tokens."
    return Picture(figure, f"Three sentence pairs as three tensors. {'; '.join(described)}.", caption)


@torch.no_grad()
def cross_weights(model, src, tgt_in):
    """Weights (B, H, T_t, T_s) of a Transformer's last cross-attention, whatever the names of its modules."""
    memory = model.encode(src)
    with evaluation.attention_weights(model) as seen:
        model.decode(tgt_in, memory, src)
    found = [weights for _, weights in seen if weights.shape[-2:] == (tgt_in.shape[1], src.shape[1])]
    if not found:
        problem = "No part of this Transformer returns cross-attention weights (out, weights)"
        raise CourseError(f"{problem}, so there is nothing to draw.")
    return found[-1]


def reversed_word(model, word: str = "encoder") -> Picture:
    """The cross-attention of a model that reverses words, whose ids 3, 4, ... are the letters a, b, ..."""
    ids = torch.tensor([[ord(letter) - 94 for letter in word]])  # (1, T)
    reverse = ids.flip(1)  # (1, T)
    tgt_in = torch.cat([torch.full((1, 1), translator.BOS), reverse], dim=1)  # (1, T + 1)
    weights = cross_weights(model, ids, tgt_in)[0].mean(dim=0)  # (T + 1, T)
    letters = [*word[::-1], "<eos>"]
    figure, ax = new_figure(5.6, 4.0)
    weight_map(ax, weights, letters, list(word))
    ax.set_xlabel("letters of the source", color=K_COLOR)
    ax.set_ylabel("predicted letter", color=Q_COLOR)
    ax.xaxis.set_label_position("top")
    ax.xaxis.tick_top()
    best = zip(letters, weights.argmax(-1).tolist(), weights.amax(-1).tolist(), strict=True)
    described = ", ".join(f"{letter} to position {key} ({word[key]}) {weight:.2f}" for letter, key, weight in best)
    alt = f"Cross-attention while {word} is reversed. The largest weight of each row: {described}."
    return Picture(figure, alt, "Figure 11.9. Cross-attention of the model that reverses words.")


def warm_ups() -> Picture:
    runs = RUNS["warmup"]
    figure, axes = new_figure(8.6, 3.4, 1, 2, sharey=True)
    described = []
    for ax, peak in zip(axes, (5e-3, 2e-2), strict=True):
        for warmup, color, name in ((60, BLUE, "60 steps"), (1, ORANGE, "none")):
            curves = [run["curve"] for run in runs[f"{peak}, {warmup}"]]
            for curve in curves:
                ax.plot([EVERY * (i + 1) for i in range(len(curve))], curve, color=color, lw=2)
            ax.lines[-1].set_label(f"warm-up: {name}")
            ends = " and ".join(f"{curve[-1]:.2f}" for curve in curves)
            described.append(f"peak {peak:g}, warm-up {name}: loss {ends} at the end")
        ax.set(title=f"peak learning rate {peak:g}", xlabel="step", xlim=(0, 150), ylim=(0.1, 7), yscale="log")
        name_ticks(ax, y=(0.1, 0.3, 1, 3))
    axes[0].set_ylabel("loss, nats per word")
    axes[1].legend(frameon=False, loc="lower left")
    caption = "Figure 11.10. The translator's first 150 steps, with and without a warm-up, two seeds each."
    return Picture(figure, f"Loss over 150 steps of the translator, two seeds each. {'; '.join(described)}.", caption)


def best_smoothed(smoothing: float, V: int) -> tuple[float, float, float]:
    """The best fit to a smoothed target: probability of the true word, its margin in logits, and the loss in nats."""
    rest = smoothing / V
    p = 1 - smoothing + rest
    margin = math.log(p / rest) if rest else math.inf
    loss = -p * math.log(p) - ((V - 1) * rest * math.log(rest) if rest else 0.0)
    return p, margin, loss


def with_and_without_smoothing() -> Picture:
    runs = RUNS["smoothing"]
    figure, ax = new_figure(6.4, 1.9)
    names = {"nats": "nats per word", "certainty": "mean of the largest p", "exact": "sentences exact"}
    described = []
    losses = {name: [run["nats"] for run in runs[key]] for name, key in (("none", "0.0"), ("0.1", "0.1"))}
    run_bars(ax, losses, xlim=(0, 0.17), xlabel="nats per word", ylabel="smoothing")
    for y, values in enumerate(losses.values()):
        ax.text(max(values) + 0.002, y, f"{sum(values) / len(values):.3f}", va="center", fontsize=10)
    for smoothing in (0.1, 0.0):
        for name, title in names.items():
            found = " and ".join(f"{run[name]:g}" for run in runs[str(smoothing)])
            described.append(f"{title}, smoothing {smoothing:g}: {found}")
    alt = f"Two training runs of 400 steps each, without and with smoothing. {'; '.join(described)}."
    caption = "Figure 11.11. The plain loss on 200 unseen sentences after 400 steps, two seeds each (dots)."
    return Picture(figure, alt, caption)


def runs_with_bugs() -> Picture:
    figure, ax = new_figure(8.6, 4.4)
    described = []
    for name, (color, words) in BROKEN.items():
        (run,) = RUNS["broken"][name]
        curve = run["curve"]
        label = f"{words}, writes: {textwrap.shorten(run['writes'], 70, placeholder=' …')}"
        ax.plot([EVERY * (i + 1) for i in range(len(curve))], curve, color=color, lw=2.2, label=label)
        described.append(
            f"{words}: loss {curve[-1]:.4f} at the end, {run['nats']:.4f} on unseen sentences, "
            f"{100 * run['exact']:.0f}% of them exact, writes “{run['writes']}”"
        )
    ax.set(xlabel="step", ylabel="loss, nats per word", yscale="log", xlim=(0, 200))
    figure.legend(frameon=False, fontsize=9.5, loc="outside lower left")
    alt = f"Loss of four training runs of 200 steps. {'; '.join(described)}."
    caption = f"Figure 11.8. Four training runs from the same initialization, and how each translates “{SENTENCE}”."
    return Picture(figure, alt, caption)


def _cosines(table: torch.Tensor) -> torch.Tensor:
    """Cosines (pairs,) of all pairs of rows, except the row of padding."""
    rows = torch.nn.functional.normalize(table[1:], dim=-1)
    return (rows @ rows.T)[torch.ones(len(rows), len(rows)).triu(1).bool()]


def correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1])


def _in_other_axes(state: dict, Q: torch.Tensor) -> dict:
    """A Transformer's weights when every vector x (D,) of its residual stream becomes Q @ x, for an orthogonal Q.

    A norm has one factor per channel. If Q permutes the channels, the factors move with them, and the result is exact.
    For a rotation there are no exact factors, so each is a weighted mean of the old ones.
    """
    new = {}
    for name, weight in state.items():
        if name.endswith(READS) or name.endswith(("tokens.weight", "positions.weight")):
            weight = weight @ Q.T
        elif "norm" in name and name.endswith("weight"):
            weight = Q**2 @ weight
        elif "norm" in name or name.endswith(("W_o.weight", "W_o.bias", "down.weight", "down.bias")):
            weight = Q @ weight
        new[name] = weight.clone()
    return new


def _heads_exchanged(state: dict) -> dict:
    """The same weights with two heads of one attention layer exchanged."""
    part, width = "blocks.1.cross_attention.", translator.D_MODEL // translator.NUM_HEADS
    order = torch.arange(translator.D_MODEL).view(-1, width)[[1, 0, 2, 3]].flatten()
    rows = {f"{part}{name}.{kind}" for name in ("W_q", "W_k", "W_v") for kind in ("weight", "bias")}
    new = {name: weight[order] if name in rows else weight for name, weight in state.items()}
    return new | {f"{part}W_o.weight": state[f"{part}W_o.weight"][:, order]}


def same_function_scores() -> dict[str, tuple[float, float]]:
    """For each change of the course's translator: (nats per word, fraction exact) on 200 unseen sentences."""
    draw, D = torch.Generator().manual_seed(0), translator.D_MODEL
    channels = torch.eye(D)[torch.randperm(D, generator=draw)]
    rotation = torch.linalg.qr(torch.randn(D, D, generator=draw)).Q
    state = translator.state()
    changed = {
        "as it is": state,
        "two heads exchanged": _heads_exchanged(state),
        "channels permuted": _in_other_axes(state, channels),
        "all vectors rotated": _in_other_axes(state, rotation),
    }
    batch, found = evaluation.unseen(200), {}
    for name, weights in changed.items():
        model = translator.model()
        model.load_state_dict(weights)
        found[name] = (evaluation.nats_per_word(model, batch), evaluation.exact(model, batch))
    return found


def same_function() -> Picture:
    found = same_function_scores()
    figure, axes = new_figure(8.4, 2.4, 1, 2, sharey=True)
    for ax, i, title in ((axes[0], 0, "nats per word, unseen"), (axes[1], 1, "sentences exactly right, %")):
        values = [row[i] * (100 if i else 1) for row in found.values()]
        bars(ax, list(found), values, "g" if i else ".4f", across=True, color=[BLUE, BLUE, BLUE, ORANGE])
        ax.set_title(title, fontsize=10.5)
        ax.set_xlim(0, 1.25 * max(values))
        ax.set_xticks(range(0, 101, 25) if i else range(4))
    described = "; ".join(f"{name}: {nats:.4f} nats, {100 * exact:g}% exact" for name, (nats, exact) in found.items())
    alt = f"The course's translator on 200 unseen sentences. {described}."
    return Picture(figure, alt, "Figure 11.13. One translator, its weights changed in three ways.")


def two_runs(model) -> Picture:
    """The learner's weights next to the course's: one matrix, and the cosines between English words."""
    ours, yours = translator.state(), model.state_dict()
    matrix, table = "blocks.1.cross_attention.W_q.weight", "encoder.tokens.weight"
    if matrix not in yours or table not in yours or yours[matrix].shape != ours[matrix].shape:
        words = "Your Transformer has other names than the course's, so single matrices cannot be compared."
        return text_picture(words, "Figure 11.12. Two training runs, side by side.")
    figure, axes = new_figure(8.2, 6.6, 2, 2)
    ids, size = [translator.english[word] for word in COMPARED], len(COMPARED)
    r = correlation(ours[matrix].flatten(), yours[matrix].flatten())
    r_words = correlation(_cosines(ours[table]), _cosines(yours[table]))
    for (above, below), state, owner in zip(axes.T, (ours, yours), ("the course's", "yours"), strict=True):
        corner = state[matrix][:size, :size]
        heatmap(above, corner, cmap=SIGNED, numbers=False, title=f"{owner}: a corner of one matrix")
        rows = torch.nn.functional.normalize(state[table][ids], dim=-1)
        style = {"cmap": SIGNED, "vmin": -1, "vmax": 1, "numbers": False, "tilted": True}
        heatmap(below, rows @ rows.T, COMPARED, COMPARED, title=f"{owner}: cosines of words", **style)
    exact = [100 * evaluation.exact(network, evaluation.unseen(200)) for network in (translator.model(), model)]
    line = "200 unseen sentences, exactly right: the course's {:g}%, yours {:g}%".format(*exact)
    figure.suptitle(line, fontsize=11)
    alt = f"Heat maps of the course's weights beside yours. Weights of one matrix: correlation {r:.2f}; "
    alt += f"cosines of English words: correlation {r_words:.2f}; {line}."
    caption = f"Figure 11.12. Two training runs of one model. Above: the same matrix in both, correlation {r:.2f}. "
    caption += f"Below: cosines of word vectors, correlation {r_words:.2f} over all pairs."
    return Picture(figure, alt, caption)
