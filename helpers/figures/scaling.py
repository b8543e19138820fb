"""Figures of lesson 4: the spread of dot products, softmax that saturates, slopes that vanish."""

from __future__ import annotations

import math

import torch

from helpers.figures.style import BLUE, CYCLE, GREEN, ORANGE, PINK, SIGNED, Picture, heatmap, new_figure


def random_scores(d_k: int, queries: int, keys: int, seed: int = 0) -> torch.Tensor:
    """Dot products of standard normal queries and keys of width d_k, (queries, keys), float64; own keys a query."""
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(queries, 1, d_k, generator=generator, dtype=torch.float64)
    k = torch.randn(queries, keys, d_k, generator=generator, dtype=torch.float64)
    return (q * k).sum(dim=-1)


def largest_slope(scores: torch.Tensor) -> torch.Tensor:
    """Largest entry of the softmax Jacobian at scores (..., N), from shifted exponentials: exact where p is near 1."""
    e = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    total, others = e.sum(dim=-1), e.sum(dim=-1) - e.amax(dim=-1)
    return others / total**2


def effective_tokens(weights: torch.Tensor) -> torch.Tensor:
    """e to the entropy of weights (..., N): 1 where one token has everything, N where all have the same."""
    return torch.special.entr(weights).sum(dim=-1).exp()


def spread(widths=(4, 16, 64, 256), pairs: int = 10_000) -> Picture:
    """Histograms of dot products of random vectors, one for each width."""
    figure, ax = new_figure(7.0, 3.6)
    said = []
    for d_k, color in zip(widths, CYCLE, strict=False):
        scores = random_scores(d_k, pairs, 1).flatten()
        sd = float(scores.std())
        label = f"$d_k$ = {d_k}: standard deviation {sd:.1f}"
        ax.hist(
            scores.numpy(), bins=80, range=(-50, 50), density=True, histtype="step", lw=1.8, color=color, label=label
        )
        said.append(f"{sd:.1f} at width {d_k}")
    ax.set(xlabel="dot product q · k", ylabel="share of pairs", yticks=[], xlim=(-50, 50))
    ax.legend(frameon=False, fontsize=10)
    alt = "Histograms of dot products of random vectors, all centered at 0. The wider the vectors, the wider the "
    return Picture(figure, alt + "histogram. Standard deviation " + ", ".join(said) + ".")


def three_numbers(scores=(0.0, 1.0, 2.0), factors=(1, 3, 10)) -> Picture:
    """Softmax of three scores, and of the same scores made larger."""
    figure, axes = new_figure(7.6, 2.8, 1, len(factors), sharey=True)
    said = []
    for ax, factor in zip(axes, factors, strict=True):
        larger = torch.tensor(scores, dtype=torch.float64) * factor
        weights = torch.softmax(larger, dim=0).tolist()
        names = [f"{s:g}" for s in larger.tolist()]
        bars = ax.bar(names, weights, color=BLUE)
        ax.bar_label(bars, [f"{w:.3f}" for w in weights], fontsize=10)
        ax.set(title=f"scores × {factor}" if factor > 1 else "scores", xlabel="score", ylim=(0, 1.12))
        said.append(f"scores {', '.join(names)} give {', '.join(f'{w:.3f}' for w in weights)}")
    axes[0].set_ylabel("weight")
    return Picture(figure, "Bar charts of softmax weights: " + "; ".join(said) + ".")


def four_divisors(scores: torch.Tensor, tokens: list[str], d_k: int = 24) -> Picture:
    """Weights of one query's scores (T,) divided by 1, √d_k, d_k and 100, with their effective number of tokens."""
    names = ("divided by 1", f"divided by √{d_k}", f"divided by {d_k}", "divided by 100")
    divisors = (1, math.sqrt(d_k), d_k, 100)
    figure, axes = new_figure(9.2, 3.2, 1, 4, sharey=True)
    said = []
    for ax, name, c, color in zip(axes, names, divisors, (ORANGE, BLUE, GREEN, PINK), strict=True):
        weights = torch.softmax(scores / c, dim=0)
        bars = ax.barh(tokens, weights.tolist(), color=color)
        ax.bar_label(bars, [f"{w:.2f}" for w in weights.tolist()], fontsize=9, padding=2)
        effective = float(effective_tokens(weights))
        ax.set(title=f"{name}\n{effective:.1f} tokens in effect", xlim=(0, 1.25), xticks=[0, 0.5, 1], xlabel="weight")
        said.append(f"{name}: " + ", ".join(f"{t} {w:.2f}" for t, w in zip(tokens, weights.tolist(), strict=True)))
    axes[0].invert_yaxis()
    return Picture(figure, "Attention weights of one word. " + ". ".join(said) + ".")


def two_jacobians() -> Picture:
    """The softmax Jacobian of an undecided and of a decided probability vector."""
    figure, axes = new_figure(7.4, 3.0, 1, 2)
    for ax, p in zip(axes, ((0.5, 0.25, 0.25), (0.98, 0.01, 0.01)), strict=True):
        vector = torch.tensor(p)
        jacobian = torch.diag(vector) - torch.outer(vector, vector)
        heatmap(ax, jacobian, ["$p_1$", "$p_2$", "$p_3$"], ["$s_1$", "$s_2$", "$s_3$"], SIGNED, -0.25, 0.25, digits=4)
        ax.set(title=f"p = ({p[0]:g}, {p[1]:g}, {p[2]:g})", xlabel="score that moves")
    axes[0].set_ylabel("weight that answers")
    alt = (
        "Two softmax Jacobians as heat maps. For p = 0.5, 0.25, 0.25 the diagonal is 0.2500, 0.1875, 0.1875, the rest "
        "-0.1250 or -0.0625. For p = 0.98, 0.01, 0.01 all entries are small: 0.0196, 0.0099, 0.0099 on the diagonal."
    )
    return Picture(figure, alt)


def slopes_against_width(widths=(1, 4, 16, 64, 256, 1024), keys: int = 6, queries: int = 500) -> Picture:
    """Median of the largest slope of softmax against the width, without scaling and with two divisors."""
    figure, ax = new_figure(6.8, 3.8)
    rules = [
        ("not divided", lambda d: 1.0, ORANGE, "o-"),
        ("divided by √$d_k$", math.sqrt, BLUE, "s-"),
        ("divided by $d_k$", float, GREEN, "^--"),
    ]
    ends = []
    for name, divisor, color, style in rules:
        slopes = [float(largest_slope(random_scores(d, queries, keys) / divisor(d)).median()) for d in widths]
        ax.plot(widths, slopes, style, color=color, label=name)
        ends.append(f"{name.replace('$', '')}: {slopes[0]:.2f} at width {widths[0]}, {slopes[-1]:.2g} at {widths[-1]}")
    ax.axhline(0.25, color="gray", lw=1, ls=":")
    ax.text(widths[0], 0.42, "1/4, the most there can be", fontsize=9, color="dimgray")
    ax.set(xscale="log", yscale="log", ylim=(1e-8, 2), xlabel="width $d_k$", ylabel="largest slope of softmax (median)")
    ax.set_xticks(widths, widths)
    ax.minorticks_off()
    ax.legend(frameon=False, loc="lower left")
    return Picture(figure, f"Largest slope of softmax over {keys} keys against width. " + "; ".join(ends) + ".")
