# Made by `course build` from solutions/03_query_key/03_query_key.py; never edited here.
"""The finished blocks of lesson 03: Query and key: which token attends to which."""

import torch


def hard_lookup(query, keys, values):
    """Hard lookup: the value whose key has the largest dot product with the query, the first one on
    ties.

    query (D,), keys (N, D), values (N, E), float32 or float64 -> (E,), dtype of values.
    The gradient reaches values.
    """
    matches = keys @ query  # (N,)
    return values[matches.argmax()]  # (E,)


def project(x, W):
    """A linear map of the last dimension, without bias: y = x Wᵀ.

    x (..., d_in), W (d_out, d_in), float32 or float64 -> (..., d_out), same dtype.
    """
    return x @ W.T  # (..., d_out)


def attention_scores(Q, K):
    """Every query against every key, QKᵀ: eq. 1 of Vaswani et al. (2017) before scale and softmax.

    Q (..., T_q, d_k), K (..., T_k, d_k), float32 or float64 -> (..., T_q, T_k), same dtype.
    """
    return Q @ K.transpose(-2, -1)  # (..., T_q, T_k)


def previous_token_weights(max_len):
    """Weights of a head that attends to the previous token when x = torch.eye(max_len).

    max_len: int >= 2 -> (W_q, W_k), float32, each (d, max_len) for any d. Query 0 is free.
    """
    W_k = torch.eye(max_len)  # key j is the one-hot vector of j
    W_q = torch.zeros(max_len, max_len)
    steps = torch.arange(1, max_len)
    W_q[steps - 1, steps] = 1.0  # column t, the query of token t, is the one-hot vector of t - 1
    return W_q, W_k


def bigram_probabilities(ids, vocab_size):
    """The Markov chain P(next | current) estimated from the neighbors in ids, without smoothing.

    ids LongTensor (T,), T >= 1; vocab_size V -> (V, V) float32.
    A token that is never followed by anything has a uniform row.
    """
    pairs = ids[:-1] * vocab_size + ids[1:]  # one number for each pair, (T - 1,)
    counts = torch.bincount(pairs, minlength=vocab_size**2).view(vocab_size, vocab_size)
    followed = counts.sum(dim=1, keepdim=True)  # (V, 1)
    return torch.where(followed > 0, counts / followed, 1 / vocab_size)


def two_channel_graph(looks_at):
    """Weights of a head with two channels in which, for x = torch.eye(T), token t attends most to
    token looks_at[t].

    looks_at LongTensor (T,), 2 <= T <= 50 -> (W_q, W_k), float32, each (2, T), finite.
    """
    angle = 2 * torch.pi * torch.arange(len(looks_at), device=looks_at.device) / len(looks_at)  # (T,)
    W_k = torch.stack((angle.cos(), angle.sin()))  # (2, T): keys on a circle
    return W_k[:, looks_at], W_k


def attention_edges(weights, tokens, threshold):
    """The edges of the attention graph whose weight is at least threshold, heaviest first.

    weights (T, T) float32 or float64, tokens: list of T strings, threshold: float
    -> list of (query token, key token, weight as a Python float).
    Ties go by query position, then by key position.
    """
    edges = []
    for i, row in enumerate(weights.tolist()):
        edges += [(tokens[i], tokens[j], weight) for j, weight in enumerate(row)]
    edges = [edge for edge in edges if edge[2] >= threshold]
    return sorted(edges, key=lambda edge: -edge[2])


def fixed_self_scores(x, W_q, W_k):
    """Scores of every token of x against every token of x, unscaled.

    x (..., T, D), W_q and W_k (d_k, D), float32 or float64 -> (..., T, T), same dtype; rows are
    queries.
    """
    Q = x @ W_q.T  # (..., T, d_k)
    K = x @ W_k.T  # (..., T, d_k)
    return Q @ K.transpose(-2, -1)  # (..., T, T)
