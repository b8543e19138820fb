"""What the check says of an answer, on inputs of a seed: keys are made once for all tests of a process."""

from __future__ import annotations

import functools
from dataclasses import replace

from helpers.authoring.blocks import load_blocks
from helpers.authoring.keys import load_answer_key
from helpers.checking.key import ExerciseKey
from helpers.checking.make_keys import make_key
from helpers.checking.messages import decide
from helpers.checking.observe import observe_all
from helpers.checking.verdict import Verdict
from helpers.course import course


@functools.cache
def made_key(lesson: str, name: str, seed: int, points: float = 100, named: bool = True) -> ExerciseKey:
    """The key of an exercise on the inputs of a seed. named=False leaves its known mistakes away, which is faster."""
    home, own = course(), course().lesson(lesson)
    (exercise,) = (item for item in load_answer_key(home, own).exercises if item.name == name)
    reference = None if exercise.metric else getattr(load_blocks(home, own), name)
    return make_key(lesson, exercise if named else replace(exercise, mistakes=()), points, False, reference, seed)


def verdict_of(
    lesson: str, name: str, answer, /, seed: int = 0, points: float = 100, named: bool = True, **facts
) -> Verdict:
    """The verdict on an answer. facts: what differs from the exercise's own, such as its time limit.

    Blocks of the lesson are judged as a stranger's: as an answer to their own exercise the check refuses them.
    """
    key = made_key(lesson, name, seed, points, named)
    return decide(key, observe_all(answer, key.cases, replace(key.facts, **{"lesson": "99_test"} | facts)))
