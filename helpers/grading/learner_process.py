"""What the judge says to one submission's process, what comes back, only read and never believed, and what it takes."""

import contextlib
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

import psutil

from helpers.checking.codec import loads
from helpers.grading.inside.cell_runner import PATIENCE
from helpers.grading.inside.protocol import FORK, TOKEN_BYTES, send
from helpers.grading.safe_text import one_line

MOST_WORDS = 12 << 20  # bytes of a reply that are no numbers: each may become an object a hundred times its size
MOST_NOTES = 60  # of one exercise
TICK = 0.25  # seconds between two looks at memory and processes while waiting
MOST_IDLE = 60  # seconds in which no process of a submission computes anything, after which it is given up
CROWD = 3  # times the processor time of one process that all processes of a submission may take together
MOST_PROCESSES = 32  # of a submission at the same time
SHARED_BY_FORKS = 200 << 20  # bytes that a process holds once torch is imported, roughly


class Lost(Exception):
    """A submission or an exercise gave no usable reply. reason: died, stopped, too slow, crowd, memory
    or garbage."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class LearnerProcess(contextlib.AbstractContextManager):
    """One submission's process, as the judge speaks to it."""

    def __init__(self, sandbox, channel: socket.socket):
        self.sandbox, self.channel = sandbox, channel

    def __exit__(self, *exc) -> None:
        self.close()

    def close(self) -> None:
        self.channel.close()
        self.sandbox.end_submission()

    def ask(self, request: dict, seconds: float):
        """Send a request and return the reply, a tree that may hold anything. Raises Lost."""
        token = secrets.token_bytes(TOKEN_BYTES)
        self._send(token, request)
        return self._receive(self.channel, token, seconds, self.sandbox.watch(request.get("seconds", seconds)))

    def observe(self, request: dict, seconds: float) -> tuple[object, list[str]]:
        """The reply of a fork of the submission, over a socket of its own, and the notes that came before it: what was
        told at once, so that no code after it could take it back. Raises Lost."""
        token = secrets.token_bytes(TOKEN_BYTES)
        self._send(token, {"do": "observe", **request})
        ours, theirs = socket.socketpair()
        with ours:
            try:
                socket.send_fds(self.channel, [FORK], [theirs.fileno()])
            except OSError:
                raise Lost("gone") from None
            finally:
                theirs.close()
            notes: list[str] = []
            end, watch = time.monotonic() + seconds, self.sandbox.watch(request["cpu_seconds"])
            while len(notes) <= MOST_NOTES:
                remaining = end - time.monotonic()
                reply = self._receive(ours, token, remaining, watch)
                if not isinstance(reply, dict) or set(reply) != {"note"}:
                    return reply, notes
                notes.append(one_line(str(reply["note"]), 80))
            raise Lost("garbage")

    def alive(self) -> bool:
        """Whether the submission still answers; an exercise's fork, if one still runs, is killed."""
        try:
            self.ask({"do": "nothing"}, 10)
        except Lost:
            return False
        return True

    def _receive(self, channel: socket.socket, token: bytes, seconds: float, watch):
        try:
            return receive(channel, token, seconds, self.sandbox.limits.reply_bytes, watch)
        except Lost as lost:
            raise Lost("stopped") if lost.reason == "died" and watch.ended_stopped else lost from None

    def _send(self, token: bytes, request: dict) -> None:
        self.channel.settimeout(20)
        try:
            send(self.channel, token, request)
        except OSError:
            raise Lost("gone") from None


def receive(channel: socket.socket, token: bytes, seconds: float, most: int, tick: Callable[[], None]):
    """A reply that starts with `token`, within `seconds` and `most` bytes. Raises Lost, whatever arrives."""
    end = time.monotonic() + seconds
    head = _exactly(channel, 8 + len(token), end, tick)
    size = int.from_bytes(head[:8], "little")
    if head[8:] != token or size > most:
        raise Lost("garbage")
    body = _exactly(channel, size, end, tick)
    if int.from_bytes(body[:8], "little") > MOST_WORDS:
        raise Lost("garbage")
    try:
        return loads(body)
    except Exception:  # whatever a hostile process sent, it is no reply
        raise Lost("garbage") from None


def _exactly(channel: socket.socket, size: int, end: float, tick: Callable[[], None]) -> bytes:
    data = bytearray()
    while len(data) < size:
        remaining = end - time.monotonic()
        if remaining <= 0:
            raise Lost("too slow")
        channel.settimeout(min(remaining, TICK))
        try:
            chunk = channel.recv(min(size - len(data), 1 << 20))
        except TimeoutError:
            tick()
            continue
        except OSError:
            raise Lost("died") from None
        if not chunk:
            raise Lost("died")
        data += chunk
    return bytes(data)


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
            for process in processes:
                if _told(process.status, "") in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP):
                    self.ended_stopped = True
                    process.kill()
            if len(processes) > MOST_PROCESSES:
                raise Lost("crowd")
            self._check_memory(processes)
            # What each has computed, with those that it started and that have ended.
            self._check_time(sum(sum(_told(process.cpu_times, ())[:4]) for process in processes))

    def _check_memory(self, processes: list[psutil.Process]) -> None:
        if shared_bytes((process.pid for process in processes), self.total_bytes) > self.total_bytes:
            raise Lost("memory")
        private = {process: _private_bytes(process) for process in processes}
        if sum(max(0, size - SHARED_BY_FORKS) for size in private.values()) <= self.total_bytes:
            return

        def part(process: psutil.Process) -> int:
            return _told(lambda: process.memory_full_info().pss, private[process])

        # What a fork shares with its parent was counted twice; to tell that takes a closer look.
        if sum(map(part, processes)) > self.total_bytes + SHARED_BY_FORKS:
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


def _private_bytes(process: psutil.Process) -> int:
    info = _told(process.memory_info, None)
    return max(0, info.rss - getattr(info, "shared", 0)) if info else 0


def _told(ask: Callable[[], Any], default: Any) -> Any:
    """What the system tells of a process; the default where it has ended, or where that is not told."""
    with contextlib.suppress(psutil.Error, OSError, AttributeError):
        return ask()
    return default
