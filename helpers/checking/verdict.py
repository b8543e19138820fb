"""The verdict on an answer, with its words: first it is decided, then said."""

from __future__ import annotations

from helpers.checking.deciding import RESERVED as RESERVED
from helpers.checking.deciding import Part as Part
from helpers.checking.deciding import Picture as Picture
from helpers.checking.deciding import Problem as Problem
from helpers.checking.deciding import Verdict as Verdict
from helpers.checking.deciding import decide_quiz as decide_quiz
from helpers.checking.deciding import decided
from helpers.checking.deciding import not_answered as not_answered
from helpers.checking.deciding import refused as refused
from helpers.checking.diagnose import worded
from helpers.checking.key import ExerciseKey
from helpers.checking.observe import Observation


def decide(key: ExerciseKey, observations: list[Observation]) -> Verdict:
    """The verdict on one answer's observations, one for each of the key's cases, in their order."""
    return worded(key, decided(key, observations))
