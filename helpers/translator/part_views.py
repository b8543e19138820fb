"""What `at_work` shows of a part besides the translation: one view for each kind of part, as assigned in parts.py.

A view is (trial, sentence, parts) -> (facts, pictures). `parts.replaced` has the learner's functions, guarded.
"""

import math

import torch

from helpers.translator import evaluation
from helpers.translator import pictures as figures
from helpers.translator.finished_parts import sinusoidal_positions
from helpers.translator.network import FINISHED_PARTS, Parts
from helpers.translator.parts import PARTS
from helpers.translator.table import NATS, Fact, Row
from helpers.translator.trained import D_MODEL, NUM_HEADS, model, source_batch, state
from helpers.translator.word_ids import BOS, EOS, PAD, english, english_list, french, french_list, french_sentence


def view_of(trial, sentence: str, parts: dict) -> tuple[list[Fact], list]:
    """Facts and pictures for the part of the latest lesson among `parts`."""
    latest = next((part for part in reversed(PARTS) if part.name in parts), None)
    return globals()[latest.view if latest else "attention_view"](trial, sentence, Parts(parts))


def attention_view(trial, sentence, parts):
    """The strongest encoder head for the sentence, and the cross-attention of each French word."""
    return [], figures.attention_map(trial, sentence)


def ids_view(trial, sentence, parts):
    """Lesson 1: ids, rows of the embedding table, and nearest words."""
    table, words = state()["encoder.tokens.weight"], sentence.split()
    ids = parts.encode(sentence, english).tolist()
    facts = [Fact("ids: " + "  ".join(f"{word} {i}" for word, i in zip(words, ids, strict=False)))]
    if "fixed_neighbors" in parts.replaced:
        neighbors = parts.fixed_neighbors(table.clone(), 3)[ids]
    else:
        cosines = parts.cosine_similarity(table[ids], table.clone()).clone()
        cosines[torch.arange(len(ids)), ids] = -torch.inf
        cosines[:, PAD] = -torch.inf
        neighbors = cosines.topk(3).indices
    for word, row in zip(words, neighbors.tolist(), strict=False):
        near_words = ", ".join(english_list[i] for i in row if 0 <= i < len(english_list))
        facts.append(Fact(f"nearest to {word}: {near_words}"))
    return facts, [figures.rows_of_table(parts.embed(torch.tensor(ids), table), words)]


def order_view(trial, sentence, parts):
    """Lesson 2: the loss with the English words shuffled."""
    batch = evaluation.unseen(evaluation.LOSS_SENTENCES)
    generator = torch.Generator().manual_seed(2)
    src = batch.src.clone()
    for row in src:
        length = int((row != PAD).sum())
        row[:length] = row[torch.randperm(length, generator=generator)]
    shuffled = evaluation.nats_per_word(trial.network, batch._replace(src=src))
    return [_loss("with the English words shuffled", shuffled)], figures.attention_map(trial, sentence)


def _loss(label: str, nats: float, indent: str = "") -> Fact:
    shown = evaluation.in_nats(nats)
    return Fact(f"{indent}{label}: {shown} nats per word", (Row(NATS, label, nats, shown),))


def scores_view(trial, sentence, parts):
    """Lesson 3: the raw scores of a trained head, and an edge from each word to its largest score."""
    layer, head, _ = evaluation.head_for(sentence)
    network = model()
    x = evaluation.input_of(network, f"encoder.blocks.{layer}", source_batch([sentence]))  # (1, T, D)
    attention = network.encoder.blocks[layer].attention
    projected = (parts.project(x, W.weight) for W in (attention.W_q, attention.W_k))  # (1, T, D) each
    Q, K = (FINISHED_PARTS["split_heads"](y, attention.num_heads)[0, head] for y in projected)  # (T, d_k) each
    scores = parts.attention_scores(Q, K)  # (T, T)
    if not scores.isfinite().any():
        return [Fact("none of these scores is a number, so there is no map to draw")], []
    return [], [figures.scores_and_edges(scores, sentence.split(), layer, head)]


def divisor_view(trial, sentence, parts):
    """Lesson 4: the losses of the trained network with four divisors."""
    facts = [Fact("one trained network, four divisors:")]
    batch = evaluation.unseen(evaluation.LOSS_SENTENCES)
    scores, width = FINISHED_PARTS["attention_scores"], D_MODEL // NUM_HEADS
    divisors = {
        "nothing": 1,
        "the square root of the head's width": width**0.5,
        "the square root of the model's width": D_MODEL**0.5,
        "the head's width": width,
    }
    for words, divisor in divisors.items():
        loss = evaluation.nats_per_word(model(scaled_scores=lambda Q, K, c=divisor: scores(Q, K) / c), batch)
        facts.append(_loss(f"divided by {words}", loss, "  "))
    if "weights_jacobian" in parts.replaced:
        layer, head, _ = evaluation.head_for(sentence)
        x, weights = evaluation.head_inputs(sentence, layer, head)
        Q, K = (x @ weights[f"W_{letter}.weight"].T for letter in "qk")  # (T, d_k) each
        for words, divisor in (("nothing", 1.0), ("the square root of the head's width", Q.shape[-1] ** 0.5)):
            largest = max(float(parts.weights_jacobian(q, K, divisor).abs().max()) for q in Q)
            label, shown = f"divided by {words}", f"{largest:.3f}"
            row = Row("largest derivative of a weight with respect to its query", label, largest, shown)
            facts.append(Fact(f"  largest derivative of a weight with respect to its query, {label}: {shown}", (row,)))
    return facts, figures.attention_map(trial, sentence)


def leak_view(trial, sentence, parts):
    """Lesson 5: how much later words leak, and what a fully masked row becomes."""
    batch = evaluation.unseen(evaluation.LOSS_SENTENCES)
    before = trial.network(batch.src, batch.tgt_in).softmax(-1)  # (B, T, V)
    changed = batch.tgt_in.clone()
    half = changed.shape[1] // 2
    later = changed[:, half:]
    later[later != PAD] = EOS + 1 + torch.arange(int((later != PAD).sum())) % (len(french) - EOS - 1)
    moved = (trial.network(batch.src, changed).softmax(-1) - before)[:, :half].abs().max().item()
    what = "other French words in the second half move the probabilities in the first half"
    found = "nothing leaks" if moved < 1e-6 else "the future leaks" if moved == moved else "NaN is everywhere"
    row = Row(what, "by up to", moved, f"{moved:.4f}", (found,), full=1.0)
    facts = [Fact(f"{what} by up to {moved:.4f}; {found}", (row,))]
    if "causal_mask" in parts.replaced:
        facts.append(Fact("the translation was written with a cache: one query at a time, under causal_mask(1, T_k)"))
    if "masked_softmax" in parts.replaced:
        row = parts.masked_softmax(torch.zeros(1, 3), torch.zeros(1, 3, dtype=torch.bool))
        facts.append(Fact("a fully masked row becomes " + " ".join(f"{x:g}" for x in row[0].tolist())))
    if "leaks_future" in parts.replaced:
        attention, mask = model().blocks[0].self_attention, FINISHED_PARTS["causal_mask"](6)
        x = torch.randn(2, 6, 64, generator=torch.Generator().manual_seed(5))
        with_mask = parts.leaks_future(lambda y: attention(y, mask=mask)[0], x)
        found = f"with its mask {with_mask}, without it {parts.leaks_future(lambda y: attention(y)[0], x)}"
        facts.append(Fact(f"your leaks_future on the decoder's self-attention: {found}"))
    return facts, figures.attention_map(trial, sentence)


def temperature_view(trial, sentence, parts):
    """Lesson 6: the loss against the temperature of the softmax in attention."""
    batch, points = evaluation.unseen(evaluation.LOSS_SENTENCES), []
    name = "softmax_with_temperature" if "softmax_with_temperature" in parts.replaced else "softmax"
    for temperature in (0.25, 0.5, 1.0, 1.5, 2.0, 3.0):
        heated = {
            "softmax_with_temperature": lambda x, _t, t=temperature: parts.softmax_with_temperature(x, t),
            "softmax": lambda x, dim=-1, t=temperature: parts.softmax(x / t, dim),
        }
        points.append((temperature, evaluation.nats_per_word(model(**{name: heated[name]}), batch)))
    if not any(math.isfinite(loss) for _, loss in points):
        return [Fact("the loss is NaN at every temperature, so there is no curve to draw")], []
    line = "nats per word by the temperature: " + "  ".join(f"{t:g}: {evaluation.in_nats(loss)}" for t, loss in points)
    return [Fact(line)], [figures.temperature_curve(points)]


def head_view(trial, sentence, parts):
    """Lesson 7: an attention map, and the context shift in the full encoder with its attention and without it."""
    src, words = source_batch([sentence]), sentence.split()
    facts = []
    for how, network in (("with", trial.network), ("without", model(attention=_no_attention))):
        after = network.encode(src)[0]  # (T, D)
        before = state()["encoder.tokens.weight"][src[0]] + sinusoidal_positions(len(words), after.shape[-1])
        shifts = parts.context_shift(before, after)
        values = [(word, float(shift), f"{shift:.2f}") for word, shift in zip(words, shifts, strict=True)]
        what = f"context shift in the whole encoder, {how} attention"
        line = f"{what}: " + "  ".join(f"{word} {shown}" for word, _, shown in values)
        facts.append(Fact(line, tuple(Row(what, *value) for value in values)))
    return facts, figures.attention_map(trial, sentence)


def _no_attention(Q, K, V, mask=None):
    """Attention with zero weights, the control for the context shift."""
    weights = (Q @ K.transpose(-2, -1)).mul(0)  # (..., T_q, T_k)
    return weights @ V, weights


def heads_view(trial, sentence, parts):
    """Lesson 8: all heads of the encoder, and how far the output of attention moves without each of them."""
    network, src = trial.network, source_batch([sentence])
    x = FINISHED_PARTS["embed"](src, state()["encoder.tokens.weight"]) + sinusoidal_positions(src.shape[1], 64)
    importance = []
    for block in network.encoder.blocks:
        importance.append(parts.head_importance(block.attention, x).tolist())
        x = block(x)
    seen = evaluation.attention_of(network, src).encoder
    what, facts = "how far attention's output moves without a head", []
    for i, row in enumerate(importance):
        shown = [f"{value:.2f}" for value in row]
        rows = (Row(what, f"block {i}, head {h}", value, shown[h]) for h, value in enumerate(row))
        facts.append(Fact(f"how far attention of block {i} moves without each head: {'  '.join(shown)}", tuple(rows)))
    if any(item is None or not item.isfinite().any() for item in seen):
        return facts, figures.attention_map(trial, sentence)
    return facts, [figures.all_heads(torch.stack([item[0] for item in seen]), importance, sentence.split())]


def filter_view(trial, sentence, parts):
    """Lesson 10: the candidates for the second word after top-k and top-p filtering."""
    src = source_batch([sentence])
    network = trial.network
    first = french.get(trial.french.split()[0], BOS) if trial.french else BOS
    logits = network.decode(torch.tensor([[BOS, first]]), network.encode(src), src)[0, -1] / 3
    facts = [Fact("the second word at temperature 3:")]
    for words, filtered in (
        ("all words", logits),
        ("top_k=3", parts.filter_logits(logits, top_k=3)),
        ("top_p=0.9", parts.filter_logits(logits, top_p=0.9)),
    ):
        values, ids = filtered.softmax(-1).topk(4)
        shown = "  ".join(f"{french_list[i]} {p:.2f}" for p, i in zip(values.tolist(), ids.tolist(), strict=True) if p)
        facts.append(Fact(f"  {words}: {shown}; {int(torch.isfinite(filtered).sum())} words left"))
    return facts, figures.attention_map(trial, sentence)


def beam_view(trial, sentence, parts):
    """Lesson 10: the translation that beam search finds."""
    src = source_batch([sentence])
    network = trial.network
    memory = network.encode(src)
    ids, score = parts.beam_search(lambda prefix: network.decode(prefix, memory, src)[:, -1], BOS, EOS, 23, 3)
    line = f"your beam_search, beam of 3: {french_sentence(list(ids))}, log-probability {float(score):.4f}"
    return [Fact(line)], figures.attention_map(trial, sentence)
