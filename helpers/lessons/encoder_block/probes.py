"""Lesson 9. Beside learner code: the stubs and scenarios. Only on numbers: nothing."""

from __future__ import annotations

import contextlib

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
            raise TypeError("attention got the mask where its key stands; the mask goes in by name")
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
    """feed_forward(x): every row by itself, bent by a sine."""
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
    """f (T, D) -> (T, width): row t is made of the rows t-1, t and t+1, with the same numbers everywhere."""

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
def steps():
    """f (T, D) -> (T, D): 1 above 0 and 0 elsewhere. Its derivatives are 0, and autograd knows of none."""
    return lambda x: (x > 0).to(x.dtype)


@stub
def parameters_alone(T, width):
    """f (T, D) -> (T, width): a parameter of its own, which asks for a gradient. x is not looked at."""
    numbers = torch.nn.Parameter(_numbers(T, width, 0.2, torch.float32))
    return lambda x: numbers * 1


@stub
def running_products(width):
    """f (T, D) -> (T, width): row t is bent and sees the rows 0 to t."""
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
def encoder_behavior(answer, args, kwargs):
    """args = (init_args, ids (B, T), length, numbers): what holds when every parameter is random, whatever its name.

    `length` tokens of every sentence are kept, the others are padding.
    """
    init_args, ids, length, numbers = args
    built = _made_random(answer(*init_args), numbers).double().eval()
    real = torch.arange(ids.shape[1]) < length
    mask = real[None, None, None].expand(len(ids), 1, 1, -1)
    with torch.no_grad():
        out, other_padding = built(ids, mask), built(torch.where(real, ids, (ids + 1) % init_args[0]), mask)
        swapped, alone = built(ids[:, [1, 0, *range(2, ids.shape[1])]]), built(ids)
        changed = built(torch.where(torch.arange(ids.shape[1]) == 0, (ids + 1) % init_args[0], ids))
        single = built(ids[:1], mask[:1])
    return {
        "what stands in the padding does not change kept tokens": _same(out[:, real], other_padding[:, real]),
        "padding that is masked makes a difference": not _same(out[:, real], alone[:, real]),
        "two words exchanged change the other words": not _same(swapped[:, 2:], alone[:, 2:]),
        "the first word reaches the last": not _same(changed[:, -1], alone[:, -1]),
        "a sentence does not depend on its neighbors in the batch": _same(single[0], out[0]),
    }, []


@scenario
def encoder_options(answer, args, kwargs):
    """args = (init_args, ids (B, T), mask, x (B, T, D), numbers): norm_first and activation, where they are taken.

    Of how many blocks an option makes what it makes of a block that is built with it by name, and whether the encoder
    is still words plus positions and one block after the other. The blocks are the answer's own.
    """
    init_args, ids, mask, x, numbers = args
    usual, found = answer(*init_args), {}
    for options in ({"norm_first": True}, {"activation": torch.tanh}, {"norm_first": True, "activation": torch.tanh}):
        words, followed, as_ever = " and ".join(options), len(usual.blocks), True
        with contextlib.suppress(TypeError), torch.no_grad():  # an option that is not offered
            built = _made_random(answer(*init_args, **options), numbers).double().eval()
            followed = sum(_same(block(x), _alike(block, init_args[1:4], options)(x)) for block in built.blocks)
            out = built.tokens(ids) + built.positions(torch.arange(ids.shape[1]))
            for block in built.blocks:
                out = block(out, mask)
            as_ever = _same(out, built(ids, mask))
        found[f"blocks with {words}"] = followed
        found[f"with {words}: words, positions, then the blocks with their mask, and nothing more"] = as_ever
    return found, []


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


def _alike(block, sizes, options):
    """A new block of the same class and with the same numbers, built with the options by name."""
    other = type(block)(*sizes, **options).double().eval()
    other.load_state_dict(block.state_dict())
    return other


def _made_random(module, numbers):
    """All parameters of a module filled from a list of random numbers, in the order in which they come."""
    start = 0
    for parameter in module.parameters():
        indices = (torch.arange(parameter.numel()) * 7 + start) % len(numbers)
        parameter.data = (numbers[indices] * parameter.shape[-1] ** -0.5).reshape(parameter.shape)
        start += parameter.numel()
    return module


def _same(a, b) -> bool:
    return bool((a - b).abs().max() < 1e-9)
