"""Public objects that cases pass as arguments, by name. None of them is a solution of an exercise."""

from __future__ import annotations

from collections.abc import Callable

from helpers.check.vocabulary import Fixture

FIXTURES: dict[str, Callable] = {}


def fixture(make: Callable) -> Callable:
    """Register `make` under its own name: Fixture(name, args) becomes make(*args)."""
    FIXTURES[make.__name__] = make
    return make


def resolve(tree):
    """The tree with every Fixture replaced by the object that it names."""
    if isinstance(tree, Fixture):
        return FIXTURES[tree.name](*tree.args)
    if isinstance(tree, (list, tuple)):
        return type(tree)(resolve(item) for item in tree)
    if isinstance(tree, dict):
        return {key: resolve(item) for key, item in tree.items()}
    return tree


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
    """Lesson 1: the poorest object that may be called a vocabulary."""
    return _OnlyContains(tokens)
