# Made by `course build` from solutions/09_encoder_block/09_encoder_block.py; never edited here.
"""The finished blocks of lesson 09: The encoder block: attention is half of it."""

from torch import nn
from torch.nn import functional as F
import torch

from helpers.blocks import MultiHeadAttention


def layer_norm(x, gamma, beta, eps=1e-5):
    """Layer norm of every row by itself (Ba et al. 2016), like nn.LayerNorm.

    x (..., D), gamma and beta (D,), float32 or float64; eps a number > 0 -> (..., D), same dtype.
    """
    mean = x.mean(dim=-1, keepdim=True)  # (..., 1)
    variance = x.var(dim=-1, correction=0, keepdim=True)  # (..., 1)
    normal = (x - mean) / (variance + eps) ** 0.5  # (..., D), mean 0 and variance 1
    return gamma * normal + beta  # (..., D)


class FeedForward(nn.Module):
    """The position-wise network, eq. 2 of Vaswani et al. (2017): up, activation, down, for every
    token alone.

    forward(x (B, T, d_model)) -> (B, T, d_model), same dtype.
    """

    def __init__(self, d_model, d_ff, activation=F.relu):
        super().__init__()
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)
        self.activation = activation

    def forward(self, x):
        hidden = self.activation(self.up(x))  # (B, T, d_ff)
        return self.down(hidden)  # (B, T, D)


class EncoderBlock(nn.Module):
    """Attention, then a feed-forward network, each with a residual and a norm
    (Vaswani et al. 2017, 3.1).

    forward(x (B, T, D), mask None or bool that broadcasts to (B, H, T, T)) -> (B, T, D), same
    dtype.
    """

    def __init__(self, d_model, num_heads, d_ff, norm_first=False, activation=F.relu):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.norm_first = norm_first

    def forward(self, x, mask=None):
        if self.norm_first:
            x = x + self.attention(self.norm1(x), mask=mask)[0]  # (B, T, D)
            return x + self.feed_forward(self.norm2(x))  # (B, T, D)
        x = self.norm1(x + self.attention(x, mask=mask)[0])  # (B, T, D)
        return self.norm2(x + self.feed_forward(x))  # (B, T, D)


def fixed_block(x, attention, feed_forward, norm1, norm2, mask=None):
    """A pre-norm block (Xiong et al. 2020) from its four parts.

    x (B, T, D), float32 or float64; attention(x, mask=mask) -> (out (B, T, D), weights);
    feed_forward, norm1, norm2: (B, T, D) -> (B, T, D); mask None or bool -> (B, T, D), same dtype.
    """
    out, _ = attention(norm1(x), mask=mask)  # (B, T, D)
    x = x + out  # (B, T, D)
    return x + feed_forward(norm2(x))  # (B, T, D)


class Encoder(nn.Module):
    """Word vectors plus learned positions, then a stack of encoder blocks.

    Parts: tokens and positions (nn.Embedding), blocks (nn.ModuleList of EncoderBlock).
    forward(ids LongTensor (B, T), T <= max_len, mask None or bool that broadcasts to (B, H, T, T))
    -> (B, T, D).
    """

    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, max_len, **options):
        super().__init__()
        # self.tokens, self.positions, self.blocks
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(max_len, d_model)
        blocks = [EncoderBlock(d_model, num_heads, d_ff, **options) for _ in range(num_layers)]
        self.blocks = nn.ModuleList(blocks)

    def forward(self, ids, mask=None):
        positions = torch.arange(ids.shape[1], device=ids.device)  # (T,)
        x = self.tokens(ids) + self.positions(positions)  # (B, T, D) + (T, D)
        for block in self.blocks:
            x = block(x, mask)  # (B, T, D)
        return x  # (B, T, D)


def block_macs(T, d_model, d_ff):
    """Multiply-accumulate operations in the matrix products of one block, for one sequence of T tokens.

    T, d_model, d_ff: int -> int.
    """
    projections = 4 * T * d_model**2  # W_q, W_k, W_v, W_o
    attention = 2 * T**2 * d_model  # scores, and weights times values
    feed_forward = 2 * T * d_model * d_ff  # up, down
    return projections + attention + feed_forward


def token_influence(f, x):
    """How strongly each row of f(x) depends on each row of x: Frobenius norms of the blocks of the
    Jacobian.

    f: function (T, D) -> (T, any width); x (T, D), float32 or float64
    -> (T, T), same dtype; row i, column j: output row i, input row j.
    """
    jacobian = torch.autograd.functional.jacobian(f, x)  # (T, E, T, D)
    return jacobian.pow(2).sum(dim=(1, 3)).sqrt()  # (T, T)
