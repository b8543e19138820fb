"""Whether work takes the square of the length of what it is given."""

import time
from collections.abc import Callable


def grows_as_a_square(make: Callable[[int], object], work: Callable[[object], object], size: int) -> bool:
    """Whether ten times the length take more than thirty times the processor time, which a square (100) does.

    Tried again where they do: what else the machine does comes and goes, and a square stays.
    Of this thread: with a limit on processor time (ulimit -t), that of the process moves in steps of its clock.
    """

    def seconds(size: int) -> float:
        given = make(size)
        began = time.thread_time()
        work(given)
        return time.thread_time() - began

    work(make(10))
    return all(seconds(10 * size) > 30 * min(seconds(size) for _ in range(3)) for _ in range(4))
