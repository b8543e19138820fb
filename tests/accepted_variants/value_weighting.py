"""Other right answers to the exercises of lesson 7."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def values_by_loops(weights, V):
    blocks = []
    for w_rows, v_rows in zip(weights.reshape(-1, *weights.shape[-2:]), V.reshape(-1, *V.shape[-2:]), strict=True):
        blocks.append(torch.stack([sum(w * v for w, v in zip(row, v_rows, strict=True)) for row in w_rows]))
    return torch.stack(blocks).reshape(*weights.shape[:-1], V.shape[-1])


def plain_scores(Q, K):
    return Q @ K.transpose(-2, -1)


def attention_with_nan_to_num(Q, K, V, mask=None):
    scores = torch.matmul(Q, K.mT) * Q.size(-1) ** -0.5
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    weights = F.softmax(scores, dim=-1).nan_to_num(0.0)
    return torch.matmul(weights, V), weights


def attention_with_finite_fill(Q, K, V, mask=None):
    scores = (Q / math.sqrt(K.shape[-1])) @ K.transpose(-1, -2)
    if mask is None:
        mask = torch.ones(scores.shape, dtype=torch.bool)
    weights = torch.softmax(torch.where(mask, scores, torch.finfo(scores.dtype).min), dim=-1) * mask
    return weights @ V, weights


def attention_with_spared_rows(Q, K, V, mask=None):
    scores = torch.einsum("...id,...jd->...ij", Q, K) / K.shape[-1] ** 0.5
    if mask is None:
        weights = scores.softmax(-1)
    else:
        seen = mask.any(dim=-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(~mask & seen, -math.inf), dim=-1)
        weights = torch.where(seen, weights, torch.zeros_like(weights))
    return torch.einsum("...ij,...jd->...id", weights, V), weights


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
    """A head in which subclasses replace the attention function."""

    def __init__(self, d_model, d_head):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_head, bias=False)
        self.W_k = nn.Linear(d_model, d_head, bias=False)
        self.W_v = nn.Linear(d_model, d_head, bias=False)

    def forward(self, x, mask=None):
        return self.attend(self.W_q(x), self.W_k(x), self.W_v(x), mask)


class HeadWithFiniteFill(_Head):
    def attend(self, q, k, v, mask):
        return attention_with_finite_fill(q, k, v, mask)[0]


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


def shift_by_loops(before, after):
    shifts = []
    for b, a in zip(before.reshape(-1, before.shape[-1]), after.reshape(-1, after.shape[-1]), strict=True):
        length = b.norm() * a.norm()
        shifts.append(1 - (b @ a) / length if length > 0 else 1 + 0 * (b @ a))
    return torch.stack(shifts).reshape(before.shape[:-1])


def shift_with_an_epsilon_on_each(before, after):
    a = before / (before.norm(dim=-1, keepdim=True) + 1e-8)
    b = after / (after.norm(dim=-1, keepdim=True) + 1e-8)
    return 1 - (a * b).sum(dim=-1)


def lookup_by_einsum(query, keys, values, temperature=1.0):
    scores = torch.einsum("nd,d->n", keys, query) / torch.tensor(temperature)
    return torch.einsum("n,ne->e", scores.softmax(dim=0), values)


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


def backward_by_loops(Q, K, V, grad_out):
    scale = Q.shape[-1] ** -0.5
    found = []
    flat = [t.reshape(-1, *t.shape[-2:]) for t in (Q, K, V, grad_out)]
    for q_rows, k, v, g_rows in zip(*flat, strict=True):
        dQ, dK, dV = [], torch.zeros_like(k), torch.zeros_like(v)
        for q, g in zip(q_rows, g_rows, strict=True):
            w = torch.softmax(k @ q * scale, dim=0)
            better = v @ g - w @ v @ g
            dQ.append((w * better) @ k * scale)
            dK = dK + torch.outer(w * better, q) * scale
            dV = dV + torch.outer(w, g)
        found.append((torch.stack(dQ), dK, dV))
    dQ, dK, dV = (torch.stack(parts) for parts in zip(*found, strict=True))
    return dQ.reshape(Q.shape), dK.reshape(K.shape), dV.reshape(V.shape)


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


def tiled_in_padded_blocks(Q, K, V, block):
    missing = -K.shape[-2] % block
    K, V = F.pad(K, (0, 0, 0, missing)), F.pad(V, (0, 0, 0, missing))
    peak, total, out = None, None, None
    for first in range(0, K.shape[-2], block):
        scores = Q @ K[..., first : first + block, :].mT / math.sqrt(Q.shape[-1])
        if first + block > K.shape[-2] - missing:
            scores[..., block - missing :] = -math.inf
        top = scores.detach().amax(dim=-1, keepdim=True)
        higher = top if peak is None else torch.maximum(peak, top)
        powers = (scores - higher).exp()
        sums, mixed = powers.sum(dim=-1, keepdim=True), powers @ V[..., first : first + block, :]
        if peak is not None:
            repair = (peak - higher).exp()
            sums, mixed = sums + total * repair, mixed + out * repair
        peak, total, out = higher, sums, mixed
    return out / total


VARIANTS = {
    "weighted_values": (
        lambda weights, V: torch.einsum("...qk,...kd->...qd", weights, V),
        lambda weights, V: (weights[..., :, :, None] * V[..., None, :, :]).sum(dim=-2),
        values_by_loops,
    ),
    "attention": (attention_with_nan_to_num, attention_with_spared_rows, attention_by_rows),
    "AttentionHead": (HeadWithFiniteFill, HeadByHand, HeadThatMixesFirst, HeadWithAScaleBuffer),
    "fixed_head": (
        fixed_by_one_form,
        lambda x, W_q, W_k, W_v: attention_by_rows(*_qkv(x, W_q, W_k, W_v))[0],
        lambda x, W_q, W_k, W_v: attention_by_hand(*_qkv(x, W_q, W_k, W_v))[0],
    ),
    "context_shift": (
        lambda before, after: 1 - F.cosine_similarity(before, after, dim=-1),
        shift_by_loops,
        shift_with_an_epsilon_on_each,
    ),
    "soft_lookup": (lookup_by_einsum, lookup_by_logs, lookup_by_library),
    "attention_backward": (backward_by_einsum, backward_from_the_output, backward_by_loops),
    "tiled_attention": (tiled_by_pairs, tiled_on_both_sides, tiled_in_padded_blocks),
}
