"""Other right answers to the exercises of lesson 4."""

import math

import torch
import torch.nn.functional as F


def variance_from_moments(Q, K):
    scores = torch.einsum("...id,...jd->...ij", Q, K)
    return (scores**2).mean() - scores.mean() ** 2


def variance_from_loops(Q, K):
    scores = []
    for q_rows, k_rows in zip(Q.reshape(-1, *Q.shape[-2:]), K.reshape(-1, *K.shape[-2:]), strict=True):
        for q in q_rows:
            for k in k_rows:
                scores.append(torch.dot(q, k))
    mean = sum(scores) / len(scores)
    return sum((s - mean) ** 2 for s in scores) / len(scores)


def scores_both_by_fourth_root(Q, K):
    c = Q.shape[-1] ** 0.25
    return (Q / c) @ (K / c).transpose(-1, -2)


def scores_by_loops(Q, K):
    d_k = Q.shape[-1]
    lead = Q.shape[:-2]
    blocks = []
    for q_rows, k_rows in zip(Q.reshape(-1, *Q.shape[-2:]), K.reshape(-1, *K.shape[-2:]), strict=True):
        rows = [torch.stack([torch.dot(q, k) / math.sqrt(d_k) for k in k_rows]) for q in q_rows]
        blocks.append(torch.stack(rows))
    return torch.stack(blocks).reshape(*lead, Q.shape[-2], K.shape[-2])


def jacobian_rows_sum_to_zero(p):
    outer = p.unsqueeze(-1) @ p.unsqueeze(-2)
    off = outer * (1 - torch.eye(p.shape[-1], dtype=p.dtype))
    return torch.diag_embed(off.sum(-1)) - off


def jacobian_by_autograd(p):
    def soft(s):
        return torch.softmax(s, dim=-1)

    flat = p.reshape(-1, p.shape[-1])
    blocks = [torch.func.jacrev(soft)(row.clamp_min(1e-30).log()) for row in flat]
    return torch.stack(blocks).reshape(*p.shape, p.shape[-1])


def gradient_from_jacobian(scores):
    p = torch.softmax(scores, dim=-1)
    J = torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)
    return J.abs().flatten(-2).max(dim=-1).values


def gradient_from_largest_probability(scores):
    top = F.softmax(scores, dim=-1).max(dim=-1).values
    return top - top**2


def gradient_from_log_softmax(scores):
    p = torch.log_softmax(scores, dim=-1).exp()
    return torch.amax(p - p * p, dim=-1)


def head_by_linear(x, W_q, W_k):
    q, k = F.linear(x, W_q), F.linear(x, W_k)
    return q @ k.mT / math.sqrt(k.shape[-1])


def head_by_one_form(x, W_q, W_k):
    M = W_q.T @ W_k / W_k.shape[0] ** 0.5
    return x @ M @ x.transpose(-2, -1)


def head_by_loops(x, W_q, W_k):
    d_head = W_q.shape[0]
    blocks = []
    for rows in x.reshape(-1, *x.shape[-2:]):
        q, k = [W_q @ row for row in rows], [W_k @ row for row in rows]
        blocks.append(torch.stack([torch.stack([(a * b).sum() / d_head**0.5 for b in k]) for a in q]))
    return torch.stack(blocks).reshape(*x.shape[:-1], x.shape[-2])


def jacobian_of_weights_centered(q, K, divisor):
    p = F.softmax(torch.mv(K, q) / divisor, dim=-1)
    return p[:, None] * (K - p @ K) / divisor


def jacobian_of_weights_keys_divided_first(q, K, divisor):
    keys = K / divisor
    p = torch.softmax(keys @ q, dim=0)
    return (torch.diag(p) - torch.outer(p, p)) @ keys


def jacobian_of_weights_by_loops(q, K, divisor):
    s = torch.stack([(k * q).sum() / divisor for k in K])
    e = torch.exp(s - s.max())
    p = e / e.sum()
    mean = sum(weight * key for weight, key in zip(p, K, strict=True))
    return torch.stack([weight * (key - mean) / divisor for weight, key in zip(p, K, strict=True)])


VARIANTS = {
    "score_variance": (
        variance_from_moments,
        variance_from_loops,
        lambda Q, K: torch.std(torch.matmul(Q, K.mT), correction=0) ** 2,
    ),
    "scaled_scores": (
        scores_both_by_fourth_root,
        lambda Q, K: (Q[..., :, None, :] * K[..., None, :, :]).sum(dim=-1) / torch.tensor(Q.shape[-1]).sqrt(),
        scores_by_loops,
    ),
    "softmax_jacobian": (
        lambda p: torch.diag_embed(p) - torch.einsum("...i,...j->...ij", p, p),
        jacobian_rows_sum_to_zero,
        jacobian_by_autograd,
    ),
    "max_gradient": (gradient_from_jacobian, gradient_from_largest_probability, gradient_from_log_softmax),
    "weights_jacobian": (
        jacobian_of_weights_centered,
        jacobian_of_weights_keys_divided_first,
        jacobian_of_weights_by_loops,
    ),
    "head_scores": (head_by_linear, head_by_one_form, head_by_loops),
}
