"""What probes of whole models share: tables that answer, and when two outputs are the same."""

from __future__ import annotations

import torch

SAME = 3e-5  # logits may differ by this much through rounding alone


def row_of(numbers, table):
    """One row of the table for each row of whole numbers: equal numbers choose equal rows."""
    return (numbers * 7919 + 31).remainder(10_007).sum(-1).remainder(len(table))


def shape_of(x):
    return tuple(x.shape) if isinstance(x, torch.Tensor) else None


def gap_between(a, b) -> float:
    return float((a.detach().double() - b.detach().double()).abs().max())
