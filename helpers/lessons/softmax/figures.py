"""Figures of lesson 6: exponentials, the axis of a softmax, its logarithm and gradients, and online softmax."""

import math

import torch

from helpers.drawing.charts import bars, named, weight_map
from helpers.drawing.colors import BLUE, CYCLE, GREEN, ORANGE, PINK, SKY
from helpers.drawing.style import SMALLEST, Picture, new_figure

WORDS = ("jane", "visits", "africa")


def _list(values, digits: int = 3) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)


def from_scores_to_weights(exponentials=(1, 2, 5)) -> Picture:
    names = [f"ln {e}" for e in exponentials]
    scores, weights = [math.log(e) for e in exponentials], [e / sum(exponentials) for e in exponentials]
    figure, (left, right) = new_figure(8.0, 3.2, 1, 2)
    x = torch.linspace(-2, 2, 101)
    left.plot(x, x.exp(), color="gray")
    left.plot(scores, exponentials, "o", color=BLUE, ms=8)
    for name, s, e in zip(names, scores, exponentials, strict=True):
        left.annotate(f"{name} → {e}", (s, e), (-10, 4), textcoords="offset points", ha="right")
    left.set(xlabel="score", ylabel="exponential", title="positive, and the order is preserved", ylim=(0, 7.5))
    words, texts = map("{}\n{}".format, WORDS, names), [f"{e}/{sum(exponentials)}" for e in exponentials]
    bars(right, list(words), weights, texts, ylabel="attention weight", ylim=(0, 0.75), title="divided by their sum")
    alt = f"Left: the curve of the exponential, with the scores {', '.join(names)} marked at the heights "
    alt += f"{', '.join(map(str, exponentials))}. Right: bars of their attention weights, {_list(weights)}."
    caption = "Figure 6.1. The exponential makes scores positive and keeps their order. Dividing by the sum makes "
    caption += "weights."
    return Picture(figure, alt, caption)


def where_exp_works() -> Picture:
    formats = [("float16", torch.float16), ("bfloat16", torch.bfloat16), ("float32", torch.float32)]
    figure, ax = new_figure(7.4, 2.9)
    details, float64 = [], f"from {math.log(torch.finfo(torch.float64).tiny):.1f} to 709.8"
    for row, (name, dtype) in enumerate(formats):
        low, high = math.log(torch.finfo(dtype).tiny), math.log(torch.finfo(dtype).max)
        ax.barh(row, high - low, left=low, color=SKY, height=0.55)
        ax.text(low - 2, row, f"{low:.1f}".replace("-", "−"), ha="right", va="center")
        ax.text(high + 2, row, f"{high:.1f}", ha="left", va="center")
        details.append(f"{name} from {low:.1f} to {high:.1f}")
    ax.set_yticks(range(len(formats)), [name for name, _ in formats])
    ax.invert_yaxis()
    ax.text(-85, 0, "exp underflows", ha="center", va="center", color="dimgray")
    ax.text(85, 0, "exp overflows", ha="center", va="center", color="dimgray")
    ax.set(xlim=(-150, 150), xlabel="score s for which exp(s) keeps full precision")
    ax.set_title(f"float64: {float64}", fontsize=11, loc="right")
    alt = "Bars of the scores whose exponential fits into a number format: "
    alt += f"{', '.join(details)}; float64 has {float64}."
    return Picture(figure, alt, "Figure 6.2. The scores whose exponential has full precision in three number formats.")


def three_axes(scores: torch.Tensor, tokens: list[str]) -> Picture:
    tables = [
        ("dim=-1, over keys", torch.softmax(scores, dim=-1)),
        ("dim=-2, over queries", torch.softmax(scores, dim=-2)),
        ("over all entries", torch.softmax(scores.flatten(), dim=0).reshape(scores.shape)),
    ]
    figure, axes = new_figure(8.6, 3.3, 1, 3)
    details = []
    for ax, (name, table) in zip(axes, tables, strict=True):
        size, rows, columns = len(table), table.sum(-1).tolist(), table.sum(-2).tolist()
        weight_map(ax, table, tokens, title=name, xlim=(-0.5, size + 0.15), ylim=(size + 0.05, -0.5))
        for i, (across, down) in enumerate(zip(rows, columns, strict=True)):
            _sum_text(ax, size - 0.42, i, across, "left")
            _sum_text(ax, i, size - 0.2, down, "center")
        ax.xaxis.tick_top()
        details.append(f"{name}: rows sum to {_list(rows, 2)}, columns to {_list(columns, 2)}")
    axes[0].set(ylabel="query", xlabel="key; sums at right and below")
    alt = "Three softmaxes of the scores of three words. " + "; ".join(details) + "."
    return Picture(figure, alt, "Figure 6.3. One table of scores and three softmaxes. Sums of 1 are bold.")


def _sum_text(ax, x, y, total, side):
    """Write the sum of a row or column, in bold if it is 1."""
    look = {"color": BLUE, "weight": "bold"} if abs(total - 1) < 0.005 else {"color": "dimgray"}
    ax.text(x, y, f"{total:.2f}", ha=side, va="center", **look)


def before_and_after(table: torch.Tensor, tokens: list[str]) -> Picture:
    weights = torch.softmax(table, dim=-1)
    figure, (left, right) = new_figure(8.6, 3.3, 1, 2)
    weight_map(left, table, tokens, title="table from the notes", xlabel="key", ylabel="query")
    weight_map(right, weights, tokens, digits=3, title="softmax of its rows", xlabel="key")
    rows = "; ".join(f"{token} {_list(row)}" for token, row in zip(tokens, weights.tolist(), strict=True))
    alt = f"Left: the table of similarities, diagonal 1. Right: the softmax of its rows, much more even: {rows}."
    return Picture(figure, alt, "Figure 6.9. The table from the notes and the softmax of its rows.")


def right_and_wrong_axis(right: torch.Tensor, wrong: torch.Tensor) -> Picture:
    """Causal weights (T, T) from a softmax over keys and from one over queries, with the sums of their rows."""
    figure, axes = new_figure(8.6, 3.9, 1, 2)
    names = ("over keys (dim=-1)", "over queries (dim=-2)")
    for ax, name, weights in zip(axes, names, (right, wrong), strict=True):
        weight_map(ax, weights, mask=torch.ones_like(weights).tril() > 0)
        for i, total in enumerate(weights.sum(-1).tolist()):
            _sum_text(ax, weights.shape[1] - 0.4, i, total, "left")
        ax.text(weights.shape[1] - 0.4, -0.75, "sums", ha="left", color="dimgray")
        ax.set(title=name, xlabel="key", ylabel="query", xlim=(-0.5, weights.shape[1] + 0.4))
    alt = "Two lower triangles of weights of 8 tokens. Softmax over keys: every row sums to 1. Softmax over queries: "
    alt += f"the rows sum to {_list(wrong.sum(-1).tolist(), 2)}; the columns sum to 1."
    caption = "Figure 6.7. Causal weights of eight tokens. Softmax over keys is right; over queries it leaks the "
    caption += "future."
    return Picture(figure, alt, caption)


def temperatures(softmax_with_temperature, entropy, scores: torch.Tensor, tokens: list[str]) -> Picture:
    """The weights for scores (T,) and their entropy at many temperatures, computed with the given functions."""
    temperatures = torch.logspace(-1, 3, 401)
    weights = torch.stack([softmax_with_temperature(scores, t) for t in temperatures.tolist()])  # (401, T)
    entropies = entropy(weights)  # (401,)
    rise = (entropies[2:] - entropies[:-2]) / (temperatures[2:] / temperatures[:-2]).log()
    steepest = temperatures[int(rise.argmax()) + 1]
    figure, (left, right) = new_figure(8.6, 3.4, 1, 2)
    for token, line, color in zip(tokens, weights.T, CYCLE * 2, strict=False):
        left.plot(temperatures, line, color=color, label=token)
    left.set(ylabel="weight", ylim=(-0.03, 1.05))
    left.legend(frameon=False, fontsize=SMALLEST)
    largest = math.log(len(tokens))
    right.plot(temperatures, entropies, color=BLUE)
    right.axhline(largest, color="gray", ls=":")
    right.text(0.12, largest + 0.03, f"ln {len(tokens)} = {largest:.2f}", fontsize=SMALLEST, va="bottom")
    right.set(ylabel="entropy (nats)", ylim=(-0.08, largest + 0.3))
    for ax in (left, right):
        ax.axvline(math.sqrt(24), color="gray", lw=1, ls="--", label="√24")
        ax.set(xscale="log", xlabel="temperature (dashed: √24)")
        ax.minorticks_off()
    listed = ", ".join(f"{entropies[i]:.2f} at {temperatures[i]:.3g}" for i in (0, 100, 200, 300, 400))
    alt = f"Left: the weights of {', '.join(tokens)} against the temperature; one has everything at low temperatures, "
    alt += f"all are equal at high ones. Right: entropy, {listed}, steepest at {steepest:.1f}; at most {largest:.2f}."
    return Picture(figure, alt, "Figure 6.4. Six attention weights and their entropy at temperatures from low to high.")


def log_of_softmax() -> Picture:
    """The float32 log-probability of a token whose score is below the maximum: exact, log(softmax), with an epsilon."""
    gaps = torch.arange(0.0, 161.0)
    x = torch.stack([torch.zeros_like(gaps), -gaps], dim=-1)  # (gaps, 2): the maximum, the token below it
    probability = torch.softmax(x, dim=-1)[:, 1]
    exact, direct, patched = torch.log_softmax(x, dim=-1)[:, 1], probability.log(), (probability + 1e-9).log()
    last = int(gaps[direct.isfinite()][-1])
    figure, ax = new_figure(7.2, 3.8)
    ax.plot(gaps, exact, color=BLUE, lw=5, alpha=0.35, label="(x − m) − log Σ exp(x − m)")
    ax.plot(gaps, direct, color=ORANGE, label=f"log(softmax(x)): −inf from a gap of {last + 1} on")
    ax.plot(gaps, patched, color=GREEN, ls="--", label="log(softmax(x) + 1e-9): never below −20.7")
    ax.plot([last], [direct[last]], "x", color=ORANGE, ms=10, mew=2.5)
    ax.set(xlabel="points below the maximum", ylabel="log-probability (float32)")
    ax.legend(frameon=False, fontsize=10, loc="lower left")
    alt = "The log-probability of a token against the distance of its score from the maximum. The stable form falls in "
    alt += f"a straight line to -160. log(softmax) ends at a distance of {last}, then is minus infinity. With an "
    alt += "epsilon of 1e-9 the curve turns flat at -20.7 from a distance of about 20."
    return Picture(figure, alt, "Figure 6.5. The logarithm of a small probability, computed in three ways.")


def push_and_pull() -> Picture:
    p, g = torch.tensor([1 / 8, 1 / 4, 5 / 8]), torch.tensor([4.0, 0.0, 0.0])
    average = float((p * g).sum())
    steps = [
        ("gradient g at the weights", g),
        (f"minus the average {average:g}", g - average),
        ("times p: gradient at the scores", p * (g - average)),
    ]
    figure, axes = new_figure(8.6, 3.0, 1, 3)
    names = [f"{word}\n{v:g}" for word, v in zip(WORDS, p.tolist(), strict=True)]
    details = []
    for ax, (name, values), color in zip(axes, steps, (PINK, SKY, BLUE), strict=True):
        bars(ax, names, values, ".4g", color=color)
        ax.axhline(0, color="gray", lw=1)
        ax.margins(y=0.2)
        ax.set_title(name, fontsize=11)
        details.append(f"{name}: {', '.join(f'{v:.4g}' for v in values.tolist())}")
    caption = "Figure 6.6. From the gradient at the weights to the gradient at the scores, in three steps."
    return Picture(figure, f"Bars for p = {_list(p.tolist())}. " + "; ".join(details) + ".", caption)


def prediction_minus_truth() -> Picture:
    words, p, truth = ("est", "regarde", "visite"), torch.tensor([1 / 8, 1 / 4, 5 / 8]), torch.tensor([0.0, 0.0, 1.0])
    steps = [("prediction", p, BLUE), ("truth", truth, GREEN), ("prediction − truth", p - truth, ORANGE)]
    figure, axes = new_figure(8.6, 2.8, 1, 3, sharey=True)
    details = []
    for ax, (name, values, color) in zip(axes, steps, strict=True):
        bars(ax, words, values, ".3g", color=color)
        ax.axhline(0, color="gray", lw=1)
        ax.set(title=name, ylim=(-0.55, 1.2))
        details.append(f"{name}: {named(words, values, '.3g')}")
    caption = "Figure 6.8. The gradient at the logits. A step against it lowers the other words and raises the target."
    return Picture(figure, "Three bar charts. " + "; ".join(details) + ".", caption)


def online_states(scores: torch.Tensor, values: torch.Tensor, block: int) -> list[tuple[float, float, float]]:
    """The state of online softmax after each block of scores (T,): maximum m, sum ℓ, and weighted sum of values o."""
    states, maximum, total, out = [], -math.inf, 0.0, 0.0
    for s, v in zip(scores.split(block), values.split(block), strict=True):
        new_maximum = max(maximum, float(s.max()))
        e = (s - new_maximum).exp()
        shrink = math.exp(maximum - new_maximum)
        total, out, maximum = total * shrink + float(e.sum()), out * shrink + float((e * v).sum()), new_maximum
        states.append((maximum, total, out))
    return states
