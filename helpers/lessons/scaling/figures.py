"""Figures of lesson 4: the standard deviation of dot products, saturated softmax, and vanishing gradients."""

import functools
import math

import numpy as np
import torch

from helpers.drawing.charts import bars, heatmap, name_ticks, named
from helpers.drawing.colors import BLUE, CYCLE, GRAY_INK, GREEN, ORANGE, PINK, SIGNED
from helpers.drawing.style import SMALLEST, Picture, new_figure
from helpers.translator.evaluation import head_inputs

# How queries and keys are made: from a standard normal distribution, or as projections of standard normal tokens with
# the default initialization of nn.Linear or with torch.rand.
INITIALIZATIONS = ("variance 1", "nn.Linear", "torch.rand")
RULES = (
    ("not scaled", lambda d: 1.0, ORANGE, "o-"),
    ("divided by √$d_k$", math.sqrt, BLUE, "s-"),
    ("divided by $d_k$", float, GREEN, "^--"),
)


def random_scores(d_k: int, queries: int, keys: int, seed: int = 0) -> torch.Tensor:
    """Dot products (queries, keys) of standard normal queries and keys of width d_k; each query has its own keys."""
    q, k = queries_and_keys(d_k, queries, keys, seed=seed)
    return torch.einsum("nd,nkd->nk", q, k)


def queries_and_keys(d_k: int, queries: int, keys: int, init: str = "variance 1", width: int = 16, seed: int = 0):
    """Random queries (queries, d_k), and keys (queries, keys, d_k), which are different for each query; float64.

    init: one of INITIALIZATIONS. For the last two, tokens of this width are projected with random weights.
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    if init == "variance 1":
        return normal(queries, d_k), normal(queries, keys, d_k)
    x, y = normal(queries, width), normal(queries, keys, width)
    W_q, W_k = (torch.rand(d_k, width, generator=generator, dtype=torch.float64) for _ in range(2))
    if init == "nn.Linear":
        W_q, W_k = ((2 * W - 1) / width**0.5 for W in (W_q, W_k))  # uniform between -1/√width and 1/√width
    if d_k > 2 * width:  # the same dot products in fewer dimensions, those that the projections span
        W_q, W_k = torch.linalg.qr(torch.cat([W_q, W_k], dim=1)).R.split(width, dim=1)
    return x @ W_q.T, y @ W_k.T


def rotated(d_k: int, queries: int, keys: int):
    """Standard normal queries and keys of width d_k, rotated into w <= keys + 1 dimensions: (queries, w) and
    (queries, keys, w), float64.

    Only their lengths and angles matter here. Therefore each query and its keys can be rotated until they form a lower
    triangular matrix, with normal entries below the diagonal and the square root of a chi-squared variable on it.
    """
    rows = keys + 1
    if d_k <= rows:
        return queries_and_keys(d_k, queries, keys)
    generator = np.random.default_rng(0)
    diagonal = generator.chisquare([d_k - i for i in range(rows)], (queries, rows)) ** 0.5
    below = np.tril(generator.standard_normal((queries, rows, rows)), -1)
    triangle = torch.from_numpy(below) + torch.diag_embed(torch.from_numpy(diagonal))  # (queries, rows, rows)
    return triangle[:, 0], triangle[:, 1:]


def largest_derivative(scores: torch.Tensor) -> torch.Tensor:
    """Largest entry of the softmax Jacobian at scores (..., N), computed so that it is exact even where p is near 1."""
    e = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    total, others = e.sum(dim=-1), e.sum(dim=-1) - e.amax(dim=-1)
    return others / total**2


def query_gradient(scores: torch.Tensor, keys: torch.Tensor, divisor) -> torch.Tensor:
    """Size of ∂p/∂q, which is the Frobenius norm of JK/c, for p = softmax(s/c), scores s (..., N), keys (..., N, d_k).

    It is computed from the dot products of the keys, which avoids a tensor (..., N, d_k) for each divisor.
    """
    gram = keys @ keys.mT  # (..., N, N)
    p = torch.softmax(scores / divisor, dim=-1)
    # |k_i - mean|² = k_i·k_i - 2 k_i·mean + mean·mean, with mean = Σ p_j k_j
    to_mean = torch.einsum("...ij,...j->...i", gram, p)
    squares = gram.diagonal(dim1=-2, dim2=-1) - 2 * to_mean + (p * to_mean).sum(-1, keepdim=True)
    return (p**2 * squares.clamp(min=0)).sum(-1).sqrt() / torch.as_tensor(divisor, dtype=p.dtype).squeeze(-1)


def effective_tokens(weights: torch.Tensor) -> torch.Tensor:
    """The exponential of the entropy of weights (..., N): 1 if one token has all the weight, N if all have the same."""
    return torch.special.entr(weights).sum(dim=-1).exp()


def first_head(sentence: str):
    """The input (T, 64) of the first block of the translator's encoder, and W_q and W_k (16, 64) of its first head."""
    x, weights = head_inputs(sentence, 0, 0)
    return x, weights["W_q.weight"], weights["W_k.weight"]


def score_distributions(widths=(4, 16, 64, 256), pairs: int = 10_000) -> Picture:
    figure, axes = new_figure(7.4, 4.2, len(widths), 1, sharex=True)
    details = []
    for ax, d_k, color in zip(axes, widths, CYCLE, strict=False):
        scores = random_scores(d_k, pairs, 1).flatten()
        sd = float(scores.std())
        ax.hist(scores.numpy(), bins=100, range=(-50, 50), color=color, alpha=0.6)
        ax.plot([-sd, sd], [0, 0], color="black", lw=5, solid_capstyle="butt", clip_on=False)
        ax.text(0.01, 0.6, f"$d_k$ = {d_k}", va="center", fontsize=11, transform=ax.transAxes)
        ax.text(0.99, 0.6, f"standard deviation {sd:.1f}", va="center", ha="right", fontsize=10, transform=ax.transAxes)
        ax.set(yticks=[], xlim=(-50, 50))
        ax.spines["left"].set_visible(False)
        details.append(f"{sd:.1f} at width {d_k}")
    axes[-1].set_xlabel("dot product q · k   (black: one standard deviation to each side)")
    alt = "Histograms of dot products of random vectors, all centered at 0. The wider the vectors, the wider the "
    caption = "Figure 4.1. Dot products of random vectors. Four times the width doubles the standard deviation."
    return Picture(figure, alt + "histogram. Standard deviation " + ", ".join(details) + ".", caption)


def three_numbers(scores=(0.0, 1.0, 2.0), factors=(1, 3, 10)) -> Picture:
    figure, axes = new_figure(7.6, 2.8, 1, len(factors), sharey=True)
    details = []
    for ax, factor in zip(axes, factors, strict=True):
        larger = torch.tensor(scores, dtype=torch.float64) * factor
        weights = torch.softmax(larger, dim=0).tolist()
        names = [f"{s:g}" for s in larger.tolist()]
        bars(ax, names, weights, ".3f")
        ax.set(title=f"scores × {factor}" if factor > 1 else "scores", xlabel="score", ylim=(0, 1.12))
        details.append(f"scores {', '.join(names)} give {', '.join(f'{w:.3f}' for w in weights)}")
    axes[0].set_ylabel("weight")
    caption = "Figure 4.2. The order stays the same, but the largest score gets almost all of the weight."
    return Picture(figure, "Bar charts of softmax weights: " + "; ".join(details) + ".", caption)


def four_divisors(scores: torch.Tensor, tokens: list[str], d_k: int = 24) -> Picture:
    """The weights for one query's scores (T,) divided by 1, √d_k, d_k and 100, with the effective number of words."""
    names = ("divided by 1", f"divided by √{d_k}", f"divided by {d_k}", "divided by 100")
    divisors = (1, math.sqrt(d_k), d_k, 100)
    figure, axes = new_figure(8.6, 3.3, 1, 4, sharey=True)
    details = []
    for ax, name, c, color in zip(axes, names, divisors, (ORANGE, BLUE, GREEN, PINK), strict=True):
        weights = torch.softmax(scores / c, dim=0)
        bars(ax, tokens, weights, ".2f", across=True, color=color, height=0.8)
        words = float(effective_tokens(weights))
        title = f"{name}\neffectively {words:.1f} words"
        ax.set(xlim=(0, 1.3), xticks=[0, 0.5, 1], xlabel="weight")
        ax.set_title(title, fontsize=10)
        details.append(f"{name}: {named(tokens, weights)}; effectively {words:.1f} words")
    caption = "Figure 4.3. Attention weights of “is”, with its scores divided by four different constants."
    return Picture(figure, "Attention weights of one word. " + ". ".join(details) + ".", caption)


def two_jacobians() -> Picture:
    figure, axes = new_figure(7.4, 3.0, 1, 2)
    for ax, p in zip(axes, ((0.5, 0.25, 0.25), (0.98, 0.01, 0.01)), strict=True):
        vector = torch.tensor(p)
        jacobian = torch.diag(vector) - torch.outer(vector, vector)
        rows, columns = ["$p_1$", "$p_2$", "$p_3$"], ["$s_1$", "$s_2$", "$s_3$"]
        heatmap(ax, jacobian, rows, columns, cmap=SIGNED, vmin=-0.25, vmax=0.25, digits=4)
        ax.set(title=f"p = ({p[0]:g}, {p[1]:g}, {p[2]:g})", xlabel="score that changes")
    axes[0].set_ylabel("weight that responds")
    alt = "Two softmax Jacobians as heat maps. For p = 0.5, 0.25, 0.25 the diagonal is 0.2500, 0.1875, 0.1875, the "
    alt += "rest -0.1250 or -0.0625. For p = 0.98, 0.01, 0.01 all entries are small: 0.0196, 0.0099, 0.0099 on the "
    alt += "diagonal."
    return Picture(figure, alt, "Figure 4.4. The Jacobian of softmax, for balanced weights and near saturation.")


@functools.lru_cache(maxsize=4)
def medians_against_width(widths=(1, 4, 16, 64, 256, 1024), keys: int = 6, queries: int = 10_000):
    """{rule: (median largest derivative, median |∂p/∂q|, mean |∂p/∂q|)}, each a list over the widths; unit variance."""
    results = {name: ([], [], []) for name, *_ in RULES}
    for d in widths:
        q, K = rotated(d, queries, keys)
        scores = torch.einsum("nd,nkd->nk", q, K)
        for name, divisor, *_ in RULES:
            derivatives, medians, means = results[name]
            sizes = query_gradient(scores, K, divisor(d))
            derivatives.append(float(largest_derivative(scores / divisor(d)).median()))
            medians.append(float(sizes.median()))
            means.append(float(sizes.mean()))
    return results


def gradients_against_width(widths=(1, 4, 16, 64, 256, 1024)) -> Picture:
    figure, (left, right) = new_figure(8.6, 3.8, 1, 2)
    results = medians_against_width(widths)
    details = []
    for name, _, color, style in RULES:
        derivatives, sizes, _ = results[name]
        left.plot(widths, derivatives, style, color=color, label=name)
        right.plot(widths, sizes, style, color=color, label=name)
        listed = ", ".join(f"{h:.2g} at {d}" for d, h in zip(widths, sizes, strict=True))
        derivative = f"largest derivative {derivatives[-1]:.2g} at width {widths[-1]}"
        details.append(f"{name.replace('$', '')}: {derivative}, size of ∂p/∂q {listed}")
    left.axhline(0.25, color="gray", lw=1, ls=":")
    left.text(widths[0], 0.32, "1/4, the maximum", fontsize=SMALLEST, color=GRAY_INK)
    left.set_title("largest derivative of softmax")
    right.set_title("gradient at the query: size of ∂p/∂q")
    for ax in (left, right):
        ax.set(xscale="log", yscale="log", ylim=(1e-5, 3), xlabel="width $d_k$")
        name_ticks(ax, x=widths)
    left.legend(frameon=False, loc="lower left")
    caption = "Figure 4.5. Medians over 10,000 queries. Only the square root makes the line on the right flat."
    return Picture(figure, "Two charts against the width. " + "; ".join(details) + ".", caption)


def initializations_against_width(widths=(4, 16, 64, 256, 1024), keys: int = 8, queries: int = 300) -> Picture:
    figure, axes = new_figure(8.6, 3.4, 1, 2, sharey=True)
    names = {"variance 1": "entries of variance 1", "nn.Linear": "nn.Linear", "torch.rand": "torch.rand (all positive)"}
    details = []
    for init, color, marker in zip(INITIALIZATIONS, (ORANGE, GREEN, PINK), "os^", strict=True):
        lines = ([], [])
        for d in widths:
            q, K = queries_and_keys(d, queries, keys, init)
            scores = torch.einsum("nd,nkd->nk", q, K)
            for line, c in zip(lines, (1, math.sqrt(d)), strict=True):
                line.append(float(torch.softmax(scores / c, dim=-1).amax(-1).mean()))
        for ax, line in zip(axes, lines, strict=True):
            ax.plot(widths, line, marker=marker, color=color, label=names[init])
        raw, divided = (", ".join(f"{w:.2f}" for w in line) for line in lines)
        details.append(f"{names[init]}: not scaled {raw}; divided {divided}")
    for ax, title in zip(axes, ("not scaled", "divided by √$d_k$"), strict=True):
        ax.axhline(1 / keys, color="gray", lw=1, ls=":")
        ax.set(xscale="log", ylim=(0, 1.05), xlabel="width $d_k$", title=title)
        name_ticks(ax, x=widths)
    axes[0].text(widths[0], 0.05, "1/8, all equal", fontsize=SMALLEST, color=GRAY_INK)
    axes[0].set_ylabel("largest of 8 weights (mean)")
    axes[1].legend(frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.58))
    alt = f"Largest of eight attention weights against the widths {', '.join(map(str, widths))}. {'; '.join(details)}."
    caption = "Figure 4.6. Three initializations. The division removes the dependence on the width for two of them."
    return Picture(figure, alt, caption)
