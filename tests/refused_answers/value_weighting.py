"""Wrong answers to the exercises of lesson 7 that are not among its key's known mistakes."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from helpers.blocks import attention

INF, LEFT = 'float("-inf")', "weights = weights.masked_fill(~mask, 0.0) -> pass"
RESULT = "return weighted_values(weights, V), weights"

REFUSED = {
    "attention": [
        (f"{INF} -> -10000.0",),
        (f"{INF} -> -1000.0",),
        (f"{INF} -> -10000.0", LEFT),
        (f"{INF} -> -1000.0", LEFT),
        (f"{RESULT} -> return weighted_values(weights, V).squeeze(), weights.squeeze()",),
        (f"{RESULT} -> return weighted_values(weights, V), None",),
        (
            f"{INF} -> -1e9",
            LEFT,
            f"{RESULT} -> return weighted_values(weights if mask is None else weights * mask, V), weights",
        ),
        (f"{RESULT} -> return weights, weighted_values(weights, V)",),
        ("torch.softmax(scores, dim=-1) -> scores.exp() / scores.exp().sum(dim=-1, keepdim=True).clamp_min(1e-30)",),
    ],
    "weighted_values": [("weights @ V -> (weights @ V).squeeze()",), ("weights @ V -> weights @ V.float()",)],
    "AttentionHead": [
        ("return out -> return F.dropout(out, 0.1, self.training)",),
        (
            "self.W_v(x), mask) -> self.W_v(x), torch.ones(256, 256, dtype=torch.bool)[: x.shape[-2], : x.shape[-2]]"
            " & (torch.tensor(True) if mask is None else mask))",
        ),
    ],
    "context_shift": [
        ("lengths.masked_fill(lengths == 0, 1.0) -> lengths.clamp(min=1e-2)",),
        ("lengths.masked_fill(lengths == 0, 1.0) -> lengths.clamp(min=1e-5)",),
        ("return 1 - dots / lengths.masked_fill(lengths == 0, 1.0) -> return 1 - (dots / lengths).nan_to_num(0.0)",),
        ("lengths == 0, 1.0) -> lengths == 0, 1.0).squeeze()",),
    ],
    "attention_backward": [
        ("return dS @ K, dS.transpose(-2, -1) @ Q, dV -> return dS @ K, dS.transpose(-2, -1) @ Q, dV.squeeze()",),
        (
            "dV = weights.transpose(-2, -1) @ grad_out"
            " -> dV = (weights if Q.shape[-2] == K.shape[-2] else weights.transpose(-2, -1)) @ grad_out",
        ),
        ("dS.transpose(-2, -1) @ Q -> (dS if Q.shape[-2] == K.shape[-2] else dS.transpose(-2, -1)) @ Q",),
    ],
    "tiled_attention": [("Q.shape[-1] ** 0.5 -> V.shape[-1] ** 0.5",)],
}


def all_blocks_in_a_list(Q, K, V, block):
    scores = [Q @ k.mT / Q.shape[-1] ** 0.5 for k in K.split(block, dim=-2)]
    peak = torch.stack([s.amax(dim=-1, keepdim=True) for s in scores]).amax(dim=0)
    out = total = 0.0
    for s, v in zip(scores, V.split(block, dim=-2), strict=True):
        out, total = out + (s - peak).exp() @ v, total + (s - peak).exp().sum(dim=-1, keepdim=True)
    return out / total


def results_in_a_list(Q, K, V, block):
    parts = []
    for keys, values in zip(K.split(block, dim=-2), V.split(block, dim=-2), strict=True):
        scores = Q @ keys.mT / Q.shape[-1] ** 0.5
        top = scores.amax(-1, keepdim=True)
        parts.append((top, torch.exp(scores - top).sum(-1, keepdim=True), torch.exp(scores - top) @ values))
    most = torch.stack([top for top, _, _ in parts]).amax(dim=0)
    total = sum(n * torch.exp(top - most) for top, n, _ in parts)
    return sum(o * torch.exp(top - most) for top, _, o in parts) / total


def in_another_thread(Q, K, V, block):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(attention, Q, K, V).result()[0]


def by_numpy(Q, K, V, block):
    scores = (Q.detach().numpy() @ K.detach().numpy().swapaxes(-1, -2)) / Q.shape[-1] ** 0.5
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return torch.from_numpy(powers / powers.sum(-1, keepdims=True) @ V.detach().numpy()).to(Q.dtype)


EXPLAINED = {
    "attention": [
        (
            (LEFT, f"{RESULT} -> return weighted_values(weights, V).nan_to_num(), weights"),
            "output at [1]: expected all zeros in row",
        ),
        (
            f"{RESULT} -> return weighted_values(weights, V).mT, weights",
            "one column for each of the 3 channels",
            "not: keys",
        ),
    ],
    "tiled_attention": [
        (lambda Q, K, V, block: attention(Q, K, V)[0], 2),
        (lambda Q, K, V, block: torch.cat([attention(q, K, V)[0] for q in Q.split(1, dim=-2)], dim=-2), 2),
        ("blocks = zip( -> block = 64\n    blocks = zip(", 2),
        (all_blocks_in_a_list, 2),
        (results_in_a_list, "this should be so, but it isn't yet: at any moment, all tensors together have fewer"),
        (in_another_thread, 3, "the memory of your answer can only be measured if it computes with torch"),
        (by_numpy, 3, "the memory of your answer can only be measured if it computes with torch"),
    ],
}
