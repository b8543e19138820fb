"""Lesson 6. Beside learner code: the scenarios. Only on numbers: nothing."""

import weakref

import torch

from helpers.checking.scenarios import scenario
from helpers.checking.tensor_memory import largest_tensor, require_in_sight
from helpers.running.torch_insides import OperatorMode, tree_leaves

# These look at a tensor's shape alone.
SHAPE_ONLY = ("zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty")


@scenario
def finite_entries(answer, args, kwargs):
    """answer(x, ...) with entries at -inf set to 0, so that no gradient is asked for at them."""
    output = answer(*args, **kwargs)
    return torch.where(args[0].isfinite(), output, torch.zeros_like(output)), []


@scenario
def one_pass(answer, args, kwargs):
    """Whether answer(score_blocks, value_blocks) reads each block of scores once, and then lets go of it.

    Held are fewer numbers than half of all scores when a block is first read, and no tensor is as large as all scores.
    """
    score_blocks, value_blocks = args
    watch = _Watch(score_blocks)
    with watch:
        _, numbers = largest_tensor(answer, score_blocks, value_blocks, **kwargs)
    require_in_sight(len(watch.read), 1, "the memory")
    scores = sum(block.numel() for block in score_blocks)
    return {
        "no block of scores is read again after a later one": not watch.again,
        "what is kept between blocks stays small": watch.held < scores // 2,
        "no tensor is as large as all scores together": numbers < scores,
    }, []


class _Watch(OperatorMode):
    """Notes when a block (or a view of it) is read, and how many numbers are alive when one is read for the first time.

    A view and a look at the shape are no reading.
    """

    def __init__(self, blocks: list):
        super().__init__()
        self.homes = {block.untyped_storage().data_ptr(): i for i, block in enumerate(blocks)}
        self.read, self.again, self.held = [], False, 0
        self.made: list[weakref.ref] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = [item for item in tree_leaves((args, kwargs or {})) if isinstance(item, torch.Tensor)]
        storages = {item.untyped_storage().data_ptr() for item in given}
        result = func(*args, **(kwargs or {}))
        new = [item for item in tree_leaves(result) if isinstance(item, torch.Tensor)]
        of_blocks = any(item.untyped_storage().data_ptr() in self.homes for item in new)
        if not of_blocks:
            self.made += [weakref.ref(item) for item in new if item.untyped_storage().data_ptr() not in storages]
            if func._schema.name.split("::")[-1] not in SHAPE_ONLY:
                for block in sorted(self.homes[storage] for storage in storages & set(self.homes)):
                    self._reads(block)
        return result

    def _reads(self, block: int):
        if block in self.read:
            self.again |= self.read[-1] != block
            return
        self.read.append(block)
        alive = [item for item in (ref() for ref in self.made) if item is not None]
        self.held = max(self.held, sum(item.numel() for item in alive))
