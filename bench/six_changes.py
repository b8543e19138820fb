"""The six changes of lesson 14, each alone: `python -m bench.six_changes [--write]`, about six minutes of one core.

A GPT with two layers of width 64 is trained on lesson 12's language with that lesson's recipe and three seeds. The
first version is as in 2017: post-norm, ReLU, learned positions, two heads with their own keys and values, and biases.
Then follow each change alone, and all six together. All are tested on the same unseen passages, in nats above their
entropy. The number of parameters is printed too; a gated network has about as many as the one that it replaces.
--write stores the losses in helpers/lessons/today/changes.json.

RoPE has lesson 12's base of 10, because the context is only 64 tokens. Each run has a third of lesson 12's steps, so
the comparison shows how far each version gets in a short time.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

from bench.ladder import CONTEXT, SEEDS, loss_on, train, unseen
from bench.written import write
from helpers import corpus
from helpers.blocks import FeedForward, SwiGLU, apply_rope_half_split, merge_heads, split_heads

WIDTH, HEADS, LAYERS, STEPS, RATE, BASE = 64, 2, 2, 400, 4e-3, 10.0
CHANGES = {
    "2017": {},
    "RMS norm": {"rms": True},
    "a gate": {"gate": True},
    "rotations": {"rotary": True},
    "one head of keys and values": {"kv_heads": 1},
    "no biases": {"bias": False},
    "pre-norm": {"pre": True},
    "all six": {"rms": True, "gate": True, "rotary": True, "kv_heads": 1, "bias": False, "pre": True},
}


class Block(nn.Module):
    """A Transformer block of 2017 with any of the six changes. forward(x (B, T, D)) -> (B, T, D), causal."""

    def __init__(self, rms=False, gate=False, rotary=False, kv_heads=HEADS, bias=True, pre=False):
        super().__init__()
        self.kv_heads, self.rotary, self.pre = kv_heads, rotary, pre
        shared = WIDTH // HEADS * kv_heads
        self.W_q, self.W_o = (nn.Linear(WIDTH, WIDTH, bias) for _ in range(2))
        self.W_k, self.W_v = (nn.Linear(WIDTH, shared, bias) for _ in range(2))
        self.norm1, self.norm2 = (norm_of(rms, bias) for _ in range(2))
        self.feed_forward = SwiGLU(WIDTH, 171) if gate else FeedForward(WIDTH, 4 * WIDTH)
        if not bias and not gate:
            self.feed_forward.up.bias = self.feed_forward.down.bias = None

    def attend(self, x):
        Q = split_heads(self.W_q(x), HEADS)  # (B, H, T, d)
        K, V = split_heads(self.W_k(x), self.kv_heads), split_heads(self.W_v(x), self.kv_heads)  # (B, G, T, d) each
        if self.rotary:
            positions = torch.arange(x.shape[1])  # (T,)
            Q, K = apply_rope_half_split(Q, positions, BASE), apply_rope_half_split(K, positions, BASE)
        heads = F.scaled_dot_product_attention(Q, K, V, is_causal=True, enable_gqa=True)  # (B, H, T, d)
        return self.W_o(merge_heads(heads))

    def forward(self, x):
        if self.pre:
            x = x + self.attend(self.norm1(x))
            return x + self.feed_forward(self.norm2(x))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.feed_forward(x))


class Model(nn.Module):
    """A GPT of these blocks: ids (B, T) -> logits (B, T, V)."""

    def __init__(self, vocab_size: int, **changes):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, WIDTH)
        self.positions = None if changes.get("rotary") else nn.Embedding(CONTEXT, WIDTH)
        for table in filter(None, (self.tokens, self.positions)):
            nn.init.normal_(table.weight, std=0.02)
        self.blocks = nn.Sequential(*(Block(**changes) for _ in range(LAYERS)))
        bias = changes.get("bias", True)
        self.norm = norm_of(changes.get("rms", False), bias) if changes.get("pre") else nn.Identity()
        self.unembed = nn.Linear(WIDTH, vocab_size, bias)

    def forward(self, ids):
        x = self.tokens(ids)  # (B, T, D)
        if self.positions is not None:
            x = x + self.positions.weight[: ids.shape[1]]
        return self.unembed(self.norm(self.blocks(x)))


def norm_of(rms: bool, bias: bool) -> nn.Module:
    return nn.RMSNorm(WIDTH, 1e-6) if rms else nn.LayerNorm(WIDTH, bias=bias)


def trained(name: str, seed: int, steps: int = STEPS) -> tuple[float, int]:
    """The loss on the unseen passages, and the number of parameters."""
    torch.manual_seed(seed)
    model = Model(len(corpus.language_symbols()), **CHANGES[name])
    loss = loss_on(train(model, seed, steps, RATE), unseen()[0])
    return loss, sum(parameter.numel() for parameter in model.parameters())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the losses for the lesson's figure")
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    line, losses = round(unseen()[1], 4), {}
    for name in CHANGES:
        found = [trained(name, seed, options.steps) for seed in SEEDS]
        losses[name] = [round(loss, 4) for loss, _ in found]
        above = sum(losses[name]) / len(SEEDS) - line
        print(f"{name:30} {found[0][1]:8,} parameters  {losses[name]}  {above:.3f} above the entropy", flush=True)
    if options.write:
        write("today", "changes", {"line": line, "losses": losses})


if __name__ == "__main__":
    main()
