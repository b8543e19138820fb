"""Functions that replace unanswered exercises of lesson 6 (helpers/or_finished.py), written with library calls."""

import torch
import torch.nn.functional as F
from torch.autograd.functional import vjp


def fixed_head_weights(q, k):
    """The axis of the heads is in front of the queries during the softmax."""
    scores = q.movedim(-2, -3) @ k.movedim(-3, -1)  # (..., H, T_q, T_k)
    return F.softmax(scores.mul(q.size(-1) ** -0.5), dim=-1).movedim(-3, -1)  # (..., T_q, T_k, H)


def entropy(p):
    return torch.special.entr(p).sum(dim=-1)  # (...)


def softmax_backward(p, grad):
    jacobian = torch.diag_embed(p).sub(p.unsqueeze(-1).mul(p.unsqueeze(-2)))  # (..., N, N)
    return jacobian.matmul(grad.unsqueeze(-1)).squeeze(-1)  # (..., N)


def cross_entropy_backward(logits, targets):
    def loss(x):
        return F.cross_entropy(x.reshape(-1, x.size(-1)), targets.reshape(-1))

    return vjp(loss, logits)[1]  # (..., V)


def online_softmax(score_blocks, value_blocks):
    """All blocks at once, which gives the same result, but not in one pass."""
    weights = F.softmax(torch.cat(list(score_blocks), dim=-1), dim=-1)  # (..., N)
    return torch.einsum("...n,...nd->...d", weights, torch.cat(list(value_blocks), dim=-2))  # (..., d_v)
