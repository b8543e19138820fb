"""What probes of whole models share: random parameters, tables that answer, and when two outputs are the same."""

from __future__ import annotations

from collections import Counter

import torch
from torch import nn

SAME, MOVED = 3e-5, 1e-4  # of logits: as far apart as rounding takes them, and as far as anything that is heard


def row_of(numbers, table):
    """One row of the table for each row of whole numbers: equal numbers choose equal rows."""
    return (numbers * 7919 + 31).remainder(10_007).sum(-1).remainder(len(table))


def with_random_parameters(answer, init, seed):
    model = answer(*init.values())
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"{answer.__name__}(...) made a {type(model).__name__}, not an nn.Module")
    model.eval()
    parameters = list(model.parameters())
    generator, sizes = torch.Generator().manual_seed(seed), [parameter.numel() for parameter in parameters]
    with torch.no_grad():
        drawn = torch.rand(sum(sizes), generator=generator)  # at once, as models are small and calls are many
        of_matrices, of_vectors = (drawn - 0.5).split(sizes), (drawn * (1.6 - 0.4) + 0.4).split(sizes)
        for parameter, *numbers in zip(parameters, of_vectors, of_matrices, strict=True):
            parameter.copy_(numbers[parameter.dim() > 1].view(parameter.shape))
    return model


@torch.no_grad()
def give_numbers(model, width, hidden, phase) -> Counter:
    """Give all parameters of one kind the same numbers, whatever their names, and return how many there are of each.

    A kind is (nn.Linear or nn.Embedding, shape); bare tables count as embeddings, and a table that words go out by may
    be the one that they came in by. Of the vectors only the biases of layers from `width` to `hidden` channels are a
    kind; the others become 1 where they are 1, and else 0. A (width, width) matrix has rows that differ in sign alone,
    so that it does not matter which channels a head owns.
    """
    found: Counter = Counter()
    seen: set = set()
    for part in model.modules():
        linear = isinstance(part, nn.Linear)
        for parameter in part.parameters(recurse=False):
            shape = tuple(parameter.shape[-2:])
            if len(shape) < 2 and not (linear and (part.in_features, *shape) == (width, hidden)):
                parameter.fill_(float(bool((parameter == 1).all())))
                continue
            numbers = square_numbers(width, phase) if shape == (width, width) else numbers_of(shape, phase)
            parameter.copy_(numbers.expand(parameter.shape))
            found[nn.Linear if linear else nn.Embedding, shape] += 1
            found["shared"] += id(parameter) in seen
            seen.add(id(parameter))
    return +found


def numbers_of(shape, phase):
    """Fixed numbers without structure, of the size of 1 in all and of 1.5/√columns in a row of a matrix."""
    count = torch.arange(1, torch.Size(shape).numel() + 1, dtype=torch.float64)
    return (1.5 * (2 / shape[-1]) ** 0.5 * (count * count * 0.37 + count * 1.7 + phase).sin()).reshape(shape)


def square_numbers(width, phase):
    """(width, width), of rank 1: each row is the same but for its sign."""
    signs = torch.where((torch.arange(width) * 5 + 2) % 7 < 3, 1.0, -1.0).double()
    return signs[:, None] * (numbers_of((width,), phase) + 0.3 * signs * width**-0.5)


def numbers_in_blocks(model, logits, width, head=None, most=4) -> int:
    """How many numbers of a model's width × width matrices, or of multiples of it, have a say in the logits.

    With the width of a head the matrices may be cut by heads, (head, width). Who makes matrices for queries, keys and
    values in one and uses two of them has the numbers of two. Tables of words and places are none of these, and
    matrices that nobody uses are no fault. most: the largest multiple.
    """
    fits = lambda p: p.dim() > 1 and max(p.shape) <= most * width and p.numel() % (width * (head or width)) == 0  # noqa: E731
    count = 0
    for gradient in gradients_of(logits, [p for p in model.parameters() if fits(p)]):
        if gradient is not None:
            piece = width**2 if gradient.numel() % width**2 == 0 else gradient.numel()
            count += piece * int(gradient.reshape(-1, piece).any(-1).sum())
    return count


def serves_twice(model, run, wanted) -> bool:
    """Whether a norm of a model that was just made stands in two places: it is called again, and the weights of fewer
    than `wanted` norms (vectors that begin as ones) have a say in run(model).

    Whoever goes token by token calls a norm often, and a norm without weights has none to count: neither is a fault.
    """
    ones = {id(p): p for p in model.parameters() if p.dim() == 1 and len(p) > 1 and bool((p == 1).all())}
    norms = [part for part in model.modules() if any(id(p) in ones for p in part.parameters(recurse=False))]
    calls: Counter = Counter()
    hooks = [norm.register_forward_pre_hook(lambda part, _given: calls.update([id(part)])) for norm in norms]
    logits = run(model)
    for hook in hooks:
        hook.remove()
    return calls.total() > len(calls) and sum(have_a_say(logits, list(ones.values()))) < wanted


def have_a_say(logits, parameters) -> list[bool]:
    """Whether a gradient of the logits reaches each of some parameters."""
    return [g is not None and bool(g.any()) for g in gradients_of(logits, parameters)]


def moves_without_gradient(model, *inputs) -> bool:
    """Whether a model's logits move with some parameter that no gradient reaches."""
    logits, parameters = model(*inputs), list(model.parameters())
    unheard = [p for p, heard in zip(parameters, have_a_say(logits, parameters), strict=True) if not heard]
    if not unheard:
        return False
    with torch.no_grad():
        for parameter in unheard:
            parameter.mul_(-2.0)
        moved = gap_between(model(*inputs), logits) > MOVED
        for parameter in unheard:
            parameter.mul_(-0.5)
    return moved


def gradients_of(logits, parameters) -> list:
    """The gradient of a number made of all logits in each of some parameters, None where none arrives."""
    free = [p for p in parameters if p.requires_grad]  # others are frozen
    if not free or not logits.requires_grad:
        return [None for _ in parameters]
    found = iter(torch.autograd.grad(logits.tanh().square().sum(), free, allow_unused=True, retain_graph=True))
    return [next(found) if p.requires_grad else None for p in parameters]


def shape_of(x):
    return tuple(x.shape) if isinstance(x, torch.Tensor) else None


def gap_between(a, b) -> float:
    """The largest difference of two tensors."""
    return float((a.detach().double() - b.detach().double()).abs().max())
