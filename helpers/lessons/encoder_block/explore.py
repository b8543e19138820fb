"""Explorers of lesson 9: gradients along a stack of blocks, and how far layers can see."""

import functools
import math

import torch
from torch.nn import functional as F

from helpers.drawing.style import Picture, new_figure
from helpers.lessons.encoder_block.figures import KINDS, arranged, climb, layers, receptive
from helpers.widgets.panel import choice, keeping, panel, whole

DEPTH, WIDTH = 12, 16


@functools.lru_cache(maxsize=64)
def streams(kind: str, gain: float) -> tuple[list[float], list[float]]:
    """Root mean square of the residual stream and gradient norm there, before and after each of 12 small blocks."""
    x = torch.randn(1, 5, WIDTH, generator=torch.Generator().manual_seed(1)).double().requires_grad_()
    stream = climb(arranged(kind), layers(DEPTH, WIDTH, gain, dtype=torch.float64), x)
    end = F.layer_norm(stream[-1], (WIDTH,))
    total = (end * torch.randn(end.shape, generator=torch.Generator().manual_seed(2)).double()).sum()
    grads = torch.autograd.grad(total, stream)
    return [float(item.detach().pow(2).mean().sqrt()) for item in stream], [float(grad.norm()) for grad in grads]


def stack():
    figure, axes = new_figure(8.6, 3.4, 1, 2, sharey=True)
    lines = {}
    for ax, title in zip(axes, ("size of the residual stream", "gradient norm"), strict=True):
        for kind, (color, line) in KINDS.items():
            (lines[kind, title],) = ax.plot([], [], color=color, ls=line, lw=1.8, label=kind)
        ax.set(yscale="log", xlim=(-0.3, DEPTH + 0.3), ylim=(1e-5, 1e6), xlabel="after block", title=title)
        ax.minorticks_off()
    # Plain text, because matplotlib would parse a formula again at every redraw.
    axes[0].set_yticks([1e-4, 1e-2, 1, 1e2, 1e4, 1e6], ["0.0001", "0.01", "1", "100", "10,000", "1,000,000"])
    axes[0].legend(frameon=False, fontsize=9, loc="lower left")

    def draw(start: float) -> Picture:
        described = []
        for kind in KINDS:
            sizes, grads = streams(kind, start)
            for title, values in (("size of the residual stream", sizes), ("gradient norm", grads)):
                lines[kind, title].set_data(range(DEPTH + 1), values)
            ends = sizes[-1], grads[0], grads[-1]
            size, bottom, top = (f"{value:.2g}" if math.isfinite(value) else "beyond all floats" for value in ends)
            described.append(f"{kind}: size {size}, gradient {bottom} at the bottom and {top} at the top")
        alt = f"Twelve untrained blocks, initialized at {start:g} times the usual size. {'; '.join(described)}."
        caption = "Left: size of the residual stream after each block. Right: the gradient there."
        return Picture(figure, alt, caption)

    panel(keeping(figure, draw), start=choice("initialization", [0.25, 0.5, 0.75, 1.0, 1.5, 2.0], 1.0))


def reach():
    panel(receptive, layers_=whole("layers", 1, 1, 8), kernel=choice("kernel", [1, 3, 5, 7], 3))
