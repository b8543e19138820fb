"""Folders for a while, in the system's place for such: gone with the process that made them; where that was killed, at
the next start."""

import contextlib
import fcntl  # which Windows has not, where nothing is judged
import os
import shutil
import tempfile
import time
from pathlib import Path

PREFIX = "course-"
LOCK = "in-use"  # locked by the process that made the folder, for as long as it lives
MAKING = 3600  # seconds after which a folder without a lock is none that is just being made


class Scratch:
    """A folder of one's own. Close it, or leave it to the next one that is made."""

    def __init__(self, purpose: str):
        tidy()
        self.path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{purpose}-"))
        making = self.path / f"{LOCK}-soon"  # under its name only once it is locked
        self.lock = open(making, "w")  # noqa: SIM115, held until close
        with contextlib.suppress(OSError):
            fcntl.flock(self.lock, fcntl.LOCK_EX)
        making.replace(self.path / LOCK)

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self.lock.close()


def tidy() -> None:
    """Remove what processes that were killed have left. Whatever may belong to a living one stays."""
    for purpose in ("sandbox", "turns"):
        for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}{purpose}-*"):
            with contextlib.suppress(OSError):
                status = path.lstat()
                if path.is_symlink() or not path.is_dir() or status.st_uid != os.getuid():
                    continue
                if _is_left(path, status.st_mtime):
                    shutil.rmtree(path, ignore_errors=True)


def _is_left(path: Path, changed: float) -> bool:
    try:
        lock = os.open(path / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return time.time() - changed > MAKING
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True
