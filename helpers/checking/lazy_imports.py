"""What is imported the first time that something is used is imported before an answer's clock starts.

Of torch's compiler, which counting multiplications, torch.func, jacobians and optimizers import, that takes two to five
seconds; it is imported only where an answer or a scenario will ask for it.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable, Iterable

from helpers.checking import registry
from helpers.checking.forbidden import warm_up
from helpers.checking.names import used_things
from helpers.checking.scenarios import SCENARIOS
from helpers.checking.vocabulary import Case

COMPILER = "torch._dynamo"
# Where functions and classes come from that import it.
ASKING: tuple[str, ...] = (
    "torch.func",
    "torch._functorch",
    "functorch",
    "torch.autograd.functional",
    "torch.optim",
    "torch._compile",
)
ASKING += ("torch.utils.flop_counter", "torch.utils.checkpoint", "torch.utils._python_dispatch", "torch.compiler")


def import_first(answer: Callable, cases: Iterable[Case]) -> None:
    """Import what judging `answer` on `cases` may need."""
    scenarios = {case.via for case in cases if case.via}
    if scenarios:
        registry.load()
        warm_up()  # a scenario may look at operators
    if _asks(answer) or any(_source_asks(name) for name in scenarios):
        import_compiler()


def import_compiler() -> None:
    with contextlib.suppress(Exception):  # a build of torch without it
        importlib.import_module(COMPILER)


def _asks(answer: Callable) -> bool:
    with contextlib.suppress(Exception):  # a look at odd source must not cost an honest answer anything
        homes = [
            str(getattr(thing, "__module__", "") or getattr(thing, "__name__", "")) for _, thing in used_things(answer)
        ]
        return any(home == place or home.startswith(f"{place}.") for home in homes for place in ASKING)
    return False


def _source_asks(scenario: str) -> bool:
    with contextlib.suppress(Exception):
        module = inspect.getmodule(SCENARIOS[scenario])
        return module is not None and any(word in inspect.getsource(module) for word in ASKING)
    return False
