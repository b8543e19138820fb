"""How long the course's translator takes to train: `python -m bench.translator_time [SEED ...]`, about ten minutes.

It is trained from each seed (default: three) with the recipe of the shipped one. During training and at its end, the
program reports the loss, the fraction of unseen sentences that are translated exactly, and the processor time of the
training so far.
"""

import sys
import time

import torch

from bench.written import keep
from helpers.translator.evaluation import exact, nats_per_word, unseen
from helpers.translator.training import STEPS, train

SEEDS = (0, 1, 2)
EVERY, SENTENCES, LAST = 100, 400, 2000  # steps between evaluations, sentences of each, and of the last one
GOAL = 0.995


def learning_curve(seed: int) -> list[list[float]]:
    """Train. Returns steps, processor seconds, nats per word and fraction of exact translations at each evaluation."""
    curve, spent, began = [], 0.0, time.process_time()

    def evaluate(step: int, network: torch.nn.Module) -> None:
        nonlocal spent, began
        if step % EVERY:
            return
        spent += time.process_time() - began
        network.eval()
        batch = unseen(LAST if step == STEPS else SENTENCES)
        curve.append([step, round(spent, 1), round(nats_per_word(network, batch), 5), round(exact(network, batch), 4)])
        network.train()
        print(f"seed {seed}:", *curve[-1], flush=True)
        began = time.process_time()

    train(seed, after_step=evaluate)
    return curve


def main(seeds: list[int]) -> None:
    torch.set_num_threads(1)
    curves = {seed: learning_curve(seed) for seed in seeds}
    exact_at_end, seconds = [curve[-1][3] for curve in curves.values()], [curve[-1][1] for curve in curves.values()]
    reached = [next((step for step, _, _, fraction in curve if fraction >= GOAL), None) for curve in curves.values()]
    when = "not in every run" if None in reached else f"for the first time after {min(reached)} to {max(reached)} steps"
    how_many = "all" if min(exact_at_end) == 1 else f"at least {100 * min(exact_at_end):.2f}%"
    says = (
        f"After {STEPS:,} training steps, which take {min(seconds):.0f} to {max(seconds):.0f} s on one core, the "
        f"translator translates {how_many} of {LAST:,} unseen sentences exactly ({len(seeds)} seeds). It reaches "
        f"{100 * GOAL:.1f}% of {SENTENCES} sentences {when}."
    )
    print(says)
    keep("translator_time", says, {"columns": ["steps", "seconds", "nats per word", "exact"], "seeds": curves})


if __name__ == "__main__":
    main([int(seed) for seed in sys.argv[1:]] or list(SEEDS))
