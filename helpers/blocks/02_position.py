# Made by `course build` from solutions/02_position/02_position.py; never edited here.
"""The finished blocks of lesson 02: Position: order."""

import torch


def equivariance_error(f, x, perm):
    """Largest absolute difference between f(x[perm]) and f(x)[perm]: 0 if f is equivariant.

    f: function (T, D) -> (T, any width); x (T, D) float32 or float64; perm LongTensor (T,), a
    permutation.
    Returns a Python float.
    """
    difference = f(x[perm]) - f(x)[perm]  # (T, any width)
    return difference.abs().max().item()


def sinusoidal_positions(length, d_model):
    """Sinusoidal position vectors, section 3.5 of Vaswani et al. (2017).

    length, d_model: int -> (length, d_model) float32. Column 2i is sin(t / 10000^(2i/d_model)),
    column 2i+1 the cosine of the same angle. ValueError if d_model is odd.
    """
    if d_model % 2:
        raise ValueError(f"d_model must be even, got {d_model}")
    t = torch.arange(length, dtype=torch.float64)[:, None]  # (length, 1)
    even = torch.arange(0, d_model, 2, dtype=torch.float64)  # (D/2,): 0, 2, 4, ...
    angles = t / 10000 ** (even / d_model)  # (length, D/2)
    pairs = torch.stack([angles.sin(), angles.cos()], dim=-1)  # (length, D/2, 2)
    return pairs.flatten(1).float()  # (length, D)


def add_positions(x, table):
    """Add the first T rows of a position table to token vectors.

    x (..., T, D), table (max_len, D) of the same dtype -> (..., T, D). ValueError if T > max_len.
    """
    T = x.shape[-2]
    if T > len(table):
        raise ValueError(f"{T} tokens, but the table has only {len(table)} positions")
    return x + table[:T]  # (..., T, D)


def fixed_position_layer(x, pe):
    """The published position layer, fixed for batches that come first.

    x (B, T, D), pe (max_len, 1, D) of the same dtype, T <= max_len -> (B, T, D).
    """
    return x + pe.squeeze(1)[: x.size(1)]  # (B, T, D) + (T, D)


def shift_matrix(offset, d_model):
    """The matrix M with P[t + offset] = M @ P[t] for every t, where P is sinusoidal_positions.

    offset: int, may be 0 or negative; d_model: even int -> (d_model, d_model) float32. ValueError
    if d_model is odd.
    """
    if d_model % 2:
        raise ValueError(f"d_model must be even, got {d_model}")
    sine, cosine = torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)  # columns, (D/2,) each
    angles = offset / 10000 ** (sine.double() / d_model)  # (D/2,)
    M = torch.zeros(d_model, d_model)
    M[sine, sine] = M[cosine, cosine] = angles.cos().float()
    M[sine, cosine] = angles.sin().float()
    M[cosine, sine] = -angles.sin().float()
    return M


def apply_rope(x, positions, base=10000.0):
    """Rotary position embedding over interleaved pairs, eq. 34 of Su et al. (2021).

    x (..., T, D) with D even, positions LongTensor (T,) -> (..., T, D), same dtype. The pair
    (x[2i], x[2i+1]) is rotated by the angle position * base^(-2i/D), from the first axis toward the
    second.
    """
    D = x.shape[-1]
    even = torch.arange(0, D, 2, dtype=torch.float64, device=x.device)  # (D/2,)
    angles = positions[:, None] / base ** (even / D)  # (T, D/2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]  # (..., T, D/2)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)  # (..., T, D)
