"""What a dialect costs the translator: `python -m bench.dialect [--write]`, some minutes of one core.

The dialect puts every French adjective in front of its noun, so *le chat noir* becomes *le noir chat*. The trained
translator is fine-tuned on 300 of its sentences, with three seeds and in two ways: with LoRA on W_q and W_v of all six
attention modules, and with all weights. The results are nats per word and exact translations of 200 unseen sentences of
the dialect (each with an adjective that moves) and of 200 in standard French. Then the LoRA matrices are merged, and
the network, which has its old shape again, is measured too. --write stores all in helpers/lessons/today/dialect.json.
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
    """The same sentence, with the French adjectives in front of their nouns as in English."""
    english, french, alignment = pair.english.split(), pair.french.split(), list(pair.alignment)
    for t in range(len(french) - 1):
        if alignment[t] == alignment[t + 1] + 1 and english[alignment[t + 1]] in ADJECTIVES:
            french[t : t + 2], alignment[t : t + 2] = french[t : t + 2][::-1], alignment[t : t + 2][::-1]
    return pair._replace(french=" ".join(french), alignment=tuple(alignment))


def dialect_pairs(count: int, seed: int, unseen: bool = False) -> list[Pair]:
    """Sentences of the dialect that differ from French, because at least one adjective has moved."""
    generator, found = random.Random(seed), []
    while len(found) < count:
        for pair in sentence_pairs(count, generator, unseen):
            if (other := in_dialect(pair)).french != pair.french:
                found.append(other)
    return found[:count]


def train(network, batch_of, seed: int, rate: float, steps: int) -> None:
    """Train the trainable parameters with Adam, on random batches; the learning rate decays linearly to zero."""
    trainable = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimizer, generator = torch.optim.Adam(trainable, lr=rate, betas=(0.9, 0.98)), random.Random(seed)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - step / steps)
        batch = batch_of(generator)
        logits = network(batch.src, batch.tgt_in)  # (B, T, V)
        loss = F.cross_entropy(logits.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trainable, 1.0)
        optimizer.step()


def merge(network) -> None:
    """Replace each LoRA, in place, by the equivalent linear layer."""
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
        """Nats per word of dialect and French, and the fractions of exact translations of both."""
        nats = [round(evaluation.nats_per_word(network, batch), 4) for batch in (new, old)]
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
            trainable = sum(p.numel() for p in network.parameters() if p.requires_grad)
            print(f"{name:14} {found[name][-1]}  {trainable:,} trainable parameters", flush=True)
            if name == "LoRA":
                merge(network)
                found.setdefault("merged", []).append(measured(network))
                print(f"{'merged':14} {found['merged'][-1]}", flush=True)
    if options.write:
        write("today", "dialect", found)


if __name__ == "__main__":
    main()
