"""The ladder of lesson 12: `python -m bench.ladder [--seeds 3] [--write]`.

Five models on the lesson's language, from a bigram to the GPT's block, each trained with three seeds: the same windows,
the same number of steps, one layer each. All are tested on the same unseen passages, over the exact entropy line of
these. A rung counts if in every seed it is at least 0.05 nats better than the one below. --write puts the figures into
helpers/figures/measured_language_model.py, which the lesson draws; until then it holds single trainings of width 64.

Run once so far, with three seeds: at this width many heads and the feed-forward network did not gain 0.05.
"""

from __future__ import annotations

import argparse
import pprint
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from helpers import corpus
from helpers.blocks import FeedForward, causal_mask
from helpers.figures.language_model import count_loss
from helpers.rotary import RotaryAttention

CONTEXT, BATCH, WIDTH, STEPS, RATE = 64, 16, 16, 1000, 1e-2
RUNGS = {
    "one head": {"heads": 1},
    "many heads": {"heads": 4},
    "+ feed-forward": {"heads": 4, "feed_forward": True},
    "+ residual and norm": {"heads": 4, "feed_forward": True, "residual_and_norm": True},
}
LEAST = 0.05
TARGET = Path(__file__).resolve().parents[1] / "helpers" / "figures" / "measured_language_model.py"


class Rung(nn.Module):
    """One layer of attention, with or without what a block adds to it, between token vectors and logits."""

    def __init__(self, vocab_size, d_model=WIDTH, heads=1, feed_forward=False, residual_and_norm=False):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.tokens.weight, std=0.3)
        self.attention = RotaryAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, 4 * d_model) if feed_forward else None
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(3)) if residual_and_norm else None
        self.unembed = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        x, mask = self.tokens(ids), causal_mask(ids.shape[1])  # (B, T, D), (T, T)
        if self.norms is None:
            x = self.attention(x, mask=mask)[0]  # (B, T, D)
            x = x if self.feed_forward is None else self.feed_forward(x)
            return self.unembed(x)
        x = x + self.attention(self.norms[0](x), mask=mask)[0]
        x = x + self.feed_forward(self.norms[1](x))
        return self.unembed(self.norms[2](x))


def unseen():
    passages = corpus.language_unseen()
    return passages["ids"], passages["nats"][:, 1:].mean().item()


@torch.no_grad()
def loss_on(model, ids) -> float:
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).item()


def train(model, seed: int, steps: int = STEPS, rate: float = RATE, look=None):
    """The lesson's training, with `look(step)` after each step."""
    text = corpus.language_text()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    generator = torch.Generator().manual_seed(seed)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min((step + 1) / 50, 1) * (1 - step / steps)
        starts = torch.randint(len(text) - CONTEXT, (BATCH,), generator=generator)
        windows = text[starts[:, None] + torch.arange(CONTEXT + 1)]  # (B, T + 1)
        loss = F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if look:
            look(step + 1)
    return model


def bigram(seed: int) -> float:
    """Counted in as many tokens as the other rungs see, drawn in the same windows; the best of three alphas."""
    text, V = corpus.language_text(), len(corpus.language_symbols())
    ids, _ = unseen()
    return min(count_loss(text[seed * 1000 :], ids.flatten(), 2, V, alpha) for alpha in (1.0, 0.1, 0.01))


def rung(name: str, seed: int, steps: int = STEPS) -> float:
    torch.set_num_threads(1)
    if name == "bigram":
        return bigram(seed)
    torch.manual_seed(seed)
    model = Rung(len(corpus.language_symbols()), **RUNGS[name])
    return loss_on(train(model, seed, steps), unseen()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="keep the figures for the lesson's pictures")
    options = parser.parse_args()
    torch.set_num_threads(1)
    _, line = unseen()
    rungs, below = {}, None
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:  # a core each
        runs = {name: [pool.submit(rung, name, seed) for seed in range(options.seeds)] for name in ("bigram", *RUNGS)}
        for name, futures in runs.items():
            losses = [round(future.result(), 4) for future in futures]
            gain = min(b - a for a, b in zip(losses, below, strict=True)) if below else 0.0
            verdict = "" if below is None else f"least gain {gain:.3f}{'' if gain >= LEAST else '  TOO LITTLE'}"
            print(f"{name:22} {losses}  {verdict}", flush=True)
            rungs[name], below = losses, losses
    if options.write:
        ladder = {"line": round(line, 4), "rungs": rungs}
        text = '"""What bench/ladder.py measured; made by `python -m bench.ladder --write`."""\n\n'
        text += f"LADDER = {pprint.pformat(ladder, width=110, sort_dicts=False)}\n"
        TARGET.write_text(text, encoding="utf-8")
        print(f"written to {TARGET}")


if __name__ == "__main__":
    main()
