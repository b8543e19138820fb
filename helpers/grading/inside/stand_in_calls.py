"""The course's own finished blocks tell when an answer calls them, by whatever way it came to them."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
import sys
import types
from collections.abc import Callable

COURSE = ("helpers.translator", "helpers.lessons", "helpers.or_given")


def report_stand_in_calls() -> None:
    """Wrap what stands in for answers (helpers/or_given.py) wherever the course's modules keep it."""
    from helpers import lessons
    from helpers.translator import given, network

    modules = [given, network]
    for package in pkgutil.iter_modules(lessons.__path__, f"{lessons.__name__}."):
        if importlib.util.find_spec(f"{package.name}.given"):
            modules.append(importlib.import_module(f"{package.name}.given"))
    wrapped = {}
    for module_of in modules:
        for value in [*vars(module_of).values(), *getattr(module_of, "GIVEN", {}).values()]:
            if getattr(value, "__module__", "") != module_of.__name__:
                continue
            if isinstance(value, types.FunctionType):
                wrapped[value] = _reporting(value, f"{module_of.__name__}.{value.__name__}")
            elif isinstance(value, type) and "__init__" in vars(value):
                value.__init__ = _reporting(value.__init__, f"{module_of.__name__}.{value.__name__}")
    for name, module in list(sys.modules.items()):
        if name.startswith(COURSE):
            for table in (vars(module), getattr(module, "GIVEN", {})):
                table.update({key: wrapped[value] for key, value in table.items() if _is_in(value, wrapped)})


def _is_in(thing, telling: dict) -> bool:
    return isinstance(thing, types.FunctionType) and thing in telling


def _reporting(function: Callable, name: str) -> Callable:
    reported: set[str] = set()

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        from helpers.checking import forbidden

        if forbidden.tell is not None and name not in reported and not _is_the_courses(sys._getframe(1)):
            reported.add(name)
            forbidden.tell(name)
        return function(*args, **kwargs)

    del wrapper.__wrapped__
    return wrapper


def _is_the_courses(frame: types.FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith(COURSE)
