"""Functions that replace unanswered exercises of lesson 6 (helpers/or_finished.py), written with library calls."""

import torch
import torch.nn.functional as F
from torch.autograd.functional import vjp


def fixed_head_weights(q, k):
    """The heads stand before the queries while the softmax runs."""
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
    """Each block's own result, mixed into the one so far by its fraction of the whole sum."""
    size = out = None
    for scores, values in zip(score_blocks, value_blocks, strict=True):
        wide = scores.double()  # (..., n_i)
        own_size = wide.logsumexp(dim=-1, keepdim=True)  # (..., 1)
        own = torch.einsum("...n,...nd->...d", F.softmax(wide, dim=-1), values.double())  # (..., d_v)
        if out is None:
            size, out = own_size, own
        else:
            out = torch.lerp(out, own, torch.sigmoid(own_size - size))  # (..., d_v)
            size = torch.logaddexp(size, own_size)  # (..., 1)
    return out.to(value_blocks[0].dtype)
