"""What is imported the first time that something is used is imported before an answer's clock starts.

Of torch's compiler, which counting multiplications, torch.func, jacobians and optimizers import, that takes two to five
seconds; it is imported only where an answer or a scenario will ask for it.
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
# Where functions and classes come from that import it.
ASKING = tuple(
    "torch.func torch._functorch functorch torch.autograd.functional torch.optim torch._compile torch.compiler "
    "torch.utils.flop_counter torch.utils.checkpoint torch.utils._python_dispatch".split()
)


def import_first(answer: Callable, cases: Iterable[Case]) -> None:
    """Import what judging `answer` on `cases` may need."""
    scenarios = {case.via for case in cases if case.via}
    if scenarios:
        registry.load()
        warm_up()  # a scenario may look at operators
    asks = False
    with contextlib.suppress(Exception):  # a look at odd source must not cost an honest answer anything
        things = [thing for _, thing in used_things(answer)]
        homes = (str(getattr(thing, "__module__", "") or getattr(thing, "__name__", "")) for thing in things)
        asks = any(lies_in(home, ASKING) for home in homes)
    with contextlib.suppress(Exception):
        sources = (inspect.getsource(sys.modules[SCENARIOS[name].__module__]) for name in scenarios)
        asks = asks or any(word in source for source in sources for word in ASKING)
    if asks:
        import_compiler()


def import_compiler() -> None:
    with contextlib.suppress(Exception):  # a build of torch without it
        importlib.import_module(COMPILER)
