"""Lesson 9. Beside learner code: the stubs and scenarios. Only on numbers: nothing."""

from __future__ import annotations

import functools

import torch
from torch.nn import functional as F

from helpers.checking.scenarios import SCENARIOS, scenario
from helpers.checking.stubs import stub

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
        weights = torch.ones(query.shape[-2], query.shape[-2], dtype=query.dtype)
        weights = weights if mask is None else weights * mask.reshape(mask.shape[-2:])
        weights = weights / weights.sum(-1, keepdim=True)
        key = query if key is None else key
        source = (key + (key if value is None else value)) / 2  # (B, T, D), x itself where it is all that is given
        return weights @ source @ _numbers(query.shape[-1], query.shape[-1], phase, query.dtype), weights

    return attention


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
def running_products(width):
    """f (T, D) -> (T, width): row t is bent and sees the rows 0 to t."""
    return lambda x: torch.tanh(x.cumsum(0) @ _numbers(x.shape[-1], width, 0.1, x.dtype)) * x.sum(-1, keepdim=True)


@scenario
def module_by_keywords(answer, args, kwargs):
    """As `module`, with keywords for the constructor: args = (init_kwargs, state, call_args, call_kwargs)."""
    init_kwargs, *rest = args
    built = functools.partial(answer, **init_kwargs)
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
    """args = (init_args, x, numbers): whether norm_first and activation, where they are taken, change every block."""
    init_args, x, numbers = args
    with torch.no_grad():
        usual = _made_random(answer(*init_args), numbers).double().eval()
        found = {}
        for name, value in (("norm_first", True), ("activation", torch.tanh)):
            try:
                other = answer(*init_args, **{name: value})
            except TypeError:  # not offered
                found[f"{name} reaches every block"] = True
                continue
            pairs = zip(_made_random(other, numbers).double().eval().blocks, usual.blocks, strict=True)
            found[f"{name} reaches every block"] = all(not _same(one(x), two(x)) for one, two in pairs)
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
