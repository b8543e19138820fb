"""Detects functions whose time grows with the square of the length of their input."""

import time
from collections.abc import Callable


def grows_as_a_square(make: Callable[[int], object], work: Callable[[object], object], size: int) -> bool:
    """Return whether ten times the length take more than 30 times the processor time; a square would take 100 times.

    A slow result is tried again, because other load on the machine passes and a square does not. The time is that of
    this thread, because with ulimit -t the processor time of a process advances in coarse steps.
    """

    def seconds(size: int) -> float:
        given = make(size)
        began = time.thread_time()
        work(given)
        return time.thread_time() - began

    work(make(10))
    return all(seconds(10 * size) > 30 * min(seconds(size) for _ in range(3)) for _ in range(4))
