"""A GPU that is not here: code that asks for "cuda" or "mps" runs on the processor, and a person is told."""

import functools
import inspect
import re
import sys

import torch
from torch.overrides import TorchFunctionMode

ASKED = re.compile(r"\b(?:cuda|mps|xpu)\b")
# What asks first whether the device is here, or needs none.
POLITE = re.compile(
    r"[\"'](?:cuda|mps)[\"']\s+if\s+[\w.]*is_available\(\)|torch\.(?:cuda|backends\.mps)\.is_available|#.*"
)
GONE = ("cuda", "mps", "xpu")
OF_GENERATORS = ("get_device_module", "fork_rng")

_moved: list[str] = []  # the kinds of devices that were asked for and are not here
_standing: "OnTheProcessor | None" = None


def moved() -> list[str]:
    """The devices that this process asked for so far and that are not here."""
    return list(dict.fromkeys(_moved))


def stand_in_for_devices(source: str) -> None:
    """From now on this process runs on the processor what `source`, or code after it, wants on a device that is not
    here. Only where the source names one: each call of torch takes a little longer then."""
    global _standing
    if _standing is not None or not ASKED.search(POLITE.sub("", source)) or torch.cuda.is_available():
        return
    _standing = OnTheProcessor()
    _standing.__enter__()
    for kind in GONE:
        _let_be_called(kind)
    torch.Generator = Generator


class Nothing(int):
    """What a device that is not here answers: zero, and itself whatever is asked of it."""

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
        return iter((self, self))  # as of get_device_capability and mem_get_info


def _let_be_called(kind: str) -> None:
    """Let what torch.cuda and its like offer, as synchronize and Event, do nothing where it needs the device."""

    def harmless(called):
        @functools.wraps(called)
        def ask(*args, **kwargs):
            try:
                return called(*args, **kwargs)
            except (AssertionError, RuntimeError, AttributeError):
                _moved.append(kind)
                return Nothing()

        return ask

    module = getattr(torch, kind)
    for name in module.__all__:
        value = getattr(module, name, None)
        if inspect.isfunction(value):
            setattr(module, name, harmless(value))
        elif name in ("Event", "Stream", "StreamContext", "device"):
            setattr(module, name, type(name, (Nothing,), {}))


def _here(value):
    """The processor in place of a device that is not here; anything else as it is."""
    kind = str(value).partition(":")[0] if isinstance(value, (str, torch.device)) else ""
    if kind not in GONE or getattr(torch, kind).is_available():
        return value
    _moved.append(kind)
    return "cpu"


class AnyGenerator(type(torch.Generator)):
    def __instancecheck__(cls, value):
        return isinstance(value, Generator.__base__)


class Generator(torch.Generator, metaclass=AnyGenerator):
    """torch.Generator, which is asked for its device where no mode of torch sees it."""

    def __new__(cls, device="cpu"):
        return super().__new__(cls, device=_here(device))


class OnTheProcessor(TorchFunctionMode):
    """A tensor that would be copied to another device is copied here too."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        # The check looks whether autocast was left on, and torch's generators ask for the module of each device.
        if "autocast" in name or name == "device" and sys._getframe(1).f_code.co_name in OF_GENERATORS:
            return function(*args, **kwargs)
        if name in ("cuda", "pin_memory") and args and isinstance(args[0], torch.Tensor):
            _moved.append("cuda")
            return args[0].clone()
        before = len(_moved)
        args = tuple(map(_here, args))
        if "device" in kwargs:
            kwargs = {**kwargs, "device": _here(kwargs["device"])}
        result = function(*args, **kwargs)
        return result.clone() if len(_moved) > before and name == "to" and result is args[0] else result
