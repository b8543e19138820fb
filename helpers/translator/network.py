"""The network: an encoder and a decoder whose every part can be replaced by name.

`Transformer(...)` uses FINISHED_PARTS; with `parts=Parts({"scaled_scores": f})` it calls f instead of that part. The
attribute names are those of the exercises, so that its state dict loads into a learner's modules.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from helpers.translator import finished_parts
from helpers.translator.parts import INSIDE_ATTENTION, PARTS


class Parts:
    """The parts of a network as attributes: the replaced ones, and FINISHED_PARTS for all other names."""

    def __init__(self, replaced: dict[str, Callable] | None = None):
        self.replaced = dict(replaced or {})

    def __getattr__(self, name: str) -> Callable:
        part = None if name.startswith("_") else self.__dict__["replaced"].get(name) or FINISHED_PARTS.get(name)
        if part is None:
            raise AttributeError(name)
        return part

    def module(self, name: str, *sizes, **options) -> nn.Module:
        """A new module of the replaced class of that name, or of the finished one, which uses these parts."""
        if name in self.replaced:
            return self.replaced[name](*sizes, **options)
        return FINISHED_PARTS[name](*sizes, **options, parts=self)

    def attend(self, Q, K, V, mask):
        """Attention (out, weights), computed with the replaced parts."""
        if "attention" in self.replaced or not INSIDE_ATTENTION & set(self.replaced):
            return self.attention(Q, K, V, mask)
        if "attention_scores" in self.replaced and "scaled_scores" not in self.replaced:
            scores = self.attention_scores(Q, K) * Q.shape[-1] ** -0.5  # (..., T_q, T_k)
        else:
            scores = self.scaled_scores(Q, K)  # (..., T_q, T_k)
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device) if mask is None else mask
        if "masked_softmax" in self.replaced:
            weights = self.masked_softmax(scores, mask)
        elif "softmax_with_temperature" in self.replaced:
            weights = self.softmax_with_temperature(self.mask_scores(scores, mask), 1.0)
        else:
            weights = self.softmax(self.mask_scores(scores, mask))
        return self.weighted_values(weights, V), weights


class AttentionHead(nn.Module):
    """One head of self-attention."""

    def __init__(self, d_model, d_head, parts=None):
        super().__init__()
        self.parts = parts or Parts()
        self.W_q, self.W_k, self.W_v = (nn.Linear(d_model, d_head, bias=False) for _ in range(3))

    def forward(self, x, mask=None):
        return self.parts.attend(self.W_q(x), self.W_k(x), self.W_v(x), mask)[0]  # (..., T, d_head)


class MultiHeadAttention(nn.Module):
    """Multi-head attention. The biases of W_q, W_k and W_v stay 0, because an AttentionHead has none."""

    def __init__(self, d_model, num_heads, parts=None):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{num_heads} heads do not divide a width of {d_model}")
        self.parts, self.num_heads = parts or Parts(), num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key=None, value=None, mask=None):
        parts, heads = self.parts, self.num_heads
        key = query if key is None else key
        value = key if value is None else value
        inputs = (query, self.W_q), (key, self.W_k), (value, self.W_v)
        Q, K, V = (parts.split_heads(parts.project(x, W.weight) + W.bias, heads) for x, W in inputs)  # (B, H, T, d_k)
        out, weights = parts.attend(Q, K, V, mask)  # (B, H, T_q, d_k), (B, H, T_q, T_k)
        if "AttentionHead" in parts.replaced and key is query and value is query:
            out = self._by_heads(query, mask)
        return self.W_o(parts.merge_heads(out)), weights

    def _by_heads(self, x, mask):
        """The heads' outputs (B, H, T, d_k), computed one after the other by the replaced AttentionHead."""
        B, T, D = x.shape
        width, outs = D // self.num_heads, []
        if mask is not None:
            mask = mask.expand(B, self.num_heads, T, T)
        for h in range(self.num_heads):
            head = self.parts.replaced["AttentionHead"](D, width)
            rows = slice(h * width, (h + 1) * width)
            head.load_state_dict({f"{w}.weight": getattr(self, w).weight[rows] for w in ("W_q", "W_k", "W_v")})
            outs.append(head(x, None if mask is None else mask[:, h]))
        return torch.stack(outs, dim=1)


class FeedForward(nn.Module):
    """Two linear layers with an activation in between, applied to each token separately."""

    def __init__(self, d_model, d_ff, activation=F.relu, parts=None):
        super().__init__()
        self.up, self.down, self.activation = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model), activation

    def forward(self, x):
        return self.down(self.activation(self.up(x)))


class EncoderBlock(nn.Module):
    """Self-attention and a feed-forward network, each with a residual connection and post-norm."""

    def __init__(self, d_model, num_heads, d_ff, parts=None):
        super().__init__()
        self.parts = parts or Parts()
        self.attention = self.parts.module("MultiHeadAttention", d_model, num_heads)
        self.feed_forward = self.parts.module("FeedForward", d_model, d_ff)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        x = self.normed(self.norm1, x + self.attention(x, mask=mask)[0])
        return self.normed(self.norm2, x + self.feed_forward(x))

    def normed(self, norm, x):
        return self.parts.layer_norm(x, norm.weight, norm.bias)


class DecoderBlock(nn.Module):
    """Masked self-attention, cross-attention to the encoder's output and a feed-forward network, all with post-norm."""

    def __init__(self, d_model, num_heads, d_ff, parts=None):
        super().__init__()
        self.parts = parts or Parts()
        self.self_attention = self.parts.module("MultiHeadAttention", d_model, num_heads)
        self.cross_attention = self.parts.module("MultiHeadAttention", d_model, num_heads)
        self.feed_forward = self.parts.module("FeedForward", d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))

    def forward(self, y, memory, self_mask=None, memory_mask=None):
        y = self.normed(self.norm1, y + self.self_attention(y, mask=self_mask)[0])
        found, weights = self.cross_attention(y, memory, memory, mask=memory_mask)
        y = self.normed(self.norm2, y + found)
        return self.normed(self.norm3, y + self.feed_forward(y)), weights

    normed = EncoderBlock.normed


class Encoder(nn.Module):
    """Token and position embeddings, then the blocks."""

    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, max_len, parts=None):
        super().__init__()
        self.parts = parts or Parts()
        self.tokens, self.positions = nn.Embedding(vocab_size, d_model), nn.Embedding(max_len, d_model)
        sizes = d_model, num_heads, d_ff
        self.blocks = nn.ModuleList(self.parts.module("EncoderBlock", *sizes) for _ in range(num_layers))

    def forward(self, ids, mask=None):
        x = embedded(self.parts, ids, self.tokens, self.positions)  # (B, T, D)
        for block in self.blocks:
            x = block(x, mask)
        return x


class Transformer(nn.Module):
    """An encoder and a decoder, from ids to logits."""

    def __init__(self, src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers, max_len, pad_id=0, parts=None):
        super().__init__()
        self.parts, self.pad_id = parts or Parts(), pad_id
        self.encoder = self.parts.module("Encoder", src_vocab, d_model, num_heads, d_ff, num_layers, max_len)
        self.tokens, self.positions = nn.Embedding(tgt_vocab, d_model), nn.Embedding(max_len, d_model)
        sizes = d_model, num_heads, d_ff
        self.blocks = nn.ModuleList(self.parts.module("DecoderBlock", *sizes) for _ in range(num_layers))
        self.unembed = nn.Linear(d_model, tgt_vocab)

    def encode(self, src):
        return self.encoder(src, self.source_mask(src))  # (B, T_s, D)

    def decode(self, tgt, memory, src):
        y = embedded(self.parts, tgt, self.tokens, self.positions)  # (B, T_t, D)
        self_mask = self.parts.combine_masks(self.parts.causal_mask(tgt.shape[1]), self.mask(tgt))  # (B, 1, T_t, T_t)
        for block in self.blocks:
            y, _ = block(y, memory, self_mask, self.source_mask(src))
        return self.unembed(y)  # (B, T_t, V)

    def forward(self, src, tgt):
        return self.decode(tgt, self.encode(src), src)

    def mask(self, ids):
        return self.parts.padding_mask((ids != self.pad_id).sum(dim=1), ids.shape[1])  # (B, T)

    def source_mask(self, src):
        return self.mask(src)[:, None, None, :]  # (B, 1, 1, T_s)


def embedded(parts: Parts, ids, tokens: nn.Embedding, positions: nn.Embedding):
    """Word vectors plus position vectors: (B, T, D)."""
    table = positions.weight
    if "sinusoidal_positions" in parts.replaced:
        table = parts.sinusoidal_positions(*table.shape)
    if "one_hot" in parts.replaced and "embed" not in parts.replaced:
        rows = parts.one_hot(ids, len(tokens.weight)).to(tokens.weight.dtype) @ tokens.weight
    else:
        rows = parts.embed(ids, tokens.weight)
    return parts.add_positions(rows, table)


FINISHED_PARTS: dict[str, Callable] = {
    part.name: getattr(finished_parts, part.name, None) or globals()[part.name] for part in PARTS
}
