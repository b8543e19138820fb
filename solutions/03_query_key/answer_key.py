"""Cases, known mistakes and other correct forms of lesson 3's exercises."""

import math
from collections import Counter

import torch
import torch.nn.functional as F

from helpers.checking.vocabulary import DTYPE, GRADIENT, VALUES, Case, Exercise, Mistake, Quiz, tensor_cases

# ---------------------------------------------------------------- select


def _search(draw, dtype=torch.float32):
    """Seven keys of width 5 among which dot, cosine, distance, length and |dot| each have another winner."""
    query = draw.normal(5)
    query = query / query.norm()
    other = draw.normal(5)
    other = other - (other @ query) * query
    other = other / other.norm()
    keys = torch.stack(
        [
            2.0 * query + 2.0 * other,  # largest dot product
            0.3 * query,  # largest cosine
            0.9 * query + 0.2 * other,  # nearest
            5.0 * other,  # longest
            -4.0 * query,  # largest |dot|, smallest dot
            -0.5 * query - other,
            0.1 * query - 0.7 * other,
        ]
    )
    return query.to(dtype), keys[draw.permutation(7)].to(dtype), draw.normal(7, 3, dtype=dtype)


def _opposed(draw):
    """Every dot product is negative, and the largest one is not the first."""
    query = draw.normal(4)
    query = query / query.norm()
    sizes = torch.tensor([-3.0, -2.0, -0.5, -4.0, -1.0])
    return query, sizes[:, None] * query, draw.normal(5, 3)


def cases_select(draw):
    whole = torch.tensor([[1.0, 0.0], [2.0, 1.0], [0.0, 5.0], [3.0, -1.0], [1.0, 3.0]])  # with (2, 1): 2 5 5 5 5
    ties = torch.tensor([2.0, 1.0]), whole, draw.normal(5, 3)
    last_but_one = torch.tensor([1.0, 2.0, -1.0]), torch.tensor([[0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    wide = draw.normal(6), draw.normal(9, 6), draw.normal(9, 4)
    return [
        Case(_search(draw)),
        Case(wide),
        Case(_search(draw, torch.float64), part=DTYPE),
        Case(_search(draw, torch.float64), part=GRADIENT, gradient=True, no_gradient=(0, 1)),
        Case(ties, part="first on ties"),
        Case((*last_but_one, draw.normal(3, 4)), part="first on ties"),
        Case(_opposed(draw), part="all matches negative"),
        Case((draw.normal(3), draw.normal(1, 3), draw.normal(1, 2)), part="one key"),
        Case((draw.normal(3), draw.normal(4, 3), draw.normal(4, 1)), part="values of width 1"),
        Case((draw.normal(1), draw.normal(4, 1), draw.normal(4, 3)), part="keys of width 1"),
    ]


def select_by_cosine(query, keys, values):
    return values[F.cosine_similarity(query[None], keys, dim=-1).argmax()]


def select_nearest(query, keys, values):
    return values[(keys - query).norm(dim=-1).argmin()]


def select_soft(query, keys, values):
    return torch.softmax(keys @ query, dim=0) @ values


def select_last_on_ties(query, keys, values):
    matches = keys @ query
    return values[len(matches) - 1 - matches.flip(0).argmax()]


def select_from_zero(query, keys, values):
    best, best_match = 0, 0.0
    for i, key in enumerate(keys):
        if key @ query > best_match:
            best, best_match = i, key @ query
    return values[best]


def select_absolute(query, keys, values):
    return values[(keys @ query).abs().argmax()]


def select_smallest(query, keys, values):
    return values[(keys @ query).argmin()]


def select_longest(query, keys, values):
    return values[keys.norm(dim=-1).argmax()]


def select_key(query, keys, values):
    return keys[(keys @ query).argmax()]


def select_index(query, keys, values):
    return (keys @ query).argmax()


def select_squeezed(query, keys, values):
    return values[(keys @ query).argmax()].squeeze()


def select_kept(query, keys, values):
    return values[(keys @ query).argmax(dim=0, keepdim=True)]


def select_all_ties(query, keys, values):
    matches = keys @ query
    return (matches == matches.max()).to(values.dtype) @ values


def select_detached(query, keys, values):
    with torch.no_grad():
        return values[(keys @ query).argmax()].clone()


def select_loop(query, keys, values):
    best = 0
    matches = [torch.dot(key, query).item() for key in keys]
    for i, match in enumerate(matches):
        if match > matches[best]:
            best = i
    return values[best]


def select_one_hot(query, keys, values):
    place = torch.einsum("nd,d->n", keys, query).argmax()
    return F.one_hot(place, len(keys)).to(values.dtype) @ values


def select_max(query, keys, values):
    _, place = (keys * query).sum(-1).max(dim=0)
    return values.index_select(0, place.unsqueeze(0)).squeeze(0)


def select_python(query, keys, values):
    matches = (keys @ query).tolist()
    return values[matches.index(max(matches))]


def select_stable_sort(query, keys, values):
    order = torch.sort(torch.mv(keys, query), descending=True, stable=True).indices
    return values[order[0]]


# ---------------------------------------------------------------- project


def cases_project(draw):
    def square(dtype, *lead):
        return draw.normal(*lead, 4, dtype=dtype), draw.normal(4, 4, dtype=dtype)

    def wide(dtype, *lead):
        return draw.normal(*lead, 5, 4, dtype=dtype), draw.normal(6, 4, dtype=dtype)

    return [
        Case(square(torch.float32, 5)),
        *tensor_cases(wide, leads=((), (3,), (2, 3))),
        Case(square(torch.float32), part="one token, shape (d_in,)"),
        Case((draw.normal(4), draw.normal(3, 4)), part="one token, shape (d_in,)"),
        Case((draw.normal(5, 1), draw.normal(1, 1)), part="width 1"),
    ]


def project_not_transposed(x, W):
    return x @ W


def project_reshaped(x, W):
    return x @ W.reshape(W.shape[1], W.shape[0])


def project_columns(x, W):
    return W @ x.transpose(-2, -1)


def project_cosine(x, W):
    return F.normalize(x, dim=-1) @ F.normalize(W, dim=-1).T


def project_scaled(x, W):
    return x @ W.T / W.shape[-1] ** 0.5


def project_linear(x, W):
    return F.linear(x, W)


def project_einsum(x, W):
    return torch.einsum("...i,oi->...o", x, W)


def project_broadcast(x, W):
    return (x.unsqueeze(-2) * W).sum(-1)


def project_row_by_row(x, W):
    return torch.stack([(x * row).sum(-1) for row in W], dim=-1)


def project_w_times_x(x, W):
    return (W @ x.unsqueeze(-1)).squeeze(-1)


def project_module(x, W):
    layer = torch.nn.Linear(W.shape[1], W.shape[0], bias=False)
    return torch.func.functional_call(layer, {"weight": W}, (x,))


# ---------------------------------------------------------------- scores_for_one


def cases_scores_for_one(draw):
    def square(dtype):
        return draw.normal(4, dtype=dtype), draw.normal(4, 4, dtype=dtype)

    def make(dtype, *lead):
        return draw.normal(*lead, 6, dtype=dtype), draw.normal(*lead, 5, 6, dtype=dtype)

    return [
        Case(square(torch.float32)),
        *tensor_cases(make, leads=((),)),
        Case((draw.normal(3), draw.normal(1, 3)), part="one key"),
        Case((draw.normal(1), draw.normal(5, 1)), part="d_k = 1"),
    ]


def one_cosine(q, K):
    return F.cosine_similarity(q[None], K, dim=-1)


def one_scaled(q, K):
    return K @ q / q.shape[-1] ** 0.5


def one_mean(q, K):
    return (K * q).mean(-1)


def one_softmax(q, K):
    return torch.softmax(K @ q, dim=-1)


def one_not_transposed(q, K):
    return q @ K


def one_products(q, K):
    return K * q


def one_squeezed(q, K):
    return (K @ q).squeeze()


def one_kept_row(q, K):
    return q[None] @ K.T


def one_kept_column(q, K):
    return K @ q[:, None]


def one_distance(q, K):
    return -((K - q) ** 2).sum(-1)


def one_loop(q, K):
    return torch.stack([q.dot(k) for k in K])


def one_turned(q, K):
    return q @ K.T


def one_einsum(q, K):
    return torch.einsum("d,td->t", q, K)


def one_broadcast(q, K):
    return (q * K).sum(dim=-1)


def one_mv(q, K):
    return torch.mv(K, q)


# ---------------------------------------------------------------- dot_scores


def cases_dot_scores(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 5, 4, dtype=dtype), draw.normal(*lead, 7, 4, dtype=dtype)

    return [
        *tensor_cases(make, leads=((), (3,), (2, 3))),
        Case((draw.normal(3, 6), draw.normal(3, 6)), part="as many queries as keys"),
        Case((draw.normal(4, 4, 4), draw.normal(4, 4, 4)), part="as many queries as keys"),
        Case((draw.normal(1, 4), draw.normal(6, 4)), part="one query"),
        Case((draw.normal(3, 1), draw.normal(2, 1)), part="d_k = 1"),
    ]


def dots_swapped(Q, K):
    return K @ Q.transpose(-2, -1)


def dots_reshaped(Q, K):
    return Q @ K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])


def dots_first_axes(Q, K):
    return Q @ K.transpose(0, 1)


def dots_all_axes(Q, K):
    return Q @ K.permute(*range(K.dim() - 1, -1, -1))


def dots_batches_only(Q, K):
    return Q @ K.transpose(1, 2)


def dots_scaled(Q, K):
    return Q @ K.transpose(-2, -1) / K.shape[-1] ** 0.5


def dots_divided(Q, K):
    return Q @ K.transpose(-2, -1) / K.shape[-1]


def dots_cosine(Q, K):
    return F.normalize(Q, dim=-1) @ F.normalize(K, dim=-1).transpose(-2, -1)


def dots_softmax(Q, K):
    return torch.softmax(Q @ K.transpose(-2, -1), dim=-1)


def dots_distance(Q, K):
    return -(torch.cdist(Q, K) ** 2)


def dots_squeezed(Q, K):
    return (Q @ K.transpose(-2, -1)).squeeze()


def dots_mT(Q, K):
    return Q @ K.mT


def dots_einsum(Q, K):
    return torch.einsum("...qd,...kd->...qk", Q, K)


def dots_broadcast(Q, K):
    return (Q.unsqueeze(-2) * K.unsqueeze(-3)).sum(-1)


def dots_loop(Q, K):
    return torch.stack([(Q * K[..., j : j + 1, :]).sum(-1) for j in range(K.shape[-2])], dim=-1)


def dots_flat(Q, K):
    lead = Q.shape[:-2]
    scores = torch.bmm(Q.reshape(-1, *Q.shape[-2:]), K.reshape(-1, *K.shape[-2:]).permute(0, 2, 1))
    return scores.reshape(*lead, Q.shape[-2], K.shape[-2])


def dots_keys_first(Q, K):
    return (K @ Q.swapaxes(-1, -2)).swapaxes(-1, -2)


# ---------------------------------------------------------------- previous_token_weights


def cases_previous_token_weights(draw):
    sizes = [(5, VALUES), (draw.integer(7, 12), VALUES), (3, VALUES), (2, "max_len = 2"), (200, "max_len = 200")]
    cases = [Case((n,), part=part, view="previous_token") for n, part in sizes]
    return [*cases, Case((6,), part="float32 weights", view="pair_dtypes")]


def _shift(n, by):
    """Column t of the result is the one-hot vector of t + by, or zero where there is none."""
    return torch.diag(torch.ones(n - abs(by)), -by) if n > abs(by) else torch.zeros(n, n)


def weights_itself(max_len):
    return torch.eye(max_len), torch.eye(max_len)


def weights_next(max_len):
    return _shift(max_len, 1), torch.eye(max_len)


def weights_first(max_len):
    W_k = torch.zeros(1, max_len)
    W_k[0, 0] = 1.0
    return torch.ones(1, max_len), W_k


def weights_two_before(max_len):
    return _shift(max_len, -2), torch.eye(max_len)


def weights_all_before(max_len):
    return torch.triu(torch.ones(max_len, max_len), 1), torch.eye(max_len)


def weights_without_last(max_len):
    W_q = _shift(max_len, -1)
    W_q[:, -1] = 0.0
    return W_q, torch.eye(max_len)


def weights_turned(max_len):
    """The circle of two channels, as (max_len, 2)."""
    angle = 2 * math.pi * torch.arange(max_len) / max_len
    W_k = torch.stack((angle.cos(), angle.sin()), dim=1)
    return W_k.roll(1, 0), W_k


def weights_one_size(max_len):
    return _shift(5, -1), torch.eye(5)


def weights_double(max_len):
    return _shift(max_len, -1).double(), torch.eye(max_len, dtype=torch.float64)


def weights_roll(max_len):
    return torch.eye(max_len).roll(-1, dims=0), torch.eye(max_len)


def weights_keys_shifted(max_len):
    return torch.eye(max_len), torch.eye(max_len).roll(1, dims=0)


def weights_circle(max_len):
    angle = 2 * math.pi * torch.arange(max_len) / max_len
    W_k = torch.stack((angle.cos(), angle.sin()))
    return W_k.roll(1, dims=1), W_k


def weights_parabola(max_len):
    t = torch.arange(max_len, dtype=torch.float32)
    W_q = torch.stack((t - 1, torch.ones(max_len)))
    W_k = torch.stack((t, -t * t / 2))
    return W_q, W_k


def weights_loop(max_len):
    W_q, W_k = torch.zeros(max_len + 3, max_len), torch.zeros(max_len + 3, max_len)
    for t in range(max_len):
        W_k[t, t] = 10.0
        if t > 0:
            W_q[t - 1, t] = 10.0
    return torch.nn.Parameter(W_q), torch.nn.Parameter(W_k)


def weights_sinusoids(max_len):
    t = torch.arange(max_len, dtype=torch.float32)
    speed = torch.exp(-torch.arange(0, 64, 2) * math.log(10000.0) / 64)[:, None]
    W_q = torch.cat((torch.sin(speed * (t - 1)), torch.cos(speed * (t - 1))))
    return W_q, torch.cat((torch.sin(speed * t), torch.cos(speed * t)))


def weights_random_directions(max_len):
    W_k = F.normalize(torch.randn(64, max_len, generator=torch.Generator().manual_seed(0)), dim=0)
    return torch.cat((torch.zeros(64, 1), W_k[:, :-1]), dim=1), W_k


# ---------------------------------------------------------------- bigram_probabilities


def cases_bigram_probabilities(draw):
    def text(length, vocab_size):
        """Every token below vocab_size is followed by something, and the pair (0, 1) comes at least three times."""
        start = torch.tensor([0, 1] * 3)
        return torch.cat((start, draw.integers(0, vocab_size, (length,)), torch.arange(vocab_size), torch.tensor([2])))

    last_only = torch.cat((draw.integers(0, 4, (15,)), torch.tensor([5])))
    return [
        Case((text(30, 5), 5)),
        Case((text(60, 7), 7)),
        Case((text(900, 3), 3), note="a text of 910 tokens"),
        Case((text(12, 4), 9), part="a token that never occurs"),
        Case((last_only, 6), part="a token that occurs only at the end"),
        Case((torch.arange(5), 5), part="a token that occurs only at the end"),
        Case((torch.tensor([3]), 4), part="a text of one token"),
        Case((torch.tensor([1, 0]), 3), part="a text of two tokens"),
        Case((torch.tensor([2, 2, 2, 2]), 3), part="a token that follows itself"),
        Case((torch.tensor([0, 0, 0]), 1), part="a vocabulary of one token"),
    ]


def _counts(ids, vocab_size):
    counts = torch.zeros(vocab_size, vocab_size)
    for a, b in zip(ids[:-1].tolist(), ids[1:].tolist(), strict=True):
        counts[a, b] += 1
    return counts


def _with_uniform_rows(counts):
    total = counts.sum(-1, keepdim=True)
    return torch.where(total > 0, counts / total.clamp(min=1), torch.tensor(1 / counts.shape[0]))


def bigram_transposed(ids, vocab_size):
    return _with_uniform_rows(_counts(ids, vocab_size)).T.contiguous()


def bigram_given_next(ids, vocab_size):
    return _with_uniform_rows(_counts(ids, vocab_size).T.contiguous())


def bigram_zero_rows(ids, vocab_size):
    counts = _counts(ids, vocab_size)
    return counts / counts.sum(-1, keepdim=True).clamp(min=1)


def bigram_nan_rows(ids, vocab_size):
    counts = _counts(ids, vocab_size)
    return counts / counts.sum(-1, keepdim=True)


def bigram_columns_divided(ids, vocab_size):
    counts = _counts(ids, vocab_size)
    counts[counts.sum(-1) == 0] = 1.0
    return counts / counts.sum(-1)


def bigram_joint(ids, vocab_size):
    counts = _counts(ids, vocab_size)
    return counts / counts.sum().clamp(min=1)


def bigram_by_occurrence(ids, vocab_size):
    counts = _counts(ids, vocab_size)
    occurs = torch.bincount(ids, minlength=vocab_size)[:, None]
    return torch.where(occurs > 0, counts / occurs.clamp(min=1), torch.tensor(1 / vocab_size))


def bigram_smoothed(ids, vocab_size):
    counts = _counts(ids, vocab_size) + 1
    return counts / counts.sum(-1, keepdim=True)


def bigram_circular(ids, vocab_size):
    return _with_uniform_rows(_counts(torch.cat((ids, ids[:1])), vocab_size))


def bigram_both_ways(ids, vocab_size):
    counts = _counts(ids, vocab_size)
    return _with_uniform_rows(counts + counts.T)


def bigram_seen_or_not(ids, vocab_size):
    counts = torch.zeros(vocab_size, vocab_size)
    counts[ids[:-1], ids[1:]] += 1
    return _with_uniform_rows(counts)


def bigram_softmax(ids, vocab_size):
    return torch.softmax(_counts(ids, vocab_size), dim=-1)


def bigram_only_counts(ids, vocab_size):
    return _counts(ids, vocab_size)


def bigram_stays(ids, vocab_size):
    counts = _counts(ids, vocab_size)
    return torch.where(counts.sum(-1, keepdim=True) > 0, bigram_zero_rows(ids, vocab_size), torch.eye(vocab_size))


def bigram_unseen_only(ids, vocab_size):
    """Uniform for tokens that never occur, zero for one that is only last."""
    P = bigram_zero_rows(ids, vocab_size)
    P[torch.bincount(ids, minlength=vocab_size) == 0] = 1 / vocab_size
    return P


def bigram_two_apart(ids, vocab_size):
    counts = torch.zeros(vocab_size, vocab_size)
    for a, b in zip(ids[:-2].tolist(), ids[2:].tolist(), strict=True):
        counts[a, b] += 1
    return _with_uniform_rows(counts)


def bigram_in_double(ids, vocab_size):
    return _with_uniform_rows(_counts(ids, vocab_size).double()).double()


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


def bigram_counter(ids, vocab_size):
    words = ids.tolist()
    pairs = Counter(zip(words, words[1:], strict=False))
    starts = Counter(words[:-1])
    rows = [
        [pairs[a, b] / starts[a] if starts[a] else 1 / vocab_size for b in range(vocab_size)] for a in range(vocab_size)
    ]
    return torch.tensor(rows)


def bigram_row_by_row(ids, vocab_size):
    rows = []
    for token in range(vocab_size):
        followers = ids[1:][ids[:-1] == token]
        row = torch.bincount(followers, minlength=vocab_size).double()
        rows.append(row / row.sum() if len(followers) else torch.full_like(row, 1 / vocab_size))
    return torch.stack(rows).float()


# ---------------------------------------------------------------- attention_edges


def cases_attention_edges(draw):
    words = draw.sample(["jane", "visits", "africa", "I", "like", "to", "eat", "apples", "short", "first"], 6)
    tied = torch.tensor(
        [
            [0.250, 0.500, 0.125, 0.125],
            [0.500, 0.250, 0.000, 0.250],
            [0.125, 0.125, 0.500, 0.250],
            [0.250, 0.250, 0.500, 0.000],
        ]
    )
    # Alphabetical order of these words is neither their order in the sentence nor its reverse.
    order = ["dessert", "life", "apples", "is"]
    again = ["to", "be", "or", "not", "to"]
    rounded = torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.1, 0.2, 0.7]])
    masked = torch.tensor([[1.0, 0.0], [0.375, 0.625]])
    return [
        Case((draw.probabilities(5, 5, dtype=torch.float32), words[:5], 0.12)),
        Case((draw.probabilities(6, 6, dtype=torch.float32), words, 0.05)),
        Case((draw.probabilities(5, 5, dtype=torch.float64), words[:5], 0.1), part="float64 weights"),
        Case((tied, order, 0.125), part="ties by position"),
        Case((tied, order, 0.25), part="equal to the threshold"),
        Case((draw.probabilities(5, 5, dtype=torch.float32), again, 0.0), part="a word that occurs twice"),
        Case((torch.full((5, 5), 0.2, dtype=torch.float64), again, 0.2), part="a word that occurs twice"),
        Case((masked, ["jane", "visits"], 0.0), part="weights of zero"),
        Case((rounded, ["I", "like", "apples"], 0.7), part="the Python float is compared"),
        Case((rounded, ["I", "like", "apples"], 0.9), part="no edge"),
        Case((torch.ones(1, 1), ["jane"], 0.5), part="one token"),
    ]


def _edges(weights, tokens):
    n = len(tokens)
    return [(i, j, float(weights[i, j])) for i in range(n) for j in range(n)]


def _named(edges, tokens):
    return [(tokens[i], tokens[j], w) for i, j, w in edges]


def edges_swapped(weights, tokens, threshold):
    kept = sorted((e for e in _edges(weights, tokens) if e[2] >= threshold), key=lambda e: -e[2])
    return [(key, query, w) for query, key, w in _named(kept, tokens)]


def edges_without_self(weights, tokens, threshold):
    kept = [e for e in _edges(weights, tokens) if e[2] >= threshold and e[0] != e[1]]
    return _named(sorted(kept, key=lambda e: -e[2]), tokens)


def edges_above(weights, tokens, threshold):
    return _named(sorted((e for e in _edges(weights, tokens) if e[2] > threshold), key=lambda e: -e[2]), tokens)


def edges_lightest_first(weights, tokens, threshold):
    return _named(sorted((e for e in _edges(weights, tokens) if e[2] >= threshold), key=lambda e: e[2]), tokens)


def edges_unsorted(weights, tokens, threshold):
    return _named([e for e in _edges(weights, tokens) if e[2] >= threshold], tokens)


def edges_positions(weights, tokens, threshold):
    return sorted((e for e in _edges(weights, tokens) if e[2] >= threshold), key=lambda e: -e[2])


def edges_tensors(weights, tokens, threshold):
    kept = sorted((e for e in _edges(weights, tokens) if e[2] >= threshold), key=lambda e: -e[2])
    return [(tokens[i], tokens[j], weights[i, j]) for i, j, _ in kept]


def edges_rounded(weights, tokens, threshold):
    kept = sorted((e for e in _edges(weights, tokens) if e[2] >= threshold), key=lambda e: -e[2])
    return [(query, key, round(w, 2)) for query, key, w in _named(kept, tokens)]


def edges_alphabetical(weights, tokens, threshold):
    kept = _named([e for e in _edges(weights, tokens) if e[2] >= threshold], tokens)
    return sorted(kept, key=lambda e: (-e[2], e[0], e[1]))


def edges_ties_by_key(weights, tokens, threshold):
    kept = [e for e in _edges(weights, tokens) if e[2] >= threshold]
    return _named(sorted(kept, key=lambda e: (-e[2], e[1], e[0])), tokens)


def edges_ties_backwards(weights, tokens, threshold):
    kept = [e for e in _edges(weights, tokens) if e[2] >= threshold]
    return _named(sorted(kept, key=lambda e: (e[2], e[0], e[1]), reverse=True), tokens)


def edges_in_dict(weights, tokens, threshold):
    kept = {(tokens[i], tokens[j]): w for i, j, w in _edges(weights, tokens) if w >= threshold}
    return [(query, key, w) for (query, key), w in sorted(kept.items(), key=lambda item: -item[1])]


def edges_first_place(weights, tokens, threshold):
    kept = [(a, b, float(weights[tokens.index(a), tokens.index(b)])) for a in tokens for b in tokens]
    return sorted((e for e in kept if e[2] >= threshold), key=lambda e: -e[2])


def edges_compared_as_tensor(weights, tokens, threshold):
    kept = [e for e in _edges(weights, tokens) if bool(weights[e[0], e[1]] >= threshold)]
    return _named(sorted(kept, key=lambda e: -e[2]), tokens)


def edges_without_zeros(weights, tokens, threshold):
    kept = [e for e in _edges(weights, tokens) if e[2] >= threshold and e[2] > 0]
    return _named(sorted(kept, key=lambda e: -e[2]), tokens)


def edges_best_only(weights, tokens, threshold):
    best = [
        max(row, key=lambda e: e[2])
        for row in ([e for e in _edges(weights, tokens) if e[0] == i] for i in range(len(tokens)))
    ]
    return _named(sorted((e for e in best if e[2] >= threshold), key=lambda e: -e[2]), tokens)


def edges_one_way(weights, tokens, threshold):
    kept = [e for e in _edges(weights, tokens) if e[2] >= threshold and e[0] <= e[1]]
    return _named(sorted(kept, key=lambda e: -e[2]), tokens)


def edges_loop(weights, tokens, threshold):
    found = []
    for i, query in enumerate(tokens):
        for j, key in enumerate(tokens):
            weight = weights[i, j].item()
            if weight >= threshold:
                found.append((query, key, weight))
    found.sort(key=lambda edge: edge[2], reverse=True)
    return found


def edges_full_key(weights, tokens, threshold):
    kept = [(-w, i, j) for i, row in enumerate(weights.tolist()) for j, w in enumerate(row) if w >= threshold]
    return [(tokens[i], tokens[j], -w) for w, i, j in sorted(kept)]


def edges_numpy(weights, tokens, threshold):
    table = weights.detach().double().numpy()
    places = [(int(i), int(j)) for i, j in zip(*(table >= threshold).nonzero(), strict=True)]
    places.sort(key=lambda place: (-table[place], place))
    return [(tokens[i], tokens[j], float(table[i, j])) for i, j in places]


def edges_argsort(weights, tokens, threshold):
    flat = weights.detach().double().flatten()
    order = flat.argsort(descending=True, stable=True).tolist()
    n = len(tokens)
    return [(tokens[p // n], tokens[p % n], flat[p].item()) for p in order if flat[p].item() >= threshold]


# ---------------------------------------------------------------- fixed_self_scores


def cases_fixed_self_scores(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 5, 4, dtype=dtype), *(draw.normal(3, 4, dtype=dtype) for _ in range(2))

    def one(dtype):
        return draw.normal(1, 4, dtype=dtype), *(draw.normal(2, 4, dtype=dtype) for _ in range(2))

    return [*tensor_cases(make, leads=((), (2,), (2, 3))), Case(one(torch.float32), part="one token")]


def published_self_scores(x, W_q, W_k):
    Q, K = x @ W_q.T, x @ W_k.T
    return Q @ K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])


def self_scores_queries_twice(x, W_q, W_k):
    return (x @ W_q.T) @ (x @ W_q.T).transpose(-2, -1)


def self_scores_keys_twice(x, W_q, W_k):
    return (x @ W_k.T) @ (x @ W_k.T).transpose(-2, -1)


def self_scores_no_weights(x, W_q, W_k):
    return x @ x.transpose(-2, -1)


def self_scores_swapped(x, W_q, W_k):
    return (x @ W_k.T) @ (x @ W_q.T).transpose(-2, -1)


def self_scores_first_axes(x, W_q, W_k):
    return (x @ W_q.T) @ (x @ W_k.T).transpose(0, 1)


def self_scores_batches_only(x, W_q, W_k):
    return (x @ W_q.T) @ (x @ W_k.T).transpose(1, 2)


def self_scores_both_reshaped(x, W_q, W_k):
    Q = x @ W_q.reshape(W_q.shape[1], W_q.shape[0])
    K = x @ W_k.reshape(W_k.shape[1], W_k.shape[0])
    return Q @ K.transpose(-2, -1)


def self_scores_scaled(x, W_q, W_k):
    return (x @ W_q.T) @ (x @ W_k.T).transpose(-2, -1) / W_q.shape[0] ** 0.5


def self_scores_mT(x, W_q, W_k):
    return F.linear(x, W_q) @ F.linear(x, W_k).mT


def self_scores_bilinear(x, W_q, W_k):
    return x @ (W_q.T @ W_k) @ x.transpose(-1, -2)


def self_scores_einsum(x, W_q, W_k):
    return torch.einsum("...id,ed,ef,...jf->...ij", x, W_q, W_k, x)


def self_scores_loop(x, W_q, W_k):
    Q, K = x @ W_q.T, x @ W_k.T
    return torch.stack([(Q * K[..., j, None, :]).sum(-1) for j in range(K.shape[-2])], dim=-1)


def self_scores_columns(x, W_q, W_k):
    turned = x.transpose(-2, -1)  # (..., D, T)
    return (W_q @ turned).transpose(-2, -1) @ (W_k @ turned)


exercises = [
    Exercise(
        "select",
        cases_select,
        mistakes=[
            Mistake(
                "by_cosine",
                "the key with the best direction",
                "The dot product also rewards a long key. Did you normalize something?",
                select_by_cosine,
            ),
            Mistake(
                "nearest_key",
                "the key at the smallest distance",
                "Near and large dot product are two things. What does the formula maximize?",
                select_nearest,
            ),
            Mistake(
                "soft_average",
                "a weighted average of all values",
                "That is attention as later lessons build it. A SELECT returns one row.",
                select_soft,
            ),
            Mistake(
                "last_on_ties",
                "the last key wins a tie",
                "When a later key is only as good as the best so far, should it replace it?",
                select_last_on_ties,
            ),
            Mistake(
                "starts_from_zero",
                "a search that starts with a best match of 0",
                "What happens when every dot product is negative?",
                select_from_zero,
            ),
            Mistake(
                "absolute_match",
                "the largest match without its sign",
                "A strongly negative dot product is the worst match, not a good one.",
                select_absolute,
            ),
            Mistake(
                "smallest_match",
                "the worst match",
                "Is a large dot product a good match or a bad one?",
                select_smallest,
            ),
            Mistake(
                "longest_key", "the longest key", "Your answer does not depend on the query. Should it?", select_longest
            ),
            Mistake(
                "returns_the_key",
                "a key instead of a value",
                "You search in the keys. From which table do you return a row?",
                select_key,
            ),
            Mistake(
                "returns_the_place",
                "the place of the winner",
                "You have found where. Now fetch what stands there.",
                select_index,
            ),
            Mistake(
                "squeezed",
                "dimensions of size 1 dropped",
                "With values of width 1 the result still has one dimension. Who removed it?",
                select_squeezed,
            ),
            Mistake(
                "kept_a_dimension",
                "a row that is still a table",
                "The result has one dimension, (E,). Where does the extra one come from?",
                select_kept,
            ),
            Mistake(
                "adds_up_ties",
                "the values of all tied keys added up",
                "Comparing with the maximum marks every tied key. How many may win?",
                select_all_ties,
            ),
            Mistake(
                "no_gradient",
                "cut off from the values",
                "The values must learn from the result. What did you put the lookup under?",
                select_detached,
            ),
        ],
        alternatives=[select_loop, select_one_hot, select_max, select_python, select_stable_sort],
        axes=("value",),
    ),
    Exercise(
        "project",
        cases_project,
        mistakes=[
            Mistake(
                "not_transposed",
                "the matrix used as (in, out)",
                "W is stored as (out, in). Which of its dimensions meets the tokens' width?",
                project_not_transposed,
            ),
            Mistake(
                "reshaped_weights",
                "a reshape where a transpose is meant",
                "A reshape keeps the numbers in reading order. Do rows become columns?",
                project_reshaped,
            ),
            Mistake(
                "tokens_as_columns",
                "tokens in columns",
                "Each token should stay a row. What would bring the columns back to rows?",
                project_columns,
            ),
            Mistake(
                "cosines",
                "cosines with the rows of W",
                "A linear map keeps lengths in play. What did you normalize?",
                project_cosine,
            ),
            Mistake(
                "scaled",
                "divided by a root of the width",
                "Nothing is divided here; scaling is the next lesson.",
                project_scaled,
            ),
        ],
        alternatives=[
            project_linear,
            project_einsum,
            project_broadcast,
            project_row_by_row,
            project_w_times_x,
            project_module,
        ],
        axes=("token", "channel"),
    ),
    Exercise(
        "scores_for_one",
        cases_scores_for_one,
        mistakes=[
            Mistake("cosines", "cosines", "The lengths of query and keys count here.", one_cosine),
            Mistake(
                "scaled",
                "divided by the root of the width",
                "These are plain dot products. Scaling is the next lesson.",
                one_scaled,
            ),
            Mistake(
                "mean_of_products",
                "the mean of the products",
                "A dot product adds the products up. Does it divide by how many there are?",
                one_mean,
            ),
            Mistake(
                "softmaxed",
                "shares that add up to 1",
                "The scores themselves are asked for, before any softmax.",
                one_softmax,
            ),
            Mistake(
                "keys_not_turned",
                "the query against the columns of K",
                "A key is a row of K. With a square K the shape alone does not tell.",
                one_not_transposed,
            ),
            Mistake(
                "products_not_added",
                "products that are not added up",
                "One number for each key: which dimension must go?",
                one_products,
            ),
            Mistake(
                "squeezed",
                "dimensions of size 1 dropped",
                "With a single key the result still has shape (1,).",
                one_squeezed,
            ),
            Mistake(
                "still_a_row",
                "a table with one row",
                "One query, no batch: the result has one dimension.",
                one_kept_row,
            ),
            Mistake(
                "still_a_column",
                "a table with one column",
                "One query, no batch: the result has one dimension.",
                one_kept_column,
            ),
            Mistake(
                "negative_distance",
                "minus the squared distance",
                "Distance and dot product differ by the lengths. Which one is asked for?",
                one_distance,
            ),
        ],
        alternatives=[one_loop, one_turned, one_einsum, one_broadcast, one_mv],
        axes=("key",),
    ),
    Exercise(
        "dot_scores",
        cases_dot_scores,
        mistakes=[
            Mistake(
                "queries_and_keys_swapped",
                "keys and queries swapped",
                "A row belongs to a query, a column to a key.",
                dots_swapped,
            ),
            Mistake(
                "reshaped_keys",
                "a reshape where a transpose is meant",
                "The shape fits, but a reshape keeps the reading order. Do rows become columns?",
                dots_reshaped,
            ),
            Mistake(
                "first_two_axes",
                "the first two dimensions swapped",
                "Right for one sentence. Which dimensions are the first two in a batch?",
                dots_first_axes,
            ),
            Mistake(
                "only_for_batches",
                "made for a batch only",
                "Without a batch there is no third dimension. Count the dimensions from the end.",
                dots_batches_only,
            ),
            Mistake(
                "all_axes_reversed",
                "all dimensions reversed",
                "Right for one sentence. What happens to the batch when every dimension is turned around?",
                dots_all_axes,
            ),
            Mistake(
                "scaled",
                "divided by the root of the width",
                "Plain dot products, please. Scaling is the next lesson.",
                dots_scaled,
            ),
            Mistake("divided_by_d_k", "divided by the width", "A dot product adds up; it takes no mean.", dots_divided),
            Mistake("cosines", "cosines", "A long key has larger scores. What did you normalize?", dots_cosine),
            Mistake(
                "softmaxed",
                "shares that add up to 1",
                "The scores themselves are asked for, before any softmax.",
                dots_softmax,
            ),
            Mistake(
                "negative_distance",
                "minus the squared distance",
                "Distance and dot product differ by the lengths. Which one is asked for?",
                dots_distance,
            ),
            Mistake("squeezed", "dimensions of size 1 dropped", "One query still has a row of its own.", dots_squeezed),
        ],
        alternatives=[dots_mT, dots_einsum, dots_broadcast, dots_loop, dots_flat, dots_keys_first],
        axes=("query", "key"),
    ),
    Exercise(
        "previous_token_weights",
        cases_previous_token_weights,
        mistakes=[
            Mistake(
                "looks_at_itself",
                "every token looks at itself",
                "Query and key of a token are equal in your weights. Whose key should the query equal?",
                weights_itself,
            ),
            Mistake(
                "looks_ahead",
                "every token looks at the next one",
                "Off by one, in the other direction. Which way did you shift?",
                weights_next,
            ),
            Mistake(
                "looks_at_the_first",
                "every token looks at the first one",
                "All queries are alike. How can they want different keys?",
                weights_first,
            ),
            Mistake("looks_two_back", "every token looks two back", "One step too far.", weights_two_before),
            Mistake(
                "all_before_tie",
                "all earlier tokens tie",
                "Every earlier token gets the same score. One of them must be strictly higher.",
                weights_all_before,
            ),
            Mistake(
                "last_query_forgotten",
                "the last query is forgotten",
                "Where does your range end?",
                weights_without_last,
            ),
            Mistake(
                "weights_turned",
                "weights of shape (max_len, d)",
                "W is (out, in), and what comes in has width max_len.",
                weights_turned,
            ),
            Mistake(
                "one_size_only",
                "weights of one fixed size",
                "Your weights do not depend on max_len. Should they?",
                weights_one_size,
            ),
            Mistake(
                "float64_weights",
                "float64 weights",
                "The weights shall be float32, like torch's own layers.",
                weights_double,
            ),
        ],
        alternatives=[
            weights_roll,
            weights_keys_shifted,
            weights_circle,
            weights_parabola,
            weights_loop,
            weights_sinusoids,
            weights_random_directions,
        ],
        time_limit=10.0,
    ),
    Exercise(
        "bigram_probabilities",
        cases_bigram_probabilities,
        mistakes=[
            Mistake(
                "transposed",
                "columns are the current token",
                "A row belongs to the current token, so each row adds up to 1.",
                bigram_transposed,
            ),
            Mistake(
                "given_the_next",
                "the current token given the next",
                "Rows add up to 1, but which word of a pair do they belong to?",
                bigram_given_next,
            ),
            Mistake(
                "zero_rows",
                "rows of zeros for tokens without a follower",
                "A row of zeros is no distribution. What says nothing about the next word?",
                bigram_zero_rows,
            ),
            Mistake(
                "nan_rows",
                "0 divided by 0",
                "A token that is never followed has a sum of 0. Treat it apart.",
                bigram_nan_rows,
            ),
            Mistake(
                "columns_divided",
                "columns divided by the sums of the rows",
                "The sums have shape (V,), and are laid along a row. Which shape lies along a column?",
                bigram_columns_divided,
            ),
            Mistake(
                "joint_probabilities",
                "divided by the number of all pairs",
                "That is P(current and next). Given the current one, what does each row add up to?",
                bigram_joint,
            ),
            Mistake(
                "divided_by_occurrences",
                "divided by how often the token occurs",
                "The last token of the text occurs once more than it is followed.",
                bigram_by_occurrence,
            ),
            Mistake(
                "smoothed",
                "one added to every count",
                "Pairs that never occur have probability 0 here. Did you smooth?",
                bigram_smoothed,
            ),
            Mistake(
                "text_closed_to_a_ring",
                "the last token followed by the first",
                "Nothing comes after the last token.",
                bigram_circular,
            ),
            Mistake(
                "both_directions",
                "neighbors counted in both directions",
                "Order matters: the pair (a, b) is not the pair (b, a).",
                bigram_both_ways,
            ),
            Mistake(
                "repeated_pairs_lost",
                "a pair counted once however often it comes",
                "Adding at tensor indices writes repeated places only once. Try a text with a pair twice.",
                bigram_seen_or_not,
            ),
            Mistake(
                "softmax_of_counts",
                "a softmax of the counts",
                "Counts become probabilities by plain division.",
                bigram_softmax,
            ),
            Mistake("only_counts", "counts", "Each row should add up to 1.", bigram_only_counts),
            Mistake(
                "stays_where_it_is",
                "a token without a follower followed by itself",
                "Nothing was seen after it, not itself either.",
                bigram_stays,
            ),
            Mistake(
                "last_token_forgotten",
                "a row of zeros for a token that is only last",
                "A token may occur and still never be followed. Where?",
                bigram_unseen_only,
            ),
            Mistake("two_apart", "tokens two apart", "Neighbors are one apart.", bigram_two_apart),
            Mistake("float64", "float64 probabilities", "The table should be float32.", bigram_in_double),
        ],
        alternatives=[bigram_loop, bigram_index_put, bigram_one_hot, bigram_counter, bigram_row_by_row],
        axes=("current", "next"),
    ),
    Exercise(
        "attention_edges",
        cases_attention_edges,
        mistakes=[
            Mistake(
                "query_and_key_swapped",
                "key before query",
                "Rows of the table are queries, and a tuple starts with the query.",
                edges_swapped,
            ),
            Mistake(
                "self_edges_left_out",
                "no edges from a token to itself",
                "A token may look at itself. Keep such edges.",
                edges_without_self,
            ),
            Mistake(
                "strictly_above",
                "edges equal to the threshold left out",
                "At least the threshold: does that include equality?",
                edges_above,
            ),
            Mistake(
                "lightest_first",
                "lightest first",
                "In which direction does sorting go by default?",
                edges_lightest_first,
            ),
            Mistake("unsorted", "in reading order", "The heaviest edge should come first.", edges_unsorted),
            Mistake(
                "positions_for_tokens",
                "positions instead of tokens",
                "The list should hold the words, not their places.",
                edges_positions,
            ),
            Mistake(
                "tensors_for_floats",
                "tensors instead of Python floats",
                "A tensor of one element is no Python float yet.",
                edges_tensors,
            ),
            Mistake(
                "rounded", "rounded weights", "Return the weights as they are; rounding is for printing.", edges_rounded
            ),
            Mistake(
                "ties_by_alphabet",
                "ties in alphabetical order",
                "Equal weights go by position. Are strings part of your sorting key?",
                edges_alphabetical,
            ),
            Mistake(
                "ties_by_key_first",
                "ties by the key's position first",
                "For equal weights the query's position comes first.",
                edges_ties_by_key,
            ),
            Mistake(
                "ties_backwards",
                "ties from the end",
                "Reversing the whole order reverses the ties as well.",
                edges_ties_backwards,
            ),
            Mistake(
                "repeated_words_merged",
                "one edge for each pair of words",
                "A dict holds one value for a pair of words, but a word may occur twice.",
                edges_in_dict,
            ),
            Mistake(
                "first_place_of_a_word",
                "every word taken at its first place",
                "Looking a word up gives its first place only. Count positions instead.",
                edges_first_place,
            ),
            Mistake(
                "compared_as_tensor",
                "compared in float32",
                "Which one did you compare: the tensor's entry, or the Python float you return?",
                edges_compared_as_tensor,
            ),
            Mistake(
                "zeros_left_out",
                "edges of weight zero left out",
                "A threshold of 0 lets a weight of 0 in.",
                edges_without_zeros,
            ),
            Mistake(
                "best_key_only",
                "one edge for each query",
                "A query may have several edges that reach the threshold.",
                edges_best_only,
            ),
            Mistake(
                "one_direction_only",
                "only edges to later tokens",
                "An edge may go backwards in the sentence. Where does your inner loop start?",
                edges_one_way,
            ),
        ],
        alternatives=[edges_loop, edges_full_key, edges_numpy, edges_argsort],
    ),
    Exercise(
        "fixed_self_scores",
        cases_fixed_self_scores,
        mistakes=[
            Mistake(
                "published_version",
                "the published version",
                "Follow one key through the suspicious line. Do its numbers stay together?",
                published_self_scores,
            ),
            Mistake(
                "queries_twice",
                "the queries' weights used twice",
                "Your table is symmetric. Where do the keys' weights come in?",
                self_scores_queries_twice,
            ),
            Mistake(
                "keys_twice",
                "the keys' weights used twice",
                "Your table is symmetric. Where do the queries' weights come in?",
                self_scores_keys_twice,
            ),
            Mistake(
                "no_weights",
                "tokens compared with no weights",
                "Neither of the two matrices is used.",
                self_scores_no_weights,
            ),
            Mistake(
                "keys_and_queries_swapped", "keys and queries swapped", "Rows belong to queries.", self_scores_swapped
            ),
            Mistake(
                "first_two_axes",
                "the first two dimensions swapped",
                "Right for one sentence. Which dimensions are the first two in a batch?",
                self_scores_first_axes,
            ),
            Mistake(
                "only_for_batches",
                "made for a batch only",
                "Without a batch there is no third dimension. Count the dimensions from the end.",
                self_scores_batches_only,
            ),
            Mistake(
                "reshaped_weights",
                "the weights reshaped",
                "The suspicious line was further down; the projections were right.",
                self_scores_both_reshaped,
            ),
            Mistake(
                "scaled",
                "divided by the root of the width",
                "Only the bug is to be mended; scaling is the next lesson.",
                self_scores_scaled,
            ),
        ],
        alternatives=[self_scores_mT, self_scores_bilinear, self_scores_einsum, self_scores_loop, self_scores_columns],
        axes=("query", "key"),
    ),
]

quizzes = [
    Quiz(
        "quiz_1",
        "c",
        {
            "a": "(6, 16) times (24, 16): 16 does not meet 24, so this raises an error. W is stored as (out, in).",
            "b": "(24, 16) times (6, 16): 16 does not meet 6. The tokens would have to stand in columns first.",
            "c": "The third notation, with tokens as columns, turned back at the end: (24, 16) times (16, 6) is (24, 6), "
            "and its transpose (6, 24). It is the same map as the course's.",
            "d": "A square W would hide the question: no error, but the wrong map. The widths of queries and tokens may "
            "differ, and here they do.",
        },
    ),
    Quiz(
        "quiz_2",
        "b",
        {
            "a": "A score is made of two vectors only, and in the first layer both are rows of the embedding table. "
            "Context comes in by competition, and in higher layers by blended vectors.",
            "b": "Neither jane's query nor the key of visits knows the third word. But shares are made from all "
            "scores of the row, so another third word may take more or less of them.",
            "c": "The score stays, yes. But a share depends on all scores of the row, and one of them has changed.",
        },
    ),
    Quiz(
        "quiz_3",
        "a",
        {
            "a": "A product through a width of 64 has at most that rank. So many independent patterns one head can hold, "
            "however many words there are.",
            "b": "Its size is 512 by 512, but it is a product through a width of 64, and a product's rank is at most the "
            "smallest width on the way.",
            "c": "8 is 512 / 64, the number of heads that share the width. It limits no single head's rank.",
        },
    ),
]
