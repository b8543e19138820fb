"""Figures of lesson 13: the 72 heads of all-MiniLM-L6-v2, and what they do and do not tell.

All numbers come from the finished network (network.py beside this file). Where its 91 MB are not at hand a figure is
one quiet line.
"""

import functools
import html
import itertools

import torch
from matplotlib.patches import Rectangle
from torch.nn import functional as F

from helpers import pretrained
from helpers.blocks import wordpiece
from helpers.drawing.charts import bars, named, without_spines
from helpers.drawing.colors import BLUE, GRAY_INK, GREEN, ORANGE, PINK, RED, WEIGHTS
from helpers.drawing.style import SMALLEST, Picture, new_figure
from helpers.lessons.real_model import network as real_network
from helpers.lessons.real_model import stand_ins
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
NEXT = (1, 8)  # (layer, head), both counted from 0, of the head that attends to the next token


class Quiet:
    """What is shown instead of a figure when the network's weights are missing."""

    words = f"This figure needs the network's weights: {pretrained.HOW_TO}, then run the notebook again."

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


def habits(weights: torch.Tensor) -> torch.Tensor:
    """The mean weight that each head gives to the previous token, to the next and to the token itself: (L, H, 3)."""
    return torch.stack([weights.diagonal(offset, -2, -1).mean(-1) for offset in (-1, 1, 0)], dim=-1)


@needs_numbers
def gallery(sentence: str = SENTENCE) -> Picture:
    weights, words = weights_of(sentence), words_of(sentence)
    layers, heads, T = weights.shape[:3]
    figure, ax = new_figure(8.6, 4.9)
    looks = {"previous token": (RED, "-"), "next token": (GREEN, "--"), "itself": (PINK, ":")}
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
    without_spines(ax)
    marks = [Rectangle((0, 0), 1, 1, facecolor="none", edgecolor=c, ls=line, lw=2) for c, line in looks.values()]
    labels = [f"mostly the {name}" if name != "itself" else "mostly itself" for name in looks]
    figure.legend(marks, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=10)
    said = "; ".join(f"{name}: {len(heads_)} heads ({', '.join(heads_) or 'none'})" for name, heads_ in found.items())
    alt = f"Seventy-two small heat maps, six layers of twelve heads, each with the weights among the {T} words of "
    alt += f"{' '.join(words)}: rows are queries, columns are keys. Heads, written layer.head, whose mean weight on "
    alt += f"one relative position is above 0.6: {said}. The other heads have patterns of their own."
    caption = f"Figure 13.1. Attention of all 72 heads on “{sentence}” (rows are queries, columns are keys)."
    return Picture(figure, alt, caption)


@functools.cache
def shifts_without() -> dict[tuple[int, int], tuple[float, float]]:
    """For each head: 1 - cosine of the sentence's vector, and of jane's last vector, with and without it."""
    network, found = real_network.network(), {}
    start = real_network.reading(SHORT)
    before = torch.stack([stand_ins.mean_pool(start.hidden[-1], start.mask)[0], start.hidden[-1][0, 1]])  # (2, D)
    with torch.no_grad():
        for i, layer in enumerate(network.layers):
            width = layer.self_attn.head_dim
            for head in range(layer.self_attn.num_heads):
                saved = layer.self_attn.out_proj.weight.data
                ablated = saved.clone()
                ablated[:, head * width : (head + 1) * width] = 0
                layer.self_attn.out_proj.weight.data = ablated
                top = network.up(start.hidden[i], slice(i, None))
                layer.self_attn.out_proj.weight.data = saved
                after = torch.stack([stand_ins.mean_pool(top, start.mask)[0], top[0, 1]])  # (2, D)
                found[i, head] = tuple((1 - F.cosine_similarity(after, before)).tolist())
    return found


@needs_numbers
def without_each_head() -> Picture:
    shifts = {head: both[0] for head, both in shifts_without().items()}
    order = sorted(shifts, key=shifts.get, reverse=True)
    figure, ax = new_figure(8.0, 3.0)
    colors = [ORANGE if head == NEXT else BLUE for head in order]
    ax.scatter(range(1, len(order) + 1), [shifts[head] for head in order], color=colors, s=22)
    rank = order.index(NEXT) + 1
    look = {"arrowprops": {"arrowstyle": "-", "color": GRAY_INK}, "fontsize": 10}
    ax.annotate(f"layer 1, head 8: {shifts[NEXT]:.4f}", (rank, shifts[NEXT]), (rank + 6, 0.02), **look)
    largest = ", ".join(f"layer {a}, head {b}: {shifts[a, b]:.3f}" for a, b in order[:2])
    ax.annotate(largest, (2, shifts[order[1]]), (9, 0.08), **look)
    ax.set(yscale="log", ylim=(1e-5, 0.3), xlim=(0, 73))
    ax.set(ylabel="1 − cosine", xlabel="rank of a head, the largest change first", xticks=[1, 12, 24, 36, 48, 60, 72])
    middle = sorted(shifts.values())[len(shifts) // 2]
    alt = f"Dots for 72 heads on a logarithmic scale: 1 minus the cosine of the vector of “{SHORT}” with and without "
    alt += f"one head. The largest change: layer {order[0][0]} head {order[0][1]}, {shifts[order[0]]:.3f}. Layer 1 "
    alt += f"head 8 is number {rank} with {shifts[NEXT]:.4f}; the median is {middle:.4f}."
    caption = "Figure 13.3. How far the sentence's vector changes without each head (orange: jane → visits)."
    return Picture(figure, alt, caption)


def influence(f, x: torch.Tensor, directions: int = 16) -> torch.Tensor:
    """As lesson 9's token_influence, but through random directions of the output, not all: (T, T), up to noise."""
    x = x.detach().requires_grad_()
    out = f(x)
    mix = torch.randn(out.shape[-1], directions, generator=torch.Generator().manual_seed(0)) / directions**0.5
    seen = out @ mix  # (T, directions)
    look = {"retain_graph": True, "is_grads_batched": True}
    rows = [torch.autograd.grad(row, x, torch.eye(directions), **look)[0] for row in seen]  # T times (directions, T, D)
    return torch.stack([row.pow(2).sum(dim=(0, 2)).sqrt() for row in rows])


@functools.cache
def influences(sentence: str = SHORT) -> torch.Tensor:
    """The fraction of influence of each embedding on each token after 1 to 6 layers, rows sum to 1: (L, T, T)."""
    network, start = real_network.network(), real_network.reading(sentence).hidden[0][0]
    depths = range(1, len(network.layers) + 1)
    tables = [influence(lambda x, n=depth: network.up(x[None], slice(0, n))[0], start) for depth in depths]
    return torch.stack([table / table.sum(1, keepdim=True) for table in tables])


@needs_numbers
def weight_and_influence() -> Picture:
    network, read = real_network.network(), real_network.reading(SHORT)
    tokens = read.tokens[0]
    layer = influence(lambda x: network.up(x[None], slice(1, 2))[0], read.hidden[1][0])
    shares = {
        "attention weight: layer 1, head 8": read.attention[(NEXT[0], 0, NEXT[1], 1)],
        "influence on jane: layer 1": (layer / layer.sum(1, keepdim=True))[1],
        "influence on jane: all six layers": influences()[-1, 1],
    }
    figure, axes = new_figure(8.6, 2.7, 1, 3, sharey=True)
    for ax, (title, share), color in zip(axes, shares.items(), (BLUE, ORANGE, GREEN), strict=True):
        bars(ax, tokens, share, ".2f", color=color)
        ax.set_title(title, fontsize=10)
        ax.tick_params(axis="x", labelsize=SMALLEST)
        ax.set_ylim(0, 1)
    said = "; ".join(f"{title}: {named(tokens, share)}" for title, share in shares.items())
    alt = f"Three bar charts about jane in “{SHORT}”. {said}."
    return Picture(figure, alt, "Figure 13.2. Attention weights of jane, and what her vector is sensitive to.")


def untrained(std: float = 0.02, seed: int = 0):
    """A network of the same shape before training, by BERT's initialization: normal, standard deviation 0.02."""
    draw, state = torch.Generator().manual_seed(seed), {}
    for name, numbers in pretrained.numbers().items():
        is_scale = "LayerNorm" in name and name.endswith("weight")
        flat = torch.ones_like(numbers) if is_scale else torch.zeros_like(numbers)
        state[name] = flat if numbers.dim() == 1 else torch.randn(numbers.shape, generator=draw) * std
    return real_network.Network(state)


def own_share(network, sentence: str) -> float:
    """The fraction of the influence on a word's last vector that its own embedding has, a mean over the words."""
    ids, _ = pretrained.batch([sentence], wordpiece)
    table = influence(lambda x: network.up(x[None])[0], network.embed(ids)[0], directions=8)
    return (table / table.sum(1, keepdim=True)).diagonal()[1:-1].mean().item()


@functools.cache
def own_shares_at_the_top() -> dict[str, list[float]]:
    """ "trained" and "untrained" -> own_share for a sentence of 3, of 6 and of 12 words."""
    networks = {"trained": real_network.network(), "untrained": untrained()}
    return {name: [own_share(network, text) for text in (SHORT, BANKS[0], TIRED)] for name, network in networks.items()}


@needs_numbers
def blended() -> Picture:
    shares = own_shares_at_the_top()
    figure, ax = new_figure(7.0, 2.9)
    counts = [len(text.split()) for text in (SHORT, BANKS[0], TIRED)]
    looks = zip(shares.items(), (BLUE, ORANGE), ("", "//"), strict=True)
    for shift, ((name, values), color, hatch) in enumerate(looks):
        at = [i + 0.38 * shift - 0.19 for i in range(3)]
        bars = ax.bar(at, values, 0.36, color=color, hatch=hatch, edgecolor="white", label=name)
        ax.bar_label(bars, [f"{x:.2f}" for x in values], fontsize=SMALLEST)
    ax.set_xticks(range(3), [f"{count} words" for count in counts])
    ax.set(ylim=(0, 1), ylabel="influence of its own embedding")
    ax.legend(frameon=False, fontsize=10, loc="upper right", ncols=2)
    said = "; ".join(f"{name} {', '.join(f'{x:.2f}' for x in values)}" for name, values in shares.items())
    alt = f"Bars for sentences of {counts} words: the influence of its own embedding on a word's last vector. {said}."
    return Picture(figure, alt, "Figure 13.4. How much of a word is left after six layers, before and after training.")
