"""What a dialect costs the translator: `python -m bench.dialect [--write]`, some minutes of one core.

The dialect puts every French adjective in front of its noun: *le chat noir* becomes *le noir chat*. The trained
translator learns it from 300 sentences, with three seeds and in two ways: with LoRA on W_q and W_v of all six
attentions, and with all of its numbers. Measured in nats per word and in exact translations of 200 unseen sentences
each: the dialect's (which all hold an adjective that moves) and French as it was. The thin matrices are then merged,
and the network that has its old shape again is measured too. --write puts all into helpers/lessons/today/dialect.json.
"""

import argparse
import random

import torch
import torch.nn.functional as F

from bench.written import write
from helpers.blocks import LoRA
from helpers.corpus import Pair, sentence_pairs
from helpers.corpus.lexicon import ADJECTIVES
from helpers.lessons.today.adapting import ADAPTED, adapted, finished_translator
from helpers.translator import PAD, evaluation

SENTENCES, UNSEEN, STEPS, BATCH, SEEDS = 300, 200, 300, 32, (0, 1, 2)
RATES = {"LoRA": 5e-3, "all numbers": 5e-4}
RANK, ALPHA = 4, 8.0


def in_dialect(pair: Pair) -> Pair:
    """The same sentence with its adjectives in front of their nouns in French, as in English."""
    english, french, alignment = pair.english.split(), pair.french.split(), list(pair.alignment)
    for t in range(len(french) - 1):
        if alignment[t] == alignment[t + 1] + 1 and english[alignment[t + 1]] in ADJECTIVES:
            french[t : t + 2], alignment[t : t + 2] = french[t : t + 2][::-1], alignment[t : t + 2][::-1]
    return pair._replace(french=" ".join(french), alignment=tuple(alignment))


def dialect_pairs(count: int, seed: int, unseen: bool = False) -> list[Pair]:
    """Sentences of the dialect that are no French: at least one adjective has moved."""
    generator, found = random.Random(seed), []
    while len(found) < count:
        for pair in sentence_pairs(count, generator, unseen):
            if (other := in_dialect(pair)).french != pair.french:
                found.append(other)
    return found[:count]


def train(network, batch_of, seed: int, rate: float, steps: int) -> None:
    """Adam on what learns, on batches drawn from the few sentences; the rate falls to zero in a line."""
    learns = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimizer, generator = torch.optim.Adam(learns, lr=rate, betas=(0.9, 0.98)), random.Random(seed)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - step / steps)
        batch = batch_of(generator)
        logits = network(batch.src, batch.tgt_in)  # (B, T, V)
        loss = F.cross_entropy(logits.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learns, 1.0)
        optimizer.step()


def merge(network) -> None:
    """In place: each LoRA becomes the plain layer that gives the same."""
    for part in list(network.modules()):
        for name in ADAPTED:
            if isinstance(getattr(part, name, None), LoRA):
                setattr(part, name, getattr(part, name).merged())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the figures for the lesson")
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    new, old = evaluation.as_batch(dialect_pairs(UNSEEN, 2015, unseen=True)), evaluation.unseen(UNSEEN)

    def measured(network) -> list[float]:
        """Nats per word of dialect and French, and the share of exact translations of both."""
        nats = [round(evaluation.nats_a_word(network, batch), 4) for batch in (new, old)]
        return nats + [round(evaluation.exact(network, batch), 4) for batch in (new, old)]

    found = {"before": [measured(finished_translator().eval())]}
    print("nats of the dialect, of French; exact in the dialect, in French")
    print(f"{'before':14} {found['before'][0]}")
    for seed in SEEDS:
        pairs = dialect_pairs(SENTENCES, 100 + seed)
        for name, rate in RATES.items():
            torch.manual_seed(seed)
            network = finished_translator()
            network = adapted(network, LoRA, RANK, ALPHA) if name == "LoRA" else network
            train(network, lambda g, p=pairs: evaluation.as_batch(g.sample(p, BATCH)), seed, rate, options.steps)
            found.setdefault(name, []).append(measured(network.eval()))
            learns = sum(p.numel() for p in network.parameters() if p.requires_grad)
            print(f"{name:14} {found[name][-1]}  {learns:,} numbers learned", flush=True)
            if name == "LoRA":
                merge(network)
                found.setdefault("merged", []).append(measured(network))
                print(f"{'merged':14} {found['merged'][-1]}", flush=True)
    if options.write:
        write("today", "dialect", found)


if __name__ == "__main__":
    main()
