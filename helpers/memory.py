"""How many numbers the largest tensor of a computation holds."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.utils._pytree import tree_leaves

from helpers.checking.operators import OperatorMode


class LargestTensor(OperatorMode):
    """While active, keeps in `numbers` how many numbers the largest tensor that came into being holds.

    Counted is what a tensor stores: an expanded view costs nothing of its own.
    """

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for item in tree_leaves(result):
            if isinstance(item, torch.Tensor):
                self.numbers = max(self.numbers, item.untyped_storage().nbytes() // item.element_size())
        return result


def largest_tensor(f: Callable, *args, **kwargs):
    """(f(*args, **kwargs), numbers in the largest tensor that was made on the way), without autograd."""
    with torch.no_grad(), LargestTensor() as seen:
        output = f(*args, **kwargs)
    return output, seen.numbers
