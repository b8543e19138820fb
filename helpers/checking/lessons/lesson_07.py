"""Lesson 7. Beside learner code: the scenarios. Only on numbers: nothing."""

from __future__ import annotations

import torch

from helpers.checking.scenarios import scenario
from helpers.memory import largest_tensor


@scenario
def linear_layers(answer, args, kwargs):
    """args = (init_args, names): build the module and describe its layers of these names."""
    init_args, names = args
    built = answer(*init_args)
    return {name: _described(getattr(built, name, None)) for name in names}, []


def _described(layer) -> str:
    if not isinstance(layer, torch.nn.Linear):
        return "missing" if layer is None else type(layer).__name__
    bias = "without bias" if layer.bias is None else "with a bias"
    return f"nn.Linear from {layer.in_features} to {layer.out_features}, {bias}"


@scenario
def in_little_memory(answer, args, kwargs):
    """answer(Q, K, V, block), and whether every tensor on the way was smaller than all scores together."""
    Q, K = args[:2]
    all_scores = Q.shape[:-1].numel() * K.shape[-2]
    output, numbers = largest_tensor(answer, *args, **kwargs)
    return {"output": output, "every tensor holds fewer than T_q · T_k numbers": numbers < all_scores}, []
