"""The check's verdicts on answers, with keys that are made once per process and seed."""

import functools
from dataclasses import replace

from helpers.authoring.blocks import load_blocks
from helpers.authoring.keys import load_answer_key
from helpers.checking.facets import agree
from helpers.checking.key import ExerciseKey
from helpers.checking.make_keys import make_key
from helpers.checking.messages import decide
from helpers.checking.observe import observe_all, viewed
from helpers.checking.verdict import Verdict
from helpers.course import course
from tests.conftest import stored_key


@functools.cache
def made_key(lesson: str, name: str, seed: int, points: float = 100) -> ExerciseKey:
    """Return the key of an exercise for the inputs of a seed."""
    home, own = course(), course().lesson(lesson)
    (exercise,) = (item for item in load_answer_key(home, own).exercises if item.name == name)
    reference = None if exercise.metric else getattr(load_blocks(home, own), name)
    return make_key(lesson, exercise, points, False, reference, seed)


def verdict_of(lesson: str, name: str, answer, /, seed: int = 0, points: float = 100, **facts) -> Verdict:
    """Return the verdict on an answer. facts: changes of the exercise's facts, such as its time limit.

    The answer is judged under another lesson's name, because the check refuses a lesson's own blocks as answers.
    """
    key = made_key(lesson, name, seed, points)
    return decide(key, observe_all(answer, key.cases, replace(key.facts, **{"lesson": "99_test"} | facts)))


def stored_verdict(lesson: str, name: str, answer, /, time_limit: float = 5.0, **facts) -> Verdict:
    """Return the verdict on an answer like verdict_of, but for the inputs that learners have."""
    key = stored_key(lesson, name)
    own = replace(key.facts, **{"lesson": "99_test", "time_limit": time_limit} | facts)
    return decide(key, observe_all(answer, key.cases, own))


def differing_parts(lesson: str, name: str, answer) -> set[str]:
    """Return the parts of an exercise in which the answer's output differs from the reference's, whatever it calls."""
    key = stored_key(lesson, name)
    seen = observe_all(answer, key.cases, replace(key.facts, forbidden=()))
    return {
        case.part
        for case, expected, one in zip(key.cases, key.expected, seen, strict=True)
        if not agree(case, expected, viewed(case, one), "output")
    }
