"""Other right answers to the exercises of lesson 5."""

import math

import torch


def causal_comparison(T_q, T_k=None):
    T_k = T_q if T_k is None else T_k
    return torch.arange(T_k)[None, :] <= torch.arange(T_q)[:, None] + (T_k - T_q)


def causal_last_rows(T_q, T_k=None):
    T_k = T_k or T_q
    return torch.tril(torch.ones(T_k, T_k)).bool()[-T_q:]


def causal_lists(T_q, T_k=None):
    T_k = T_k if T_k is not None else T_q
    return torch.tensor([[j <= i + T_k - T_q for j in range(T_k)] for i in range(T_q)])


def combine_blocked(causal, padding):
    blocked = ~causal[None, None] | ~padding[:, None, None]
    return ~blocked


def scores_clone(scores, mask):
    out = scores.clone()
    out[~mask.expand_as(scores)] = -math.inf
    return out


def _softmax(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)


def softmax_spared_rows(scores, mask):
    seen = mask.any(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(~mask & seen, -math.inf), dim=-1)
    return torch.where(seen, weights, torch.zeros_like(weights)).masked_fill(~mask, 0)


def softmax_log_space(scores, mask):
    filled = scores.masked_fill(~mask, -1e9)
    return (filled - filled.logsumexp(-1, keepdim=True)).exp().masked_fill(~mask, 0.0)


def leaks_random(f, x):
    with torch.no_grad():
        y = f(x)
        return any(
            (f(torch.cat([x[:, :t], torch.randn_like(x[:, t:])], dim=1))[:, :t] - y[:, :t]).abs().max().item() > 1e-6
            for t in range(1, x.shape[1])
        )


def leaks_row_by_row(f, x):
    y = f(x)
    worst = 0.0
    for t in range(x.size(1) - 1):
        later = (torch.arange(x.size(1)) > t)[:, None]
        worst = max(worst, float((f(torch.where(later, torch.rand_like(x) * 4 - 2, x)) - y)[:, t].abs().max()))
    return worst > 1e-6


def leaks_twice(f, x):
    for start in range(1, x.shape[1]):
        one, two = (torch.cat([x[:, :start], 2 * torch.randn_like(x[:, start:])], dim=1) for _ in range(2))
        if torch.dist(f(one)[:, :start], f(two)[:, :start], p=math.inf) > 1e-6:
            return True
    return False


def _scaled(Q, K):
    return Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1])


def _causal(T_q, T_k=None):
    T_k = T_q if T_k is None else T_k
    return torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q)


def _mask_of(Q):
    return _causal(Q.shape[-2])


def attention_added(Q, K, V):
    T = Q.size(-2)
    blocked = torch.triu(torch.full((T, T), -math.inf, dtype=Q.dtype), diagonal=1)
    return torch.matmul((torch.matmul(Q, K.mT) / torch.tensor(Q.size(-1)).sqrt() + blocked).softmax(-1), V)


def attention_einsum(Q, K, V):
    scores = torch.einsum("...qd,...kd->...qk", Q / Q.shape[-1] ** 0.5, K)
    weights = torch.where(_mask_of(Q), scores, -1e9).softmax(-1)
    return torch.einsum("...qk,...kv->...qv", weights, V)


def attention_log_space(Q, K, V):
    scores = _scaled(Q, K).masked_fill(~_mask_of(Q), -math.inf)
    return (scores - scores.logsumexp(-1, keepdim=True)).exp() @ V


VARIANTS = {
    "causal_mask": (causal_comparison, causal_last_rows, causal_lists),
    "padding_mask": (
        lambda lengths, T: torch.tensor([[j < n for j in range(T)] for n in lengths.tolist()]),
        lambda lengths, T: torch.ones(T + 1, T).tril(-1).bool()[lengths],
        lambda lengths, T: torch.ones(len(lengths), T).cumsum(-1) <= lengths.view(-1, 1),
    ),
    "combine_masks": (
        lambda causal, padding: torch.einsum("qk,bk->bqk", causal.float(), padding.float()).bool().unsqueeze(1),
        lambda causal, padding: torch.stack([(causal & row)[None] for row in padding]),
        combine_blocked,
    ),
    "mask_scores": (
        lambda scores, mask: torch.where(mask, scores, float("-inf")),
        lambda scores, mask: scores.masked_fill(mask == 0, -1e9),
        lambda scores, mask: scores.masked_fill(~mask, torch.finfo(torch.float32).min),
        lambda scores, mask: scores + torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask, -math.inf),
        scores_clone,
    ),
    "masked_softmax": (
        lambda scores, mask: _softmax(scores, mask).nan_to_num(0.0),
        softmax_spared_rows,
        softmax_log_space,
    ),
    "leaks_future": (leaks_random, leaks_row_by_row, leaks_twice),
    "fixed_causal_attention": (attention_added, attention_einsum, attention_log_space),
}
