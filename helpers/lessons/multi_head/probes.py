"""Probes of lesson 8: scenarios and their attention module, which run alongside learner code."""

import torch
import torch.nn.functional as F
from torch import nn

from helpers.checking.registry import scenario

LAYERS = ("W_q", "W_k", "W_v", "W_o")


class MultiHeadAttention(nn.Module):
    """The four layers, and a forward with torch's attention, which answers may not use.

    It has the learner's name for the class, because error messages of PyTorch contain it.
    """

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.d_model, self.num_heads = d_model, num_heads
        for name in LAYERS:
            setattr(self, name, nn.Linear(d_model, d_model))

    def forward(self, query, key=None, value=None, mask=None):
        key = query if key is None else key
        parts = self.W_q(query), self.W_k(key), self.W_v(key if value is None else value)
        Q, K, V = (part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in parts)  # (B, H, T, D/H)
        units = torch.eye(K.shape[2], dtype=K.dtype).expand(*K.shape[:2], -1, -1)
        heads, weights = (F.scaled_dot_product_attention(Q, K, values, mask) for values in (V, units))
        return self.W_o(heads.transpose(1, 2).flatten(2)), weights


def _built(D, num_heads, state):
    module = MultiHeadAttention(D, num_heads).to(state["W_q.weight"].dtype)
    module.load_state_dict(state)
    return module.eval()


@scenario
def transplanted(answer, args, kwargs):
    """answer(mine, theirs), with modules made from args = (D, num_heads, their state, my state).

    what: the parameters of mine ("numbers"), whether they are independent ("apart"), or whether theirs is unchanged
    ("theirs").
    """
    D, num_heads, their_state, my_state = args
    dtype = my_state["W_q.weight"].dtype
    theirs = nn.MultiheadAttention(D, num_heads, batch_first=True).to(dtype)
    theirs.load_state_dict(their_state)
    mine = _built(D, num_heads, my_state)
    own = dict(mine.named_parameters())
    answer(mine, theirs)
    layers = {name: getattr(mine, name) for name in LAYERS}
    loaded = {f"{name}.{kind}": getattr(layer, kind) for name, layer in layers.items() for kind in ("weight", "bias")}
    tensors = loaded.values()
    storages = {tensor.untyped_storage().data_ptr() for tensor in theirs.parameters()}
    return {
        "numbers": {name: tensor.detach().clone() for name, tensor in loaded.items()},
        "apart": {
            "mine shares no memory with theirs": all(x.untyped_storage().data_ptr() not in storages for x in tensors),
            "mine can still be trained": all(tensor.requires_grad for tensor in tensors),
            "the parameters of mine are leaf tensors, not results of a computation": all(x.is_leaf for x in tensors),
            "mine still has its own parameters, and no new ones": all(x is own[name] for name, x in loaded.items()),
        },
        "theirs": {
            "theirs has the same weights as before": _holds(theirs, their_state),
            "theirs can still be trained": all(tensor.requires_grad for tensor in theirs.parameters()),
            "theirs is in training mode, as before": theirs.training,
        },
    }[kwargs["what"]], []


def _holds(module, state) -> bool:
    return all(torch.equal(value, state[name]) for name, value in module.state_dict().items())


@scenario
def importance(answer, args, kwargs):
    """answer(mha, x) with args = (D, num_heads, state, x). what: the "importance", or whether "mha" is unchanged."""
    D, num_heads, state, x = args
    mha = _built(D, num_heads, state)
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
            "mha has the same weights as before": _holds(mha, state),
            "mha still has its own parameters, and no new ones": all(p is own.get(n) for n, p in parameters.items()),
            "mha can still be trained": all(p.requires_grad and p.is_leaf for p in parameters.values()),
            "mha(x) returns the same as before": same,
        },
    }[kwargs["what"]], []
