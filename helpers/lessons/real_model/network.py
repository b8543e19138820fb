"""The real network of lesson 13 from torch's own layers: what its figures and explorers show, whatever is answered.

GIVEN[name] takes and returns what lesson 13's exercise of that name does; `or_given` uses it. An answer that calls
anything from here is refused, like a block.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from helpers import pretrained

EPS = 1e-12
PARTS = {  # a name of lesson 9's block: BERT's name of the same layer
    "attention.W_q": "attention.self.query",
    "attention.W_k": "attention.self.key",
    "attention.W_v": "attention.self.value",
    "attention.W_o": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "feed_forward.up": "intermediate.dense",
    "feed_forward.down": "output.dense",
    "norm2": "output.LayerNorm",
}


@dataclass(frozen=True)
class Reading:
    """What the network makes of a batch of sentences, with [CLS] and [SEP] around each.

    tokens: the pieces of each; kept (B, T); hidden: 7 times (B, T, D), the embeddings first; attention (L, B, H, T, T).
    """

    tokens: list[list[str]]
    kept: torch.Tensor
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
        ids, kept = pretrained.batch(sentences, cut)
        padding = None if kept.all() else ~kept
        with torch.no_grad():
            hidden, looks = [self.embed(ids)], []
            for i in range(len(self.layers)):
                looks.append(self.look(i, hidden[-1], padding))
                hidden.append(self.up(hidden[-1], slice(i, i + 1), padding))
        return Reading(tokens, kept, hidden, torch.stack(looks))

    def vectors(self, sentences: list[str]) -> torch.Tensor:
        """One vector a sentence, the mean of its tokens' last vectors: (B, D)."""
        reading = self.read(sentences)
        return mean_pool(reading.hidden[-1], reading.kept)


@functools.cache
def reading(*sentences: str) -> Reading:
    """The finished network's Reading of some sentences."""
    return pretrained.network().read(list(sentences))


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


def made_up_gpt2(width: int = 12, layers: int = 2, vocab_size: int = 20, places: int = 8) -> dict:
    """Random numbers under the names and in the layout of GPT-2's published files (those of `transformers`)."""
    generator = torch.Generator().manual_seed(2)

    def random(*shape):
        return torch.randn(*shape, generator=generator) * (0.3 if len(shape) == 1 else shape[0] ** -0.5)

    state = {"wte.weight": random(vocab_size, width), "wpe.weight": random(places, width)}
    for i in range(layers):
        for norm in ("ln_1", "ln_2"):
            state |= {f"h.{i}.{norm}.weight": 1 + random(width), f"h.{i}.{norm}.bias": random(width)}
        state[f"h.{i}.attn.bias"] = torch.ones(1, 1, places, places).tril()  # the causal mask
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


# ---------------------------------------------------------------- what the exercises do, of library calls


def rename_weights(state_dict):
    mine = {}
    for name, tensor in state_dict.items():
        if name.startswith("encoder.layer."):
            number, _, rest = name.removeprefix("encoder.layer.").partition(".")
            part, _, kind = rest.rpartition(".")
            ours = next((ours for ours, theirs in PARTS.items() if theirs == part), None)
            if ours is not None:
                mine[f"blocks.{number}.{ours}.{kind}"] = tensor
    return mine


def bert_embeddings(ids, weights):
    words, places, types = (
        weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")
    )
    x = F.embedding(ids, words) + places.narrow(0, 0, ids.shape[-1]) + types.narrow(0, 0, 1)
    norm = "embeddings.LayerNorm"
    return F.layer_norm(x, x.shape[-1:], weights[f"{norm}.weight"], weights[f"{norm}.bias"], EPS)


def mean_pool(x, mask):
    counts = mask.sum(dim=-1, keepdim=True).clamp_min(1)
    return torch.einsum("btd,bt->bd", x, mask.to(x.dtype)) / counts


def find_head(attention, query, key):
    table = attention[:, :, query, key]
    layer, head = divmod(int(table.argmax()), table.shape[1])
    return layer, head, float(table[layer, head])


def search(query, keys, values, k):
    scores = F.cosine_similarity(keys, query[None], dim=-1, eps=1e-30)
    return [(values[i], scores[i].item()) for i in scores.argsort(descending=True)[:k].tolist()]


def fixed_sentence_vectors(encode, ids, pad_id):
    kept = ids.ne(pad_id)
    return mean_pool(encode(ids, kept[:, None, None]), kept)


def rename_gpt2(state_dict):
    mine = {}
    for name, tensor in state_dict.items():
        parts = name.removeprefix("transformer.").split(".")
        if parts[0] != "h" or parts[-1] not in ("weight", "bias"):
            continue
        part, kind = ".".join(parts[2:-1]), parts[-1]
        at = f"blocks.{parts[1]}."
        if part in ("ln_1", "ln_2"):
            mine[f"{at}norm{part[-1]}.{kind}"] = tensor
        elif part == "attn.c_attn":
            for ours, piece in zip("qkv", tensor.tensor_split(3, dim=-1), strict=True):
                mine[f"{at}attention.W_{ours}.{kind}"] = piece.movedim(-1, 0)
        elif part in GPT2_LAYERS:
            mine[f"{at}{GPT2_LAYERS[part]}.{kind}"] = tensor.movedim(-1, 0)
    return mine


GPT2_LAYERS = {"attn.c_proj": "attention.W_o", "mlp.c_fc": "feed_forward.up", "mlp.c_proj": "feed_forward.down"}
FUNCTIONS = (rename_weights, bert_embeddings, mean_pool, find_head, search, fixed_sentence_vectors, rename_gpt2)
GIVEN = {function.__name__: function for function in FUNCTIONS}
