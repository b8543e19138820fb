"""The setting that the judge passes to the sandbox at the start, and the messages between them afterwards."""

import ast
import socket
from dataclasses import asdict, dataclass
from typing import Any

HOME = "/learner"  # the learner's home in the sandbox, not below /home because Python may be installed there


@dataclass(frozen=True)
class Limits:
    """Limits of one submission.

    memory_bytes: of each process, in addition to what it uses before learner code runs. total_bytes: memory of all its
    processes. disk_bytes: of each file and each writable folder. cell_seconds: processor time of one cell.
    """

    memory_bytes: int = 2 << 30
    total_bytes: int = 3 << 30
    disk_bytes: int = 64 << 20
    processes: int = 48
    cell_seconds: float = 60.0
    reply_bytes: int = 32 << 20


@dataclass(frozen=True)
class Setting:
    """The setting of one sandbox, for all its submissions.

    boxed: whether it is inside bubblewrap. nested: whether each submission gets its own namespaces inside it.
    notebook: whether submissions are cells of a notebook or loose files. given: import statements, one per line, that
    every submission starts with. places: folders in which a submission may write.
    """

    limits: Limits
    boxed: bool
    nested: bool
    notebook: bool
    given: str = ""
    places: tuple[str, ...] = ()

    def as_text(self) -> str:
        return repr(asdict(self))


def from_text(text: str) -> Setting:
    fields = ast.literal_eval(text)
    return Setting(**fields | {"limits": Limits(**fields["limits"])})


TOKEN_BYTES = 16
FORK, KILL = b"F", b"K"


def send(channel: socket.socket, token: bytes, tree) -> None:
    """Send a tree of helpers/checking/codec.py, preceded by its length in 8 bytes and by the token of its request."""
    from helpers.checking.codec import dumps

    data = dumps(tree)
    channel.sendall(len(data).to_bytes(8, "little") + token + data)


def receive(channel: socket.socket) -> tuple[bytes, Any]:
    """Wait for the next request and return its token and tree. Raises EOFError if the judge has hung up."""
    from helpers.checking.codec import loads

    size = int.from_bytes(_exactly(channel, 8), "little")
    token = _exactly(channel, TOKEN_BYTES)
    return token, loads(_exactly(channel, size))


def _exactly(channel: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = channel.recv(min(size - len(data), 1 << 20))
        if not chunk:
            raise EOFError
        data += chunk
    return bytes(data)
