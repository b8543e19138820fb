"""Figures of lesson 12: the cost of each token, n-grams, the ladder, training, induction heads, dropout, compute."""

import functools
import math

import numpy as np
import torch
import torch.nn.functional as F
from numpy.lib.stride_tricks import sliding_window_view
from torch import nn

from helpers import corpus
from helpers.drawing.charts import bars, frame_cells, name_ticks, named, run_bars, weight_map
from helpers.drawing.colors import BLACK, BLUE, GRAY_INK, GREEN, INK, ORANGE, PINK, RED, RED_INK, SKY
from helpers.drawing.measured import measured
from helpers.drawing.style import Picture, new_figure, text_picture
from helpers.translator.evaluation import attention_weights

LADDER, COMPUTE = measured("language_model", "ladder"), measured("language_model", "compute")
DROPOUT = measured("language_model", "dropout")
LINE = "#333333"
TOKENS = 16 * 64  # per step of the lesson's training run
SHOWN = "Bqrzqb.([]{()}).|rwty|rwty."  # a sentence of each kind
ORDERS = (1, 2, 3, 4, 5, 6)  # of n-grams
ALPHAS = (1.0, 0.1, 0.01)
KIND_COLORS = {
    "a new letter": SKY,
    "a repeated letter": RED,
    "a verb": GREEN,
    "a closing bracket": PINK,
    "the rest": "#8C8C8C",
}
EXAMPLE = "|qtwz|qtwz."  # the text of the figures about induction heads


def _entropy_line(ax, value: float) -> None:
    ax.axhline(value, color=LINE, lw=1.4, ls=(0, (5, 3)), zorder=1)
    style = {"xytext": (0, 2), "textcoords": "offset points", "ha": "right", "va": "bottom", "fontsize": 10}
    ax.annotate(f"entropy line {value:.2f}", (0.995, value), xycoords=ax.get_yaxis_transform(), **style)


def one_text() -> Picture:
    from helpers.corpus.source import Source

    source = Source()
    nats = source.nats(source.encode(SHOWN)).abs().tolist()
    figure, ax = new_figure(8.4, 2.6)
    bars(ax, SHOWN, nats, [f"{value:.1f}" if value else "" for value in nats], width=0.7)
    ax.tick_params(axis="x", length=0, labelsize=12)
    ax.set(ylabel="−log p, nats", ylim=(0, 4.2), xlim=(-0.7, len(SHOWN) - 0.3))
    described = named(SHOWN, nats)
    alt = f"Bars over the tokens of three sentences: what each costs in nats. {described}. "
    alt += f"The mean is {np.mean(nats):.2f}."
    caption = "Figure 12.1. What each token costs a model that knows the rules. No bar: the token was certain."
    return Picture(figure, alt, caption)


def count_loss(train: torch.Tensor, test: torch.Tensor, order: int, vocab_size: int, alpha: float) -> float:
    """The n-gram loss of exercise 12.6, computed by sorting instead of dictionaries, for orders up to 12."""

    def counts(length):
        """How often the first `length` tokens of each window of the test text occur in the training text."""
        powers = vocab_size ** np.arange(length, dtype=np.int64)
        windows = (sliding_window_view(np.asarray(ids, dtype=np.int64), order)[:, :length] for ids in (train, test))
        train_codes, test_codes = (window @ powers for window in windows)
        codes, number = np.unique(train_codes, return_counts=True)
        at = np.searchsorted(codes, test_codes).clip(0, len(codes) - 1)
        return np.where(codes[at] == test_codes, number[at], 0)

    return float(-np.log((counts(order) + alpha) / (counts(order - 1) + alpha * vocab_size)).mean())


@functools.lru_cache(maxsize=1)
def counted() -> dict[int, float]:
    """The loss of each n-gram order with the best of three alphas, counted in 280,000 tokens and tested on 20,000."""
    text, V = corpus.language_text(), len(corpus.language_symbols())
    train, test = text[:280_000], text[280_000:]
    return {order: min(count_loss(train, test, order, V, alpha) for alpha in ALPHAS) for order in ORDERS}


def ngram_losses() -> Picture:
    losses, line = counted(), corpus.entropy_rate()
    figure, ax = new_figure(7.4, 3.4)
    ax.plot(list(losses), list(losses.values()), "o-", color=BLUE, lw=2)
    best = min(losses, key=losses.get)
    for order, loss in losses.items():  # the side without the curve, which falls up to the best order and then rises
        side = "left" if order < best else "right" if order > best else "center"
        ax.text(order, loss + 0.06, f"{loss:.2f}", ha=side, fontsize=10)
    _entropy_line(ax, line)
    ax.set_xticks(ORDERS, ["1\nunigram", "2\nbigram", *map(str, ORDERS[2:])])
    ax.set(xlabel="order: tokens in each count", ylabel="nats per token", ylim=(1.2, max(losses.values()) + 0.3))
    described = ", ".join(f"order {order} {loss:.2f}" for order, loss in losses.items())
    alt = f"Losses of n-gram models in nats per token: {described}. The best, order {best}, is "
    alt += f"{losses[best] - line:.2f} above the entropy line of {line:.2f}."
    caption = "Figure 12.2. n-gram models on the language of this lesson. From order 4 on, the loss rises."
    return Picture(figure, alt, caption)


def ladder() -> Picture:
    """Models from a bigram table to a GPT, as `python -m bench.ladder` measured them."""
    line, rungs = LADDER["line"], LADDER["rungs"]
    means = {name: sum(values) / len(values) for name, values in rungs.items()}
    figure, ax = new_figure(8.2, 3.4)
    run_bars(ax, rungs, line, ["#9BB7CB", *[BLUE] * (len(rungs) - 1)])
    previous, described = None, []
    for i, (name, values) in enumerate(rungs.items()):
        gain = "" if previous is None else f"   −{previous - means[name]:.2f}"
        ax.text(max(values) + 0.02, i, f"{means[name]:.2f}", va="center", fontsize=10.5)
        ax.text(max(values) + 0.09, i, gain, va="center", fontsize=10.5, color=GRAY_INK)
        extent = f", from {min(values):.3f} to {max(values):.3f}" if len(values) > 1 else ""
        described.append(f"{name} {means[name]:.3f}{extent}")
        previous = means[name]
    ax.axvline(line, color=LINE, lw=1.4, ls=(0, (5, 3)))
    ax.text(line + 0.01, len(rungs) - 0.42, f"entropy line {line:.2f}", fontsize=10, va="top")
    ax.set(xlabel="nats per token on unseen text", xlim=(line - 0.03, max(means.values()) + 0.2))
    ax.set_ylim(len(rungs) - 0.1, -0.6)
    alt = f"Six models, mean loss in nats per token: {'; '.join(described)}. "
    alt += f"The entropy line of that text is {line:.3f}."
    caption = "Figure 12.8. From a bigram table to a full block. Dots: single runs. Gray: change from the model above."
    return Picture(figure, alt, caption)


def training(watch) -> Picture:
    if not watch.steps:
        words = "No curves to show, because the weights came from a file without them. Delete the file to train again."
        return text_picture(words, "Figure 12.3. A training run, by kind of token.")
    figure, (left, right) = new_figure(8.4, 4.2, columns=2)
    left.plot(watch.steps, watch.whole, color=BLUE, lw=2.2)
    left.axhline(watch.line, color=LINE, lw=1.4, ls=(0, (5, 3)), zorder=1)
    left.text(0, watch.line - 0.03, f"entropy line {watch.line:.2f}", va="top", fontsize=10)
    left.set(xlabel="steps", ylabel="nats per token, unseen passages", title="all tokens", ylim=(1.2, None))
    for kind, losses in watch.losses.items():
        right.plot(watch.steps, losses, color=KIND_COLORS[kind], lw=2, label=kind)
    if max(watch.induction) > 0:
        style = {"color": BLACK, "lw": 1.6, "ls": ":", "label": "attention weight of the induction head"}
        right.plot(watch.steps, watch.induction, **style)
    right.set(xlabel="steps", title="by kind of token", ylim=(0, 3.6))
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=10)
    last = ", ".join(f"{kind} {losses[-1]:.2f}" for kind, losses in watch.losses.items())
    repeated = list(zip(watch.steps, watch.losses["a repeated letter"], strict=True))
    plateau = repeated[min(5, len(repeated) - 1)][1]  # the loss after about 100 steps
    fall = [next((s for s, x in repeated if x < part * plateau), watch.steps[-1]) for part in (0.75, 0.25)]
    alt = f"Loss over {watch.steps[-1]} steps: from {watch.whole[0]:.2f} to {watch.whole[-1]:.3f} nats per token, the "
    alt += f"line of these passages is {watch.line:.3f}. At the end: {last}. The loss of repeated letters falls "
    alt += f"between steps {fall[0]} and {fall[1]}; the strongest head then puts {watch.induction[-1]:.2f} of its "
    alt += "weight on the token after the previous occurrence."
    caption = "Figure 12.3. A training run, total loss and by kind of token. Dotted: attention to the token to repeat."
    return Picture(figure, alt, caption)


def induction_by_hand() -> Picture:
    T = len(EXAMPLE)
    first, second = torch.zeros(2, T, T)
    for t in range(T):
        first[t, max(t - 1, 0)] = 1
        keys = [j for j in range(1, t + 1) if EXAMPLE[j - 1] == EXAMPLE[t]] or list(range(t + 1))
        second[t, keys] = 1 / len(keys)
    figure = _two_heads(first, second)
    pairs = ((EXAMPLE[t], t, EXAMPLE[t - 4], t - 4) for t in range(5, 9))
    described = ", ".join(f"{a} at position {t} attends to {b} at position {s}" for a, t, b, s in pairs)
    alt = f"Attention of two heads over {EXAMPLE}. In the first each token attends to the previous one. "
    alt += f"In the second, {described}, each time the token that came next the first time."
    return Picture(figure, alt, "Figure 12.5. An induction head set by hand, in two layers.")


def _two_heads(first, second):
    """A figure with the attention weights (T, T) of both layers over EXAMPLE."""
    figure, (left, right) = new_figure(8.4, 4.2, columns=2)
    _causal_map(left, first, EXAMPLE, "layer 0: the previous token")
    _causal_map(right, second, EXAMPLE, "layer 1: what followed it before")
    return figure


def _causal_map(ax, weights, text: str, title: str) -> None:
    """Draw attention weights (T, T) under a causal mask over the letters of a text."""
    mask, letters = torch.ones_like(weights).tril().bool(), list(text)
    weight_map(ax, weights, letters, mask=mask, numbers=False, title=title, xlabel="keys", ylabel="queries")


def induction_from_weights(answer) -> Picture:
    """The attention of the two layers of exercise 12.7 over EXAMPLE, computed from their weights."""
    caption = "Figure 12.11. The attention of the two layers that you set by hand, on the text of figure 12.5."
    symbols, T = sorted(set(EXAMPLE)), len(EXAMPLE)
    try:
        layers = answer(len(symbols), T)
    except NotImplementedError:
        return text_picture("Your two layers are drawn here once exercise 12.7 is answered.", caption)
    V = len(symbols)
    x = torch.zeros(T, 3 * V + T)
    x[torch.arange(T), [symbols.index(token) for token in EXAMPLE]] = 1.0
    x[torch.arange(T), V + torch.arange(T)] = 1.0
    weights = []
    for W_q, W_k, W_v in layers:
        scores = (x @ W_q.T) @ (x @ W_k.T).T / W_q.shape[0] ** 0.5  # (T, T)
        weights.append(torch.softmax(scores.masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf), dim=-1))
        x = x + weights[-1] @ (x @ W_v.T)  # (T, C)
    predicted = x[:, -V:].argmax(dim=-1).tolist()
    right = sum(symbols[predicted[t]] == EXAMPLE[t + 1] for t in range(5, 9))
    words = ", ".join(f"after {EXAMPLE[: t + 1]} they predict {symbols[predicted[t]]}" for t in range(5, 9))
    figure = _two_heads(*weights)
    figure.suptitle(f"{right} of 4 repeated letters are predicted correctly", fontsize=11)
    return Picture(figure, f"Attention of two layers that were set by hand, over {EXAMPLE}: {words}.", caption)


def ablated_heads(model, watch) -> Picture:
    from helpers.lessons.language_model.watch import AGAIN, ablated, heads_of

    caption = "Figure 12.9. Loss on repeated letters with one head ablated at a time. Red: the strongest induction "
    caption += "head."
    heads = heads_of(model)
    if not heads:
        return text_picture("No head to ablate, because no part of this model has W_o and num_heads.", caption)
    names = [f"layer {layer}, head {head}" for layer, head in heads]
    complete, above = watch.above(model)[AGAIN], []
    for layer, head in heads:
        with ablated(model, layer, head):
            above.append(watch.above(model)[AGAIN])
    best = watch.best_head(model)
    figure, ax = new_figure(8.0, 0.9 + 0.42 * (len(heads) + 1))
    colors = ["#9BB7CB", *(RED if head == best else BLUE for head in heads)]
    bars(ax, ["none", *names], [complete, *above], ".2f", across=True, color=colors)
    ax.set(xlabel="nats above the line, repeated letters", ylabel="ablated", xlim=(0, max(above) * 1.12 + 0.1))
    described = named(names, above)
    alt = f"Repeated letters are {complete:.2f} nats above the line; with one head ablated: {described}. The strongest "
    alt += f"induction head is layer {best[0]}, head {best[1]}."
    return Picture(figure, alt, caption)


def grown_induction_head(model, watch) -> Picture:
    symbols = corpus.language_symbols()
    text = ".|zqvtsx|zqvtsx."
    ids = torch.tensor([[symbols.index(token) for token in text]])
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device
    with torch.no_grad(), attention_weights(model) as weights:
        p = torch.softmax(model(ids.to(device))[0].float().cpu(), dim=-1)  # (T, V)
    model.train(was_training)
    if not weights:
        words = "No attention to show, because no part of this model returns its attention weights."
        return text_picture(words, "Figure 12.6. The strongest induction head of the trained model.")
    layer, best = watch.best_head(model)
    heads = weights[layer][1][0].cpu()  # (H, T, T)
    order = sorted(range(len(heads)), key=lambda head: head != best)[:2]  # the strongest first
    figure, axes = new_figure(8.4, 4.4, columns=len(order), squeeze=False)
    pairs, described = [(t, t - 6) for t in range(8, 14)], []
    least = min(float(p[t, ids[0, t + 1]]) for t, _ in pairs)
    figure.suptitle(f"the correct letter gets a probability of {least:.2f} or more each time", fontsize=11)
    for ax, head in zip(axes[0], order, strict=True):
        table = heads[head]  # (T, T)
        _causal_map(ax, table, text, f"layer {layer}, head {head}")
        frame_cells(ax, pairs, RED_INK, 1.8)
        mean = sum(float(table[t, j]) for t, j in pairs) / len(pairs)
        cells = ", ".join(f"{text[t]} to {text[j]} {float(table[t, j]):.2f}" for t, j in pairs)
        described.append(f"head {head}: {cells}; {mean:.2f} on average")
    alt = f"Attention in layer {layer} over {text}. Framed, the token after the previous occurrence. "
    alt += f"{'. '.join(described)}. The correct letter gets a probability of {least:.2f} or more each time."
    caption = "Figure 12.6. Two heads of the trained model, the strongest induction head first. Framed: the token to "
    caption += "copy."
    return Picture(figure, alt, caption)


def dropout() -> Picture:
    """Losses on the training text and on unseen text by dropout rate, as `python -m bench.dropout` measured them."""
    figure, ax = new_figure(7.4, 3.2)
    described = []
    for kind, label, color, side in (("seen", "training text", GRAY_INK, -0.2), ("unseen", "unseen text", BLUE, 0.2)):
        means = [np.mean(runs[kind]) for runs in DROPOUT["rates"].values()]
        centers = [i + side for i in range(len(means))]
        ax.bar(centers, means, width=0.36, color=color, label=label)
        for x, value, runs in zip(centers, means, DROPOUT["rates"].values(), strict=True):
            ax.plot([x] * len(runs[kind]), runs[kind], "o", ms=4, color="white", mec=BLACK, mew=0.8)
            ax.text(x, 0.08, f"{value:.2f}", ha="center", fontsize=10, color="white")
        rates = ", ".join(f"{value:.2f} at {p}" for p, value in zip(DROPOUT["rates"], means, strict=True))
        described.append(f"{label}: {rates}")
    _entropy_line(ax, DROPOUT["line"])
    ax.set_xticks(range(len(DROPOUT["rates"])), list(DROPOUT["rates"]))
    ax.set(xlabel="dropout rate", ylabel="nats per token", ylim=(0, 2.2), xlim=(-0.5, 3.1))
    figure.legend(frameon=False, fontsize=10, loc="outside upper left", ncols=2)
    alt = f"Mean loss of three runs in nats per token by dropout rate. {'; '.join(described)}."
    return Picture(figure, alt, "Figure 12.10. Dropout on a training text of 20,000 tokens. Dots: single runs.")


def full_size(run) -> Picture:
    figure, ax = new_figure(7.4, 3.2)
    for label, losses, color in (("training", run.training, GRAY_INK), ("validation", run.validation, BLUE)):
        ax.plot(run.steps, losses, "o-", ms=4, lw=2, color=color, label=label)
    lowest = run.validation[run.best]
    ax.annotate(f"best {lowest:.2f}", (run.steps[run.best], lowest), (0, 14), textcoords="offset points", ha="center")
    ax.set(xlabel="steps", ylabel="nats per character", xlim=(0, None))
    ax.legend(frameon=False, fontsize=10)
    alt = f"Loss in nats per character over {run.steps[-1]} steps. Training: from {run.training[0]:.2f} to "
    alt += f"{run.training[-1]:.2f}. Validation: from {run.validation[0]:.2f} to {run.validation[-1]:.2f}, with the "
    alt += f"lowest, {lowest:.2f}, at step {run.steps[run.best]}."
    size = f"{run.parameters / 1e6:.1f} million parameters"
    return Picture(figure, alt, f"Figure 12.13. A GPT of {size} learns tiny Shakespeare ({run.device}).")


def compute(model, watch) -> Picture:
    """Nats above the entropy line against multiply-adds, three per parameter and token, of three sizes and `model`."""
    figure, ax = new_figure(8.2, 4.0)
    described = []
    for (width, curve), color in zip(COMPUTE.items(), (PINK, GREEN, BLUE), strict=True):
        ax.plot(curve["spent"], curve["above"], color=color, lw=2.2)
        start = (curve["spent"][0], 1.08 * curve["above"][0])
        ax.annotate(f"width {width}", start, va="bottom", fontsize=10.5, color=INK.get(color, color))
        end = f"{curve['above'][-1]:.3f} after {curve['spent'][-1]:,.0f} billion"
        described.append(f"width {width}, {curve['parameters']:,} parameters: {end}")
    if watch.steps:
        parameters = sum(p.numel() for p in model.parameters())
        spent = [3 * parameters * step * TOKENS / 1e9 for step in watch.steps]
        above = [loss - watch.line for loss in watch.whole]
        ax.plot(spent[1:], above[1:], color=BLACK, lw=1.4, ls=":", label="the training run above")
        end = f"{above[-1]:.3f} after {spent[-1]:,.0f} billion"
        described.append(f"the training run above, {parameters:,} parameters: {end}")
        ax.legend(frameon=False, fontsize=10, loc="lower left")
    best = min(counted().values()) - corpus.entropy_rate()
    ax.axhline(best, color=LINE, lw=1.2, ls=(0, (5, 3)))
    ax.text(0.99, best * 1.06, f"best n-gram {best:.2f}", transform=ax.get_yaxis_transform(), ha="right", fontsize=10)
    ax.set(xscale="log", yscale="log", xlabel="billion multiply-adds", ylabel="nats above the entropy line")
    name_ticks(ax, y=(0.02, 0.05, 0.1, 0.2, 0.5, 1, 2))
    ax.set_ylim(None, 3.0)  # room for the names
    return Picture(
        figure,
        "Nats per token above the entropy line, against billions of multiply-adds, both on logarithmic scales. "
        + "; ".join(described)
        + f". The best n-gram is {best:.2f} above the line.",
        "Figure 12.12. Loss against compute for three widths of one GPT. The narrow model is ahead at first.",
    )


class _Small(nn.Module):
    """One pre-norm block under a causal mask, with learned positions."""

    def __init__(self, vocab_size: int, length: int, width: int = 32):
        super().__init__()
        from helpers.blocks import Encoder

        self.encoder = Encoder(vocab_size, width, 4, 4 * width, 1, length, norm_first=True)
        self.norm, self.unembed = nn.LayerNorm(width), nn.Linear(width, vocab_size)

    def forward(self, ids):
        mask = torch.ones(ids.shape[1], ids.shape[1]).tril().bool()
        return self.unembed(self.norm(self.encoder(ids, mask)))


def two_losses(fixed, buggy, steps: int = 120) -> Picture:
    text, V = corpus.language_text(), len(corpus.language_symbols())
    curves: dict[str, list[float]] = {"yours": [], "buggy": [], "buggy, its own loss": []}
    for name, loss_of in (("yours", fixed), ("buggy", buggy)):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = _Small(V, 32)
        generator = torch.Generator().manual_seed(0)
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
        for _ in range(steps):
            starts = torch.randint(len(text) - 32, (16,), generator=generator)
            windows = text[starts[:, None] + torch.arange(33)]
            logits = model(windows[:, :-1])
            curves[name].append(F.cross_entropy(logits.transpose(1, 2), windows[:, 1:]).item())
            optimizer.zero_grad()
            loss = loss_of(logits, windows[:, 1:])
            loss.backward()
            optimizer.step()
            if name == "buggy":
                curves["buggy, its own loss"].append(loss.item())
    ends = {name: sum(curve[-10:]) / 10 for name, curve in curves.items()}
    figure, ax = new_figure(7.8, 3.4)
    for (name, curve), color in zip(curves.items(), (BLUE, ORANGE, ORANGE), strict=True):
        ax.plot(range(1, steps + 1), curve, color=color, lw=2, ls=":" if name.endswith("own loss") else "-")
        style = {"va": "center", "color": INK.get(color, color), "fontsize": 10.5}
        ax.text(steps * 1.01, ends[name], f"{name} {ends[name]:.2f}", **style)
    ax.axhline(math.log(V), color=LINE, lw=1.2, ls=(0, (2, 2)))
    ax.text(0.5 * steps, math.log(V) + 0.03, f"guessing: log {V} = {math.log(V):.2f}", fontsize=10)
    ax.set(xlabel="steps", ylabel="nats per token", xlim=(0, steps * 1.42), xticks=range(0, steps + 1, 20))
    alt = f"Two training runs of {steps} steps. With your loss {ends['yours']:.2f} nats per token at the end, with the "
    alt += f"buggy one {ends['buggy']:.2f}, though its own value is {ends['buggy, its own loss']:.2f}; guessing has "
    alt += f"{math.log(V):.2f}."
    caption = "Figure 12.7. The same small model trained with each loss. Solid: the correct loss. Dotted: the buggy "
    caption += "one."
    return Picture(figure, alt, caption)
