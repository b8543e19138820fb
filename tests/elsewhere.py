"""An imitated device: its tensors hold real numbers but refuse operations with tensors on the CPU.

As with a GPU, only tensors without dimensions and indices may come from the CPU; others must be moved first.
"""

import contextlib

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = torch.device("meta")  # the only absent device that torch accepts for a tensor
MOVES = ("_to_copy", "copy_", "index", "index_put", "index_put_", "_index_put_impl_", "set_")


class Elsewhere(torch.Tensor):
    """A tensor on DEVICE; `here` holds its values."""

    @staticmethod
    def __new__(cls, here: torch.Tensor):
        return torch.Tensor._make_wrapper_subclass(
            cls, here.size(), here.stride(), here.storage_offset(), dtype=here.dtype, device=DEVICE
        )

    def __init__(self, here: torch.Tensor):
        self.here = here.detach()

    def tolist(self):
        return self.here.tolist()

    def __repr__(self):
        return f"Elsewhere({self.here!r})"

    @classmethod
    def __torch_dispatch__(cls, op, types, args=(), kwargs=None):
        return run(op, args, kwargs or {})


class Factories(TorchDispatchMode):
    """While active, tensors created on DEVICE hold values."""

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        return run(op, args, kwargs or {})


class Literals(TorchFunctionMode):
    """The same for torch.tensor, which would drop the values on this device before Factories could keep them."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.tensor and kwargs.get("device") == DEVICE:
            return Elsewhere(torch.tensor(*args, **kwargs | {"device": "cpu"}))
        return function(*args, **kwargs)


@contextlib.contextmanager
def elsewhere():
    """A context in which tensors can be created on DEVICE."""
    with torch.no_grad(), Factories(), Literals():
        yield


def run(op, args, kwargs):
    """Apply the operator to the values; raise RuntimeError if it mixes tensors of two devices."""
    tensors = [item for item in tree_flatten((args, kwargs))[0] if isinstance(item, torch.Tensor)]
    away = [item for item in tensors if isinstance(item, Elsewhere)]
    name = op.overloadpacket.__name__
    if away and name not in MOVES:
        for other in tensors:
            if not isinstance(other, Elsewhere) and other.dim():
                raise RuntimeError(f"{name} mixes two devices: a tensor {tuple(other.shape)} was made on the processor")
    wanted = kwargs.get("device")
    goes = bool(away) if wanted is None else torch.device(wanted) == DEVICE
    if name in ("copy_", "index", "index_put", "index_put_", "_index_put_impl_"):
        goes = isinstance(args[0], Elsewhere)
    kwargs = kwargs if wanted is None else kwargs | {"device": torch.device("cpu")}
    result = op(*tree_map(_here, args), **tree_map(_here, kwargs))
    if not goes:
        return result
    if name.endswith("_") and away and not name.startswith("__"):
        return args[0]
    return tree_map(lambda item: Elsewhere(item) if isinstance(item, torch.Tensor) else item, result)


def _here(item):
    return item.here if isinstance(item, Elsewhere) else item


def moved(tree):
    """Return the tree with its tensors and modules moved to DEVICE."""

    def move(item):
        if isinstance(item, nn.Module):
            return move_module(item)
        return Elsewhere(item) if isinstance(item, torch.Tensor) and not isinstance(item, Elsewhere) else item

    return tree_map(move, tree)


def move_module(module: nn.Module) -> nn.Module:
    for part in module.modules():
        for name, value in part._parameters.items():
            if value is not None:
                part._parameters[name] = nn.Parameter(Elsewhere(value.detach()), requires_grad=False)
        for name, value in part._buffers.items():
            if value is not None:
                part._buffers[name] = Elsewhere(value)
    return module


def tensors_in(tree) -> list[torch.Tensor]:
    return [item for item in tree_flatten(tree)[0] if isinstance(item, torch.Tensor)]
