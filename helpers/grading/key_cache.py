"""The keys of a batch, drawn once: by the first judge that needs them, for all others and for the next run."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from helpers.checking.key import ExerciseKey, load_keys, save_keys
from helpers.course import course
from helpers.grading.course_version import version_of
from helpers.grading.reference import fresh_keys


def cached_keys(lesson: str, seed: int, path: Path) -> dict[str, ExerciseKey]:
    """The keys for `seed`, from the file at `path` where it was made from just this course, else drawn and kept there.

    A file that cannot be read or written only costs the time of drawing.
    """
    from filelock import FileLock

    lesson_entry = course().lesson(lesson)
    version = hashlib.sha256(f"{version_of(lesson_entry.name)} {seed}".encode()).hexdigest()[:16]
    cache = path.with_name(f"{path.stem}-{version}{path.suffix}")
    try:
        with FileLock(path.with_suffix(".lock"), timeout=120):
            with contextlib.suppress(OSError, ValueError):
                return load_keys(lesson_entry.name, cache)
            keys = fresh_keys(lesson_entry, seed)
            with contextlib.suppress(OSError):
                for old in path.parent.glob(f"{path.stem}-*{path.suffix}"):
                    old.unlink()
                fresh = cache.with_name(f".{os.getpid()}-{cache.name}")
                save_keys(fresh, list(keys.values()))
                fresh.replace(cache)
            return keys
    except (OSError, TimeoutError):
        return fresh_keys(lesson_entry, seed)
