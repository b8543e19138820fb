"""Lesson 8. Beside learner code: the scenarios and their module of heads. Only on numbers: the views."""

import torch
import torch.nn.functional as F
from torch import nn

from helpers.checking.model_probes import layers_of
from helpers.checking.scenarios import WrongParts, scenario
from helpers.checking.views import view

LAYERS = ("W_q", "W_k", "W_v", "W_o")


class _Layers(nn.Module):
    """The four layers of a MultiHeadAttention and its number of heads, without a forward."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.d_model, self.num_heads = d_model, num_heads
        for name in LAYERS:
            setattr(self, name, nn.Linear(d_model, d_model))


class _Heads(_Layers):
    """The same with a forward made of torch's own attention, head after head: an answer that uses it is refused."""

    def forward(self, query, key=None, value=None, mask=None):
        source = key if key is not None else query
        value = value if value is not None else source
        key = source
        parts = (self.W_q(query), self.W_k(key), self.W_v(value))
        each = list(zip(*(part.chunk(self.num_heads, dim=-1) for part in parts), strict=True))
        if mask is not None:
            shape = (len(query), self.num_heads, query.shape[1], key.shape[1])
            masks = mask.expand(shape).unbind(1)
        else:
            masks = [None] * self.num_heads
        out = [F.scaled_dot_product_attention(q, k, v, m) for (q, k, v), m in zip(each, masks, strict=True)]
        units = torch.eye(key.shape[1], dtype=query.dtype).expand(len(key), -1, -1)
        seen = [F.scaled_dot_product_attention(q, k, units, m) for (q, k, _), m in zip(each, masks, strict=True)]
        return self.W_o(torch.cat(out, dim=-1)), torch.stack(seen, dim=1)


# Messages of PyTorch name the class, and a learner knows it by its own name.
_Layers.__name__ = _Heads.__name__ = "MultiHeadAttention"


def _built(kind, D, num_heads, state):
    module = kind(D, num_heads).to(state["W_q.weight"].dtype)
    module.load_state_dict(state)
    return module.eval()


@scenario
def attention_layers(answer, args, kwargs):
    """args = (init_args,): what a new module of many heads is made of."""
    built = answer(*args[0])
    if not hasattr(built, "num_heads"):
        raise WrongParts("your module has no num_heads; keep the number in self.num_heads")
    return layers_of(built, LAYERS) | {"num_heads": built.num_heads}, []


@scenario
def attention_made(answer, args, kwargs):
    """args = (init_args,): whether a new module of many heads can be made at all."""
    answer(*args[0])
    return "a module", []


@scenario
def transplanted(answer, args, kwargs):
    """args = (D, num_heads, their state, my state): answer(mine, theirs), and what both are made of then."""
    D, num_heads, their_state, my_state = args
    dtype = my_state["W_q.weight"].dtype
    theirs = nn.MultiheadAttention(D, num_heads, batch_first=True).to(dtype)
    theirs.load_state_dict(their_state)
    mine = _built(_Layers, D, num_heads, my_state)
    own = dict(mine.named_parameters())
    answer(mine, theirs)
    layers = {name: getattr(mine, name) for name in LAYERS}
    numbers = {f"{name}.{kind}": getattr(layer, kind) for name, layer in layers.items() for kind in ("weight", "bias")}
    homes = {tensor.untyped_storage().data_ptr() for tensor in theirs.parameters()}
    return {
        "numbers": {name: tensor.detach().clone() for name, tensor in numbers.items()},
        "apart": all(tensor.untyped_storage().data_ptr() not in homes for tensor in numbers.values()),
        "can be trained": all(tensor.requires_grad for tensor in numbers.values()),
        "leaves": all(tensor.is_leaf for tensor in numbers.values()),
        "the same parameters": all(tensor is own[name] for name, tensor in numbers.items()),
        "theirs": {
            "theirs holds the numbers that it held": _holds(theirs, their_state),
            "theirs can still be trained": all(tensor.requires_grad for tensor in theirs.parameters()),
            "theirs is in training mode, as before": theirs.training,
        },
    }, []


def _holds(module, state) -> bool:
    return all(torch.equal(value, state[name]) for name, value in module.state_dict().items())


@view
def what_was_copied(args, kwargs, output):
    """The eight tensors of the learner's module."""
    return output["numbers"]


@view
def apart_from_theirs(args, kwargs, output):
    return {
        "mine shares no memory with theirs": output["apart"],
        "mine can still be trained": output["can be trained"],
        "to autograd the numbers of mine are parameters, not results of a computation": output["leaves"],
        "mine has the parameters that it had, and no new ones": output["the same parameters"],
    }


@view
def theirs_is_unchanged(args, kwargs, output):
    return output["theirs"]


@scenario
def importance(answer, args, kwargs):
    """args = (D, num_heads, state, x): answer(mha, x), and what is still true of mha then."""
    D, num_heads, state, x = args
    mha = _built(_Heads, D, num_heads, state)
    with torch.no_grad():
        before = mha(x)[0]
    own = dict(mha.named_parameters())
    output = answer(mha, x)
    with torch.no_grad():
        same = torch.equal(mha(x)[0], before)
    parameters = dict(mha.named_parameters())
    return {
        "importance": output,
        "mha": {
            "mha holds the numbers that it held": _holds(mha, state),
            "mha has the parameters that it had, and no new ones": all(p is own.get(n) for n, p in parameters.items()),
            "mha can still be trained": all(p.requires_grad and p.is_leaf for p in parameters.values()),
            "mha(x) gives what it gave": same,
        },
    }, []


@view
def importance_alone(args, kwargs, output):
    """One number for each head."""
    return output["importance"]


@view
def left_as_it_was(args, kwargs, output):
    return output["mha"]
