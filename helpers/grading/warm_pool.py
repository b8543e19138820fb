"""Keeps judges for a while, because they take seconds to start and Formgrader's button grades students one by one."""

import atexit
import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

from helpers.grading.course_version import version_of
from helpers.grading.pool import Batch, Pool

KEPT = 120.0  # seconds

_lock = threading.Lock()
_kept: list[tuple[object, Pool]] = []  # at most one


def _let_go(*entries: tuple[object, Pool]) -> None:
    """End these pools, or all, unless they are no longer kept."""
    with _lock:
        ended = [entry for entry in _kept if entry in entries or not entries]
        _kept[:] = [entry for entry in _kept if entry not in ended]
    for _, pool in ended:
        pool.__exit__()


atexit.register(_let_go)


@contextlib.contextmanager
def warm_pool(make: Callable[[Batch, int], Pool], batch: Batch, jobs: int) -> Iterator[Pool]:
    """A Pool that is kept after the `with` block for the next batch with the same arguments and course version."""
    key = make, batch, jobs, version_of(batch.lesson)
    with _lock:
        entries, _kept[:] = list(_kept), []
    pool = None
    for kept_key, kept_pool in entries:
        if kept_key == key and all(judge.process.poll() is None for judge in kept_pool.judges):
            pool = kept_pool
        else:
            kept_pool.__exit__()
    pool = pool or make(batch, jobs).__enter__()
    try:
        yield pool
    except BaseException:
        pool.__exit__(*sys.exc_info())
        raise
    entry = key, pool
    with _lock:
        _kept.append(entry)
    timer = threading.Timer(KEPT, _let_go, [entry])
    timer.daemon = True
    timer.start()
