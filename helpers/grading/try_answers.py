"""`course try`: judge separate answer files on fresh inputs. The reference runs outside the answer's process."""

import argparse
import contextlib
import json
import secrets
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from helpers.course import course
from helpers.grading.attachments import read_files_beside
from helpers.grading.pool import Batch, GradingStopped, NoSandbox, Pool, default_jobs
from helpers.grading.safe_text import one_line
from helpers.grading.submission import Cell, ExerciseReport, SubmissionReport

LARGEST_FILE = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Exit code: 0 if all answers are right, 1 if one is wrong, 2 if a file could not be judged. "
        "With --json it is 0 instead of 1, because the lines contain the verdicts."
    )
    parser.add_argument("lesson", help="the lesson's name or number, such as 04_scaling or 04")
    parser.add_argument("files", nargs="+", metavar="FILE.py", help="files that define one or more answers")
    parser.add_argument("--exercise", metavar="NAME", help="judge this exercise only")
    parser.add_argument("--json", action="store_true", help="one line of JSON per file and exercise")
    parser.add_argument("--seed", type=int, help="draw the inputs from this seed (default: fresh ones each time)")
    parser.add_argument("--unsafe", action="store_true", help="run the files in a plain process, without a sandbox")
    parser.add_argument("--jobs", type=int, default=0, help="how many files are judged in parallel")


def run(args: argparse.Namespace) -> int:
    """Returns the exit code: 0; 1 if an answer is wrong (never with --json); 2 if a file could not be judged."""
    lesson = course().lesson(args.lesson)
    files: list[Cell] = []
    for file in args.files:
        try:
            files.append(Cell(file, read_source(Path(file))))
        except ValueError as error:
            print(error, file=sys.stderr)
    complete, right = len(files) == len(args.files), True
    if not files:
        return 2
    jobs = min(args.jobs if args.jobs > 0 else default_jobs(), len(files))
    seed = secrets.randbelow(2**31) if args.seed is None else args.seed
    only = [args.exercise] if args.exercise else None
    batch = Batch(lesson.name, seed, args.unsafe, notebook=False, only=only)
    with contextlib.closing(judge_files(batch, jobs, files)) as judged:
        for file, kind, answer in judged:
            problem = answer.problem if kind == "judged" else str(answer)
            if problem:
                complete = False
                print(f"{file.id} could not be judged: {one_line(problem).rstrip('.')}.", file=sys.stderr)
                continue
            for report in reports_of(file, answer, lesson.name):
                right = right and is_right(report)
                shown = f"{file.id}\n{report.text}" if report.exercise else f"✗ {file.id}\n  {report.message}"
                print(as_json(file.id, report) if args.json else shown, flush=True)
    return 2 if not complete else int(not right and not args.json)


def judge_files(batch: Batch, jobs: int, files: list[Cell]) -> Iterator[tuple[Cell, str, Any]]:
    """Yield (file, kind, answer) from the judges (JudgeProcess.answer) in the order of `files`, as soon as possible.

    The judges are processes, because CPython 3.11's parser is not thread-safe. If nothing can be isolated, a note is
    printed and plain processes run the files. Raises GradingStopped if the lesson lacks exercises, or those of `batch`.
    """

    def message(number: int) -> tuple:
        file = files[number]
        beside, _ = read_files_beside(Path(file.id).parent, file.source, only_named=True)
        return [file], beside, False, False

    with Pool(batch, jobs) as pool:
        try:
            names = pool.exercises()
        except NoSandbox as missing:
            reason = str(missing).split(". ")[0].rstrip(".")
            print(f"Note: {reason}; the files run in a plain process.", file=sys.stderr)
            yield from judge_files(replace(batch, unsafe=True), jobs, files)
            return
        if not names:
            raise GradingStopped(f"{batch.lesson} has no exercises.")
        if unknown := set(batch.only or ()) - set(names):
            raise GradingStopped(
                f"{batch.lesson} has no exercise {unknown.pop()!r}. Its exercises: {', '.join(names)}."
            )
        answers, next_number = {}, 0
        for number, kind, answer in pool.answers(range(len(files)), message):
            answers[number] = kind, answer
            while next_number in answers:
                yield files[next_number], *answers.pop(next_number)
                next_number += 1


def reports_of(file: Cell, judged: SubmissionReport, lesson: str) -> list[ExerciseReport]:
    """A report on each exercise of a file; a single one without an exercise if the file defines none."""
    if judged.verdicts:
        return list(judged.verdicts.values())
    error = judged.errors.get(file.id)
    mistake, message = ("raises", error) if error else ("not_answered", f"defines none of the exercises of {lesson}")
    return [ExerciseReport("", 0.0, 0.0, False, bool(error), mistake, "", "", "", message=message)]


def is_right(report: ExerciseReport) -> bool:
    return report.passed and report.points == report.max_points


def as_json(file: str, report: ExerciseReport) -> str:
    """A line of JSON with the file, the exercise (null if the file defines none) and the verdict."""
    fields = {"file": file, "exercise": report.exercise or None}
    fields |= {name: getattr(report, name) for name in ("points", "max_points", "passed", "mistake", "message")}
    return json.dumps(fields | {"passed": is_right(report)}, ensure_ascii=False)


def read_source(path: Path) -> str:
    """The text of a Python file. Raises ValueError with a sentence if it cannot be read."""
    try:
        if path.is_dir():
            raise ValueError(f"{path} is a folder; name the files in it.")
        if path.suffix.lower() == ".ipynb":
            raise ValueError(
                f"{path} is a notebook, and `course try` judges Python files; `course grade --ci {path}` judges one."
            )
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError(f"{path} is larger than 1 MB, so it is not an answer file.")
        with tokenize.open(path) as file:
            return file.read()
    except (UnicodeDecodeError, SyntaxError):
        raise ValueError(f"{path} is not text in a known encoding.") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
