"""`course pack`: the learner edition as one zip, without solutions, key sources, authoring, grading and tests."""

from __future__ import annotations

import argparse
import re
import zipfile
from pathlib import Path

from helpers import __version__
from helpers.course import Course, CourseError, Lesson, course

NAME = "attention-course"
LARGEST = 5_000_000  # bytes: what is uploaded to Colab next to a notebook stays small
DATE = (2020, 1, 1, 0, 0, 0)  # of every file, so that the same course gives the same bytes
OTHER_WINGS = ("authoring", "grading", "classroom")
NOT_PACKED = ("__pycache__", "answer_keys", "blocks", "course.toml", *OTHER_WINGS)
ABOUT = """\
How a Transformer's attention works: {what}. Version {version}.

To work at home, with Python 3.11 or later, in this folder:
  python -m pip install -r requirements.txt
  jupyter lab
There, open notebooks/{first}/{first}.ipynb and run it from the top.
Unpack each zip of the course into a folder of its own: it would overwrite notebooks that you have answered.
If something does not work, this says what is missing:
  python -m helpers doctor
In Colab: open a notebook, drag this zip into the file list on the left (keep its name), and run the first cell.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", nargs="?", help="pack up to this lesson, such as 04_scaling; all if none is given")
    parser.add_argument("--output", type=Path, help="the zip to write; attention-course[-LESSON].zip if none is given")


def run(args: argparse.Namespace) -> int:
    home = course()
    last = home.lesson(args.lesson) if args.lesson else None
    path = args.output or Path(f"{NAME}-{last.name}.zip" if last else f"{NAME}.zip")
    try:
        size = pack(home, last, path)
    except OSError as error:
        raise CourseError(
            f"{path} could not be written: {error.strerror}. Choose another place with --output."
        ) from None
    what = f"up to {last.name}" if last else "all lessons"
    print(f"{path}   {what}, {size / 1e6:.1f} MB, version {__version__}")
    return 0


def pack(home: Course, last: Lesson | None, path: Path) -> int:
    """Write the edition up to `last` (None: the whole course) to `path`, and return its size in bytes.

    CourseError where a lesson is not built, or where the zip would be larger than LARGEST.
    """
    files = edition(home, last)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(f"{NAME}/{name}", DATE)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(info, files[name])
    size = path.stat().st_size
    if size > LARGEST:
        raise CourseError(f"{path} is {size / 1e6:.1f} MB, and {LARGEST / 1e6:g} MB are the most. Pack fewer lessons.")
    return size


def edition(home: Course, last: Lesson | None) -> dict[str, bytes]:
    """What goes into the edition: contents by path. Blocks are solutions: only those of lessons before the last."""
    lessons = list(home.lessons)
    lessons = lessons[: lessons.index(last) + 1] if last else lessons
    files = {
        "README.txt": _about(lessons, last).encode(),
        "course.toml": _course_toml(home, lessons).encode(),
        "LICENSE": (home.root / "LICENSE").read_bytes(),
        "requirements.txt": (home.root / "requirements.txt").read_bytes(),
    }
    for path in sorted((home.root / "helpers").rglob("*")):
        inside = path.relative_to(home.root)
        if path.is_file() and not set(NOT_PACKED) & set(inside.parts):
            files[inside.as_posix()] = path.read_bytes()
    for folder in ("answer_keys", "blocks"):
        files[f"helpers/{folder}/__init__.py"] = (home.root / "helpers" / folder / "__init__.py").read_bytes()
    for lesson in lessons:
        for name in (f"notebooks/{lesson.name}/{lesson.name}.ipynb", f"helpers/answer_keys/{lesson.name}.npz"):
            files[name] = _built(home.root / name, lesson)
    for lesson in lessons[:-1]:
        name = f"helpers/blocks/{lesson.name}.py"
        files[name] = _built(home.root / name, lesson)
    return files


def _built(path: Path, lesson: Lesson) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise CourseError(f"{lesson.name} is not built: {path.name} is missing. Run `course build` first.") from None


def _about(lessons: list[Lesson], last: Lesson | None) -> str:
    what = f"lessons {lessons[0].name} to {last.name}" if last else "all lessons"
    return ABOUT.format(what=what, version=__version__, first=lessons[0].name)


def _course_toml(home: Course, lessons: list[Lesson]) -> str:
    """course.toml with the tables of `lessons` only."""
    text = (home.root / "course.toml").read_text(encoding="utf-8")
    head, *tables = re.split(r"(?m)^(?=\[\[lesson\]\])", text)
    names = {lesson.name for lesson in lessons}
    return head + "".join(table for table in tables if re.search(r'^name = "(.+)"', table, re.M)[1] in names)
