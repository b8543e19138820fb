"""What learner code replaced of that which observes it."""

import sys
import types

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
