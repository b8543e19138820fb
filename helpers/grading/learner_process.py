"""The judge's end of the connection to one submission's process, whose replies are never trusted, and its limits."""

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

MOST_WORDS = 12 << 20  # bytes of a reply besides its tensors; each can become an object of a hundred bytes
MOST_NOTES = 60  # for one exercise
TICK = 0.25  # seconds between two measurements of memory and processes while waiting
MOST_IDLE = 60  # A submission is given up after so many seconds in which none of its processes computes anything.
CROWD = 3  # All processes of a submission together may take this many times the processor time of one.
MOST_PROCESSES = 32  # of a submission at the same time
SHARED_BY_FORKS = 200 << 20  # approximate bytes that a process occupies after importing torch


class Lost(Exception):
    """A submission or an exercise gave no usable reply. reason: "died" or "gone", "stopped", "too slow", "memory",
    "crowd" (too many processes) or "garbage"."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class LearnerProcess(contextlib.AbstractContextManager):
    """The connection to one submission's process."""

    def __init__(self, sandbox, channel: socket.socket):
        self.sandbox, self.channel = sandbox, channel

    def __exit__(self, *exc) -> None:
        self.close()

    def close(self) -> None:
        self.channel.close()
        self.sandbox.end_submission()

    def ask(self, request: dict, seconds: float):
        """Send a request and return the reply, a tree with any contents. Raises Lost."""
        token = secrets.token_bytes(TOKEN_BYTES)
        self._send(token, request)
        return self._receive(self.channel, token, seconds, self.sandbox.watch(request.get("seconds", seconds)))

    def observe(self, request: dict, seconds: float) -> tuple[object, list[str]]:
        """Let a fork of the submission observe an answer. Returns its reply, and the notes that it sent before that.

        Raises Lost. The fork gets its own socket. A note reports a forbidden call as soon as it is seen, so that no
        code that runs later can take the report back.
        """
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
            deadline, watch = time.monotonic() + seconds, self.sandbox.watch(request["cpu_seconds"])
            while len(notes) <= MOST_NOTES:
                remaining = deadline - time.monotonic()
                reply = self._receive(ours, token, remaining, watch)
                if not isinstance(reply, dict) or set(reply) != {"note"}:
                    return reply, notes
                notes.append(one_line(str(reply["note"]), 80))
            raise Lost("garbage")

    def alive(self) -> bool:
        """Whether the submission still replies. This request also kills an exercise's fork that is still running."""
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
    """Receive a reply with the given token, within `seconds` and of at most `most` bytes; raise Lost for anything else.

    tick: called every TICK seconds while waiting; may raise Lost.
    """
    deadline = time.monotonic() + seconds
    head = _exactly(channel, 8 + len(token), deadline, tick)
    size = int.from_bytes(head[:8], "little")
    if head[8:] != token or size > most:
        raise Lost("garbage")
    body = _exactly(channel, size, deadline, tick)
    if int.from_bytes(body[:8], "little") > MOST_WORDS:
        raise Lost("garbage")
    try:
        return loads(body)
    except Exception:  # A hostile process can send anything.
        raise Lost("garbage") from None


def _exactly(channel: socket.socket, size: int, deadline: float, tick: Callable[[], None]) -> bytes:
    data = bytearray()
    while len(data) < size:
        remaining = deadline - time.monotonic()
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
    """Limits the processes that the fork server with the given pid has started. Call it from time to time.

    It raises Lost if they exceed a limit. A process that has suspended itself would wait forever, so it is killed, and
    `ended_stopped` becomes true.

    seconds: processor time of one process. total_bytes: memory of all processes.
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
                if _or_default(process.status, "") in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP):
                    self.ended_stopped = True
                    process.kill()
            if len(processes) > MOST_PROCESSES:
                raise Lost("crowd")
            self._check_memory(processes)
            # The first four are user and system time of the process and of its children that have ended.
            self._check_time(sum(sum(_or_default(process.cpu_times, ())[:4]) for process in processes))

    def _check_memory(self, processes: list[psutil.Process]) -> None:
        if shared_bytes((process.pid for process in processes), self.total_bytes) > self.total_bytes:
            raise Lost("memory")
        private = {process: _private_bytes(process) for process in processes}
        if sum(max(0, size - SHARED_BY_FORKS) for size in private.values()) <= self.total_bytes:
            return

        def proportional_bytes(process: psutil.Process) -> int:
            return _or_default(lambda: process.memory_full_info().pss, private[process])

        # The sum above counts memory that forks share more than once; this slower measurement does not.
        if sum(map(proportional_bytes, processes)) > self.total_bytes + SHARED_BY_FORKS:
            raise Lost("memory")

    def _check_time(self, processor_seconds: float) -> None:
        if abs(processor_seconds - self.last_seconds) > 0.02:
            self.last_seconds, self.last_change = processor_seconds, time.monotonic()
        elif time.monotonic() - self.last_change > min(PATIENCE * self.seconds + 5, MOST_IDLE):
            raise Lost("too slow")
        self.at_start = processor_seconds if self.at_start is None else min(self.at_start, processor_seconds)
        if processor_seconds - self.at_start > CROWD * self.seconds:
            raise Lost("crowd")


def shared_bytes(pids: Iterable[int], most: int) -> int:
    """Bytes of these processes in open in-memory files and in shared memory maps; 0 if the system does not tell.

    The size of a single process includes neither of them. most: as long as the sum is at most this, a map counts once
    for each process that shares it, because measuring it exactly takes 30 ms per process.
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
    """A quantity in bytes from /proc/PID/file, summed over the lines that start with `key`."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/{file}") as lines:
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(key))
    return 0


def _private_bytes(process: psutil.Process) -> int:
    info = _or_default(process.memory_info, None)
    return max(0, info.rss - getattr(info, "shared", 0)) if info else 0


def _or_default(measure: Callable[[], Any], default: Any) -> Any:
    """The result of `measure`, or the default if the process has ended or the system does not provide it."""
    with contextlib.suppress(psutil.Error, OSError, AttributeError):
        return measure()
    return default
