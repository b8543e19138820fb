"""Finished blocks tell when they are called, and what observes is looked at for what learner code replaced of it."""

import functools
import importlib
import importlib.util
import pkgutil
import sys
import types
from collections.abc import Callable

COURSE = ("helpers.translator", "helpers.lessons", "helpers.or_finished")
WATCHED = (
    ("torch", "allclose equal isclose all"),
    ("torch.testing", "assert_close"),
    ("torch.Tensor", "__eq__ __init_subclass__ allclose equal clone numpy detach"),
    ("helpers.checking.observe", "observe observe_all describe Watch in_source plain difference"),
    ("helpers.checking.forbidden", "Watch in_source banned_names _ByName _ByOperator"),
    ("helpers.checking.codec", "dumps loads plain pack"),
    ("helpers.checking.compare", "difference"),
    ("builtins", "isinstance type len sum all any abs print"),
    ("time", "perf_counter monotonic"),
    ("signal", "signal setitimer"),
)
OBSERVERS = (  # of these, all functions
    "helpers.running.torch_insides",
    *(f"helpers.checking.{name}" for name in ("observe", "forbidden", "codec", "compare", "scenarios")),
)
_originals: dict[tuple[str, str], object] = {}
_codes: dict[tuple[str, str], types.CodeType] = {}


def report_stand_in_calls() -> None:
    """Wrap what stands in for answers (helpers/or_finished.py), and what writes translations, wherever the course's
    modules keep it."""
    from helpers import lessons
    from helpers.translator import decoding, finished_parts, network, trained

    modules = [finished_parts, network]
    for package in pkgutil.iter_modules(lessons.__path__, f"{lessons.__name__}."):
        if importlib.util.find_spec(f"{package.name}.stand_ins"):
            modules.append(importlib.import_module(f"{package.name}.stand_ins"))
    writers = (trained.greedy, trained.source_batch, trained.translate, decoding.write)
    wrapped = {writer: _reporting(writer, f"{writer.__module__}.{writer.__name__}") for writer in writers}
    for home in modules:
        values = [value for table in _tables(home) for value in table.values()]
        for value in [value for value in values if getattr(value, "__module__", "") == home.__name__]:
            if isinstance(value, types.FunctionType):
                wrapped[value] = _reporting(value, f"{home.__name__}.{value.__name__}")
            elif isinstance(value, type) and "__init__" in vars(value):
                value.__init__ = _reporting(value.__init__, f"{home.__name__}.{value.__name__}")
    for name, module in list(sys.modules.items()):
        if name.startswith(COURSE):
            for table in _tables(module):
                functions = {key: value for key, value in table.items() if isinstance(value, types.FunctionType)}
                table.update({key: wrapped[value] for key, value in functions.items() if value in wrapped})


def _tables(module: types.ModuleType) -> list[dict]:
    """What a module binds, and the table of the translator's parts among it."""
    return [vars(module), getattr(module, "FINISHED_PARTS", {})]


def _reporting(function: Callable, name: str) -> Callable:
    reported: set[str] = set()

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        from helpers.checking import forbidden

        caller = str(sys._getframe(1).f_globals.get("__name__", ""))
        if forbidden.tell is not None and name not in reported and not caller.startswith(COURSE):
            reported.add(name)
            forbidden.tell(name)
        return function(*args, **kwargs)

    del wrapper.__wrapped__
    return wrapper


def remember_originals() -> None:
    """Keep what WATCHED names and what observes, before any learner code runs."""
    for home, names in WATCHED:
        for name in names.split():
            _originals[home, name] = _current(home, name)
    _codes.update(_observers_code())


def patched_names() -> list[str]:
    """What the learner's code replaced of these: for a person to look at, no proof of anything."""
    names = [f"{home}.{name}" for (home, name), original in _originals.items() if _current(home, name) is not original]
    current = _observers_code()
    names += [f"{home}.{name}" for (home, name), code in _codes.items() if current.get((home, name)) is not code]
    return list(dict.fromkeys(names))


def _observers_code() -> dict[tuple[str, str], types.CodeType]:
    """The code of every function and method in the modules that observe."""
    codes = {}
    for home in OBSERVERS:
        for name, value in list(vars(sys.modules[home]).items()):
            if isinstance(value, types.FunctionType):
                codes[home, name] = value.__code__
            elif isinstance(value, type) and value.__module__ == home:
                methods = [(n, m) for n, m in vars(value).items() if isinstance(m, types.FunctionType)]
                codes.update({(home, f"{name}.{inner}"): method.__code__ for inner, method in methods})
    return codes


def _current(home: str, name: str):
    module, _, name_of_class = home.rpartition(".")
    owner = sys.modules.get(home) or getattr(sys.modules[module], name_of_class)
    return vars(owner).get(name)
