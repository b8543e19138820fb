"""Scenarios that several lessons use: ways to call an answer other than answer(*args, **kwargs)."""

import copy

import torch

from helpers.checking.codec import mapped, plain
from helpers.checking.compare import difference
from helpers.checking.registry import scenario
from helpers.checking.vocabulary import MODULE, Call

MOST_NAMES = 8  # names of parameters in one message


class WrongParts(AttributeError):
    """A module is not what the exercise asks for, usually in its parameters. The learner sees only the message."""


@scenario
def module(answer, args, kwargs):
    """args = (init_args, state, call_args, call_kwargs): build the module, load the dict of tensors, and call it."""
    call = Call.of(MODULE, args, kwargs={})
    built, leaves = loaded_module(False, answer, call)
    return built(*call.args, **call.kwargs), leaves


@scenario
def parts_made(answer, args, kwargs):
    """args = (init_args, names): build the module and describe its attributes of these names."""
    init, names = args
    built = answer(*init)
    if missing := [name for name in names if not hasattr(built, name)]:
        raise WrongParts(f"your module has no {missing[0]}; keep it in self.{missing[0]}")
    return {name: _described(getattr(built, name)) for name in names}, []


def _described(part):
    """A sentence for a linear layer, an int itself, and the name of the type for everything else."""
    if not isinstance(part, torch.nn.Linear):
        return part if isinstance(part, int) else type(part).__name__
    bias = "without bias" if part.bias is None else "with a bias"
    return f"nn.Linear from {part.in_features} to {part.out_features}, {bias}"


@scenario
def called_again(answer, args, kwargs):
    """args = (first, second), the arguments of two calls: both outputs, compared only after the second call."""
    return [answer(*call) for call in args], []


@scenario
def module_called_again(answer, args, kwargs):
    """args = (init_args, state, first, second): the same for one module. kwargs may contain training=True.

    In evaluation mode an answer may contain dropout. In training mode the last call is repeated, and WrongParts is
    raised if it gives something else, because no known mistake could explain random numbers.
    """
    init, state, *calls = args
    training, last = kwargs.get("training", False), copy.deepcopy(calls[-1])
    built, _ = loaded_module(training, answer, Call((), {}, init, state))
    outputs, leaves = called_again(built, calls, {})
    if training and difference(plain(outputs[-1]), plain(built(*last))) is not None:
        raise WrongParts(
            "in training mode, your module gives two results for the same numbers, one call right after the other "
            "(a dropout? something kept from the call before?)"
        )
    return outputs, leaves


def _not_found(built: torch.nn.Module, name: str, has: list[str]) -> str:
    """The message for a module without the parameter `name`, given the names that it has."""
    current, path = built, name.split(".")
    why = ""
    for depth, part in enumerate(path, start=1):
        if isinstance(current, torch.nn.Module) and depth < len(path) and not hasattr(current, part):
            parts = ", ".join(dict(current.named_children())) or "none"
            where = f"your {'.'.join(path[: depth - 1])}" if depth > 1 else "your module"
            return f"{where} has no part called {part}; its parts are: {parts}"
        current = getattr(current, part, None)
        if isinstance(current, (list, tuple, dict, torch.Tensor)) and not isinstance(current, torch.nn.Parameter):
            kind = "tensor" if isinstance(current, torch.Tensor) else type(current).__name__
            why = f". Your {'.'.join(path[:depth])} is a plain {kind}, in which PyTorch finds no parameters"
            break
    more = f" and {len(has) - MOST_NAMES} more" if len(has) > MOST_NAMES else ""
    return f"your module has no parameter {name}; it has {', '.join(has[:MOST_NAMES]) or 'none'}{more}{why}"


def loaded_module(training: bool, answer, call: Call):
    """The module that `call` asks for, with the call's state loaded, and its parameters in the order of the state.

    Raises WrongParts if its parameters are not the ones in the state, and TypeError if it is not a module.
    """
    state = call.state
    built = answer(**call.init) if isinstance(call.init, dict) else answer(*call.init)
    if not isinstance(built, torch.nn.Module):
        raise TypeError(f"{answer.__name__}(...) made a {type(built).__name__}, not an nn.Module")
    tensors = dict(built.named_parameters(remove_duplicate=False)) | dict(built.named_buffers())
    first_name = {}  # by the id of each tensor, because one tensor may have several names
    for name, value in state.items():
        if name not in tensors:
            raise WrongParts(_not_found(built, name, list(tensors)))
        if tensors[name].shape != value.shape:
            shapes = f"{tuple(tensors[name].shape)} instead of {tuple(value.shape)}"
            raise WrongParts(f"your parameter {name} has shape {shapes}")
        twin = first_name.setdefault(id(tensors[name]), name)
        if twin != name:
            raise WrongParts(f"{twin} and {name} of your module are one and the same tensor; each needs its own")
    for name, tensor in tensors.items():
        layer = name.removesuffix(".bias")
        if layer != name and name not in state and f"{layer}.weight" in state and bool(tensor.any()):
            raise WrongParts(f"your module has a parameter {name}; the exercise asks for {layer} without a bias")
    dtypes = {value.dtype for value in state.values() if value.is_floating_point()}
    if dtypes:
        built = built.to(dtypes.pop())
    built.load_state_dict(dict(state), strict=False)
    built.train(training)
    generator = torch.default_generator  # reset it, because only random numbers drawn in the call matter
    generator.manual_seed(generator.initial_seed())
    parameters = dict(built.named_parameters())
    return built, [parameters[name] for name in state if name in parameters]


@scenario
def on_views(answer, args, kwargs):
    """Call the answer (or build and call it as `module` does) on inputs that are not contiguous in memory.

    The inputs are changed here because a stored key contains only contiguous tensors.
    """

    def as_view(item):
        """A tensor of two or more axes with the same values, but as the transpose of a contiguous tensor."""
        if not isinstance(item, torch.Tensor) or item.dim() < 2:
            return item
        axes = max(-3, -item.dim()), -2 if item.dim() > 2 else -1
        return item.transpose(*axes).contiguous().transpose(*axes)

    args, kwargs = mapped(args, as_view), mapped(kwargs, as_view)
    # A module's are (init, state, args, kwargs). The answer may also be a function that makes a module.
    builds = len(args) == 4 and isinstance(args[1], dict) and isinstance(args[3], dict)
    return module(answer, args, kwargs) if builds else (answer(*args, **kwargs), [])


@scenario
def finite_entries(answer, args, kwargs):
    """answer(x, ...) with 0 where x or the output is not finite, so that no gradient is requested at masked entries."""
    output = answer(*args, **kwargs)
    return torch.where(output.isfinite() & args[0].isfinite(), output, torch.zeros_like(output)), []


@scenario
def finite_gradients(answer, args, kwargs):
    """Whether all gradients of the sum of answer(...) with respect to its float tensors are finite."""
    leaves = [x.detach().clone().requires_grad_() for x in args]
    with torch.enable_grad():
        output = answer(*leaves, **kwargs)
    found = torch.autograd.grad(output.sum(), leaves, allow_unused=True)
    return {"every gradient is finite": all(grad is None or bool(grad.isfinite().all()) for grad in found)}, []


@scenario
def at_softmax(answer, args, kwargs):
    """args = (scores, *rest): call the answer on softmax(scores) and rest. Gradients are with respect to the scores."""
    scores, *rest = args
    return answer(torch.softmax(scores, dim=-1), *rest, **kwargs), []


# ---------------------------------------------------------------- for scenarios with whole models

SAME = 3e-5  # logits may differ by this much through rounding alone


def causal_logits(table, ids, start=0):
    """ids (B, T) -> (B, T, V): rows of a table (rows, V), each selected by `start` and the ids up to its position."""
    positions = torch.arange(1, ids.shape[1] + 1)  # (T,)
    prefix = (ids * positions).cumsum(-1) + start  # (B, T)
    return table[(prefix * 7919 + 31).remainder(10_007).remainder(len(table))]  # (B, T, V)


def require_ids(ids, wish, batch=None):
    """Raise TypeError or ValueError, whose message begins with `wish`, if the ids are not a LongTensor (B, T)."""
    if not isinstance(ids, torch.Tensor):
        raise TypeError(f"{wish}; it got a {type(ids).__name__}")
    fits = ids.dim() == 2 and ids.dtype == torch.int64 and batch in (None, ids.shape[0])
    if not fits:
        raise ValueError(f"{wish}; it got {ids.dtype} of shape {tuple(ids.shape)}")


def shape_of(x):
    return tuple(x.shape) if isinstance(x, torch.Tensor) else None


def gap_between(a, b) -> float:
    return float((a.detach().double() - b.detach().double()).abs().max())
