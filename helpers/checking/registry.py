"""What the check looks up by name: stubs, scenarios, views and metrics, shared ones and those of single lessons.

A stub makes a public object that a case passes as an argument: Stub(name, args) becomes make(*args) of the function
`make` of that name. A scenario takes (answer, args, kwargs), calls the answer in a way of its own, and returns the
output and the parameters whose gradients count. Both run beside learner code, in the learner's session and in the
judge's sandbox. Shared ones stand in stubs.py and scenarios.py, a lesson's own in its room,
helpers/lessons/TOPIC/probes.py, as all views and metrics do.

A view says what of an output is compared, for exercises that several different outputs satisfy. It takes (args,
kwargs, output) and returns a tree, usually a dict of named properties. It raises ValueError with a sentence for the
learner where the output cannot be looked at.

A metric judges a trained model by what it says of inputs that nobody has seen. The cases of such an exercise carry the
truth themselves (`Case(args, truth=...)`), and the metric turns all truths and all outputs of the answer into a Score:

    @metric
    def exact_translations(truths, outputs):
        right = sum(a == b for truth, output in zip(truths, outputs) for a, b in zip(truth, output))
        ...
        return Score(share, passed, f"{right} of {total} unseen sentences exactly right")

An output that reaches a metric is of the truth's type and shape (misfit). Where the truth is not of the kind
that the answer returns, it is a dict with the entry "shape": the answer then returns a float tensor of that shape, and
the rest of the dict is the metric's own business. Views and metrics see numbers only, never learner code; in the judge
they run outside the sandbox.
"""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

import torch

from helpers import lessons
from helpers.checking.compare import Difference, difference


class Registry(dict):
    """Functions by name. The first name that is not registered yet loads every lesson's file."""

    def register(self, function: Callable) -> Callable:
        """Keep `function` under its own name, which no other lesson may have taken."""
        name = function.__name__
        taken = self.get(name)
        if taken is not None and taken.__module__ != function.__module__:
            raise ValueError(f"{name} is registered in {taken.__module__} and again in {function.__module__}")
        self[name] = function
        return function

    def __missing__(self, name: str) -> Callable:
        load()
        if name in self:
            return self[name]
        raise KeyError(name)


STUBS, SCENARIOS, VIEWS, METRICS = Registry(), Registry(), Registry(), Registry()
stub, scenario, view, metric = STUBS.register, SCENARIOS.register, VIEWS.register, METRICS.register


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


def load() -> None:
    """Import the probes of every lesson that has some; a second call does nothing."""
    for room in pkgutil.iter_modules(lessons.__path__, f"{lessons.__name__}."):
        if find_spec(f"{room.name}.probes"):
            import_module(f"{room.name}.probes")
