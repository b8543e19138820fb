"""Ports for the servers of tests."""

import contextlib
import random
import socket


def free_port() -> int:
    """Return a free port of the loopback interface, below those that the system assigns to other programs."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
