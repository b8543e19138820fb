"""The real network of lesson 13 from torch's own layers: what its figures and explorers show, whatever is answered.

An answer that calls anything from here is refused, like a block.
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from helpers import pretrained
from helpers.lessons.real_model.given import EPS, bert_embeddings, mean_pool


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
            fused = ("query", "key", "value")
            for kind in ("weight", "bias"):
                at = f"encoder.layer.{i}."
                rows = [state[f"{at}attention.self.{part}.{kind}"] for part in fused]
                getattr(layer.self_attn, f"in_proj_{kind}").data = torch.cat(rows)
                pairs = (
                    (layer.self_attn.out_proj, "attention.output.dense"),
                    (layer.norm1, "attention.output.LayerNorm"),
                    (layer.linear1, "intermediate.dense"),
                    (layer.linear2, "output.dense"),
                    (layer.norm2, "output.LayerNorm"),
                )
                for part, name in pairs:
                    getattr(part, kind).data = state[f"{at}{name}.{kind}"].clone()
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
        tokens = [pretrained.pieces(sentence, cut) for sentence in sentences]
        ids, mask = pretrained.batch(sentences, cut)
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
def silenced(encoder, *heads: tuple[int, int]):
    """Inside, what these heads (layer, head) of an Encoder hand on is 0."""

    def without(head, number):
        def change(_module, given):
            split = given[0].unflatten(-1, (number, -1)).clone()  # (B, T, H, d_v)
            split[..., head, :] = 0
            return (split.flatten(-2),)

        return change

    hooks = []
    for layer, head in heads:
        part = encoder.blocks[layer].attention
        hooks.append(part.W_o.register_forward_pre_hook(without(head, part.num_heads)))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@contextlib.contextmanager
def other_setting(encoder, eps: float = EPS, activation=F.gelu):
    """Inside, the norms of an Encoder have this epsilon and its feed-forward networks this activation."""
    norms = [norm for block in encoder.blocks for norm in (block.norm1, block.norm2)]
    feed_forwards = [block.feed_forward for block in encoder.blocks]
    before = [norm.eps for norm in norms], [part.activation for part in feed_forwards]

    def put(epsilons, activations):
        for norm, own in zip(norms, epsilons, strict=True):
            norm.eps = own
        for part, own in zip(feed_forwards, activations, strict=True):
            part.activation = own

    put([eps] * len(norms), [activation] * len(feed_forwards))
    try:
        yield
    finally:
        put(*before)


def among_words(attention):
    """Weights among the words alone, without [CLS] and [SEP]; rows sum to 1. (..., T, T) -> (..., T-2, T-2)"""
    inner = attention[..., 1:-1, 1:-1]
    return inner / inner.sum(-1, keepdim=True)


def cut(word: str, vocab) -> list[str]:
    """Greedy longest match first, from the right end of each try."""
    found, rest = [], word
    while rest:
        mark = "##" if found else ""
        length = next((n for n in range(len(rest), 0, -1) if mark + rest[:n] in vocab), 0)
        if not length:
            return ["[UNK]"]
        found, rest = [*found, mark + rest[:length]], rest[length:]
    return found


# ---------------------------------------------------------------- GPT-2's layout


def made_up_gpt2(width: int = 12, layers: int = 2, vocab_size: int = 20, max_len: int = 8) -> dict:
    """Random numbers under the names and in the layout of GPT-2's published files (those of `transformers`)."""
    generator = torch.Generator().manual_seed(2)

    def random(*shape):
        return torch.randn(*shape, generator=generator) * (0.3 if len(shape) == 1 else shape[0] ** -0.5)

    state = {"wte.weight": random(vocab_size, width), "wpe.weight": random(max_len, width)}
    for i in range(layers):
        for norm in ("ln_1", "ln_2"):
            state |= {f"h.{i}.{norm}.weight": 1 + random(width), f"h.{i}.{norm}.bias": random(width)}
        state[f"h.{i}.attn.bias"] = torch.ones(1, 1, max_len, max_len).tril()  # the causal mask
        sizes = {"attn.c_attn": (width, 3 * width), "attn.c_proj": (width, width)}
        sizes |= {"mlp.c_fc": (width, 4 * width), "mlp.c_proj": (4 * width, width)}
        for part, (inside, out) in sizes.items():
            state |= {f"h.{i}.{part}.weight": random(inside, out), f"h.{i}.{part}.bias": random(out)}
    return state | {"ln_f.weight": 1 + random(width), "ln_f.bias": random(width)}


def gpt2_blocks(x, state: dict, heads: int = 3):
    """GPT-2's blocks by the layout of its file, x @ W + b: (B, T, D) -> (B, T, D). What a loader is compared with."""
    depth = 1 + max(int(name.split(".")[1]) for name in state if name.startswith("h."))
    for i in range(depth):

        def linear(x, part, at=f"h.{i}."):
            return x @ state[f"{at}{part}.weight"] + state[f"{at}{part}.bias"]

        def norm(x, part, at=f"h.{i}."):
            return F.layer_norm(x, x.shape[-1:], state[f"{at}{part}.weight"], state[f"{at}{part}.bias"])

        q, k, v = (
            y.unflatten(-1, (heads, -1)).transpose(1, 2) for y in linear(norm(x, "ln_1"), "attn.c_attn").chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2)
        x = x + linear(mixed, "attn.c_proj")
        x = x + linear(F.gelu(linear(norm(x, "ln_2"), "mlp.c_fc"), approximate="tanh"), "mlp.c_proj")
    return x
