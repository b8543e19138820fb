"""Judges kept for a while: Formgrader's button grades one student after another, and a judge takes seconds to start."""

from __future__ import annotations

import atexit
import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

from helpers.grading.pool import Batch, Pool
from helpers.grading.version import version_of

KEPT = 120.0  # seconds

_lock = threading.Lock()
_kept: list[tuple[object, Pool]] = []  # none or one


def _let_go(*those: tuple[object, Pool]) -> None:
    """End these, or all, of those that are kept."""
    with _lock:
        gone = [one for one in _kept if one in those or not those]
        _kept[:] = [one for one in _kept if one not in gone]
    for _, pool in gone:
        pool.__exit__()


atexit.register(_let_go)


@contextlib.contextmanager
def warm_pool(make: Callable[[Batch, int], Pool], batch: Batch, jobs: int) -> Iterator[Pool]:
    """A Pool that outlives its use, for whoever asks next for the same judges of the same version of the course."""
    asked = make, batch, jobs, version_of(batch.lesson)
    with _lock:
        held, _kept[:] = list(_kept), []
    pool = None
    for known, kept in held:
        if known == asked and all(judge.process.poll() is None for judge in kept.judges):
            pool = kept
        else:
            kept.__exit__()
    pool = pool or make(batch, jobs).__enter__()
    try:
        yield pool
    except BaseException:
        pool.__exit__(*sys.exc_info())
        raise
    keep = asked, pool
    with _lock:
        _kept.append(keep)
    timer = threading.Timer(KEPT, _let_go, [keep])
    timer.daemon = True
    timer.start()
