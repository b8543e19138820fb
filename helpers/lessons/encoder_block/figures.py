"""Figures of lesson 9: norms, residual connections over depth, dependencies between tokens, and the cost of a block.

The networks here are PyTorch layers arranged by hand, so no figure needs a block that the lesson asks for.
"""

import functools
import itertools

import torch
from matplotlib.patches import Rectangle
from torch import nn
from torch.nn import functional as F

from helpers import translator
from helpers.drawing.charts import bars, curves, heatmap, name_ticks, weight_map
from helpers.drawing.colors import BLUE, GRAY_INK, GREEN, ORANGE, PINK, RED, SIGNED
from helpers.drawing.diagrams import arrow, box
from helpers.drawing.style import SMALLEST, Picture, new_figure
from helpers.translator import evaluation

SENTENCE = "jane visits africa in september"
WORDS = SENTENCE.split()
WIDTH = 32
BARE = "pre-norm, no final norm"
# The name, color and line style of each arrangement, in every figure of this lesson.
KINDS = {
    "no residual": (RED, ":"),
    "residual, no norm": (ORANGE, "--"),
    "post-norm": (BLUE, "-"),
    "pre-norm": (GREEN, "-"),
}
BUG = "residual after norm"  # in exercise 9.4: the residual is taken from the normalized input
YOUR_FIX = "your fix"
LOOKS = {**KINDS, BUG: (PINK, "-."), YOUR_FIX: ("black", ":")}
TRACED = 12  # blocks in the figures that trace a word


def word_vectors(sentence: str = SENTENCE) -> torch.Tensor:
    """The input of the translator's first block, word vectors plus position vectors: (T, 64)."""
    return evaluation.input_of(translator.model(), "encoder.blocks.0", translator.source_batch([sentence]))[0]


def normed_words(channels: int = 12) -> Picture:
    x = word_vectors()
    after = F.layer_norm(x, x.shape[-1:])
    figure, axes = new_figure(8.6, 2.9, 1, 2)
    for ax, rows, title in zip(axes, (x, after), ("before", "after"), strict=True):
        names = [f"{w}\n{r.mean():.2f} ± {r.std(correction=0):.2f}" for w, r in zip(WORDS, rows, strict=True)]
        names = [name.replace("-0.00", "0.00") for name in names]
        heatmap(ax, rows[:, :channels], names, cmap=SIGNED, vmin=-3, vmax=3, numbers=False)
        ax.tick_params(axis="y", labelsize=SMALLEST)
        ax.set(title=title, xlabel="channel")
    means = ", ".join(f"{w} {r.mean():.2f} ± {r.std(correction=0):.2f}" for w, r in zip(WORDS, x, strict=True))
    alt = f"Heat maps of the first {channels} of 64 channels of five words, before and after layer norm. Mean and "
    alt += f"standard deviation of each word before: {means}. After, every word has mean 0.00 and standard deviation "
    alt += "1.00 and the pattern of each row is the same."
    caption = "Figure 9.1. Layer norm shifts and scales each vector by itself (mean ± standard deviation)."
    return Picture(figure, alt, caption)


def shared_statistics() -> Picture:
    figure, axes = new_figure(8.6, 2.7, 1, 3)
    groups = {
        "layer norm:\none token": lambda b, t, d: 4 * b + t,
        "“channels and space”:\none sentence": lambda b, t, d: b,
        "batch norm:\none channel of the batch": lambda b, t, d: d,
    }
    for ax, (title, group) in zip(axes, groups.items(), strict=True):
        for b, t, d in itertools.product(range(2), range(4), range(5)):
            face = ORANGE if group(b, t, d) == group(0, 1, 2) else "#F1F1F1"
            ax.add_patch(Rectangle((d, 3 - t - 5 * b), 1, 1, facecolor=face, edgecolor="#8C8C8C", lw=0.8))
        ax.add_patch(Rectangle((2, 2), 1, 1, facecolor="none", edgecolor="black", lw=2.2))
        ax.set(xlim=(-0.2, 5.2), ylim=(-5.3, 4.2), aspect="equal", xticks=[], yticks=[])
        ax.set_title(title, fontsize=11)
        ax.set_xlabel("channels", fontsize=10)
        ax.spines[["left", "bottom"]].set_visible(False)
    axes[0].set_ylabel("tokens of two sentences", fontsize=10)
    alt = "Three copies of the same two tables, one table per sentence, with four tokens as rows and five channels as "
    alt += "columns. Orange entries share mean and variance with the framed one. Layer norm: its row, five entries. "
    alt += "Channels and spatial dimensions: its whole table, twenty entries. Batch norm: its column in both tables, "
    alt += "eight entries."
    return Picture(figure, alt, "Figure 9.7. Three norms. Orange entries share mean and variance with the framed one.")


def absolute_value() -> Picture:
    x = torch.linspace(-2, 2, 81)
    figure, ax = new_figure(6.4, 3.0)
    ax.plot(x, x.abs(), color="#C9C9C9", lw=7, label="their sum: |x|")
    ax.plot(x, F.relu(x), color=BLUE, ls="--", lw=1.8, label="first hidden channel: relu(x)")
    ax.plot(x, F.relu(-x), color=RED, ls=":", lw=2.4, label="second hidden channel: relu(−x)")
    ax.set(xlabel="x", ylabel="output", ylim=(-0.3, 2.6))
    ax.legend(frameon=False, loc="upper center", ncols=1)
    alt = "Two lines that are flat on one side of 0 and rise on the other, relu(x) and relu(−x), and their sum, |x|, "
    alt += "which has a corner at 0. At x = −2 the two are 0 and 2, at x = 2 they are 2 and 0."
    return Picture(figure, alt, "Figure 9.2. Two hidden channels and a ReLU compute |x|, which no linear map can.")


def two_orders() -> Picture:
    figure, axes = new_figure(8.6, 3.5, 2, 1)
    for ax, pre in zip(axes, (False, True), strict=True):
        ax.plot([0, 10], [0, 0], color="black", lw=2.2, zorder=1)
        for start, name, norm in ((0.5, "attention", "norm1"), (5.4, "feed-forward", "norm2")):
            last = start + 3.0
            boxes = [(start + (1.85 if pre else 1.5), 1.15, name, "#D5E8F5")]
            boxes += [(start + 0.45, 1.15, norm, "#FFC94D")] if pre else [(last + 0.95, 0, norm, "#FFC94D")]
            for bx, by, text, color in boxes:
                size = (1.3 if text == name else 0.9, 0.6)
                box(ax, (bx, by), size, text, facecolor=color, edgecolor="#555555", zorder=3, fontsize=10)
            ax.plot([start - 0.2, start - 0.2, last], [0, 1.15, 1.15], color="#555555", lw=1.2, zorder=1)
            arrow(ax, (last, 1.15), (last, 0.16), "#555555", 1.2, mutation_scale=12)
            ax.plot([last], [0], "o", ms=15, color="white", markeredgecolor="black", zorder=3)
            ax.text(last, 0, "+", ha="center", va="center", fontsize=13, zorder=4)
        arrow(ax, (9.9, 0), (10.4, 0), width=2.2)
        ax.text(-0.1, 0, "x", ha="right", va="center", fontsize=12)
        ax.set(xlim=(-0.5, 10.6), ylim=(-0.65, 1.6), xticks=[], yticks=[])
        ax.spines[["left", "bottom"]].set_visible(False)
        ax.set_title("pre-norm: norms on the branches" if pre else "post-norm: norms on the residual stream")
    alt = "Two blocks as lines from left to right. Post-norm: x branches off to attention, is added back, then passes "
    alt += "norm1; branches off to the feed-forward network, is added back, then passes norm2. Pre-norm: each branch "
    alt += "first passes its norm, and the line itself has only the two additions on it."
    return Picture(figure, alt, "Figure 9.3. One block in the paper's order, post-norm, and in pre-norm.")


def recipe(kind: str, x, norm, sublayer):
    """One sublayer in one of the arrangements of LOOKS."""
    if kind == "no residual":
        return norm(sublayer(x))
    if kind == "residual, no norm":
        return x + sublayer(x)
    if kind == "post-norm":
        return norm(x + sublayer(x))
    return (x if kind == "pre-norm" else norm(x)) + sublayer(norm(x))


def arranged(kind: str):
    """A block in one of the arrangements of LOOKS, with the signature of fixed_block."""

    def block(x, attention, feed_forward, norm1, norm2):
        x = recipe(kind, x, norm1, lambda z: attention(z)[0])
        return recipe(kind, x, norm2, feed_forward)

    return block


@torch.no_grad()
def loss_when_rewired(kind: str) -> float:
    """The translator's loss in nats per word on 200 unseen sentences, with its encoder blocks arranged as in LOOKS."""

    class Rewired(translator.FINISHED_PARTS["EncoderBlock"]):
        def forward(self, x, mask=None):
            attend = functools.partial(self.attention, mask=mask)
            return arranged(kind)(x, attend, self.feed_forward, self.norm1, self.norm2)

    return evaluation.nats_per_word(translator.model(EncoderBlock=Rewired), evaluation.unseen(200))


def layers(
    depth: int, width: int = WIDTH, gain: float = 1.0, seed: int = 0, dtype: torch.dtype = torch.float32
) -> list[tuple]:
    """Untrained (attention, feed-forward) pairs with Glorot initialization, multiplied by `gain`.

    dtype: of the weights, which are always drawn in float32, so that their values are the same.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        pairs = []
        for _ in range(depth):
            attention = nn.MultiheadAttention(width, 4, batch_first=True)
            feed = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))
            matrices = [attention.out_proj.weight, feed[0].weight, feed[2].weight]
            for matrix in (*matrices, *attention.in_proj_weight.chunk(3)):
                nn.init.xavier_normal_(matrix.data, gain)
            for bias in (attention.in_proj_bias, attention.out_proj.bias, feed[0].bias, feed[2].bias):
                nn.init.zeros_(bias)
            pairs.append((attention.to(dtype), feed.to(dtype)))
    return pairs


def climb(block, pairs: list[tuple], x: torch.Tensor) -> list[torch.Tensor]:
    """The residual stream (B, T, D) before the first block and after each block.

    block: a function such as fixed_block, or one that `arranged` returns.
    """
    norm, stream = functools.partial(F.layer_norm, normalized_shape=x.shape[-1:]), [x]
    for attention, feed in pairs:

        def attend(z, mask=None, attention=attention):
            return attention(z, z, z, need_weights=False)

        stream.append(block(stream[-1], attend, feed, norm, norm))
    return stream


def gradients(kind: str, depth: int, width: int = WIDTH, seed: int = 0, last_norm: bool = True):
    """Gradient norms of a random weighted sum of the outputs: along the residual stream (depth + 1,), and at the
    weights of the last block's first feed-forward layer ().

    last_norm: whether one more norm follows the stack; a post-norm stack ends with a norm anyway.
    Computed in float64, because float32 gradients of the softmax are mere rounding where no norm bounds the scores.
    """
    pairs = layers(depth, width, seed=seed, dtype=torch.float64)
    generator = torch.Generator().manual_seed(100 + seed)
    x = torch.randn(2, 5, width, generator=generator).double().requires_grad_()
    stream = climb(arranged(kind), pairs, x)
    end = F.layer_norm(stream[-1], (width,)) if last_norm and kind != "post-norm" else stream[-1]
    total = (end * torch.randn(end.shape, generator=generator).double()).sum()
    *along, up = torch.autograd.grad(total, [*stream, pairs[-1][1][0].weight])
    return torch.stack([grad.norm() for grad in along]), up.norm()


@functools.lru_cache(maxsize=1)
def measured_gradients() -> tuple[dict, dict]:
    """By kind: gradient norms along the stream of 24 blocks; gradient norms at the last block's weights, by depth."""
    runs = {kind: torch.stack([gradients(kind, 24, seed=s)[0] for s in range(3)]) for kind in KINDS}
    along = {kind: run.log().mean(0).exp() for kind, run in runs.items()}
    depths = (1, 2, 4, 8, 16, 32)

    def mean_at_weights(kind, depth, norm):
        return sum(float(gradients(kind, depth, seed=seed, last_norm=norm)[1]) for seed in range(3)) / 3

    kinds = (("post-norm", "post-norm"), ("pre-norm", "pre-norm"), (BARE, "pre-norm"))
    last = {name: [mean_at_weights(kind, depth, name != BARE) for depth in depths] for name, kind in kinds}
    return along, {"depths": depths, **last}


def gradients_over_depth() -> Picture:
    along, last = measured_gradients()
    figure, (left, right) = new_figure(8.6, 3.7, 1, 2)
    curves(left, range(25), along, KINDS, yscale="log", ylabel="gradient norm")
    left.set(xlabel="after block", title="residual stream of 24 blocks")
    left.legend(frameon=False, fontsize=SMALLEST, loc="lower left")
    styles = {"post-norm": KINDS["post-norm"], BARE: (GREEN, "--"), "pre-norm": KINDS["pre-norm"]}
    for kind, (color, line) in styles.items():
        name = "pre-norm and a final norm" if kind == "pre-norm" else kind
        right.plot(last["depths"], last[kind], "o", color=color, ls=line, label=name)
    start = last["pre-norm"][0]
    right.plot(last["depths"], [start / d**0.5 for d in last["depths"]], color=GRAY_INK, ls=":", label="1/√depth")
    right.set(xscale="log", yscale="log", xlabel="number of blocks", ylabel="gradient norm")
    name_ticks(right, last["depths"], (10, 20, 40, 80))
    right.set_title("weights of the last block")
    right.legend(frameon=False, fontsize=SMALLEST, loc="lower left")
    first_and_last = ((kind, _short(g[0]), _short(g[-1])) for kind, g in along.items())
    ends = "; ".join(f"{kind} {a} before the first block, {b} after the last" for kind, a, b in first_and_last)
    alt = f"Left: norm of the gradient along the residual stream of 24 untrained blocks, logarithmic. {ends}. Right: "
    alt += f"gradient at the last block's weights for 1 to 32 blocks: post-norm {_short(last['post-norm'][0])} to "
    alt += f"{_short(last['post-norm'][-1])}; pre-norm and a final norm {_short(last['pre-norm'][0])} to "
    alt += f"{_short(last['pre-norm'][-1])}, which follows one over the square root of the depth; pre-norm without the "
    alt += f"final norm {_short(last[BARE][0])} to {_short(last[BARE][-1])}."
    return Picture(figure, alt, "Figure 9.8. Gradients over depth before training, for four arrangements.")


def _short(value) -> str:
    value = float(value)
    if value >= 1e6:
        return f"{value / 1e6:.0f} million"
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def recovered(x: torch.Tensor, y: torch.Tensor) -> float:
    """R² of a linear map from x (N, D) to y (N, E), fitted to one half and tested on the other, but at least 0."""
    x, y = torch.cat([x, torch.ones(len(x), 1)], dim=1).double(), y.double()
    half = len(x) // 2
    # Normalized rows sum to 0, so the columns are linearly dependent, and the driver must handle rank deficiency.
    W = torch.linalg.lstsq(x[:half], y[:half], rcond=1e-6, driver="gelsd").solution
    unexplained = (y[half:] - x[half:] @ W).pow(2).sum() / (y[half:] - y[:half].mean(0)).pow(2).sum()
    return max(0.0, 1 - float(unexplained))


def random_words() -> torch.Tensor:
    """The random sentences (1000, 6, WIDTH) for the untrained blocks; 200 would be too few to fit a linear map."""
    return torch.randn(1000, 6, WIDTH, generator=torch.Generator().manual_seed(5))


def traces(stream: list[torch.Tensor]) -> list[tuple[float, float]]:
    """After each block: (R² of a linear map back to the word vectors, fraction of the variance between tokens)."""
    start, rows = stream[0].flatten(0, 1), []
    for x in stream[1:]:
        centered = x - x.mean(dim=1, keepdim=True)
        rows.append((recovered(x.flatten(0, 1), start), float(centered.pow(2).sum() / x.pow(2).sum())))
    return rows


@functools.lru_cache(maxsize=1)
@torch.no_grad()
def measured_traces() -> dict[str, list[tuple[float, float]]]:
    """`traces` of twelve untrained blocks for each kind of arrangement."""
    kinds = ("no residual", "post-norm", "pre-norm", BUG)
    return {kind: traces(climb(arranged(kind), layers(TRACED), random_words())) for kind in kinds}


@torch.no_grad()
def traces_of_words(fixed_block=None) -> Picture:
    """How much of each word is left after each block, and how different the tokens still are.

    With fixed_block, the chart compares the block with the bug, post-norm, pre-norm and that function.
    """
    found = {kind: rows for kind, rows in measured_traces().items() if kind != BUG}
    if fixed_block is not None:
        found = {kind: measured_traces()[kind] for kind in ("post-norm", BUG, "pre-norm")}
        found[YOUR_FIX] = traces(climb(fixed_block, layers(TRACED), random_words()))
    figure, axes = new_figure(8.6, 3.3, 1, 2, sharey=True)
    recovery = "fraction of the word's own vector\nthat a linear map recovers (R²)"
    difference = "fraction of the variance\nthat differs between tokens"
    for column, (ax, title) in enumerate(zip(axes, (recovery, difference), strict=True)):
        lines = {kind: [row[column] for row in rows] for kind, rows in found.items()}
        curves(ax, range(1, TRACED + 1), lines, LOOKS, xlabel="after block", ylim=(-0.03, 1.03), title=title)
    axes[0].legend(frameon=False, fontsize=10)
    r2 = {kind: [f"{rows[n][0]:.2f}" for n in (0, 5, -1)] for kind, rows in found.items()}
    words = "; ".join(f"{kind} {a} after one block, {b} after six, {c} after twelve" for kind, (a, b, c) in r2.items())
    apart = "; ".join(f"{kind} {rows[0][1]:.2f}, {rows[5][1]:.2f}, {rows[-1][1]:.2f}" for kind, rows in found.items())
    alt = "Two line charts over twelve untrained blocks. Fraction of each word's own vector that a linear map "
    alt += f"recovers: {words}. Fraction of the variance that differs between tokens, after one, six and twelve: "
    alt += f"{apart}."
    caption = "Figure 9.4. What is left of a word after each block, with and without residual connections."
    fixed = "Figure 9.5. The block with the bug keeps as much of a word as post-norm, your fix as much as pre-norm."
    return Picture(figure, alt, caption if fixed_block is None else fixed)


def three_influences() -> Picture:
    """The influence of each word on each output of the translator's attention, a linear layer and a convolution."""
    x, attention = word_vectors(), translator.model().encoder.blocks[0].attention.double()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        linear, slide = nn.Linear(64, 64).double(), nn.Conv1d(64, 64, 3, padding=1).double()
    mixers = {
        "attention": lambda x: attention(x[None])[0][0],
        "linear layer": linear,
        "convolution, kernel 3": lambda x: slide(x.T[None])[0].T,
    }
    figure, axes = new_figure(8.6, 3.1, 1, 3)
    first_rows = []
    for ax, (name, f) in zip(axes, mixers.items(), strict=True):
        influence = torch.linalg.vector_norm(torch.func.jacrev(f)(x.double()), dim=(1, 3))  # (T, T)
        fractions = (influence / influence.sum(dim=1, keepdim=True)).detach()
        rows = WORDS if ax is axes[0] else [""] * 5
        weight_map(ax, fractions, rows, WORDS, mask=fractions > 1e-12, tilted=True, title=name)
        first_rows.append(f"{name}: the row of jane {', '.join(f'{v:.2f}' for v in fractions[0].tolist())}")
    axes[0].set_ylabel("this output ...")
    axes[1].set_xlabel("... depends on this word")
    alt = "Three 5 by 5 heat maps, rows are outputs, columns are the words that they depend on, as fractions. "
    alt += f"{'; '.join(first_rows)}. "
    alt += "Attention fills the whole table, the linear layer its diagonal, the convolution a band."
    return Picture(figure, alt, "Figure 9.10. How strongly each output depends on each word, as a fraction.")


def encoder_influence(token_influence) -> Picture:
    encoder = translator.model().encoder.double().requires_grad_(False)
    x = word_vectors().double()

    def all_blocks(rows):
        for block in encoder.blocks:
            rows = block(rows[None])[0]
        return rows

    influence = token_influence(all_blocks, x)  # (T, T)
    figure, ax = new_figure(5.0, 3.6)
    heatmap(ax, influence, WORDS, WORDS, tilted=True, xlabel="input word", ylabel="output word")
    table = zip(WORDS, influence.tolist(), strict=True)
    rows = "; ".join(f"{word}: {', '.join(f'{v:.1f}' for v in row)}" for word, row in table)
    alt = f"A 5 by 5 heat map, how strongly each output of the trained encoder changes with each input word. {rows}."
    caption = "Figure 9.11. How strongly each word influences each output of the trained encoder (two blocks)."
    return Picture(figure, alt, caption)


def encoders_to_compare() -> dict:
    """The trained encoder, untrained blocks on its trained word vectors, and an entirely untrained encoder."""
    trained, sizes = translator.model().encoder, (len(translator.english), 64, 4, 128, 2, translator.MAX_LEN)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        untrained, random_words_too = (translator.FINISHED_PARTS["Encoder"](*sizes) for _ in range(2))
    untrained.tokens.load_state_dict(trained.tokens.state_dict())
    for encoder in (untrained, random_words_too):
        encoder.positions.load_state_dict(trained.positions.state_dict())
    return {"trained": trained, "trained words, untrained blocks": untrained, "untrained": random_words_too}


@torch.no_grad()
def predictable(encoder) -> list[list[float]]:
    """For each block, R² of predicting each head's output from those of the other heads, on 200 unseen sentences."""
    src = evaluation.unseen(200).src  # (B, T), padded with 0
    mask = src != 0  # (B, T)
    x, found = encoder.tokens(src) + encoder.positions.weight[: src.shape[1]], []  # (B, T, D)
    for block in encoder.blocks:
        _, weights = block.attention(x, mask=mask[:, None, None])  # (B, H, T, T)
        H = weights.shape[1]
        values = block.attention.W_v(x).unflatten(-1, (H, -1)).transpose(1, 2)  # (B, H, T, D/H)
        heads = (weights @ values).transpose(1, 2)[mask]  # (N, H, D/H)
        others = (heads[:, [i for i in range(H) if i != h]].flatten(1) for h in range(H))
        found.append([recovered(other, heads[:, h]) for h, other in enumerate(others)])
        x = block(x, mask[:, None, None])  # (B, T, D)
    return found


@functools.lru_cache(maxsize=1)
def damage_without_feed_forward() -> dict[str, tuple[float, float]]:
    """(nats per word, fraction exact) on 200 unseen sentences: as trained, without feed-forward, without ReLU."""

    class NoFeedForward(translator.FINISHED_PARTS["EncoderBlock"]):
        def forward(self, x, mask=None):
            return self.norm2(self.norm1(x + self.attention(x, mask=mask)[0]))

    no_relu = functools.partial(translator.FINISHED_PARTS["FeedForward"], activation=nn.Identity())
    networks = {
        "as trained": translator.model(),
        "encoder without feed-forward": translator.model(EncoderBlock=NoFeedForward),
        "feed-forward without ReLU": translator.model(FeedForward=no_relu),
    }
    batch = evaluation.unseen(200)
    return {
        name: (evaluation.nats_per_word(net, batch), evaluation.exact(net, batch)) for name, net in networks.items()
    }


def without_feed_forward() -> Picture:
    found = damage_without_feed_forward()
    figure, ax = new_figure(7.4, 2.3)
    labels = [f"{evaluation.in_nats(loss)} nats, {100 * exact:.0f}% exact" for loss, exact in found.values()]
    bars(ax, list(found), [loss for loss, _ in found.values()], labels, across=True, color=[BLUE, ORANGE, ORANGE])
    ax.set(xlim=(0, 7.5), xlabel="loss on 200 unseen sentences, nats per word")
    losses = "; ".join(f"{name} {label}" for name, label in zip(found, labels, strict=True))
    alt = f"Three bars of the translator's loss in nats per word: {losses}."
    caption = "Figure 9.6. The translator without its encoder's feed-forward networks, and with all of them but no "
    caption += "ReLU."
    return Picture(figure, alt, caption)


@functools.cache
def orders_of_interaction(kind: str, depth: int, tokens: int = 8, width: int = 8) -> list[float]:
    """For n = 1 to `tokens`: the size of the effect on the first output that needs n words jointly, the first included.

    This is the n-th mixed difference. We change the words in all 2ⁿ combinations and sum the outputs with alternating
    signs, so that every term that depends on fewer than n words cancels.
    kind: "softmax", or "linear" for attention without softmax.
    """
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    matrices = [[draw(width, width) * 0.3 for _ in range(3)] for _ in range(depth)]
    before, after = draw(tokens, width), draw(tokens, width)
    sizes = []
    for n in range(1, tokens + 1):
        choices = torch.cartesian_prod(*[torch.tensor([False, True])] * n).reshape(-1, n)  # (2ⁿ, n)
        changed = F.pad(choices, (0, tokens - n))  # (2ⁿ, T)
        x = torch.where(changed[..., None], after, before)  # (2ⁿ, T, D)
        for W_q, W_k, W_v in matrices:
            scores = (x @ W_q) @ (x @ W_k).transpose(-2, -1)
            x = x + (torch.softmax(scores, dim=-1) if kind == "softmax" else scores / tokens) @ (x @ W_v)
        signs = 1.0 - 2.0 * ((n - choices.sum(dim=1)) % 2)
        sizes.append(float((signs[:, None] * x[:, 0]).sum(dim=0).norm()))
    return sizes


def interactions() -> Picture:
    figure, axes = new_figure(8.6, 3.1, 1, 2, sharey=True)
    titles = {"linear": "attention without softmax", "softmax": "attention with softmax"}
    for ax, (kind, title) in zip(axes, titles.items(), strict=True):
        for depth, color, mark in zip((1, 2, 3), (BLUE, GREEN, RED), "osD", strict=True):
            sizes = [size if size > 1e-9 else float("nan") for size in orders_of_interaction(kind, depth)]
            ax.plot(range(1, 9), sizes, mark, ls="-", color=color, label=f"{depth} layer{'s' * (depth > 1)}")
        ax.set(yscale="log", xlabel="words changed jointly", xticks=range(1, 9), title=title)
    axes[0].set_ylabel("size of the joint effect")
    axes[0].legend(frameon=False, fontsize=10, loc="lower left")
    most = {depth: sum(size > 1e-9 for size in orders_of_interaction("linear", depth)) for depth in (1, 2, 3)}
    small = ", ".join(f"{size:.2g}" for size in orders_of_interaction("softmax", 1))
    alt = "Two line charts of the size of the effect that needs n words at once, n from 1 to 8. Without softmax one "
    alt += f"layer reaches {most[1]} words, two layers {most[2]}, three layers all {most[3]} that there are; beyond, "
    alt += f"the effect is exactly 0 and not drawn. With softmax one layer reaches all 8, with sizes {small}."
    return Picture(figure, alt, "Figure 9.12. How many words one output can relate jointly, by number of layers.")


def receptive(layers_: int, kernel: int, tokens: int = 15) -> Picture:
    reach = layers_ * (kernel // 2)
    middle = tokens // 2
    figure, axes = new_figure(8.6, 1.9, 2, 1, sharex=True)
    seen = {"convolution": [abs(t - middle) <= reach for t in range(tokens)], "attention": [True] * tokens}
    for ax, (name, row) in zip(axes, seen.items(), strict=True):
        for t, visible in enumerate(row):
            face = BLUE if visible else "#F1F1F1"
            ax.add_patch(Rectangle((t + 0.05, 0.1), 0.9, 0.8, facecolor=face, edgecolor="#8C8C8C"))
        ax.add_patch(Rectangle((middle + 0.05, 0.1), 0.9, 0.8, facecolor="none", edgecolor="black", lw=2.5))
        ax.set(xlim=(0, tokens), ylim=(0, 1), xticks=[], yticks=[])
        ax.set_ylabel(name, rotation=0, ha="right", va="center")
        ax.spines[["left", "bottom"]].set_visible(False)
    count = sum(seen["convolution"])
    plural = "s" * (layers_ > 1)
    axes[0].set_title(f"{layers_} layer{plural}, kernel {kernel}: {count} of {tokens} words; attention: {tokens}")
    alt = f"Fifteen words in a row, twice. After {layers_} layer{plural} of convolution with kernel {kernel} the "
    alt += f"middle output can depend on {count} words; after {layers_} layer{plural} of attention on all {tokens}."
    return Picture(figure, alt, caption="Blue: the words that can influence the framed position.")


def costs(block_macs, d_model: int = 512, d_ff: int = 2048) -> Picture:
    lengths = torch.logspace(1, 5, 81, dtype=torch.float64)
    parts = {
        "projections": 4 * lengths * d_model**2,
        "inside attention": 2 * lengths**2 * d_model,
        "feed-forward": 2 * lengths * d_model * d_ff,
    }
    figure, ax = new_figure(7.4, 3.4)
    curves(ax, lengths, parts, dict(zip(parts, ((BLUE, "-"), (ORANGE, "--"), (GREEN, "-.")), strict=True)))
    counted = [30, 300, 3000, 30_000]
    totals = [block_macs(T, d_model, d_ff) for T in counted]
    ax.plot(counted, totals, "o", color="black", ms=5, label="block_macs")
    for x, words in ((2 * d_model, "T = 2D"), (2 * d_model + d_ff, "T = 2D + F")):
        ax.axvline(x, color="gray", lw=1, ls=":")
        ax.text(x * 0.95, 2e12, f"{words}\n= {x}", ha="right", va="top", fontsize=SMALLEST, color=GRAY_INK)
    ax.set(xscale="log", yscale="log", xlabel="tokens T", ylabel="MACs", xlim=(10, 1e5), ylim=(1e7, 4e13))
    ax.set_title(f"one block, D = {d_model}, F = {d_ff}")
    ax.legend(frameon=False, fontsize=10, loc="lower right")
    alt = f"MACs of one block of width {d_model} with d_ff {d_ff} for 10 to 100,000 tokens, both axes logarithmic. "
    alt += "Projections and feed-forward grow in proportion to the tokens, the products inside attention with their "
    alt += f"square. Those pass the projections at {2 * d_model} tokens and everything else together at "
    alt += f"{2 * d_model + d_ff}. Dots are the sum for {counted[0]} tokens ({totals[0]:,}) to {counted[-1]:,}."
    return Picture(figure, alt, "Figure 9.9. What a block costs: the quadratic part dominates only for long texts.")
