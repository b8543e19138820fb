"""Functions and classes that replace unanswered exercises of lesson 14 (helpers/or_finished.py), with library calls."""

import copy
import re
from collections import Counter

import torch
from torch import nn
from torch.nn import functional as F


def rms_norm(x, weight, eps=1e-6):
    return F.rms_norm(x, x.shape[-1:], weight, eps)


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.gate, self.up = (nn.Linear(d_model, d_ff, bias=False) for _ in range(2))
        self.down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)).mul(self.up(x)))


def apply_rope_half_split(x, positions, base=10000.0):
    from helpers.blocks import apply_rope  # imported late, because earlier lessons may not have this block

    interleaved = x.unflatten(-1, (2, -1)).mT.flatten(-2)  # (..., T, d), the two channels of a pair next to each other
    return apply_rope(interleaved, positions, base).unflatten(-1, (-1, 2)).mT.flatten(-2)


def interleaved_to_half_split(W, num_heads):
    return torch.cat([torch.cat([head[0::2], head[1::2]]) for head in W.tensor_split(num_heads)])


class LlamaBlock(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads, d_ff, base=10000.0, eps=1e-6):
        super().__init__()
        if d_model % num_heads or num_heads % num_kv_heads:
            raise ValueError("num_heads must divide d_model, and num_kv_heads must divide num_heads")
        self.width, self.base = d_model // num_heads, base
        kv_width = self.width * num_kv_heads
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, kv_width, bias=False)
        self.W_v = nn.Linear(d_model, kv_width, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)
        self.norm1, self.norm2 = nn.RMSNorm(d_model, eps), nn.RMSNorm(d_model, eps)
        self.feed_forward = SwiGLU(d_model, d_ff)

    def forward(self, x, mask=None):
        from helpers.blocks import causal_mask, grouped_query_attention

        positions, y = torch.arange(x.shape[1], device=x.device), self.norm1(x)
        heads = (W(y).unflatten(-1, (-1, self.width)).movedim(-2, 1) for W in (self.W_q, self.W_k, self.W_v))
        q, k, v = heads  # (B, H, T, d), (B, G, T, d) twice
        q, k = apply_rope_half_split(q, positions, self.base), apply_rope_half_split(k, positions, self.base)
        found = grouped_query_attention(q, k, v, causal_mask(x.shape[1]).to(x.device) if mask is None else mask)
        x = x + self.W_o(found.movedim(1, -2).flatten(-2))
        return self.feed_forward(self.norm2(x)).add(x)


def rename_llama(state_dict):
    swaps = [
        (r"^model\.layers\.(\d+)\.", r"blocks.\1."),
        (r"self_attn\.(\w)_proj", r"W_\1"),
        (r"mlp\.(\w+)_proj", r"feed_forward.\1"),
        (r"post_attention_layernorm", "norm2"),
        (r"input_layernorm", "norm1"),
        (r"^model\.embed_tokens", "tokens"),
        (r"^model\.norm", "norm"),
        (r"^lm_head", "unembed"),
    ]
    mine = {}
    for name, tensor in state_dict.items():
        for theirs, ours in swaps:
            name = re.sub(theirs, ours, name)
        mine[name] = tensor
    return {"unembed.weight": mine["tokens.weight"]} | mine


def sliding_window_mask(T_q, T_k=None, window=4, sinks=0):
    T_k = T_k or T_q
    near = torch.ones(T_q, T_k).tril(T_k - T_q).triu(T_k - T_q - window + 1).bool()
    first = torch.ones(T_q, T_k).tril(T_k - T_q).bool()
    first[:, sinks:] = False
    return near.logical_or(first)


def _pieces(text):
    return [[bytes([byte]) for byte in piece.encode()] for piece in re.findall(r" ?\S+|\s", text)]


def train_bpe(text, num_merges):
    from helpers.blocks import merge_pair

    pieces, merges = Counter(map(tuple, _pieces(text))), []
    for _ in range(num_merges):
        seen = Counter()
        for tokens, number in pieces.items():
            counts = Counter(zip(tokens, tokens[1:], strict=False))
            seen.update({pair: number * times for pair, times in counts.items()})
        if seen:
            merges.append(sorted(seen, key=lambda pair: (seen[pair], pair))[-1])
            pieces = Counter({tuple(merge_pair(tokens, merges[-1])): number for tokens, number in pieces.items()})
    return merges


def encode_bpe(text, merges):
    from helpers.blocks import merge_pair

    found = []
    for tokens in _pieces(text):
        for pair in merges:
            tokens = merge_pair(tokens, tuple(pair))
        found.extend(tokens)
    return found


class LoRA(nn.Module):
    def __init__(self, linear, rank, alpha=1.0):
        super().__init__()
        self.linear, self.scale = linear.requires_grad_(False), alpha / rank
        kind = {"dtype": linear.weight.dtype, "device": linear.weight.device}
        self.A = nn.Parameter(torch.empty(rank, linear.in_features, **kind))
        nn.init.kaiming_uniform_(self.A, a=5**0.5)
        self.B = nn.Parameter(torch.zeros(linear.out_features, rank, **kind))

    def forward(self, x):
        return F.linear(x, self.linear.weight, self.linear.bias) + self.scale * F.linear(F.linear(x, self.A), self.B)

    def merged(self):
        new = copy.deepcopy(self.linear)
        new.weight.data.addmm_(self.B.detach(), self.A.detach(), alpha=self.scale)
        return new
