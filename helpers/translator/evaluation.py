"""Measurements of the translator: loss in nats per word, exact translations, and attention weights."""

import contextlib
import functools
import random
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch

from helpers.corpus import Pair, sentence_pairs
from helpers.translator.finished_parts import make_batch
from helpers.translator.network import Parts
from helpers.translator.trained import D_MODEL, NUM_HEADS, NUM_LAYERS, greedy, model, source_batch
from helpers.translator.word_ids import BOS, EOS, PAD, english_ids, french_ids, french_sentence

MAX_WORDS = 20  # in a sentence that a learner types
LOSS_SENTENCES = 200  # enough for a reliable loss
UNSEEN_SEED = 2014  # of sentences that no training uses
# For each relation the encoder head (layer, head) with the largest mean weight; the strongest relation comes first.
STRONGEST_HEAD = {
    "article to noun": (1, 0),
    "adjective to noun": (1, 0),
    "verb to the previous word": (1, 3),
    "preposition to place": (1, 0),
}


class Batch(NamedTuple):
    src: torch.Tensor  # (B, T_s)
    tgt_in: torch.Tensor  # (B, T_t), BOS first
    tgt_out: torch.Tensor  # (B, T_t), EOS last
    french: list[str]
    english: list[str]

    def first(self, count: int) -> "Batch":
        return Batch(*(item[:count] for item in self))


def as_batch(pairs: list[Pair]) -> Batch:
    ids = [(english_ids(pair.english), french_ids(pair.french)) for pair in pairs]
    french, english = [pair.french for pair in pairs], [pair.english for pair in pairs]
    return Batch(**make_batch(ids, PAD, BOS, EOS), french=french, english=english)


@functools.lru_cache(maxsize=4)
def unseen(count: int) -> Batch:
    """The first `count` test sentences; each has an adjective-noun pair that never occurs in training."""
    return as_batch(sentence_pairs(count, random.Random(UNSEEN_SEED), unseen=True))


@torch.no_grad()
def nats_per_word(network, batch: Batch, shift_right=None, replaced: Mapping | None = None) -> float:
    """Mean cross-entropy of the next French word (or the end), given the true words before it.

    shift_right: the learner's function that makes the decoder's input from the targets, if any. replaced: parts for
    the loss; the network's own if None.
    """
    tgt_in = shift_right(batch.tgt_out, BOS) if shift_right else batch.tgt_in
    logits = network(batch.src, tgt_in)  # (B, T_t, V)
    parts = getattr(network, "parts", Parts()) if replaced is None else Parts(dict(replaced))
    if "log_softmax" in parts.replaced and "cross_entropy" not in parts.replaced:
        mask = batch.tgt_out != PAD
        return -parts.log_softmax(logits[mask]).gather(-1, batch.tgt_out[mask][:, None]).mean().item()
    return float(parts.cross_entropy(logits, batch.tgt_out, PAD))


def in_nats(loss: float) -> str:
    """A loss as text, with more decimals the smaller it is."""
    if loss != loss:
        return "NaN"
    size = abs(loss)
    digits = 2 if size >= 0.1 else 3 if size >= 0.01 else 4 if size >= 0.001 else 5
    return f"{loss:.{digits}f}"


def exact(network, batch: Batch) -> float:
    """The fraction of sentences that are translated word for word."""
    written = [french_sentence(row) for row in greedy(network, batch.src).tolist()]
    return sum(a == b for a, b in zip(written, batch.french, strict=True)) / len(written)


class Seen(NamedTuple):
    """Attention weights of one run; None where a replaced part doesn't return them."""

    encoder: list[torch.Tensor | None]  # of each block (B, H, T_s, T_s)
    cross: torch.Tensor | None  # of the decoder's last block (B, H, T_t, T_s)


@torch.no_grad()
def attention_of(network, src: torch.Tensor, tgt: torch.Tensor | None = None) -> Seen:
    """Run the network on ids and return the attention weights of its blocks."""
    with attention_weights(network) as seen:
        memory = network.encode(src)
        if tgt is not None:
            network.decode(tgt, memory, src)
    found = dict(seen)
    encoder = [found.get(f"encoder.blocks.{i}.attention") for i in range(NUM_LAYERS)]
    return Seen(encoder, found.get(f"blocks.{NUM_LAYERS - 1}"))


@torch.no_grad()
def input_of(network, name: str, src: torch.Tensor) -> torch.Tensor:
    """The input (B, T_s, D) of the network's module `name` while the network encodes src (B, T_s)."""
    inputs = []
    hook = network.get_submodule(name).register_forward_pre_hook(lambda _module, args: inputs.append(args[0]))
    network.encode(src)
    hook.remove()
    return inputs[0]


def head_inputs(sentence: str, layer: int, head: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The input (T, 64) of a block of the translator's encoder, and the weights of one of its heads, (16, 64) each,
    under their names in an AttentionHead. layer and head count from 0."""
    network = model()
    block = network.encoder.blocks[layer]
    x = input_of(network, f"encoder.blocks.{layer}", source_batch([sentence]))[0]
    layers = {f"{name}.weight": getattr(block.attention, name).weight for name in ("W_q", "W_k", "W_v")}
    return x, {name: weight[columns_of(head)].detach() for name, weight in layers.items()}


def columns_of(head: int) -> slice:
    """The channels of one head, counted from 0."""
    width = D_MODEL // NUM_HEADS
    return slice(head * width, (head + 1) * width)


@torch.no_grad()
def ablated(heads: Iterable[tuple[int, int]]):
    """The translator without these (block, head) of its encoder, counted from 0; their columns of W_O are set to 0."""
    network = model()
    for block, head in heads:
        network.encoder.blocks[block].attention.W_o.weight[:, columns_of(head)] = 0
    return network


@contextlib.contextmanager
def attention_weights(model):
    """A context that yields a list of (name, attention weights (B, H, T_q, T_k)), to which every module that returns
    such weights adds in the order of calls, whatever its name."""
    seen = []

    def keep(_module, _args, out, name):
        if isinstance(out, tuple) and len(out) == 2 and isinstance(out[1], torch.Tensor) and out[1].dim() == 4:
            seen.append((name, out[1].detach()))

    modules = model.named_modules()
    hooks = [module.register_forward_hook(functools.partial(keep, name=name)) for name, module in modules]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def relation_pairs(sentence: str) -> dict[str, list[tuple[int, int]]]:
    """For each relation of STRONGEST_HEAD, the pairs (query, key) of positions in an English sentence.

    Three relations matter for French: adjectives and articles need a gender, and a preposition needs a country or a
    month. A verb is paired with the previous word even if that isn't its subject, because its head attends to the
    previous word in either case (tests/test_translator.py).
    """
    from helpers.corpus import lexicon  # imported late, because some sandboxes of the grader don't contain it

    verbs = {"is", *lexicon.VERBS, *lexicon.PLACE_VERBS, *(verb for verb, _ in lexicon.MOVES)}
    nouns = lexicon.NOUNS
    words = sentence.split()
    found = {relation: [] for relation in STRONGEST_HEAD}
    for i, word in enumerate(words):
        noun = next((n for n in range(i + 1, min(i + 3, len(words))) if words[n] in nouns), None)
        if word in lexicon.ADJECTIVES and noun is not None:
            found["adjective to noun"].append((i, noun))
        elif word in (*lexicon.DETERMINERS, "an") and noun is not None:
            found["article to noun"].append((i, noun))
        elif word in ("to", "in") and i + 1 < len(words):
            found["preposition to place"].append((i, i + 1))
        elif word in verbs and i:
            found["verb to the previous word"].append((i, i - 1))
    return found


def head_for(sentence: str) -> tuple[int, int, str]:
    """(layer, head, relation): the strongest head for the first relation that occurs in the sentence."""
    relation = next((name for name, pairs in relation_pairs(sentence).items() if pairs), "article to noun")
    return *STRONGEST_HEAD[relation], relation
