"""Limit the time of an answer. Only its own computing and waiting counts, not imports or a busy computer.

Python and torch import some modules on first use, which may take seconds, and a module whose import is interrupted
stays broken for the whole session. Therefore the clock is stopped while a library is imported.
"""

import contextlib
import importlib
import importlib.util
import signal
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPEAT = 0.5  # seconds after which TooSlow is raised again, in case the answer catches it
PATIENCE = 6  # allowed wall-clock time, in time limits, if the system does not say how long this process was queued
LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
COURSE = str(Path(__file__).parents[1])


class TooSlow(BaseException):
    """The time limit has passed. It is not an Exception, so that an answer's `except Exception` does not catch it."""


def queued_seconds() -> float | None:
    """The time that this process has waited for a processor; None if the system does not report it."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/self/schedstat") as file:
        return int(file.read().split()[1]) / 1e9
    return None


_spent = 0.0


def seconds_spent() -> float:
    """The seconds that answers have taken in this process, without imports and waiting for a processor."""
    return _spent


class _Clock:
    """While active, raises TooSlow in the main thread after `seconds` of computing, or of idle waiting."""

    def __init__(self, seconds: float):
        self.seconds, self.importing, self.expired = seconds, False, False

    def __enter__(self) -> "_Clock":
        self.handlers = [signal.signal(number, self._on_signal) for number in (signal.SIGPROF, signal.SIGALRM)]
        self.idle_before = self._idle()
        signal.setitimer(signal.ITIMER_PROF, self.seconds, REPEAT)
        signal.setitimer(signal.ITIMER_REAL, self.seconds, REPEAT)
        return self

    def __exit__(self, *exc) -> None:
        global _spent
        left, _ = signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        computed = self.seconds if self.expired else max(self.seconds - left, 0.0)
        _spent += computed + max(self._idle() - self.idle_before, 0.0)
        for number, handler in zip((signal.SIGPROF, signal.SIGALRM), self.handlers, strict=True):
            signal.signal(number, handler)

    def _on_signal(self, number: int, _frame) -> None:
        if self.importing:
            return
        if number == signal.SIGALRM:
            limit = self.seconds if queued_seconds() is not None else PATIENCE * self.seconds
            left = limit - (self._idle() - self.idle_before)
            if left > 0.05:
                signal.setitimer(signal.ITIMER_REAL, left, REPEAT)
                return
        self.expired = True
        raise TooSlow

    def _idle(self) -> float:
        """A clock that runs while this process neither computes nor waits for a processor."""
        return time.monotonic() - time.process_time() - (queued_seconds() or 0.0)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """While active, no time passes for the answer."""
        idle, (left, _) = self._idle(), signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.importing = True
        try:
            yield
        finally:
            self.importing = False
            self.idle_before += self._idle() - idle
            signal.setitimer(signal.ITIMER_PROF, max(left, 0.01), REPEAT)
            signal.setitimer(signal.ITIMER_REAL, self.seconds, REPEAT)


_running: list[_Clock] = []
bootstrap: Any = importlib.import_module("importlib._bootstrap")  # Python has no public hook around an import
_find_and_load = bootstrap._find_and_load


def _import_unclocked(name, import_):
    """Replaces importlib's _find_and_load: import a module that is not loaded yet, and stop the clock for a library."""
    clock = _running[-1] if _running else None
    if clock is None or clock.importing or threading.current_thread() is not threading.main_thread():
        return _find_and_load(name, import_)
    with clock.paused():
        if _is_library(name):
            return _find_and_load(name, import_)
    return _find_and_load(name, import_)


def _is_library(name: str) -> bool:
    """Whether a module belongs to Python, an installed package or the course, and not to the learner."""
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names:
        return True
    with contextlib.suppress(Exception):
        module = sys.modules.get(top)
        spec = module.__spec__ if module else importlib.util.find_spec(top)
        paths = [spec.origin or "", *(spec.submodule_search_locations or ())] if spec else []
        return any(path.startswith((*LIBRARIES, COURSE)) for path in paths)
    return False


@contextlib.contextmanager
def imports_unclocked(clock) -> Iterator[None]:
    """While active, `clock.paused()` surrounds each import of a library by the main thread."""
    _running.append(clock)
    bootstrap._find_and_load = _import_unclocked
    try:
        yield
    finally:
        _running.remove(clock)
        if not _running:
            bootstrap._find_and_load = _find_and_load


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooSlow in the block after `seconds` of computing, or of idle waiting.

    Without timers, or outside the main thread, there is no limit.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    with _Clock(seconds) as clock, imports_unclocked(clock):
        yield


if sys.platform == "win32":  # Windows has no SIGALRM, so a timer thread interrupts the main thread instead
    import _thread

    @contextlib.contextmanager
    def time_limit(seconds: float) -> Iterator[None]:  # noqa: F811
        expired = threading.Event()

        def interrupt():
            expired.set()
            _thread.interrupt_main()

        timer = threading.Timer(seconds, interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield
        except KeyboardInterrupt:
            if expired.is_set():
                raise TooSlow from None
            raise
        finally:
            timer.cancel()
