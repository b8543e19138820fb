"""Right answers of lesson 3 in other styles: each must pass on every seed."""

import math

import torch
import torch.nn.functional as F


def _counts(ids, vocab_size):
    counts = torch.zeros(vocab_size, vocab_size)
    for a, b in zip(ids[:-1].tolist(), ids[1:].tolist(), strict=True):
        counts[a, b] += 1
    return counts


def _with_uniform_rows(counts):
    total = counts.sum(-1, keepdim=True)
    return torch.where(total > 0, counts / total.clamp(min=1), torch.tensor(1 / counts.shape[0]))


def hard_lookup_one_hot(query, keys, values):
    index = torch.einsum("nd,d->n", keys, query).argmax()
    return F.one_hot(index, len(keys)).to(values.dtype) @ values


def hard_lookup_max(query, keys, values):
    _, index = (keys * query).sum(-1).max(dim=0)
    return values.index_select(0, index.unsqueeze(0)).squeeze(0)


def hard_lookup_python(query, keys, values):
    matches = (keys @ query).tolist()
    return values[matches.index(max(matches))]


def hard_lookup_stable_sort(query, keys, values):
    order = torch.sort(torch.mv(keys, query), descending=True, stable=True).indices
    return values[order[0]]


def project_linear(x, W):
    return F.linear(x, W)


def project_einsum(x, W):
    return torch.einsum("...i,oi->...o", x, W)


def project_broadcast(x, W):
    return (x.unsqueeze(-2) * W).sum(-1)


def project_module(x, W):
    layer = torch.nn.Linear(W.shape[1], W.shape[0], bias=False)
    return torch.func.functional_call(layer, {"weight": W}, (x,))


def dots_mT(Q, K):
    return Q @ K.mT


def dots_einsum(Q, K):
    return torch.einsum("...qd,...kd->...qk", Q, K)


def dots_broadcast(Q, K):
    return (Q.unsqueeze(-2) * K.unsqueeze(-3)).sum(-1)


def dots_keys_first(Q, K):
    return (K @ Q.swapaxes(-1, -2)).swapaxes(-1, -2)


def weights_roll(max_len):
    return torch.eye(max_len).roll(-1, dims=0), torch.eye(max_len)


def weights_keys_shifted(max_len):
    return torch.eye(max_len), torch.eye(max_len).roll(1, dims=0)


def weights_circle(max_len):
    angle = 2 * math.pi * torch.arange(max_len) / max_len
    W_k = torch.stack((angle.cos(), angle.sin()))
    return W_k.roll(1, dims=1), W_k


def weights_random_directions(max_len):
    W_k = F.normalize(torch.randn(64, max_len, generator=torch.Generator().manual_seed(0)), dim=0)
    return torch.cat((torch.zeros(64, 1), W_k[:, :-1]), dim=1), W_k


def graph_circle(looks_at):
    T = len(looks_at)
    angle = torch.arange(T) * (2 * math.pi / T)
    keys = torch.stack((torch.cos(angle), torch.sin(angle)))
    return keys[:, looks_at], keys


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


def bigram_loop(ids, vocab_size):
    return _with_uniform_rows(_counts(ids, vocab_size))


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


def edges_full_key(weights, tokens, threshold):
    strong = [(-w, i, j) for i, row in enumerate(weights.tolist()) for j, w in enumerate(row) if w >= threshold]
    return [(tokens[i], tokens[j], -w) for w, i, j in sorted(strong)]


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


def self_scores_mT(x, W_q, W_k):
    return F.linear(x, W_q) @ F.linear(x, W_k).mT


def self_scores_bilinear(x, W_q, W_k):
    return x @ (W_q.T @ W_k) @ x.transpose(-1, -2)


def self_scores_einsum(x, W_q, W_k):
    return torch.einsum("...id,ed,ef,...jf->...ij", x, W_q, W_k, x)


def self_scores_columns(x, W_q, W_k):
    turned = x.transpose(-2, -1)  # (..., D, T)
    return (W_q @ turned).transpose(-2, -1) @ (W_k @ turned)


VARIANTS = {
    "hard_lookup": (hard_lookup_one_hot, hard_lookup_max, hard_lookup_python, hard_lookup_stable_sort),
    "project": (project_linear, project_einsum, project_broadcast, project_module),
    "attention_scores": (dots_mT, dots_einsum, dots_broadcast, dots_keys_first),
    "previous_token_weights": (weights_roll, weights_keys_shifted, weights_circle, weights_random_directions),
    "bigram_probabilities": (bigram_loop, bigram_index_put, bigram_one_hot, bigram_row_by_row),
    "attention_edges": (edges_full_key, edges_numpy, edges_in_the_tensors_dtype, edges_reversed_sort),
    "fixed_self_scores": (self_scores_mT, self_scores_bilinear, self_scores_einsum, self_scores_columns),
    "two_channel_graph": (graph_circle, graph_parabola, graph_half_circle, graph_from_complex_roots),
}
