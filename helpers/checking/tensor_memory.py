"""Measure the memory of a computation in numbers: its largest tensor, and all tensors that are alive at one time.

What counts is a tensor's storage, so an expanded view costs nothing extra.
"""

import weakref
from collections.abc import Callable

import torch

from helpers.checking.scenarios import WrongParts
from helpers.running.torch_insides import OperatorMode, tree_leaves


class TensorsAlive(OperatorMode):
    """While active, counts the numbers in the tensors that operators create. The storage of `inputs` is free.

    largest: in the largest tensor. most: in all that are alive, at the worst moment. made: in all results together.
    long: in all tensors together that hold `at_least` numbers or more.
    """

    def __init__(self, inputs, at_least: int):
        super().__init__()
        self.free = {
            item.untyped_storage().data_ptr() for item in tree_leaves(inputs) if isinstance(item, torch.Tensor)
        }
        self.at_least = at_least
        self.users: dict = {}
        self.sizes: dict = {}
        self.largest = self.now = self.most = self.long = self.made = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for item in tree_leaves(result):
            if isinstance(item, torch.Tensor):
                self._add(item)
        return result

    def _add(self, tensor: torch.Tensor) -> None:
        address = tensor.untyped_storage().data_ptr()
        if address in self.free or not address:
            return
        self.made += tensor.numel()
        numbers = tensor.untyped_storage().nbytes() // tensor.element_size()
        if not self.users.get(address):
            self.users[address], self.sizes[address] = 0, numbers
            self.now += numbers
            self.long += numbers if numbers >= self.at_least else 0
        self.users[address] += 1
        self.largest, self.most = max(self.largest, numbers), max(self.most, self.now)
        weakref.finalize(tensor, self._remove, address).atexit = False

    def _remove(self, address: int) -> None:
        self.users[address] -= 1
        if not self.users[address]:
            self.now -= self.sizes[address]


def tensors_alive(f: Callable, *args, long: int = 0, **kwargs):
    """(f(*args, **kwargs), the TensorsAlive that measured it), without autograd. long: the latter's `at_least`."""
    with torch.no_grad(), TensorsAlive((args, kwargs), long) as measured:
        output = f(*args, **kwargs)
    return output, measured


def require_in_sight(numbers: int, fewest: int, what: str) -> None:
    """Raise WrongParts if fewer numbers were counted than any right answer must produce. what: what is measured.

    The modes see only torch's operators, and only in the thread that calls the answer.
    """
    if numbers < fewest:
        raise WrongParts(f"{what} of your answer can only be measured if it computes with torch, in a single thread")
