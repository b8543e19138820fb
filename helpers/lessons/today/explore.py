"""Explorers of lesson 14: the size of a KV cache, and the receptive field of stacked sliding windows."""

import torch

from helpers.drawing.charts import name_ticks
from helpers.drawing.colors import BLUE, GRAY_INK, ORANGE
from helpers.drawing.style import Picture, new_figure
from helpers.lessons.today.figures import GIB, LENGTHS, Model, in_bytes, seen_in_blue, window_cells
from helpers.widgets.panel import choice, keeping, panel, whole

TOKENS = 16


def cache():
    figure, ax = new_figure(7.6, 3.4)
    full = Model("", 32, 32, 32, 128)
    ax.plot(LENGTHS, [full.bytes_of(T) / GIB for T in LENGTHS], color=GRAY_INK, ls="--", lw=1.4)
    ax.text(LENGTHS[2], full.bytes_of(LENGTHS[4]) / GIB, "32 heads, no window", fontsize=9, color=GRAY_INK)
    (line,) = ax.plot([], [], color=BLUE, lw=2.4)
    (dot,) = ax.plot([], [], "o", color=ORANGE, ms=8)
    ax.set(xscale="log", yscale="log", xlabel="tokens of text", ylabel="GiB", xlim=(200, 160_000), ylim=(5e-4, 120))
    name_ticks(ax, x=(256, 4096, 65536), y=(0.001, 0.01, 0.1, 1, 10, 100))
    title = ax.set_title("32 heads of keys, 131,072 tokens, window 131,072: 63.9 GiB")

    def draw(kv_heads: int, length: int, window: int) -> Picture:
        model = Model("", 32, 32, kv_heads, 128, window or None)
        line.set_data(LENGTHS, [model.bytes_of(T) / GIB for T in LENGTHS])
        size = model.bytes_of(length)
        dot.set_data([length], [size / GIB])
        heads = "1 head" if kv_heads == 1 else f"{kv_heads} heads"
        seen = f"window {window:,}" if window else "no window"
        words = f"{heads} of keys, {length:,} tokens, {seen}: {in_bytes(size)}"
        title.set_text(words)
        alt = f"The cache of 32 layers with heads of width 128 in 16 bits. {words}."
        return Picture(figure, alt, "How the cache grows with the text.")

    panel(
        keeping(figure, draw),
        kv_heads=choice("heads of keys", [32, 16, 8, 4, 2, 1], 32),
        length=choice("tokens of text", [(f"{T:,}", T) for T in LENGTHS], 4096),
        window=choice("window", [("none", 0), ("16,384", 16384), ("4,096", 4096), ("1,024", 1024)], 0),
    )


def seen_through(window: int, sinks: int, layers: int) -> torch.Tensor:
    """Which positions each output can depend on after the given number of layers: bool (TOKENS, TOKENS)."""
    distance = torch.arange(TOKENS)[:, None] - torch.arange(TOKENS)
    mask = (distance >= 0) & ((distance < window) | (torch.arange(TOKENS) < sinks))
    seen = mask
    for _ in range(layers - 1):
        seen = (seen.float() @ mask.float()) > 0
    return seen


def windows():
    figure, (left, right) = new_figure(8.2, 4.2, 1, 2)
    images = [window_cells(ax, seen_through(3, 0, 1)) for ax in (left, right)]
    left.set(title="one layer attends to", xlabel="keys", ylabel="queries")
    right.set(xlabel="keys")
    title = right.set_title("8 layers depend on")

    def draw(window: int, sinks: int, layers: int) -> Picture:
        one, all_of_them = seen_through(window, sinks, 1), seen_through(window, sinks, layers)
        for image, mask in zip(images, (one, all_of_them), strict=True):
            image.set_data(seen_in_blue(mask))
        many = f"{layers} layers depend on" if layers > 1 else "1 layer depends on"
        title.set_text(f"what {many}")
        last = all_of_them[-1].nonzero().flatten().tolist()
        alt = f"Sixteen tokens, a window of {window} and {sinks} sinks. One layer: the last token attends to "
        alt += f"{int(one[-1].sum())} positions. Through {layers} it depends on {len(last)}, from position {last[0]} "
        alt += "on."
        caption = "Left: the mask of one layer. Right: what each output depends on through all layers."
        return Picture(figure, alt, caption)

    window, sinks = whole("window", 3, 1, 8), whole("sinks", 0, 0, 3)
    panel(keeping(figure, draw), window=window, sinks=sinks, layers=whole("layers", 1, 1, 8))
