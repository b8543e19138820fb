"""Find all files of a download: in a folder, in a zip, and in zips inside it, with limits on their sizes.

Unpacked files are stored under numbers, and names from a zip are only labels, so no name can lead out of the folder.
"""

import itertools
import math
import os
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from helpers.errors import CourseError
from helpers.grading.repository_files import SKIPPED, own_files
from helpers.grading.safe_text import one_line

LARGEST_FILE = 50 * 2**20  # bytes of one file; a larger one is reported and left where it is
LARGEST_INSIDE = 200 * 2**20  # bytes of all files in one zip inside a download, including those in nested zips
MOST_INSIDE = 500  # files in such a zip
DEEPEST = 3  # levels of zips inside a download
MOST_LISTED = 100_000  # entries of a zip that are read
JUNK = {".DS_Store", "Thumbs.db", "desktop.ini"}  # made by operating systems
BROKEN = (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError, OSError, ValueError)


@dataclass(frozen=True)
class Found:
    """One file. names: its folders and its own name in the download, where a zip counts as a folder.

    of_clone: whether it is from a whole clone of the course, most of which is skipped (grading/repository_files.py).
    """

    names: tuple[str, ...]
    path: Path
    of_clone: bool = False


@dataclass
class Budget:
    """How much may still be unpacked from one zip and its nested zips. The download itself is not limited."""

    bytes: float = math.inf
    files: float = math.inf


@dataclass
class Files:
    """The files that were found, and notes on those that could not be taken. scratch: the folder to unpack into."""

    scratch: Path
    found: list[Found] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)


def find_files(path: Path, scratch: Path) -> Files:
    """Find the files of `path`, a folder or file. scratch: an empty folder to unpack into. CourseError if none."""
    files = Files(scratch)
    if path.is_dir():
        listed = [(tuple(map(_label, file.relative_to(path).parts)), file) for file in _walk(path)]
        renamed = own_files(inside for inside, _ in listed)
        for inside, file in listed:
            names = renamed.get(inside, ())
            if names and file.is_symlink():
                files.notes.append(f"{'/'.join(names)} is a link and was not followed.")
            elif names and file.is_file() and not _is_junk(names):
                _take(files, Found(names, file, names != inside))
    elif path.suffix.lower() == ".zip" and path.is_file():
        if problem := _open_zip(files, path, (), 0, Budget()):
            raise CourseError(f"{path} cannot be unpacked: {problem}. Download it again.")
    elif path.is_file():
        files.found.append(Found((_label(path.name),), path))
    else:
        raise CourseError(f"There is no folder or file {path}. Name the zip that your platform gave, or a folder.")
    if not files.found:
        raise CourseError(f"Nothing was handed in: {path} holds no file. Nothing was collected.")
    return files


def _take(files: Files, file: Found, depth: int = 0, budget: Budget | None = None) -> None:
    """Add a file, or the files of a zip. A zip that cannot be read completely is added as a file, with a note."""
    name = "/".join(file.names)
    if name.lower().endswith(".zip"):
        before = len(files.found)
        problem = _open_zip(files, file.path, file.names, depth + 1, budget or Budget(LARGEST_INSIDE, MOST_INSIDE))
        if problem is None:
            return
        files.notes.append(f"{name} cannot be unpacked: {problem}. Ask for the notebook itself.")
        del files.found[before:]
    if file.path.stat().st_size > LARGEST_FILE:
        files.notes.append(f"{name} is larger than {LARGEST_FILE >> 20} MB and was left where it is.")
    else:
        files.found.append(file)


def _open_zip(files: Files, path: Path, names: tuple[str, ...], depth: int, budget: Budget) -> str | None:
    """Add the files of a zip. Returns None, or the reason why it failed. depth: 0 for the download itself."""
    if depth > DEEPEST:
        return "it lies in too many zips"
    if depth and path.stat().st_size > LARGEST_FILE:
        return f"it is larger than {LARGEST_FILE >> 20} MB"
    try:
        with _zip(path) as archive:
            entries = [entry for entry in archive.infolist()[:MOST_LISTED] if not entry.is_dir()]
            listed = [(names + tuple(_parts(entry.filename)), entry) for entry in entries]
            renamed = own_files(inside for inside, _ in listed if len(inside) > len(names))
            kept = [(inside, renamed[inside], entry) for inside, entry in listed if inside in renamed]
            budget.files -= len(kept)
            if budget.files < 0:
                return f"it holds more than {MOST_INSIDE} files"
            for inside, inner, entry in kept:
                if _is_junk(inner):
                    continue
                place = files.scratch / str(next(files.numbers))
                size, problem = _copy(archive, entry, place, min(LARGEST_FILE, budget.bytes))
                budget.bytes -= size
                if problem and depth:
                    return problem
                if problem:
                    files.notes.append(f"{'/'.join(inner)} was left in the zip: {problem}.")
                    continue
                _take(files, Found(inner, place, inner != inside), depth, budget if depth else None)
                if min(budget.bytes, budget.files) < 0:
                    return "there is too much in the zips inside of it"
    except BROKEN as error:
        return _reason(error)
    return None


def _walk(folder: Path) -> Iterator[Path]:
    """The files and links below a folder, without those of tools (such as .git)."""
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        folders[:] = sorted(name for name in folders if name not in SKIPPED and name not in links)
        yield from (Path(place) / name for name in sorted([*files, *links]))


def _zip(path: Path) -> zipfile.ZipFile:
    """Open a zip. Names count as UTF-8 even if they are not marked so (as on macOS), unless they are invalid UTF-8."""
    try:
        return zipfile.ZipFile(path, metadata_encoding="utf-8")
    except UnicodeDecodeError:
        return zipfile.ZipFile(path)


def _copy(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, place: Path, most: float) -> tuple[int, str | None]:
    """Unpack one file. Returns the bytes written, and a reason if it failed. Sizes that the zip states are ignored."""
    size = 0
    try:
        with archive.open(entry) as source, open(place, "wb") as target:
            while block := source.read(1 << 18):
                size += len(block)
                if size > most:  # in a nested zip, `most` is what remains, but the reason names the whole limit
                    limit = LARGEST_FILE if most == LARGEST_FILE else LARGEST_INSIDE
                    return size, f"it unpacks to more than {limit >> 20} MB"
                target.write(block)
    except BROKEN as error:
        return size, _reason(error)
    return size, None


def _reason(error: Exception) -> str:
    text = one_line(str(error), 120)
    return "it is encrypted" if "password" in text else f"it is damaged ({text})"


def _parts(name: str) -> Iterator[str]:
    """The folders and the name of a zip's entry, without components such as `..`."""
    return (_label(part) for part in name.replace("\\", "/").split("/") if part.strip() not in ("", ".", ".."))


def _label(name: str) -> str:
    """A name in Unicode's normal form, because macOS writes an umlaut as two characters."""
    return one_line(unicodedata.normalize("NFC", name), 200)


def _is_junk(names: tuple[str, ...]) -> bool:
    return bool(JUNK & set(names)) or names[-1].startswith("._")
