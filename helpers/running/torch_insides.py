"""All that the check takes from torch without a promise that it stays: tests/test_torch_insides.py fails when it moves.

Torch has no public way to see each operator that runs, to hear of a run of the autograd engine however it was started,
or to ask what a function is called. Each name here is the only way that was found.
"""

import contextlib
import re
from collections.abc import Callable, Iterator

import torch
from torch.overrides import resolve_name
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

# Everything here is differentiation, but for the switches, and for vmap, which runs a function on many inputs.
AUTOGRAD_HOMES = ("torch.autograd", "torch.func", "torch._functorch", "functorch", "torch.utils.checkpoint")
ENGINE = {"run_backward", "_engine_run_backward"}  # what Python's profiler hears when the engine runs
# Where torch keeps what people call torch.nn.functional or torch.
SHORT_HOMES = {"torch.nn.functional.": "F.", "torch._C._nn.": "F.", "torch._C._": "torch."}


class OperatorMode(TorchDispatchMode):
    """A dispatch mode that does not ask to be kept from torch.compile.

    Asking imports the compiler and sympy, which takes two seconds, and nothing that is watched here is compiled.
    """

    @classmethod
    def _should_skip_dynamo(cls):
        return False


def tree_leaves(tree) -> list:
    """The leaves of the operators' own idea of a tree of tensors; most results are a tensor alone."""
    return [tree] if isinstance(tree, torch.Tensor) else _pytree.tree_leaves(tree)


def operator_name(operator) -> str:
    """The name of an operator that a dispatch mode meets, without its overload: "softmax"."""
    return operator.overloadpacket.__name__


def readable(function, name: str) -> str:
    """What people call a function that a function mode meets: "F.softmax", "torch.Tensor.exp"."""
    try:
        full = resolve_name(function)
    except (RuntimeError, TypeError, AttributeError, ValueError):
        full = None
    full = full or f"torch.{name}"
    for home, short in SHORT_HOMES.items():
        full = full.replace(home, short)
    return full


def scripted_operators(thing) -> list[str]:
    """The operators that a scripted or traced function or module runs; none where it is no such thing."""
    scripted = isinstance(thing, (torch.jit.ScriptFunction, torch.jit.ScriptModule))
    return re.findall(r"aten::(\w+)", str(thing.inlined_graph)) if scripted else []


@contextlib.contextmanager
def watched_engine(note: Callable[[], None]) -> Iterator[None]:
    """While active, `note` is called at any run of the autograd engine, however it was started."""
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
    """The kind of the device that new tensors are made on; "" of one that is not here."""
    try:
        return torch.get_default_device().type
    except Exception:  # whatever a build says of a device that it does not have
        return ""


@contextlib.contextmanager
def exact_products() -> Iterator[None]:
    """While active, matrices are multiplied as exactly as their dtype allows. Once a notebook has set this in torch's
    older way and for one backend (`allow_tf32`), torch refuses to say what is set, but for each backend."""
    cuda, mkldnn, precision = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul, None
    try:
        precision = torch.get_float32_matmul_precision()
    except RuntimeError:
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
    """While active, tensors are printed as torch does by itself; torch tells its options to nobody."""
    options = torch._tensor_str.PRINT_OPTS
    before = dict(vars(options))
    torch.set_printoptions(profile="default")
    try:
        yield
    finally:
        vars(options).update(before)
