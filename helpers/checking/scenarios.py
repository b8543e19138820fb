"""Scenarios: ways to call an answer other than answer(*args, **kwargs).

A scenario takes (answer, args, kwargs) and returns the output and the parameters whose gradients count.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.utils._pytree import tree_leaves

from helpers.checking.forbidden import OperatorMode

SCENARIOS: dict[str, Callable] = {}


def scenario(function: Callable) -> Callable:
    """Register `function` as a scenario under its own name."""
    SCENARIOS[function.__name__] = function
    return function


@scenario
def module(answer, args, kwargs):
    """args = (init_args, state, call_args, call_kwargs): build, load the state (a dict of tensors), call."""
    init_args, state, call_args, call_kwargs = args
    built = answer(*init_args)
    if not isinstance(built, torch.nn.Module):
        raise TypeError(f"{answer.__name__}(...) made a {type(built).__name__}, not an nn.Module")
    own = dict(built.named_parameters()) | dict(built.named_buffers())
    for name, value in state.items():
        if name not in own:
            raise AttributeError(f"your module has no parameter {name}; it has {', '.join(own) or 'none'}")
        if own[name].shape != value.shape:
            shapes = f"{tuple(own[name].shape)} instead of {tuple(value.shape)}"
            raise AttributeError(f"your parameter {name} has shape {shapes}")
    dtypes = {value.dtype for value in state.values() if value.is_floating_point()}
    if dtypes:
        built = built.to(dtypes.pop())
    built.load_state_dict(dict(state), strict=False)
    built.eval()
    parameters = dict(built.named_parameters())
    leaves = [parameters[name] for name in state if name in parameters]
    return built(*call_args, **call_kwargs), leaves


@scenario
def at_softmax(answer, args, kwargs):
    """args = (scores, *rest): call the answer on softmax(scores) and rest. Gradients see probability vectors only."""
    scores, *rest = args
    return answer(torch.softmax(scores, dim=-1), *rest, **kwargs), []


@scenario
def kept_entries(answer, args, kwargs):
    """Lesson 5: answer(scores, mask) with blocked entries set to 0, so that no gradient is asked for at a fill."""
    scores, mask = args
    output = answer(scores, mask, **kwargs)
    return torch.where(mask, output, torch.zeros_like(output)), []


@scenario
def finite_entries(answer, args, kwargs):
    """Lesson 6: answer(x, ...) with entries at -inf set to 0, so that no gradient is asked for at them."""
    output = answer(*args, **kwargs)
    return torch.where(args[0].isfinite(), output, torch.zeros_like(output)), []


@scenario
def one_pass(answer, args, kwargs):
    """Lesson 6: whether answer(score_blocks, value_blocks) works with a block's values before it saw all scores.

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


@scenario
def linear_layers(answer, args, kwargs):
    """Lesson 7: args = (init_args, names): build the module and describe its layers of these names."""
    init_args, names = args
    built = answer(*init_args)
    return {name: _described(getattr(built, name, None)) for name in names}, []


def _described(layer) -> str:
    if not isinstance(layer, torch.nn.Linear):
        return "missing" if layer is None else type(layer).__name__
    bias = "without bias" if layer.bias is None else "with a bias"
    return f"nn.Linear from {layer.in_features} to {layer.out_features}, {bias}"


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


@scenario
def in_little_memory(answer, args, kwargs):
    """Lesson 7: answer(Q, K, V, block), and whether every tensor on the way was smaller than all scores together."""
    Q, K = args[:2]
    all_scores = Q.shape[:-1].numel() * K.shape[-2]
    output, numbers = largest_tensor(answer, *args, **kwargs)
    return {"output": output, "every tensor holds fewer than T_q · T_k numbers": numbers < all_scores}, []
