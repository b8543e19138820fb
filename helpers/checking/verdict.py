"""From observations to a verdict: what holds, what does not, which mistake it is, how many points.

Nothing here is said in words: see messages.with_message.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from helpers.checking.codec import leaves
from helpers.checking.compare import Difference, difference, gradient_tolerance, output_difference
from helpers.checking.facets import FACETS, agree, differs
from helpers.checking.key import ExerciseKey, KnownMistake
from helpers.checking.observe import TOO_SLOW, Error, Observation, is_not_answered, keeps_promise, viewed
from helpers.checking.registry import METRICS, misfit
from helpers.checking.vocabulary import DTYPE, GRADIENT, LEADING, UNCHANGED, VALUES, Case

WEIGHTS = {VALUES: 5, LEADING: 3, DTYPE: 1, UNCHANGED: 1, GRADIENT: 2}
CORNER_WEIGHT = 2
CHANGED_COSTS = 0.1  # of a measured answer's points, where it changes its input
# Reserved names, in the order in which they are tried when no known mistake matches.
RESERVED = tuple(
    "not_answered raises wrong_type wrong_shape nan forbidden_call input_changed dtype_lost detached too_slow "
    "hard_coded".split()
)
# The kind of problem that a difference of two outputs is.
KIND_OF = {"type": "wrong_type", "shape": "wrong_shape", "nan": "nan", "value": "value", "dtype": "dtype_lost"}
WHOLE = ("forbidden_call", "measured")  # kinds of problems that are no single case's


@dataclass(frozen=True)
class Part:
    """A sub-check: its name in a learner's words, whether it holds, and what was seen where it does not."""

    name: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True)
class Picture:
    """A matrix that came out wrong, and the one that was expected.

    item: which one of a batch it is, in words; empty where there is no batch. worst: the row and column to frame.
    """

    expected: torch.Tensor
    actual: torch.Tensor
    axes: tuple[str, ...]
    item: str
    worst: tuple[int, ...]


@dataclass
class Verdict:
    """What the check says. `mistake` is a known mistake's name, one of RESERVED, or None; `label` its words.

    answered: whether there was anything to judge. message: plain sentences for the learner. said: what the answer
    printed in its first call. alone: whether no finished block stood in for an earlier answer. problems: what was
    found and is not said yet; empty once it is said.
    """

    exercise: str
    points: float
    max_points: float
    passed: bool
    mistake: str | None = None
    label: str = ""
    message: str = ""
    parts: list[Part] = field(default_factory=list)
    answered: bool = True
    bonus: bool = False
    picture: Picture | None = None
    said: str = ""
    alone: bool = True
    problems: "list[Problem]" = field(default_factory=list)


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong on one case. `kind` is a reserved name, or value, gradient, no_error, no_name, measured.

    where: the input or parameter whose gradient it is; of an answer as a whole, what was found. expected: where outputs
    are compared, what the right answer shows.
    """

    kind: str
    part: str = VALUES
    case: Case = Case(())
    seen: Observation = field(default_factory=Observation)
    difference: Difference | None = None
    where: str = ""
    expected: Observation = field(default_factory=Observation)


def _verdict(key: ExerciseKey, points: float, passed: bool, mistake: str | None = None, **more) -> Verdict:
    return Verdict(key.name, points, key.points, passed, mistake, bonus=key.bonus, **more)


def refused(key: ExerciseKey, mistake: str, message: str) -> Verdict:
    """No points, for a reason that no observation shows."""
    return _verdict(key, 0, False, mistake, message=message, answered=mistake != "not_answered")


def not_answered(key: ExerciseKey) -> Verdict:
    return refused(key, "not_answered", "not answered yet")


def decide_quiz(key: ExerciseKey, value) -> Verdict:
    """A multiple-choice answer: each option has its own explanation. Any honest attempt earns the points."""
    if value is None:
        return not_answered(key)
    options = ", ".join(f'"{option}"' for option in key.explanations)
    if not isinstance(value, str):
        return refused(key, "wrong_type", f"Answer with one of {options}, in quotes. Yours is of another type.")
    choice = value.strip().lower()
    if choice not in key.explanations:
        return refused(key, "wrong_type", f'Answer with one of {options}. Yours is "{choice[:20]}".')
    why = key.explanations[choice]
    if choice == key.correct:
        return _verdict(key, key.points, True, message=f"Right. {why}")
    again = f"{why}\nChange your answer as often as you like."
    return _verdict(key, key.points, False, f"option_{choice}", message=again)


def decided(key: ExerciseKey, observations: list[Observation]) -> Verdict:
    """What one answer's observations, one for each of the key's cases in their order, amount to.

    It has no message yet (messages.with_message), unless it is a quiz or an exercise that is not answered.
    """
    observations = [viewed(*row) for row in zip(key.cases, observations, strict=True)]
    if all(is_not_answered(seen.error) for seen in observations):
        return not_answered(key)
    used = next((name for seen in observations for name in seen.forbidden), None)
    if used is not None:
        return _verdict(key, 0, False, "forbidden_call", problems=[Problem("forbidden_call", where=used)])
    return _measured(key, observations) if key.metric else _compared(key, observations)


def _compared(key: ExerciseKey, observations: list[Observation]) -> Verdict:
    rows = zip(key.cases, key.expected, observations, strict=True)
    problems = [problem for row in rows for problem in _problems(key, *row)]
    parts = _parts(key, problems)
    if not problems:
        return _verdict(key, key.points, True, parts=parts)
    mistake = _known_mistake(key, observations)
    name = _reserved(most_important(problems)) if mistake is None else mistake.name
    return _verdict(key, _points(key, parts), False, name, parts=parts, problems=problems)


def _reserved(problem: Problem) -> str | None:
    return problem.kind if problem.kind in RESERVED else None


def _measured(key: ExerciseKey, observations: list[Observation]) -> Verdict:
    """The verdict on an answer that is a trained model: how good it is, once every output can be looked at."""
    problems, changed = [], []
    for case, expected, seen in zip(key.cases, key.expected, observations, strict=True):
        if seen.changed:
            changed.append(Problem("input_changed", UNCHANGED, case, seen))
        diff = None if seen.error else misfit(expected.output, seen.output)
        if kind := _error_kind(case, seen.error) or (KIND_OF[diff.kind] if diff else ""):
            problems.append(Problem(kind, VALUES, case, seen, diff, expected=expected))
    if problems:
        name, parts = _reserved(most_important(problems)), [Part(VALUES, False)]
        return _verdict(key, 0, False, name, parts=parts, problems=problems)
    outputs = [seen.output for seen in observations]
    result = METRICS[key.metric]([seen.output for seen in key.expected], outputs)
    parts = [Part(result.words, result.passed)]
    if _takes_mutable(key):
        parts.append(Part(UNCHANGED, not changed))
    share = min(1.0, max(0.0, float(result.share))) * (1 - CHANGED_COSTS if changed else 1)
    points = key.points if share == 1 else math.floor(key.points * share)
    if result.passed:
        name = "input_changed" if changed else None
        return _verdict(key, points, not changed, name, parts=parts, problems=changed)
    shown = ((mistake.name, [seen.output for seen in mistake.observations]) for mistake in key.mistakes)
    alike = next((name for name, wrong in shown if wrong and difference(wrong, outputs) is None), None)
    problems = [Problem("measured", where=result.words), *changed]
    return _verdict(key, points, False, result.mistake or alike, parts=parts, problems=problems)


def _problems(key: ExerciseKey, case: Case, expected: Observation, seen: Observation) -> Iterator[Problem]:
    """What is wrong on one case. Gradients are looked at only where the output is right, but for its dtype."""
    if seen.changed:
        yield Problem("input_changed", UNCHANGED, case, seen)
    if kind := _error_kind(case, seen.error):
        yield Problem(kind, case.part, case, seen)
    elif case.raises is None:
        diff = output_difference(case, expected.output, seen.output)
        if diff is not None:
            part = DTYPE if diff.kind == "dtype" else case.part
            yield Problem(KIND_OF[diff.kind], part, case, seen, diff, expected=expected)
        if expected.gradients is not None and (diff is None or diff.kind == "dtype"):
            # One slip in a gradient fails one part, wherever it shows.
            yield from itertools.islice(_gradient_problems(key, case, expected.gradients, seen), 1)


def _error_kind(case: Case, error: Error | None) -> str:
    """The kind of problem that an error is, or the lack of the one that the case asks for; empty where all is well."""
    if error is None:
        return "" if case.raises is None else "no_error"
    if error.type == TOO_SLOW:
        return "too_slow"
    if case.raises is None:
        return "not_answered" if is_not_answered(error) else "raises"
    if keeps_promise(case, error):
        return ""
    return "no_name" if case.raises.error in (error.type, *error.bases) else "raises"


def _gradient_problems(key: ExerciseKey, case: Case, expected: list, seen: Observation) -> Iterator[Problem]:
    if seen.gradient_error is not None:
        yield Problem("raises", GRADIENT, case, seen, where="gradient")
    elif seen.gradients is None or len(seen.gradients) != len(expected):
        yield Problem("detached", GRADIENT, case, seen)
    else:
        for number, (want, got) in enumerate(zip(expected, seen.gradients, strict=True)):
            if want is not None and got is None and bool(want.any()):
                yield Problem("detached", GRADIENT, case, seen, where=_cut_off(key, case, number, seen.gradients))
            diff = None if want is None or got is None else difference(want, got, gradient_tolerance(case, want))
            if diff is not None and diff.kind != "dtype":
                kind = "nan" if diff.kind == "nan" else "gradient"
                yield Problem(kind, GRADIENT, case, seen, diff, leaf_name(key, case, number))


def _cut_off(key: ExerciseKey, case: Case, number: int, gradients: list) -> str:
    """The name of the number-th leaf, which has no gradient; of the whole dict where none of its tensors has one."""
    name = leaf_name(key, case, number)
    whole, bracket, _ = name.partition("[")
    same = [got for i, got in enumerate(gradients) if leaf_name(key, case, i).startswith(f"{whole}[")]
    return whole if bracket and all(got is None for got in same) else name


def leaf_name(key: ExerciseKey, case: Case, number: int) -> str:
    """The name of the number-th differentiable input, or of a parameter of the module."""
    given = ((position, item) for position, item in enumerate(case.call.args) if position not in case.no_gradient)
    inputs = {argument_name(key, position): item for position, item in given} | case.call.kwargs
    names = [leaf for name, item in inputs.items() for leaf in _leaf_names(name, item)] + [*case.call.state]
    return names[number] if number < len(names) else "a parameter"


def argument_name(key, position) -> str:
    if isinstance(position, int):
        return key.arguments[position] if position < len(key.arguments) else f"argument {position + 1}"
    return str(position)


def _leaf_names(name: str, tree) -> list[str]:
    """A name for each float tensor of an argument, in the order of observe._with_leaves; in a dict with its key."""
    if isinstance(tree, torch.Tensor):
        return [name] * tree.is_floating_point()
    if isinstance(tree, dict):
        return [leaf for key, item in tree.items() for leaf in _leaf_names(f'{name}["{key}"]', item)]
    return [leaf for item in tree for leaf in _leaf_names(name, item)] if isinstance(tree, (list, tuple)) else []


def _parts(key: ExerciseKey, problems: list[Problem]) -> list[Part]:
    names = list(dict.fromkeys([VALUES, *(case.part for case in key.cases)]))
    outputs = leaves([seen.output for seen in key.expected])
    if DTYPE not in names and any(isinstance(leaf, torch.Tensor) for leaf in outputs):
        names.append(DTYPE)
    if any(case.gradient for case in key.cases) and GRADIENT not in names:
        names.append(GRADIENT)
    if _takes_mutable(key):
        names.insert(names.index(DTYPE) + 1 if DTYPE in names else len(names), UNCHANGED)
    wrong = {problem.part for problem in problems}
    return [Part(name, name not in wrong) for name in names]


def _takes_mutable(key: ExerciseKey) -> bool:

    def mutable(item) -> bool:
        return isinstance(item, (torch.Tensor, list, dict)) or isinstance(item, tuple) and any(map(mutable, item))

    return any(mutable((*case.args, *case.kwargs.values())) for case in key.cases)


def _points(key: ExerciseKey, parts: list[Part]) -> float:
    if any(part.name == VALUES and not part.passed for part in parts):
        return 0
    weight = {part.name: key.weights.get(part.name, WEIGHTS.get(part.name, CORNER_WEIGHT)) for part in parts}
    share = sum(weight[part.name] for part in parts if part.passed) / sum(weight.values())
    return math.floor(key.points * share)


def most_important(problems: list[Problem]) -> Problem:
    """The problem to talk about: of the answer as a whole, else within the gate while it fails, in RESERVED's order."""
    if problems[0].kind in WHOLE:
        return problems[0]
    gate = [problem for problem in problems if problem.part == VALUES]
    candidates = gate + [problem for problem in problems if problem.kind == "input_changed"] if gate else problems
    return min(candidates, key=lambda p: RESERVED.index(p.kind) if p.kind in RESERVED else len(RESERVED))


def _known_mistake(key: ExerciseKey, observations: list[Observation]) -> KnownMistake | None:
    """The known mistake that explains everything that was seen, or None: a name is a promise.

    Where there is none, the one that explains all that was seen outside of the parts that are judged apart, if
    something is wrong there, else all that was seen in these. Then the one that explains all that was returned, where
    the answer raises an error on other inputs. At last, where the outputs hold fractions, in which nothing agrees by
    chance, the one that explains the plain cases: the answer may treat the others in a way of its own.
    """
    cases = dict(enumerate(key.cases))
    everywhere = set(cases)
    apart = {  # a slip there is one of its own: an error that should be raised, inputs that `view` refuses
        number
        for number, case in cases.items()
        if case.part in (*key.apart, LEADING) or case.raises is not None or case.via == "on_views"
    }
    returned = {number for number in everywhere if observations[number].error is None}
    plain = {number for number, case in cases.items() if case.part == VALUES}
    search = _Search(key, observations)
    tried = [everywhere]
    if apart:
        tried.append(everywhere - apart if search.is_wrong(everywhere - apart) else apart)
    if returned & plain:
        tried.append(returned)
    outputs = leaves([key.expected[number].output for number in plain])
    numbers = [torch.as_tensor(leaf) for leaf in outputs if isinstance(leaf, (float, torch.Tensor))]
    if sum(int((leaf != leaf.round()).sum()) for leaf in numbers if leaf.is_floating_point()) > 1:
        tried.append(plain)
    return next(filter(None, map(search.most_telling, tried)), None)


class _Search:
    """Looks for known mistakes in what was seen on some of the cases, which go by their numbers."""

    def __init__(self, key: ExerciseKey, observations: list[Observation]):
        self.key = key
        self.rows = list(zip(key.cases, key.expected, observations, strict=True))
        self.right = [{facet: agree(*row, facet) for facet in FACETS} for row in self.rows]

    def is_wrong(self, among: set[int]) -> bool:
        return any(False in self.right[number].values() for number in among)

    def most_telling(self, among: set[int]) -> KnownMistake | None:
        """Of the mistakes that explain all that was seen on these cases, the one that shows on more than the others do;
        of two that show on the same, the one that shows nowhere else, or the first if they say the same. None where
        there is none such."""
        if all(self.rows[number][2].error is not None for number in among):
            return None  # an error alone, on every call, does not say what was meant
        shown = [(mistake, where) for mistake in self.key.mistakes if (where := self._shown(mistake, among))]
        most = [mistake for mistake, where in shown if all(where >= other for _, other in shown)]
        if len(most) > 1:
            others = set(range(len(self.rows))) - among
            most = [mistake for mistake in most if not any(self._is_wrong_at(mistake, number) for number in others)]
        return most[0] if len({(mistake.label, mistake.hint) for mistake in most}) == 1 else None

    def _shown(self, mistake: KnownMistake, among: set[int]) -> set[tuple[int, str]]:
        """The cases and facets in which the mistake differs from the reference, when the answer shows it in each of
        them and is right in all others; else nothing."""
        where = set()
        for number in among:
            case, expected, seen = self.rows[number]
            wrong = mistake.observations[number]
            for facet in FACETS:
                is_mistaken = agree(case, expected, wrong, facet) is False
                if is_mistaken or self.right[number][facet] is False:
                    if agree(case, wrong, seen, facet) is not True:
                        return set()
                if is_mistaken:
                    where.add((number, facet))
        return where

    def _is_wrong_at(self, mistake: KnownMistake, number: int) -> bool:
        return bool(differs(*self.rows[number][:2], mistake.observations[number]))
