"""Lesson 9. Beside learner code: the stubs and scenarios. Only on numbers: nothing."""

import torch
from torch.nn import functional as F

from helpers.checking.scenarios import SCENARIOS, scenario
from helpers.checking.stubs import stub

SIZES = ("d_model", "num_heads", "d_ff")
ACTIVATIONS = {"gelu": F.gelu, "tanh": torch.tanh, "square": torch.square}


@stub
def activation(name):
    """A function of tensors to put between two linear layers."""
    return ACTIVATIONS[name]


def _numbers(rows, columns, phase, dtype):
    """A fixed (rows, columns) matrix without structure, entries of the size of 1/√rows."""
    count = torch.arange(1, rows * columns + 1, dtype=torch.float64)
    return ((count * 1.7 + phase).sin() * (2 / rows) ** 0.5).reshape(rows, columns).to(dtype)


@stub
def averaging(phase):
    """attention(x, mask=mask) -> (out, weights): averages the rows that the mask allows, then mixes columns."""

    def attention(query, key=None, value=None, mask=None):
        if key is not None and key.dtype == torch.bool:
            raise TypeError("attention received the mask as its key; pass the mask by name")
        B, T, D = query.shape
        allowed = torch.ones(B, 2, T, T, dtype=query.dtype)  # two heads
        allowed = allowed if mask is None else allowed * mask
        weights = (allowed / allowed.sum(-1, keepdim=True)).mean(dim=1)  # (B, T, T)
        key = query if key is None else key
        source = (query + key + (key if value is None else value)) / 3  # (B, T, D), x itself where it is all it gets
        return weights @ source @ _numbers(D, D, phase, query.dtype), weights

    return attention


@stub
def passing_on(pair):
    """A part that returns the very tensor that it gets; as an attention (pair=True) with no weights."""
    return (lambda query, key=None, value=None, mask=None: (query, None)) if pair else lambda x: x


@stub
def tokenwise_network(phase):
    """feed_forward(x): the sine of a linear layer, for each row separately."""
    return lambda x: torch.sin(x @ _numbers(x.shape[-1], x.shape[-1], phase, x.dtype) + phase)


@stub
def shrinking(phase):
    """norm(x): every row divided by its length, and shifted by `phase`."""
    return lambda x: x / x.pow(2).sum(-1, keepdim=True).add(1).sqrt() + phase


@stub
def looking_around(width):
    """f (T, D) -> (T, width): each row becomes an average of all rows, with weights that depend on them."""

    def f(x):
        weights = torch.softmax(x @ _numbers(x.shape[-1], x.shape[-1], 0.3, x.dtype) @ x.T, dim=-1)
        return weights @ x @ _numbers(x.shape[-1], width, 0.9, x.dtype)

    return f


@stub
def sliding(width):
    """f (T, D) -> (T, width): row t is computed from the rows t-1, t and t+1, with the same weights everywhere."""

    def f(x):
        around = F.pad(x, (0, 0, 1, 1))
        windows = torch.cat([around[:-2], around[1:-1], around[2:]], dim=-1)
        return windows @ _numbers(3 * x.shape[-1], width, 0.5, x.dtype)

    return f


@stub
def linear_layer(width, phase):
    """f (T, 4) -> (T, width), a float32 nn.Linear: a function with parameters of its own."""
    layer = torch.nn.Linear(4, width)
    layer.weight.data = _numbers(4, width, phase, torch.float32).T.contiguous()
    return layer


@stub
def running_products(width):
    """f (T, D) -> (T, width): row t is a nonlinear function of the rows 0 to t."""
    return lambda x: torch.tanh(x.cumsum(0) @ _numbers(x.shape[-1], width, 0.1, x.dtype)) * x.sum(-1, keepdim=True)


@scenario
def module_by_keywords(answer, args, kwargs):
    """As `module`, with keywords for the constructor: args = (init_kwargs, state, call_args, call_kwargs).

    Another module of the same sizes is made after it, with nothing else asked for.
    """
    init_kwargs, *rest = args

    def built():
        first = answer(**init_kwargs)
        answer(**{name: value for name, value in init_kwargs.items() if name in SIZES})
        return first

    built.__name__ = getattr(answer, "__name__", "answer")
    return SCENARIOS["module"](built, ((), *rest), kwargs)


@scenario
def influence_on_x(answer, args, kwargs):
    """args = (f, x): the answer, and whether x asks for a gradient, and holds one, only where it did before."""
    f, x = args
    output, asking = answer(f, x), x.detach().clone().requires_grad_()
    answer(f, asking)
    return {
        "influence": output,
        "x asks for no gradient, as before": not x.requires_grad and x.grad is None,
        "an x that asked for a gradient still does, and has none yet": asking.requires_grad and asking.grad is None,
    }, []
