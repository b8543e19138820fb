"""What probes of whole models share: random parameters, tables that answer, and when two outputs are the same."""

from __future__ import annotations

import torch

SAME, MOVED = 3e-5, 1e-4  # of logits: as far apart as rounding takes them, and as far as anything that is heard


def row_of(numbers, table):
    """One row of the table for each row of whole numbers: equal numbers choose equal rows."""
    return (numbers * 7919 + 31).remainder(10_007).sum(-1).remainder(len(table))


def with_random_parameters(answer, init, seed):
    model = answer(*init.values())
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"{answer.__name__}(...) made a {type(model).__name__}, not an nn.Module")
    model.eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            low, high = (-0.5, 0.5) if parameter.dim() > 1 else (0.4, 1.6)
            parameter.copy_(torch.rand(parameter.shape, generator=generator) * (high - low) + low)
    return model


def parameter_count(model) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def shape_of(x):
    return tuple(x.shape) if isinstance(x, torch.Tensor) else None


def gap_between(a, b) -> float:
    """The largest difference of two tensors."""
    return float((a.detach().double() - b.detach().double()).abs().max())
