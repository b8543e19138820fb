"""The real network of lesson 13, built from PyTorch layers, so that figures and explorers don't need any answer.

An answer that calls anything from this module is refused, as one that calls a block is.
"""

import contextlib
import functools
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from helpers import pretrained
from helpers.blocks import wordpiece
from helpers.lessons.real_model.stand_ins import EPS, bert_embeddings, mean_pool

LAYERS = {  # the name of a layer in nn.TransformerEncoderLayer: BERT's name
    "self_attn.out_proj": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "linear1": "intermediate.dense",
    "linear2": "output.dense",
    "norm2": "output.LayerNorm",
}


@dataclass(frozen=True)
class Reading:
    """The network's results for a batch of sentences, with [CLS] and [SEP] around each.

    tokens: the tokens of each sentence; mask (B, T); hidden: 7 tensors (B, T, D), the embeddings first; attention
    (L, B, H, T, T).
    """

    tokens: list[list[str]]
    mask: torch.Tensor
    hidden: list[torch.Tensor]
    attention: torch.Tensor


class Network(nn.Module):
    """BERT's encoder as nn.TransformerEncoderLayers, with the weights of `state`, which has BERT's names."""

    def __init__(self, state: dict, heads: int = pretrained.HEADS):
        super().__init__()
        self.state = state
        inner, width = state["encoder.layer.0.intermediate.dense.weight"].shape
        depth = 1 + max(int(name.split(".")[2]) for name in state if name.startswith("encoder.layer."))
        options = {"dropout": 0.0, "activation": "gelu", "layer_norm_eps": EPS, "batch_first": True}
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, heads, inner, **options) for _ in range(depth))
        for i, layer in enumerate(self.layers):
            prefix, weights = f"encoder.layer.{i}.", {}
            for kind in ("weight", "bias"):
                rows = [state[f"{prefix}attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
                weights[f"self_attn.in_proj_{kind}"] = torch.cat(rows)
                weights |= {f"{ours}.{kind}": state[f"{prefix}{theirs}.{kind}"] for ours, theirs in LAYERS.items()}
            layer.load_state_dict(weights)
        self.eval().requires_grad_(False)

    def embed(self, ids):
        """(B, T) -> (B, T, D)"""
        return bert_embeddings(ids, self.state)

    def up(self, x, layers=slice(None), padding=None):
        """Apply a slice of the layers: (B, T, D) -> (B, T, D). padding (B, T): True at padding."""
        for layer in list(self.layers)[layers]:
            x = layer(x, src_key_padding_mask=padding)
        return x

    def weights(self, i, x, padding=None):
        """The attention weights of layer i for its input x: (B, T, D) -> (B, H, T, T)."""
        attention = self.layers[i].self_attn
        return attention(x, x, x, key_padding_mask=padding, need_weights=True, average_attn_weights=False)[1]

    def read(self, sentences: list[str]) -> Reading:
        tokens = [pretrained.pieces(sentence, wordpiece) for sentence in sentences]
        ids, mask = pretrained.batch(sentences, wordpiece)
        padding = None if mask.all() else ~mask
        with torch.no_grad():
            hidden, attention = [self.embed(ids)], []
            for i in range(len(self.layers)):
                attention.append(self.weights(i, hidden[-1], padding))
                hidden.append(self.up(hidden[-1], slice(i, i + 1), padding))
        return Reading(tokens, mask, hidden, torch.stack(attention))

    def vectors(self, sentences: list[str]) -> torch.Tensor:
        """One vector per sentence, the mean of its tokens' last vectors: (B, D)."""
        reading = self.read(sentences)
        return mean_pool(reading.hidden[-1], reading.mask)


@functools.cache
def network() -> Network:
    """The pretrained network; `network().read(sentences)` returns a Reading."""
    return Network(pretrained.state_dict())


@functools.cache
def reading(*sentences: str) -> Reading:
    """The pretrained network's Reading of some sentences."""
    return network().read(list(sentences))


@contextlib.contextmanager
def other_setting(encoder, eps: float = EPS, activation=F.gelu):
    """A context in which the norms of an Encoder have this epsilon and its feed-forward networks this activation."""
    parts = [(block.feed_forward, "activation", activation) for block in encoder.blocks]
    parts += [(norm, "eps", eps) for block in encoder.blocks for norm in (block.norm1, block.norm2)]
    before = [getattr(part, name) for part, name, _ in parts]
    for part, name, value in parts:
        setattr(part, name, value)
    try:
        yield
    finally:
        for (part, name, _), value in zip(parts, before, strict=True):
            setattr(part, name, value)


def among_words(attention):
    """Attention weights without [CLS] and [SEP], normalized so that rows sum to 1: (..., T, T) -> (..., T-2, T-2)."""
    inner = attention[..., 1:-1, 1:-1]
    return inner / inner.sum(-1, keepdim=True)
