# Made by `course build` from solutions/08_multi_head/08_multi_head.py; never edited here.
"""The finished pieces of lesson 08: Multi-head attention: several looks at once."""

from helpers.blocks import attention
from torch import nn
import torch


def split_heads(x, num_heads):
    """Cut the channels into heads: head h owns the columns h·D/H to (h + 1)·D/H - 1.

    x (B, T, D), num_heads H: int -> (B, H, T, D/H), same dtype. ValueError if H does not divide D.
    """
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError(f"{D} channels do not divide among {num_heads} heads")
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)  # (B, H, T, D/H)


def merge_heads(x):
    """Put the heads back side by side: the inverse of split_heads.

    x (B, H, T, D/H) -> (B, T, D), same dtype.
    """
    B, H, T, d_head = x.shape
    return x.transpose(1, 2).reshape(B, T, H * d_head)  # (B, T, D)


class MultiHeadAttention(nn.Module):
    """Multi-head attention, section 3.2.2 of Vaswani et al. (2017), with biases.

    d_model, num_heads: int; ValueError if num_heads does not divide d_model.
    forward(query (B, T_q, D), key (B, T_k, D) or None, value (B, T_k, D) or None, mask None or bool that broadcasts
    to (B, H, T_q, T_k), True = may attend) -> (out (B, T_q, D), weights (B, H, T_q, T_k)), same dtype.
    Without a key the query is the key; without a value the key is the value.
    """

    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{d_model} channels do not divide among {num_heads} heads")
        self.num_heads = num_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def forward(self, query, key=None, value=None, mask=None):
        key = query if key is None else key  # (B, T_k, D)
        value = key if value is None else value  # (B, T_k, D)
        Q = split_heads(self.W_q(query), self.num_heads)  # (B, H, T_q, D/H)
        K = split_heads(self.W_k(key), self.num_heads)  # (B, H, T_k, D/H)
        V = split_heads(self.W_v(value), self.num_heads)  # (B, H, T_k, D/H)
        heads, weights = attention(Q, K, V, mask)  # (B, H, T_q, D/H), (B, H, T_q, T_k)
        return self.W_o(merge_heads(heads)), weights  # (B, T_q, D)
