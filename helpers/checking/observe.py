"""Run an answer on a case and write down what happened. Nothing here judges."""

from __future__ import annotations

import contextlib
import io
import linecache
import signal
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from helpers.checking.codec import plain
from helpers.checking.compare import difference
from helpers.checking.fixtures import resolve
from helpers.checking.forbidden import Watch, in_source, warm_up
from helpers.checking.scenarios import SCENARIOS
from helpers.checking.vocabulary import Case, Raises

TOO_SLOW = "TooSlow"
HELPERS = str(Path(__file__).parents[1])
LIBRARIES = (
    HELPERS,
    sysconfig.get_path("stdlib"),
    sysconfig.get_path("purelib"),
    sysconfig.get_path("platlib"),
    str(Path(torch.__file__).parent),
    "<frozen",
    "<string>",
)
MAX_MESSAGE = 400


@dataclass(frozen=True)
class Facts:
    """What observing needs to know of an exercise besides its cases."""

    name: str
    lesson: str
    forbidden: tuple[str, ...] = ()
    time_limit: float = 5.0


@dataclass(frozen=True)
class Error:
    """An exception as a learner should meet it: its class, its message, and the line of their own code.

    bases: the names of the classes that its class comes from, so that a learner's own KeyError is one too.
    """

    type: str
    message: str = ""
    lineno: int = 0
    line: str = ""
    bases: tuple[str, ...] = ()


@dataclass
class Observation:
    """What one case showed.

    output: the returned tree (None where it raised). gradients: one tensor for each float input, then for each
    parameter; None in it where no gradient arrived; None as a whole where gradients were not asked for.
    changed: positions or names of inputs that the call changed. forbidden: readable names of forbidden calls.
    """

    output: object = None
    error: Error | None = None
    gradients: list | None = None
    gradient_error: Error | None = None
    changed: list = field(default_factory=list)
    forbidden: list = field(default_factory=list)
    printed: int = 0
    seconds: float = 0.0

    def to_tree(self):
        return {
            "output": self.output,
            "error": _error_tree(self.error),
            "gradients": self.gradients,
            "gradient_error": _error_tree(self.gradient_error),
            "changed": list(self.changed),
            "forbidden": list(self.forbidden),
            "printed": self.printed,
            "seconds": self.seconds,
        }

    @staticmethod
    def from_tree(tree) -> Observation:
        """The observation in a tree; ValueError where there is none (a tree may come from a hostile process)."""
        try:
            return Observation(
                output=tree["output"],
                error=_error_from(tree["error"]),
                gradients=None if tree["gradients"] is None else [_tensor_or_none(g) for g in tree["gradients"]],
                gradient_error=_error_from(tree["gradient_error"]),
                changed=[item if isinstance(item, int) else str(item)[:80] for item in tree["changed"]],
                forbidden=[str(item)[:80] for item in tree["forbidden"]],
                printed=int(tree["printed"]),
                seconds=float(tree["seconds"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"no observation: {error}") from None


def _error_tree(error: Error | None):
    return None if error is None else (error.type, error.message, error.lineno, error.line, error.bases)


def _error_from(tree) -> Error | None:
    if tree is None:
        return None
    kind, message, lineno, line, bases = tree
    names = tuple(str(name)[:80] for name in bases)
    return Error(str(kind)[:80], str(message)[:MAX_MESSAGE], int(lineno), str(line)[:200], names)


def _tensor_or_none(value):
    if value is not None and not isinstance(value, torch.Tensor):
        raise ValueError("a gradient that is no tensor")
    return value


def case_to_tree(case: Case):
    """A case as a tree (see codec)."""
    raises = None if case.raises is None else (case.raises.error, case.raises.names)
    return {
        "args": list(case.args),
        "kwargs": dict(case.kwargs),
        "part": case.part,
        "gradient": case.gradient,
        "no_gradient": list(case.no_gradient),
        "raises": raises,
        "tolerance": case.tolerance,
        "via": case.via,
        "view": case.view,
        "note": case.note,
    }


def case_from_tree(tree) -> Case:
    """The case that `case_to_tree` wrote."""
    parts = dict(tree)
    parts["args"] = tuple(parts["args"])
    parts["no_gradient"] = tuple(parts["no_gradient"])
    parts["raises"] = None if parts["raises"] is None else Raises(*parts["raises"])
    return Case(**parts)


def observe_all(answer: Callable, cases: list[Case], facts: Facts) -> list[Observation]:
    """`observe` for each case; the source is looked through once, and after a call that took too long none is made."""
    seen: list[Observation] = []
    for number, case in enumerate(cases):
        if seen and seen[-1].error is not None and seen[-1].error.type == TOO_SLOW:
            seen.append(Observation(error=seen[-1].error))
        else:
            seen.append(observe(answer, case, facts, scan=number == 0))
    return seen


def observe(answer: Callable, case: Case, facts: Facts, scan: bool = True) -> Observation:
    """Call `answer` on copies of the case's inputs, once for its output and once more for gradients if asked.

    Never raises (but for the learner's own interrupt). Prints are swallowed and counted; a call that outlasts
    `facts.time_limit` seconds ends as an Error of type TooSlow.
    """
    seen = Observation()
    started = time.perf_counter()
    sink = _Sink()
    if case.via:
        warm_up()  # a scenario may look at operators
    with torch.random.fork_rng(devices=[]), _quiet(sink):
        torch.manual_seed(0)
        args, kwargs = resolve(_copy(case.args)), resolve(_copy(case.kwargs))
        watch = Watch(facts.forbidden)
        try:
            with watch, _time_limit(facts.time_limit), torch.enable_grad():
                output, _ = _call(answer, case, args, kwargs)
            seen.output = plain(output)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # an answer may raise anything, SystemExit included
            seen.error = describe(error, facts.time_limit)
        seen.changed = _changed(case, args, kwargs)
        seen.forbidden = list(dict.fromkeys(watch.found + (_scan(answer, facts) if scan else [])))
        if case.gradient and seen.error is None:
            _observe_gradients(answer, case, facts, seen)
    seen.printed = sink.lines
    seen.seconds = time.perf_counter() - started
    return seen


def _scan(answer, facts: Facts) -> list[str]:
    try:
        return in_source(answer, facts.forbidden, facts.lesson)
    except Exception:  # a look at odd source must not cost an honest answer anything
        return []


def _call(answer, case: Case, args, kwargs):
    if case.via:
        return SCENARIOS[case.via](answer, args, kwargs)
    return answer(*args, **kwargs), []


def _observe_gradients(answer, case: Case, facts: Facts, seen: Observation):
    args, kwargs = resolve(_copy(case.args)), resolve(_copy(case.kwargs))
    leaves: list[torch.Tensor] = []
    inputs = _calls_inputs(case, args)
    live = [
        item if position in case.no_gradient else _with_leaves(item, leaves) for position, item in enumerate(inputs)
    ]
    args = _replace_inputs(case, args, live)
    kwargs = _with_leaves(kwargs, leaves)
    try:
        with _time_limit(facts.time_limit), torch.enable_grad():
            output, parameters = _call(answer, case, args, kwargs)
            total = _weighted_sum(output)
            wanted = [*leaves, *parameters]
            if total is None or not total.requires_grad:
                seen.gradients = [None] * len(wanted)
            else:
                grads = torch.autograd.grad(total, wanted, allow_unused=True)
                seen.gradients = [None if grad is None else plain(grad) for grad in grads]
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        seen.gradient_error = describe(error, facts.time_limit)


def _calls_inputs(case: Case, args):
    """The positional inputs of the learner's call: for a module, those of its forward."""
    return args[2] if case.via == "module" else args


def _replace_inputs(case: Case, args, inputs):
    if case.via == "module":
        return (args[0], args[1], tuple(inputs), args[3])
    return tuple(inputs)


def _with_leaves(tree, leaves: list):
    """The tree with every float tensor replaced by a copy of a new leaf that wants a gradient."""
    if isinstance(tree, torch.Tensor) and tree.is_floating_point():
        leaf = tree.detach().clone().requires_grad_()
        leaves.append(leaf)
        return leaf.clone()  # not the leaf itself, so that an in-place answer still has a gradient
    if isinstance(tree, (list, tuple)):
        return type(tree)(_with_leaves(item, leaves) for item in tree)
    if isinstance(tree, dict):
        return {key: _with_leaves(item, leaves) for key, item in tree.items()}
    return tree


def _weighted_sum(tree) -> torch.Tensor | None:
    """All float tensors of a tree times a fixed cotangent, cos(1), cos(2), ..., summed; None where there is none."""
    if isinstance(tree, torch.Tensor):
        if not tree.is_floating_point():
            return None
        count = torch.arange(1, tree.numel() + 1, dtype=torch.float64)
        return (tree * count.cos().reshape(tree.shape).to(tree.dtype)).sum()
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        sums = [item for item in map(_weighted_sum, tree) if item is not None]
        return sum(sums) if sums else None
    return None


def _copy(tree):
    if isinstance(tree, torch.Tensor):
        return tree.detach().clone()
    if isinstance(tree, (list, tuple)):
        return type(tree)(_copy(item) for item in tree)
    if isinstance(tree, dict):
        return {key: _copy(item) for key, item in tree.items()}
    return tree


def _changed(case: Case, args, kwargs) -> list:
    before = _calls_inputs(case, case.args)
    after = _calls_inputs(case, args)
    changed = [position for position, (old, new) in enumerate(zip(before, after, strict=True)) if _differs(old, new)]
    return changed + [name for name in case.kwargs if _differs(case.kwargs[name], kwargs.get(name))]


def _differs(old, new) -> bool:
    if not isinstance(old, (torch.Tensor, list, dict, tuple)):
        return False
    try:
        return difference(_without_fixtures(old), plain(new), 0.0) is not None
    except Exception:
        return True


def _without_fixtures(tree):
    return plain(resolve(tree))


class _Sink(io.TextIOBase):
    """Swallows what an answer prints and counts the lines."""

    def __init__(self):
        self.lines = 0

    def writable(self):
        return True

    def write(self, text):
        self.lines += text.count("\n")
        return len(text)


@contextlib.contextmanager
def _quiet(sink):
    with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        yield


class TooSlow(BaseException):
    """Not an Exception, so that an answer's own `except Exception` does not swallow it."""


@contextlib.contextmanager
def _time_limit(seconds: float):
    """Raise TooSlow in the block after `seconds` of computing, and again every half second, where there are timers.

    Processor time counts, so that an honest answer passes on a busy machine; one that only waits has six times as
    long.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(_number, _frame):
        raise TooSlow

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, 6 * seconds))
    before = [signal.signal(number, ring) for number, _, _ in timers]
    for _, timer, limit in timers:
        signal.setitimer(timer, limit, 0.5)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def describe(error: BaseException, seconds: float = 0.0) -> Error:
    """An exception as an Error, with the last line of it that is the learner's own."""
    if isinstance(error, TooSlow):
        return Error(TOO_SLOW, f"no answer after {seconds:g} seconds")
    lineno, line = 0, ""
    trace = error.__traceback__
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        if not filename.startswith(LIBRARIES):
            lineno = trace.tb_lineno
            line = linecache.getline(filename, lineno).strip()
        trace = trace.tb_next
    if isinstance(error, SyntaxError):
        lineno, line = error.lineno or 0, (error.text or "").strip()
    message = error.msg if isinstance(error, SyntaxError) else _safe_text(error)
    bases = tuple(base.__name__[:80] for base in type(error).__mro__[1:])
    return Error(type(error).__name__[:80], message[:MAX_MESSAGE], lineno, line[:200], bases)


def _safe_text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def keeps_promise(case: Case, error: Error) -> bool:
    """Whether this is the exception that the case asks for: of that class or one that comes from it, with its words."""
    wanted = case.raises
    return wanted is not None and wanted.error in (error.type, *error.bases) and wanted.names in error.message


def is_not_answered(error: Error | None) -> bool:
    """Whether this is the empty `raise NotImplementedError` that an unanswered cell holds."""
    return error is not None and error.type == "NotImplementedError" and not error.message


if sys.platform == "win32":  # no SIGALRM: a timer thread interrupts the main one instead
    import _thread

    @contextlib.contextmanager
    def _time_limit(seconds: float):  # noqa: F811
        rang = threading.Event()

        def ring():
            rang.set()
            _thread.interrupt_main()

        timer = threading.Timer(seconds, ring)
        timer.daemon = True
        timer.start()
        try:
            yield
        except KeyboardInterrupt:
            if rang.is_set():
                raise TooSlow from None
            raise
        finally:
            timer.cancel()
