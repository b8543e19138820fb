"""The lesson's rotary attention through torch's fused attention: the same numbers, in less time."""

import torch
import torch.nn.functional as F

from helpers.blocks import RotaryAttention, apply_rope, merge_heads, split_heads


class FusedAttention(RotaryAttention):
    """The lesson's rotary attention under a causal mask, without the weights to look at."""

    def __init__(self, d_model: int, num_heads: int, context: int):
        super().__init__(d_model, num_heads)
        ones = torch.ones(context, d_model // num_heads // 2, 1)
        pairs = torch.cat([ones, torch.zeros_like(ones)], dim=-1).flatten(-2)  # (T, d): each pair is (1, 0)
        turned = apply_rope(pairs, torch.arange(context), self.base)  # (T, d): each pair is (cos, sin)
        self.turns = torch.view_as_complex(turned.unflatten(-1, (-1, 2)).contiguous())  # (T, d/2)

    def turn(self, x):
        """The lesson's `apply_rope`: a pair of channels is a complex number, and a turn is a product."""
        pairs = torch.view_as_complex(x.contiguous().unflatten(-1, (-1, 2)))  # (B, H, T, d/2)
        return torch.view_as_real(pairs * self.turns[: x.shape[-2]]).flatten(-2)  # (B, H, T, d)

    def forward(self, query, key=None, value=None, mask=None):
        Q, K, V = (split_heads(W(query), self.num_heads) for W in (self.W_q, self.W_k, self.W_v))  # (B, H, T, d)
        heads = F.scaled_dot_product_attention(self.turn(Q), self.turn(K), V, is_causal=True)  # (B, H, T, d)
        return self.W_o(merge_heads(heads)), None


def fused(model):
    """The same GPT with quicker attention; its numbers stay where they are."""
    for block in model.blocks:
        mha = block.attention
        quick = FusedAttention(mha.W_q.in_features, mha.num_heads, model.block_size)
        quick.load_state_dict(mha.state_dict())
        block.attention = quick
    return model
