"""`course try`: judge loose answer files, with fresh inputs and the reference outside the answer's process."""

import argparse
import contextlib
import itertools
import secrets
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from helpers.course import course
from helpers.grading.attachments import read_files_beside
from helpers.grading.pool import Batch, GradingStopped, NoSandbox, Pool, default_jobs
from helpers.grading.safe_text import one_line
from helpers.grading.submission import LooseFile

LARGEST_FILE = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Exit code: 0 where all is right, 1 where something is not, 2 where something could not be judged. "
        "With --json it is 0 whatever the verdicts, which stand in the lines."
    )
    parser.add_argument("lesson", help="the lesson's name or number, such as 04_scaling or 04")
    parser.add_argument("files", nargs="+", metavar="FILE.py", help="files that define one or more answers")
    parser.add_argument("--exercise", metavar="NAME", help="judge this exercise only")
    parser.add_argument("--json", action="store_true", help="one line of JSON per file and exercise")
    parser.add_argument("--seed", type=int, help="draw the inputs from this seed (default: fresh ones each time)")
    parser.add_argument("--unsafe", action="store_true", help="run the files in a plain process, without a sandbox")
    parser.add_argument("--jobs", type=int, default=0, help="how many files are judged side by side")


def run(args: argparse.Namespace) -> int:
    """Exit code 0, 1 where a verdict is not right (never with --json), 2 where something could not be judged."""
    lesson = course().lesson(args.lesson)
    sources: list[tuple[str, str]] = []
    for file in args.files:
        try:
            sources.append((file, read_source(Path(file))))
        except ValueError as error:
            print(error, file=sys.stderr)
    complete, right = len(sources) == len(args.files), True
    if not sources:
        return 2
    jobs = min(args.jobs if args.jobs > 0 else default_jobs(), len(sources))
    seed = secrets.randbelow(2**31) if args.seed is None else args.seed
    batch = Batch(lesson.name, seed, args.unsafe, notebook=False)
    files = [
        LooseFile(name, text, read_files_beside(Path(name).parent, text, only_named=True)[0], args.exercise, args.json)
        for name, text in sources
    ]
    try:
        judged = judge_files(batch, jobs, files)
        first = next(judged)
    except NoSandbox as missing:
        if args.unsafe:
            raise
        reason = str(missing).split(". ")[0].rstrip(".")
        print(f"Note: {reason}; the files run in a plain process.", file=sys.stderr)
        judged = judge_files(replace(batch, unsafe=True), jobs, files)
        first = next(judged)
    with contextlib.closing(judged):
        for file, kind, answer in itertools.chain([first], judged):
            if kind != "judged":
                complete = False
                print(f"{file.name} could not be judged: {one_line(str(answer)).rstrip('.')}.", file=sys.stderr)
                continue
            for text, is_right in answer:
                right = right and is_right
                print(text, flush=True)
    return 2 if not complete else int(not right and not args.json)


def judge_files(batch: Batch, jobs: int, files: list[LooseFile]) -> Iterator[tuple[LooseFile, str, object]]:
    """(file, kind, answer) as the judges say, in the order of `files`, as soon as they are known.

    Judges are processes: CPython 3.11's parser is not safe in two threads. Raises NoSandbox; GradingStopped where the
    lesson has nothing to judge, or not this exercise.
    """
    with Pool(batch, jobs) as pool:
        names = pool.exercises()
        if not names:
            raise GradingStopped(f"{batch.lesson} has no exercises.")
        if files[0].exercise not in (None, *names):
            raise GradingStopped(
                f"{batch.lesson} has no exercise {files[0].exercise!r}. Its exercises: {', '.join(names)}."
            )
        answers, next_number = {}, 0
        for number, kind, answer in pool.answers(range(len(files)), files.__getitem__):
            answers[number] = kind, answer
            while next_number in answers:
                yield files[next_number], *answers.pop(next_number)
                next_number += 1


def read_source(path: Path) -> str:
    """The text of a Python file. ValueError with one sentence where it cannot be read."""
    try:
        if path.is_dir():
            raise ValueError(f"{path} is a folder; name the files in it.")
        if path.suffix.lower() == ".ipynb":
            raise ValueError(
                f"{path} is a notebook, and `course try` judges Python files; `course grade --ci {path}` judges one."
            )
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError(f"{path} is larger than 1 MB, so it is no answer file.")
        with tokenize.open(path) as file:
            return file.read()
    except FileNotFoundError:
        raise ValueError(f"There is no file {path}.") from None
    except PermissionError:
        raise ValueError(f"{path} may not be read.") from None
    except (UnicodeDecodeError, SyntaxError):
        raise ValueError(f"{path} is no text in a known encoding.") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
