"""nanoGPT's model and learning rate, implemented from the description in its README and the papers' recipes.

Learned positions, GELU, no biases, head tied to the embedding; AdamW with a warm-up and a cosine decay to a tenth of
the highest rate. Dropout acts on attention weights, on the outputs of both sublayers, and on token vectors.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

RATES = (1e-3, 1e-4)  # the highest and the last


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(width, bias=False) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)
        self.heads, self.dropout = heads, dropout

    def forward(self, x):
        B, T, D = x.shape
        p = self.dropout if self.training else 0.0
        q, k, v = (
            y.view(B, T, self.heads, D // self.heads).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(D, dim=2)
        )
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=p)
        x = x + F.dropout(self.out(heads.transpose(1, 2).reshape(B, T, D)), p)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), p)


class NanoGPT(nn.Module):
    """ids (B, T), T <= context -> logits (B, T, vocab_size)."""

    def __init__(self, vocab_size: int, context: int, width: int, heads: int, layers: int, dropout: float = 0.0):
        super().__init__()
        self.block_size, self.dropout = context, nn.Dropout(dropout)
        self.tokens, self.positions = nn.Embedding(vocab_size, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                small = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(parameter, std=0.02 / (2 * layers) ** 0.5 if small else 0.02)

    def forward(self, ids):
        x = self.dropout(self.tokens(ids) + self.positions.weight[: ids.shape[1]])
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T


def rate(step: int, steps: int, warmup: int) -> float:
    """The learning rate of a step."""
    high, low = RATES
    if step < warmup:
        return high * (step + 1) / (warmup + 1)
    return low + 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) * (high - low)


@torch.no_grad()
def whole_loss(model, data: torch.Tensor, context: int) -> float:
    """The mean loss over a whole split, in adjacent windows."""
    windows = data[: (len(data) - 1) // context * context + 1]
    ids, targets = windows[:-1].view(-1, context), windows[1:].view(-1, context)
    pairs = zip(ids.split(256), targets.split(256), strict=True)
    total = sum(F.cross_entropy(model(x).float().flatten(0, 1), y.flatten(), reduction="sum").item() for x, y in pairs)
    return total / targets.numel()
