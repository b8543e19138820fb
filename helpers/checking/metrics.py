"""Measures: how good an answer is, for exercises whose answer is a trained model.

Such an answer is judged by what it says of inputs that nobody has seen, not by equality with a reference. Its cases
carry the truth themselves (`Case(args, truth=...)`), and a metric turns all truths and all outputs of the answer into
a share of the points:

    @metric
    def exact_translations(truths, outputs):
        right = sum(a == b for truth, output in zip(truths, outputs) for a, b in zip(truth, output))
        ...
        return Score(share, passed, f"{right} of {total} unseen sentences exactly right")

A metric sees numbers only, never learner code; in the judge it runs outside the sandbox. A lesson's own metrics
stand in its room, helpers/lessons/TOPIC/probes.py.

An output that reaches a metric is of the truth's type and shape (see `misfit`). Where the truth is not of the kind
that the answer returns, it is a dict with the entry "shape": the answer then returns a float tensor of that shape,
and the rest of the dict is the metric's own business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from helpers.checking.compare import KINDS, Difference
from helpers.checking.registry import Registry

METRICS = Registry()


@dataclass(frozen=True)
class Score:
    """What a metric says.

    share: of the points, from 0 to 1. passed: whether it is good enough. words: what was measured, a sentence that a
    learner reads. mistake: the name of what went wrong, where the numbers show it: a Mistake of the answer key (whose
    label and hint are then shown), or any other name, which is shown with spaces for underscores.
    """

    share: float
    passed: bool
    words: str
    mistake: str | None = None


def metric(function: Callable) -> Callable:
    """Register `function` as a metric under its own name."""
    return METRICS.register(function)


def misfit(truth, output, path: tuple = ()) -> Difference | None:
    """How an output is not of the truth's type and shape, whatever its values; None where it is."""
    if isinstance(truth, dict) and "shape" in truth:
        truth = torch.zeros(()).expand(tuple(truth["shape"]))
        if isinstance(output, torch.Tensor) and not output.is_floating_point():
            return Difference("type", path, truth, output)
    if truth is None:
        return None
    if isinstance(truth, torch.Tensor):
        if not isinstance(output, torch.Tensor):
            return Difference("type", path, truth, output)
        if truth.shape != output.shape:
            return Difference("shape", path, truth, output)
        not_there = output.is_floating_point() and bool(output.isnan().any())
        return Difference("nan", path, truth, output) if not_there else None
    if isinstance(truth, bool) or not isinstance(truth, (int, float)):
        if not isinstance(output, type(truth)) or isinstance(output, bool) is not isinstance(truth, bool):
            return Difference("type", path, truth, output)
    elif isinstance(output, bool) or not isinstance(output, (int, float) if isinstance(truth, float) else int):
        return Difference("type", path, truth, output)
    if isinstance(truth, (list, tuple)):
        if len(truth) != len(output):
            return Difference("shape", path, truth, output)
        return _first(misfit(a, b, (*path, i)) for i, (a, b) in enumerate(zip(truth, output, strict=True)))
    if isinstance(truth, dict):
        if truth.keys() != output.keys():
            return Difference("value", path, truth, output)
        return _first(misfit(truth[name], output[name], (*path, name)) for name in truth)
    return Difference("nan", path, truth, output) if output != output else None


def _first(found) -> Difference | None:
    found = [item for item in found if item is not None]
    return min(found, key=lambda item: KINDS.index(item.kind), default=None)
