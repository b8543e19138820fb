"""How many numbers the tensors of a computation hold: the largest one, and all that live at one time.

Counted is what a tensor stores: an expanded view costs nothing of its own.
"""

import weakref
from collections.abc import Callable

import torch

from helpers.checking.scenarios import WrongParts
from helpers.running.torch_insides import OperatorMode, tree_leaves


class TensorsAlive(OperatorMode):
    """While active, follows the tensors that operators make and that still live; the inputs' own storage is free.

    largest: numbers in the largest of them. most: numbers in all that live at one time, at the worst moment.
    long: numbers in all that ever held `at_least` numbers or more, added up. made: numbers in all results.
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
                self._meet(item)
        return result

    def _meet(self, tensor: torch.Tensor) -> None:
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
        weakref.finalize(tensor, self._leave, address).atexit = False

    def _leave(self, address: int) -> None:
        self.users[address] -= 1
        if not self.users[address]:
            self.now -= self.sizes[address]


def tensors_alive(f: Callable, *args, long: int = 0, **kwargs):
    """(f(*args, **kwargs), what TensorsAlive saw on the way), without autograd."""
    with torch.no_grad(), TensorsAlive((args, kwargs), long) as seen:
        output = f(*args, **kwargs)
    return output, seen


def require_in_sight(numbers: int, fewest: int, what: str) -> None:
    """Raise WrongParts where fewer numbers were seen than every answer makes: the modes here see torch's operators, in
    the thread that calls the answer. what: is measured."""
    if numbers < fewest:
        raise WrongParts(f"{what} of your answer can only be measured if it computes with torch, in a single thread")
