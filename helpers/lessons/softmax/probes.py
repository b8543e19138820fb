"""Probes of lesson 6: a scenario, which runs alongside learner code."""

import torch

from helpers.checking.registry import scenario
from helpers.checking.tensor_memory import TensorsAlive, require_in_sight
from helpers.running.torch_insides import tree_leaves

# These functions read only the shape of a tensor.
SHAPE_ONLY = ("zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty")


@scenario
def one_pass(answer, args, kwargs):
    """Whether answer(score_blocks, value_blocks) reads each block of scores only once and then releases it.

    At the first read of each block, fewer new entries may be in memory than half the number of all scores, and no new
    tensor may be as large as all scores together.
    """
    score_blocks, _ = args
    with torch.no_grad(), _Watch(args) as watch:
        answer(*args, **kwargs)
    require_in_sight(len(watch.read), 1, "the memory")
    scores = sum(block.numel() for block in score_blocks)
    return {
        "no block of scores is read again after a later one": not watch.again,
        "what is kept between blocks stays small": watch.held < scores // 2,
        "no tensor is as large as all scores together": watch.largest < scores,
    }, []


class _Watch(TensorsAlive):
    """Records which blocks are read, and how many entries are in memory when a block is read for the first time.

    Making a view of a block and reading its shape don't count; reading a view does.
    """

    def __init__(self, inputs):
        super().__init__(inputs, 0)
        self.homes = {block.untyped_storage().data_ptr(): i for i, block in enumerate(inputs[0])}
        self.read, self.again, self.held = [], False, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if not self._blocks(result) and func._schema.name.split("::")[-1] not in SHAPE_ONLY:
            for block in self._blocks((args, kwargs or {})):
                self._record(block)
        return result

    def _blocks(self, tree) -> list[int]:
        """The indices of the blocks whose storage the tensors of a tree use."""
        storages = {item.untyped_storage().data_ptr() for item in tree_leaves(tree) if isinstance(item, torch.Tensor)}
        return sorted(self.homes[storage] for storage in storages & set(self.homes))

    def _record(self, block: int):
        if block in self.read:
            self.again |= self.read[-1] != block
        else:
            self.read.append(block)
            self.held = max(self.held, self.now)
