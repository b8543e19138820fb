"""The course's own finished blocks tell when an answer calls them, by whatever way it came to them."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
import sys
import types
from collections.abc import Callable

TABLES = ("STAND_INS", "FINISHED_PARTS")  # by which the course's modules keep them, by name
COURSE = ("helpers.translator", "helpers.lessons", "helpers.or_finished")


def report_stand_in_calls() -> None:
    """Wrap what stands in for answers (helpers/or_finished.py) wherever the course's modules keep it."""
    from helpers import lessons
    from helpers.translator import finished_parts, network

    homes = [finished_parts, network]
    for room in pkgutil.iter_modules(lessons.__path__, f"{lessons.__name__}."):
        if importlib.util.find_spec(f"{room.name}.stand_ins"):
            homes.append(importlib.import_module(f"{room.name}.stand_ins"))
    telling = {}
    for home in homes:
        for thing in [thing for table in _tables(home) for thing in table.values()]:
            if getattr(thing, "__module__", "") != home.__name__:
                continue
            if isinstance(thing, types.FunctionType):
                telling[thing] = _telling(thing, f"{home.__name__}.{thing.__name__}")
            elif isinstance(thing, type) and "__init__" in vars(thing):
                thing.__init__ = _telling(thing.__init__, f"{home.__name__}.{thing.__name__}")
    for name, module in list(sys.modules.items()):
        if name.startswith(COURSE):
            for table in _tables(module):
                table.update({key: telling[thing] for key, thing in table.items() if _is_in(thing, telling)})


def _tables(module: types.ModuleType) -> list[dict]:
    """What a module binds, and the tables of stand-ins among it."""
    return [vars(module), *(getattr(module, name, {}) for name in TABLES)]


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
