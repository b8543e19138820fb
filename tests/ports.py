"""Ports for the servers that tests start."""

import contextlib
import random
import socket


def free_port() -> int:
    """A port of the loopback interface, below those that the system hands out by itself: nobody takes it meanwhile."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
