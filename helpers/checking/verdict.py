"""Turn observations into a verdict: which parts pass, which known mistake explains the rest, and how many points.

This module decides. messages.with_message then puts the decision into words.
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
from helpers.checking.observe import TOO_SLOW, Error, Observation, is_not_answered, is_required_error, viewed
from helpers.checking.registry import METRICS, misfit
from helpers.checking.vocabulary import DTYPE, GRADIENT, LEADING, UNCHANGED, VALUES, Case

WEIGHTS = {VALUES: 5, LEADING: 3, DTYPE: 1, UNCHANGED: 1, GRADIENT: 2}
CORNER_WEIGHT = 2
CHANGED_COSTS = 0.1  # fraction of the points that a measured answer loses if it changes its input
# Names for what is wrong when no known mistake matches, from the most to the least important.
RESERVED = tuple(
    "not_answered raises wrong_type wrong_shape nan forbidden_call input_changed dtype_lost detached too_slow "
    "hard_coded".split()
)
# From the kind of a Difference between two outputs to the kind of the Problem.
KIND_OF = {"type": "wrong_type", "shape": "wrong_shape", "nan": "nan", "value": "value", "dtype": "dtype_lost"}
WHOLE_ANSWER = ("forbidden_call", "measured")  # kinds of problems that concern the whole answer, not a single case


@dataclass(frozen=True)
class Part:
    """A sub-check: its name in the learner's words, whether it passed, and what was observed if it did not."""

    name: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True)
class Picture:
    """A wrong matrix and the expected one.

    item: its index in the batch, in words; empty without a batch. worst: the row and column to frame.
    """

    expected: torch.Tensor
    actual: torch.Tensor
    axes: tuple[str, ...]
    item: str
    worst: tuple[int, ...]


@dataclass
class Verdict:
    """The result of a check.

    mistake: the name of a known mistake, one of RESERVED, or None. label: that mistake in words. message: plain
    sentences for the learner. answered: whether there was anything to judge. printed: what the answer printed in its
    first call. unassisted: whether no finished block replaced an earlier answer. problems: what was found and is not
    part of the message yet; with_message empties it.
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
    printed: str = ""
    unassisted: bool = True
    problems: "list[Problem]" = field(default_factory=list)


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong on one case. `kind` is a reserved name, or value, gradient, no_error, no_name, measured.

    where: the input or parameter whose gradient is wrong; for a problem of the whole answer, what was found.
    expected: the reference's observation, if outputs were compared.
    """

    kind: str
    part: str = VALUES
    case: Case = Case(())
    seen: Observation = field(default_factory=Observation)
    difference: Difference | None = None
    where: str = ""
    expected: Observation = field(default_factory=Observation)


def _verdict(key: ExerciseKey, points: float, passed: bool, mistake: str | None = None, **fields) -> Verdict:
    return Verdict(key.name, points, key.points, passed, mistake, bonus=key.bonus, **fields)


def refused(key: ExerciseKey, mistake: str, message: str) -> Verdict:
    """A verdict without points, reached without observing the answer."""
    return _verdict(key, 0, False, mistake, message=message, answered=mistake != "not_answered")


def not_answered(key: ExerciseKey) -> Verdict:
    return refused(key, "not_answered", "not answered yet")


def decide_quiz(key: ExerciseKey, value) -> Verdict:
    """The verdict on a multiple-choice answer. Any option earns the points, and each has its own explanation."""
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


def assess(key: ExerciseKey, observations: list[Observation]) -> Verdict:
    """The verdict on an answer, given one observation for each case of the key, in the same order.

    Its message is still missing (see messages.with_message), unless the exercise is not answered.
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
    name = _reserved_name(most_important(problems)) if mistake is None else mistake.name
    return _verdict(key, _points(key, parts), False, name, parts=parts, problems=problems)


def _reserved_name(problem: Problem) -> str | None:
    return problem.kind if problem.kind in RESERVED else None


def _measured(key: ExerciseKey, observations: list[Observation]) -> Verdict:
    """The verdict on an answer that is a trained model: the metric's score, if every output has the right form."""
    problems, changed = [], []
    for case, expected, seen in zip(key.cases, key.expected, observations, strict=True):
        if seen.changed:
            changed.append(Problem("input_changed", UNCHANGED, case, seen))
        diff = None if seen.error else misfit(expected.output, seen.output)
        if kind := _error_kind(case, seen.error) or (KIND_OF[diff.kind] if diff else ""):
            problems.append(Problem(kind, VALUES, case, seen, diff, expected=expected))
    if problems:
        name, parts = _reserved_name(most_important(problems)), [Part(VALUES, False)]
        return _verdict(key, 0, False, name, parts=parts, problems=problems)
    outputs = [seen.output for seen in observations]
    result = METRICS[key.metric]([seen.output for seen in key.expected], outputs)
    parts = [Part(result.words, result.passed)]
    if _takes_mutable(key):
        parts.append(Part(UNCHANGED, not changed))
    fraction = min(1.0, max(0.0, float(result.fraction))) * (1 - CHANGED_COSTS if changed else 1)
    points = key.points if fraction == 1 else math.floor(key.points * fraction)
    if result.passed:
        name = "input_changed" if changed else None
        return _verdict(key, points, not changed, name, parts=parts, problems=changed)
    wrong_outputs = ((mistake.name, [seen.output for seen in mistake.observations]) for mistake in key.mistakes)
    same = next((name for name, wrong in wrong_outputs if wrong and difference(wrong, outputs) is None), None)
    problems = [Problem("measured", where=result.words), *changed]
    return _verdict(key, points, False, result.mistake or same, parts=parts, problems=problems)


def _problems(key: ExerciseKey, case: Case, expected: Observation, seen: Observation) -> Iterator[Problem]:
    """What is wrong on one case. Gradients are compared only if the output is right, or wrong only in its dtype."""
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
            # One mistake usually makes several gradients wrong, and all belong to one part, so the first is enough.
            yield from itertools.islice(_gradient_problems(key, case, expected.gradients, seen), 1)


def _error_kind(case: Case, error: Error | None) -> str:
    """The kind of problem that an error is, or that a missing error is; empty if it is as the case asks."""
    if error is None:
        return "" if case.raises is None else "no_error"
    if error.type == TOO_SLOW:
        return "too_slow"
    if case.raises is None:
        return "not_answered" if is_not_answered(error) else "raises"
    if is_required_error(case, error):
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
    """The name of leaf `number`, which gets no gradient; the name of its dict if no tensor in the dict gets one."""
    name = leaf_name(key, case, number)
    argument, bracket, _ = name.partition("[")
    siblings = [got for i, got in enumerate(gradients) if leaf_name(key, case, i).startswith(f"{argument}[")]
    return argument if bracket and all(got is None for got in siblings) else name


def leaf_name(key: ExerciseKey, case: Case, number: int) -> str:
    """The name of leaf `number`, counted through the differentiable inputs and then the module's parameters."""
    given = ((position, item) for position, item in enumerate(case.call.args) if position not in case.no_gradient)
    inputs = {argument_name(key, position): item for position, item in given} | case.call.kwargs
    names = [leaf for name, item in inputs.items() for leaf in _leaf_names(name, item)] + [*case.call.state]
    return names[number] if number < len(names) else "a parameter"


def argument_name(key, position) -> str:
    if isinstance(position, int):
        return key.arguments[position] if position < len(key.arguments) else f"argument {position + 1}"
    return str(position)


def _leaf_names(name: str, tree) -> list[str]:
    """A name for each float tensor in an argument, in the order of observe._with_leaves; in a dict, with its key."""
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
    fraction = sum(weight[part.name] for part in parts if part.passed) / sum(weight.values())
    return math.floor(key.points * fraction)


def most_important(problems: list[Problem]) -> Problem:
    """The problem to report. One of the whole answer comes first; the others in the order of RESERVED.

    While the values are wrong, only they and changed inputs count, because nothing else earns points without them.
    """
    if problems[0].kind in WHOLE_ANSWER:
        return problems[0]
    values = [problem for problem in problems if problem.part == VALUES]
    candidates = values + [problem for problem in problems if problem.kind == "input_changed"] if values else problems
    return min(candidates, key=lambda p: RESERVED.index(p.kind) if p.kind in RESERVED else len(RESERVED))


def _known_mistake(key: ExerciseKey, observations: list[Observation]) -> KnownMistake | None:
    """The known mistake that explains the observations, or None. A name must be right, so each search is strict.

    These sets of cases are searched in turn, until a known mistake explains every observation in one of them:
    1. all cases;
    2. the cases that are not judged apart, if something is wrong there; otherwise the ones that are;
    3. the cases on which the answer returned, because it may raise an error on the others;
    4. the plain cases, because the answer may treat the others in its own way. This requires outputs with fractions,
       which do not agree by chance.
    """
    cases = dict(enumerate(key.cases))
    everywhere = set(cases)
    apart = {  # a separate mistake is common here: an error is not raised, or torch's `view` fails on some inputs
        number
        for number, case in cases.items()
        if case.part in (*key.apart, LEADING) or case.raises is not None or case.via == "on_views"
    }
    returned = {number for number in everywhere if observations[number].error is None}
    plain = {number for number, case in cases.items() if case.part == VALUES}
    search = _MistakeSearch(key, observations)
    searched = [everywhere]
    if apart:
        searched.append(everywhere - apart if search.is_wrong(everywhere - apart) else apart)
    if returned & plain:
        searched.append(returned)
    outputs = leaves([key.expected[number].output for number in plain])
    numbers = [torch.as_tensor(leaf) for leaf in outputs if isinstance(leaf, (float, torch.Tensor))]
    if sum(int((leaf != leaf.round()).sum()) for leaf in numbers if leaf.is_floating_point()) > 1:
        searched.append(plain)
    return next(filter(None, map(search.best_explanation, searched)), None)


class _MistakeSearch:
    """Finds the known mistake that explains an answer's observations on some of the cases, given by their indices."""

    def __init__(self, key: ExerciseKey, observations: list[Observation]):
        self.key = key
        self.rows = list(zip(key.cases, key.expected, observations, strict=True))
        self.right = [{facet: agree(*row, facet) for facet in FACETS} for row in self.rows]

    def is_wrong(self, indices: set[int]) -> bool:
        return any(False in self.right[number].values() for number in indices)

    def best_explanation(self, indices: set[int]) -> KnownMistake | None:
        """The mistake that explains all observations on these cases, or None.

        Of several, it is the one that differs from the reference wherever the others do; among equals, the one that is
        right on all other cases. If several remain, all must have the same label and hint.
        """
        if all(self.rows[number][2].error is not None for number in indices):
            return None  # an error on every call does not show what the answer was meant to do
        found = [(mistake, where) for mistake in self.key.mistakes if (where := self._explained(mistake, indices))]
        best = [mistake for mistake, where in found if all(where >= other for _, other in found)]
        if len(best) > 1:
            others = set(range(len(self.rows))) - indices
            best = [m for m in best if not any(differs(*self.rows[i][:2], m.observations[i]) for i in others)]
        return best[0] if len({(mistake.label, mistake.hint) for mistake in best}) == 1 else None

    def _explained(self, mistake: KnownMistake, indices: set[int]) -> set[tuple[int, str]]:
        """The pairs (case, facet) in which the mistake differs from the reference.

        Empty unless the answer agrees with the mistake in each of them and is right in all other facets.
        """
        where = set()
        for number in indices:
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
