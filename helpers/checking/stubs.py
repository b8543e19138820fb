"""Public objects that cases pass as arguments, by name. None of them is a solution of an exercise.

A lesson's own stand in its file in helpers/checking/lessons.
"""

from __future__ import annotations

import types
from collections.abc import Callable

from helpers.checking.registry import Registry
from helpers.checking.vocabulary import Stub

STUBS = Registry()


def stub(make: Callable) -> Callable:
    """Register `make` under its own name: Stub(name, args) becomes make(*args)."""
    return STUBS.register(make)


def resolve(tree):
    """The tree with every Stub replaced by the object that it names."""
    if isinstance(tree, Stub):
        made = STUBS[tree.name](*tree.args)
        return _unnamed(made) if isinstance(made, types.FunctionType) else made
    if isinstance(tree, (list, tuple)):
        return type(tree)(resolve(item) for item in tree)
    if isinstance(tree, dict):
        return {key: resolve(item) for key, item in tree.items()}
    return tree


def _unnamed(function: Callable) -> Callable:
    """The same function under a name that does not tell what is asked of it."""

    def f(*args, **kwargs):
        return function(*args, **kwargs)

    f.__qualname__ = "f"
    return f
