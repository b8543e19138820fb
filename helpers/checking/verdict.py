"""From observations to a verdict: what holds, what does not, which mistake it is, how many points.

Nothing here is said in words: see messages.with_message.
"""

import math
from dataclasses import dataclass, field

import torch

from helpers.checking.compare import Difference, difference, gradient_tolerance, output_difference
from helpers.checking.facets import FACETS, agree, differs
from helpers.checking.key import ExerciseKey, KnownMistake
from helpers.checking.metrics import METRICS, misfit
from helpers.checking.observe import TOO_SLOW, Error, Observation, is_not_answered, keeps_promise
from helpers.checking.trees import leaves
from helpers.checking.views import viewed
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

    where: the input or parameter whose gradient it is; of an answer as a whole, what was found.
    """

    kind: str
    part: str
    case: Case
    seen: Observation
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
    again = f"{key.explanations[choice]}\nChange your answer as often as you like."
    message = f"Right. {key.explanations[choice]}" if right else again
    return Verdict(
        key.name, key.points, key.points, right, None if right else f"option_{choice}", message=message, bonus=key.bonus
    )


def decided(key: ExerciseKey, observations: list[Observation]) -> Verdict:
    """What one answer's observations, one for each of the key's cases in their order, amount to.

    It has no message yet (messages.with_message), unless it is a quiz or an exercise that is not answered.
    """
    observations = [
        seen if case.view is None else viewed(case, seen) for case, seen in zip(key.cases, observations, strict=True)
    ]
    if all(seen.error is not None and is_not_answered(seen.error) for seen in observations):
        return not_answered(key)
    used = next((name for seen in observations for name in seen.forbidden), None)
    if used is not None:
        return _wrong(key, 0, "forbidden_call", [], [_whole("forbidden_call", used)])
    if key.metric:
        return _measured(key, observations)
    problems = [
        problem
        for case, expected, seen in zip(key.cases, key.expected, observations, strict=True)
        for problem in _problems(key, case, expected, seen)
    ]
    parts = _parts(key, problems)
    if not problems:
        return Verdict(key.name, key.points, key.points, True, parts=parts, bonus=key.bonus)
    mistake = _known_mistake(key, observations)
    name = _reserved(most_important(problems)) if mistake is None else mistake.name
    return _wrong(key, _points(key, parts), name, parts, problems)


def _wrong(key: ExerciseKey, points: float, mistake: str | None, parts: list[Part], problems: list[Problem]) -> Verdict:
    return Verdict(key.name, points, key.points, False, mistake, parts=parts, bonus=key.bonus, problems=problems)


def _whole(kind: str, words: str) -> Problem:
    """A problem of the answer as a whole, and of no case; `words` is what was found."""
    return Problem(kind, VALUES, Case(()), Observation(), where=words)


def _reserved(problem: Problem) -> str | None:
    return problem.kind if problem.kind in RESERVED else None


def _measured(key: ExerciseKey, observations: list[Observation]) -> Verdict:
    """The verdict on an answer that is a trained model: how good it is, once every output can be looked at."""
    problems, changed = [], []
    for case, expected, seen in zip(key.cases, key.expected, observations, strict=True):
        if seen.changed:
            changed.append(Problem("input_changed", UNCHANGED, case, seen))
        diff = None if seen.error else misfit(expected.output, seen.output)
        if kind := _error_kind(seen.error) or (KIND_OF[diff.kind] if diff else ""):
            problems.append(Problem(kind, VALUES, case, seen, diff))
    if problems:
        return _wrong(key, 0, _reserved(most_important(problems)), [Part(VALUES, False)], problems)
    result = METRICS[key.metric]([seen.output for seen in key.expected], [seen.output for seen in observations])
    parts = [Part(result.words, result.passed)]
    share = min(1.0, max(0.0, float(result.share)))
    if any(_mutable((*case.args, *case.kwargs.values())) for case in key.cases):
        parts.append(Part(UNCHANGED, not changed))
    if changed:
        share *= 1 - CHANGED_COSTS
    points = key.points if share == 1 else math.floor(key.points * share)
    if result.passed and not changed:
        return Verdict(key.name, points, key.points, True, parts=parts, bonus=key.bonus)
    if result.passed:
        return _wrong(key, points, "input_changed", parts, changed)
    name = result.mistake or _same_as_a_known_mistake(key, observations)
    return _wrong(key, points, name, parts, [_whole("measured", result.words), *changed])


def _same_as_a_known_mistake(key: ExerciseKey, observations: list[Observation]) -> str | None:
    outputs = [seen.output for seen in observations]
    for mistake in key.mistakes:
        if mistake.observations and difference([seen.output for seen in mistake.observations], outputs) is None:
            return mistake.name
    return None


def _problems(key: ExerciseKey, case: Case, expected: Observation, seen: Observation) -> list[Problem]:
    """What is wrong on one case. Gradients are looked at only where the output is right, but for its dtype."""
    problems = [Problem("input_changed", UNCHANGED, case, seen)] if seen.changed else []
    kind = _error_kind(seen.error) if case.raises is None else _promise_kind(case, seen.error)
    if kind:
        problems.append(Problem(kind, case.part, case, seen))
    if kind or case.raises is not None:
        return problems
    diff = output_difference(case, expected.output, seen.output)
    if diff is not None:
        part = DTYPE if diff.kind == "dtype" else case.part
        problems.append(Problem(KIND_OF[diff.kind], part, case, seen, diff))
    if expected.gradients is not None and (diff is None or diff.kind == "dtype"):
        kind, diff, where = _gradient_problem(key, case, expected, seen)
        if kind:  # one slip in a gradient fails one part, wherever it shows
            problems.append(Problem(kind, GRADIENT, case, seen, diff, where))
    return problems


def _error_kind(error: Error | None) -> str:
    """The kind of problem that an error is; empty where there is none."""
    if error is None:
        return ""
    return "not_answered" if is_not_answered(error) else "too_slow" if error.type == TOO_SLOW else "raises"


def _promise_kind(case: Case, error: Error | None) -> str:
    """The same on a case that has to raise."""
    assert case.raises is not None
    if error is None or error.type == TOO_SLOW:
        return "too_slow" if error else "no_error"
    if case.raises.error not in (error.type, *error.bases):
        return "raises"
    return "" if keeps_promise(case, error) else "no_name"


def _gradient_problem(key, case, expected, seen):
    """(kind, difference, where) of the first wrong gradient; kind is "" when all are right."""
    if seen.gradient_error is not None:
        return "raises", None, "gradient"
    if seen.gradients is None or len(seen.gradients) != len(expected.gradients):
        return "detached", None, ""
    for number, (want, got) in enumerate(zip(expected.gradients, seen.gradients, strict=True)):
        if want is not None and got is None and bool(want.any()):
            return "detached", None, _cut_off(key, case, number, seen.gradients)
        diff = None if want is None or got is None else difference(want, got, gradient_tolerance(case, want))
        if diff is not None and diff.kind != "dtype":
            kind = "nan" if diff.kind == "nan" else "gradient"
            return kind, diff, leaf_name(key, case, number)
    return "", None, ""


def _cut_off(key, case: Case, number: int, gradients: list) -> str:
    """The name of the number-th leaf, which has no gradient; of the whole dict where none of its tensors has one."""
    name = leaf_name(key, case, number)
    whole, bracket, _ = name.partition("[")
    same = [got for i, got in enumerate(gradients) if leaf_name(key, case, i).startswith(f"{whole}[")]
    return whole if bracket and all(got is None for got in same) else name


def leaf_name(key, case: Case, number: int) -> str:
    """The name of the number-th differentiable input, or of a parameter of the module."""
    call, names = case.call, []
    for position, item in enumerate(call.args):
        if position not in case.no_gradient:
            names += _leaf_names(argument_name(key, position), item)
    for name, item in call.kwargs.items():
        names += _leaf_names(name, item)
    if number < len(names):
        return names[number]
    state = list(call.state)
    return state[number - len(names)] if number - len(names) < len(state) else "a parameter"


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
    if any(_mutable((*case.args, *case.kwargs.values())) for case in key.cases):
        names.insert(names.index(DTYPE) + 1 if DTYPE in names else len(names), UNCHANGED)
    wrong = {problem.part for problem in problems}
    return [Part(name, name not in wrong) for name in names]


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
    rows = zip(key.cases, key.expected, observations, strict=True)
    right = [{facet: agree(*row, facet) for facet in FACETS} for row in rows]
    everywhere = set(range(len(key.cases)))
    apart = {number for number in everywhere if _judged_apart(key, key.cases[number])}
    others = everywhere - apart
    wrong = any(False in right[number].values() for number in others)
    returned = {number for number in everywhere if observations[number].error is None}
    plain = {number for number in everywhere if key.cases[number].part == VALUES}
    tried = [everywhere, (others if wrong else apart) if apart else set()]
    tried.append(returned if returned & plain else set())
    tried.append(plain if _fractions([key.expected[number].output for number in plain]) > 1 else set())
    named = (_most_telling(key, observations, right, among) for among in tried if among)
    return next((mistake for mistake in named if mistake is not None), None)


def _judged_apart(key: ExerciseKey, case: Case) -> bool:
    """Whether a slip on a case is one of its own: an error that should be raised, inputs that `view` refuses."""
    return case.part in (*key.apart, LEADING) or case.raises is not None or case.via == "on_views"


def _fractions(outputs: list) -> int:
    """How many numbers of these outputs are not whole."""
    numbers = [torch.as_tensor(leaf) for leaf in leaves(outputs) if isinstance(leaf, (float, torch.Tensor))]
    return sum(int((leaf != leaf.round()).sum()) for leaf in numbers if leaf.is_floating_point())


def _most_telling(
    key: ExerciseKey, observations: list[Observation], right: list[dict[str, bool | None]], among: set[int]
) -> KnownMistake | None:
    """Of the mistakes that explain all that was seen on these cases, the one that shows on more than the others do; of
    two that show on the same, the one that shows nowhere else, or the first if they say the same. None where there is
    none such."""
    if all(observations[number].error is not None for number in among):
        return None  # an error alone, on every call, does not say what was meant
    shown = [(mistake, _shown(key, mistake, observations, right, among)) for mistake in key.mistakes]
    shown = [(mistake, where) for mistake, where in shown if where]
    most = [(mistake, where) for mistake, where in shown if all(where >= other for _, other in shown)]
    if len(most) > 1:
        most = [(mistake, where) for mistake, where in most if not _shows_beyond(key, mistake, among)]
    return most[0][0] if len({(mistake.label, mistake.hint) for mistake, _ in most}) == 1 else None


def _shown(
    key: ExerciseKey,
    mistake: KnownMistake,
    observations: list[Observation],
    right: list[dict[str, bool | None]],
    among: set[int],
) -> set[tuple[int, str]]:
    """The cases (by number) and facets in which the mistake differs from the reference, when the answer shows it in
    each of them and is right in all others; else nothing. right: where the answer agrees with the reference. Only the
    cases `among` are looked at."""
    where = set()
    for number in sorted(among):
        case, expected, seen = key.cases[number], key.expected[number], observations[number]
        wrong = mistake.observations[number]
        for facet in FACETS:
            if agree(case, expected, wrong, facet) is False:
                if agree(case, wrong, seen, facet) is not True:
                    return set()
                where.add((number, facet))
            elif right[number][facet] is False and agree(case, wrong, seen, facet) is not True:
                return set()
    return where


def _shows_beyond(key: ExerciseKey, mistake: KnownMistake, among: set[int]) -> bool:
    """Whether a mistake differs from the reference on a case that is not `among` these."""
    rows = enumerate(zip(key.cases, key.expected, mistake.observations, strict=True))
    return any(differs(*row) for number, row in rows if number not in among)
