# Made by `course build` from solutions/04_scaling/04_scaling.py; never edited here.
"""The finished blocks of lesson 04: Scaling: why scores are divided by a square root."""

import torch


def score_variance(Q, K):
    """Population variance of all entries of QKᵀ, over all leading dimensions together.

    Q (..., T_q, d_k), K (..., T_k, d_k), float32 or float64 -> scalar (0-dim), same dtype,
    differentiable.
    """
    scores = Q @ K.transpose(-2, -1)  # (..., T_q, T_k)
    return scores.var(correction=0)  # ()


def scaled_scores(Q, K):
    """Scaled dot-product scores, eq. 1 of Vaswani et al. (2017) before its softmax.

    Q (..., T_q, d_k), K (..., T_k, d_k), float32 or float64 -> (..., T_q, T_k), same dtype.
    """
    d_k = Q.shape[-1]
    return Q @ K.transpose(-2, -1) / d_k**0.5  # (..., T_q, T_k)


def softmax_jacobian(p):
    """Jacobian of softmax, written in terms of its output: diag(p) - p pᵀ.

    p (..., N) probability vectors, float32 or float64 -> (..., N, N), same dtype; no NaN in
    gradients.
    """
    outer = p.unsqueeze(-1) * p.unsqueeze(-2)  # (..., N, N)
    return torch.diag_embed(p) - outer  # (..., N, N)


def max_gradient(scores):
    """Largest absolute entry of the softmax Jacobian at these scores, one for each vector.

    scores (..., N), float32 or float64, up to ±1e4 -> (...), same dtype, between 0 and 1/4.
    """
    p = torch.softmax(scores, dim=-1)  # (..., N)
    return (p * (1 - p)).amax(dim=-1)  # (...)


def head_scores(x, W_q, W_k):
    """Scaled self-attention scores of one head, before any softmax.

    x (..., T, D), W_q and W_k (d_head, D), float32 or float64 -> (..., T, T), same dtype.
    """
    q = x @ W_q.T  # (..., T, d_head)
    k = x @ W_k.T  # (..., T, d_head)
    return scaled_scores(q, k)  # (..., T, T)


def weights_jacobian(q, K, divisor):
    """How the weights softmax(Kq / divisor) of one query change with the query.

    q (d_k,), K (T, d_k), float32 or float64, divisor a Python number > 0 -> (T, d_k), same dtype.
    """
    p = torch.softmax(K @ q / divisor, dim=0)  # (T,)
    return softmax_jacobian(p) @ K / divisor  # (T, T) @ (T, d_k) -> (T, d_k)
