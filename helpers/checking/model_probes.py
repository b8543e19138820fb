"""What probes of whole models share: tables that answer, layers in words, and when two outputs are the same."""

import torch

SAME = 3e-5  # logits may differ by this much through rounding alone


def causal_logits(table, ids, start=0):
    """ids (B, T) -> (B, T, V): rows of a table (rows, V), each chosen by `start` and by the ids up to its position."""
    positions = torch.arange(1, ids.shape[1] + 1)  # (T,)
    heard = (ids * positions).cumsum(-1) + start  # (B, T)
    return table[(heard * 7919 + 31).remainder(10_007).remainder(len(table))]  # (B, T, V)


def require_ids(ids, wish, batch=None):
    """Raise an error that says the wish where the ids are no LongTensor (B, T)."""
    if not isinstance(ids, torch.Tensor):
        raise TypeError(f"{wish}; it got a {type(ids).__name__}")
    fits = ids.dim() == 2 and ids.dtype == torch.int64 and batch in (None, ids.shape[0])
    if not fits:
        raise ValueError(f"{wish}; it got {ids.dtype} of shape {tuple(ids.shape)}")


def shape_of(x):
    return tuple(x.shape) if isinstance(x, torch.Tensor) else None


def gap_between(a, b) -> float:
    return float((a.detach().double() - b.detach().double()).abs().max())
