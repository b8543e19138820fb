"""Scenarios of lesson 14's checks, which run next to learner code, and a view, which sees only numbers."""

import copy
import re

import torch
from torch import nn

from helpers.checking.registry import scenario, view
from helpers.checking.scenarios import WrongParts, loaded_module
from helpers.checking.vocabulary import Call

# The names in the state dict of a Decoder of LlamaBlocks.
OURS = re.compile(r"(blocks\.\d+\.(W_[qkvo]|norm[12]|feed_forward\.(gate|up|down))|tokens|norm|unembed)\.weight")


@view
def entries_of_a_decoder(args, kwargs, output):
    """The entries of a renamed state dict that a Decoder has; the others are not judged."""
    if not isinstance(output, dict):
        return output
    return {name: tensor for name, tensor in output.items() if OURS.fullmatch(str(name))}


@scenario
def entries_of_the_state(answer, args, kwargs):
    """args = (init_args, names): the missing and the unexpected names in the state dict of the learner's module."""
    init_args, names = args
    found = answer(*init_args).state_dict()
    return {
        "missing in its state": ", ".join(sorted(set(names) - set(found))) or "nothing",
        "in its state, and not asked for": ", ".join(sorted(set(found) - set(names))) or "nothing",
    }, []


# ---------------------------------------------------------------- LoRA


def _where(linear, built) -> str:
    """Where a module stores the layer that it was given, in words."""
    if any(part is linear for part in built.modules()):
        return "a part of the module"
    in_list = any(part is linear for item in vars(built).values() if isinstance(item, (list, tuple)) for part in item)
    return "in a list, where torch does not see it" if in_list else "not kept"


@scenario
def lora_at_the_start(answer, args, kwargs):
    """args = (linear, rank, x): the properties of a LoRA layer before training."""
    linear, rank, x = args
    again = answer(copy.deepcopy(linear), rank)
    expected = linear(x)
    built = answer(linear, rank)
    same = bool(torch.allclose(built(x), expected, rtol=1e-5, atol=1e-5))
    A, B = (getattr(built, name, None) for name in "AB")
    if not isinstance(A, torch.Tensor) or not isinstance(B, torch.Tensor):
        raise WrongParts(f"your module has no {'B' if isinstance(A, torch.Tensor) else 'A'}")
    return {
        "the output is that of the linear layer": same,
        "the linear layer that was given is": _where(linear, built),
        "what learns": ", ".join(sorted(name for name, item in built.named_parameters() if item.requires_grad)),
        "A": f"{tuple(A.shape)}, {A.dtype}",
        "B": f"{tuple(B.shape)}, {B.dtype}",
        "B is zeros": not bool(B.any()),
        "A is zeros": not bool(A.any()),
        "A is random": bool(A.std() > 0),
        "the rows of A differ": bool((A[1:] != A[0]).any()),
        "A is another one each time": bool((A != again.A).any()),
    }, []


@scenario
def lora_after_a_step(answer, args, kwargs):
    """args = (linear, rank, x): whether the first training step changes the output."""
    linear, rank, x = args
    built = answer(linear, rank)
    low_rank = [item for name, item in built.named_parameters() if name in ("A", "B") and item.requires_grad]
    with torch.enable_grad():
        before = built(x)
        if low_rank and before.requires_grad:
            before.square().sum().backward()
    with torch.no_grad():
        for parameter in low_rank:
            parameter -= 0.1 * (0 if parameter.grad is None else parameter.grad)
        return {"the first step of training changes the output": not torch.equal(before, built(x))}, []


@scenario
def lora_merged(answer, args, kwargs):
    """args as for `module`: the merged layer's output and other properties of it."""
    (linear, *sizes), state, (x,), _ = args
    built, _ = loaded_module(False, answer, Call((), {}, (linear, *sizes), state))
    before = {name: tensor.clone() for name, tensor in built.state_dict().items()}
    new = built.merged()
    if not isinstance(new, nn.Linear):
        raise TypeError(f"merged() returned a {type(new).__name__}, not an nn.Linear")
    after = built.state_dict()
    changed = [name for name in before if name not in after or not torch.equal(before[name], after[name])]
    changed = sorted({name if name in "AB" else "the old layer" for name in changed})
    old = {tensor.data_ptr() for tensor in (*built.parameters(), *linear.parameters())}
    with torch.no_grad():
        output = new(x)
    return {
        "the new layer has": "no bias" if new.bias is None else "a bias",
        "its output": output,
        "it is a new layer": new is not linear,
        "it shares memory with the old ones": any(tensor.data_ptr() in old for tensor in new.parameters()),
        "what merged() changed in the module": " and ".join(changed) or "nothing",
    }, []
