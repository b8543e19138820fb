"""How long an answer may take: its own processor time counts, and neither imports nor a busy machine do.

What Python or torch imports the first time that something is used may take seconds, and a module whose import is
interrupted stays broken for the whole session: while a library is being imported the clock stands still.
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

AGAIN = 0.5  # seconds of computing after which TooSlow is raised once more, for an answer that swallows it
PATIENCE = 6  # times the limit that may pass by the clock, where the system does not tell what others took
LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
COURSE = str(Path(__file__).parents[1])


class TooSlow(BaseException):
    """Not an Exception, so that an answer's own `except Exception` does not swallow it."""


def queued_seconds() -> float | None:
    """How long this process has waited for a processor that others had; None where the system does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/self/schedstat") as file:
        return int(file.read().split()[1]) / 1e9
    return None


_spent = 0.0


def seconds_spent() -> float:
    """The seconds that answers have taken in this process so far, without imports and without waiting for others."""
    return _spent


class _Clock:
    """Raises TooSlow in the main thread after `seconds` of computing, or of waiting for nothing."""

    def __init__(self, seconds: float):
        self.seconds, self.importing, self.rang = seconds, False, False

    def __enter__(self) -> "_Clock":
        self.handlers = [signal.signal(number, self._ring) for number in (signal.SIGPROF, signal.SIGALRM)]
        self.idle_before = self._idle()
        signal.setitimer(signal.ITIMER_PROF, self.seconds, AGAIN)
        signal.setitimer(signal.ITIMER_REAL, self.seconds, AGAIN)
        return self

    def __exit__(self, *exc) -> None:
        global _spent
        left, _ = signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        computed = self.seconds if self.rang else max(self.seconds - left, 0.0)
        _spent += computed + max(self._idle() - self.idle_before, 0.0)
        for number, handler in zip((signal.SIGPROF, signal.SIGALRM), self.handlers, strict=True):
            signal.signal(number, handler)

    def _ring(self, number: int, _frame) -> None:
        if self.importing:
            return
        if number == signal.SIGALRM:
            most = self.seconds if queued_seconds() is not None else PATIENCE * self.seconds
            left = most - (self._idle() - self.idle_before)
            if left > 0.05:
                signal.setitimer(signal.ITIMER_REAL, left, AGAIN)
                return
        self.rang = True
        raise TooSlow

    def _idle(self) -> float:
        """A clock that runs while this process neither computes nor waits for a processor."""
        return time.monotonic() - time.process_time() - (queued_seconds() or 0.0)

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        idle, (left, _) = self._idle(), signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.importing = True
        try:
            yield
        finally:
            self.importing = False
            self.idle_before += self._idle() - idle
            signal.setitimer(signal.ITIMER_PROF, max(left, 0.01), AGAIN)
            signal.setitimer(signal.ITIMER_REAL, self.seconds, AGAIN)


_running: list[_Clock] = []
bootstrap: Any = importlib.import_module("importlib._bootstrap")  # Python has no public way to hear of an import
_find_and_load = bootstrap._find_and_load


def _found_and_loaded(name, import_):
    """Python's own import of what is not loaded yet; of a library without the clock."""
    clock = _running[-1] if _running else None
    if clock is None or clock.importing or threading.current_thread() is not threading.main_thread():
        return _find_and_load(name, import_)
    with clock.standing_still():
        if _is_library(name):
            return _find_and_load(name, import_)
    return _find_and_load(name, import_)


def _is_library(name: str) -> bool:
    """Whether a module is Python's, installed or the course's, and no learner's own."""
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names:
        return True
    with contextlib.suppress(Exception):
        module = sys.modules.get(top)
        spec = module.__spec__ if module else importlib.util.find_spec(top)
        places = [spec.origin or "", *(spec.submodule_search_locations or ())] if spec else []
        return any(place.startswith((*LIBRARIES, COURSE)) for place in places)
    return False


@contextlib.contextmanager
def imports_unclocked(clock) -> Iterator[None]:
    """While active, `clock.standing_still()` surrounds each import of a library by the main thread."""
    _running.append(clock)
    bootstrap._find_and_load = _found_and_loaded
    try:
        yield
    finally:
        _running.remove(clock)
        if not _running:
            bootstrap._find_and_load = _find_and_load


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooSlow in the block after `seconds` of computing, or of idle waiting, where there are timers."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    with _Clock(seconds) as clock, imports_unclocked(clock):
        yield


if sys.platform == "win32":  # no SIGALRM: a timer thread interrupts the main one instead
    import _thread

    @contextlib.contextmanager
    def time_limit(seconds: float) -> Iterator[None]:  # noqa: F811
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
