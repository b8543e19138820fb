# Made by `course build` from solutions/14_today/14_today.py; never edited here.
"""The finished blocks of lesson 14: From 2017 to today: the block of Llama, Mistral and Qwen."""

from collections import Counter
from itertools import pairwise
import copy
import re

from torch import nn
import torch
import torch.nn.functional as F

from helpers.blocks import RMSNorm
from helpers.blocks import causal_mask
from helpers.blocks import grouped_query_attention
from helpers.blocks import merge_heads
from helpers.blocks import merge_pair
from helpers.blocks import split_heads


def rms_norm(x, weight, eps=1e-6):
    """RMSNorm of every row (Zhang and Sennrich, 2019): the mean is not subtracted.

    x (..., D), weight (D,), float32 or float64; eps a number > 0 -> (..., D), same dtype.
    """
    mean_square = x.pow(2).mean(dim=-1, keepdim=True)  # (..., 1)
    return weight * x / (mean_square + eps) ** 0.5  # (..., D)


class SwiGLU(nn.Module):
    """The gated feed-forward network of Shazeer (2020), without biases: gate, up and down.

    forward(x (B, T, d_model)) -> (B, T, d_model), same dtype.
    """

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.gate = nn.Linear(d_model, d_ff, bias=False)
        self.up = nn.Linear(d_model, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        hidden = F.silu(self.gate(x)) * self.up(x)  # (B, T, F)
        return self.down(hidden)  # (B, T, D)


def apply_rope_half_split(x, positions, base=10000.0):
    """RoPE (Su et al., 2021) in the half-split layout: channel i is paired with channel i + d/2.

    x (..., T, d) with d even, positions LongTensor (T,) -> (..., T, d), same dtype.
    """
    half = x.shape[-1] // 2
    i = torch.arange(half, dtype=torch.float64, device=x.device)  # (d/2,)
    angles = positions[:, None] / base ** (i / half)  # (T, d/2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]  # (..., T, d/2)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)  # (..., T, d)


class LlamaBlock(nn.Module):
    """The block of Llama (Touvron et al., 2023) with grouped queries; ValueError where heads do not
    divide.

    forward(x (B, T, D), mask None (then causal) or bool that broadcasts to (B, H, T, T)) ->
    (B, T, D), same dtype.
    """

    def __init__(self, d_model, num_heads, num_kv_heads, d_ff, base=10000.0, eps=1e-6):
        super().__init__()
        if d_model % num_heads or num_heads % num_kv_heads:
            raise ValueError(f"{d_model} channels, {num_heads} heads and {num_kv_heads} of keys do not divide")
        self.num_heads, self.num_kv_heads, self.base = num_heads, num_kv_heads, base
        shared = d_model // num_heads * num_kv_heads  # G · d
        self.W_q, self.W_o = (nn.Linear(d_model, d_model, bias=False) for _ in range(2))
        self.W_k, self.W_v = (nn.Linear(d_model, shared, bias=False) for _ in range(2))
        self.norm1, self.norm2 = (RMSNorm(rms_norm, d_model, eps) for _ in range(2))
        self.feed_forward = SwiGLU(d_model, d_ff)

    def forward(self, x, mask=None):
        places = torch.arange(x.shape[1], device=x.device)  # (T,)
        mask = causal_mask(x.shape[1]).to(x.device) if mask is None else mask
        y = self.norm1(x)  # (B, T, D)
        Q = apply_rope_half_split(split_heads(self.W_q(y), self.num_heads), places, self.base)  # (B, H, T, d)
        K = apply_rope_half_split(split_heads(self.W_k(y), self.num_kv_heads), places, self.base)  # (B, G, T, d)
        V = split_heads(self.W_v(y), self.num_kv_heads)  # (B, G, T, d)
        x = x + self.W_o(merge_heads(grouped_query_attention(Q, K, V, mask)))  # (B, T, D)
        return x + self.feed_forward(self.norm2(x))  # (B, T, D)


class LoRA(nn.Module):
    """A frozen linear layer plus a learned difference of low rank (Hu et al., 2021).

    linear: nn.Linear, kept; rank: int >= 1; alpha: number. forward(x (..., in)) -> (..., out), same
    dtype.
    """

    def __init__(self, linear, rank, alpha=1.0):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        W = linear.weight  # (out, in)
        self.A = nn.Parameter(torch.randn(rank, W.shape[1], dtype=W.dtype, device=W.device) * W.shape[1] ** -0.5)
        self.B = nn.Parameter(torch.zeros(W.shape[0], rank, dtype=W.dtype, device=W.device))

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.A.T @ self.B.T)  # (..., out)

    def merged(self):
        """A new nn.Linear with the same outputs; self stays as it was."""
        new = copy.deepcopy(self.linear)
        with torch.no_grad():
            new.weight += self.scale * self.B @ self.A  # (out, in)
        return new


def sliding_window_mask(T_q, T_k=None, window=4, sinks=0):
    """Causal, and of the past only the last `window` keys and the first `sinks`; True = may attend.

    T_q: int, T_k: int >= T_q or None (then T_q), window: int >= 1, own position included,
    sinks: int >= 0 -> bool (T_q, T_k). The last query is at the last key.
    """
    T_k = T_q if T_k is None else T_k
    key = torch.arange(T_k)  # (T_k,)
    behind = torch.arange(T_k - T_q, T_k)[:, None] - key  # (T_q, T_k): how far back each key stands
    return (behind >= 0) & ((behind < window) | (key < sinks))


def interleaved_to_half_split(W, num_heads):
    """The rows of a projection, head by head, from the interleaved to the half-split layout.

    W (D, D_in), num_heads: int, of queries, or of keys for a matrix of keys -> (D, D_in), same
    dtype.
    """
    pairs = W.unflatten(0, (num_heads, -1, 2))  # (H, d/2, 2, D_in): first and second of each pair
    return pairs.transpose(1, 2).flatten(0, 2)  # (D, D_in)


def rename_llama(state_dict):
    """The names of Llama's published files to those of a Decoder of LlamaBlocks.

    state_dict: dict of str to tensor -> dict of str to tensor, "blocks.{i}.W_q.weight" and so on, i
    from 0.
    """
    names = {
        "input_layernorm": "norm1",
        "post_attention_layernorm": "norm2",
        **{f"self_attn.{letter}_proj": f"W_{letter}" for letter in "qkvo"},
        **{f"mlp.{part}_proj": f"feed_forward.{part}" for part in ("gate", "up", "down")},
    }
    outside = {"model.embed_tokens": "tokens", "model.norm": "norm", "lm_head": "unembed"}
    mine = {}
    for name, tensor in state_dict.items():
        part, _, kind = name.rpartition(".")
        i, _, inside = part.removeprefix("model.layers.").partition(".")
        if part in outside:
            mine[f"{outside[part]}.{kind}"] = tensor
        elif inside in names:
            mine[f"blocks.{i}.{names[inside]}.{kind}"] = tensor
    mine.setdefault("unembed.weight", mine["tokens.weight"])  # one table for both ends
    return mine


def train_bpe(text, num_merges):
    """Byte-pair encoding (Sennrich et al., 2016) of UTF-8 bytes: the merges in the order in which
    they are learned.

    text: str, num_merges: int >= 0 -> list of tuples (bytes, bytes), at most num_merges.
    """
    counts = Counter(re.findall(r" ?\S+|\s", text))
    pieces = [([bytes([byte]) for byte in piece.encode()], count) for piece, count in counts.items()]
    merges = []
    while len(merges) < num_merges:
        pairs = Counter()
        for tokens, count in pieces:
            for pair in pairwise(tokens):
                pairs[pair] += count
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        pieces = [(merge_pair(tokens, best), count) for tokens, count in pieces]
    return merges


def encode_bpe(text, merges):
    """The tokens of a text: its pieces as bytes, with all merges applied in their order.

    text: str, merges: list of tuples (bytes, bytes) from train_bpe -> list of bytes, which joined
    are the text's.
    """
    found = []
    for piece in re.findall(r" ?\S+|\s", text):
        tokens = [bytes([byte]) for byte in piece.encode()]
        for pair in merges:
            tokens = merge_pair(tokens, pair)
        found += tokens
    return found
