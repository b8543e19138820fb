# Made by `course build` from solutions/08_multi_head/08_multi_head.py; never edited here.
"""The finished blocks of lesson 08: Multi-head attention: attending to several positions at once."""

import copy

from torch import nn
import torch

from helpers.blocks import attention


def split_heads(x, num_heads):
    """Split the channels into heads: head h has the columns h·D/H to (h + 1)·D/H - 1.

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
    """Multi-head attention, section 3.2.2 of Vaswani et al. (2017); ValueError if num_heads does
    not divide d_model.
    query (B, T_q, D), key and value (B, T_k, D), mask bool that broadcasts to (B, H, T_q, T_k),
    True = may attend -> (out (B, T_q, D), weights (B, H, T_q, T_k)), same dtype; no dropout.
    """

    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{d_model} channels do not divide among {num_heads} heads")
        self.num_heads = num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key=None, value=None, mask=None):
        key = query if key is None else key  # (B, T_k, D)
        value = key if value is None else value  # (B, T_k, D)
        Q = split_heads(self.W_q(query), self.num_heads)  # (B, H, T_q, D/H)
        K = split_heads(self.W_k(key), self.num_heads)  # (B, H, T_k, D/H)
        V = split_heads(self.W_v(value), self.num_heads)  # (B, H, T_k, D/H)
        heads, weights = attention(Q, K, V, mask)  # (B, H, T_q, D/H), (B, H, T_q, T_k)
        return self.W_o(merge_heads(heads)), weights  # (B, T_q, D)


def fixed_heads(x, W_q, W_k, W_v, W_o, num_heads, mask=None):
    """Multi-head self-attention from its four matrices, without biases.

    x (B, T, D), W_q, W_k, W_v, W_o (D, D), float32 or float64; num_heads: int that divides D;
    mask None or bool that broadcasts to (B, H, T, T), True = may attend -> (B, T, D), same dtype.
    """
    Q = split_heads(x @ W_q.T, num_heads)  # (B, H, T, D/H)
    K = split_heads(x @ W_k.T, num_heads)  # (B, H, T, D/H)
    V = split_heads(x @ W_v.T, num_heads)  # (B, H, T, D/H)
    heads, _ = attention(Q, K, V, mask)  # (B, H, T, D/H)
    return merge_heads(heads) @ W_o.T  # (B, T, D)


def load_from_torch(mine, theirs):
    """Copy the weights of an nn.MultiheadAttention into a MultiHeadAttention of the same size, in
    place.

    theirs: batch_first=True, with biases, no dropout. The two share no memory afterwards.
    """
    layers = (mine.W_q, mine.W_k, mine.W_v, mine.W_o)
    weights = (*theirs.in_proj_weight.chunk(3), theirs.out_proj.weight)  # four of (D, D)
    biases = (*theirs.in_proj_bias.chunk(3), theirs.out_proj.bias)  # four of (D,)
    with torch.no_grad():
        for layer, weight, bias in zip(layers, weights, biases, strict=True):
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)


def head_importance(mha, x):
    """How far the output of mha(x) moves without each head: Frobenius norms.

    mha: MultiHeadAttention; x (B, T, D) -> (H,), dtype of x. No gradient is asked for; mha is left
    as it was.
    """
    d_head = x.shape[-1] // mha.num_heads
    changes = []
    with torch.no_grad():
        out = mha(x)[0]  # (B, T, D)
        for h in range(mha.num_heads):
            own = slice(h * d_head, (h + 1) * d_head)
            without = copy.deepcopy(mha)
            without.W_o.weight[:, own] = 0  # (D, D/H): what W_o makes of this head
            changes.append((out - without(x)[0]).norm())
    return torch.stack(changes)  # (H,)


def grouped_query_attention(Q, K, V, mask=None):
    """Attention in which H/G neighboring query heads share one head of keys and values
    (Ainslie et al., 2023).

    Q (B, H, T_q, d_k), K and V (B, G, T_k, d_k), H divisible by G, float32 or float64;
    mask None or bool that broadcasts to (B, H, T_q, T_k) -> (B, H, T_q, d_k), same dtype.
    """
    group = Q.shape[1] // K.shape[1]  # H/G
    K = K.repeat_interleave(group, dim=1)  # (B, H, T_k, d_k)
    V = V.repeat_interleave(group, dim=1)  # (B, H, T_k, d_k)
    return attention(Q, K, V, mask)[0]  # (B, H, T_q, d_k)
