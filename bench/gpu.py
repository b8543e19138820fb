"""Lesson 12's GPT against nanoGPT's character model at its published size, on one GPU in one run.

Both learn tiny Shakespeare with six layers, six heads, width 384 and windows of 256 characters, in bfloat16 and with
torch.compile:

- nanoGPT's recipe for this text (batches of 64, 5,000 steps, learning rate 1e-3 after 100 warm-up steps and then a
  cosine decay to 1e-4, dropout 0.2, weight decay 0.1, clipping at 1), and as a control the same with a schedule of
  2,000 steps. Its best loss must be between 1.455 and 1.480 (published: 1.4697); otherwise, the comparison is void, and
  the program says so.
- the learner's class with the recipe of `helpers/lessons/language_model/full_size.py`, and ablations, which undo one
  change each.

Each run is evaluated on the whole validation split every 50 steps. The results for each seed are the steps and seconds
until the loss is at most 1.4697, the best loss, milliseconds per step and the peak memory. The time does not include
evaluations.

    python -m bench.gpu input.txt [--seeds 1 2 3] [--scale 1.0]
"""

import argparse
import time
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import nn

from bench.nanogpt import NanoGPT, rate, whole_loss
from bench.written import keep
from helpers.blocks import GPT
from helpers.corpus import real_text
from helpers.lessons.language_model import full_size
from helpers.lessons.language_model.full_size import FULL, Recipe

GOAL, VALID, EVERY = 1.4697, (1.455, 1.480), 50


@dataclass(frozen=True)
class Variant:
    """A recipe, the model that it trains, and how it differs from the lesson's recipe."""

    recipe: Recipe = FULL
    nanogpt: bool = False
    squared_relu: bool = True
    zero_output: bool = True
    linear_decay: bool = True


VARIANTS = {
    "nanoGPT": Variant(replace(FULL, steps=5000), nanogpt=True),
    "nanoGPT, 2,000 steps": Variant(replace(FULL, steps=2000), nanogpt=True),
    "ours": Variant(),
    "ours with the lesson's ReLU": Variant(squared_relu=False),
    "ours without zero output layers": Variant(zero_output=False),
    "ours with nanoGPT's schedule": Variant(replace(FULL, rate=1e-3), linear_decay=False),
    "ours without dropout": Variant(replace(FULL, dropout=0.0)),
}


def build(variant: Variant, vocab_size: int) -> nn.Module:
    """The model of a variant, on the CPU."""
    recipe = variant.recipe
    size = vocab_size, recipe.context, recipe.width, recipe.heads, recipe.layers
    if variant.nanogpt:
        return NanoGPT(*size, recipe.dropout)
    model = full_size.prepare(GPT(*size), recipe.dropout)
    for block in model.blocks:
        if variant.squared_relu:
            block.feed_forward.activation = lambda x: F.relu(x).square()
        if not variant.zero_output:
            block.attention.W_o.reset_parameters()
            block.feed_forward.down.reset_parameters()
    return model


def learning_rate(variant: Variant, step: int) -> float:
    recipe = variant.recipe
    if variant.nanogpt or not variant.linear_decay:
        return rate(step, recipe.steps, warmup=100)
    return full_size.learning_rate(recipe.rate, step, recipe.steps)


def trained(variant: Variant, text, seed: int, device: torch.device) -> dict:
    """Train once, and return the results that the module's docstring lists."""
    torch.manual_seed(seed)
    recipe, cuda = variant.recipe, device.type == "cuda"
    model = build(variant, len(text.symbols)).to(device)
    optimizer = torch.optim.AdamW(full_size.decay_groups(model), lr=1e-3, betas=(0.9, 0.99), fused=cuda)
    forward = torch.compile(model) if cuda else model
    data, unseen = text.train.to(device), text.test.to(device)
    generator = torch.Generator().manual_seed(seed)
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    seconds, curve, reached = 0.0, [], None
    while len(curve) * EVERY < recipe.steps:
        start = time.monotonic()
        for step in range(len(curve) * EVERY, min((len(curve) + 1) * EVERY, recipe.steps)):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(variant, step)
            starts = torch.randint(len(data) - recipe.context, (recipe.batch,), generator=generator).to(device)
            windows = data[starts[:, None] + torch.arange(recipe.context + 1, device=device)]  # (B, T + 1)
            with torch.autocast(device.type, torch.bfloat16, enabled=cuda):
                loss = F.cross_entropy(forward(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        loss.item()  # waits for the GPU
        seconds += time.monotonic() - start
        model.eval()
        with torch.autocast(device.type, torch.bfloat16, enabled=cuda):
            value = whole_loss(model, unseen, recipe.context)
        model.train()
        curve.append([step + 1, round(seconds, 2), round(value, 4)])
        if reached is None and value <= GOAL:
            reached = curve[-1]
    return {
        "best": min(value for _, _, value in curve),
        "reached": reached,
        "milliseconds per step": round((seconds - curve[0][1]) / max(1, step + 1 - curve[0][0]) * 1000, 2),
        "gigabytes": round(torch.cuda.max_memory_allocated() / 1e9, 2) if cuda else None,
        "steps, seconds and loss": curve,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="tiny Shakespeare's input.txt")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--scale", type=float, default=1.0, help="below 1: a quick try with fewer steps")
    options = parser.parse_args()
    if options.scale == 1 and not torch.cuda.is_available():
        parser.error("there is no GPU. --scale 0.01 tries the program with few steps on the CPU.")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    text = real_text(options.file)
    found = {}
    for name, variant in VARIANTS.items():
        variant = replace(variant, recipe=replace(variant.recipe, steps=int(variant.recipe.steps * options.scale)))
        for seed in options.seeds:
            run = found.setdefault(name, {})[seed] = trained(variant, text, seed, device)
            print(f"{name}, seed {seed}: best {run['best']:.4f}, goal reached at {run['reached']}", flush=True)
    if options.scale < 1:
        return
    theirs, ours = ([run["best"] for run in found[name].values()] for name in ("nanoGPT", "ours"))
    if not all(VALID[0] <= best <= VALID[1] for best in theirs):
        print(f"Void: nanoGPT's recipe should come out between {VALID[0]} and {VALID[1]} on tiny Shakespeare.")
        return
    shares = [
        run["reached"][1] / found["nanoGPT"][seed]["reached"][1] if run["reached"] else float("inf")
        for seed, run in found["ours"].items()
    ]
    says = (
        f"Lesson 12's GPT against nanoGPT's character model on a {torch.cuda.get_device_name()}, {len(ours)} seeds "
        f"each: validation loss {GOAL} after {100 * min(shares):.0f} to {100 * max(shares):.0f}% of its time, best "
        f"loss {min(ours):.3f} to {max(ours):.3f} against {min(theirs):.3f} to {max(theirs):.3f}."
    )
    print(says)
    keep("gpu", says, found | {"card": torch.cuda.get_device_name()})


if __name__ == "__main__":
    main()
