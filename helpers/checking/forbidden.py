"""Find forbidden calls, such as torch.softmax in the softmax exercise, while an answer runs and in its source.

There are four detectors, because each alone is easy to evade: function names (TorchFunctionMode), operators
(TorchDispatchMode, which also sees scripted functions and modules), the autograd engine, and the names in the answer's
source (scripted functions, SciPy and similar packages, torch.autograd, blocks of this or a later lesson). The grader
adds a fifth, Python's profiler, because learner code can switch off torch's modes.
"""

import _thread
import contextlib
import functools
import re
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path

import torch
from torch.overrides import TorchFunctionMode

from helpers.checking.names import used_things
from helpers.running.torch_insides import (
    AUTOGRAD_HOMES,
    ENGINE,
    OperatorMode,
    operator_name,
    readable,
    scripted_operators,
    watched_engine,
)

# SoftmaxTransform, of torch.distributions, computes softmax without calling torch.softmax.
SOFTMAX = (
    "softmax log_softmax logsumexp logcumsumexp logaddexp logaddexp2 softmin softmaxtransform gumbel_softmax softmax2d "
    "masked_softmax safe_softmax scaled_dot_product_attention multi_head_attention_forward cross_entropy nll_loss "
    "sparse_softmax adaptivelogsoftmaxwithloss flex_attention"
)
# From a name that authors write in `forbidden` to every name under which torch offers the same computation.
GROUPS = {
    "one_hot": "one_hot",
    "cosine_similarity": (
        "cosine_similarity normalize cosine_embedding_loss cosinesimilarity pairwise_cosine_similarity"
    ),
    "softmax": SOFTMAX,
    "log_softmax": SOFTMAX,
    "cross_entropy": (
        "cross_entropy nll_loss nll_loss2d nll_loss_nd crossentropyloss nllloss cross_entropy_loss nll_loss_forward "
        "nll_loss2d_forward"
    ),
    "cross_entropy_alone": "cross_entropy crossentropyloss cross_entropy_loss",  # nll_loss is allowed
    "attention": (
        "scaled_dot_product_attention multi_head_attention_forward multiheadattention native_multi_head_attention "
        "transform_bias_rescale_qkv flex_attention"
    ),
    "softmax_backward": "softmax_backward_data softmax_backward log_softmax_backward_data",
    "cat": "cat concat concatenate stack hstack vstack dstack column_stack row_stack",
    "layer_norm": "layer_norm layernorm native_layer_norm layer_norm_backward",
    "rms_norm": "rms_norm rmsnorm",
    "batch_norm": "batch_norm batch_norm_legit batch_norm_legit_functional batch_norm_legit_no_training",
    "group_norm": "group_norm groupnorm",
    "instance_norm": "instance_norm instancenorm",
    "transformer": (
        "transformer transformerencoder transformerencoderlayer transformerencoderlayer_fwd "
        "transformer_encoder_layer_fwd transformerdecoder transformerdecoderlayer"
    ),
    "autograd": "make_dual backward",  # forward mode, and a backward formula that is called directly
}
# These operators also run inside other functions that the answer may call, so they are not detected by operator.
NOT_BY_OPERATOR = {"cat", "stack", "normalize"}
FOREIGN = ("scipy", "sklearn", "jax", "tensorflow", "keras", "torchmetrics", "transformers", "sentence_transformers")
STARTERS = ("start_new_thread", "start_new", "_start_new_thread", "start_joinable_thread", "_start_joinable_thread")
# Functions, each with the modules that define it, that an honest answer never calls and that could hide a call.
HIDING = {
    "setprofile": ("sys", "threading"),
    "start_new_thread": ("_thread",),
    "start_joinable_thread": ("_thread",),
    "fork": ("posix",),
    "fork_exec": ("_posixsubprocess",),
}
MOST_REPORTED = 10  # names of forbidden calls for one case
HELPERS = str(Path(__file__).parents[1])
MODULE_CALLS = ("_wrapped_call_impl", "_call_impl", "handle_torch_function")  # torch's frames between caller and callee
NO_AUTOGRAD = {"no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "vmap"}


def banned_names(forbidden: tuple[str, ...]) -> set[str]:
    """Every plain name that the groups and single names in `forbidden` cover."""
    return {name for item in forbidden for name in GROUPS.get(item, item).split()}


@functools.lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    """The name in lower case without outer underscores, because _softmax, softmax_ and Softmax are the same call."""
    return name.strip("_").lower()


@functools.lru_cache(maxsize=4096)
def _names_of(name: str) -> frozenset[str]:
    """The plain name of a torch function, and that name without the prefixes and infixes of operator variants."""
    name = _plain(name)
    stem = re.sub(r"^(native|efficient|flash|fused|scaled|cudnn|safe)_", "", name)
    # Variants insert words, as in scaled_dot_product_flash_attention.
    patterns = {kind: kind.replace("_", "_(?:.*_)?") for kind in ("scaled_dot_product_attention", "flex_attention")}
    return frozenset((name, stem, *(kind for kind, pattern in patterns.items() if re.search(pattern, name))))


@functools.lru_cache(maxsize=4096)
def _operator_names(name: str) -> frozenset[str]:
    name = _plain(name)
    formula = {"backward"} if re.search("_backward(_|$)", name) else set()
    return frozenset() if name in NOT_BY_OPERATOR else _names_of(name) | formula


@functools.lru_cache(maxsize=1)
def warm_up():
    """Make torch import what its first dispatch mode needs, before any time limit starts."""
    with _ByOperator(Watch(())):
        torch.zeros(1).sum()


tell: Callable[[str], None] | None = None  # set by the grader; called with the name of each forbidden call at once


def not_watched(block: Callable) -> Callable:
    """A copy of a finished function or module class whose own calls every Watch ignores."""
    if isinstance(block, type):
        methods = {name: not_watched(vars(block)[name]) for name in ("__init__", "forward") if name in vars(block)}
        return type(block.__name__, (block,), methods)

    def unwatched(*args, **kwargs):
        return block(*args, **kwargs)

    _UNWATCHED.add(unwatched.__code__)
    functools.update_wrapper(unwatched, block).__module__ = FINISHED
    return unwatched


_UNWATCHED: set[types.CodeType] = set()
FINISHED = "finished_block"  # the __module__ of such blocks, by which this module and the grader recognize them


def _by_a_finished_block() -> bool:
    """Whether a finished block made the call that is being recorded, rather than code that the learner passed to it."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code in _UNWATCHED:
            home = str(getattr(frame.f_locals.get("block"), "__module__", ""))
            return home == FINISHED or lies_in(home, ("helpers",))
        home = _module_of(frame)
        if home != FINISHED and home.split(".")[0] not in ("torch", "helpers", *sys.stdlib_module_names):
            return False
        frame = frame.f_back
    return False


class Watch(contextlib.AbstractContextManager):
    """While active, collects the forbidden calls that run, as readable names, in `found`."""

    def __init__(self, forbidden: tuple[str, ...]):
        self.found: list[str] = []
        self.names = banned_names(forbidden)
        self.autograd = "autograd" in forbidden
        self.stack = contextlib.ExitStack()

    def note(self, name: str):
        if name not in self.found and not _by_a_finished_block():
            self.found.append(name)
            if tell is not None and len(self.found) < MOST_REPORTED:
                tell(name)

    def __enter__(self):
        if self.autograd:
            self.stack.enter_context(watched_engine(lambda: self.note("torch.autograd")))
        if self.names:
            warm_up()
            self.stack.enter_context(_ByOperator(self))
            self.stack.enter_context(_ByName(self))
            self.stack.enter_context(_in_new_threads(self))
        return self

    def __exit__(self, *details):
        return self.stack.__exit__(*details)


class _Watching:
    def __init__(self, watch: Watch):
        super().__init__()
        self.watch = watch


class _ByName(_Watching, TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if not self.watch.names.isdisjoint(_names_of(name.split(".")[0])):
            self.watch.note(readable(func, name) + _outer_call(self.watch.names))
        return func(*args, **(kwargs or {}))


class _ByOperator(_Watching, OperatorMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = operator_name(func)
        if not self.watch.found and not self.watch.names.isdisjoint(_operator_names(name)):
            self.watch.note(f"torch's {_plain(name)}")
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def _in_new_threads(watch: Watch):
    """While active, threads that the answer starts are watched as well, because torch's modes hold for one thread."""
    own_threads = {threading.get_ident()}  # the answer's threads; a kernel may start others in the meantime

    def watched(start):
        def started(function, *args, **kwargs):
            if threading.get_ident() not in own_threads:
                return start(function, *args, **kwargs)

            def run(*positional, **named):
                own_threads.add(threading.get_ident())
                with _ByOperator(watch), _ByName(watch):
                    return function(*positional, **named)

            return start(run, *args, **kwargs)

        return started

    originals = [
        (home, name, getattr(home, name)) for home in (_thread, threading) for name in STARTERS if hasattr(home, name)
    ]
    for home, name, start in originals:
        setattr(home, name, watched(start))
    try:
        yield
    finally:
        for home, name, start in originals:
            setattr(home, name, start)


class Profiler:
    """While active, reports forbidden calls and attempts to hide them in every thread, by means of Python's profiler.

    It is slower than Watch and does not see calls from C code, but torch cannot switch it off.
    """

    def __init__(self, forbidden: tuple[str, ...]):
        self.names = banned_names(forbidden)
        self.autograd = "autograd" in forbidden
        self.reported: set[str] = set()

    def __enter__(self):
        self.before = sys.getprofile()
        threading.setprofile(self.on_event)
        sys.setprofile(self.on_event)
        return self

    def __exit__(self, *details):
        sys.setprofile(self.before)
        threading.setprofile(None)

    def on_event(self, frame, event, arg):
        if event == "c_call":
            name, home, caller = getattr(arg, "__name__", ""), _home_of_builtin(arg), frame
        elif event == "call":
            name, home, caller = _called_name(frame.f_code), _module_of(frame), frame.f_back
        else:
            return
        if name in HIDING and home in HIDING[name] and _is_called_by_answer(caller):
            self._report(f"{home}.{name}")
        elif not lies_in(home, ("torch", *FOREIGN)):
            return
        elif self.autograd and name in ENGINE and lies_in(home, ("torch",)):
            self._report("torch.autograd")
        elif not self.names.isdisjoint(_names_of(name)) and not (
            name in NOT_BY_OPERATOR and lies_in(_module_of(caller), ("torch",))
        ):
            self._report(f"torch.{name}" if lies_in(home, ("torch",)) else f"{home}.{name}")

    def _report(self, name: str):
        if name in self.reported or tell is None or len(self.reported) >= MOST_REPORTED:
            return
        if not _by_a_finished_block():
            self.reported.add(name)
            tell(name)


def _called_name(code: types.CodeType) -> str:
    """The name of a function, or of the class whose object is called."""
    owner = code.co_qualname.rpartition(".")[0]
    return owner if owner and code.co_name in ("__call__", "_call", "forward") else code.co_name


def _is_called_by_answer(frame) -> bool:
    """Whether the answer caused a call, itself or through the standard library, and not torch or an import."""
    while frame is not None and _module_of(frame) != "helpers.checking.observe":
        if lies_in(_module_of(frame), ("torch", "helpers", "importlib", "threading")):
            return False
        frame = frame.f_back
    return True


def _outer_call(names: set[str]) -> str:
    """ ", called inside Categorical" if the answer called a torch function or class that made the forbidden call."""
    frame: types.FrameType | None = sys._getframe(2)
    outer = None
    while frame is not None and lies_in(_module_of(frame), ("torch",)):
        within = frame.f_code.co_name in MODULE_CALLS or _plain(frame.f_code.co_name) in names  # the call itself
        outer = outer if within else frame.f_code.co_qualname.split(".")[0]
        frame = frame.f_back
    return f", called inside {outer}" if outer and _plain(outer) not in names else ""


def _module_of(frame) -> str:
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))


def _home_of_builtin(function) -> str:
    """The module of a built-in function; for a method, the module of its class."""
    home = getattr(function, "__module__", None)
    if isinstance(home, str):
        return home
    owner = getattr(function, "__self__", None)
    owner = owner if isinstance(owner, type) else type(owner)
    return next((kind.__module__ for kind in owner.__mro__ if kind.__module__.startswith("torch")), owner.__module__)


def block_lesson(thing) -> int | None:
    """The number of the lesson that `thing` is a finished block of, or None."""
    match = re.fullmatch(r"helpers\.blocks\.(\d\d)_\w+", str(getattr(thing, "__module__", "") or ""))
    return int(match.group(1)) if match else None


def is_block_of(thing, number: int) -> bool:
    """Whether `thing` is a finished block of lesson `number` or of a later one."""
    home = block_lesson(thing)
    return home is not None and home >= number


# Modules and packages of the course that contain what answers should compute.
COURSE_HOMES = tuple(
    f"helpers.{home}"
    for home in ("translator", "or_finished", "at_work", "drawing", "lessons", "pretrained", "corpus.source")
)
OR_FINISHED = "helpers.or_finished.or_finished"  # allowed, because an answer that is being judged gets no stand-in

# Converting words to ids is an exercise of an early lesson; from lesson 11 on, answers may use the course's module.
WORDS, WORDS_ALLOWED_FROM = "helpers.translator.word_ids", 11
# Functions that contain an answer, in modules that answers may otherwise use.
COURSE_FUNCTIONS = ("helpers.corpus.translation.translate",)


def course_part(thing) -> str:
    """The full name of `thing` if it is code of the course that an answer must not use; "" otherwise."""
    if isinstance(thing, (dict, torch.nn.Module)):  # a trained model is allowed, because only its class is an answer
        network = sys.modules.get("helpers.translator.network")
        is_table = network is not None and thing is network.FINISHED_PARTS
        return "helpers.translator.FINISHED_PARTS" if is_table else ""
    home = str(getattr(thing, "__module__", "") or "") if callable(thing) else ""
    home = home if lies_in(home, COURSE_HOMES) else _file_of(thing) or home
    name = str(getattr(thing, "__name__", type(thing).__name__))
    if f"{home}.{name}" in COURSE_FUNCTIONS:
        return "helpers.corpus.translate"
    if not lies_in(home, COURSE_HOMES) or f"{home}.{name}" == OR_FINISHED:
        return ""
    return home if home.endswith(f".{name}") else f"{home}.{name}"


def _file_of(thing) -> str:
    """The module of the course in whose file a function or class is defined, whatever name it was loaded under."""
    code = getattr(getattr(thing, "__init__", None) if isinstance(thing, type) else thing, "__code__", None)
    path = Path(getattr(code, "co_filename", ""))
    if not path.is_relative_to(HELPERS):
        return ""
    return ".".join(("helpers", *path.relative_to(HELPERS).with_suffix("").parts))


def in_source(answer, forbidden: tuple[str, ...], lesson: str) -> list[str]:
    """Readable names of forbidden things that the answer's source uses, itself or in the learner's own functions.

    lesson: such as "12_language_model". Its own finished blocks and those of later lessons are forbidden.
    """
    number = int(lesson[:2]) if lesson[:2].isdigit() else 0
    while isinstance(answer, functools.partial):
        answer = answer.func
    for thing in (answer, *_bases(answer)):
        if is_block_of(thing, number):
            return [f"helpers.blocks.{thing.__name__}"]
    if part := course_part(answer):
        return [part]
    names, autograd, things = banned_names(forbidden), "autograd" in forbidden, list(used_things(answer))
    scripts = any(text.rsplit(".", 1)[-1] == "script" for text, _ in things)
    seen = [course_part(base) or _whole_module(names, base) for base in _bases(answer)]
    for text, thing in things:
        if part := course_part(thing):
            seen.append("" if number >= WORDS_ALLOWED_FROM and part.startswith(f"{WORDS}.") else part)
        elif is_block_of(thing, number):
            seen.append(f"helpers.blocks.{getattr(thing, '__name__', text)}")
        elif module := _whole_module(names, thing):
            seen.append(module)
        elif _is_banned(text, thing, names, autograd, scripts):
            seen.append(text)
    return list(dict.fromkeys(filter(None, seen)))


def _is_banned(text: str, thing, names: set[str], autograd: bool, scripts: bool) -> bool:
    """Whether `thing`, from torch or another package, is banned. scripts: whether the answer uses torch.jit.script."""
    home = str(getattr(thing, "__module__", "") or "")
    name = _plain(str(getattr(thing, "__name__", "") or ""))
    if name in names and home.split(".")[0] in FOREIGN:
        return True
    if any(_plain(operator) in names for operator in scripted_operators(thing)):
        return True
    if scripts and name in names and home.startswith("torch") and name not in NOT_BY_OPERATOR:
        return True
    own_name = getattr(thing, "__name__", "") if isinstance(thing, types.ModuleType) else ""
    harmless = {text.rsplit(".", 1)[-1], getattr(thing, "__name__", "")} & NO_AUTOGRAD
    return autograd and not harmless and (lies_in(home, AUTOGRAD_HOMES) or lies_in(own_name, AUTOGRAD_HOMES))


def _bases(answer) -> tuple[type, ...]:
    return answer.__mro__[1:] if isinstance(answer, type) else ()


def _whole_module(names: set[str], thing) -> str:
    """ "nn.TransformerEncoder" and the like if `names` bans it; "" otherwise.

    Such a class is reported when the source names it, because the calls that it makes have other names. Other modules
    are detected when they run.
    """
    is_transformer = isinstance(thing, type) and thing.__module__ == "torch.nn.modules.transformer"
    return f"nn.{thing.__name__}" if is_transformer and _plain(thing.__name__) in names else ""


def lies_in(module: str, homes: tuple[str, ...]) -> bool:
    """Whether a dotted module name is in `homes` or below one of them; torch.functional is not below torch.func."""
    return module in homes or module.startswith(tuple(f"{home}." for home in homes))
