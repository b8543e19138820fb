"""Report calls of the course's finished code, and find the observing functions that learner code has replaced."""

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
OBSERVERS = (  # modules of which all functions are watched
    "helpers.running.torch_insides",
    *(f"helpers.checking.{name}" for name in ("observe", "forbidden", "codec", "compare", "scenarios")),
)
_originals: dict[tuple[str, str], object] = {}
_codes: dict[tuple[str, str], types.CodeType] = {}


def report_stand_in_calls() -> None:
    """Let the functions that translate, and the finished parts that replace answers (helpers/or_finished.py), report
    their calls, in every module of the course that has imported them."""
    from helpers import lessons
    from helpers.translator import decoding, finished_parts, network, trained

    modules = [finished_parts, network]
    for package in pkgutil.iter_modules(lessons.__path__, f"{lessons.__name__}."):
        if importlib.util.find_spec(f"{package.name}.stand_ins"):
            modules.append(importlib.import_module(f"{package.name}.stand_ins"))
    translators = (trained.greedy, trained.source_batch, trained.translate, decoding.write)
    wrapped = {function: _reporting(function, f"{function.__module__}.{function.__name__}") for function in translators}
    for module in modules:
        values = [value for table in _tables(module) for value in table.values()]
        for value in [value for value in values if getattr(value, "__module__", "") == module.__name__]:
            if isinstance(value, types.FunctionType):
                wrapped[value] = _reporting(value, f"{module.__name__}.{value.__name__}")
            elif isinstance(value, type) and "__init__" in vars(value):
                value.__init__ = _reporting(value.__init__, f"{module.__name__}.{value.__name__}")
    for name, module in list(sys.modules.items()):
        if name.startswith(COURSE):
            for table in _tables(module):
                functions = {key: value for key, value in table.items() if isinstance(value, types.FunctionType)}
                table.update({key: wrapped[value] for key, value in functions.items() if value in wrapped})


def _tables(module: types.ModuleType) -> list[dict]:
    """The namespace of a module, and its table of the translator's parts, empty if it has none."""
    return [vars(module), getattr(module, "FINISHED_PARTS", {})]


def _reporting(function: Callable, name: str) -> Callable:
    """Wrap `function` so that its first call from outside of COURSE is reported under `name`."""
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
    """Remember the objects that WATCHED names and the code of OBSERVERS, before any learner code runs."""
    for owner, names in WATCHED:
        for name in names.split():
            _originals[owner, name] = _current(owner, name)
    _codes.update(_observers_code())


def patched_names() -> list[str]:
    """The remembered functions that learner code has replaced. This is for a person to read and proves nothing."""
    originals = _originals.items()
    names = [f"{owner}.{name}" for (owner, name), original in originals if _current(owner, name) is not original]
    current = _observers_code()
    names += [f"{module}.{name}" for (module, name), code in _codes.items() if current.get((module, name)) is not code]
    return list(dict.fromkeys(names))


def _observers_code() -> dict[tuple[str, str], types.CodeType]:
    """The code of every function and method in OBSERVERS, by module and qualified name."""
    codes = {}
    for module in OBSERVERS:
        for name, value in list(vars(sys.modules[module]).items()):
            if isinstance(value, types.FunctionType):
                codes[module, name] = value.__code__
            elif isinstance(value, type) and value.__module__ == module:
                methods = [(n, m) for n, m in vars(value).items() if isinstance(m, types.FunctionType)]
                codes.update({(module, f"{name}.{method_name}"): method.__code__ for method_name, method in methods})
    return codes


def _current(owner: str, name: str):
    """What `name` is bound to now in the module or class with the dotted name `owner`."""
    module, _, name_of_class = owner.rpartition(".")
    namespace = sys.modules.get(owner) or getattr(sys.modules[module], name_of_class)
    return vars(namespace).get(name)
