"""Other right answers to the exercises of lesson 13."""

import re

import numpy as np
import torch
from torch.nn import functional as F

from helpers.blocks import one_hot

PAIRS = [  # longer names first
    ("attention.self.query", "attention.W_q"),
    ("attention.self.key", "attention.W_k"),
    ("attention.self.value", "attention.W_v"),
    ("attention.output.dense", "attention.W_o"),
    ("attention.output.LayerNorm", "norm1"),
    ("intermediate.dense", "feed_forward.up"),
    ("output.dense", "feed_forward.down"),
    ("output.LayerNorm", "norm2"),
]


def renamed_by_replacing(state_dict):
    mine = {}
    for name, tensor in state_dict.items():
        new = name.replace("encoder.layer.", "blocks.")
        for theirs, ours in PAIRS:
            new = new.replace(theirs, ours)
        mine[new] = tensor  # embeddings and pooler keep their names
    return mine


def renamed_by_pattern(state_dict):
    pattern = re.compile(r"encoder\.layer\.(\d+)\.(.+)\.(weight|bias)$")
    found = ((pattern.match(name), tensor) for name, tensor in state_dict.items())
    return {f"blocks.{m[1]}.{dict(PAIRS)[m[2]]}.{m[3]}": tensor for m, tensor in found if m}


def renamed_copies(state_dict):
    """Copies in another order, so that the result shares no memory with the file."""
    return {name: tensor.clone() for name, tensor in reversed(renamed_by_pattern(state_dict).items())}


WORDS, POSITIONS, TYPES, GAMMA, BETA = (
    f"embeddings.{name}"
    for name in (
        "word_embeddings.weight position_embeddings.weight token_type_embeddings.weight LayerNorm.weight LayerNorm.bias"
    ).split()
)


def embedded_by_hand(ids, weights):
    x = weights[WORDS][ids] + weights[POSITIONS][: ids.size(1)].unsqueeze(0) + weights[TYPES][:1]
    centered = x - x.mean(-1, keepdim=True)
    variance = (centered * centered).mean(-1, keepdim=True)
    return weights[GAMMA] * centered / torch.sqrt(variance + 1e-12) + weights[BETA]


def embedded_by_products(ids, weights):
    table = weights[WORDS]
    x = one_hot(ids, len(table)).to(table.dtype) @ table + weights[POSITIONS][: ids.shape[1]]
    return F.layer_norm(x + weights[TYPES].select(0, 0), x.shape[-1:], weights[GAMMA], weights[BETA], 1e-12)


def embedded_by_modules(ids, weights):
    norm = torch.nn.LayerNorm(weights[GAMMA].shape[0], eps=1e-12, dtype=weights[GAMMA].dtype)
    x = weights[WORDS].index_select(0, ids.reshape(-1)).reshape(*ids.shape, -1)
    x = x + weights[POSITIONS].narrow(0, 0, ids.shape[1]) + weights[TYPES][0]
    return torch.func.functional_call(norm, {"weight": weights[GAMMA], "bias": weights[BETA]}, (x,))


def head_by_unravel(attention, query, key):
    table = attention[..., query, key].detach().numpy()
    layer, head = np.unravel_index(table.argmax(), table.shape)
    return int(layer), int(head), float(table[layer, head])


def head_by_nonzero(attention, query, key):
    table = attention.select(3, key).select(2, query)
    layer, head = (table == table.max()).nonzero()[0].tolist()
    return layer, head, table.max().item()


def head_by_python(attention, query, key):
    rows = attention[:, :, query, key].tolist()
    weight, layer, head = max((weight, i, j) for i, row in enumerate(rows) for j, weight in enumerate(row))
    return layer, head, weight


def pooled_by_einsum(x, mask):
    total = torch.einsum("btd,bt->bd", x, mask.to(x.dtype))
    return total / mask.sum(1, keepdim=True).clamp_min(1)


def pooled_with_where(x, mask):
    visible = torch.where(mask[..., None], x, 0.0)
    return visible.sum(dim=-2) / mask.sum(-1)[:, None].clamp(min=1e-9)


def pooled_by_filling(x, mask):
    return x.masked_fill(~mask.unsqueeze(-1), 0).sum(1) / torch.maximum(mask.sum(1), torch.ones(())).unsqueeze(-1).to(x)


def searched_by_library(query, keys, values, k):
    scores = F.cosine_similarity(keys, query.expand_as(keys), dim=-1, eps=1e-12)
    order = scores.argsort(descending=True)[:k]
    return [(values[int(i)], float(scores[i])) for i in order]


def searched_by_normalizing(query, keys, values, k):
    scores = (F.normalize(keys, dim=1) * F.normalize(query, dim=0)).sum(dim=1).tolist()
    pairs = sorted(zip(values, scores, strict=True), key=lambda pair: pair[1], reverse=True)
    return pairs[:k]


def searched_with_a_guard_on_each_length(query, keys, values, k):
    scores = keys @ query / ((keys.norm(dim=-1) + 1e-8) * (query.norm() + 1e-8))
    best = scores.argsort(descending=True)[:k]
    return [(values[i], scores[i].item()) for i in best]


def vectors_with_table(encode, ids, pad_id):
    mask = ids.ne(pad_id)
    both = mask[:, None, :, None] & mask[:, None, None, :]  # padding attends to nothing either
    x = encode(ids, mask=both)
    return x.masked_fill(~mask[..., None], 0).sum(1) / mask.sum(1, keepdim=True)


def vectors_one_by_one(encode, ids, pad_id):
    rows = []
    for row in ids:
        own = row[row != pad_id]
        rows.append(encode(own[None])[0].mean(dim=0))
    return torch.stack(rows)


def vectors_by_einsum(encode, ids, pad_id):
    real = ids != pad_id
    mask = real.unsqueeze(1).unsqueeze(1).expand(-1, 1, ids.shape[1], -1)
    x = encode(ids, mask)
    return torch.einsum("btd,bt->bd", x, real.to(x.dtype)) / real.sum(-1, keepdim=True).to(x.dtype)


VARIANTS = {
    "rename_weights": (renamed_by_replacing, renamed_by_pattern, renamed_copies),
    "bert_embeddings": (embedded_by_hand, embedded_by_products, embedded_by_modules),
    "strongest_head": (head_by_unravel, head_by_nonzero, head_by_python),
    "mean_pool": (pooled_by_einsum, pooled_with_where, pooled_by_filling),
    "search": (searched_by_library, searched_by_normalizing, searched_with_a_guard_on_each_length),
    "fixed_sentence_vectors": (vectors_with_table, vectors_one_by_one, vectors_by_einsum),
}
