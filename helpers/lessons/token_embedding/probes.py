"""Lesson 1. Beside learner code: the stub. Only on numbers: nothing."""

from __future__ import annotations

from helpers.checking.stubs import stub


@stub
def set_of_pieces(*pieces):
    """A set of pieces."""
    return set(pieces)
