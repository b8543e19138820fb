"""What the course's translator takes to learn: `python -m bench.translator_time [SEED ...]`, some ten minutes.

Trained from each seed (three if none is given) with the recipe of the shipped one; on the way, and at the end, the loss
and the share of unseen sentences that come out word for word, beside the processor time so far (of the training alone).
"""

import sys
import time

import torch

from bench.written import keep
from helpers.translator.evaluation import exact, nats_a_word, unseen
from helpers.translator.training import STEPS, train

SEEDS = (0, 1, 2)
EVERY, LOOK, LAST = 100, 400, 2000  # steps between looks, sentences of a look, and of the last one
GOAL = 0.995


def learned(seed: int) -> list[list[float]]:
    """For each look: steps, seconds of processor time, nats per word, and the share of exact sentences."""
    way, spent, began = [], 0.0, time.process_time()

    def look(step: int, network: torch.nn.Module) -> None:
        nonlocal spent, began
        if step % EVERY:
            return
        spent += time.process_time() - began
        network.eval()
        batch = unseen(LAST if step == STEPS else LOOK)
        way.append([step, round(spent, 1), round(nats_a_word(network, batch), 5), round(exact(network, batch), 4)])
        network.train()
        print(f"seed {seed}:", *way[-1], flush=True)
        began = time.process_time()

    train(seed, look=look)
    return way


def main(seeds: list[int]) -> None:
    torch.set_num_threads(1)
    ways = {seed: learned(seed) for seed in seeds}
    shares, seconds = [way[-1][3] for way in ways.values()], [way[-1][1] for way in ways.values()]
    there = [next((step for step, _, _, share in way if share >= GOAL), None) for way in ways.values()]
    said = "not in every run" if None in there else f"for the first time after {min(there)} to {max(there)} steps"
    enough = "all" if min(shares) == 1 else f"at least {100 * min(shares):.2f}%"
    says = (
        f"After {STEPS:,} training steps, which take {min(seconds):.0f} to {max(seconds):.0f} s on one core, the "
        f"translator translates {enough} of {LAST:,} unseen sentences exactly ({len(seeds)} seeds). It reaches "
        f"{100 * GOAL:.1f}% of {LOOK} sentences {said}."
    )
    print(says)
    keep("translator_time", says, {"columns": ["steps", "seconds", "nats per word", "exact"], "seeds": ways})


if __name__ == "__main__":
    main([int(seed) for seed in sys.argv[1:]] or list(SEEDS))
