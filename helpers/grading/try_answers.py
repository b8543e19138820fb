"""`course try`: judge loose answer files, with fresh inputs and the reference outside the answer's process."""

from __future__ import annotations

import argparse
import json
import os
import queue
import secrets
import sys
import tokenize
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from helpers.checking.rendering import as_text
from helpers.checking.verdict import Verdict
from helpers.course import CourseError, course
from helpers.grading.attachments import lying_beside
from helpers.grading.bubblewrap import SandboxMissing
from helpers.grading.judge import Judge
from helpers.grading.reference import GraderBroken, fresh_keys

LARGEST_FILE = 1 << 20


def as_json(file: str, verdict: Verdict) -> str:
    """One line: a file, an exercise (null where the file defines none) and what became of it."""
    facts = {
        "file": file,
        "exercise": verdict.exercise or None,
        "points": verdict.points,
        "max_points": verdict.max_points,
        "passed": verdict.passed and verdict.points == verdict.max_points,
        "mistake": verdict.mistake,
        "message": verdict.message,
    }
    return json.dumps(facts, ensure_ascii=False)


def as_lines(file: str, verdict: Verdict) -> str:
    return f"{file}\n{as_text(verdict)}" if verdict.exercise else f"✗ {file}\n  {verdict.message}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", help="the lesson's name or number, such as 04_scaling or 04")
    parser.add_argument("files", nargs="+", metavar="FILE.py", help="files that define one or more answers")
    parser.add_argument("--exercise", metavar="NAME", help="judge this exercise only")
    parser.add_argument("--json", action="store_true", help="one line of JSON per file and exercise")
    parser.add_argument("--seed", type=int, help="draw the inputs from this seed (default: fresh ones each time)")
    parser.add_argument("--unsafe", action="store_true", help="run the files in a plain process, without a sandbox")
    parser.add_argument("--jobs", type=int, default=0, help="how many files are judged side by side")


def run(args: argparse.Namespace) -> int:
    """Exit code 0 whatever the verdicts, 2 when something could not be judged."""
    seed = secrets.randbelow(2**31) if args.seed is None else args.seed
    try:
        lesson = course().lesson(args.lesson)
        keys = fresh_keys(lesson, seed)
    except (CourseError, GraderBroken) as error:
        return _stop(f"{str(error).rstrip('.')}.")
    if not keys:
        return _stop(f"{lesson.name} has no exercises.")
    if args.exercise is not None and args.exercise not in keys:
        return _stop(f"{lesson.name} has no exercise {args.exercise!r}. Its exercises: {', '.join(keys)}.")
    sources: list[tuple[str, str | None]] = []
    for file in args.files:
        try:
            sources.append((file, read_source(Path(file))))
        except ValueError as error:
            print(error, file=sys.stderr)
    complete = len(sources) == len(args.files)
    if not sources:
        return 2
    jobs = max(1, min(args.jobs or os.cpu_count() or 1, 2 if not args.jobs else args.jobs, len(sources)))
    judges: list[Judge] = []
    try:
        try:
            for _ in range(jobs):
                judges.append(start_judge(lesson.name, seed, keys, args.unsafe or bool(judges and judges[0].unsafe)))
        except (SandboxMissing, GraderBroken) as error:
            return _stop(f"{str(error).rstrip('.')}.")
        shown = as_json if args.json else as_lines
        for (file, _), verdicts in zip(sources, judge_files(judges, sources, args.exercise), strict=True):
            for verdict in verdicts:
                print(shown(file, verdict), flush=True)
    finally:
        for judge in judges:
            judge.close()
    return 0 if complete else 2


def start_judge(lesson: str, seed: int, keys, unsafe: bool) -> Judge:
    """A judge in the sandbox, or, for a learner's own files where there is none, beside a plain process."""
    try:
        return Judge(lesson, seed, unsafe, notebook=False, keys=keys)
    except SandboxMissing as error:
        if unsafe:
            raise
        reason = str(error).split(". ")[0].rstrip(".")
        print(f"Note: {reason}; the files run in a plain process.", file=sys.stderr)
        return Judge(lesson, seed, True, notebook=False, keys=keys)


def judge_files(judges: list[Judge], sources: list[tuple[str, str]], exercise: str | None) -> Iterator[list[Verdict]]:
    """The verdicts on each file, in the order of `sources`, as soon as they are known."""
    free: queue.SimpleQueue[Judge] = queue.SimpleQueue()
    for judge in judges:
        free.put(judge)

    def one(source: tuple[str, str]) -> list[Verdict]:
        judge = free.get()
        try:
            return judge_file(judge, *source, exercise)
        finally:
            free.put(judge)

    with ThreadPoolExecutor(len(judges)) as pool:
        yield from pool.map(one, sources)


def judge_file(judge: Judge, file: str, source: str, exercise: str | None) -> list[Verdict]:
    """The verdicts on a file; one without an exercise where it defines none."""
    files, _ = lying_beside(Path(file).parent, source, only_named=True)
    result = judge.judge_source(source, [exercise] if exercise else None, name=file, files=files)
    if result.verdicts:
        return list(result.verdicts.values())
    points = sum(key.points for key in judge.keys.values() if not key.bonus)
    if error := result.errors.get(file):
        return [Verdict("", 0, points, False, "raises", message=error)]
    message = f"defines none of the exercises of {judge.lesson.name}"
    return [Verdict("", 0, points, False, "not_answered", message=message, answered=False)]


def read_source(path: Path) -> str:
    """The text of a Python file. ValueError with one sentence where it cannot be read."""
    try:
        if path.is_dir():
            raise ValueError(f"{path} is a folder; name the files in it.")
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


def _stop(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="course try", description=__doc__)
    add_arguments(parser)
    return run(parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
