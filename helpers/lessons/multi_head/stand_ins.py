"""Functions that replace unanswered exercises of lesson 8 (helpers/or_finished.py), written with library calls."""

import torch
import torch.nn.functional as F


def fixed_heads(x, W_q, W_k, W_v, W_o, num_heads, mask=None):
    parts = [F.linear(x, W).unflatten(-1, (num_heads, -1)).movedim(-2, -3) for W in (W_q, W_k, W_v)]  # (B, H, T, D/H)
    found = F.scaled_dot_product_attention(*parts, attn_mask=_with_rows(mask))  # (B, H, T, D/H)
    return F.linear(found.movedim(-3, -2).flatten(-2), W_o)  # (B, T, D)


def grouped_query_attention(Q, K, V, mask=None):
    return F.scaled_dot_product_attention(Q, K, V, attn_mask=_with_rows(mask), enable_gqa=True)  # (B, H, T_q, d_k)


def _with_rows(mask):
    """A mask (T_k,) is the same for every query; torch's function asks for at least two axes."""
    return None if mask is None else torch.atleast_2d(mask)
