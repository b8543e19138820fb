"""What the judge tells the sandbox at its start, in one piece, and the messages between them afterwards."""

import ast
import socket
from dataclasses import asdict, dataclass
from typing import Any

HOME = "/learner"  # of the sandbox; not below /home, where Python may be installed


@dataclass(frozen=True)
class Limits:
    """Of one submission. memory_bytes: of one process, beyond what torch itself takes; total_bytes: of all."""

    memory_bytes: int = 2 << 30
    total_bytes: int = 3 << 30
    disk_bytes: int = 64 << 20
    processes: int = 48
    cell_seconds: float = 60.0
    reply_bytes: int = 32 << 20


@dataclass(frozen=True)
class Setting:
    """Of all submissions of one sandbox.

    boxed: whether this is inside bubblewrap. nested: whether each submission gets namespaces of its own.
    notebook: whether submissions are notebook cells, else loose files. given: import statements, whose names every
    submission finds whatever its own import cell does. places: the folders in which a submission may write.
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
    from helpers.checking.codec import dumps

    data = dumps(tree)
    channel.sendall(len(data).to_bytes(8, "little") + token + data)


def receive(channel: socket.socket) -> tuple[bytes, Any]:
    """The next request and its token. Raises EOFError if the judge has hung up."""
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
