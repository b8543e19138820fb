"""Lesson 1. Beside learner code: the fixture. Only on numbers: nothing."""

from __future__ import annotations

from helpers.checking.fixtures import fixture


@fixture
def set_of_pieces(*pieces):
    """A set of pieces."""
    return set(pieces)
