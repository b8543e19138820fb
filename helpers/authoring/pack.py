"""`course pack`: write the learner edition as one zip, or the autograder of a lesson for Gradescope.

The learner edition has no solutions, key sources, authoring, grading and tests. Gradescope unpacks the autograder into
/autograder/source, runs setup.sh once, and run_autograder for each submission:
https://gradescope-autograders.readthedocs.io/en/latest/specs/
"""

import argparse
import re
import zipfile
from pathlib import Path

from helpers import __version__
from helpers.authoring.build import released_text
from helpers.course import Course, CourseError, Lesson, course
from helpers.released import working_copies, working_copies_note

NAME = "attention-course"
LARGEST = 8_000_000  # bytes, because learners upload it to Colab next to a notebook
DATE = (2020, 1, 1, 0, 0, 0)  # of every file, so that the same course always gives the same bytes
NOT_FOR_LEARNERS = ("authoring", "grading", "classroom")
SCRIPTS = Path(__file__).with_name("gradescope")
NOT_PACKED = ("__pycache__", "answer_keys", "blocks", "course.toml", *NOT_FOR_LEARNERS)
ABOUT = """\
How a Transformer's attention works: {what}. Version {version}.

To work at home, with Python 3.11 or later, in this folder:
  python -m pip install -r requirements.txt
  jupyter lab
There, open notebooks/{first}/{first}.ipynb and run it from the top.
Each zip of the course unpacks into a folder of its own, so none overwrites notebooks that you have answered.
If something does not work, this says what is missing:
  python -m helpers doctor
In Colab: open a notebook, drag this zip into the file list on the left (keep its name), and run the first cell.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        nargs="*",
        metavar="LESSON",
        help="pack up to this lesson, such as 04_scaling (default: all lessons); `gradescope LESSON`: its autograder",
    )
    parser.add_argument("--output", type=Path, help="the zip to write (default: attention-course[-LESSON].zip)")
    parser.add_argument(
        "--unsafe",
        action="store_true",
        help="gradescope only: run answers without a sandbox, with access to the grader's files",
    )


def run(args: argparse.Namespace) -> int:
    home, gradescope = course(), args.what[:1] == ["gradescope"]
    names = args.what[gradescope:]
    if len(names) > 1 or gradescope and not names:
        raise CourseError("Name one lesson, as in: course pack 04_scaling, or: course pack gradescope 04_scaling")
    last = home.lesson(names[0]) if names else None
    if gradescope and last and not last.points:
        raise CourseError(f"{last.name} has no points, so there is nothing to grade.")
    parts = [NAME, *(["gradescope"] if gradescope else []), *([last.name] if last else [])]
    path = args.output or Path(f"{'-'.join(parts)}.zip")
    try:
        size = write_zip(_grader(home, last, args.unsafe), path) if gradescope else pack(home, last, path)
    except OSError as error:
        reason = error.strerror
        raise CourseError(f"{path} could not be written: {reason}. Choose another path with --output.") from None
    what = f"{'the grader of' if gradescope else 'up to'} {last.name}" if last else "all lessons"
    print(f"{path}   {what}, {size / 1e6:.1f} MB, version {__version__}")
    packed = [lesson.name for lesson in _up_to(home, last)]
    changed = [name for name in working_copies(home.root) if name in packed]
    for line in working_copies_note(changed, "packed is"):
        print(line)
    return 0


def pack(home: Course, last: Lesson | None, path: Path) -> int:
    """Write the edition up to `last` (None: the whole course) as a zip to `path`. Returns its size in bytes.

    Raises CourseError if a lesson is not built, or if the zip is larger than LARGEST.
    """
    folder = f"{NAME}-{last.name}" if last else NAME
    size = write_zip({f"{folder}/{name}": content for name, content in edition(home, last).items()}, path)
    if size > LARGEST:
        raise CourseError(f"{path} is {size / 1e6:.1f} MB, but the limit is {LARGEST / 1e6:g} MB. Pack fewer lessons.")
    return size


def write_zip(files: dict[str, bytes], path: Path) -> int:
    """Write a zip whose bytes depend only on the files. Returns its size in bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, DATE)
            mode = 0o755 if files[name].startswith(b"#!") else 0o644
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, mode << 16
            archive.writestr(info, files[name], compresslevel=9)
    return path.stat().st_size


def edition(home: Course, last: Lesson | None) -> dict[str, bytes]:
    """The files of the edition, path -> content. Blocks are solutions, so those of the last lesson are left out."""
    lessons = _up_to(home, last)
    what = f"lessons {lessons[0].name} to {last.name}" if last else "all lessons"
    files = {
        "README.txt": ABOUT.format(what=what, version=__version__, first=lessons[0].name).encode(),
        "course.toml": _course_toml(home, lessons).encode(),
        "LICENSE": (home.root / "LICENSE").read_bytes(),
        "requirements.txt": (home.root / "requirements.txt").read_bytes(),
    }
    helpers = home.root / "helpers"
    paths = [path for path in helpers.rglob("*") if not {*NOT_PACKED} & {*path.relative_to(home.root).parts}]
    paths += [helpers / name for name in ("answer_keys/__init__.py", "blocks/__init__.py", "blocks/handouts.py")]
    files |= {path.relative_to(home.root).as_posix(): path.read_bytes() for path in paths if path.is_file()}
    built = [(f"helpers/answer_keys/{lesson.name}.npz", lesson) for lesson in lessons]
    built += [(f"helpers/blocks/{lesson.name}.py", lesson) for lesson in lessons[:-1]]
    files |= {
        f"notebooks/{lesson.name}/{lesson.name}.ipynb": released_text(home, lesson).encode() for lesson in lessons
    }
    files |= {name: _built(home.root / name, lesson) for name, lesson in built}
    return files


def _grader(home: Course, lesson: Lesson, unsafe: bool) -> dict[str, bytes]:
    """The files of a lesson's autograder, path -> content. unsafe: run answers without a sandbox.

    The scripts always write a results.json, because Gradescope's own message for a missing one does not help a learner.
    """
    grader = (home.root / "helpers" / "grading").rglob("*")
    names = [
        *(path.relative_to(home.root).as_posix() for path in grader if path.is_file() and path.suffix != ".pyc"),
        *("pyproject.toml", "requirements.lock", "README.md", f"helpers/blocks/{lesson.name}.py"),
        *(f"solutions/{lesson.name}/{name}" for name in ("answer_key.py", f"{lesson.name}.ipynb")),
    ]
    setup, run = ((SCRIPTS / name).read_text(encoding="utf-8") for name in ("setup.sh", "run_autograder"))
    options = '--gradescope "$home"'
    run = run.replace(f"LESSON {options}", f"{lesson.name} {options}{' --unsafe' if unsafe else ''}")
    scripts = {"setup.sh": setup.encode(), "run_autograder": run.encode()}
    return edition(home, lesson) | scripts | {name: _built(home.root / name, lesson) for name in names}


def _up_to(home: Course, last: Lesson | None) -> list[Lesson]:
    lessons = list(home.lessons)
    return lessons[: lessons.index(last) + 1] if last else lessons


def _built(path: Path, lesson: Lesson) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise CourseError(f"{lesson.name} is not built: {path.name} is missing. Run `course build` first.") from None


def _course_toml(home: Course, lessons: list[Lesson]) -> str:
    """course.toml with the tables of only these lessons."""
    head, *tables = re.split(r"(?m)^(?=\[\[lesson\]\])", (home.root / "course.toml").read_text(encoding="utf-8"))
    names = {lesson.name for lesson in lessons}
    return head + "".join(table for table in tables if re.search(r'^name = "(.+)"', table, re.M)[1] in names)
