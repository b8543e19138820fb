"""Lesson 8. Beside learner code: the scenarios and their module of heads. Only on numbers: nothing."""

import torch
import torch.nn.functional as F
from torch import nn

from helpers.checking.registry import scenario

LAYERS = ("W_q", "W_k", "W_v", "W_o")


class MultiHeadAttention(nn.Module):
    """The four layers and a forward of torch's own attention: an answer that uses it is refused.

    Messages of PyTorch name the class, and a learner knows it by this name.
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
    """args = (D, num_heads, their state, my state): answer(mine, theirs), and `what` then: the numbers of mine, whether
    they are apart from theirs, whether theirs is as it was."""
    D, num_heads, their_state, my_state = args
    dtype = my_state["W_q.weight"].dtype
    theirs = nn.MultiheadAttention(D, num_heads, batch_first=True).to(dtype)
    theirs.load_state_dict(their_state)
    mine = _built(D, num_heads, my_state)
    own = dict(mine.named_parameters())
    answer(mine, theirs)
    layers = {name: getattr(mine, name) for name in LAYERS}
    numbers = {f"{name}.{kind}": getattr(layer, kind) for name, layer in layers.items() for kind in ("weight", "bias")}
    tensors = numbers.values()
    homes = {tensor.untyped_storage().data_ptr() for tensor in theirs.parameters()}
    return {
        "numbers": {name: tensor.detach().clone() for name, tensor in numbers.items()},
        "apart": {
            "mine shares no memory with theirs": all(x.untyped_storage().data_ptr() not in homes for x in tensors),
            "mine can still be trained": all(tensor.requires_grad for tensor in tensors),
            "to autograd the numbers of mine are parameters, not results of a computation": all(
                tensor.is_leaf for tensor in tensors
            ),
            "mine has the parameters that it had, and no new ones": all(x is own[name] for name, x in numbers.items()),
        },
        "theirs": {
            "theirs holds the numbers that it held": _holds(theirs, their_state),
            "theirs can still be trained": all(tensor.requires_grad for tensor in theirs.parameters()),
            "theirs is in training mode, as before": theirs.training,
        },
    }[kwargs["what"]], []


def _holds(module, state) -> bool:
    return all(torch.equal(value, state[name]) for name, value in module.state_dict().items())


@scenario
def importance(answer, args, kwargs):
    """args = (D, num_heads, state, x), `what`: answer(mha, x), or what is still true of mha then."""
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
            "mha holds the numbers that it held": _holds(mha, state),
            "mha has the parameters that it had, and no new ones": all(p is own.get(n) for n, p in parameters.items()),
            "mha can still be trained": all(p.requires_grad and p.is_leaf for p in parameters.values()),
            "mha(x) gives what it gave": same,
        },
    }[kwargs["what"]], []
