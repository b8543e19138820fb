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

from helpers.checking.compare import Difference, difference
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


def misfit(truth, output) -> Difference | None:
    """How an output is not of the truth's type and shape, whatever its values; None where it is."""
    if isinstance(truth, dict) and "shape" in truth:
        truth = torch.zeros(()).expand(tuple(truth["shape"]))
        if isinstance(output, torch.Tensor) and not output.is_floating_point():
            return Difference("type", (), truth, output)
    found = None if truth is None else difference(truth, output)
    unlike = found is not None and (found.kind in ("type", "shape", "nan") or isinstance(found.expected, dict))
    return found if unlike else None  # a dict differs by its keys
