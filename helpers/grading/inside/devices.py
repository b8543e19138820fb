"""Run code that requests an absent GPU ("cuda", "mps" or "xpu") on the CPU, and remember the request for a flag."""

import functools
import inspect
import re
import sys

import torch
from torch.overrides import TorchFunctionMode

DEVICE_TYPES = ("cuda", "mps", "xpu")
NAMES_DEVICE = re.compile(rf"\b(?:{'|'.join(DEVICE_TYPES)})\b")
# Code that needs no device, because it first tests whether the device is available, and comments.
NEEDS_NO_DEVICE = re.compile(
    r"[\"'](?:cuda|mps)[\"']\s+if\s+[\w.]*is_available\(\)|torch\.(?:cuda|backends\.mps)\.is_available|#.*"
)
GENERATOR_FUNCTIONS = ("get_device_module", "fork_rng")

_moved: list[str] = []  # the type of device of each request for an absent one
_mode: "OnTheProcessor | None" = None


def moved() -> list[str]:
    """The types of absent devices that this process has requested so far."""
    return list(dict.fromkeys(_moved))


def stand_in_for_devices(source: str) -> None:
    """If `source` names a GPU and there is none, let this process run on the CPU all that requests one from now on.

    This is not done for every submission, because it makes each call of torch slightly slower.
    """
    global _mode
    if _mode is not None or not NAMES_DEVICE.search(NEEDS_NO_DEVICE.sub("", source)) or torch.cuda.is_available():
        return
    _mode = OnTheProcessor()
    _mode.__enter__()
    for device_type in DEVICE_TYPES:
        _make_harmless(device_type)
    torch.Generator = Generator


class Nothing(int):
    """The result of a call that needs an absent device: zero, and itself as each of its attributes and when called."""

    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args, **kwargs):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None

    def __iter__(self):
        return iter((self, self))  # get_device_capability and mem_get_info return pairs.


def _make_harmless(device_type: str) -> None:
    """Make functions and classes of torch.cuda, say, such as synchronize and Event, do nothing if they need the GPU."""

    def harmless(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except (AssertionError, RuntimeError, AttributeError):
                _moved.append(device_type)
                return Nothing()

        return wrapper

    module = getattr(torch, device_type)
    for name in module.__all__:
        value = getattr(module, name, None)
        if inspect.isfunction(value):
            setattr(module, name, harmless(value))
        elif name in ("Event", "Stream", "StreamContext", "device"):
            setattr(module, name, type(name, (Nothing,), {}))


def _or_cpu(value):
    """Return "cpu" for an absent device, and any other value unchanged."""
    device_type = str(value).partition(":")[0] if isinstance(value, (str, torch.device)) else ""
    if device_type not in DEVICE_TYPES or getattr(torch, device_type).is_available():
        return value
    _moved.append(device_type)
    return "cpu"


class AnyGenerator(type(torch.Generator)):
    """Lets generators that torch made itself pass as instances of the Generator below."""

    def __instancecheck__(cls, value):
        return isinstance(value, Generator.__base__)


class Generator(torch.Generator, metaclass=AnyGenerator):
    """A torch.Generator on an available device. Function modes do not see its constructor, so a subclass is needed."""

    def __new__(cls, device="cpu"):
        return super().__new__(cls, device=_or_cpu(device))


class OnTheProcessor(TorchFunctionMode):
    """Calls torch's functions with the CPU in place of absent devices. A tensor that would have been copied to another
    device is still copied, so that in-place changes of the copy leave the original unchanged."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        # These are no requests: the check reads the autocast state, and torch.random looks up a GPU's module.
        if "autocast" in name or name == "device" and sys._getframe(1).f_code.co_name in GENERATOR_FUNCTIONS:
            return function(*args, **kwargs)
        if name in ("cuda", "pin_memory") and args and isinstance(args[0], torch.Tensor):
            _moved.append("cuda")
            return args[0].clone()
        count = len(_moved)
        args = tuple(map(_or_cpu, args))
        if "device" in kwargs:
            kwargs = {**kwargs, "device": _or_cpu(kwargs["device"])}
        result = function(*args, **kwargs)
        return result.clone() if len(_moved) > count and name == "to" and result is args[0] else result
