# Made by `course build` from solutions/06_softmax/06_softmax.py; never edited here.
"""The finished blocks of lesson 06: Softmax: scores become probabilities."""

import math

import torch


def softmax(x, dim=-1):
    """Softmax along one dimension, safe for scores of any size.

    x: any shape, float32 or float64, up to ±1e4 or -inf; each vector along dim has a finite entry.
    -> same shape and dtype; vectors along dim are positive or 0 and add up to 1.
    """
    e = torch.exp(x - x.amax(dim=dim, keepdim=True))  # like x, between 0 and 1
    return e / e.sum(dim=dim, keepdim=True)  # like x


def fixed_head_weights(q, k):
    """Attention weights, with the heads as the last dimension; each query's weights add up to 1.

    q (..., T_q, H, d_k), k (..., T_k, H, d_k), float32 or float64 -> (..., T_q, T_k, H), same
    dtype.
    """
    scores = torch.einsum("...ihd,...jhd->...ijh", q, k)  # (..., T_q, T_k, H)
    return softmax(scores / q.shape[-1] ** 0.5, dim=-2)  # (..., T_q, T_k, H)


def softmax_with_temperature(x, temperature):
    """Softmax of x divided by a temperature, along the last dimension.

    x (..., N), float32 or float64; temperature from 1e-3 to 1e3. -> (..., N), same dtype.
    A temperature of 0 or below: a ValueError that names it.
    """
    if temperature <= 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    return softmax(x / temperature)  # (..., N)


def entropy(p):
    """Entropy in nats of probability vectors along the last dimension, with 0 log 0 = 0.

    p (..., N), float32 or float64 -> (...), same dtype, between 0 and log N.
    """
    log_p = p.clamp_min(torch.finfo(p.dtype).tiny).log()  # (..., N), finite
    return (p * -log_p).sum(dim=-1)  # (...)


def log_softmax(x, dim=-1):
    """Logarithm of softmax along one dimension, without computing softmax.

    x: any shape, float32 or float64, up to ±1e4 or -inf; each vector along dim has a finite entry.
    -> same shape and dtype.
    """
    shifted = x - x.amax(dim=dim, keepdim=True)  # like x, at most 0
    return shifted - shifted.exp().sum(dim=dim, keepdim=True).log()  # like x


def cross_entropy(logits, targets, ignore_index=-100):
    """Mean of -log softmax(logits)[target] over the targets that are not ignore_index.

    logits (..., V), float32 or float64, up to ±1e4; targets LongTensor (...), at least one kept.
    -> scalar (0-dim), dtype of logits, differentiable.
    """
    mask = targets != ignore_index  # (...)
    log_p = log_softmax(logits[mask])  # (K, V), K targets are kept
    picked = log_p[torch.arange(len(log_p)), targets[mask]]  # (K,)
    return -picked.mean()  # ()


def softmax_backward(p, grad):
    """Gradient at the scores from the gradient at p = softmax(scores), by hand.

    p (..., N) probability vectors, grad (..., N), float32 or float64 -> (..., N), same dtype.
    """
    average = (p * grad).sum(dim=-1, keepdim=True)  # (..., 1)
    return p * (grad - average)  # (..., N)


def cross_entropy_backward(logits, targets):
    """Gradient of the mean cross-entropy at the logits, by hand.

    logits (..., V), float32 or float64, up to ±1e4; targets LongTensor (...), none ignored.
    -> (..., V), dtype of logits.
    """
    p = softmax(logits)  # (..., V)
    truth = torch.zeros_like(p).scatter(-1, targets.unsqueeze(-1), 1.0)  # (..., V), 1 at each target
    return (p - truth) / targets.numel()  # (..., V)


def online_softmax(score_blocks, value_blocks):
    """Softmax-weighted sum of values in one pass over blocks
    (Dao et al. 2022, algorithm 1, for one query).

    score_blocks: list of (..., n_i), value_blocks: list of (..., n_i, d_v), float32 or float64,
    n_i >= 1; scores finite, up to ±1e4. -> (..., d_v), same dtype.
    """
    first, *_ = score_blocks
    top = torch.full_like(first[..., :1], -math.inf)  # (..., 1) running maximum
    total = out = torch.zeros_like(top)  # (..., 1) running sum; out becomes (..., d_v)
    for scores, values in zip(score_blocks, value_blocks, strict=True):
        new_top = torch.maximum(top, scores.amax(dim=-1, keepdim=True))  # (..., 1)
        shrink = torch.exp(top - new_top)  # (..., 1), 0 for the first block
        e = torch.exp(scores - new_top)  # (..., n_i)
        total = total * shrink + e.sum(dim=-1, keepdim=True)  # (..., 1)
        out = out * shrink + (e.unsqueeze(-1) * values).sum(dim=-2)  # (..., d_v)
        top = new_top
    return out / total  # (..., d_v)
