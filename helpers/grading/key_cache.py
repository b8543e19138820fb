"""The keys of a batch, drawn once: by the first judge that needs them, for all others and for the next run."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from helpers.checking.key import ExerciseKey, load_keys, save_keys
from helpers.course import course
from helpers.grading.reference import fresh_keys
from helpers.grading.version import version_of


def cached_keys(lesson: str, seed: int, path: Path) -> dict[str, ExerciseKey]:
    """The keys for `seed`, from the file at `path` where it was made from just this course, else drawn and kept there.

    A file that cannot be read or written only costs the time of drawing.
    """
    from filelock import FileLock

    home = course().lesson(lesson)
    version = hashlib.sha256(f"{version_of(home.name)} {seed}".encode()).hexdigest()[:16]
    kept = path.with_name(f"{path.stem}-{version}{path.suffix}")
    try:
        with FileLock(path.with_suffix(".lock"), timeout=120):
            with contextlib.suppress(OSError, ValueError):
                return load_keys(home.name, kept)
            keys = fresh_keys(home, seed)
            with contextlib.suppress(OSError):
                for old in path.parent.glob(f"{path.stem}-*{path.suffix}"):
                    old.unlink()
                fresh = kept.with_name(f".{os.getpid()}-{kept.name}")
                save_keys(fresh, list(keys.values()))
                fresh.replace(kept)
            return keys
    except (OSError, TimeoutError):
        return fresh_keys(home, seed)
