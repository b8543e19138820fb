"""Registries of what cases refer to by name: stubs, scenarios, views and metrics.

A stub is a function that makes a public object for a case to pass as an argument: Stub(name, args) becomes
function(*args). A scenario takes (answer, args, kwargs), calls the answer in its own way, and returns the output and
the parameters whose gradients are compared. Both run in the same process as learner code, in the learner's session and
in the judge's sandbox. Shared ones are in stubs.py and scenarios.py. A lesson's own are in
helpers/lessons/TOPIC/probes.py, and so are all views and metrics.

A view selects what is compared, for exercises that several different outputs satisfy. It takes (args, kwargs, output)
and returns a tree, usually a dict of named properties. If the output has an unusable form, it raises ValueError with a
sentence for the learner.

A metric judges a trained model by its outputs for unseen inputs. The cases of such an exercise carry the truth
(`Case(args, truth=...)`), and the metric turns all truths and all outputs of the answer into a Score:

    @metric
    def exact_translations(truths, outputs):
        right = sum(a == b for truth, output in zip(truths, outputs) for a, b in zip(truth, output))
        ...
        return Score(fraction, passed, f"{right} of {total} unseen sentences exactly right")

A metric gets only outputs that have the type and shape of the truth (see misfit). If the truth is not what the answer
returns, it is a dict with the entry "shape". The answer then returns a float tensor of that shape, and only
the metric uses the rest of the dict. Views and metrics get data only, never learner code, so in the judge they run
outside the sandbox.
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
    """Functions by name. Looking up a name that is not registered yet imports every lesson's probes first."""

    def register(self, function: Callable) -> Callable:
        """Register `function` under its own name. Raises ValueError if another module has registered that name."""
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
    """The result of a metric.

    fraction: of the points, from 0 to 1. passed: whether the answer is good enough. words: a sentence for the learner
    about what was measured. mistake: the name of what went wrong, if the numbers show it. It is a Mistake of the answer
    key, whose label and hint are then shown, or any other name, shown with spaces for underscores.
    """

    fraction: float
    passed: bool
    words: str
    mistake: str | None = None


def misfit(truth, output) -> Difference | None:
    """How an output differs from the truth in type or shape, or by being nan; None if it has the right form."""
    if isinstance(truth, dict) and "shape" in truth:
        truth = torch.zeros(()).expand(tuple(truth["shape"]))
        if isinstance(output, torch.Tensor) and not output.is_floating_point():
            return Difference("type", (), truth, output)
    found = None if truth is None else difference(truth, output)
    # Two dicts differ by their keys, so theirs is a difference in form.
    has_other_form = found is not None and (found.kind in ("type", "shape", "nan") or isinstance(found.expected, dict))
    return found if has_other_form else None


def load() -> None:
    """Import the probes of every lesson that has some. A second call does nothing."""
    for package in pkgutil.iter_modules(lessons.__path__, f"{lessons.__name__}."):
        if find_spec(f"{package.name}.probes"):
            import_module(f"{package.name}.probes")
