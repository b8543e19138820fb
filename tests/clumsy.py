"""Wrong answers made from right ones, as learners submit them on the way, for every exercise."""

import functools
from collections.abc import Callable

import torch
from torch import nn


def mapped(change: Callable, tree):
    """Return the tree with `change` applied to every tensor."""
    if isinstance(tree, torch.Tensor):
        return change(tree)
    if isinstance(tree, dict):
        return {key: mapped(change, item) for key, item in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(change, item) for item in tree)
    return tree


def wrapped(right: Callable, call: Callable) -> Callable:
    """Return an answer that runs `call(right, args, kwargs)` instead of `right`, or of a module's forward."""
    if isinstance(right, type) and issubclass(right, nn.Module):

        class Clumsy(right):
            def forward(self, *args, **kwargs):
                return call(functools.partial(right.forward, self), args, kwargs)

        return Clumsy

    def clumsy(*args, **kwargs):
        return call(right, args, kwargs)

    return clumsy


def on_output(change: Callable) -> Callable:
    """Return a call that applies `change` to the output of the right answer."""
    return lambda right, args, kwargs: change(right(*args, **kwargs))


def on_tensors(change: Callable) -> Callable:
    return on_output(functools.partial(mapped, change))


def raising(error: Exception) -> Callable:
    def call(right, args, kwargs):
        raise error

    return call


def _misspelt(right, args, kwargs):
    return torch.sotfmax(right(*args, **kwargs))


def _missing_parameter(right, args, kwargs):
    if len(args) + len(kwargs) < 1:
        return right(*args, **kwargs)
    raise TypeError(f"answer() takes {len(args) - 1} positional arguments but {len(args)} were given")


def _transposed(x):
    return x.transpose(-2, -1) if x.dim() >= 2 else x


def _with_epsilon(x):
    return x + 1e-3 if x.is_floating_point() else x


def _rounded(x):
    return x.float().to(x.dtype) if x.is_floating_point() else x


# name -> (call, words that may occur in the name or label of the mistake that the check reports)
FORMS: dict[str, tuple[Callable, tuple[str, ...]]] = {
    "raises a ValueError": (raising(ValueError("no")), ()),
    "raises a TypeError": (raising(TypeError("no")), ()),
    "raises a RuntimeError": (raising(RuntimeError("no")), ()),
    "raises an IndexError": (raising(IndexError("no")), ()),
    "raises an assertion": (raising(AssertionError()), ()),
    "no return": (on_output(lambda output: None), ()),
    "wrong type": (on_output(lambda output: {"a", "b"}), ()),
    "a string": (on_output(str), ()),
    "a list": (on_tensors(lambda x: x.tolist()), ("list", "number")),
    "a NumPy array": (on_tensors(lambda x: x.detach().numpy()), ()),
    "missing parameter": (_missing_parameter, ()),
    "misspelt call": (_misspelt, ()),
    "an extra axis": (on_tensors(lambda x: x.unsqueeze(-1)), ("axis", "keep", "kept", "column")),
    "an axis in front": (on_tensors(lambda x: x[None]), ("axis", "batch", "kept", "row")),
    "transposed": (on_tensors(_transposed), ("transpos", "swap", "turned", "rows and columns")),
    "detached": (on_tensors(lambda x: x.detach()), ("detach", "cut off", "gradient")),
    "squeezed": (on_tensors(lambda x: x.squeeze()), ("squeeze", "no dimension")),
    "rounded to float32": (on_tensors(_rounded), ("float32", "round", "float")),
    "an epsilon added": (on_tensors(_with_epsilon), ("epsilon",)),
}

# These are wrong in every exercise.
ALWAYS_WRONG = ("raises a ValueError", "no return", "wrong type", "misspelt call")
