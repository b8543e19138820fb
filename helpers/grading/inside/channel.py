"""The message channel: 8 bytes length, the request's token, a tree of helpers.checking.codec."""

import socket
from typing import Any

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
