"""What single lessons add to the check: `lesson_NN.py` registers a lesson's own fixtures, scenarios and views.

Fixtures and scenarios run beside learner code, in the learner's session and in the judge's sandbox. Views only look at
numbers that came back. The shared ones stand in helpers/checking/{fixtures,scenarios,views}.py.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module


class Registry(dict):
    """Functions by name. The first name that is not registered yet loads every lesson's file."""

    def register(self, function: Callable) -> Callable:
        """Keep `function` under its own name, which no other lesson may have taken."""
        name = function.__name__
        taken = self.get(name)
        if taken is not None and taken.__module__ != function.__module__:
            raise ValueError(f"{name} is registered in {taken.__module__} and again in {function.__module__}")
        self[name] = function
        return function

    def __missing__(self, name: str) -> Callable:
        load()
        if name in self:
            return self[name]
        raise KeyError(name)


def load() -> None:
    """Import every lesson's file; a second call does nothing."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
