"""What stands in for answers of lesson 5 that are not there yet (helpers/or_given.py): the same, of library calls."""

from __future__ import annotations

import torch.nn.functional as F


def fixed_causal_attention(Q, K, V):
    return F.scaled_dot_product_attention(Q, K, V, is_causal=True)  # (..., T, d_v)


GIVEN = {"fixed_causal_attention": fixed_causal_attention}
