"""Stubs and scenarios of lesson 9's checks, which run next to learner code."""

import torch
from torch.nn import functional as F

from helpers.checking.registry import scenario, stub
from helpers.checking.scenarios import loaded_module
from helpers.checking.stubs import mixed
from helpers.checking.vocabulary import Call

SIZES = ("d_model", "num_heads", "d_ff")
ACTIVATIONS = {"gelu": F.gelu, "tanh": torch.tanh, "square": torch.square, "none": lambda x: x}


@stub
def activation(name):
    """An elementwise function."""
    return ACTIVATIONS[name]


@stub
def averaging(phase):
    """attention(x, mask=mask) -> (out, weights): averages the rows that the mask allows, then mixes their channels."""

    def attention(query, key=None, value=None, mask=None):
        if key is not None and key.dtype == torch.bool:
            raise TypeError("attention received the mask as its key; pass the mask by name")
        B, T, D = query.shape
        allowed = torch.ones(B, 2, T, T, dtype=query.dtype)  # two heads
        allowed = allowed if mask is None else allowed * mask
        weights = (allowed / allowed.sum(-1, keepdim=True)).mean(dim=1)  # (B, T, T)
        key = query if key is None else key
        source = (query + key + (key if value is None else value)) / 3  # (B, T, D), equal to x in self-attention
        return mixed(weights @ source, D, phase), weights

    return attention


@stub
def passing_on():
    """attention(x, mask=mask) -> (x, None): returns the input tensor itself."""
    return lambda query, key=None, value=None, mask=None: (query, None)


@scenario
def module_by_keywords(answer, args, kwargs):
    """Like `module`, but with keywords for the constructor: args = (init_kwargs, state, call_args, call_kwargs).

    Before the call, a second module of the same sizes is created with default options, which must not affect the first.
    """
    init, state, *call = args
    built, leaves = loaded_module(False, answer, Call((), {}, init, state))
    answer(**{name: init[name] for name in SIZES if name in init})
    return built(*call[0], **call[1]), leaves


@scenario
def influence_on_x(answer, args, kwargs):
    """args = (f, x): the answer for an x that requires a gradient, and whether x still does and its grad is None."""
    f, x = args[0], args[1].requires_grad_()
    try:
        output = answer(f, x).detach()
        unchanged = x.requires_grad and x.grad is None
    finally:  # even after an error, which would otherwise be reported as a change of x
        x.requires_grad_(False)
    return {"influence": output, "x still requires a gradient, and x.grad is still None": unchanged}, []
