"""Why attention? Two recurrent translators: `python -m bench.why_attention`, about ten minutes of one core.

Both read the English words with a bidirectional GRU and generate French with another GRU, on the sentences of lesson
11. One gives the decoder the encoder's last states in every step, that is, a single vector for the sentence, as Cho et
al. (2014) did. The other gives it attention: a mean of the states of all English words, weighted by a softmax over dot
products with the decoder's state (Bahdanau et al., 2015; the dot product is Luong et al.'s). Dot products have no
parameters, so the two networks have the same number of them; their training is the same too. Each is trained with
three seeds and tested on equally many unseen sentences of each length. The fractions of exact translations by length
are stored in helpers/lessons/start_here/why_attention.json for lesson 0's figure, and in bench/results.
"""

import random
import sys
import time
from collections import defaultdict

import torch
import torch.nn.functional as F
from torch import nn

from bench.written import keep, write
from helpers import translator
from helpers.corpus import Pair, sentence_pairs, training_pairs
from helpers.translator.evaluation import as_batch
from helpers.translator.word_ids import BOS, PAD, french_sentence

WIDTH, STEPS, BATCH, RATE, CLIP = 96, 2400, 32, 4e-3, 1.0
SEEDS = (0, 1, 2)
LENGTHS, EACH, TEST_SEED = range(4, 13), 200, 2015
MAX_WORDS = 24  # of a French sentence
KINDS = ("one vector", "attention")


class Translator(nn.Module):
    """A recurrent encoder and decoder. attends: whether the decoder attends to the states of all source words."""

    def __init__(self, attends: bool):
        super().__init__()
        self.attends = attends
        self.source = nn.Embedding(len(translator.english), WIDTH)
        self.target = nn.Embedding(len(translator.french), WIDTH)
        self.encoder = nn.GRU(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.mix = nn.Linear(2 * WIDTH, WIDTH)
        self.unembed = nn.Linear(WIDTH, len(translator.french))

    def encode(self, src: torch.Tensor):
        """Ids (B, T_s) -> the states of all words (B, T_s, D), and the last states of both directions (B, D)."""
        lengths = (src != PAD).sum(dim=1)  # (B,)
        packed = nn.utils.rnn.pack_padded_sequence(self.source(src), lengths, batch_first=True, enforce_sorted=False)
        states, last = self.encoder(packed)
        states, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True)  # (B, T_s, D)
        return states, last.transpose(0, 1).flatten(1)  # (B, 2, D/2) -> (B, D)

    def decode(self, tgt, states, last, src, hidden):
        """Target ids (B, T_t) -> logits (B, T_t, V), and the decoder's last state (1, B, D)."""
        queries, hidden = self.decoder(self.target(tgt), hidden)  # (B, T_t, D)
        if self.attends:
            scores = queries @ states.transpose(1, 2)  # (B, T_t, T_s)
            weights = scores.masked_fill((src == PAD)[:, None], float("-inf")).softmax(dim=-1)
            context = weights @ states  # (B, T_t, D)
        else:
            context = last[:, None].expand_as(queries)  # (B, T_t, D): the same vector in every step
        mixed = torch.tanh(self.mix(torch.cat([queries, context], dim=-1)))  # (B, T_t, D)
        return self.unembed(mixed), hidden

    def forward(self, src, tgt):
        states, last = self.encode(src)
        return self.decode(tgt, states, last, src, last[None])[0]

    @torch.no_grad()
    def greedy(self, src: torch.Tensor) -> list[str]:
        states, last = self.encode(src)
        hidden, word = last[None], torch.full((len(src), 1), BOS)  # (1, B, D), (B, 1)
        ids = []
        for _ in range(MAX_WORDS):
            logits, hidden = self.decode(word, states, last, src, hidden)
            word = logits.argmax(dim=-1)  # (B, 1)
            ids.append(word)
        return [french_sentence(row) for row in torch.cat(ids, dim=1).tolist()]


def trained(attends: bool, seed: int) -> Translator:
    torch.manual_seed(seed)
    model, draw, pairs = Translator(attends), random.Random(seed), training_pairs()
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(1, STEPS + 1):
        optimizer.param_groups[0]["lr"] = RATE * min(step / 100, 1.0, 1.02 - step / STEPS)
        batch = as_batch(draw.sample(pairs, BATCH))
        loss = F.cross_entropy(model(batch.src, batch.tgt_in).flatten(0, 1), batch.tgt_out.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
    return model.eval()


def tests() -> dict[int, list[Pair]]:
    """EACH unseen sentences for every length in LENGTHS (in English words)."""
    generator, found = random.Random(TEST_SEED), defaultdict(list)
    while any(len(found[length]) < EACH for length in LENGTHS):
        for pair in sentence_pairs(3000, generator, unseen=True):
            found[len(pair.english.split())].append(pair)
    return {length: found[length][:EACH] for length in LENGTHS}


def exact(model: Translator, pairs: list[Pair]) -> float:
    """The fraction of sentences that are translated exactly."""
    batch = as_batch(pairs)
    return sum(a == b for a, b in zip(model.greedy(batch.src), batch.french, strict=True)) / len(pairs)


def main() -> None:
    torch.set_num_threads(1)
    unseen, accuracy, seconds = tests(), {kind: [] for kind in KINDS}, []
    for seed in SEEDS:
        for kind in KINDS:
            began = time.process_time()
            model = trained(kind == "attention", seed)
            seconds.append(time.process_time() - began)
            accuracy[kind].append([round(exact(model, pairs), 4) for pairs in unseen.values()])
            print(
                f"seed {seed}  {kind:<11}{seconds[-1]:4.0f} s ", *(f"{x:.2f}" for x in accuracy[kind][-1]), flush=True
            )
    parameters = sum(p.numel() for p in Translator(True).parameters())
    measured = {"lengths": list(LENGTHS), "sentences": EACH, "parameters": parameters, "accuracy": accuracy}
    write("start_here", "why_attention", measured)
    ends = {kind: [sum(row[i] for row in rows) / len(rows) for i in (0, -1)] for kind, rows in accuracy.items()}
    changes = " and ".join(f"from {first:.0%} to {last:.0%} with {kind}" for kind, (first, last) in ends.items())
    says = (
        f"Two recurrent translators of {parameters:,} parameters, {len(SEEDS)} seeds, {EACH} unseen sentences for each "
        f"length: from {LENGTHS[0]} to {LENGTHS[-1]} English words, the fraction translated exactly falls {changes}."
    )
    keep("why_attention", says, measured | {"seconds": [round(s) for s in seconds]})


if __name__ == "__main__":
    sys.exit(main())
