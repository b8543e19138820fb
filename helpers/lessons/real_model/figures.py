"""Figures of lesson 13: the 72 heads of all-MiniLM-L6-v2, and what they do and do not tell.

All numbers come from the finished network (network.py beside this file). Where its 91 MB are not at hand a figure is
one quiet line.
"""

from __future__ import annotations

import functools
import html
import itertools

import torch
from matplotlib.patches import Rectangle
from torch.nn import functional as F

from helpers import pretrained
from helpers.drawing.style import (
    BLUE,
    GRAY_INK,
    GREEN,
    ORANGE,
    PINK,
    RED,
    SKY,
    SMALLEST,
    WEIGHTS,
    Picture,
    heatmap,
    new_figure,
)
from helpers.lessons.real_model import given
from helpers.lessons.real_model import network as real_network
from helpers.lessons.real_model.network import among_words

SENTENCE = "jane visits africa in september"
SHORT = "jane visits africa"
SENTENCES = (
    SENTENCE,
    "africa visits jane in september",
    "life is short, eat dessert first",
    "i like to eat apples",
    "she sat on the river bank",
    "he put money in the bank",
    "the dog chased the old cat",
    "the keys to the house are gone",
)
DRAWN = {("jane", "visits"): 0.94, ("visits", "africa"): 0.86, ("africa", "visits"): 0.76}  # the sources' table
BANKS = ("she sat on the river bank", "he put money in the bank", "the bank lent him cash")
TIRED = "the animal did not cross the street because it was too tired"
TITLES = (
    "How to fix a flat bicycle tire",
    "Ten easy pasta recipes for beginners",
    "Why the sky is blue",
    "Learn to play the guitar in a week",
    "The history of the Roman Empire",
    "How vaccines work",
    "Training a puppy not to bite",
    "A walk through Tokyo at night",
    "What makes bread rise",
    "Why leaves change color in autumn",
    "Saving money on your first salary",
    "How airplanes stay in the air",
    "The deepest places in the ocean",
    "Knots every sailor should know",
    "Attention in Transformers, step by step",
    "Yoga for a sore back",
)
LONG = " ".join(["the quick brown fox jumps over the lazy dog and runs away into the dark forest"] * 4)
WIDE = "the animal did not cross the street because it was too wide"
NEXT, PREVIOUS = (1, 8), (0, 2)  # (layer, head), both counted from 0


class Quiet:
    """What stands in a picture's place where the network's numbers are not at hand."""

    words = f"This picture needs the network's numbers: {pretrained.HOW_TO}, then run the notebook again."

    def __repr__(self) -> str:
        return self.words

    def _repr_html_(self) -> str:
        return f"<p><em>{html.escape(self.words)}</em></p>"


def needs_numbers(draw):
    """The figure, or a quiet line where there is only the stand-in."""

    @functools.wraps(draw)
    def drawn(*args, **kwargs):
        return draw(*args, **kwargs) if pretrained.is_real() else Quiet()

    return drawn


def weights_of(sentence: str) -> torch.Tensor:
    """All heads' weights among the words of a sentence, rows made to sum to 1: (L, H, T, T)."""
    return among_words(real_network.reading(sentence).attention[:, 0])


def words_of(sentence: str) -> list[str]:
    """The pieces between [CLS] and [SEP]."""
    return real_network.reading(sentence).tokens[0][1:-1]


# ---------------------------------------------------------------- the gallery


def habits(weights: torch.Tensor) -> torch.Tensor:
    """How much of each head's attention goes to the previous word, to the next and to the word itself: (L, H, 3)."""
    shares = [weights.diagonal(offset, -2, -1).mean(-1) for offset in (-1, 1, 0)]
    return torch.stack(shares, dim=-1)


@needs_numbers
def gallery(sentence: str = SENTENCE) -> Picture:
    """All heads on one sentence, as small maps; those with a plain habit have a frame."""
    weights, words = weights_of(sentence), words_of(sentence)
    layers, heads, T = weights.shape[:3]
    figure, ax = new_figure(8.6, 4.9)
    looks = {"previous word": (RED, "-"), "next word": (GREEN, "--"), "itself": (PINK, ":")}
    share, kind = habits(weights).max(dim=-1)
    found, step = {name: [] for name in looks}, T + 0.9
    for layer, head in itertools.product(range(layers), range(heads)):
        x, y = head * step, layer * step
        ax.imshow(weights[layer, head], cmap=WEIGHTS, vmin=0, vmax=1, extent=(x, x + T, y + T, y))
        edge, line, width = "#C9C9C9", "-", 0.6
        if share[layer, head] > 0.6:
            name = list(looks)[int(kind[layer, head])]
            (edge, line), width = looks[name], 2.4
            found[name].append(f"{layer}.{head}")
        ax.add_patch(Rectangle((x, y), T, T, facecolor="none", edgecolor=edge, ls=line, lw=width))
    ax.set(xlim=(-0.3, heads * step), ylim=(layers * step, -0.3))
    ax.set_xticks([T / 2 + step * h for h in range(heads)], [f"head {h}" for h in range(heads)], fontsize=SMALLEST)
    ax.set_yticks([T / 2 + step * i for i in range(layers)], [f"layer {i}" for i in range(layers)], fontsize=SMALLEST)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    marks = [Rectangle((0, 0), 1, 1, facecolor="none", edgecolor=c, ls=line, lw=2) for c, line in looks.values()]
    labels = [f"mostly the {name}" if name != "itself" else "mostly itself" for name in looks]
    figure.legend(marks, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=10)
    said = "; ".join(f"{name}: {len(heads_)} heads ({', '.join(heads_) or 'none'})" for name, heads_ in found.items())
    alt = (
        f"Seventy-two small heat maps, six layers of twelve heads, each with the weights among the {T} words of "
        f"{' '.join(words)}: a row looks, a column is looked at. Heads, written layer.head, that give more than 0.6 of "
        f"their attention to one place, on average: {said}. The others spread it in patterns of their own."
    )
    return Picture(
        figure, alt, f"Figure 13.2. All 72 heads read “{sentence}” (words only; rows look, columns are seen)."
    )


def resting_tokens() -> dict[str, torch.Tensor]:
    """Where the attention of words goes, a mean over the sentences for each layer: name -> (L,)."""
    totals = {}
    for sentence in SENTENCES:
        a = real_network.reading(sentence).attention[:, 0].mean(1)  # (L, T, T), mean over heads
        rows = a[:, 1:-1]
        parts = {
            "[CLS]": rows[..., 0].mean(-1),
            "[SEP]": rows[..., -1].mean(-1),
            "itself": a.diagonal(0, 1, 2)[:, 1:-1].mean(-1),
            "a neighbor": (a[:, 1:-1, 1:-1].diagonal(1, 1, 2).sum(-1) + a[:, 1:-1, 1:-1].diagonal(-1, 1, 2).sum(-1))
            / rows.shape[1],
        }
        parts["another word"] = 1 - sum(parts.values())
        totals = {name: totals.get(name, 0) + part / len(SENTENCES) for name, part in parts.items()}
    return totals


@needs_numbers
def where_attention_rests() -> Picture:
    """Stacked bars: what words look at, layer by layer."""
    shares = resting_tokens()
    figure, ax = new_figure(8.0, 3.0)
    looks = {
        "[CLS]": ("#4D4D4D", ""),
        "[SEP]": ("#A6A6A6", "//"),
        "itself": (PINK, ""),
        "a neighbor": (ORANGE, ".."),
        "another word": (SKY, ""),
    }
    left = torch.zeros(len(shares["[CLS]"]))
    for name, share in shares.items():
        color, hatch = looks[name]
        ax.barh(range(len(share)), share, left=left, color=color, hatch=hatch, edgecolor="white", label=name)
        left = left + share
    for layer, share in enumerate(shares["[CLS]"].tolist()):
        ax.text(share / 2, layer, f"{share:.2f}", ha="center", va="center", color="white", fontsize=SMALLEST)
    ax.set(xlim=(0, 1), xlabel="share of a word's attention (mean over 12 heads and 8 sentences)")
    ax.set_yticks(range(len(left)), [f"layer {i}" for i in range(len(left))])
    ax.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=5, frameon=False, fontsize=10)
    cls = ", ".join(f"{share:.2f}" for share in shares["[CLS]"].tolist())
    other = ", ".join(f"{share:.2f}" for share in shares["another word"].tolist())
    alt = (
        f"Stacked bars for layers 0 to 5: what words look at. The first token [CLS]: {cls}. Words further off than a "
        f"neighbor: {other}. The rest goes to [SEP], to the word itself and to its neighbors."
    )
    return Picture(figure, alt, "Figure 13.1. Where words look: in the middle layers mostly at [CLS].")


# ---------------------------------------------------------------- jane -> visits


@needs_numbers
def drawn_and_found() -> Picture:
    """The sources' table beside two heads, and the first of them on the sentence turned round."""
    words = SHORT.split()
    drawn = torch.zeros(3, 3)
    for (query, key), weight in DRAWN.items():
        drawn[words.index(query), words.index(key)] = weight
    turned = words[::-1]
    panels = (
        ("the notes", drawn, words),
        ("layer 1, head 8", weights_of(SHORT)[NEXT], words),
        ("layer 0, head 2", weights_of(SHORT)[PREVIOUS], words),
        ("layer 1, head 8, turned", weights_of(" ".join(turned))[NEXT], turned),
    )
    figure, axes = new_figure(8.6, 2.5, 1, 4)
    said = []
    for ax, (title, table, names) in zip(axes, panels, strict=True):
        heatmap(ax, table, names, names, vmin=0, vmax=1, mask=table > 0 if title == "the notes" else None)
        ax.set_title(title, fontsize=10)
        ax.tick_params(labelsize=SMALLEST)
        ax.set_box_aspect(1)
        best = [f"{names[i]} looks at {names[int(row.argmax())]} {row.max():.3f}" for i, row in enumerate(table)]
        said.append(f"{title}: {', '.join(best)}")
    axes[0].set_ylabel("looks", fontsize=10)
    alt = f"Four tables of three words. {'; '.join(said)}. Head 8 looks at the next word, whatever that word is."
    return Picture(figure, alt, "Figure 13.3. The notes' table, two heads that fit it, and what one of them does.")


def easiest_story(sentence: str = SHORT) -> list[tuple[str, str, int, int, float]]:
    """For each ordered pair of different words: (query, key, layer, head, weight) of the head that fits it best."""
    weights, words = weights_of(sentence), words_of(sentence)
    found = []
    for i, query in enumerate(words):
        for j, key in enumerate(words):
            if i != j:
                layer, head, weight = given.strongest_head(weights, i, j)
                found.append((query, key, layer, head, weight))
    return found


# ---------------------------------------------------------------- without a head


@functools.cache
def shifts_without() -> dict[tuple[int, int], tuple[float, float]]:
    """For each head: how far the sentence's vector and jane's last vector turn when it is silenced (1 - cosine)."""
    network, found = real_network.network(), {}
    start = real_network.reading(SHORT)
    before = given.mean_pool(start.hidden[-1], start.mask)[0]
    with torch.no_grad():
        for i, layer in enumerate(network.layers):
            width = layer.self_attn.head_dim
            for head in range(layer.self_attn.num_heads):
                saved = layer.self_attn.out_proj.weight.data
                silenced = saved.clone()
                silenced[:, head * width : (head + 1) * width] = 0
                layer.self_attn.out_proj.weight.data = silenced
                top = network.up(start.hidden[i], slice(i, None))
                layer.self_attn.out_proj.weight.data = saved
                pooled = given.mean_pool(top, start.mask)[0]
                turned = (
                    1 - F.cosine_similarity(pooled, before, dim=0),
                    1 - F.cosine_similarity(top[0, 1], start.hidden[-1][0, 1], dim=0),
                )
                found[i, head] = tuple(item.item() for item in turned)
    return found


@needs_numbers
def without_each_head() -> Picture:
    """How far the sentence's vector turns without each of the 72 heads; the one that finds jane -> visits is marked."""
    shifts = {head: both[0] for head, both in shifts_without().items()}
    order = sorted(shifts, key=shifts.get, reverse=True)
    figure, ax = new_figure(8.0, 3.0)
    colors = [ORANGE if head == NEXT else BLUE for head in order]
    ranks = range(1, len(order) + 1)
    ax.scatter(ranks, [shifts[head] for head in order], color=colors, s=22)
    rank = order.index(NEXT) + 1
    ax.annotate(
        f"layer 1, head 8: {shifts[NEXT]:.4f}",
        (rank, shifts[NEXT]),
        (rank + 6, 0.02),
        arrowprops={"arrowstyle": "-", "color": GRAY_INK},
        fontsize=10,
    )
    ax.annotate(
        "{}, {}".format(*(f"layer {a}, head {b}: {shifts[a, b]:.3f}" for a, b in order[:2])),
        (2, shifts[order[1]]),
        (9, 0.08),
        arrowprops={"arrowstyle": "-", "color": GRAY_INK},
        fontsize=10,
    )
    ax.set(
        yscale="log",
        ylim=(1e-5, 0.3),
        ylabel="1 − cosine",
        xlabel="rank of a head, the most needed first",
        xlim=(0, 73),
    )
    ax.set_xticks([1, 12, 24, 36, 48, 60, 72])
    middle = sorted(shifts.values())[len(shifts) // 2]
    alt = (
        f"Dots for 72 heads on a logarithmic scale: how far the vector of “{SHORT}” turns when one head is silenced. "
        f"Most needed: layer {order[0][0]} head {order[0][1]}, {shifts[order[0]]:.3f}. Layer 1 head 8 is number "
        f"{rank} with {shifts[NEXT]:.4f}; the median is {middle:.4f}."
    )
    return Picture(
        figure, alt, "Figure 13.4. How far the sentence's vector turns without each head (orange: jane → visits)."
    )


def influence(f, x: torch.Tensor, directions: int = 16) -> torch.Tensor:
    """As lesson 9's token_influence, but through random directions of the output, not all: (T, T), up to noise."""
    x = x.detach().requires_grad_()
    out = f(x)
    mix = torch.randn(out.shape[-1], directions, generator=torch.Generator().manual_seed(0)) / directions**0.5
    seen = out @ mix  # (T, directions)
    rows = [
        torch.autograd.grad(row, x, torch.eye(directions), retain_graph=True, is_grads_batched=True)[0] for row in seen
    ]  # T times (directions, T, D)
    return torch.stack([row.pow(2).sum(dim=(0, 2)).sqrt() for row in rows])


@functools.cache
def influences(sentence: str = SHORT) -> torch.Tensor:
    """Shares of influence of each embedding on each token after 1 to 6 layers, rows sum to 1: (L, T, T)."""
    network, start = real_network.network(), real_network.reading(sentence).hidden[0][0]
    tables = [
        influence(lambda x, n=depth: network.up(x[None], slice(0, n))[0], start)
        for depth in range(1, len(network.layers) + 1)
    ]
    return torch.stack([table / table.sum(1, keepdim=True) for table in tables])


@needs_numbers
def weight_and_influence() -> Picture:
    """What jane looks at in layer 1's head 8, what moves her after that layer, and what moves her at the end."""
    network, read = real_network.network(), real_network.reading(SHORT)
    tokens = read.tokens[0]
    layer = influence(lambda x: network.up(x[None], slice(1, 2))[0], read.hidden[1][0])
    shares = {
        "weight: layer 1, head 8": read.attention[(NEXT[0], 0, NEXT[1], 1)],
        "influence: layer 1 on jane": (layer / layer.sum(1, keepdim=True))[1],
        "influence: all six layers on jane": influences()[-1, 1],
    }
    figure, axes = new_figure(8.6, 2.7, 1, 3, sharey=True)
    colors = (BLUE, ORANGE, GREEN)
    for ax, (title, share), color in zip(axes, shares.items(), colors, strict=True):
        bars = ax.bar(tokens, share.tolist(), color=color)
        ax.bar_label(bars, [f"{x:.2f}" for x in share.tolist()], fontsize=SMALLEST)
        ax.set_title(title, fontsize=10)
        ax.tick_params(axis="x", labelsize=SMALLEST)
        ax.set_ylim(0, 1)
    said = "; ".join(
        f"{title}: {', '.join(f'{t} {x:.2f}' for t, x in zip(tokens, share.tolist(), strict=True))}"
        for title, share in shares.items()
    )
    alt = f"Three bar charts about jane in “{SHORT}”. {said}."
    return Picture(figure, alt, "Figure 13.5. Where a head looks, and what moves the vector: not the same question.")


# ---------------------------------------------------------------- context


def pair_in(sentence: str, query: str, key: str, layer: int, head: int) -> float:
    """A head's weight from one word to another, among the words of a sentence."""
    words = words_of(sentence)
    return weights_of(sentence)[layer, head, words.index(query), words.index(key)].item()


@needs_numbers
def same_pair(layer: int = 3, head: int = 1) -> Picture:
    """it -> animal and it -> street in two sentences that differ in their last word, beside one fixed P(K given Q)."""
    keys = ("animal", "street")
    table = {s: [pair_in(s, "it", key, layer, head) for key in keys] for s in (TIRED, WIDE)}
    figure, (left, right) = new_figure(8.6, 2.9, 1, 2, width_ratios=(2, 1), sharey=True)
    for shift, (sentence, color, hatch) in enumerate(((TIRED, BLUE, ""), (WIDE, ORANGE, "//"))):
        at = [i + 0.38 * shift - 0.19 for i in range(2)]
        label = f"… because it was too {sentence.split()[-1]}"
        bars = left.bar(at, table[sentence], 0.36, color=color, hatch=hatch, edgecolor="white", label=label)
        left.bar_label(bars, [f"{x:.3f}" for x in table[sentence]], fontsize=SMALLEST)
    left.set_xticks(range(2), [f"it → {key}" for key in keys])
    left.set(ylim=(0, 1.12), ylabel="weight", title=f"layer {layer}, head {head}")
    left.legend(frameon=False, fontsize=10, loc="upper right")
    bars = right.bar(("was", "animal", "street"), (1, 0, 0), color="#8C8C8C")
    right.bar_label(bars, ["1.000", "0.000", "0.000"], fontsize=SMALLEST)
    right.set(title="a chain: P(K given it)")
    said = "; ".join(
        f"too {s.split()[-1]}: " + ", ".join(f"it to {k} {x:.3f}" for k, x in zip(keys, table[s], strict=True))
        for s in table
    )
    alt = (
        f"Bars: weights of layer {layer}, head {head} in the sentences {TIRED!r} and {WIDE!r}. {said}. Beside it the "
        "chain of both sentences: after it comes was with probability 1, in either of them."
    )
    return Picture(
        figure, alt, "Figure 13.6. The same pair in two sentences, beside a chain that knows one number only."
    )


def bank_cosines() -> dict[tuple[int, int], list[float]]:
    """Cosines of the vectors of *bank* in three sentences, pair by pair, from the embeddings to the last layer."""
    read = real_network.reading(*BANKS)
    banks = [tokens.index("bank") for tokens in read.tokens]
    found = {}
    for a, b in ((1, 2), (0, 1), (0, 2)):
        found[a, b] = [F.cosine_similarity(x[a, banks[a]], x[b, banks[b]], dim=0).item() for x in read.hidden]
    return found


@needs_numbers
def banks() -> Picture:
    """How alike three banks are after each layer."""
    short = ("river bank", "money in the bank", "the bank lent")
    figure, ax = new_figure(8.0, 3.2)
    looks = {(1, 2): (GREEN, "-", "o"), (0, 1): (BLUE, "--", "s"), (0, 2): (RED, ":", "^")}
    cosines, said = bank_cosines(), []
    for (a, b), values in cosines.items():
        color, line, marker = looks[a, b]
        ax.plot(range(7), values, color=color, ls=line, marker=marker, lw=2, label=f"{short[a]} · {short[b]}")
        ax.annotate(f"{values[-1]:.3f}", (6, values[-1]), (6, -3), textcoords="offset points", fontsize=10)
        said.append(f"{short[a]} and {short[b]}: {', '.join(f'{v:.3f}' for v in values)}")
    ax.set(xlim=(-0.2, 6.7), ylim=(0.75, 1.01), ylabel="cosine")
    ax.set_xticks(range(7), ["embedding", *(f"layer {i}" for i in range(6))])
    ax.legend(frameon=False, fontsize=10)
    alt = f"Lines from the embeddings to layer 5: cosines of the word bank in three sentences. {'; '.join(said)}."
    return Picture(
        figure, alt, "Figure 13.7. Context moves bank: two banks with money stay closer than bank and river."
    )


@needs_numbers
def own_shares() -> Picture:
    """How much of the influence on a word is its own embedding's, layer by layer."""
    words, tables = SHORT.split(), influences()
    own = tables.diagonal(0, 1, 2)[:, 1:-1]  # (L, words)
    figure, ax = new_figure(7.0, 2.9)
    for i, (word, color, marker) in enumerate(zip(words, (BLUE, ORANGE, GREEN), "os^", strict=True)):
        ax.plot(range(1, 7), own[:, i], color=color, marker=marker, lw=2, label=word)
    ax.axhline(0.2, color=GRAY_INK, ls=":", lw=1.2)
    ax.text(6.05, 0.21, "all five alike", ha="right", fontsize=SMALLEST, color=GRAY_INK)
    ax.set(ylim=(0, 0.8), xlabel="layers passed", ylabel="own share of the influence")
    ax.legend(frameon=False, fontsize=10, ncols=3)
    said = "; ".join(f"{word} {', '.join(f'{x:.2f}' for x in own[:, i].tolist())}" for i, word in enumerate(words))
    alt = f"Lines over one to six layers: the share of influence that a word's own embedding has on its vector. {said}."
    return Picture(
        figure, alt, "Figure 13.8. In a sentence of three words, each stays about half itself up to the top."
    )


def untrained(std: float = 0.02, seed: int = 0):
    """A network of the same shape before any training: BERT's own first numbers, normal with a spread of 0.02."""
    draw, state = torch.Generator().manual_seed(seed), {}
    for name, numbers in pretrained.numbers().items():
        is_scale = "LayerNorm" in name and name.endswith("weight")
        flat = torch.ones_like(numbers) if is_scale else torch.zeros_like(numbers)
        state[name] = flat if numbers.dim() == 1 else torch.randn(numbers.shape, generator=draw) * std
    return real_network.Network(state)


def own_share(network, sentence: str) -> float:
    """The share of the influence on a word's last vector that is its own embedding's, a mean over the words."""
    ids, _ = pretrained.batch([sentence], real_network.cut)
    table = influence(lambda x: network.up(x[None])[0], network.embed(ids)[0], directions=8)
    return (table / table.sum(1, keepdim=True)).diagonal()[1:-1].mean().item()


@functools.cache
def own_shares_at_the_top() -> dict[str, list[float]]:
    """ "trained" and "untrained" -> the own share for a sentence of 3, of 6 and of 12 words."""
    networks = {"trained": real_network.network(), "untrained": untrained()}
    return {name: [own_share(network, text) for text in (SHORT, BANKS[0], TIRED)] for name, network in networks.items()}


@needs_numbers
def blended() -> Picture:
    """What is left of a word at the top, by the length of its sentence, with and without training."""
    shares = own_shares_at_the_top()
    figure, ax = new_figure(7.0, 2.9)
    counts = [len(text.split()) for text in (SHORT, BANKS[0], TIRED)]
    for shift, ((name, values), color, hatch) in enumerate(
        zip(shares.items(), (BLUE, ORANGE), ("", "//"), strict=True)
    ):
        at = [i + 0.38 * shift - 0.19 for i in range(3)]
        bars = ax.bar(at, values, 0.36, color=color, hatch=hatch, edgecolor="white", label=name)
        ax.bar_label(bars, [f"{x:.2f}" for x in values], fontsize=SMALLEST)
    ax.set_xticks(range(3), [f"{count} words" for count in counts])
    ax.set(ylim=(0, 1), ylabel="own share at the top")
    ax.legend(frameon=False, fontsize=10, loc="upper right", ncols=2)
    said = "; ".join(f"{name} {', '.join(f'{x:.2f}' for x in values)}" for name, values in shares.items())
    alt = f"Bars for sentences of {counts} words: the share of its own embedding in a word's last vector. {said}."
    return Picture(figure, alt, "Figure 13.9. What is left of a word after six layers, before and after training.")
