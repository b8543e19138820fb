"""The vocabulary in which an answer key is written.

A lesson's `answer_key.py` lists its exercises. Each exercise has cases (inputs) and known mistakes, each with a hint.
The reference is not part of it, because that is the lesson's own solution. Other accepted variants are in
tests/accepted_variants/, because only the tests use them.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch

from helpers.checking.mistake_lists import Mistake as Mistake
from helpers.checking.mistake_lists import Quiz as Quiz
from helpers.checking.mistake_lists import UnreadableList, mistakes
from helpers.checking.mistake_lists import listed_quizzes as listed_quizzes

VALUES = "values"
LEADING = "any leading dimensions"
DTYPE = "dtype kept"
UNCHANGED = "inputs unchanged"
GRADIENT = "gradient flows"
MODULE = "module"  # the scenario that builds a module, loads its parameters and calls it


@dataclass(frozen=True)
class Raises:
    """The exception that a case must raise.

    error: the name of its class. names: text that its message must contain. omits: text that it must not contain.
    """

    error: str
    names: str = ""
    omits: str = ""


@dataclass(frozen=True)
class Stub:
    """A public object to pass as an argument, which the registered stub `name` makes from `args`."""

    name: str
    args: tuple = ()


@dataclass(frozen=True)
class Call:
    """The arguments of a case, by what they are passed to.

    args, kwargs: for the answer or, if a module is built, for its forward. init: for the module's __init__; None if no
    module is built. state: the tensors that are loaded into the module, by the names of its parameters.
    """

    args: tuple
    kwargs: dict
    init: tuple | dict | None = None
    state: dict = field(default_factory=dict)

    @staticmethod
    def of(via: str | None, args: tuple, kwargs: dict) -> "Call":
        """The call for a case's arguments. With the scenario MODULE, args is (init, state, args, kwargs)."""
        if via != MODULE:
            return Call(args, kwargs)
        init, state, args, kwargs = args
        return Call(args, kwargs, init, state)

    def arguments(self) -> tuple[tuple, dict]:
        """(args, kwargs) in the form that a case has."""
        if self.init is None:
            return self.args, self.kwargs
        return (self.init, self.state, self.args, self.kwargs), {}


@dataclass(frozen=True)
class Case:
    """One call of the answer and what is compared.

    args, kwargs: tensors, numbers, strings, lists, tuples, dicts, Stubs.
    part: the sub-check that this case belongs to, in words for the learner; without VALUES there are no points.
    gradient: also compare the gradients with respect to the float inputs, for a fixed cotangent.
    no_gradient: positions of args whose gradient is not compared.
    raises: the exception that the call must raise instead of returning.
    tolerance: relative plus absolute; None means 1e-5 (float32) or 1e-7 (float64).
    via: the name of a scenario (scenarios.py, or a lesson's probes.py) that calls the answer; None for a plain call.
    view: the name of a view (a lesson's probes.py) that is applied to outputs before they are compared.
    note: a description of this input for messages, if its numbers would not help.
    truth: what is true of this input, only in a measured exercise (see helpers/checking/registry.py).
    """

    args: tuple
    kwargs: dict = field(default_factory=dict)
    part: str = VALUES
    gradient: bool = False
    no_gradient: tuple[int, ...] = ()
    raises: Raises | None = None
    tolerance: float | None = None
    via: str | None = None
    view: str | None = None
    note: str = ""
    truth: object = None

    @property
    def call(self) -> Call:
        return Call.of(self.via, self.args, self.kwargs)


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    cases: makes the cases, with inputs from a Draw.
    axes: what the last axes of the output mean, for messages, such as ("query", "key").
    forbidden: names of calls that would be the whole answer (see helpers/checking/forbidden.py).
    instead: the end of the message "torch.softmax is the answer to this exercise; ...".
    weights: how much each part counts, if the defaults (verdict.WEIGHTS, and 2 for other parts) are not right.
    apart: parts that people write separate lines for, such as pre-norm and post-norm. A mistake is also named if it
        explains only the observations outside these parts or, if those are right, only the ones inside. Therefore its
        label and hint must be true of either alone.
    metric: the name of a metric (helpers/checking/registry.py) that judges the quality of a trained model. Every case
        then has a `truth`, there is no reference, and the solution does not become a block.
    best: returns what a perfect answer returns for a case, if that is not its truth. The grader tests itself with it.
    """

    name: str
    cases: "Callable[[Draw], list[Case]]"
    mistakes: Sequence[Mistake] = ()
    axes: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    instead: str = "build it from smaller pieces."
    weights: dict[str, int] = field(default_factory=dict)
    apart: tuple[str, ...] = ()
    time_limit: float = 5.0
    metric: str = ""
    best: Callable[[Case], object] | None = None

    def with_mistakes(self, text: str, **functions: Callable) -> "Exercise":
        """The exercise with the mistakes that a text lists (see mistake_lists.py). Raises UnreadableList."""
        try:
            listed = mistakes(text, **functions)
            if not self.metric and (bare := [item.name for item in listed if item.wrong is None]):
                raise UnreadableList(f"{bare[0]} needs an edit, or a function given under its name")
            return replace(self, mistakes=listed)
        except UnreadableList as error:
            raise UnreadableList(f"{self.name}: {error}") from None


class Draw:
    """Random inputs for a seed, from torch's generator for tensors and Python's for words and choices."""

    def __init__(self, seed: int):
        self.generator = torch.Generator().manual_seed(seed)
        self.python = random.Random(seed)

    def normal(self, *shape: int, dtype=torch.float32, scale: float = 1.0) -> torch.Tensor:
        """Standard normal numbers times `scale`, rounded to few significant bits so that keys stay small.

        There are 12 bits in float32, and 28 in float64, so that few of them are also float32 numbers.
        """
        mantissa, exponent = torch.frexp(torch.randn(*shape, generator=self.generator, dtype=dtype) * scale)
        bits = 28 if dtype == torch.float64 else 12
        return torch.ldexp((mantissa * 2**bits).round(), exponent - bits)

    def uniform(self, *shape: int, low=0.0, high=1.0, dtype=torch.float32) -> torch.Tensor:
        return torch.rand(*shape, generator=self.generator, dtype=dtype) * (high - low) + low

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> torch.Tensor:
        """LongTensor with entries in [low, high)."""
        return torch.randint(low, high, shape, generator=self.generator)

    def integer(self, low: int, high: int) -> int:
        return self.python.randrange(low, high)

    def permutation(self, n: int) -> torch.Tensor:
        return torch.randperm(n, generator=self.generator)

    def probabilities(self, *shape: int, dtype=torch.float64) -> torch.Tensor:
        """Probability vectors along the last dimension, all entries positive."""
        x = torch.randn(*shape, generator=self.generator, dtype=torch.float64)
        return torch.softmax(x, dim=-1).to(dtype)

    def mask(self, *shape: int, keep: float = 0.6) -> torch.Tensor:
        """Boolean mask, True where a query may attend, with at least one True in every row."""
        mask = torch.rand(*shape, generator=self.generator) < keep
        first = torch.randint(0, shape[-1], (*shape[:-1], 1), generator=self.generator)
        return mask.scatter(-1, first, True)

    def choice(self, items: Sequence):
        return self.python.choice(items)

    def sample(self, items: Sequence, k: int) -> list:
        return self.python.sample(list(items), k)

    def word(self, low: int = 3, high: int = 8) -> str:
        return "".join(self.python.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(self.integer(low, high)))


def tensor_cases(
    make: Callable[..., tuple], leads: Sequence[tuple[int, ...]] = ((), (3,), (2, 3)), gradient: bool = True, **options
) -> list[Case]:
    """The standard cases of a function of float tensors: values, leading dimensions, dtype, gradient.

    make(dtype, *lead) returns new arguments with the leading dimensions `lead`. The first of `leads` is the plain case.
    If there are others, leading dimensions of size 1 are added, because only they reveal a wrong squeeze. options:
    passed to every Case.
    """
    first, *others = leads
    if others and not any(1 in lead for lead in leads):
        others += [(1,), (2, 1)]
    cases = [Case(make(torch.float32, *first), **options)]
    cases += [Case(make(torch.float32, *lead), part=LEADING, **options) for lead in others]
    cases.append(Case(make(torch.float64, *first), part=DTYPE, **options))
    if gradient:
        cases.append(Case(make(torch.float64, *first), part=GRADIENT, gradient=True, **options))
    return cases
