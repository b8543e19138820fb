"""Figures of lesson 10: teacher forcing, cross-attention, the probabilities of the next word, and the KV cache."""

import functools
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from helpers import translator
from helpers.blocks import EncoderBlock, causal_mask, merge_heads, split_heads
from helpers.drawing.charts import bare, bars, heatmap, name_ticks, named, tilt, weight_map
from helpers.drawing.colors import BLUE, GRAY_INK, K_COLOR, ORANGE, Q_COLOR, RED_INK
from helpers.drawing.diagrams import TARGET, tokens
from helpers.drawing.style import Picture, new_figure
from helpers.translator import evaluation
from helpers.translator.network import Transformer
from helpers.translator.word_ids import french_list, french_sentence

ENGLISH = "jane visits africa in september"
FRENCH = "jane visite l' afrique en septembre"
STEPS, SENTENCES = 40, 40  # of the two training runs
SMALL = {  # a small model: the probabilities of the next word after each prefix
    ("<bos>",): {"le": 0.6, "la": 0.4},
    ("<bos>", "le"): {"chat": 0.4, "chien": 0.35, "roi": 0.25},
    ("<bos>", "la"): {"reine": 0.9, "mer": 0.1},
}
SHOWN = 14  # of the most likely words
D, HEADS, D_FF = 64, 4, 128  # the translator's widths
LENGTHS = (4, 8, 16, 32, 64)  # numbers of words to generate, with a cache and without


def teacher_forcing() -> Picture:
    words = FRENCH.split()
    reads, predicts = ["<bos>", *words], [*words, "<eos>"]
    figure, ax = new_figure(8.4, 2.9)
    tokens(ax, reads, range(len(reads)), 0, [0.84] * len(reads))
    tokens(ax, predicts, range(len(predicts)), 2, [0.84] * len(predicts), **TARGET)
    for t in range(len(reads)):
        for earlier in range(t + 1):
            own = earlier == t
            ax.plot([earlier, t], [0.24, 1.76], color=BLUE if own else "#B5C9D8", lw=2 if own else 0.9, zorder=0)
        ax.text(t, -0.42, str(t), ha="center", va="center", fontsize=9.5, color=GRAY_INK)
    for y, text in ((0, "reads"), (2, "predicts"), (-0.42, "position")):
        ax.text(-0.6, y, text, ha="right", va="center", fontsize=10.5)
    bare(ax, xlim=(-1.7, len(reads) - 0.5), ylim=(-0.65, 2.35))
    pairs = ", ".join(f"{t}: reads {a}, predicts {b}" for t, (a, b) in enumerate(zip(reads, predicts, strict=True)))
    alt = f"Two rows of seven words, one shifted against the other. Position {pairs}. Each predicted word depends on "
    alt += "the word below it and on all words to the left of that one, never on one to the right."
    caption = "Figure 10.1. Teacher forcing: each position attends to the true words so far and predicts the next one."
    return Picture(figure, alt, caption)


class Training(NamedTuple):
    """A small Transformer's loss curve, how many of its training sentences it translates exactly, and a translation."""

    curve: list[float]
    right: int
    written: str


def trained_with(loss_of) -> Training:
    """Train a small Transformer with loss_of(model, src, tgt, pad_id), always from the same initialization."""
    batch = evaluation.unseen(SENTENCES)
    tgt = torch.cat([batch.tgt_in[:, :1], batch.tgt_out], dim=1)  # (B, T_t + 1): bos, words, eos, padding
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Transformer(len(translator.english), len(translator.french), 32, 4, 64, 1, 24)
    adam, curve = torch.optim.Adam(model.parameters(), lr=8e-3), []
    for _ in range(STEPS):
        loss = loss_of(model, batch.src, tgt, translator.PAD)
        adam.zero_grad()
        loss.backward()
        adam.step()
        curve.append(loss.item())
    rows = translator.greedy(model.eval(), batch.src, 14).tolist()
    right = sum(french_sentence(row) == french for row, french in zip(rows, batch.french, strict=True))
    return Training(curve, right, " ".join(words_of(rows[1][1:8])))


@functools.lru_cache(maxsize=1)
def trained_to_copy() -> Training:
    """The run with the bug of exercise 10.2, where the decoder's input contains the word that it has to predict."""
    return trained_with(lambda model, src, tgt, pad_id: F.cross_entropy(model(src, tgt).mT, tgt, ignore_index=pad_id))


def two_runs(fixed_loss) -> Picture:
    """The loss of a run with the bug and of one with fixed_loss, and what both models generate by themselves."""
    results = {"your loss": trained_with(fixed_loss), "loss with the bug": trained_to_copy()}
    figure, ax = new_figure(7.6, 3.4)
    described, style = [], {"textcoords": "offset points", "va": "center"}
    # The two curves end close together, so one label is above its curve's end and the other below.
    for (name, found), color, lift in zip(results.items(), (BLUE, ORANGE), (12, -12), strict=True):
        ax.plot(found.curve, color=color, lw=2)
        words, end = f"{name}: {found.curve[-1]:.2f}", (len(found.curve), found.curve[-1])
        ax.annotate(words, end, (6, lift), color=color, **style)
        described.append(
            f"{name}, loss {found.curve[0]:.1f} at the start and {found.curve[-1]:.2f} at the end, writes "
            f"{found.right} of its {SENTENCES} sentences, and for the second “{found.written}”"
        )
    ax.set(xlabel="training step", ylabel="loss, nats per word", xlim=(0, STEPS * 1.5), ylim=(-0.7, None))
    ax.set_xticks(range(0, STEPS + 1, 10))
    lines = [f"{name}: {found.right} of {SENTENCES} sentences correct" for name, found in results.items()]
    lines += [f"{name}: {found.written}" for name, found in results.items()]
    ax.text(0.99, 0.98, "\n".join(lines), transform=ax.transAxes, ha="right", va="top", fontsize=10)
    alt = f"Loss of two training runs. {'; '.join(described)}."
    caption = "Figure 10.2. The model that reads what it has to predict has the lower loss, and cannot write even the "
    caption += "sentences that it was trained on."
    return Picture(figure, alt, caption)


@torch.no_grad()
def with_source_hidden(english: str, french: str) -> list[tuple[str, float, float]]:
    """For each word that the decoder has to predict: the word, its probability, and its probability when that position
    alone can't attend to the source in any block."""
    network, src = translator.model(), translator.source_batch([english])
    names, ids = [*french.split(), "<eos>"], [translator.french[word] for word in french.split()]
    targets, reads = [*ids, translator.EOS], torch.tensor([[translator.BOS, *ids]])  # reads: (1, T_t)
    memory = network.encode(src)  # (1, T_s, D)

    def probability(position, hide):
        mask = torch.ones(1, 1, len(targets), src.shape[1], dtype=torch.bool)  # (1, 1, T_t, T_s)
        mask[:, :, position] = not hide
        # The block's arguments are y, memory and the two masks.
        hooks = [block.register_forward_pre_hook(lambda _, args: (*args[:3], mask)) for block in network.blocks]
        logits = network.decode(reads, memory, src)  # (1, T_t, V)
        for hook in hooks:
            hook.remove()
        return torch.softmax(logits[0, position], dim=-1)[targets[position]].item()

    return [(name, probability(t, False), probability(t, True)) for t, name in enumerate(names)]


def cross_attention() -> Picture:
    english, french = ENGLISH.split(), FRENCH.split()
    tgt = torch.tensor([[translator.BOS, *(translator.french[word] for word in french)]])  # (1, T_t)
    seen = evaluation.attention_of(translator.model(), translator.source_batch([ENGLISH]), tgt)
    weights = seen.cross[0].mean(dim=0)  # (T_t, T_s), of the last block
    reads, predicts = ["<bos>", *french], [*french, "<eos>"]
    figure, (ax, right) = new_figure(8.6, 4.2, columns=2)
    weight_map(ax, weights, [f"{a} → {b}" for a, b in zip(reads, predicts, strict=True)], english, tilted=True)
    ax.set_xlabel("source words: keys and values", color=K_COLOR)
    ax.set_ylabel("position: reads → has to predict", color=Q_COLOR)
    hidden = [p_hidden for _, _, p_hidden in with_source_hidden(ENGLISH, FRENCH)]
    bars(right, predicts, hidden, ".3f", across=True, xlim=(0, 1.25), xlabel="probability of the correct word")
    right.set_xticks([0, 0.5, 1])
    right.set_title("source hidden from this position", fontsize=11)
    best = zip(reads, predicts, weights.argmax(-1).tolist(), weights.amax(-1).tolist(), strict=True)
    most = [f"{read} (next: {say}) to {english[key]} {weight:.2f}" for read, say, key, weight in best]
    needs = named(predicts, hidden, ".3f")
    alt = "Left: cross-attention of the translator's last block, 7 target positions by 5 source words. Largest weight "
    alt += f"of each row: {', '.join(most)}. Right: probability of the correct next word when the source is hidden "
    alt += f"from that position: {needs}. With the source all are 1.000."
    caption = "Figure 10.3. Cross-attention of the trained translator, and what is left when the source is hidden."
    return Picture(figure, alt, caption)


@functools.lru_cache(maxsize=1)
def first_word_logits() -> torch.Tensor:
    """The translator's logits (V,) for its first French word, with the source hidden."""
    network = translator.model()
    src = torch.full((1, 5), translator.PAD)
    with torch.no_grad():
        return network(src, torch.tensor([[translator.BOS]]))[0, -1]  # (V,)


def words_of(order) -> list[str]:
    return [french_list[int(i)] for i in order]


def next_words() -> Picture:
    p, order = torch.softmax(first_word_logits(), dim=0).sort(descending=True)
    names = words_of(order[:SHOWN])
    figure, ax = new_figure(8.0, 3.0)
    bars(ax, names[:SHOWN], p[:SHOWN], [f"{x:.2f}" if x >= 0.005 else "" for x in p[:SHOWN]], ylabel="probability")
    tilt(ax)
    tail = f"{len(p) - SHOWN} more words: {p[SHOWN:].sum():.3f} together"
    ax.text(0.99, 0.9, tail, transform=ax.transAxes, ha="right", fontsize=10.5)
    words = ", ".join(f"{name} {float(x):.2f}" for name, x in zip(names, p, strict=False))
    alt = f"Probabilities of the translator's first French word when the source is hidden: {words}. {tail}."
    return Picture(figure, alt, "Figure 10.6. Probabilities of the first French word, with the source hidden.")


def cache_cells() -> Picture:
    words = ["<bos>", *FRENCH.split()]
    length = len(words)
    figure, axes = new_figure(8.4, 3.9, columns=2)
    seen = torch.ones(length, length).tril().bool()
    style = {"mask": seen, "vmin": 0, "vmax": 1.6, "numbers": False, "tilted": True, "aspect": "equal"}
    for ax, title, first in zip(axes, ("without a cache", "with a cache"), (0, length - 1), strict=True):
        done = torch.zeros(length, length)
        done[first:] = 1.0
        note = "only the last is new" if first else "all recomputed"
        heatmap(ax, done, words, words, title=title, xlabel=f"keys and values: {note}", ylabel="queries", **style)
        for i, j in seen[:first].nonzero().tolist():
            ax.text(j, i, "·", ha="center", va="center", color=GRAY_INK, fontsize=12)
    full = length * (length + 1) // 2
    alt = f"Two triangles of {length} by {length} weights. To write the next word without a cache all {full} visible "
    alt += f"cells and all {length} rows are computed again; with a cache the last row alone, {length} cells."
    caption = "Figure 10.4. Blue: what is computed to write the word after septembre. Dots: not needed any more."
    return Picture(figure, alt, caption)


def cached_block(block, x, cache, attend):
    """The output of a block for new words x (1, T_new, D), with earlier keys and values cached, and the new cache."""
    mha = block.attention
    q, k, v = (split_heads(W(x), HEADS) for W in (mha.W_q, mha.W_k, mha.W_v))  # (1, H, T_new, d_k) each
    out, cache = attend(q, k, v, cache)
    x = block.norm1(x + mha.W_o(merge_heads(out)))  # (1, T_new, D)
    return block.norm2(x + block.feed_forward(x)), cache


def counted_macs(length: int, attend=None) -> int:
    """Multiply-adds, counted while one block runs for each of `length` generated words.

    attend: a function such as cached_attention, so that each step computes the new row alone; all rows if None.
    """
    with torch.random.fork_rng(devices=[]):
        block = EncoderBlock(D, HEADS, D_FF).eval()
    x, cache = torch.zeros(1, length, D), None
    # FlopCounterMode counts the matrix products of the MATH backend.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        for t in range(1, length + 1):
            if attend is None:
                block(x[:, :t], causal_mask(t))
            else:
                _, cache = cached_block(block, x[:, t - 1 : t], cache, attend)
    return counter.get_total_flops() // 2


def cache_saving(attend) -> Picture:
    """Multiply-adds of one block while T words are generated, without a cache and with the cache of `attend`."""
    plain = [counted_macs(T) for T in LENGTHS]
    cached = [counted_macs(T, attend) for T in LENGTHS]
    figure, ax = new_figure(7.6, 3.8)
    for counts, color, name in ((plain, ORANGE, "without a cache"), (cached, BLUE, "with a cache")):
        ax.plot(LENGTHS, [count / 1e6 for count in counts], "o-", color=color, lw=2)
        ax.text(LENGTHS[-1] * 1.08, counts[-1] / 1e6, name, color=color, va="center", fontsize=10.5)
    for T, a, b in zip(LENGTHS, plain, cached, strict=True):
        ax.plot([T, T], [b / 1e6, a / 1e6], color="#B0B0B0", lw=1, zorder=0)
        ax.text(T, (a * b) ** 0.5 / 1e6, f" {a / b:.1f}×", fontsize=9.5, color=RED_INK, ha="left", va="center")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    name_ticks(ax, LENGTHS)
    ax.set(xlabel="words written", ylabel="million multiplications", xlim=(3.6, 150))
    rows = zip(LENGTHS, plain, cached, strict=True)
    described = ", ".join(f"{T} words {a:,} against {b:,}, {a / b:.1f} times" for T, a, b in rows)
    alt = f"Multiplications of one block while it writes, without and with a cache: {described}."
    caption = "Figure 10.5. Work of one block (self-attention and feed-forward network), counted while the code ran. "
    caption += "Between the lines: how many times more work it is without a cache."
    return Picture(figure, alt, caption)
