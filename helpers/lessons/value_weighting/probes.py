"""Lesson 7. Beside learner code: the scenarios. Only on numbers: nothing."""

import torch

from helpers.checking.model_probes import layers_of
from helpers.checking.scenarios import module_in, scenario
from helpers.checking.tensor_memory import require_in_sight, tensors_alive


@scenario
def linear_layers(answer, args, kwargs):
    """args = (init_args, names): build the module and describe its layers of these names."""
    init_args, names = args
    return layers_of(answer(*init_args), names), []


@scenario
def module_in_training(answer, args, kwargs):
    """args = (init_args, state, call_args, call_kwargs): as `module`, in the mode in which modules are trained."""
    return module_in(True, answer, args)


@scenario
def called_twice(answer, args, kwargs):
    """args = (init_args, x): one module in training mode, called twice on the same x."""
    init_args, x = args
    built = answer(*init_args).train()
    once, again = (built(x) for _ in range(2))
    return {"two calls with the same x give the same": bool(torch.equal(once, again))}, []


@scenario
def with_its_gradient(answer, args, kwargs):
    """answer(before, after), whether the gradient of its sum is finite, and that gradient beside zero vectors.

    At a zero vector itself a gradient of any finite size is right.
    """
    before, after = (tensor.detach().clone().requires_grad_() for tensor in args)
    with torch.enable_grad():
        output = answer(before, after, **kwargs)
        grads = torch.autograd.grad(output.sum(), (before, after))
    others = before.detach().norm(dim=-1) * after.detach().norm(dim=-1) > 0  # (..., T)
    return {
        "output": output.detach(),
        "every gradient is finite": all(bool(grad.isfinite().all()) for grad in grads),
        "gradients where neither vector is zero": [grad[others] for grad in grads],
    }, []


@scenario
def in_little_memory(answer, args, kwargs):
    """answer(Q, K, V, block), and whether every tensor on the way was smaller than all scores together."""
    output, seen, scores = _measured(answer, args, kwargs)
    return {"output": output, "every tensor holds fewer than T_q · T_k numbers": seen.largest < scores}, []


@scenario
def in_little_memory_together(answer, args, kwargs):
    """The same for all tensors that live at one time; and whether rows of scores over all T_k keys came into being.

    For sizes at which blocks are far smaller than rows, and rows far longer than a key or a value is wide.
    """
    output, seen, scores = _measured(answer, args, kwargs)
    return {
        "output": output,
        "every tensor holds fewer than T_q · T_k numbers": seen.largest < scores,
        "all tensors of one moment hold fewer than T_q · T_k numbers together": seen.most < scores,
        "no row of scores spans all T_k keys": seen.long < scores,
    }, []


def _measured(answer, args, kwargs):
    """The output, what was seen of memory, and how many scores there are in all."""
    Q, K = args[:2]
    rows = Q.shape[:-2].numel() * K.shape[-2]  # numbers in one row of scores for each leading index
    output, seen = tensors_alive(answer, *args, long=rows, **kwargs)
    scores = Q.shape[-2] * rows
    require_in_sight(seen.made, scores, "the memory")
    return output, seen, scores
