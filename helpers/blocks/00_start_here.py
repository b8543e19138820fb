# Made by `course build` from solutions/00_start_here/00_start_here.py; never edited here.
"""The finished blocks of lesson 00: Start here."""

import torch


def twice(x):
    """Two times x.

    x (...), float32 or float64 -> (...), same dtype.
    """
    return 2 * x


def outer_sum(a, b):
    """out[..., i, j] = a[..., i] + b[..., j].

    a (..., N), b (..., M), float32 or float64 -> (..., N, M), same dtype.
    """
    return a.unsqueeze(-1) + b.unsqueeze(-2)  # (..., N, 1) + (..., 1, M)


def center_rows(x):
    """Every row (last axis) minus its mean.

    x (..., D), float32 or float64 -> (..., D), same dtype.
    """
    return x - x.mean(dim=-1, keepdim=True)  # (..., D) - (..., 1)


def swap_last_two(x):
    """out[..., j, i] = x[..., i, j].

    x (..., T, D), float32 or float64 -> (..., D, T), same dtype.
    """
    return x.transpose(-2, -1)  # (..., D, T)


def zero_first_token(x):
    """x with the row of its first token set to zero; x itself is left as it is.

    x (..., T, D), T >= 1, float32 or float64 -> (..., T, D), same dtype.
    """
    y = x.clone()
    y[..., 0, :] = 0
    return y


def fraction_above(x, threshold):
    """The fraction of each row's entries that are strictly above the threshold.

    x (..., D), float32 or float64, threshold float -> (...), dtype of x. No gradient is asked for.
    """
    return (x > threshold).to(x.dtype).mean(dim=-1)  # (..., D) -> (...)


def gather_per_row(x, index):
    """out[...] = x[..., index[...]]: one entry from each row.

    x (..., V), float32 or float64, index LongTensor (...), entries 0 to V-1 -> (...), dtype of x.
    """
    return x.gather(-1, index.unsqueeze(-1)).squeeze(-1)  # (..., 1) -> (...)


def gradient_by_hand(x, g):
    """The gradient at x of g1 f1 + g2 f2, for f(x1, x2) = (x1 x2, x1² + x2).

    x (..., 2), g (..., 2), float32 or float64 -> (..., 2), same dtype. It need not be
    differentiable itself.
    """
    x1, x2 = x[..., 0], x[..., 1]  # (...), (...)
    g1, g2 = g[..., 0], g[..., 1]  # (...), (...)
    return torch.stack([g1 * x2 + g2 * 2 * x1, g1 * x1 + g2], dim=-1)  # (..., 2)
