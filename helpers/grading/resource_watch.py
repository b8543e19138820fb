"""The memory and the processor time that all processes of a submission take together, and whether they do anything."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable

import psutil

from helpers.grading.inside.cell_runner import PATIENCE
from helpers.grading.learner_process import Lost

MOST_IDLE = 60  # seconds in which no process of a submission computes anything, after which it is given up
CROWD = 3  # times the processor time of one process that all processes of a submission may take together
MOST_PROCESSES = 32  # of a submission at the same time
SHARED_BY_FORKS = 200 << 20  # bytes that a process holds once torch is imported, roughly


class ResourceWatch:
    """Looks at what the fork server at `pid` has started. Call it from time to time; it raises Lost.

    A process that has stopped itself would wait for ever, so it is ended when it is seen; `ended_stopped` says so.

    seconds: the processor time of one process. total_bytes: the memory of all.
    """

    def __init__(self, pid: int, seconds: float, total_bytes: int):
        self.pid, self.seconds, self.total_bytes = pid, seconds, total_bytes
        self.ended_stopped = False
        self.at_start: float | None = None  # the lowest sum of processor time so far
        self.last_seconds, self.last_change = 0.0, time.monotonic()

    def __call__(self) -> None:
        with contextlib.suppress(psutil.Error, OSError):
            processes = psutil.Process(self.pid).children(recursive=True)
            for process in filter(_is_stopped, processes):
                self.ended_stopped = True
                process.kill()
            if len(processes) > MOST_PROCESSES:
                raise Lost("crowd")
            self._check_memory(processes)
            self._check_time(sum(map(_processor_seconds, processes)))

    def _check_memory(self, processes: list[psutil.Process]) -> None:
        if shared_bytes((process.pid for process in processes), self.total_bytes) > self.total_bytes:
            raise Lost("memory")
        if sum(max(0, _private_bytes(process) - SHARED_BY_FORKS) for process in processes) <= self.total_bytes:
            return
        # What a fork shares with its parent was counted twice; to tell that takes a closer look.
        if sum(map(_proportional_bytes, processes)) > self.total_bytes + SHARED_BY_FORKS:
            raise Lost("memory")

    def _check_time(self, computed: float) -> None:
        if abs(computed - self.last_seconds) > 0.02:
            self.last_seconds, self.last_change = computed, time.monotonic()
        elif time.monotonic() - self.last_change > min(PATIENCE * self.seconds + 5, MOST_IDLE):
            raise Lost("too slow")
        self.at_start = computed if self.at_start is None else min(self.at_start, computed)
        if computed - self.at_start > CROWD * self.seconds:
            raise Lost("crowd")


def shared_bytes(pids: Iterable[int], most: int) -> int:
    """What these processes hold in files of memory and in shared maps; 0 where the system does not tell.

    No process's own size shows these: files in memory that are only open, and maps that processes share. most: up to
    this sum a map may count once for each of its processes, because a closer look takes 30 ms for each of them.
    """
    pids, open_files = list(pids), {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    link = f"/proc/{pid}/fd/{name}"
                    if os.readlink(link).startswith(("/memfd:", "/dev/shm/", "/dev/zero", "/SYSV")):
                        status = os.stat(link)
                        open_files[status.st_dev, status.st_ino] = status.st_blocks * 512
    in_files = sum(open_files.values())
    mapped = sum(_counted_bytes(pid, "status", "RssShmem:") for pid in pids)
    if mapped + in_files > most:
        mapped = sum(_counted_bytes(pid, "smaps_rollup", "Pss_Shmem:") for pid in pids)
    return mapped + in_files


def _counted_bytes(pid: int, file: str, key: str) -> int:
    """A number that the system keeps of a process, in bytes."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/{file}") as lines:
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(key))
    return 0


def _is_stopped(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    return False


def _processor_seconds(process: psutil.Process) -> float:
    """What a process has computed, with those that it started and that have ended."""
    with contextlib.suppress(psutil.Error):
        return sum(process.cpu_times()[:4])
    return 0.0


def _private_bytes(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        info = process.memory_info()
        return max(0, info.rss - getattr(info, "shared", 0))
    return 0


def _proportional_bytes(process: psutil.Process) -> int:
    """What a process holds, and its part of what it shares with others."""
    with contextlib.suppress(psutil.Error, OSError, AttributeError):
        return process.memory_full_info().pss
    return _private_bytes(process)
