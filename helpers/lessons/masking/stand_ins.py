"""Functions that replace unanswered exercises of lesson 5 (helpers/or_finished.py), written with library calls."""

import torch.nn.functional as F


def fixed_causal_attention(Q, K, V):
    return F.scaled_dot_product_attention(Q, K, V, is_causal=True)  # (..., T, d_v)
