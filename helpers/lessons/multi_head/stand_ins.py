"""Functions that replace unanswered exercises of lesson 8 (helpers/or_finished.py), written with library calls."""

import torch
import torch.nn.functional as F


def fixed_heads(x, W_q, W_k, W_v, W_o, num_heads, mask=None):
    parts = [F.linear(x, W).unflatten(-1, (num_heads, -1)).movedim(-2, -3) for W in (W_q, W_k, W_v)]  # (B, H, T, D/H)
    heads = F.scaled_dot_product_attention(*parts, attn_mask=_with_rows(mask))  # (B, H, T, D/H)
    return F.linear(heads.movedim(-3, -2).flatten(-2), W_o)  # (B, T, D)


def grouped_query_attention(Q, K, V, mask=None):
    return F.scaled_dot_product_attention(Q, K, V, attn_mask=_with_rows(mask), enable_gqa=True)  # (B, H, T_q, d_k)


def _with_rows(mask):
    """The mask with at least two axes, as torch's function requires; a mask (T_k,) holds for every query."""
    return None if mask is None else torch.atleast_2d(mask)
