"""Attention that knows distances: the rotations of lesson 2 inside the attention of lesson 8."""

from __future__ import annotations

import torch

from helpers.blocks import MultiHeadAttention, apply_rope, attention, merge_heads, split_heads


class RotaryAttention(MultiHeadAttention):
    """Self-attention whose queries and keys are rotated by their places, so that distances count (Su et al., 2021).

    Made and called as MultiHeadAttention, with one input: query (B, T, D) -> (out (B, T, D), weights (B, H, T, T)).
    """

    base = 10.0  # small: all pairs turn fast enough to tell neighboring places apart, within a context of 64

    def forward(self, query, key=None, value=None, mask=None):
        positions = torch.arange(query.shape[1], device=query.device)  # (T,)
        Q, K, V = (split_heads(W(query), self.num_heads) for W in (self.W_q, self.W_k, self.W_v))  # (B, H, T, D/H)
        Q, K = apply_rope(Q, positions, self.base), apply_rope(K, positions, self.base)  # (B, H, T, D/H)
        heads, weights = attention(Q, K, V, mask)  # (B, H, T, D/H), (B, H, T, T)
        joined = merge_heads(heads)  # (B, T, D)
        return self.W_o(joined), weights
