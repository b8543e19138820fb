"""Make a lesson's keys from its answer key and its finished blocks, for the build (fixed seed) and for the judge.

This needs solutions/ and the finished blocks, so it works only in the author's and the teacher's edition.
"""

import ast
import contextlib
import functools
import inspect
import linecache
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import nn

from helpers.checking.codec import Odd
from helpers.checking.facets import differs
from helpers.checking.key import ExerciseKey, KnownMistake
from helpers.checking.messages import decide
from helpers.checking.mistake_lists import ARROW
from helpers.checking.observe import Facts, Observation, observe_all, viewed
from helpers.checking.vocabulary import VALUES, Case, Draw, Exercise, Mistake, Quiz
from helpers.course import Lesson

MISTAKE_TIME_LIMIT = 5.0
DRAWS, SEED_STEP = 4, 1_000_003  # the most draws of cases until every mistake shows, and how far apart their seeds are
TOOLS = {"torch": torch, "nn": nn, "F": F, "math": math}  # names that an edit may use even if the solution does not
# The check refuses blocks of the exercise's own lesson, and the reference is one, so it is observed in another lesson.
OTHER_LESSON = "99_reference"


class UnsoundKey(ValueError):
    """An answer key that contradicts itself. Each argument is a sentence about one contradiction."""

    def __str__(self) -> str:
        return "; ".join(self.args)


class NotShown(UnsoundKey):
    """A mistake that agrees with the reference on every case that was drawn."""


class MissingPiece(LookupError):
    """The finished block of an exercise is missing from its lesson's blocks; the message says which."""


def lesson_keys(
    lesson: Lesson, items: Iterable[Exercise | Quiz], blocks: ModuleType, seed: int
) -> Iterator[ExerciseKey]:
    """The keys of a lesson's exercises and quizzes, in order. blocks: the module of the lesson's finished blocks.

    Raises MissingPiece, and UnsoundKey as make_key does.
    """
    for item in items:
        needed = not isinstance(item, Quiz) and not item.metric
        reference = getattr(blocks, item.name, None) if needed else None
        if reference is None and needed:
            raise MissingPiece(
                f"the finished {item.name} of {lesson.name} is missing; run `course build {lesson.name}`"
            )
        bonus = item.name in lesson.bonus
        points = (lesson.bonus if bonus else lesson.points).get(item.name, 0)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with warnings.catch_warnings(action="ignore"):  # known mistakes are wrong on purpose, so they may warn
                key = make_key(lesson.name, item, points, bonus, reference, seed)
        finally:
            torch.set_num_threads(threads)
        yield key


def make_key(
    lesson: str, exercise: Exercise | Quiz, points: float, bonus: bool, reference: Callable | None, seed: int
) -> ExerciseKey:
    """Run the reference and every known mistake on the exercise's cases for `seed`.

    reference: the exercise's block, as its file defines it; None for a quiz or a measured exercise. If some mistake
    happens to be right on all cases, they are drawn again. Raises UnsoundKey if the reference raises or changes an
    input, or if a mistake cannot be made or is right in every draw.
    """
    key = ExerciseKey(lesson, exercise.name, points, bonus, facts=Facts(exercise.name, lesson))
    if isinstance(exercise, Quiz):
        return replace(key, kind="quiz", correct=exercise.correct, explanations=dict(exercise.explanations))
    facts = replace(key.facts, forbidden=tuple(exercise.forbidden), time_limit=exercise.time_limit)
    key = replace(key, facts=facts, instead=exercise.instead)
    if exercise.metric:
        return _measured_key(key, exercise, exercise.cases(Draw(seed)))
    if reference is None:
        raise UnsoundKey(f"{lesson}, {exercise.name} has no solution to compare an answer with")
    for draw in range(DRAWS - 1):
        with contextlib.suppress(NotShown):
            return _drawn_key(key, exercise, reference, seed + draw * SEED_STEP)
    return _drawn_key(key, exercise, reference, seed + (DRAWS - 1) * SEED_STEP)


def _drawn_key(key: ExerciseKey, exercise: Exercise, reference: Callable, seed: int) -> ExerciseKey:
    """The key with the cases of one draw. Raises NotShown if a mistake agrees with the reference on all of them."""
    where, cases = f"{key.lesson}, {key.name}", exercise.cases(Draw(seed))
    if not any(case.part == VALUES for case in cases):
        raise UnsoundKey(f"{where}: no case is of part {VALUES!r}, so no answer would have any points")
    facts = Facts(key.name, OTHER_LESSON, (), MISTAKE_TIME_LIMIT)
    expected = _observed(reference, cases, facts)
    for case, seen in zip(cases, expected, strict=True):
        _require_sound(f"{where}, case of part {case.part!r}", case, seen)
    mistakes = []
    for item, wrong in _wrong_answers(exercise, reference):
        observations = _observed(wrong, cases, facts)
        if not any(differs(*row) for row in zip(cases, expected, observations, strict=True)):
            raise NotShown(
                f"{where}: the mistake {item.name} agrees with the solution on every case; add "
                "a case on which it is wrong, or remove the mistake"
            )
        mistakes.append(KnownMistake(item.name, item.label, item.hint, observations))
    return replace(
        key,
        cases=cases,
        expected=expected,
        mistakes=mistakes,
        arguments=_argument_names(reference, cases),
        axes=tuple(exercise.axes),
        weights=dict(exercise.weights),
        apart=tuple(exercise.apart),
    )


def _measured_key(key: ExerciseKey, exercise: Exercise, cases: list[Case]) -> ExerciseKey:
    """The key of an exercise that is judged by a metric. The truths take the place of a reference's outputs."""
    where = f"{key.lesson}, {key.name}"
    for case in cases:
        if case.truth is None or case.view or case.gradient or case.raises:
            raise UnsoundKey(f"{where}: a measured exercise's case needs a truth, and no view, gradient or raises")
    key = replace(
        key,
        cases=[replace(case, truth=None) for case in cases],
        expected=[Observation(output=case.truth) for case in cases],
        metric=exercise.metric,
    )
    verdict = decide(key, [Observation(output=output) for output in best_outputs(exercise, cases)])
    if not verdict.passed or verdict.points != verdict.max_points:
        why = " ".join(verdict.message.splitlines()) or "no reason given"
        raise UnsoundKey(f"{where}: what should be a perfect answer is measured as not good enough ({why})")
    for item in exercise.mistakes:
        observations = []
        if item.wrong is not None:
            observations = _observed(wrong_answer(item, None), key.cases, Facts(key.name, OTHER_LESSON))
        if observations and decide(key, observations).passed:
            raise UnsoundKey(f"{where}: the mistake {item.name} is measured as right")
        key.mistakes.append(KnownMistake(item.name, item.label, item.hint, observations))
    return key


def best_outputs(exercise: Exercise, cases: list[Case]) -> list:
    """What a perfect answer to a measured exercise returns for its cases."""
    return [case.truth if exercise.best is None else exercise.best(case) for case in cases]


def _wrong_answers(exercise: Exercise, reference: Callable) -> list[tuple[Mistake, Callable]]:
    """Every mistake as code. Raises UnsoundKey with one argument for each mistake that cannot be made."""
    answers: list[tuple[Mistake, Callable]] = []
    problems: list[str] = []
    for item in exercise.mistakes:
        try:
            answers.append((item, wrong_answer(item, reference)))
        except UnsoundKey as error:
            problems += error.args
    if problems:
        raise UnsoundKey(*problems)
    return answers


def wrong_answer(mistake: Mistake, reference: Callable | None) -> Callable:
    """The mistake as code: its own function, or the edited solution. Raises UnsoundKey if that cannot be made."""
    if mistake.wrong is None:
        raise UnsoundKey(f"the mistake {mistake.name} has neither an edit nor a function; only a metric can do without")
    if callable(mistake.wrong):
        return mistake.wrong
    if reference is None:
        raise UnsoundKey(f"the mistake {mistake.name} is an edit, and a measured exercise has no solution to edit")
    name, source = reference.__name__, edited(mistake, reference)
    filename = f"<{mistake.name} of {name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    names: dict = TOOLS | dict(_globals(reference)) | {"__name__": f"mistake_{mistake.name}"}
    try:
        exec(compile(source, filename, "exec"), names)
    except Exception as error:
        raise UnsoundKey(f"{name}: the mistake {mistake.name} does not run: {type(error).__name__}: {error}") from None
    return names[name]


def edited(mistake: Mistake, reference: Callable) -> str:
    """The source of the solution with the mistake's edits. Raises UnsoundKey if an edit does not fit."""
    name = reference.__name__
    source = definition(Path(_globals(reference)["__file__"]).read_text(encoding="utf-8"), name)
    for edit in mistake.edits:
        old, arrow, new = edit.partition(ARROW)
        if not arrow:
            raise UnsoundKey(f"{name}: the edit {edit!r} of {mistake.name} needs {ARROW!r} between old and new")
        if (count := source.count(old)) != 1:
            where = "in the solution with its docstring"
            raise UnsoundKey(f"{name}: {old!r} of {mistake.name} occurs {count} times {where}, not once")
        source = source.replace(old, new)
    return source


def _globals(reference: Callable) -> dict:
    if isinstance(reference, type):
        reference = next(item for item in vars(reference).values() if inspect.isfunction(item))
    return reference.__globals__


@functools.lru_cache(maxsize=64)  # called once for each mistake of an exercise, with the same arguments
def definition(text: str, name: str) -> str:
    """The source of the function or class `name` in a module's text. Raises LookupError if there is none."""
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return f"{ast.get_source_segment(text, node)}\n"
    raise LookupError(f"no definition of {name}")


def _observed(answer: Callable, cases: list[Case], facts: Facts) -> list[Observation]:
    return [viewed(case, seen) for case, seen in zip(cases, observe_all(answer, cases, facts, scan=False), strict=True)]


def _require_sound(where: str, case: Case, seen: Observation) -> None:
    if case.raises is None and seen.error is not None:
        raise UnsoundKey(f"{where}: the reference raised {seen.error.type}: {seen.error.message}")
    if case.raises is not None and (seen.error is None or seen.error.type != case.raises.error):
        raise UnsoundKey(f"{where}: the reference did not raise {case.raises.error}")
    if seen.changed:
        raise UnsoundKey(f"{where}: the reference changed its input {seen.changed[0]}")
    if seen.gradient_error is not None:
        raise UnsoundKey(f"{where}: the reference's gradient raised {seen.gradient_error.message}")
    if isinstance(seen.output, Odd):
        raise UnsoundKey(f"{where}: the reference returned {seen.output.type_name} {seen.output.text}")


def _argument_names(reference, cases: list[Case]) -> list[str]:
    builds = cases[0].call.init is not None
    if isinstance(reference, type) and not builds:
        return []  # the case's arguments are the scenario's, which makes the object and calls it
    names = list(inspect.signature(getattr(reference, "forward", reference) if builds else reference).parameters)
    return names[1:] if names[:1] == ["self"] else names
