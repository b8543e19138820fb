"""From observations to a verdict: what holds, what does not, which mistake it is, how many points."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from helpers.checking import diagnose
from helpers.checking.codec import Odd
from helpers.checking.compare import Difference, difference, gradient_tolerance, output_difference
from helpers.checking.facets import FACETS, agree
from helpers.checking.key import ExerciseKey, KnownMistake
from helpers.checking.metrics import METRICS, Score, misfit
from helpers.checking.observe import TOO_SLOW, Observation, is_not_answered, keeps_promise
from helpers.checking.views import viewed
from helpers.checking.vocabulary import DTYPE, GRADIENT, LEADING, UNCHANGED, VALUES, Case

WEIGHTS = {VALUES: 5, LEADING: 3, DTYPE: 1, UNCHANGED: 1, GRADIENT: 2}
CORNER_WEIGHT = 2
CHANGED_COSTS = 0.1  # of a measured answer's points, where it changes its input
# Reserved names, in the order in which they are tried when no known mistake matches.
RESERVED = (
    "not_answered",
    "raises",
    "wrong_type",
    "wrong_shape",
    "nan",
    "forbidden_call",
    "input_changed",
    "dtype_lost",
    "detached",
    "too_slow",
    "hard_coded",
)


@dataclass(frozen=True)
class Part:
    """A sub-check: its name in a learner's words, whether it holds, and what was seen where it does not."""

    name: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True)
class Picture:
    """A matrix that came out wrong, and the one that was expected."""

    expected: torch.Tensor
    actual: torch.Tensor
    axes: tuple[str, ...]


@dataclass
class Verdict:
    """What the check says. `mistake` is a known mistake's name, one of RESERVED, or None; `label` its words.

    answered: whether there was anything to judge. message: plain sentences for the learner. said: what the answer
    printed in its first call. alone: whether no finished piece stood in an earlier answer's place.
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


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong on one case. `kind` is a reserved name, or value, gradient, no_error, no_name."""

    kind: str
    part: str
    index: int
    case: Case
    seen: Observation
    expected: Observation
    difference: Difference | None = None
    where: str = ""


def refused(key: ExerciseKey, mistake: str, message: str) -> Verdict:
    """No points, for a reason that no observation shows."""
    answered = mistake != "not_answered"
    return Verdict(key.name, 0, key.points, False, mistake, message=message, answered=answered, bonus=key.bonus)


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
    right = choice == key.correct
    earned = "The points for an honest attempt are yours. " if key.points else ""
    again = f"{key.explanations[choice]}\n{earned}Change your answer as often as you like."
    message = f"Right. {key.explanations[choice]}" if right else again
    return Verdict(
        key.name, key.points, key.points, right, None if right else f"option_{choice}", message=message, bonus=key.bonus
    )


def decide(key: ExerciseKey, observations: list[Observation]) -> Verdict:
    """The verdict on one answer's observations, one for each of the key's cases, in their order."""
    observations = [viewed(case, seen) for case, seen in zip(key.cases, observations, strict=True)]
    if all(is_not_answered(seen.error) for seen in observations):
        return not_answered(key)
    used = list(dict.fromkeys(name for seen in observations for name in seen.forbidden))
    if used:
        return refused(key, "forbidden_call", diagnose.forbidden_text(used[0], key))
    if key.metric:
        return _measured(key, observations)
    problems = [
        problem
        for index, (case, expected, seen) in enumerate(zip(key.cases, key.expected, observations, strict=True))
        for problem in _problems(key, index, case, expected, seen)
    ]
    parts = _parts(key, problems)
    points = _points(key, parts)
    if not problems:
        return Verdict(key.name, key.points, key.points, True, parts=parts, bonus=key.bonus)
    mistake = _known_mistake(key, observations)
    problem = _worst(problems)
    if mistake is not None:
        name, label = mistake.name, mistake.label.rstrip(".")
        message = f"This looks like: {label}.\n{mistake.hint}"
        if problem.kind in ("wrong_shape", "raises"):
            message = f"{diagnose.text(problem, key)}\n{message}"
    else:
        name = problem.kind if problem.kind in RESERVED else None
        label = ""
        message = diagnose.text(problem, key)
    return Verdict(
        key.name,
        points,
        key.points,
        False,
        name,
        label,
        message,
        parts,
        bonus=key.bonus,
        picture=_picture(key, problem),
    )


def _measured(key: ExerciseKey, observations: list[Observation]) -> Verdict:
    """The verdict on an answer that is a trained model: how good it is, once every output can be looked at."""
    problems = []
    for index, (case, expected, seen) in enumerate(zip(key.cases, key.expected, observations, strict=True)):
        diff = None if seen.error else misfit(expected.output, seen.output)
        if seen.error is not None:
            kind = "too_slow" if seen.error.type == TOO_SLOW else "raises"
            kind = "not_answered" if is_not_answered(seen.error) else kind
        else:
            kind = {"type": "wrong_type", "shape": "wrong_shape"}.get(diff.kind, diff.kind) if diff else None
        if kind:
            problems.append(Problem(kind, VALUES, index, case, seen, expected, diff))
    changed = next(
        (
            Problem("input_changed", UNCHANGED, i, key.cases[i], seen, key.expected[i])
            for i, seen in enumerate(observations)
            if seen.changed
        ),
        None,
    )
    if problems:
        parts = [Part(VALUES, False, diagnose.short(problems[0], key))]
        problem = _worst(problems)
        name = problem.kind if problem.kind in RESERVED else None
        return Verdict(
            key.name, 0, key.points, False, name, message=diagnose.text(problem, key), parts=parts, bonus=key.bonus
        )
    result = METRICS[key.metric]([seen.output for seen in key.expected], [seen.output for seen in observations])
    parts = [Part(result.words, result.passed)]
    share = min(1.0, max(0.0, float(result.share)))
    if any(_mutable((*case.args, *case.kwargs.values())) for case in key.cases):
        parts.append(Part(UNCHANGED, changed is None, diagnose.short(changed, key) if changed else ""))
    if changed is not None:
        share *= 1 - CHANGED_COSTS
    points = key.points if share == 1 else math.floor(key.points * share)
    if result.passed and changed is None:
        return Verdict(key.name, points, key.points, True, parts=parts, bonus=key.bonus)
    if result.passed:
        text = diagnose.text(changed, key)
        return Verdict(key.name, points, key.points, False, "input_changed", message=text, parts=parts, bonus=key.bonus)
    name, label, hint = _measured_mistake(key, result, observations)
    message = result.words + (f"\nThis looks like: {label}.\n{hint}" if hint else "")
    return Verdict(key.name, points, key.points, False, name, label, message, parts, bonus=key.bonus)


def _measured_mistake(key: ExerciseKey, result: Score, observations: list[Observation]) -> tuple[str | None, str, str]:
    """Name, label and hint of what went wrong: what the metric names, else a known mistake with the same outputs."""
    known = {mistake.name: mistake for mistake in key.mistakes}
    name = result.mistake
    if name is None:
        outputs = [seen.output for seen in observations]
        same = (m.name for m in key.mistakes if m.observations and _same([o.output for o in m.observations], outputs))
        name = next(same, None)
    if name in known:
        return name, known[name].label.rstrip("."), known[name].hint
    return name, (name or "").replace("_", " "), ""


def _same(one, other) -> bool:
    return difference(one, other) is None


def _problems(key: ExerciseKey, index: int, case: Case, expected: Observation, seen: Observation) -> list[Problem]:
    found = []

    def add(kind, part=case.part, diff=None, where=""):
        found.append(Problem(kind, part, index, case, seen, expected, diff, where))

    if seen.changed:
        add("input_changed", UNCHANGED)
    if case.raises is not None:
        if seen.error is None:
            add("no_error")
        elif seen.error.type == TOO_SLOW:
            add("too_slow")
        elif case.raises.error not in (seen.error.type, *seen.error.bases):
            add("raises")
        elif not keeps_promise(case, seen.error):
            add("no_name")
        return found
    if seen.error is not None:
        kind = "too_slow" if seen.error.type == TOO_SLOW else "raises"
        add("not_answered" if is_not_answered(seen.error) else kind)
        return found
    diff = output_difference(case, expected.output, seen.output)
    if diff is not None:
        kinds = {"type": "wrong_type", "shape": "wrong_shape", "nan": "nan", "value": "value", "dtype": "dtype_lost"}
        add(kinds[diff.kind], DTYPE if diff.kind == "dtype" else case.part, diff)
    if expected.gradients is not None and (diff is None or diff.kind == "dtype"):
        kind, diff, where = _gradient_problem(key, case, expected, seen)
        if kind:
            add(kind, GRADIENT, diff, where)  # one slip in a gradient fails one part, wherever it shows
    return found


def _gradient_problem(key, case, expected, seen):
    """(kind, difference, where) of the first wrong gradient; kind is "" when all are right."""
    if seen.gradient_error is not None:
        return "raises", None, "gradient"
    if seen.gradients is None or len(seen.gradients) != len(expected.gradients):
        return "detached", None, ""
    for number, (want, got) in enumerate(zip(expected.gradients, seen.gradients, strict=True)):
        if want is None:
            continue
        if got is None:
            if bool(want.any()):
                return "detached", None, diagnose.leaf_name(key, case, number)
            continue
        diff = difference(want, got, gradient_tolerance(case, want))
        if diff is not None and diff.kind != "dtype":
            kind = "nan" if diff.kind == "nan" else "gradient"
            return kind, diff, diagnose.leaf_name(key, case, number)
    return "", None, ""


def _parts(key: ExerciseKey, problems: list[Problem]) -> list[Part]:
    names = list(dict.fromkeys([VALUES, *(case.part for case in key.cases)]))
    if _holds_tensor([seen.output for seen in key.expected]) and DTYPE not in names:
        names.append(DTYPE)
    if any(case.gradient for case in key.cases) and GRADIENT not in names:
        names.append(GRADIENT)
    if any(_mutable((*case.args, *case.kwargs.values())) for case in key.cases):
        place = names.index(DTYPE) + 1 if DTYPE in names else len(names)
        names.insert(place, UNCHANGED)
    parts = []
    for name in names:
        own = [problem for problem in problems if problem.part == name]
        parts.append(Part(name, not own, diagnose.short(_worst(own), key) if own else ""))
    return parts


def _holds_tensor(tree) -> bool:
    if isinstance(tree, torch.Tensor):
        return True
    if isinstance(tree, dict):
        tree = list(tree.values())
    return isinstance(tree, (list, tuple)) and any(map(_holds_tensor, tree))


def _mutable(tree) -> bool:
    if isinstance(tree, dict):
        tree = list(tree.values())
    return isinstance(tree, (torch.Tensor, list)) or (isinstance(tree, tuple) and any(map(_mutable, tree)))


def _points(key: ExerciseKey, parts: list[Part]) -> float:
    """The points of an answer that has a problem."""
    if any(part.name == VALUES and not part.passed for part in parts):
        return 0
    weight = {part.name: key.weights.get(part.name, WEIGHTS.get(part.name, CORNER_WEIGHT)) for part in parts}
    share = sum(weight[part.name] for part in parts if part.passed) / sum(weight.values())
    return math.floor(key.points * share)


def _worst(problems: list[Problem]) -> Problem:
    """The problem to talk about: within the gate while it fails, in the order of RESERVED."""
    gate = [problem for problem in problems if problem.part == VALUES]
    candidates = gate + [problem for problem in problems if problem.kind == "input_changed"] if gate else problems
    return min(candidates, key=lambda p: RESERVED.index(p.kind) if p.kind in RESERVED else len(RESERVED))


def _known_mistake(key: ExerciseKey, observations: list[Observation]) -> KnownMistake | None:
    """The known mistake that explains everything that was seen, or None: a name is a promise.

    Of several that do, the one that shows on more than the others do; where there is none such, none is named.
    """
    if all(seen.error is not None for seen in observations):
        return None  # an error alone, on every call, does not say what was meant
    rows = zip(key.cases, key.expected, observations, strict=True)
    right = [{facet: agree(*row, facet) for facet in FACETS} for row in rows]
    shown = [(mistake, _shown(key, mistake, observations, right)) for mistake in key.mistakes]
    shown = [(mistake, where) for mistake, where in shown if where]
    for mistake, where in shown:
        if all(where > other for one, other in shown if one is not mistake):
            return mistake
    return None


def _shown(
    key: ExerciseKey, mistake: KnownMistake, observations: list[Observation], right: list[dict[str, bool | None]]
) -> set[tuple[int, str]]:
    """The cases (by number) and facets in which the mistake differs from the reference, when the answer shows it in
    each of them and is right in all others; else nothing. right: where the answer agrees with the reference."""
    where = set()
    for number, (case, expected, wrong, seen) in enumerate(
        zip(key.cases, key.expected, mistake.observations, observations, strict=True)
    ):
        for facet in FACETS:
            if agree(case, expected, wrong, facet) is False:
                if agree(case, wrong, seen, facet) is not True:
                    return set()
                where.add((number, facet))
            elif right[number][facet] is False and agree(case, wrong, seen, facet) is not True:
                return set()
    return where


def _picture(key: ExerciseKey, problem: Problem) -> Picture | None:
    diff = problem.difference
    if problem.kind not in ("value", "nan") or diff is None or problem.where:
        return None
    if not isinstance(diff.expected, torch.Tensor) or isinstance(diff.actual, Odd):
        return None
    want, got = diff.expected, diff.actual
    while want.dim() > 2:
        wrong = [i for i in range(want.shape[0]) if not torch.allclose(want[i].double(), got[i].double(), 1e-5, 1e-5)]
        if not wrong:
            return None
        want, got = want[wrong[0]], got[wrong[0]]
    if want.dim() != 2 or not 1 < want.numel() <= 400:
        return None
    return Picture(want, got, key.axes if len(key.axes) == 2 else ())
