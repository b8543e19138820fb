# Made by `course build` from solutions/08_multi_head/08_multi_head.py; never edited here.
"""The finished pieces of lesson 08: Multi-head attention."""

from torch import nn

from helpers.blocks import attention


def split_heads(x, num_heads):
    """x (B, T, D) -> (B, H, T, D/H)."""
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError(f"{D} columns cannot be divided among {num_heads} heads")
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)  # (B, H, T, D/H)


def merge_heads(x):
    """x (B, H, T, D/H) -> (B, T, D)."""
    return x.transpose(1, 2).flatten(2)  # (B, T, D)


class MultiHeadAttention(nn.Module):
    """Temporary stand-in of lesson 8's module."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model {d_model} is not divisible by {num_heads} heads")
        self.num_heads = num_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def forward(self, query, key=None, value=None, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        Q, K, V = (split_heads(W(x), self.num_heads) for W, x in zip((self.W_q, self.W_k, self.W_v), (query, key, value)))
        out, weights = attention(Q, K, V, mask)
        return self.W_o(merge_heads(out)), weights
