"""Figures of lesson 14: SwiGLU, two RoPE layouts, KV caches, sliding windows, BPE merges, and measured comparisons."""

import re
from dataclasses import dataclass

import torch
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle
from torch.nn import functional as F

from helpers.drawing.charts import HATCHED, bare, bars, frame_cells, heatmap, name_ticks, run_bars, without_spines
from helpers.drawing.colors import BLUE, CYCLE, GRAY_INK, GREEN, ORANGE, RED, SIGNED
from helpers.drawing.diagrams import arrow
from helpers.drawing.measured import measured
from helpers.drawing.style import Picture, new_figure

KIB, MIB, GIB = 2**10, 2**20, 2**30
LABELS = {
    "RMS norm": "RMSNorm",
    "a gate": "SwiGLU",
    "rotations": "RoPE",
    "one head of keys and values": "one key-value head",
}
OWN_PIECES = re.compile(r" ?\S+|\s")


def gates() -> Picture:
    z = torch.linspace(-4, 4, 161)
    figure, (left, right) = new_figure(8.4, 3.0, 1, 2)
    left.plot(z, F.relu(z), color=GRAY_INK, lw=1.8, ls="--", label="ReLU")
    left.plot(z, F.silu(z), color=BLUE, lw=2.2, label="silu")
    left.set(xlabel="z", title="two activations", ylim=(-1, 4.2))
    left.legend(frameon=False, loc="upper left")
    for up, color in zip((3.0, 1.0, -1.0, -3.0), (BLUE, GREEN, ORANGE, RED), strict=True):
        right.plot(z, F.silu(z) * up, color=color, lw=2, label=f"up = {up:.0f}".replace("-", "−"))
    right.set(xlabel="gate", title="silu(gate) · up", ylim=(-12.5, 12.5))
    right.legend(frameon=False, loc="upper left", ncols=2, fontsize=9)
    for draw in (left.axhline, left.axvline, right.axhline, right.axvline):
        draw(0, color="#BBBBBB", lw=0.8, zorder=0)
    low = F.silu(z).min().item()
    alt = f"Left: silu beside ReLU; it is 0 at 0, {low:.2f} at its lowest near −1.3, and nears ReLU far out. Right: "
    alt += "the product silu(gate) · up for up = 3, 1, −1, −3: nearly 0 where the gate is far below 0, and about gate "
    alt += "· up where it is far above."
    caption = "Figure 14.1. The activation silu, and a gate: one value decides how much of another passes."
    return Picture(figure, alt, caption)


def two_pairings(width: int = 8) -> Picture:
    half = width // 2
    layouts = {
        "interleaved: lesson 2, Meta's files": [(2 * i, 2 * i + 1) for i in range(half)],
        "half-split: the files on the hub": [(i, i + half) for i in range(half)],
    }
    figure, axes = new_figure(8.4, 2.5, 1, 2)
    for ax, (title, pairs) in zip(axes, layouts.items(), strict=True):
        for i, pair in enumerate(pairs):
            for channel in pair:
                ax.add_patch(Rectangle((channel - 0.42, -0.42), 0.84, 0.84, facecolor=CYCLE[i], alpha=0.35))
                ax.text(channel, 0, str(channel), ha="center", va="center", fontsize=11)
            curvature = -0.9 if pair[1] - pair[0] == 1 else -0.45
            style = {"connectionstyle": f"arc3,rad={curvature}", "arrowstyle": "-"}
            arrow(ax, (pair[0], 0.45), (pair[1], 0.45), CYCLE[i], **style)
        ax.set(xlim=(-0.6, width - 0.4), ylim=(-0.6, 2.2), title=title, xticks=[], yticks=[])
        without_spines(ax)
    described = "; ".join(f"{name}: " + ", ".join(f"{a} with {b}" for a, b in p) for name, p in layouts.items())
    alt = f"The {width} channels of a head, joined in pairs. {described}. Pairs of one color rotate by the same angle."
    caption = "Figure 14.2. Two layouts of RoPE. A color is an angle; the first pair rotates fastest."
    return Picture(figure, alt, caption)


def three_scores(meant, moved, forgotten) -> Picture:
    """Scores (T, T) as the file requires them, with the permuted rows and without; wrong cells are framed."""
    figure, axes = new_figure(8.6, 2.9, 1, 3)
    limit = float(max(table.abs().max() for table in (meant, moved, forgotten)))
    titles = "interleaved, as the file requires", "reordered, then half-split", "half-split, not reordered"
    described = []
    for ax, table, title in zip(axes, (meant, moved, forgotten), titles, strict=True):
        heatmap(ax, table, cmap=SIGNED, vmin=-limit, vmax=limit, digits=1)
        wrong = (table - meant).abs() > 1e-3
        frame_cells(ax, wrong.nonzero().tolist(), width=1.6)
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("key")
        described.append(f"{title}: {int(wrong.sum())} of {wrong.numel()} scores are wrong")
    axes[0].set_ylabel("query")
    diagonal = "are" if ((forgotten - meant).diagonal().abs() < 1e-3).all() else "are not all"
    diagonal = f"Without the permutation those of the diagonal {diagonal} right."
    alt = f"Three tables of scores of five tokens. {'; '.join(described)}. {diagonal}"
    return Picture(figure, alt, "Figure 14.7. Scores of the same file in three ways. Framed: scores that are wrong.")


@dataclass(frozen=True)
class Model:
    """The published sizes that determine the size of a KV cache. heads: of queries. window: None for full attention."""

    name: str
    layers: int
    heads: int
    kv_heads: int
    d_head: int
    window: int | None = None

    def bytes_of_a_token(self) -> int:
        """The bytes of a token's keys and values in all layers, 16 bits per value."""
        return 2 * self.layers * self.kv_heads * self.d_head * 2

    def bytes_of(self, tokens: int) -> int:
        """The bytes of the cache after a number of tokens."""
        return self.bytes_of_a_token() * min(tokens, self.window or tokens)


MODELS = (
    Model("GPT-2 XL, 1.5B", 48, 25, 25, 64),
    Model("Llama 2, 7B", 32, 32, 32, 128),
    Model("Llama 3, 8B", 32, 32, 8, 128),
    Model("Qwen 2.5, 7B", 28, 28, 4, 128),
    Model("Falcon, 7B", 32, 71, 1, 64),
    Model("Mistral v0.1, 7B", 32, 32, 8, 128, 4096),
)
LENGTHS = tuple(2**power for power in range(8, 18))


def in_bytes(count: float) -> str:
    """A number of bytes as text, in the largest unit that fits."""
    unit, name = next((pair for pair in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")) if count >= pair[0]), (1, "bytes"))
    value = count / unit
    return f"{value:.0f} {name}" if value == round(value) else f"{value:.3g} {name}"


def kind(model: Model) -> str:
    """How a model's heads share keys and values: MHA, MQA or GQA."""
    return "MHA" if model.kv_heads == model.heads else "MQA" if model.kv_heads == 1 else "GQA"


def cache_bytes() -> Picture:
    figure, (left, right) = new_figure(8.6, 3.6, 1, 2, width_ratios=(1, 1.25))
    sizes = [model.bytes_of_a_token() / KIB for model in MODELS]
    names = [f"{model.name}\n{kind(model)}" for model in MODELS]
    bars(left, names, sizes, ".0f", across=True, color=CYCLE[: len(MODELS)])
    left.tick_params(axis="y", labelsize=9)
    left.set(xlabel="KiB for one token", xlim=(0, max(sizes) * 1.18))
    for model, color in zip(MODELS, CYCLE, strict=True):
        line = "--" if model.window else "-"
        right.plot(LENGTHS, [model.bytes_of(T) / GIB for T in LENGTHS], color=color, lw=2, ls=line)
    right.set(xscale="log", yscale="log", xlabel="tokens of text", title="cache of one text, GiB")
    name_ticks(right, x=(256, 4096, 65536), y=(0.01, 0.1, 1, 10))
    rows = ((f"{model.name} ({kind(model)})", model.bytes_of_a_token(), model.bytes_of(65536)) for model in MODELS)
    described = "; ".join(f"{name} {in_bytes(a)} per token, {in_bytes(b)} for 65,536" for name, a, b in rows)
    alt = f"The cache of six models, 16 bits per number: {described}. "
    alt += "Mistral's stops growing at its window of 4096 tokens."
    caption = "Figure 14.3. Size of the KV cache by the length of the text. Dashed: a window of 4096."
    return Picture(figure, alt, caption)


def six_changes() -> Picture:
    """Each change alone, and all six together, as `python -m bench.six_changes` measured them."""
    found = measured("today", "changes")
    line = found["line"]
    losses = {LABELS.get(name, name): [loss - line for loss in three] for name, three in found["losses"].items()}
    figure, ax = new_figure(8.2, 3.6)
    ax.axvspan(min(losses["2017"]), max(losses["2017"]), color="#DDDDDD", zorder=0)
    described = []
    for i, (name, above) in enumerate(losses.items()):
        mean = sum(above) / len(above)
        color = GRAY_INK if name == "2017" else RED if name == "all six" else BLUE
        ax.plot(above, [i] * len(above), "o", ms=6, color=color, alpha=0.75)
        ax.plot([mean, mean], [i - 0.3, i + 0.3], color=color, lw=2)
        described.append(f"{name} {mean:.3f}, from {min(above):.3f} to {max(above):.3f}")
    ax.set_yticks(range(len(losses)), list(losses))
    ax.invert_yaxis()
    ax.set(xlabel="nats per token above the entropy, unseen passages", xlim=(0.45, None))
    alt = "Eight kinds of model after a short training, nats per token above the entropy, mean of three seeds: "
    alt += f"{'; '.join(described)}."
    caption = "Figure 14.4. One change at a time. Dots: training runs; strokes: their means; gray: the range of 2017."
    return Picture(figure, alt, caption)


def window_cells(ax, mask):
    """Draw a mask (T_q, T_k), blue where a query may attend and hatched elsewhere; returns the blue image."""
    T_q, T_k = mask.shape
    ax.add_patch(Rectangle((-0.5, -0.5), T_k, T_q, **HATCHED, zorder=0))  # one below all is faster than one per cell
    image = ax.imshow(seen_in_blue(mask), aspect="auto", zorder=1)
    for axis, size in ((ax.xaxis, T_k), (ax.yaxis, T_q)):
        axis.set_ticks(range(0, size, 1 if size < 12 else 3))
    without_spines(ax)
    return image


def seen_in_blue(mask) -> torch.Tensor:
    """A mask as colors (T_q, T_k, 4): blue where it is True, transparent elsewhere."""
    return torch.where(mask[..., None], torch.tensor(to_rgba("#6BAED6")), torch.tensor([1.0, 1.0, 1.0, 0.0]))


def windows(answer) -> Picture:
    shown = {"causal": (9, 0), "window 3": (3, 0), "window 3, 2 sinks": (3, 2)}
    figure, axes = new_figure(8.6, 3.0, 1, 3)
    described = []
    for ax, (title, (window, sinks)) in zip(axes, shown.items(), strict=True):
        mask = answer(9, window=window, sinks=sinks)
        window_cells(ax, mask)
        ax.set(title=title, xlabel="keys")
        last, total = int(mask[-1].sum()), int(mask.sum())
        described.append(f"{title}: the last query attends to {last} keys, all queries to {total}")
    axes[0].set_ylabel("queries")
    alt = f"The keys to which each of nine queries may attend. {'; '.join(described)}."
    return Picture(figure, alt, "Figure 14.5. A causal mask, a sliding window, and a window with two sinks.")


def merges() -> Picture:
    """The text `ab ab abc` before any merge and after one, two and three."""
    steps = (
        ("bytes", ["a", "b", "|", "␣", "a", "b", "|", "␣", "a", "b", "c"]),
        ("(a, b), three times", ["ab", "|", "␣", "ab", "|", "␣", "ab", "c"]),
        ("(␣, ab), twice", ["ab", "|", "␣ab", "|", "␣ab", "c"]),
        ("(␣ab, c), once", ["ab", "|", "␣ab", "|", "␣abc"]),
    )
    figure, ax = new_figure(8.2, 2.4)
    for row, (label, tokens) in enumerate(steps):
        ax.text(0, -row, label, va="center", fontsize=10.5)
        x = 4.2
        for token in tokens:
            if token == "|":
                x += 0.55
                continue
            width = 0.62 * len(token)
            face = "#DCE9F5" if len(token) > 1 else "white"
            ax.add_patch(Rectangle((x, -row - 0.34), width, 0.68, facecolor=face, edgecolor=BLUE))
            ax.text(x + width / 2, -row, token, ha="center", va="center", fontsize=11, family="DejaVu Sans Mono")
            x += width + 0.12
    bare(ax, xlim=(0, 13.6), ylim=(-3.6, 0.6))
    described = "; ".join(f"{label}: {' '.join(tokens)}" for label, tokens in steps)
    alt = f"Three merges of the text ab ab abc, whose pieces are ab, space ab and space abc. {described}. "
    alt += "A bar separates the pieces."
    return Picture(figure, alt, "Figure 14.8. Merging by hand. No merge crosses the gap between two pieces.")


def dialect() -> Picture:
    """Exact translations in the new French and in ordinary French, as `python -m bench.dialect` measured them."""
    found = measured("today", "dialect")
    rows = {"before": "before", "merged": "LoRA, merged", "all numbers": "all parameters"}
    figure, axes = new_figure(8.4, 2.6, 1, 2, sharey=True)
    described = []
    for ax, (column, title) in zip(axes, ((2, "the new French"), (3, "ordinary French")), strict=True):
        runs = {name: [100 * row[column] for row in found[key]] for key, name in rows.items()}
        run_bars(ax, runs, colors=[GRAY_INK, BLUE, ORANGE], title=title, xlim=(0, 100), xlabel="% of sentences exact")
        for name, values in runs.items():
            described.append(f"{title}, {name}: " + ", ".join(f"{value:.1f}" for value in values))
    alt = f"Percent of 200 unseen sentences translated word for word, by seed. {'; '.join(described)}."
    return Picture(figure, alt, "Figure 14.6. Fine-tuning on 300 sentences. A dot is one of three training runs.")
