"""The ladder of lesson 12: `python -m bench.ladder [--write]`, about four minutes of one core.

Six models of the lesson's language, from a bigram to the GPT's block. The bigram is counted in the whole text. The
others have one layer each and are trained with three seeds and the same recipe: width 32, four heads (except for the
first two), RoPE (except for the first), feed-forward networks four times as wide, 3,000 steps of 16 windows of 64
tokens, the same learning rates. All are tested on the same unseen passages. A rung counts if it is at least 0.05 nats
better than the one below, on average over the seeds; the smallest gain of a seed is printed too. --write stores the
losses in helpers/lessons/language_model/ladder.json, which the lesson's figure and its tests read.

The number of steps was found by experiment. Without a residual connection, the feed-forward network's gain comes
suddenly, and the seed decides when. After 2,000 steps it was 0.00, 0.03 and 0.09 nats (with a feed-forward network
twice as wide, 0.01 and 0.04).
"""

import argparse

import torch
from torch import nn

from bench.fused_attention import FusedAttention
from bench.written import write
from helpers import corpus
from helpers.blocks import EncoderBlock, FeedForward, get_batch, next_token_loss
from helpers.lessons.language_model.figures import ALPHAS, count_loss

CONTEXT, BATCH, WIDTH, HEADS, INNER, STEPS, RATE = 64, 16, 32, 4, 128, 3000, 1e-2
RUNGS = {
    "one head": {"heads": 1, "rotary": False},
    "+ RoPE": {"heads": 1},
    "four heads": {},
    "+ feed-forward": {"feed_forward": True},
    "+ residual and norm": {"feed_forward": True, "residual_and_norm": True},
}
SEEDS = (0, 1, 2)
LEAST = 0.05


class Alone(FusedAttention):
    """Attention that does not return its weights, so that nn.Sequential can hold it."""

    def forward(self, x):
        return super().forward(x)[0]  # (B, T, D)


class Rung(nn.Module):
    """A model of one layer: attention alone, or with a feed-forward network, or the GPT's block."""

    def __init__(self, vocab_size, heads=HEADS, rotary=True, feed_forward=False, residual_and_norm=False):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, WIDTH)
        self.unembed = nn.Linear(WIDTH, vocab_size)
        if residual_and_norm:
            block = EncoderBlock(WIDTH, heads, INNER, norm_first=True)
            block.attention = FusedAttention(WIDTH, heads, CONTEXT)
            self.between = nn.Sequential(block, nn.LayerNorm(WIDTH))
        else:
            feed_forwards = [FeedForward(WIDTH, INNER)] if feed_forward else []
            attention = Alone(WIDTH, heads, CONTEXT)
            if not rotary:
                attention.rotations = torch.ones_like(attention.rotations)
            self.between = nn.Sequential(attention, *feed_forwards)

    def forward(self, ids):
        return self.unembed(self.between(self.tokens(ids)))  # (B, T, V)


def unseen():
    """Passages (200, 64) that are never trained on, and their entropy per token, which is the lowest possible loss."""
    passages = corpus.language_unseen()
    return passages["ids"], passages["nats"][:, 1:].mean().item()


@torch.no_grad()
def loss_on(model, ids) -> float:
    return next_token_loss(model(ids[:, :-1]), ids[:, 1:]).item()


def train(model, seed: int, steps: int, rate: float, after_step=None, text=None):
    """Train as the lesson does, and call after_step(step) after each step. text: ids (default: the lesson's)."""
    text = corpus.language_text() if text is None else text
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    generator = torch.Generator().manual_seed(seed)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min((step + 1) / 50, 1) * (1 - step / steps)
        x, y = get_batch(text, CONTEXT, BATCH, generator)  # (B, T) each
        loss = next_token_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if after_step:
            after_step(step + 1)
    return model


def bigram() -> float:
    """The loss of a bigram that is counted in the whole text, with the best alpha for the unseen passages."""
    ids = unseen()[0].flatten()  # (12800,)
    return min(count_loss(corpus.language_text(), ids, 2, len(corpus.language_symbols()), alpha) for alpha in ALPHAS)


def rung(name: str, seed: int, steps: int = STEPS) -> float:
    torch.manual_seed(seed)
    model = Rung(len(corpus.language_symbols()), **RUNGS[name])
    return loss_on(train(model, seed, steps, RATE), unseen()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the losses for the lesson's figure")
    options = parser.parse_args()
    torch.set_num_threads(1)
    below = [round(bigram(), 4)] * len(SEEDS)
    rungs = {"bigram": below[:1]}
    print(f"{'bigram':22} {below[0]}")
    for name in RUNGS:
        losses = [round(rung(name, seed), 4) for seed in SEEDS]
        gains = [b - a for a, b in zip(losses, below, strict=True)]
        mean = sum(gains) / len(gains)
        verdict = "" if mean >= LEAST else "  TOO LITTLE"
        print(f"{name:22} {losses}  mean gain {mean:.3f}, smallest {min(gains):.3f}{verdict}", flush=True)
        rungs[name] = below = losses
    if options.write:
        write("language_model", "ladder", {"line": round(unseen()[1], 4), "rungs": rungs})


if __name__ == "__main__":
    main()
