"""Lesson 9. Beside learner code: the stubs and scenarios. Only on numbers: nothing."""

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
    """A function of each number of a tensor."""
    return ACTIVATIONS[name]


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
        return mixed(weights @ source, D, phase), weights

    return attention


@stub
def passing_on():
    """attention(x, mask=mask) -> (x, None): returns the very tensor that it gets."""
    return lambda query, key=None, value=None, mask=None: (query, None)


@scenario
def module_by_keywords(answer, args, kwargs):
    """As `module`, with keywords for the constructor: args = (init_kwargs, state, call_args, call_kwargs).

    Another module of the same sizes is made after it, with nothing else asked for.
    """
    init, state, *call = args
    built, leaves = loaded_module(False, answer, Call((), {}, init, state))
    answer(**{name: init[name] for name in SIZES if name in init})
    return built(*call[0], **call[1]), leaves


@scenario
def influence_on_x(answer, args, kwargs):
    """args = (f, x): the answer for an x that asks for a gradient, and whether it still does and holds none."""
    f, x = args[0], args[1].requires_grad_()
    output = answer(f, x).detach()
    asks = x.requires_grad and x.grad is None
    x.requires_grad_(False)
    return {"influence": output, "an x that asked for a gradient still does, and has none yet": asks}, []
