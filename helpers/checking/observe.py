"""Run an answer on a case and record what happened. Nothing here judges."""

import contextlib
import dataclasses
import io
import itertools
import linecache
import sys
import sysconfig
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from helpers.checking.codec import Odd, leaves, mapped, plain
from helpers.checking.compare import difference
from helpers.checking.forbidden import Profiler, Watch, in_source
from helpers.checking.lazy_imports import import_first
from helpers.checking.names import functions_of
from helpers.checking.registry import SCENARIOS, VIEWS
from helpers.checking.scenarios import WrongParts
from helpers.checking.stubs import resolve
from helpers.checking.vocabulary import Call, Case, Raises, Stub
from helpers.or_finished import without_stand_ins
from helpers.running.global_switches import switches_set
from helpers.running.time_limit import TooSlow, seconds_spent, time_limit

TOO_SLOW = "TooSlow"
WANTS_GRAD = ".requires_grad"  # suffix of a changed input of which only requires_grad was switched on
IN_ALL = "in all"  # ends the message of a call that timed out because the calls before it had used up the time
NOT_TRIED = "not tried"  # the message of a call that is skipped because an earlier one took too long
HELPERS = str(Path(__file__).parents[1])
BLOCKS = str(Path(__file__).parents[1] / "blocks")
PYTHON = tuple(map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))
LIBRARIES = (HELPERS, *PYTHON, str(Path(torch.__file__).parent), "<frozen", "<string>")
MUTABLE = (torch.Tensor, list, dict, tuple)
MAX_MESSAGE = 400
ANSWER_SEED = 8_675_309_000_001  # seeds torch's generator before each call; inputs are never drawn with this seed
MOST_CALLS, LEAST = 2, 0.1  # all calls together may take this many time limits; the seconds that each gets even so
WATCHED = 1  # calls through a scenario with whole models in which every operator is watched
MOST_NAMED = 50  # changed inputs, forbidden calls or base classes in one observation
SAID_LINES, SAID_CHARACTERS = 20, 2000  # how much of an answer's printed output is kept


@dataclass(frozen=True)
class Facts:
    """What `observe` needs to know about an exercise besides its cases."""

    name: str
    lesson: str
    forbidden: tuple[str, ...] = ()
    time_limit: float = 5.0


@dataclass(frozen=True)
class Error:
    """An exception as the learner should see it: its class, its message, and the line of their own code.

    bases: the names of its base classes, so that a learner's subclass of KeyError counts as a KeyError.
    function: the learner's function that contains the line; empty for the answer itself.
    """

    type: str
    message: str = ""
    lineno: int = 0
    line: str = ""
    bases: tuple[str, ...] = ()
    function: str = ""


@dataclass
class Observation:
    """What happened on one case.

    output: the returned tree; None if the call raised. gradients: one for each float input, then for each parameter,
    with None where no gradient arrived; None as a whole if gradients were not requested. changed: positions or names
    of inputs that the call changed. forbidden: readable names of forbidden calls. said: the beginning of what the
    call printed. left: for the grader, the mutable inputs as the call left them, by position or name. drew: whether
    the call advanced torch's random state, as dropout does.
    """

    output: object = None
    error: Error | None = None
    gradients: list | None = None
    gradient_error: Error | None = None
    changed: list = field(default_factory=list)
    forbidden: list = field(default_factory=list)
    said: str = ""
    left: dict | None = None
    drew: bool = False

    @property
    def is_slow(self) -> bool:
        return self.error is not None and self.error.type == TOO_SLOW

    def errors(self) -> dict[str, Error | None]:
        return {"error": self.error, "gradient_error": self.gradient_error}

    def to_tree(self):
        tree = vars(self) | {name: error and dataclasses.astuple(error) for name, error in self.errors().items()}
        return {name: item for name, item in tree.items() if name != "left" or item is not None}

    @staticmethod
    def from_tree(tree) -> "Observation":
        """The observation in a tree. Raises ValueError if it holds none, as a tree from a hostile process may."""
        try:
            gradients = None if tree["gradients"] is None else list(tree["gradients"])
            if not all(gradient is None or isinstance(gradient, torch.Tensor) for gradient in gradients or ()):
                raise ValueError("a gradient that is not a tensor")
            return Observation(
                output=tree["output"],
                error=_error_from(tree["error"]),
                gradients=gradients,
                gradient_error=_error_from(tree["gradient_error"]),
                changed=[item if isinstance(item, int) else str(item)[:80] for item in tree["changed"][:MOST_NAMED]],
                forbidden=[str(item)[:80] for item in tree["forbidden"][:MOST_NAMED]],
                said=shortened(str(tree.get("said", ""))),
                left=tree.get("left"),
                drew=bool(tree.get("drew")),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"no observation: {error}") from None


def _error_from(tree) -> Error | None:
    if tree is None:
        return None
    kind, message, lineno, line, bases, *function = tree
    names = tuple(str(name)[:80] for name in bases[:MOST_NAMED])
    function = str(function[0])[:80] if function else ""
    return Error(str(kind)[:80], str(message)[:MAX_MESSAGE], int(lineno), str(line)[:200], names, function)


def case_to_tree(case: Case):
    """The case as a tree (see codec), without its truth."""
    raises = case.raises and dataclasses.astuple(case.raises)
    tree = vars(case) | {"args": list(case.args), "no_gradient": list(case.no_gradient), "raises": raises}
    return {name: item for name, item in tree.items() if name != "truth"}


def case_from_tree(tree) -> Case:
    raises = tree["raises"] and Raises(*tree["raises"])
    return Case(**tree | {"args": tuple(tree["args"]), "no_gradient": tuple(tree["no_gradient"]), "raises": raises})


def observe_all(
    answer: Callable, cases: list[Case], facts: Facts, scan: bool = True, leave: bool = False
) -> list[Observation]:
    """Observe every case, in order. After a call that took too long, the others are not tried.

    scan: search the answer's source for forbidden calls, once. leave: keep the inputs as the calls left them.

    Watching every operator doubles the time of a model. A scenario that builds whole models runs all their blocks in
    every call, so if only torch's transformer blocks are forbidden, watching its first call is enough.

    All calls together may take MOST_CALLS times the limit of one. A call that was too slow but imported something is
    repeated once, because the cost of first use does not count.
    """
    import_first(answer, cases)
    seen: list[Observation] = []
    before = seconds_spent()
    called: Counter = Counter()
    for case in cases:
        if seen and seen[-1].is_slow:
            seen.append(Observation(error=Error(TOO_SLOW, NOT_TRIED)))
            continue
        called[case.via] += 1
        makes_models = case.via is not None and case.call.init is None
        is_unwatched = makes_models and facts.forbidden == ("transformer",) and called[case.via] > WATCHED
        remaining = MOST_CALLS * facts.time_limit - (seconds_spent() - before)
        limit = min(facts.time_limit, max(remaining, LEAST))
        limited = replace(facts, time_limit=limit, forbidden=() if is_unwatched else facts.forbidden)
        for _ in range(2):
            modules = len(sys.modules)
            observation = observe(answer, case, limited, scan=scan and not seen, leave=leave)
            if not observation.is_slow or len(sys.modules) == modules:
                break
        if observation.is_slow and limit < facts.time_limit:
            message = f"no answer after {MOST_CALLS * facts.time_limit:g} seconds {IN_ALL}"
            observation.error = Error(TOO_SLOW, message)
        seen.append(observation)
    return seen


def viewed(case: Case, seen: Observation) -> Observation:
    """The observation with the case's view applied to its output. An output that the view rejects becomes Odd."""
    if case.view is None or seen.error is not None:
        return seen
    try:
        output = plain(VIEWS[case.view](case.args, case.kwargs, seen.output))
    except Exception as error:  # an answer may return anything, and a view may fail on it in any way
        output = Odd("unusable", str(error))
    return replace(seen, output=output)


def call_profiled(answer: Callable, case: Case, facts: Facts) -> str:
    """Call the answer once more under Python's profiler, because learner code can switch off torch's own modes.

    The profiler reports forbidden calls in any thread at once (see forbidden.tell). Returns the name of the error that
    the call raised, or "" if it raised none or took too long.
    """
    with switches_set(), torch.random.fork_rng(devices=[]), redirect_stdout(sink := _Sink()), redirect_stderr(sink):
        torch.default_generator.manual_seed(ANSWER_SEED)
        args, kwargs = _fresh(case.args), _fresh(case.kwargs)
        try:
            with Watch(facts.forbidden), time_limit(facts.time_limit), torch.enable_grad(), Profiler(facts.forbidden):
                plain(_call(answer, case, args, kwargs)[0])
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # an earlier call of this case was judged
            return "" if isinstance(error, TooSlow) else type(error).__name__[:80]
    return ""


def observe(answer: Callable, case: Case, facts: Facts, scan: bool = True, leave: bool = False) -> Observation:
    """Call `answer` on copies of the case's inputs: once for the output, and again if the case asks for gradients.

    Raises nothing but the learner's KeyboardInterrupt. Printed output is captured, and a call that takes longer than
    `facts.time_limit` seconds becomes an Error of type TooSlow. scan, leave: as in observe_all.
    """
    seen, sink = Observation(), _Sink()
    with switches_set(), torch.random.fork_rng(devices=[]), redirect_stdout(sink), redirect_stderr(sink):
        # torch.manual_seed would seed every device, and fork_rng restores only the CPU here.
        torch.default_generator.manual_seed(ANSWER_SEED)
        args, kwargs = _fresh(case.args), _fresh(case.kwargs)
        state_before = torch.default_generator.get_state()
        watch = Watch(facts.forbidden) if facts.forbidden else None
        try:
            with watch or contextlib.nullcontext(), time_limit(facts.time_limit), torch.enable_grad():
                output, _ = _call(answer, case, args, kwargs)
                seen.output = plain(output)  # which calls methods of the learner's own classes, so it is watched too
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # an answer may raise anything, SystemExit included
            seen.error = describe(error, facts.time_limit, answer)
        seen.said = shortened(sink.text)
        seen.drew = not state_before.equal(torch.default_generator.get_state())
        call = Call.of(case.via, args, kwargs)
        seen.changed = _changed(case, call)
        if leave:
            seen.left = {name: plain(item) for name, item in _inputs(call).items() if isinstance(item, MUTABLE)}
        found = list(watch.found) if watch else []
        with contextlib.suppress(Exception):  # source that cannot be analyzed must not cost an honest answer anything
            found += in_source(answer, facts.forbidden, facts.lesson) if scan else []
        seen.forbidden = list(dict.fromkeys(found))
        if case.gradient and seen.error is None:
            _observe_gradients(answer, case, facts, seen)
    return seen


def _call(answer, case: Case, args, kwargs):
    with without_stand_ins():
        if case.via:
            return SCENARIOS[case.via](answer, args, kwargs)
        return answer(*args, **kwargs), []


def _observe_gradients(answer, case: Case, facts: Facts, seen: Observation):
    args, kwargs = _fresh(case.args), _fresh(case.kwargs)
    tensors: list[torch.Tensor] = []
    call = Call.of(case.via, args, kwargs)
    live = tuple(
        item if position in case.no_gradient else _with_leaves(item, tensors) for position, item in enumerate(call.args)
    )
    args, kwargs = replace(call, args=live, kwargs=_with_leaves(call.kwargs, tensors)).arguments()
    try:
        with time_limit(facts.time_limit), torch.enable_grad():
            output, parameters = _call(answer, case, args, kwargs)
            for name, parameter in itertools.zip_longest(call.state, parameters):
                if parameter is not None and not parameter.requires_grad:  # torch's own error names no parameter
                    frozen = f"your parameter {name or ''} is frozen (its requires_grad is False)"
                    raise WrongParts(f"{frozen}, so it would never learn")
            total = _weighted_sum(output)
            variables = [*tensors, *parameters]
            if total is None or not total.requires_grad:
                seen.gradients = [None] * len(variables)
            else:
                grads = torch.autograd.grad(total, variables, allow_unused=True)
                # An embedding's gradient may be sparse.
                seen.gradients = [None if grad is None else plain(grad.to_dense()) for grad in grads]
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        seen.gradient_error = describe(error, facts.time_limit, answer)


def _inputs(call: Call) -> dict:
    return {**dict(enumerate(call.args)), **call.kwargs}


def _with_leaves(tree, tensors: list):
    """The tree with every float tensor replaced by a copy of a new leaf with requires_grad, appended to `tensors`."""

    def copy_of_leaf(item):
        if not isinstance(item, torch.Tensor) or not item.is_floating_point():
            return item
        tensors.append(item.detach().clone().requires_grad_())
        return tensors[-1].clone()  # torch forbids changing a leaf in place, but an answer may change its copy

    return mapped(tree, copy_of_leaf)


def _weighted_sum(tree) -> torch.Tensor | None:
    """The sum of all float tensors of a tree times a fixed cotangent, cos(1), cos(2), ...; None if there are none."""
    total = None
    for item in leaves(tree):
        if isinstance(item, torch.Tensor) and item.is_floating_point():
            count = torch.arange(1, item.numel() + 1, dtype=torch.float64, device="cpu")
            weighted = (item * count.cos().reshape(item.shape).to(item.device, item.dtype)).sum()
            total = weighted if total is None else total + weighted
    return total


def _fresh(tree):
    """A copy of a case's inputs in which every Stub is replaced by its object."""

    def copied(item):
        if isinstance(item, torch.Tensor):
            return item.detach().clone()
        return resolve(item) if isinstance(item, Stub) else item

    return mapped(tree, copied)


def _changed(case: Case, call: Call) -> list:
    """Positions and names of the inputs that the call changed, with the suffix WANTS_GRAD if only that changed."""
    after, before = _inputs(call), _inputs(case.call)
    changed = [name for name, old in before.items() if _differs(old, after.get(name))]
    for name in [name for name in before if name not in changed]:  # no input of a case requires a gradient
        if any(type(item) is torch.Tensor and item.requires_grad for item in leaves(after.get(name))):
            changed.append(f"{name}{WANTS_GRAD}")
    return changed


def changed_of(case: Case, left) -> list:
    """Positions and names of the changed inputs, as in `_changed`, but from an Observation's `left` in another process.

    Empty if `left` is None. May raise any exception for a `left` that `observe` did not make.
    """
    if left is None:
        return []
    before = _inputs(case.call)
    return [name for name, old in before.items() if isinstance(old, MUTABLE) and _differs(old, left.get(name))]


def _differs(old, new) -> bool:
    same = isinstance(old, torch.Tensor) and type(new) is torch.Tensor and old.dtype == new.dtype and old.equal(new)
    if same or not isinstance(old, MUTABLE):  # these are the usual cases, and quick to decide
        return False
    try:
        return difference(plain(_fresh(old)), plain(new), 0.0) is not None
    except Exception:
        return True


class _Sink(io.TextIOBase):
    """Captures what an answer prints, and keeps only the beginning."""

    text = ""

    def writable(self):
        return True

    def write(self, text):
        self.text += text[: max(0, 2 * SAID_CHARACTERS - len(self.text))]
        return len(text)


def shortened(text: str) -> str:
    """The first SAID_LINES lines and SAID_CHARACTERS characters of a text, with an ellipsis if there was more."""
    lines = text[:SAID_CHARACTERS].splitlines()[:SAID_LINES]
    beginning = "\n".join(lines)
    return beginning if len(beginning) >= len(text.rstrip("\n")) else f"{beginning}\n…"


def describe(error: BaseException, seconds: float = 0.0, answer: object = None) -> Error:
    """The exception as an Error, with the last line of its traceback that is the learner's own code."""
    if isinstance(error, TooSlow):
        return Error(TOO_SLOW, f"no answer after {seconds:g} seconds")
    lineno, line, function, home = 0, "", "", ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        home = code.co_filename
        if not home.startswith(LIBRARIES):
            lineno, line, function = number, linecache.getline(home, number).strip(), code.co_qualname
    if isinstance(error, SyntaxError):
        lineno, line = error.lineno or 0, (error.text or "").strip()
    message = ""
    with contextlib.suppress(Exception):  # the learner's own exception class may have a broken __str__
        message = error.msg if isinstance(error, SyntaxError) else str(error)
    bases = tuple(base.__name__[:80] for base in type(error).__mro__[1:])
    by_course = home.startswith(HELPERS) and not home.startswith(BLOCKS)  # an answer may consist of finished blocks
    # If no line in the traceback is the learner's, a scenario failed on what the answer returned. An answer that
    # does not accept the arguments also fails before its first line, but then the message mentions them.
    if by_course and not lineno and "argument" not in message and not isinstance(error, WrongParts):
        if any(not part.__code__.co_filename.startswith(LIBRARIES) for part in functions_of(answer)):
            text = f"your answer did not return what the exercise asks for ({message[:MAX_MESSAGE]})"
            return Error(WrongParts.__name__, text)
    qualified_name = getattr(answer, "__qualname__", "")
    if function == qualified_name or function.startswith(f"{qualified_name}."):  # the answer, or a function inside it
        function = ""
    return Error(type(error).__name__[:80], message[:MAX_MESSAGE], lineno, line[:200], bases, function[:80])


def is_required_error(case: Case, error: Error) -> bool:
    """Whether the error is what `case.raises` asks for: its class or a subclass, and its message."""
    raises = case.raises
    if raises is None or raises.error not in (error.type, *error.bases):
        return False
    return raises.names in error.message and not (raises.omits and raises.omits in error.message)


def is_not_answered(error: Error | None) -> bool:
    """Whether the error is the bare `raise NotImplementedError` of the answer itself, not of a function it calls."""
    return error is not None and error.type == "NotImplementedError" and not error.message and not error.function
