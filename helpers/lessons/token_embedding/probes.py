"""Lesson 1. Beside learner code: the stub and the scenario. Only on numbers: nothing."""

from __future__ import annotations

import torch

from helpers.checking.scenarios import scenario
from helpers.checking.stubs import stub


@stub
def set_of_pieces(*pieces):
    """A set of pieces."""
    return set(pieces)


@scenario
def nan_in_gradients(answer, args, kwargs):
    """Whether the gradients of the sum of the output, at each float argument, hold NaN."""
    leaves = [x.detach().clone().requires_grad_() for x in args]
    with torch.enable_grad():
        output = answer(*leaves, **kwargs)
    found = torch.autograd.grad(output.sum(), leaves, allow_unused=True)
    return {"the gradients hold NaN": any(g is not None and bool(g.isnan().any()) for g in found)}, []
