# Made by `course build` from solutions/07_value_weighting/07_value_weighting.py; never edited here.
"""The finished blocks of lesson 07: Value weighting: one head."""

from torch import nn
import torch


def weighted_values(weights, V):
    """Every query's weighted sum of the values: the second matrix product of attention.

    weights (..., T_q, T_k), V (..., T_k, d_v), float32 or float64
    -> (..., T_q, d_v), same dtype.
    """
    return weights @ V  # (..., T_q, d_v)


def attention(Q, K, V, mask=None):
    """Scaled dot-product attention, eq. 1 of Vaswani et al. (2017), with a mask.

    Q (..., T_q, d_k), K (..., T_k, d_k), V (..., T_k, d_v), float32 or float64;
    mask None or bool that broadcasts to (..., T_q, T_k), True = may attend
    -> (out (..., T_q, d_v), weights (..., T_q, T_k)), same dtype.
    Scores up to 1e4 in size. A fully masked row is zero in both.
    """
    scores = Q / Q.shape[-1] ** 0.5 @ K.transpose(-2, -1)  # (..., T_q, T_k); fewer numbers are divided
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)  # (..., T_q, T_k), NaN in fully masked rows
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weighted_values(weights, V), weights


class AttentionHead(nn.Module):
    """One head of self-attention: three linear maps without bias, then attention.

    d_model, d_head: int.
    forward(x (..., T, d_model), mask None or bool that broadcasts to (..., T, T))
    -> (..., T, d_head), same dtype; a fully masked row is zero.
    """

    def __init__(self, d_model, d_head):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_head, bias=False)
        self.W_k = nn.Linear(d_model, d_head, bias=False)
        self.W_v = nn.Linear(d_model, d_head, bias=False)

    def forward(self, x, mask=None):
        out, _ = attention(self.W_q(x), self.W_k(x), self.W_v(x), mask)
        return out  # (..., T, d_head)


def fixed_head(x, W_q, W_k, W_v):
    """One head of self-attention from its three matrices, without a mask.

    x (..., T, D), W_q and W_k (d_k, D), W_v (d_v, D), float32 or float64
    -> (..., T, d_v), same dtype.
    """
    q, k, v = x @ W_q.T, x @ W_k.T, x @ W_v.T  # (..., T, d_k) twice, (..., T, d_v)
    scores = q @ k.transpose(-2, -1) * W_q.shape[0] ** -0.5  # (..., T, T)
    return torch.softmax(scores, dim=-1) @ v


def context_shift(before, after):
    """How far context turned each token's vector: one minus the cosine of before and after.

    before, after (..., T, D), float32 or float64 -> (..., T), same dtype.
    From 0 (same direction) to 2 (opposite). A zero vector has cosine 0.
    """
    dots = (before * after).sum(dim=-1)  # (..., T)
    lengths = before.norm(dim=-1) * after.norm(dim=-1)  # (..., T)
    return 1 - dots / lengths.masked_fill(lengths == 0, 1.0)


def soft_lookup(query, keys, values, temperature=1.0):
    """A search that returns a blend: values weighted by a softmax of keys · query, without √d.

    query (d,), keys (N, d), values (N, E), float32 or float64, temperature > 0
    -> (E,), same dtype.
    """
    weights = torch.softmax(keys @ query / temperature, dim=0)  # (N,)
    return weights @ values  # (E,)


def attention_backward(Q, K, V, grad_out):
    """Gradients of attention without a mask at its inputs, from the gradient at its output.

    Q (..., T_q, d_k), K (..., T_k, d_k), V (..., T_k, d_v), grad_out (..., T_q, d_v),
    float32 or float64 -> (dQ, dK, dV), shaped like Q, K, V, same dtype.
    """
    scale = Q.shape[-1] ** -0.5
    weights = torch.softmax(Q @ K.transpose(-2, -1) * scale, dim=-1)  # (..., T_q, T_k)
    dV = weights.transpose(-2, -1) @ grad_out  # (..., T_k, d_v)
    dW = grad_out @ V.transpose(-2, -1)  # (..., T_q, T_k)
    mean = (weights * dW).sum(dim=-1, keepdim=True)  # (..., T_q, 1)
    dS = weights * (dW - mean) * scale  # (..., T_q, T_k), at QKᵀ before the scale
    return dS @ K, dS.transpose(-2, -1) @ Q, dV


def tiled_attention(Q, K, V, block):
    """Exact attention without a mask, keys in blocks, as in Rabe and Staats (2021).

    Q (..., T_q, d_k), K (..., T_k, d_k), V (..., T_k, d_v), float32 or float64; block >= 1
    -> (..., T_q, d_v), same dtype. Holds T_q · block scores at a time.
    """
    peak = torch.full_like(Q[..., :1], float("-inf"))  # (..., T_q, 1), the largest score so far
    total = torch.zeros_like(peak)  # (..., T_q, 1), the sum of powers below that peak
    out = 0.0  # (..., T_q, d_v), the same sum with values
    blocks = zip(K.split(block, dim=-2), V.split(block, dim=-2), strict=True)
    for keys, values in blocks:
        scores = Q @ keys.transpose(-2, -1) / Q.shape[-1] ** 0.5  # (..., T_q, block)
        higher = torch.maximum(peak, scores.amax(dim=-1, keepdim=True))
        powers, repair = torch.exp(scores - higher), torch.exp(peak - higher)
        total = total * repair + powers.sum(dim=-1, keepdim=True)
        out = out * repair + powers @ values
        peak = higher
    return out / total
