"""Store collected submissions where nbgrader expects them, without overwriting any, and record where they came from.

`submitted/STUDENT/LESSON/` holds the submission that counts, and `collected/LESSON/STUDENT/` all others.
`collected/LESSON.json` has each submission's place in the download, by which the platform takes feedback back.
"""

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from helpers.classroom.unpack import Found
from helpers.errors import CourseError
from helpers.grading.folders import Folders, write_atomically
from helpers.grading.safe_text import one_line

TIMESTAMP = "timestamp.txt"  # written by us for nbgrader, so a learner's file of that name is renamed
MOST_NAME = 100  # bytes of a learner's file name, without its extension


@dataclass
class Source:
    """Where a student's submission came from. sha: a hash of its files; "" if only the platform's id is known."""

    platform: str
    id: str = ""
    place: str = ""
    name: str = ""
    email: str = ""
    late: bool = False
    sha: str = ""
    time: str = ""  # in UTC, as datetime.isoformat writes it


def read_sources(folders: Folders, lesson: str) -> dict[str, Source]:
    """The source of each student's submission, {} before anything was collected. Raises CourseError if damaged."""
    path = _sources(folders, lesson)
    try:
        return {student: Source(**facts) for student, facts in json.loads(path.read_text(encoding="utf-8")).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError):
        raise CourseError(f"{path} cannot be read. Move it away, and collect again.") from None


def write_sources(folders: Folders, lesson: str, sources: dict[str, Source]) -> None:
    facts = {student: asdict(source) for student, source in sorted(sources.items())}
    write_atomically(_sources(folders, lesson), json.dumps(facts, ensure_ascii=False, indent=1))


def _sources(folders: Folders, lesson: str) -> Path:
    return folders.gradebook / "collected" / f"{lesson}.json"


def kept_roster(folders: Folders, lesson: str) -> Path:
    """The copy of the roster that the lesson was last collected with. Its grades go back in the form of this list."""
    return folders.gradebook / "collected" / f"{lesson}.roster.csv"


def kept_aside(folders: Folders, lesson: str, student: str) -> Path:
    """The folder for submissions that do not count."""
    return folders.gradebook / "collected" / lesson / student


def store(
    folders: Folders, lesson: str, student: str, files: dict[str, Found], new: Source, before: Source | None
) -> tuple[str, Path]:
    """Put a submission where it will be graded, unless a newer one is there already. Nothing is overwritten.

    Returns its status and its folder: "new", "unchanged", "older" (it was put aside), or "newer" (then the folder is
    the one where the replaced submission is now). Sets the `sha` of `new`.
    """
    folder, aside = folders.submitted / student / lesson, kept_aside(folders, lesson, student)
    new.sha = _digest({name: file.path for name, file in files.items()})
    if not os.path.lexists(folder):
        _write(folders, folder, files, new.time)
        return "new", folder
    present = _digest({path.name: path for path in _inside(folder)})
    if new.sha in (present, before.sha if before else ""):  # the latter if a person has edited the stored one
        return "unchanged", folder
    place = aside / new.sha[:12]
    timed = bool(before and before.time and new.time)
    if (new.time < before.time) if timed else place.exists():
        if not place.exists():
            _write(folders, place, files, new.time)
        return "older", place
    replaced = aside / present[:12]
    if replaced.exists():
        replaced = aside / f"{present[:12]}-{len(list(aside.iterdir()))}"
    replaced.parent.mkdir(parents=True, exist_ok=True)
    os.rename(folder, replaced)
    _write(folders, folder, files, new.time)
    return "newer", replaced


def put_aside(folders: Folders, lesson: str, student: str, files: dict[str, Found]) -> Path:
    """Keep a submission that belongs to another lesson than it was submitted for. Returns its folder."""
    place = kept_aside(folders, lesson, student) / _digest({name: file.path for name, file in files.items()})[:12]
    if not place.exists():
        _write(folders, place, files, "")
    return place


def unique_names(files: list[tuple[str, Found]], notebook: Found | None, lesson: str) -> dict[str, Found]:
    """Give each file a unique name: the notebook gets the lesson's name, the others keep the learner's."""
    chosen = {f"{lesson}.ipynb": notebook} if notebook else {}
    taken = {TIMESTAMP} | {name.casefold() for name in chosen}
    for name, file in sorted(files, key=lambda pair: pair[1].names):
        if file is notebook:
            continue
        name = one_line(name.replace("/", "_").replace("\\", "_"), 4 * MOST_NAME).lstrip(".") or "nameless"
        stem, suffix = os.path.splitext(name)
        stem, suffix = stem.encode()[:MOST_NAME].decode("utf-8", "ignore"), suffix[:20]
        number, name = 1, stem + suffix
        while name.casefold() in taken:
            number += 1
            name = f"{stem} ({number}){suffix}"
        taken.add(name.casefold())
        chosen[name] = file
    return chosen


def _inside(folder: Path) -> list[Path]:
    """The files of a submission, without nbgrader's timestamp. If `folder` is a file or a link, it is returned."""
    if folder.is_symlink() or not folder.is_dir():
        return [folder]
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != TIMESTAMP]


def _digest(files: dict[str, Path]) -> str:
    whole = hashlib.sha256()
    for name, path in sorted(files.items()):
        with open(path, "rb") as file:
            whole.update(f"{name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()


def _write(folders: Folders, folder: Path, files: dict[str, Found], time: str) -> None:
    """Write the whole submission or nothing, even if the process is killed."""
    (folders.gradebook / "collected").mkdir(parents=True, exist_ok=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=folders.gradebook / "collected", prefix=".part-"))
    try:
        for name, file in files.items():
            shutil.copyfile(file.path, part / name)
        if time:
            moment = datetime.fromisoformat(time)
            (part / TIMESTAMP).write_text(f"{moment:%Y-%m-%d %H:%M:%S} UTC", encoding="utf-8")
        os.chmod(part, 0o755)
        os.rename(part, folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
