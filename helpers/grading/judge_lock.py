"""Judges side by side take turns: any number of them call answers at the same time, or one of them does so alone."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path


class JudgeLock:
    """Two locked files. A judge that wants to be alone holds the door while the room empties, so that no other enters.

    folder: one that all judges of a batch know; None: this judge has no others beside it.
    """

    def __init__(self, folder: Path | str | None = None):
        self.folder = Path(folder) if folder else None

    @contextlib.contextmanager
    def turn(self, alone: bool = False) -> Iterator[float]:
        """While active, this is one of those who call answers, or the only one. Gives the seconds that were waited.

        Where the files cannot be locked, nobody waits.
        """
        with contextlib.ExitStack() as stack:
            started = time.monotonic()
            with contextlib.suppress(OSError):
                if self.folder is not None:
                    import fcntl  # Windows has none, and judges nothing

                    with open(self.folder / "door", "a") as door, open(self.folder / "room", "a") as room:
                        fcntl.flock(door, fcntl.LOCK_EX)
                        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
                        stack.callback(os.close, os.dup(room.fileno()))  # held until the last copy is closed
                        if alone:
                            stack.callback(os.close, os.dup(door.fileno()))
            yield time.monotonic() - started
