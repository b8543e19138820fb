"""Figures of lesson 13: the 72 heads of all-MiniLM-L6-v2, and what their attention weights can and can't explain.

All values come from the pretrained network (network.py). If its 91 MB of weights are missing, a line of text replaces
each figure.
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
NEXT = (1, 8)  # (layer, head), both counted from 0, of a head that attends to the next token


class MissingWeights:
    """The text that replaces a figure when the network's weights are missing."""

    words = f"This figure needs the network's weights: {pretrained.HOW_TO}, then run the notebook again."

    def __repr__(self) -> str:
        return self.words

    def _repr_html_(self) -> str:
        return f"<p><em>{html.escape(self.words)}</em></p>"


def needs_weights(draw):
    """A decorator for figures: without the real weights they return MissingWeights()."""

    @functools.wraps(draw)
    def draw_if_real(*args, **kwargs):
        return draw(*args, **kwargs) if pretrained.is_real() else MissingWeights()

    return draw_if_real


def weights_of(sentence: str) -> torch.Tensor:
    """The weights of all heads between the words of a sentence, normalized so that rows sum to 1: (L, H, T, T)."""
    return among_words(real_network.reading(sentence).attention[:, 0])


def words_of(sentence: str) -> list[str]:
    """The tokens between [CLS] and [SEP]."""
    return real_network.reading(sentence).tokens[0][1:-1]


def habits(weights: torch.Tensor) -> torch.Tensor:
    """The mean weight of each head on the previous token, on the next one and on the token itself: (L, H, 3)."""
    return torch.stack([weights.diagonal(offset, -2, -1).mean(-1) for offset in (-1, 1, 0)], dim=-1)


@needs_weights
def gallery(sentence: str = SENTENCE) -> Picture:
    weights, words = weights_of(sentence), words_of(sentence)
    layers, heads, T = weights.shape[:3]
    figure, ax = new_figure(8.6, 4.9)
    styles = {"previous token": (RED, "-"), "next token": (GREEN, "--"), "itself": (PINK, ":")}
    mean, kind = habits(weights).max(dim=-1)
    found, step = {name: [] for name in styles}, T + 0.9
    for layer, head in itertools.product(range(layers), range(heads)):
        x, y = head * step, layer * step
        ax.imshow(weights[layer, head], cmap=WEIGHTS, vmin=0, vmax=1, extent=(x, x + T, y + T, y))
        edge, line, width = "#C9C9C9", "-", 0.6
        if mean[layer, head] > 0.6:
            name = list(styles)[int(kind[layer, head])]
            (edge, line), width = styles[name], 2.4
            found[name].append(f"{layer}.{head}")
        ax.add_patch(Rectangle((x, y), T, T, facecolor="none", edgecolor=edge, ls=line, lw=width))
    ax.set(xlim=(-0.3, heads * step), ylim=(layers * step, -0.3))
    ax.set_xticks([T / 2 + step * h for h in range(heads)], [f"head {h}" for h in range(heads)], fontsize=SMALLEST)
    ax.set_yticks([T / 2 + step * i for i in range(layers)], [f"layer {i}" for i in range(layers)], fontsize=SMALLEST)
    ax.xaxis.tick_top()
    without_spines(ax)
    marks = [Rectangle((0, 0), 1, 1, facecolor="none", edgecolor=c, ls=line, lw=2) for c, line in styles.values()]
    labels = [f"mostly the {name}" if name != "itself" else "mostly itself" for name in styles]
    figure.legend(marks, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=10)
    described = "; ".join(f"{name}: {len(ids)} heads ({', '.join(ids) or 'none'})" for name, ids in found.items())
    alt = f"Seventy-two small heat maps, six layers of twelve heads, each with the weights among the {T} words of "
    alt += f"{' '.join(words)}: rows are queries, columns are keys. Heads, written layer.head, whose mean weight on "
    alt += f"one relative position is above 0.6: {described}. The other heads have patterns of their own."
    caption = f"Figure 13.1. Attention of all 72 heads on “{sentence}” (rows are queries, columns are keys)."
    return Picture(figure, alt, caption)


@functools.cache
def shifts_without() -> dict[tuple[int, int], tuple[float, float]]:
    """For each head: 1 - cosine between the vectors with and without that head, for the sentence and for jane."""
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


@needs_weights
def without_each_head() -> Picture:
    shifts = {head: of_sentence for head, (of_sentence, _) in shifts_without().items()}
    order = sorted(shifts, key=shifts.get, reverse=True)
    figure, ax = new_figure(8.0, 3.0)
    colors = [ORANGE if head == NEXT else BLUE for head in order]
    ax.scatter(range(1, len(order) + 1), [shifts[head] for head in order], color=colors, s=22)
    rank = order.index(NEXT) + 1
    style = {"arrowprops": {"arrowstyle": "-", "color": GRAY_INK}, "fontsize": 10}
    ax.annotate(f"layer 1, head 8: {shifts[NEXT]:.4f}", (rank, shifts[NEXT]), (rank + 6, 0.02), **style)
    largest = ", ".join(f"layer {a}, head {b}: {shifts[a, b]:.3f}" for a, b in order[:2])
    ax.annotate(largest, (2, shifts[order[1]]), (9, 0.08), **style)
    ax.set(yscale="log", ylim=(1e-5, 0.3), xlim=(0, 73))
    ax.set(ylabel="1 − cosine", xlabel="rank of a head, the largest change first", xticks=[1, 12, 24, 36, 48, 60, 72])
    middle = sorted(shifts.values())[len(shifts) // 2]
    alt = f"Dots for 72 heads on a logarithmic scale: 1 minus the cosine of the vector of “{SHORT}” with and without "
    alt += f"one head. The largest change: layer {order[0][0]} head {order[0][1]}, {shifts[order[0]]:.3f}. Layer 1 "
    alt += f"head 8 is number {rank} with {shifts[NEXT]:.4f}; the median is {middle:.4f}."
    caption = "Figure 13.3. How far the sentence's vector changes without each head (orange: jane → visits)."
    return Picture(figure, alt, caption)


def influence(f, x: torch.Tensor, directions: int = 16) -> torch.Tensor:
    """Like lesson 9's token_influence, but estimated with a few random directions of the output, so noisy: (T, T)."""
    x = x.detach().requires_grad_()
    out = f(x)
    mix = torch.randn(out.shape[-1], directions, generator=torch.Generator().manual_seed(0)) / directions**0.5
    projected = out @ mix  # (T, directions)
    options = {"retain_graph": True, "is_grads_batched": True}
    grads = (torch.autograd.grad(row, x, torch.eye(directions), **options)[0] for row in projected)
    return torch.stack([grad.pow(2).sum(dim=(0, 2)).sqrt() for grad in grads])  # of T gradients (directions, T, D)


@functools.cache
def influences() -> torch.Tensor:
    """The fraction of each embedding in the influence on each token of SHORT after 1 to 6 layers: (L, T, T)."""
    network, start = real_network.network(), real_network.reading(SHORT).hidden[0][0]
    depths = range(1, len(network.layers) + 1)
    tables = [influence(lambda x, n=depth: network.up(x[None], slice(0, n))[0], start) for depth in depths]
    return torch.stack([table / table.sum(1, keepdim=True) for table in tables])


@needs_weights
def weight_and_influence() -> Picture:
    network, read = real_network.network(), real_network.reading(SHORT)
    tokens = read.tokens[0]
    layer = influence(lambda x: network.up(x[None], slice(1, 2))[0], read.hidden[1][0])
    fractions = {
        "attention weight: layer 1, head 8": read.attention[(NEXT[0], 0, NEXT[1], 1)],
        "influence on jane: layer 1": (layer / layer.sum(1, keepdim=True))[1],
        "influence on jane: all six layers": influences()[-1, 1],
    }
    figure, axes = new_figure(8.6, 2.7, 1, 3, sharey=True)
    for ax, (title, values), color in zip(axes, fractions.items(), (BLUE, ORANGE, GREEN), strict=True):
        bars(ax, tokens, values, ".2f", color=color)
        ax.set_title(title, fontsize=10)
        ax.tick_params(axis="x", labelsize=SMALLEST)
        ax.set_ylim(0, 1)
    described = "; ".join(f"{title}: {named(tokens, values)}" for title, values in fractions.items())
    alt = f"Three bar charts about jane in “{SHORT}”. {described}."
    return Picture(figure, alt, "Figure 13.2. Attention weights of jane, and what her vector is sensitive to.")


def untrained(std: float = 0.02):
    """A network of the same shape with BERT's initialization: normal with a standard deviation of 0.02."""
    generator, state = torch.Generator().manual_seed(0), {}
    for name, weight in pretrained.state_dict().items():
        is_scale = "LayerNorm" in name and name.endswith("weight")
        vector = torch.ones_like(weight) if is_scale else torch.zeros_like(weight)
        state[name] = vector if weight.dim() == 1 else torch.randn(weight.shape, generator=generator) * std
    return real_network.Network(state)


def own_influence(network, sentence: str) -> float:
    """The fraction of its own embedding in the influence on a word's last vector, averaged over the words."""
    ids, _ = pretrained.batch([sentence], wordpiece)
    table = influence(lambda x: network.up(x[None])[0], network.embed(ids)[0], directions=8)
    return (table / table.sum(1, keepdim=True)).diagonal()[1:-1].mean().item()


@functools.cache
def own_influences() -> dict[str, list[float]]:
    """own_influence in sentences of 3, 6 and 12 words, for "trained" and "untrained"."""
    networks, texts = {"trained": real_network.network(), "untrained": untrained()}, (SHORT, BANKS[0], TIRED)
    return {name: [own_influence(network, text) for text in texts] for name, network in networks.items()}


@needs_weights
def blended() -> Picture:
    fractions = own_influences()
    figure, ax = new_figure(7.0, 2.9)
    counts = [len(text.split()) for text in (SHORT, BANKS[0], TIRED)]
    series = zip(fractions.items(), (BLUE, ORANGE), ("", "//"), strict=True)
    for shift, ((name, values), color, hatch) in enumerate(series):
        at = [i + 0.38 * shift - 0.19 for i in range(3)]
        bars = ax.bar(at, values, 0.36, color=color, hatch=hatch, edgecolor="white", label=name)
        ax.bar_label(bars, [f"{x:.2f}" for x in values], fontsize=SMALLEST)
    ax.set_xticks(range(3), [f"{count} words" for count in counts])
    ax.set(ylim=(0, 1), ylabel="influence of its own embedding")
    ax.legend(frameon=False, fontsize=10, loc="upper right", ncols=2)
    described = "; ".join(f"{name} {', '.join(f'{x:.2f}' for x in values)}" for name, values in fractions.items())
    alt = f"Bars for sentences of {counts} words: the influence of its own embedding on a word's last vector. "
    alt += f"{described}."
    return Picture(figure, alt, "Figure 13.4. How much of a word is left after six layers, before and after training.")
