"""Figures of `at_work`: what the translator looks at, word by word."""

from __future__ import annotations

import torch

from helpers.figures.style import Picture, heatmap, new_figure
from helpers.translator import measures
from helpers.translator.trained import source_batch
from helpers.translator.words import BOS, french_ids


def pictures(yours, finished, sentence: str, parts: dict) -> list[Picture]:
    """The figures for a trial that ran."""
    return [attention_map(yours, sentence)]


@torch.no_grad()
def attention_map(trial, sentence: str) -> Picture:
    """Left: the encoder's most telling head over the sentence. Right: where each French word looks."""
    words, written = sentence.split(), trial.french.split()
    network = trial.network
    src = source_batch([sentence])
    network(src, torch.tensor([[BOS, *french_ids(trial.french)]]))
    layer, head = measures.telling_encoder_head(sentence)
    inside = measures.encoder_weights(network, layer)
    across = measures.cross_weights(network)
    shown = [item for item in (inside, across) if item is not None]
    figure, axes = new_figure(8.4 if len(shown) == 2 else 5, 1.2 + 0.32 * max(len(words), len(written)), 1, len(shown))
    axes = list(axes) if len(shown) == 2 else [axes]
    said = []
    if inside is not None:
        ax = axes.pop(0)
        heatmap(ax, inside[0, head], words, words, vmin=0, vmax=1)
        ax.set_title(f"Encoder, block {layer + 1}, head {head + 1}", fontsize=11)
        ax.tick_params(axis="x", rotation=40)
        said += [_strongest(inside[0, head], words, words)]
    if across is not None:
        ax = axes.pop(0)
        matrix = across[0].mean(dim=0)
        rows = [*written, "(end)"][: len(matrix)]
        heatmap(ax, matrix, rows, words, vmin=0, vmax=1)
        ax.set_title("From French to English, all heads", fontsize=11)
        ax.tick_params(axis="x", rotation=40)
        said += [_strongest(matrix, rows, words)]
    return Picture(figure, "Attention weights over the words. " + " ".join(said))


def _strongest(matrix, rows: list[str], columns: list[str]) -> str:
    values, places = matrix.nan_to_num().max(dim=-1)
    pairs = zip(rows, places.tolist(), values.tolist(), strict=False)
    return "; ".join(f"{row} looks most at {columns[place]}, {value:.2f}" for row, place, value in pairs) + "."
