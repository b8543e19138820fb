"""Lesson 6. Beside learner code: the scenarios. Only on numbers: nothing."""

from __future__ import annotations

import torch
from torch.utils._pytree import tree_leaves

from helpers.checking.operators import OperatorMode
from helpers.checking.scenarios import scenario
from helpers.memory import largest_tensor


@scenario
def finite_entries(answer, args, kwargs):
    """answer(x, ...) with entries at -inf set to 0, so that no gradient is asked for at them."""
    output = answer(*args, **kwargs)
    return torch.where(args[0].isfinite(), output, torch.zeros_like(output)), []


@scenario
def one_pass(answer, args, kwargs):
    """Whether answer(score_blocks, value_blocks) works with a block's values before it saw all scores.

    And whether it never laid all scores side by side, which shows where a value vector holds a single number.
    """
    score_blocks, value_blocks = args
    touches = _Touches({"scores": score_blocks, "values": value_blocks})
    with touches:
        _, numbers = largest_tensor(answer, score_blocks, value_blocks, **kwargs)
    last_scores = max((at for (kind, _), at in touches.first.items() if kind == "scores"), default=0)
    first_values = min((at for (kind, _), at in touches.first.items() if kind == "values"), default=last_scores)
    return {
        "values are used before the last scores are read": first_values < last_scores,
        "no tensor is as large as all scores together": numbers < sum(block.numel() for block in score_blocks),
    }, []


class _Touches(OperatorMode):
    """Notes when a tensor of some lists (or a view of it) is first an argument of any operator. Shapes are no touch."""

    def __init__(self, lists: dict[str, list]):
        super().__init__()
        self.homes = {
            block.untyped_storage().data_ptr(): (kind, i)
            for kind, blocks in lists.items()
            for i, block in enumerate(blocks)
        }
        self.first: dict[tuple[str, int], int] = {}
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        for item in tree_leaves((args, kwargs or {})):
            if isinstance(item, torch.Tensor):
                name = self.homes.get(item.untyped_storage().data_ptr())
                if name is not None:
                    self.first.setdefault(name, self.count)
        return func(*args, **(kwargs or {}))
