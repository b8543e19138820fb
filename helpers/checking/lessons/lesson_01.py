"""Lesson 1. Beside learner code: the fixture. Only on numbers: nothing."""

from __future__ import annotations

from helpers.checking.fixtures import fixture


class _OnlyContains:
    """Tokens of which one can only ask whether a token is `in` them."""

    def __init__(self, tokens):
        self._tokens = frozenset(tokens)

    def __contains__(self, token):
        return token in self._tokens

    def __repr__(self):
        return f"a vocabulary of {len(self._tokens)} tokens that only knows `in`"


@fixture
def only_contains(*tokens):
    """The poorest object that may be called a vocabulary."""
    return _OnlyContains(tokens)
