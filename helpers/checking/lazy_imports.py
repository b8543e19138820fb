"""Import what an answer will import on first use, before its time limit starts.

Counting multiplications, torch.func, jacobians and optimizers import torch's compiler, which takes two to five seconds.
Therefore it is imported here, but only if the answer or a scenario will need it.
"""

import contextlib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable

from helpers.checking import registry
from helpers.checking.forbidden import lies_in, warm_up
from helpers.checking.names import used_things
from helpers.checking.registry import SCENARIOS
from helpers.checking.vocabulary import Case

COMPILER = "torch._dynamo"
# Modules whose functions and classes import the compiler.
NEEDS_COMPILER = tuple(
    "torch.func torch._functorch functorch torch.autograd.functional torch.optim torch._compile torch.compiler "
    "torch.utils.flop_counter torch.utils.checkpoint torch.utils._python_dispatch".split()
)


def import_first(answer: Callable, cases: Iterable[Case]) -> None:
    """Import what judging `answer` on `cases` may need."""
    scenarios = {case.via for case in cases if case.via}
    if scenarios:
        registry.load()
        warm_up()  # a scenario may watch operators
    needed = False
    with contextlib.suppress(Exception):  # source that cannot be analyzed must not cost an honest answer anything
        things = [thing for _, thing in used_things(answer)]
        homes = (str(getattr(thing, "__module__", "") or getattr(thing, "__name__", "")) for thing in things)
        needed = any(lies_in(home, NEEDS_COMPILER) for home in homes)
    with contextlib.suppress(Exception):
        sources = (inspect.getsource(sys.modules[SCENARIOS[name].__module__]) for name in scenarios)
        needed = needed or any(module in source for source in sources for module in NEEDS_COMPILER)
    if needed:
        import_compiler()


def import_compiler() -> None:
    with contextlib.suppress(Exception):  # some builds of torch lack it
        importlib.import_module(COMPILER)
