"""Everything that the check uses from torch's internals. tests/test_torch_insides.py fails if torch changes them.

Torch has no public way to see every operator that runs, to notice every run of the autograd engine, or to ask for the
name of a function. Each internal name here is the only way that we found.
"""

import contextlib
import re
from collections.abc import Callable, Iterator

import torch
from torch.overrides import resolve_name
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

# Modules in which everything differentiates, except the switches (forbidden.NO_AUTOGRAD) and vmap.
AUTOGRAD_HOMES = ("torch.autograd", "torch.func", "torch._functorch", "functorch", "torch.utils.checkpoint")
ENGINE = {"run_backward", "_engine_run_backward"}  # the functions that Python's profiler reports when the engine runs
# From the internal names of modules to the ones that people use.
SHORT_HOMES = {"torch.nn.functional.": "F.", "torch._C._nn.": "F.", "torch._C._": "torch."}


class OperatorMode(TorchDispatchMode):
    """A dispatch mode that torch.compile is not told to skip.

    Telling it imports the compiler and sympy, which takes two seconds, and no code that is watched here is compiled.
    """

    @classmethod
    def _should_skip_dynamo(cls):
        return False


def tree_leaves(tree) -> list:
    """The leaves of an operator's arguments or result (a pytree). Most results are a single tensor."""
    return [tree] if isinstance(tree, torch.Tensor) else _pytree.tree_leaves(tree)


def operator_name(operator) -> str:
    """The name of an operator in a dispatch mode, without its overload: "softmax"."""
    return operator.overloadpacket.__name__


def readable(function, name: str) -> str:
    """The usual name of a function in a function mode: "F.softmax", "torch.Tensor.exp"."""
    try:
        full = resolve_name(function)
    except (RuntimeError, TypeError, AttributeError, ValueError):
        full = None
    full = full or f"torch.{name}"
    for home, short in SHORT_HOMES.items():
        full = full.replace(home, short)
    return full


def scripted_operators(thing) -> list[str]:
    """The operators that a scripted or traced function or module runs; empty for anything else."""
    scripted = isinstance(thing, (torch.jit.ScriptFunction, torch.jit.ScriptModule))
    return re.findall(r"aten::(\w+)", str(thing.inlined_graph)) if scripted else []


@contextlib.contextmanager
def watched_engine(note: Callable[[], None]) -> Iterator[None]:
    """While active, calls `note` whenever the autograd engine runs, however it was started."""
    variable = torch.autograd.Variable
    engine = variable._execution_engine

    class Engine:
        def run_backward(self, *args, **kwargs):
            note()
            return engine.run_backward(*args, **kwargs)

        def __getattr__(self, name):
            return getattr(engine, name)

    variable._execution_engine = Engine()  # type: ignore[assignment]  # torch has no public class for it
    try:
        yield
    finally:
        variable._execution_engine = engine


def default_device() -> str:
    """The type of the default device for new tensors; "" if this build of torch does not support it."""
    try:
        return torch.get_default_device().type
    except Exception:  # builds raise different errors for a device that they lack
        return ""


@contextlib.contextmanager
def exact_products() -> Iterator[None]:
    """While active, matrices are multiplied as exactly as their dtype allows.

    If a notebook has used the older switch of one backend (`allow_tf32`), torch.get_float32_matmul_precision raises an
    error since torch 2.9, and the settings must be read from each backend. Earlier versions have no such settings.
    """
    precision = None
    try:
        precision = torch.get_float32_matmul_precision()
    except RuntimeError:
        cuda, mkldnn = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
        before = cuda.fp32_precision == "tf32", mkldnn.fp32_precision
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        if precision is not None:
            torch.set_float32_matmul_precision(precision)
        else:
            cuda.allow_tf32, mkldnn.fp32_precision = before


@contextlib.contextmanager
def plain_printing() -> Iterator[None]:
    """While active, tensors are printed with torch's default options, which have no public getter."""
    options = torch._tensor_str.PRINT_OPTS
    before = dict(vars(options))
    torch.set_printoptions(profile="default")
    try:
        yield
    finally:
        vars(options).update(before)
