# Made by `course build` from solutions/13_real_model/13_real_model.py; never edited here.
"""The finished blocks of lesson 13: A real network in your own blocks."""

from torch.nn import functional as F


def rename_weights(state_dict):
    """BERT's names to those of lesson 9's Encoder: "blocks.{i}.attention.W_q.weight" and so on, i
    from 0.

    state_dict: dict of str to tensor -> dict of str to tensor. Other entries than the blocks' may
    be left out or kept.
    """
    names = {
        "attention.self.query": "attention.W_q",
        "attention.self.key": "attention.W_k",
        "attention.self.value": "attention.W_v",
        "attention.output.dense": "attention.W_o",
        "attention.output.LayerNorm": "norm1",
        "intermediate.dense": "feed_forward.up",
        "output.dense": "feed_forward.down",
        "output.LayerNorm": "norm2",
    }
    mine = {}
    for name, tensor in state_dict.items():
        if name.startswith("encoder.layer."):
            _, _, i, *part, kind = name.split(".")
            mine[f"blocks.{i}.{names['.'.join(part)]}.{kind}"] = tensor
    return mine


def bert_embeddings(ids, weights):
    """What enters BERT's first block (Devlin et al. 2019): word + position + type 0, normalized
    with eps 1e-12.

    ids LongTensor (B, T); weights: dict of BERT's names to tensors, float32 or float64 ->
    (B, T, D), same dtype.
    """
    words = weights["embeddings.word_embeddings.weight"][ids]  # (B, T, D)
    positions = weights["embeddings.position_embeddings.weight"][: ids.shape[1]]  # (T, D)
    types = weights["embeddings.token_type_embeddings.weight"][0]  # (D,)
    x = words + positions + types  # (B, T, D)
    gamma, beta = weights["embeddings.LayerNorm.weight"], weights["embeddings.LayerNorm.bias"]  # (D,) each
    return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12)  # (B, T, D)


def strongest_head(attention, query, key):
    """The head with the largest weight from one position to another.

    attention (L, H, T, T), rows are queries; query, key: int -> (layer, head, weight): int, int,
    float, from 0.
    """
    table = attention[:, :, query, key]  # (L, H)
    layer, head = divmod(table.argmax().item(), table.shape[1])
    return layer, head, table[layer, head].item()


def mean_pool(x, mask):
    """The mean of each sentence's kept tokens.

    x (B, T, D), float32 or float64; mask bool (B, T), True = kept -> (B, D), same dtype; zeros
    where nothing is kept.
    """
    expanded = mask.unsqueeze(-1).to(x.dtype)  # (B, T, 1)
    counts = expanded.sum(dim=1).clamp(min=1)  # (B, 1)
    return (x * expanded).sum(dim=1) / counts  # (B, D)


def search(query, keys, values, k):
    """The k values whose keys have the largest cosine with the query.

    query (D,), keys (N, D), float32 or float64; values: list of N; k: int, 1 to N
    -> list of (value, score), best first; score a Python float, 0.0 for a key of zeros.
    """
    lengths = keys.norm(dim=-1) * query.norm()  # (N,)
    scores = keys @ query / lengths.masked_fill(lengths == 0, 1.0)  # (N,)
    best = scores.topk(k)
    return [(values[i], score) for i, score in zip(best.indices.tolist(), best.values.tolist(), strict=True)]


def fixed_sentence_vectors(encode, ids, pad_id):
    """Each sentence's vector, the same in every batch: the mean of its own tokens' last vectors.

    encode(ids (B, T), mask=None) -> (B, T, D), mask bool that broadcasts to (B, H, T, T); ids
    LongTensor (B, T), padded with pad_id (int) on the right -> (B, D).
    """
    mask = ids != pad_id  # (B, T)
    x = encode(ids, mask[:, None, None, :])  # (B, T, D)
    return mean_pool(x, mask)  # (B, D)
