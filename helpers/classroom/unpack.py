"""Every file of a download: of a folder, a zip, and zips inside of it, in bounded sizes.

A name from a zip is only a label here; bytes are written under numbers, so no name leads out of the folder.
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

LARGEST_FILE = 50 * 2**20  # bytes of one file; a larger one is named and stays where it is
LARGEST_INSIDE = 200 * 2**20  # bytes of all that one zip inside of a download holds, and the zips inside of it
MOST_INSIDE = 500  # files of it
DEEPEST = 3  # zips inside of zips
MOST_LISTED = 100_000  # names of a zip that are looked at
JUNK = {".DS_Store", "Thumbs.db", "desktop.ini"}  # made by computers, not by people
BROKEN = (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError, OSError, ValueError)


@dataclass(frozen=True)
class Found:
    """One file. names: its folders and its own name as the download has them, a zip counting as a folder.

    of_clone: whether it lies in a whole clone of the course, whose other files were left (grading/repository_files.py).
    """

    names: tuple[str, ...]
    path: Path
    of_clone: bool = False


@dataclass
class Left:
    """What may still come out of one zip, with the zips inside of it; the download itself may be of any size."""

    bytes: float = math.inf
    files: float = math.inf


@dataclass
class Files:
    """All that was found, and a sentence for each thing that could not be taken."""

    room: Path
    found: list[Found] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)


def find_files(path: Path, room: Path) -> Files:
    """The files of `path`, a folder or a file. room: an empty folder for what is unpacked. CourseError if none."""
    files = Files(room)
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
        if problem := _open_zip(files, path, (), 0, Left()):
            raise CourseError(f"{path} cannot be unpacked: {problem}. Download it again.")
    elif path.is_file():
        files.found.append(Found((_label(path.name),), path))
    else:
        raise CourseError(f"There is no folder or file {path}. Name the zip that your platform gave, or a folder.")
    if not files.found:
        raise CourseError(f"Nothing was handed in: {path} holds no file. Nothing was collected.")
    return files


def _take(files: Files, file: Found, depth: int = 0, left: Left | None = None) -> None:
    """Keep a file; of a zip what is in it, and the zip itself too where not all of it could be read."""
    name = "/".join(file.names)
    if name.lower().endswith(".zip"):
        before = len(files.found)
        problem = _open_zip(files, file.path, file.names, depth + 1, left or Left(LARGEST_INSIDE, MOST_INSIDE))
        if problem is None:
            return
        files.notes.append(f"{name} cannot be unpacked: {problem}. Ask for the notebook itself.")
        del files.found[before:]
    if file.path.stat().st_size > LARGEST_FILE:
        files.notes.append(f"{name} is larger than {LARGEST_FILE >> 20} MB and was left where it is.")
    else:
        files.found.append(file)


def _open_zip(files: Files, path: Path, names: tuple[str, ...], depth: int, left: Left) -> str | None:
    """Take what is in a zip; or say why that cannot be done. depth: 0 for the download itself."""
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
            left.files -= len(kept)
            if left.files < 0:
                return f"it holds more than {MOST_INSIDE} files"
            for inside, inner, entry in kept:
                if _is_junk(inner):
                    continue
                place = files.room / str(next(files.numbers))
                size, problem = _copy(archive, entry, place, min(LARGEST_FILE, left.bytes))
                left.bytes -= size
                if problem and depth:
                    return problem
                if problem:
                    files.notes.append(f"{'/'.join(inner)} was left in the zip: {problem}.")
                    continue
                _take(files, Found(inner, place, inner != inside), depth, left if depth else None)
                if min(left.bytes, left.files) < 0:
                    return "there is too much in the zips inside of it"
    except BROKEN as error:
        return _reason(error)
    return None


def _walk(folder: Path) -> Iterator[Path]:
    """The files and links below a folder, without what tools put there."""
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        folders[:] = sorted(name for name in folders if name not in SKIPPED and name not in links)
        yield from (Path(place) / name for name in sorted([*files, *links]))


def _zip(path: Path) -> zipfile.ZipFile:
    """A zip whose names are UTF-8, marked so or not (macOS does not), or else as zipfile reads them."""
    try:
        return zipfile.ZipFile(path, metadata_encoding="utf-8")
    except UnicodeDecodeError:
        return zipfile.ZipFile(path)


def _copy(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, place: Path, most: float) -> tuple[int, str | None]:
    """How many bytes were written, and why not all; what the zip says of its sizes is not believed."""
    size = 0
    try:
        with archive.open(entry) as source, open(place, "wb") as target:
            while block := source.read(1 << 18):
                size += len(block)
                if size > most:  # of what a zip inside may hold, less is left: its limit, not the rest, is the reason
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
    """The folders and the name of a zip's entry, without what leads elsewhere."""
    return (_label(part) for part in name.replace("\\", "/").split("/") if part.strip() not in ("", ".", ".."))


def _label(name: str) -> str:
    """A name in one way of writing it: macOS writes an umlaut as two characters."""
    return one_line(unicodedata.normalize("NFC", name), 200)


def _is_junk(names: tuple[str, ...]) -> bool:
    return bool(JUNK & set(names)) or names[-1].startswith("._")
