"""Grade many submissions of one lesson with parallel judges and one writer, and record nothing from a broken grader.

Submissions are judged in portions. Each judge runs a self-test before the first and after every portion, and only then
is the portion recorded, while the next one is being judged. Slow submissions wait until all others are judged. The
batch's seed is stored, so that grading draws the same inputs again after it was interrupted, and in a regrade.
"""

import contextlib
import hashlib
import json
import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain

from helpers.grading.folders import ROOT, Folders, shown, write_atomically
from helpers.grading.intake import find_misplaced, find_submissions, name_problem, read_submission
from helpers.grading.lesson_release import course_release
from helpers.grading.pool import WORTH_A_JUDGE, Batch, GradingStopped, Judged, Pool, default_jobs
from helpers.grading.record import Recorder, Result, read_result, unrecorded
from helpers.grading.safe_text import one_line
from helpers.grading.submission import Release, Submission
from helpers.grading.warm_pool import warm_pool
from helpers.released import released_notebook

FREE_BYTES = 2 << 20  # required on the gradebook's disk


@dataclass(frozen=True)
class GradingOptions:
    """How to grade a class.

    jobs: number of parallel judges, by default that of default_jobs. force: also grade unchanged submissions again.
    unsafe: grade without a sandbox. cell_seconds: time limit for one cell, by default the sandbox's. scheduler: address
    of a dask scheduler whose workers judge (helpers/grading/cluster), by default none.
    keep_judges: keep local judges ready for the next batch (helpers/grading/warm_pool.py).
    """

    jobs: int | None = None
    force: bool = False
    unsafe: bool = False
    cell_seconds: float | None = None
    scheduler: str | None = None
    keep_judges: bool = False


class LoggedProgress:
    """Logs the progress of grading: the number of submissions, then each one that was judged."""

    def __init__(self, log: logging.Logger):
        self.log = log

    def start(self, new: int, unchanged: int) -> None:
        self.log.info("Grading %d submissions; %d are unchanged", new, unchanged)

    def step(self, student: str) -> None:
        self.log.info("Judged the submission of %s", student)

    def slow(self, count: int) -> None:
        self.log.info("%d submissions take long; each is recorded when it is judged", count)


@dataclass
class Outcome:
    """The outcome of a batch: numbers of submissions, and the results of all that were requested, old ones included."""

    new: int = 0
    unchanged: int = 0
    results: list[Result] = field(default_factory=list)


def grade_lesson(
    folders: Folders,
    lesson: str,
    students: Iterable[str] | None = None,
    options: GradingOptions | None = None,
    config=None,
    progress: LoggedProgress | None = None,
) -> Outcome:
    """Grade all submissions of `lesson`, or only those of `students`. config: nbgrader's configuration.

    Raises CourseError, mostly GradingStopped, if the lesson is unknown, a submission is missing or the grader is
    broken; then nothing more is recorded.
    """
    options, progress = options or GradingOptions(), progress or LoggedProgress(logging.getLogger("course"))
    release = course_release(folders.executed(folders.lesson(lesson)))
    if not release.checks:
        raise GradingStopped(f"Lesson {lesson} has no exercises to grade.")
    names = _find_students(folders, lesson, students)
    problems = {name: problem for name in names if (problem := name_problem(name))}
    names = [name for name in names if name not in problems]
    if students is None:
        problems |= find_misplaced(folders.submitted, lesson)
    not_recorded = {name: unrecorded(name, problem) for name, problem in problems.items()}

    def read(student: str) -> Submission:
        return read_submission(folders.submitted, student, release, folders.source)

    version = lesson_fingerprint(folders, lesson)
    with writer_lock(folders, lesson), Recorder(folders, release, version, options.unsafe, config) as recorder:
        fresh = [
            name
            for name in names
            if options.force or not folders.result(lesson, name).is_file() or not recorder.finished(read(name))
        ]
        outcome = Outcome(unchanged=len(names) - len(fresh))
        progress.start(len(fresh), outcome.unchanged)
        with contextlib.closing(_judge_class(folders, release, fresh, read, options, progress)) as portions:
            for submission, report in chain.from_iterable(portions):
                result = recorder.record(submission, report)
                outcome.new += 1
                if not result.sha:
                    not_recorded[submission.student] = result
    results = (read_result(folders, lesson, name) for name in names if name not in not_recorded)
    outcome.results = [result for result in results if result is not None] + list(not_recorded.values())
    return outcome


def _judge_class(
    folders: Folders,
    release: Release,
    students: list[str],
    read: Callable[[str], Submission],
    options: GradingOptions,
    progress: LoggedProgress,
) -> Iterator[list[Judged]]:
    """Yield portions of submissions with their reports, each one judged between two self-tests."""
    if not students:
        return
    if not options.unsafe and not options.scheduler:
        _require_bubblewrap()
    lesson = release.lesson
    seed = batch_seed(folders, lesson)
    batch = Batch(lesson, seed, options.unsafe, options.cell_seconds, folders.drawn(lesson))
    jobs = max(1, min(options.jobs or default_jobs(), -(-len(students) // WORTH_A_JUDGE)))
    if options.scheduler:
        from helpers.grading.cluster.client import Cluster

        with Cluster(batch, options.scheduler) as cluster:
            yield from cluster.portions(map(read, students), len(students), release, progress.step)
        return
    pools = warm_pool(Pool, batch, jobs) if options.keep_judges else Pool(batch, jobs)
    with ThreadPoolExecutor(1) as thread, pools as pool:
        portions = pool.portions(map(read, students), len(students), release, progress)
        next_portion = thread.submit(next, portions, None)
        while (portion := next_portion.result()) is not None:
            next_portion = thread.submit(next, portions, None)  # This is judged while the caller records `portion`.
            yield portion


@contextlib.contextmanager
def writer_lock(folders: Folders, lesson: str) -> Iterator[None]:
    """Hold the lock for writing one lesson into one gradebook. The lock ends with this process at the latest.

    Raises GradingStopped if another process holds it, or if nothing can be written because the disk is full, say.
    """
    from filelock import FileLock, Timeout

    path = folders.batch(lesson).with_suffix(".lock")
    with contextlib.ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(path, timeout=0))
            with tempfile.TemporaryFile(dir=path.parent) as file:
                file.write(bytes(FREE_BYTES))
                file.flush()
                os.fsync(file.fileno())
        except Timeout:
            raise GradingStopped(
                f"{lesson} is being graded in this gradebook already, by another process. Grade again when it is done."
            ) from None
        except OSError as error:
            folder, reason = shown(folders.gradebook), error.strerror or error
            raise GradingStopped(f"Nothing can be written to {folder} ({reason}), so nothing was graded.") from None
        yield


def _require_bubblewrap() -> None:
    """Raise SandboxMissing if bubblewrap is not installed. Looking for it first usually avoids the slower import."""
    if not shutil.which("bwrap"):
        from helpers.grading.sandbox_files import find_bubblewrap

        find_bubblewrap()


def _find_students(folders: Folders, lesson: str, students: Iterable[str] | None) -> list[str]:
    names = find_submissions(folders.submitted, lesson)
    path = shown(folders.submitted / "STUDENT" / lesson / f"{lesson}.ipynb")
    if not names:
        raise GradingStopped(f"Nobody has handed in {lesson}. Submissions are expected as {path}.")
    if students is None:
        return names
    chosen = list(dict.fromkeys(students))
    if missing := [one_line(student) for student in chosen if student not in names]:
        raise GradingStopped(f"No submission of {lesson} by {', '.join(missing)}. It is expected as {path}.")
    return chosen


def lesson_fingerprint(folders: Folders, lesson: str) -> str:
    """A hash of the lesson. Submissions that were graded with another one are outdated and are graded again."""
    digest = hashlib.sha256(json.dumps(released_notebook(folders.executed(lesson))).encode())
    key = ROOT / "helpers" / "answer_keys" / f"{lesson}.npz"
    digest.update(key.read_bytes() if key.is_file() else b"")
    return digest.hexdigest()[:16]


def batch_seed(folders: Folders, lesson: str) -> int:
    """The seed of this lesson's inputs for this class, which is drawn once and stored in gradebook/batches."""
    path = folders.batch(lesson)
    try:
        return int(json.loads(path.read_text(encoding="utf-8"))["seed"])
    except FileNotFoundError:
        seed = secrets.randbelow(2**31)
        write_atomically(path, json.dumps({"lesson": lesson, "seed": seed}) + "\n")
        return seed
    except (OSError, ValueError, KeyError, TypeError):
        raise GradingStopped(
            f"{path} cannot be read, so the inputs of this batch are lost. Remove it to draw new ones, then grade with "
            "--force."
        ) from None
