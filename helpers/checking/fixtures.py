"""Public objects that cases pass as arguments, by name. None of them is a solution of an exercise.

A lesson's own stand in its file in helpers/checking/lessons.
"""

from __future__ import annotations

from collections.abc import Callable

from helpers.checking.lessons import Registry
from helpers.checking.vocabulary import Fixture

FIXTURES = Registry()


def fixture(make: Callable) -> Callable:
    """Register `make` under its own name: Fixture(name, args) becomes make(*args)."""
    return FIXTURES.register(make)


def resolve(tree):
    """The tree with every Fixture replaced by the object that it names."""
    if isinstance(tree, Fixture):
        return FIXTURES[tree.name](*tree.args)
    if isinstance(tree, (list, tuple)):
        return type(tree)(resolve(item) for item in tree)
    if isinstance(tree, dict):
        return {key: resolve(item) for key, item in tree.items()}
    return tree
