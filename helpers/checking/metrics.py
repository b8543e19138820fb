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

from dataclasses import dataclass

import torch

from helpers.checking.compare import Difference, is_alike, keys_of, most_serious
from helpers.checking.registry import Registry

METRICS = Registry()
metric = METRICS.register


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


def misfit(truth, output, path: tuple = ()) -> Difference | None:
    """How an output is not of the truth's type and shape, whatever its values; None where it is."""
    if isinstance(truth, dict) and "shape" in truth:
        truth = torch.zeros(()).expand(tuple(truth["shape"]))
        if isinstance(output, torch.Tensor) and not output.is_floating_point():
            return Difference("type", path, truth, output)
    kind = "" if truth is None else _misfit_kind(truth, output)
    if kind:
        return Difference(kind, path, truth, output)
    return most_serious(misfit(truth[key], output[key], (*path, key)) for key in keys_of(truth))


def _misfit_kind(truth, output) -> str:
    tensor = isinstance(truth, torch.Tensor)
    if not (isinstance(output, torch.Tensor) if tensor else is_alike(truth, output)):
        return "type"
    if tensor:
        lost = output.is_floating_point() and bool(output.isnan().any())
        return "shape" if truth.shape != output.shape else "nan" if lost else ""
    if isinstance(truth, (list, tuple)):
        return "" if len(truth) == len(output) else "shape"
    if isinstance(truth, dict):
        return "" if truth.keys() == output.keys() else "value"
    return "" if output == output else "nan"
