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

    homes = [given, network]
    for room in pkgutil.iter_modules(lessons.__path__, f"{lessons.__name__}."):
        if importlib.util.find_spec(f"{room.name}.given"):
            homes.append(importlib.import_module(f"{room.name}.given"))
    telling = {}
    for home in homes:
        for thing in [*vars(home).values(), *getattr(home, "GIVEN", {}).values()]:
            if getattr(thing, "__module__", "") != home.__name__:
                continue
            if isinstance(thing, types.FunctionType):
                telling[thing] = _telling(thing, f"{home.__name__}.{thing.__name__}")
            elif isinstance(thing, type) and "__init__" in vars(thing):
                thing.__init__ = _telling(thing.__init__, f"{home.__name__}.{thing.__name__}")
    for name, module in list(sys.modules.items()):
        if name.startswith(COURSE):
            for table in (vars(module), getattr(module, "GIVEN", {})):
                table.update({key: telling[thing] for key, thing in table.items() if _is_in(thing, telling)})


def _is_in(thing, telling: dict) -> bool:
    return isinstance(thing, types.FunctionType) and thing in telling


def _telling(part: Callable, name: str) -> Callable:
    said: set[str] = set()

    @functools.wraps(part)
    def told(*args, **kwargs):
        from helpers.checking import forbidden

        if forbidden.tell is not None and name not in said and not _is_the_courses(sys._getframe(1)):
            said.add(name)
            forbidden.tell(name)
        return part(*args, **kwargs)

    del told.__wrapped__
    return told


def _is_the_courses(frame: types.FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith(COURSE)
