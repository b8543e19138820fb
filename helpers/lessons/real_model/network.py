"""The real network of lesson 13 from torch's own layers: what its figures and explorers show, whatever is answered.

An answer that calls anything from here is refused, like a block.
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

LAYERS = {  # a layer of nn.TransformerEncoderLayer: BERT's name of the same
    "self_attn.out_proj": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "linear1": "intermediate.dense",
    "linear2": "output.dense",
    "norm2": "output.LayerNorm",
}


@dataclass(frozen=True)
class Reading:
    """What the network makes of a batch of sentences, with [CLS] and [SEP] around each.

    tokens: the pieces of each; mask (B, T); hidden: 7 times (B, T, D), the embeddings first; attention (L, B, H, T, T).
    """

    tokens: list[list[str]]
    mask: torch.Tensor
    hidden: list[torch.Tensor]
    attention: torch.Tensor


class Network(nn.Module):
    """BERT's encoder as nn.TransformerEncoderLayers, with the numbers of `state` (BERT's names)."""

    def __init__(self, state: dict, heads: int = pretrained.HEADS):
        super().__init__()
        self.state = state
        inner, width = state["encoder.layer.0.intermediate.dense.weight"].shape
        depth = 1 + max(int(name.split(".")[2]) for name in state if name.startswith("encoder.layer."))
        look = {"dropout": 0.0, "activation": "gelu", "layer_norm_eps": EPS, "batch_first": True}
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, heads, inner, **look) for _ in range(depth))
        for i, layer in enumerate(self.layers):
            at, numbers = f"encoder.layer.{i}.", {}
            for kind in ("weight", "bias"):
                rows = [state[f"{at}attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
                numbers[f"self_attn.in_proj_{kind}"] = torch.cat(rows)
                numbers |= {f"{ours}.{kind}": state[f"{at}{theirs}.{kind}"] for ours, theirs in LAYERS.items()}
            layer.load_state_dict(numbers)
        self.eval().requires_grad_(False)

    def embed(self, ids):
        """(B, T) -> (B, T, D)"""
        return bert_embeddings(ids, self.state)

    def up(self, x, layers=slice(None), padding=None):
        """Some of the layers, one after the other: (B, T, D) -> (B, T, D). padding (B, T): True where nothing is."""
        for layer in list(self.layers)[layers]:
            x = layer(x, src_key_padding_mask=padding)
        return x

    def look(self, i, x, padding=None):
        """The weights of layer i on its input x: (B, T, D) -> (B, H, T, T)."""
        attention = self.layers[i].self_attn
        return attention(x, x, x, key_padding_mask=padding, need_weights=True, average_attn_weights=False)[1]

    def read(self, sentences: list[str]) -> Reading:
        tokens = [pretrained.pieces(sentence, wordpiece) for sentence in sentences]
        ids, mask = pretrained.batch(sentences, wordpiece)
        padding = None if mask.all() else ~mask
        with torch.no_grad():
            hidden, looks = [self.embed(ids)], []
            for i in range(len(self.layers)):
                looks.append(self.look(i, hidden[-1], padding))
                hidden.append(self.up(hidden[-1], slice(i, i + 1), padding))
        return Reading(tokens, mask, hidden, torch.stack(looks))

    def vectors(self, sentences: list[str]) -> torch.Tensor:
        """One vector a sentence, the mean of its tokens' last vectors: (B, D)."""
        reading = self.read(sentences)
        return mean_pool(reading.hidden[-1], reading.mask)


@functools.cache
def network() -> Network:
    """The finished network; `network().read(sentences)` gives a Reading."""
    return Network(pretrained.numbers())


@functools.cache
def reading(*sentences: str) -> Reading:
    """The finished network's Reading of some sentences."""
    return network().read(list(sentences))


@contextlib.contextmanager
def other_setting(encoder, eps: float = EPS, activation=F.gelu):
    """Inside, the norms of an Encoder have this epsilon and its feed-forward networks this activation."""
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
    """Weights among the words alone, without [CLS] and [SEP]; rows sum to 1. (..., T, T) -> (..., T-2, T-2)"""
    inner = attention[..., 1:-1, 1:-1]
    return inner / inner.sum(-1, keepdim=True)
