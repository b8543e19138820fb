# Made by `course build` from solutions/05_masking/05_masking.py; never edited here.
"""The finished blocks of lesson 05: Masking: what may be seen."""

import math

import torch


def causal_mask(T_q, T_k=None):
    """Which keys each query may see when no query sees the future; True = may attend.

    T_q: int, T_k: int >= T_q or None (then T_q) -> bool (T_q, T_k). The last query sees every key.
    """
    T_k = T_q if T_k is None else T_k
    return torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q)  # (T_q, T_k)


def padding_mask(lengths, T):
    """Which tokens of each sentence are real; the real ones come first. True = may attend.

    lengths LongTensor (B,) with 0 <= lengths <= T; T: int -> bool (B, T).
    """
    return torch.arange(T, device=lengths.device) < lengths[:, None]  # (T,) < (B, 1) -> (B, T)


def combine_masks(causal, padding):
    """Both masks as one that broadcasts over heads; padding blocks keys only. True = may attend.

    causal bool (T_q, T_k), padding bool (B, T_k) -> bool (B, 1, T_q, T_k).
    """
    return causal & padding[:, None, None, :]  # (T_q, T_k) & (B, 1, 1, T_k) -> (B, 1, T_q, T_k)


def mask_scores(scores, mask):
    """Scores with every blocked entry replaced by minus infinity.

    scores (..., T_q, T_k) float, mask bool that broadcasts to it, True = may attend -> like scores.
    """
    return scores.masked_fill(~mask, -math.inf)  # (..., T_q, T_k)


def masked_softmax(scores, mask):
    """Softmax over the last dimension among the entries that the mask allows; rows with nothing to
    see are zeros.

    scores (..., T_q, T_k) float, up to 1e4 in size; mask bool that broadcasts to it -> like scores,
    without NaN in values or gradients.
    """
    weights = torch.softmax(mask_scores(scores, mask), dim=-1)  # (..., T_q, T_k), NaN in fully masked rows
    return torch.where(mask, weights, 0.0)


def leaks_future(f, x):
    """Whether some output of f at a position t changes by more than 1e-6 when inputs after t change.

    f: deterministic function (B, T, D) -> (B, T, any width); x (B, T, D). Every t is tried. Returns
    a Python bool.
    """
    before, other = f(x), torch.randn_like(x)  # (B, T, any width), (B, T, D)
    while (other == x).all(dim=-1).any():  # the generator may be in the state from which x was drawn
        other = torch.randn_like(x)
    for start in range(1, x.shape[1]):  # the future begins here
        after = f(torch.cat([x[:, :start], other[:, start:]], dim=1))  # (B, T, any width)
        if not torch.allclose(after[:, :start], before[:, :start], rtol=0, atol=1e-6):
            return True
    return False


def fixed_causal_attention(Q, K, V):
    """Causal attention, eq. 1 of Vaswani et al. (2017) with the future masked before the softmax.

    Q, K (..., T, d_k), V (..., T, d_v), float32 or float64 -> (..., T, d_v), same dtype.
    """
    scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5  # (..., T, T)
    weights = masked_softmax(scores, causal_mask(Q.shape[-2]).to(Q.device))  # (..., T, T)
    return weights @ V  # (..., T, d_v)
