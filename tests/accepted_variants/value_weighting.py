"""Other right answers to the exercises of lesson 7."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def plain_scores(Q, K):
    return Q @ K.transpose(-2, -1)


def attention_with_nan_to_num(Q, K, V, mask=None):
    scores = torch.matmul(Q, K.mT) * Q.size(-1) ** -0.5
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    weights = F.softmax(scores, dim=-1).nan_to_num(0.0)
    return torch.matmul(weights, V), weights


def attention_by_hand(Q, K, V, mask=None):
    scores = plain_scores(Q, K) / math.sqrt(Q.shape[-1])
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    peak = scores.detach().masked_fill(~mask, -1e30).amax(dim=-1, keepdim=True)
    powers = (scores - peak).masked_fill(~mask, -1e9).exp().masked_fill(~mask, 0.0)
    total = powers.sum(dim=-1, keepdim=True)
    weights = powers / total.masked_fill(total == 0, 1.0)
    return weights @ V, weights


def attention_with_added_bias(Q, K, V, mask=None):
    scores = plain_scores(Q, K) / Q.shape[-1] ** 0.5
    keep = None if mask is None else mask.to(Q.dtype)
    weights = torch.softmax(scores if keep is None else scores + (1 - keep) * -1e9, dim=-1)
    weights = weights if keep is None else weights * keep
    return weights @ V, weights


def attention_by_rows(Q, K, V, mask=None):
    lead = Q.shape[:-2]
    shape = (*lead, Q.shape[-2], K.shape[-2])
    mask = torch.ones(shape, dtype=torch.bool) if mask is None else mask.expand(shape)
    outs, shares = [], []
    for q_rows, k_rows, v_rows, m_rows in zip(
        Q.reshape(-1, *Q.shape[-2:]),
        K.reshape(-1, *K.shape[-2:]),
        V.reshape(-1, *V.shape[-2:]),
        mask.reshape(-1, *shape[-2:]),
        strict=True,
    ):
        for q, allowed in zip(q_rows, m_rows, strict=True):
            weights = torch.zeros(len(k_rows), dtype=Q.dtype)
            if allowed.any():
                index = allowed.nonzero().flatten()
                scores = k_rows[index] @ q / len(q) ** 0.5
                weights = weights.index_put((index,), scores.softmax(dim=0))
            shares.append(weights)
            outs.append(weights @ v_rows)
    return torch.stack(outs).reshape(*lead, Q.shape[-2], V.shape[-1]), torch.stack(shares).reshape(shape)


class _Head(nn.Module):
    """A head whose way of attending can be replaced."""

    def __init__(self, d_model, d_head):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_head, bias=False)
        self.W_k = nn.Linear(d_model, d_head, bias=False)
        self.W_v = nn.Linear(d_model, d_head, bias=False)

    def forward(self, x, mask=None):
        return self.attend(self.W_q(x), self.W_k(x), self.W_v(x), mask)


class HeadByHand(_Head):
    def attend(self, q, k, v, mask):
        return attention_by_hand(q, k, v, mask)[0]


class HeadThatMixesFirst(_Head):
    def forward(self, x, mask=None):
        mixed, _ = attention_with_added_bias(self.W_q(x), self.W_k(x), x, mask)
        return self.W_v(mixed)


class HeadWithAScaleBuffer(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        self.W_v = nn.Linear(d_model, d_head, False)
        self.W_k = nn.Linear(d_model, d_head, False)
        self.W_q = nn.Linear(d_model, d_head, False)
        self.d_head = d_head
        self.register_buffer("scale", torch.tensor(float(d_head)).sqrt(), persistent=False)

    def forward(self, x, mask=None):
        scores = self.W_q(x) @ self.W_k(x).mT / self.scale
        if mask is not None:
            scores = torch.where(mask, scores, -math.inf)
        weights = F.softmax(scores, dim=-1)
        if mask is not None:
            weights = torch.where(mask, weights, 0.0)
        return weights @ self.W_v(x)


def _qkv(x, W_q, W_k, W_v):
    return x @ W_q.T, x @ W_k.T, x @ W_v.T


def fixed_by_one_form(x, W_q, W_k, W_v):
    scores = x @ (W_q.T @ W_k / math.sqrt(len(W_k))) @ x.mT
    return (torch.softmax(scores, dim=-1) @ x) @ W_v.T


def shift_with_an_epsilon_on_each(before, after):
    a = before / (before.norm(dim=-1, keepdim=True) + 1e-8)
    b = after / (after.norm(dim=-1, keepdim=True) + 1e-8)
    return 1 - (a * b).sum(dim=-1)


def lookup_by_logs(query, keys, values, temperature=1.0):
    scores = keys @ query / temperature
    return values.T @ (scores - scores.logsumexp(dim=0)).exp()


def lookup_by_library(query, keys, values, temperature=1.0):
    return F.scaled_dot_product_attention(query[None], keys, values, scale=1 / temperature)[0]


def backward_by_einsum(Q, K, V, grad_out):
    c = Q.shape[-1] ** -0.5
    W = torch.einsum("...id,...jd->...ij", Q * c, K).softmax(-1)
    dW = torch.einsum("...ie,...je->...ij", grad_out, V)
    dS = W * dW - W * torch.einsum("...ij,...ij->...i", W, dW)[..., None]
    dQ = torch.einsum("...ij,...jd->...id", dS, K) * c
    return dQ, torch.einsum("...ij,...id->...jd", dS, Q) * c, torch.einsum("...ij,...ie->...je", W, grad_out)


def backward_from_the_output(Q, K, V, grad_out):
    scale = Q.shape[-1] ** -0.5
    W = torch.softmax(Q @ K.mT * scale, dim=-1)
    dS = W * (grad_out @ V.mT - (grad_out * (W @ V)).sum(dim=-1, keepdim=True)) * scale
    return dS @ K, dS.mT @ Q, W.mT @ grad_out


def tiled_by_slices(Q, K, V, block):
    scale = Q.shape[-1] ** -0.5
    peak = torch.full_like(Q[..., :1], -math.inf)
    total, out = torch.zeros_like(peak), torch.zeros(*Q.shape[:-1], V.shape[-1], dtype=Q.dtype)
    for first in range(0, K.shape[-2], block):
        scores = Q @ K[..., first : first + block, :].transpose(-2, -1) * scale
        higher = torch.maximum(peak, scores.detach().amax(dim=-1, keepdim=True))
        shrink, powers = (peak - higher).exp(), (scores - higher).exp()
        total = total * shrink + powers.sum(dim=-1, keepdim=True)
        out = out * shrink + powers @ V[..., first : first + block, :]
        peak = higher
    return out / total


def tiled_by_pairs(Q, K, V, block):
    out, log = None, None
    for first in range(0, K.shape[-2], block):
        scores = Q @ K[..., first : first + block, :].transpose(-1, -2) / Q.shape[-1] ** 0.5
        part, part_log = scores.softmax(-1) @ V[..., first : first + block, :], scores.logsumexp(-1, keepdim=True)
        if out is None:
            out, log = part, part_log
        else:
            both = torch.logaddexp(log, part_log)
            out, log = out * (log - both).exp() + part * (part_log - both).exp(), both
    return out


def tiled_on_both_sides(Q, K, V, block):
    return torch.cat([tiled_by_slices(part, K, V, block) for part in Q.split(block, dim=-2)], dim=-2)


VARIANTS = {
    "weighted_values": (
        lambda weights, V: torch.einsum("...qk,...kd->...qd", weights, V),
        lambda weights, V: (weights[..., :, :, None] * V[..., None, :, :]).sum(dim=-2),
    ),
    "attention": (attention_with_nan_to_num, attention_by_rows),
    "AttentionHead": (HeadByHand, HeadThatMixesFirst, HeadWithAScaleBuffer),
    "fixed_head": (fixed_by_one_form, lambda x, W_q, W_k, W_v: attention_by_hand(*_qkv(x, W_q, W_k, W_v))[0]),
    "context_shift": (
        lambda before, after: 1 - F.cosine_similarity(before, after, dim=-1),
        shift_with_an_epsilon_on_each,
    ),
    "soft_lookup": (lookup_by_logs, lookup_by_library),
    "attention_backward": (backward_by_einsum, backward_from_the_output),
    "tiled_attention": (tiled_by_pairs, tiled_on_both_sides),
}
