"""What single lessons add to the check: a lesson's probes.py registers its own stubs, scenarios and views.

Stubs and scenarios run beside learner code, in the learner's session and in the judge's sandbox. Views only look at
numbers that came back. The shared ones stand in helpers/checking/{stubs,scenarios,views}.py.
"""

import pkgutil
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from helpers import lessons


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
    """Import the probes of every lesson that has some; a second call does nothing."""
    for room in pkgutil.iter_modules(lessons.__path__, f"{lessons.__name__}."):
        if find_spec(f"{room.name}.probes"):
            import_module(f"{room.name}.probes")
