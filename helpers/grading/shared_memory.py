"""Memory that no process's own size shows: files in memory that are only open, and maps that processes share."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable


def shared_bytes(pids: Iterable[int]) -> int:
    """What these processes hold in files of memory and in shared maps; 0 where the system does not tell."""
    open_files: dict[tuple[int, int], int] = {}
    mapped = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/smaps_rollup") as file:
            mapped += sum(int(line.split()[1]) << 10 for line in file if line.startswith("Pss_Shmem:"))
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    place = f"/proc/{pid}/fd/{name}"
                    if os.readlink(place).startswith(("/memfd:", "/dev/shm/", "/dev/zero", "/SYSV")):
                        status = os.stat(place)
                        open_files[status.st_dev, status.st_ino] = status.st_blocks * 512
    return mapped + sum(open_files.values())
