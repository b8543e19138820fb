"""Figures of `at_work`: attention maps, scores, embeddings, and losses by temperature."""

import itertools

import torch

from helpers.drawing.charts import bare, heatmap, weight_map
from helpers.drawing.colors import BLUE, SIGNED
from helpers.drawing.diagrams import arrow
from helpers.drawing.style import Picture, new_figure
from helpers.translator import evaluation
from helpers.translator.trained import source_batch
from helpers.translator.word_ids import BOS, french_ids

EVEN = 0.005  # if weights differ by less, only rounding decides which one is the largest


@torch.no_grad()
def attention_map(trial, sentence: str) -> list[Picture]:
    """One picture with the encoder's strongest head over the sentence and the cross-attention of each French word.

    The list is empty if the learner's modules return neither, or only NaN.
    """
    words, rows = sentence.split(), [*trial.french.split(), "<eos>"][:15]
    written = rows[:-1]
    target = torch.tensor([[BOS, *french_ids(" ".join(written))]])
    seen = evaluation.attention_of(trial.network, source_batch([sentence]), target)
    layer, head, relation = evaluation.head_for(sentence)
    inside, across = (w if w is not None and w.isfinite().any() else None for w in (seen.encoder[layer], seen.cross))
    shown = [item for item in (inside, across) if item is not None]
    if not shown:
        return []
    height = 1.6 + 0.3 * max(len(words), len(rows))
    figure, axes = new_figure(8.4 if len(shown) == 2 else 4.6, height, 1, len(shown), squeeze=False)
    axes, described = list(axes[0]), []
    if inside is not None:
        matrix = inside[0, head]
        described.append(f"Encoder, block {layer}, head {head}: " + _strongest(matrix, words, words))
        _draw_map(axes.pop(0), matrix, words, words, f"Encoder, block {layer}, head {head}\n{relation}")
    if across is not None:
        matrix = across[0].mean(dim=0)
        described.append("From French to English: " + _strongest(matrix, rows, words))
        title = "From French to English\nmean of the last block's heads"
        _draw_map(axes.pop(0), matrix, rows[: len(matrix)], words, title)
    return [Picture(figure, "Attention weights over the words. " + " ".join(described))]


def _draw_map(ax, weights, rows, columns, title: str):
    weight_map(ax, weights, rows, columns, tilted=True, xlabel="attended to", ylabel="attends")
    ax.set_title(title, fontsize=11)


def rows_of_table(rows: torch.Tensor, words: list[str]) -> Picture:
    """The first entries of each word's row in the translator's embedding table."""
    shown = rows[:, :10]
    figure, ax = new_figure(8.4, 1.1 + 0.34 * len(words))
    heatmap(ax, shown, words[: len(shown)], [f"{i}" for i in range(shown.shape[1])], cmap=SIGNED, digits=1)
    ax.set_title(f"The first {shown.shape[1]} of {rows.shape[1]} entries in each word's row", fontsize=11)
    ax.set_xlabel("coordinate")
    starts = [[round(x, 1) + 0.0 for x in row[:2]] for row in shown.tolist()]  # adding 0.0 turns -0.0 into 0.0
    described = "; ".join(f"{w} starts {a:.1f} {b:.1f}" for w, (a, b) in zip(words, starts, strict=False))
    return Picture(figure, f"Rows of the translator's embedding table: {described}.")


def scores_and_edges(scores: torch.Tensor, words: list[str], layer: int, head: int) -> Picture:
    """Left: raw scores. Right: an edge from each word to the key with its largest score."""
    figure, axes = new_figure(8.4, 1.6 + 0.34 * len(words), 1, 2)
    top = float(scores.nan_to_num().abs().max()) or 1.0
    style = {"cmap": SIGNED, "vmin": -top, "vmax": top, "digits": 1, "tilted": True}
    heatmap(axes[0], scores, words, words, xlabel="key", ylabel="query", **style)
    axes[0].set_title(f"Raw scores, block {layer}, head {head}", fontsize=11)
    ax, best = axes[1], scores.nan_to_num().argmax(dim=-1).tolist()
    ax.set_title("Each word and the key with its largest score", fontsize=11)
    for i, word in enumerate(words):
        y = len(words) - 1 - i
        ax.text(-0.03, y, word, ha="right", va="center", fontsize=10)
        ax.text(1.03, y, word, ha="left", va="center", fontsize=10)
        arrow(ax, (0, y), (1, len(words) - 1 - best[i]), BLUE, 1.6)
    bare(ax, xlim=(-0.7, 1.7), ylim=(-0.6, len(words) - 0.4))
    described = "; ".join(f"{word} scores highest with {words[j]}" for word, j in zip(words, best, strict=True))
    return Picture(figure, f"Raw scores of block {layer}, head {head}: {described}.")


def temperature_curve(points: list[tuple[float, float]]) -> Picture:
    """Loss against the temperature of attention's softmax."""
    figure, ax = new_figure(5.6, 2.8)
    temperatures, losses = zip(*points, strict=True)
    ax.plot(temperatures, losses, marker="o", color=BLUE)
    ax.set(yscale="log", xlabel="temperature of the softmax in attention", ylabel="nats per word")
    ax.axvline(1, color="0.7", lw=1, zorder=0)
    described = ", ".join(f"{t:g}: {loss:.4f}" for t, loss in points)
    return Picture(figure, f"Loss in nats per word against the temperature: {described}.")


def all_heads(seen: torch.Tensor, moves: list[list[float]], words: list[str]) -> Picture:
    """Every head of the encoder over one sentence. seen: weights (layers, heads, T, T). moves: head importances."""
    layers, heads = seen.shape[:2]
    figure, axes = new_figure(8.6, layers * (0.9 + 0.22 * len(words)), layers, heads, squeeze=False)
    described = []
    for i, h in itertools.product(range(layers), range(heads)):
        ax, empty = axes[i][h], [""] * len(words)
        rows, columns = words if h == 0 else empty, words if i == layers - 1 else empty
        weight_map(ax, seen[i, h], rows, columns, numbers=False, tilted=True)
        ax.tick_params(labelsize=9)
        ax.set(xlabel="attended to" if i == layers - 1 else "", ylabel="" if h else "attends")
        ax.set_title(f"block {i}, head {h}\nmoves {moves[i][h]:.1f}", fontsize=10)
        described.append(f"Block {i}, head {h}: " + _strongest(seen[i, h], words, words))
    return Picture(figure, f"All {layers * heads} heads of the encoder. {' '.join(described)}")


def _strongest(matrix, rows: list[str], columns: list[str]) -> str:
    """In words, the column with the largest weight of each row, or that its weights are nearly equal."""
    described = []
    for name, row in zip(rows, matrix.nan_to_num(), strict=False):
        uniform = len(columns) > 1 and row.max() - row.min() < EVEN
        where = "equally to all" if uniform else f"most to {columns[int(row.argmax())]}"
        described.append(f"{name} attends {where}, {row.max():.2f}")
    return "; ".join(described) + "."
