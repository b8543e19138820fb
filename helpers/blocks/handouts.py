"""What lessons hand out beside the finished blocks, and what is no exercise's answer: lesson 12 a block with rotary
position embedding, lesson 14 a norm's module and the merging of a pair."""

import sys

import torch
import torch.nn.functional as F
from torch import nn

from helpers.blocks import EncoderBlock, MultiHeadAttention, apply_rope, attention, merge_heads, split_heads
from helpers.progress import PASSED


class RotaryAttention(MultiHeadAttention):
    """Self-attention whose queries and keys are rotated by their positions, so that scores depend on distances
    (Su et al., 2021).

    Made and called as MultiHeadAttention, with one input: query (B, T, D) -> (out (B, T, D), weights (B, H, T, T)).
    """

    base = 10.0  # small: all pairs turn fast enough to tell neighboring positions apart, within a context of 64
    fused = False  # True: torch's own causal attention, which is fast but returns no weights
    dropout = 0.0  # fraction of the attention weights that fused attention drops in training mode

    def forward(self, query, key=None, value=None, mask=None):
        positions = torch.arange(query.shape[1], device=query.device)  # (T,)
        Q, K, V = (split_heads(W(query), self.num_heads) for W in (self.W_q, self.W_k, self.W_v))  # (B, H, T, D/H)
        Q, K = apply_rope(Q, positions, self.base), apply_rope(K, positions, self.base)  # (B, H, T, D/H)
        if self.fused:
            dropped = self.dropout if self.training else 0.0
            heads = F.scaled_dot_product_attention(Q, K, V, is_causal=True, dropout_p=dropped)  # (B, H, T, D/H)
            return self.W_o(merge_heads(heads)), None  # (B, T, D)
        heads, weights = attention(Q, K, V, mask)  # (B, H, T, D/H), (B, H, T, T)
        out = self.W_o(merge_heads(heads))  # (B, T, D)
        return out, weights  # (B, T, D), (B, H, T, T)


def _encoder_block() -> type:
    """The learner's EncoderBlock where its check has passed in this kernel, else the finished one."""
    own = getattr(sys.modules.get("__main__"), "EncoderBlock", None)
    return own if isinstance(own, type) and "EncoderBlock" in PASSED else EncoderBlock


class RotaryBlock(_encoder_block()):
    """Lesson 9's block in the pre-norm order, with rotary attention.

    forward(x (B, T, d_model), mask None or bool that broadcasts to (B, H, T, T)) -> (B, T, d_model).
    """

    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff, norm_first=True)
        self.attention = RotaryAttention(d_model, num_heads)


class RMSNorm(nn.Module):
    """A function norm(x, weight, eps), such as `rms_norm`, together with its weight (D,)."""

    def __init__(self, norm, d_model: int, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.norm, self.eps = norm, eps

    def forward(self, x):
        return self.norm(x, self.weight, self.eps)


def merge_pair(tokens: list[bytes], pair: tuple[bytes, bytes]) -> list[bytes]:
    """The tokens, with the two of the pair joined wherever they are neighbors, from left to right."""
    merged, i = [], 0
    while i < len(tokens):
        width = 2 if tuple(tokens[i : i + 2]) == pair else 1
        merged.append(b"".join(tokens[i : i + width]))
        i += width
    return merged
