"""`course grade LESSON`: judge all submissions, record them in nbgrader's gradebook, and write the class report."""

import argparse
import contextlib
import gc
import os
import re
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

from helpers.grading.due import add_due_arguments, store_due
from helpers.grading.folders import Folders, load, shown
from helpers.grading.pool import GradingStopped
from helpers.grading.record import Result
from helpers.grading.safe_text import one_line
from helpers.released import differs, working_copies_note

SHOWN_FLAGS = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "lesson", metavar="LESSON", nargs="?", help="such as 04_scaling (with --ci: found from the notebook)"
    )
    parser.add_argument("--student", nargs="+", metavar="ID", help="only these students")
    parser.add_argument("--force", action="store_true", help="grade unchanged submissions again, with the same inputs")
    parser.add_argument("--jobs", type=int, metavar="N", help="parallel judges (default: one per core, at most two)")
    parser.add_argument("--cell-seconds", type=float, metavar="S", help="time limit for one cell of a notebook")
    parser.add_argument("--feedback", action="store_true", help="also write nbgrader's feedback pages")
    parser.add_argument(
        "--unsafe",
        action="store_true",
        help="grade without a sandbox, for computers without bubblewrap: learner code then runs with your rights",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--scheduler", metavar="ADDRESS", help="let the workers of this dask scheduler judge, as in tcp://HOST:8786"
    )
    mode.add_argument(
        "--cluster", metavar="local:N", type=_local, help="the same with N workers that are started here, to try it"
    )
    mode.add_argument(
        "--ci",
        metavar="FILE.ipynb",
        type=Path,
        help="grade this notebook alone, without a gradebook: exit code 0 with all points, 1 where some are missing",
    )
    mode.add_argument(
        "--gradescope",
        metavar="FOLDER",
        type=Path,
        help="grade FOLDER/submission and write FOLDER/results/results.json",
    )
    add_due_arguments(parser)
    parser.add_argument("--gradebook", metavar="FOLDER", help="another class's folder (default: gradebook)")


def _local(text: str) -> str:
    if not re.fullmatch(r"local:[1-9]\d?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not local:N, as in local:2; other machines have a --scheduler")
    return text


def run(args: argparse.Namespace) -> int:
    """Grade and print a summary. Raises CourseError if grading was not possible."""
    try:
        if args.ci is not None:
            from helpers.grading.one_notebook import grade_file

            return grade_file(args.ci, args.lesson, args.unsafe)
        if args.lesson is None:
            raise GradingStopped("Name the lesson to grade, as in: course grade 04_scaling")
        if args.gradescope is not None:
            from helpers.grading.one_notebook import grade_folder

            return grade_folder(args.gradescope, args.lesson, args.unsafe)
        if args.gradebook is not None and not os.path.isdir(args.gradebook):
            raise GradingStopped(
                f"There is no folder {one_line(args.gradebook)}; --gradebook names the folder of a class, which holds "
                "submitted/."
            )
        gc.disable()  # Searching imported objects for garbage finds none, and takes a quarter of the import time.
        try:
            from helpers.grading import batch  # noqa: F401

            folders, config = load(args.gradebook)
            args.lesson = folders.lesson(args.lesson)
            store_due(folders, args.lesson, args)
        finally:
            gc.enable()
        grade_and_print(folders, config, args)
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f" ({one_line(str(error.filename))})" if error.filename else ""
        raise GradingStopped(
            f"Grading stopped: {error.strerror or error}{where}. What was recorded so far stays."
        ) from None
    return 0


def grade_and_print(folders: Folders, config, args: argparse.Namespace) -> list[Result]:
    """Grade args.lesson, write its pages, print a summary and return the results."""
    from helpers.grading.batch import GradingOptions, grade_lesson

    lesson, began = args.lesson, time.monotonic()
    options = GradingOptions(args.jobs, args.force, args.unsafe, args.cell_seconds, args.scheduler or args.cluster)
    with ProgressBar(lesson) as progress:
        outcome = grade_lesson(folders, lesson, args.student, options, config, progress)
    seconds = time.monotonic() - began
    took = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    graded = f"{outcome.new} graded in {took}" if outcome.new else "nothing new to grade"
    report = write_pages(folders, config, lesson, args.feedback)
    for line in summary(graded, outcome.results, report):
        print(line)
    changed = [lesson] if differs(folders.notebook(lesson), folders.executed(lesson)) else []
    for line in working_copies_note(changed, "graded against"):
        print(f"  {line}")
    database = folders.db_url.removeprefix("sqlite:///")
    database = database.split("@")[-1] if database == folders.db_url else shown(database)  # without a password
    print(f"  report: {shown(folders.report(lesson, 'html'))}   gradebook: {database}")
    if has_pages(folders, lesson):
        print(f"  feedback: {shown(folders.feedback)}")
    return outcome.results


def write_pages(folders: Folders, config, lesson: str, feedback: bool = False):
    """Write the class report, which is returned, and the feedback pages, if they are requested or if there are some
    already, because none may show outdated points."""
    from helpers.grading.class_report import write_report
    from helpers.grading.converters import write_feedback

    try:
        if feedback or has_pages(folders, lesson):
            write_feedback(config, lesson)
    finally:
        report = write_report(folders, lesson)
    return report


def has_pages(folders: Folders, lesson: str) -> bool:
    return any(folders.feedback.glob(f"*/{lesson}/{lesson}.html"))


def summary(graded: str, results: list[Result], report) -> list[str]:
    """The lines that the command prints. graded: the beginning of the first line. report: the lesson's ClassReport."""
    totals = [report.totals[result.student] for result in results if result.student in report.totals]
    if totals:
        graded += f" · mean {statistics.mean(totals):.1f} · median {statistics.median(totals):.4g}"
    lines = [graded]
    counts = Counter(
        label.rstrip(".")
        for result in results
        for exercise, (name, label) in result.mistakes.items()
        if name != "not_answered" and not exercise.startswith("quiz_")
    )
    if counts:
        lines.append("  commonest mistakes: " + " · ".join(f"{label} ({n})" for label, n in counts.most_common(4)))
    if report.written_waiting:
        answers = _answers(report.written_waiting, "written ")
        lines.append(f"  {answers} to grade by hand: course hand {report.lesson}")
    if report.code_waiting:
        lines.append("  " + _listed("to read and grade in Formgrader (Manual Grading)", report.code_waiting))
    if report.changed:
        lines.append("  " + _listed("changed since you graded them", report.changed))
    problems = [result for result in results if result.problem]
    if problems:
        lines.append(f"  {len(problems)} could not be graded and {'needs' if len(problems) == 1 else 'need'} a person:")
        lines += [f"    {result.student}: {result.problem}" for result in problems[:SHOWN_FLAGS]]
    flagged = [result for result in results if result.flags]
    if flagged:
        texts = [f"{result.student} ({_short(result.flags)})" for result in flagged]
        lines.append(f"  {len(flagged)} to look at: {_first(texts)}")
    if any(result.unsafe for result in results):
        lines.append("  graded without a sandbox (--unsafe)")
    return lines


def _answers(count: int, kind: str = "") -> str:
    return f"{count} {kind}{'answer' if count == 1 else 'answers'}"


def _listed(what: str, answers: dict[str, list[str]]) -> str:
    students = [f"{student} ({', '.join(names)})" for student, names in answers.items()]
    return f"{_answers(sum(map(len, answers.values())))} {what}: {_first(students)}"


def _first(texts: list[str]) -> str:
    return " · ".join([*texts[:SHOWN_FLAGS], *["…"] * (len(texts) > SHOWN_FLAGS)])


def _short(flags: list[str]) -> str:
    rest = f" and {len(flags) - 1} more" if len(flags) > 1 else ""
    return (flags[0] if len(flags[0]) <= 60 else flags[0][:57] + "...") + rest


class ProgressBar(contextlib.AbstractContextManager):
    """Shows progress as a bar in a terminal, and as a few plain lines elsewhere. Use it as a context manager."""

    def __init__(self, lesson: str):
        self.lesson, self.bar, self.total, self.done = lesson, None, 0, 0

    def __exit__(self, *exc) -> None:
        if self.bar is not None:
            self.bar.stop()

    def start(self, new: int, unchanged: int) -> None:
        total = new + unchanged
        print(f"{self.lesson}: {total} {_plural(total)}, {new} new, {unchanged} unchanged", flush=True)
        self.total = new
        if not new or not sys.stdout.isatty():
            return
        from rich import progress as rich

        self.bar = rich.Progress(*rich.Progress.get_default_columns(), rich.MofNCompleteColumn(), transient=True)
        self.task = self.bar.add_task("grading", total=new)
        self.bar.start()

    def step(self, student: str) -> None:
        self.done += 1
        if self.bar is not None:
            self.bar.advance(self.task)
        elif self.done == self.total or self.done % 25 == 0:
            print(f"graded {self.done} of {self.total}", flush=True)

    def slow(self, count: int) -> None:
        take = "takes long, as it trains a model or waits" if count == 1 else "take long, as they train a model or wait"
        line = f"{count} {_plural(count)} {take}; each is recorded when it is judged"
        (self.bar.console.print if self.bar is not None else print)(line)


def _plural(total: int) -> str:
    return "submission" if total == 1 else "submissions"
