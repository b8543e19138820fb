"""What the translator is worth: nats a word, exact translations, and which head tells most."""

from __future__ import annotations

import functools
import random
from typing import NamedTuple

import torch

from helpers.corpus import Pair, sentence_pairs
from helpers.corpus.lexicon import ADJECTIVES, MOVES, NAMES, NOUNS, PLACE_VERBS, VERBS
from helpers.translator.network import Parts
from helpers.translator.trained import NUM_LAYERS, greedy, machine, source_batch
from helpers.translator.words import BOS, EOS, PAD, french_ids, french_sentence

MAX_WORDS = 20  # of a sentence that somebody types
UNSEEN_SEED = 2014  # the sentences that nobody trains on


class Batch(NamedTuple):
    src: torch.Tensor  # (B, T_s)
    tgt_in: torch.Tensor  # (B, T_t), BOS first
    tgt_out: torch.Tensor  # (B, T_t), EOS last
    french: list[str]

    def first(self, count: int) -> Batch:
        return Batch(*(item[:count] for item in self))


def as_batch(pairs: list[Pair]) -> Batch:
    rows = [french_ids(pair.french) for pair in pairs]
    pad = functools.partial(torch.nn.utils.rnn.pad_sequence, batch_first=True, padding_value=PAD)
    tgt_in = pad([torch.tensor([BOS, *row]) for row in rows])
    tgt_out = pad([torch.tensor([*row, EOS]) for row in rows])
    return Batch(source_batch([pair.english for pair in pairs]), tgt_in, tgt_out, [pair.french for pair in pairs])


@functools.lru_cache(maxsize=4)
def unseen(count: int) -> Batch:
    """The first `count` test sentences; none of their held-out pairs of words was in training."""
    return as_batch(sentence_pairs(count, random.Random(UNSEEN_SEED), unseen=True))


@torch.no_grad()
def nats_a_word(network, batch: Batch) -> float:
    """Mean cross-entropy of the next French word (and the end), given the true words before it."""
    logits = network(batch.src, batch.tgt_in)  # (B, T_t, V)
    parts = getattr(network, "parts", Parts())
    if "log_softmax" in parts.replaced and "cross_entropy" not in parts.replaced:
        kept = batch.tgt_out != PAD
        return -parts.log_softmax(logits[kept]).gather(-1, batch.tgt_out[kept][:, None]).mean().item()
    return float(parts.cross_entropy(logits, batch.tgt_out, PAD))


def exact(network, batch: Batch) -> float:
    """The share of sentences that come out word for word."""
    written = [french_sentence(row) for row in greedy(network, batch.src).tolist()]
    return sum(a == b for a, b in zip(written, batch.french, strict=True)) / len(written)


def encoder_weights(network, layer: int) -> torch.Tensor | None:
    """What a block of the encoder saw in the last call (B, H, T, T); None where a replaced part does not tell."""
    blocks = getattr(getattr(network, "encoder", None), "blocks", None)
    attention = getattr(blocks[layer], "attention", None) if blocks is not None and len(blocks) > layer else None
    return getattr(attention, "seen", None)


def cross_weights(network) -> torch.Tensor | None:
    """What the decoder's last block saw of the English words in the last call (B, H, T_t, T_s)."""
    return getattr(network, "cross_weights", None)


RELATIONS = ("adjective to noun", "verb to subject")


def relation_places(sentence: str) -> dict[str, list[tuple[int, int]]]:
    """For each of RELATIONS the pairs (query, key) of places in an English sentence."""
    words = sentence.split()
    nouns = [i for i, word in enumerate(words) if word in NOUNS]
    verbs = [i for i, word in enumerate(words) if word in VERBS or word in PLACE_VERBS or word == "is"]
    verbs += [i for i, word in enumerate(words) if any(word == verb for verb, _ in MOVES)]
    subject = [i for i, word in enumerate(words) if word in NAMES or word in NOUNS][:1]
    behind = {i: next((n for n in nouns if n > i), None) for i, word in enumerate(words) if word in ADJECTIVES}
    return {
        "adjective to noun": [(i, noun) for i, noun in behind.items() if noun == i + 1],
        "verb to subject": [(verb, i) for verb in verbs for i in subject if i < verb],
    }


@functools.lru_cache(maxsize=1)
@torch.no_grad()
def head_table() -> dict[str, torch.Tensor]:
    """For each relation (layers, heads): the mean weight on the true word, over 300 sentences."""
    network, sums = machine(), {}
    for pair in sentence_pairs(300, random.Random(UNSEEN_SEED), unseen=True):
        network.encode(source_batch([pair.english]))
        seen = torch.stack([encoder_weights(network, layer)[0] for layer in range(NUM_LAYERS)])  # (L, H, T, T)
        for relation, places in relation_places(pair.english).items():
            for query, key in places:
                sums.setdefault(relation, []).append(seen[:, :, query, key])
    return {relation: torch.stack(items).mean(dim=0) for relation, items in sums.items()}


def telling_encoder_head(sentence: str) -> tuple[int, int]:
    """(layer, head) with the largest mean weight for the relation that the sentence holds: adjective to noun, else
    verb to subject."""
    places = relation_places(sentence)
    relation = next((name for name in RELATIONS if places[name]), RELATIONS[0])
    table = head_table()[relation]
    return divmod(int(table.argmax()), table.shape[1])
