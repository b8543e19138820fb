"""Other right answers to the exercises of lesson 3."""

import math

import torch
import torch.nn.functional as F


def hard_lookup_one_hot(query, keys, values):
    index = torch.einsum("nd,d->n", keys, query).argmax()
    return F.one_hot(index, len(keys)).to(values.dtype) @ values


def hard_lookup_python(query, keys, values):
    matches = (keys @ query).tolist()
    return values[matches.index(max(matches))]


def hard_lookup_stable_sort(query, keys, values):
    order = torch.sort(torch.mv(keys, query), descending=True, stable=True).indices
    return values[order[0]]


def project_module(x, W):
    layer = torch.nn.Linear(W.shape[1], W.shape[0], bias=False)
    return torch.func.functional_call(layer, {"weight": W}, (x,))


def weights_circle(max_len):
    angle = 2 * math.pi * torch.arange(max_len) / max_len
    W_k = torch.stack((angle.cos(), angle.sin()))
    return W_k.roll(1, dims=1), W_k


def weights_random_directions(max_len):
    W_k = F.normalize(torch.randn(64, max_len, generator=torch.Generator().manual_seed(0)), dim=0)
    return torch.cat((torch.zeros(64, 1), W_k[:, :-1]), dim=1), W_k


def graph_parabola(looks_at):
    t = torch.arange(len(looks_at)).float()
    target = looks_at.float()
    return torch.stack((target, torch.ones_like(target))), torch.stack((t, -t * t / 2))


def graph_half_circle(looks_at):
    T = len(looks_at)
    angle = torch.linspace(0, math.pi, T)
    W_k = torch.stack((angle.sin(), angle.cos()))
    return torch.nn.Parameter(3 * W_k.index_select(1, looks_at)), torch.nn.Parameter(W_k)


def graph_from_complex_roots(looks_at):
    T = len(looks_at)
    roots = torch.polar(torch.ones(T), torch.arange(T) / T * 2 * math.pi)
    W_k = torch.view_as_real(roots).T.contiguous()
    return (W_k @ torch.nn.functional.one_hot(looks_at, T).float().T), W_k


def bigram_index_put(ids, vocab_size):
    counts = torch.zeros(vocab_size, vocab_size)
    counts.index_put_((ids[:-1], ids[1:]), torch.ones(len(ids) - 1), accumulate=True)
    total = counts.sum(1, keepdim=True)
    counts[total.squeeze(1) == 0] = 1.0
    return counts / counts.sum(1, keepdim=True)


def bigram_one_hot(ids, vocab_size):
    now, then = F.one_hot(ids[:-1], vocab_size).float(), F.one_hot(ids[1:], vocab_size).float()
    counts = now.T @ then
    return torch.nan_to_num(counts / counts.sum(-1, keepdim=True), nan=1 / vocab_size)


def bigram_row_by_row(ids, vocab_size):
    rows = []
    for token in range(vocab_size):
        followers = ids[1:][ids[:-1] == token]
        row = torch.bincount(followers, minlength=vocab_size).double()
        rows.append(row / row.sum() if len(followers) else torch.full_like(row, 1 / vocab_size))
    return torch.stack(rows).float()


def edges_numpy(weights, tokens, threshold):
    table = weights.detach().double().numpy()
    pairs = [(int(i), int(j)) for i, j in zip(*(table >= threshold).nonzero(), strict=True)]
    pairs.sort(key=lambda pair: (-table[pair], pair))
    return [(tokens[i], tokens[j], float(table[i, j])) for i, j in pairs]


def edges_in_the_tensors_dtype(weights, tokens, threshold):
    found = [(tokens[i], tokens[j], weights[i, j].item()) for i, j in (weights >= threshold).nonzero().tolist()]
    return sorted(found, key=lambda edge: -edge[2])


def edges_reversed_sort(weights, tokens, threshold):
    n = len(tokens)
    edges = [(tokens[p // n], tokens[p % n], float(w)) for p, w in enumerate(weights.flatten())]
    return sorted((edge for edge in edges if edge[2] >= threshold), key=lambda edge: edge[2], reverse=True)


def self_scores_columns(x, W_q, W_k):
    turned = x.transpose(-2, -1)  # (..., D, T)
    return (W_q @ turned).transpose(-2, -1) @ (W_k @ turned)


VARIANTS = {
    "hard_lookup": (hard_lookup_one_hot, hard_lookup_python, hard_lookup_stable_sort),
    "project": (lambda x, W: F.linear(x, W), lambda x, W: (x.unsqueeze(-2) * W).sum(-1), project_module),
    "attention_scores": (
        lambda Q, K: Q @ K.mT,
        lambda Q, K: (Q.unsqueeze(-2) * K.unsqueeze(-3)).sum(-1),
        lambda Q, K: (K @ Q.swapaxes(-1, -2)).swapaxes(-1, -2),
    ),
    "previous_token_weights": (
        lambda max_len: (torch.eye(max_len), torch.eye(max_len).roll(1, dims=0)),
        weights_circle,
        weights_random_directions,
    ),
    "bigram_probabilities": (bigram_index_put, bigram_one_hot, bigram_row_by_row),
    "attention_edges": (edges_numpy, edges_in_the_tensors_dtype, edges_reversed_sort),
    "fixed_self_scores": (
        lambda x, W_q, W_k: x @ (W_q.T @ W_k) @ x.transpose(-1, -2),
        lambda x, W_q, W_k: torch.einsum("...id,ed,ef,...jf->...ij", x, W_q, W_k, x),
        self_scores_columns,
    ),
    "two_channel_graph": (graph_parabola, graph_half_circle, graph_from_complex_roots),
}
