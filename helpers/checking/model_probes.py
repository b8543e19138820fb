"""What probes of whole models share: tables that answer, layers in words, and when two outputs are the same."""

import torch

SAME = 3e-5  # logits may differ by this much through rounding alone


def row_of(numbers, table):
    """One row of the table for each row of whole numbers: equal numbers choose equal rows."""
    return (numbers * 7919 + 31).remainder(10_007).sum(-1).remainder(len(table))


def layers_of(module, names) -> dict[str, str]:
    """What the layers of these names are, in words."""

    def described(layer):
        if not isinstance(layer, torch.nn.Linear):
            return "missing" if layer is None else type(layer).__name__
        bias = "without bias" if layer.bias is None else "with a bias"
        return f"nn.Linear from {layer.in_features} to {layer.out_features}, {bias}"

    return {name: described(getattr(module, name, None)) for name in names}


def shape_of(x):
    return tuple(x.shape) if isinstance(x, torch.Tensor) else None


def gap_between(a, b) -> float:
    return float((a.detach().double() - b.detach().double()).abs().max())
