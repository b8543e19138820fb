"""What the judge says to one submission's process, and what comes back: only read, never believed."""

import contextlib
import secrets
import socket
import time
from collections.abc import Callable

from helpers.checking.codec import loads
from helpers.grading.inside.channel import FORK, TOKEN_BYTES, send
from helpers.grading.safe_text import one_line

MOST_WORDS = 12 << 20  # bytes of a reply that are no numbers: each may become an object a hundred times its size
MOST_NOTES = 60  # of one exercise
TICK = 0.25  # seconds between two looks at memory and processes while waiting


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
