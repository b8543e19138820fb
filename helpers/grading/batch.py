"""Grade many submissions of one lesson: judges side by side, one writer, nothing recorded by a broken grader.

Submissions are judged in portions. Before the first and after each portion every judge tests itself; only then the
portion is recorded, while the next one is being judged. What takes long waits until all others are judged. The
batch's seed is kept, so a grader that was killed, or a regrade, draws the same inputs.
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

ROOM = 2 << 20  # bytes that must be free on the disk of the gradebook


@dataclass(frozen=True)
class GradingOptions:
    """How a class is graded.

    jobs: judges side by side, else as many as default_jobs says. force: grade unchanged submissions again too.
    unsafe: without a sandbox where there is no bubblewrap. cell_seconds: what one cell may take, else the sandbox's own
    limit. scheduler: whose workers judge (helpers/grading/cluster), else judges on this machine. keep_judges: these
    stay ready for a while (helpers/grading/warm_pool.py).
    """

    jobs: int | None = None
    force: bool = False
    unsafe: bool = False
    cell_seconds: float | None = None
    scheduler: str | None = None
    keep_judges: bool = False


class LoggedProgress:
    """What grading reports while it works, in a log: the number of submissions, then each that was judged."""

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
    """What became of a batch. results: of every submission that was asked for, graded now or earlier."""

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
    """Grade the submissions of `lesson`, all or those of `students`. config: nbgrader's.

    Raises GradingStopped, with nothing more recorded, when the lesson or the class is unknown or the grader is broken.
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
    left_out = {name: unrecorded(name, problem) for name, problem in problems.items()}

    def read(student: str) -> Submission:
        return read_submission(folders.submitted, student, release, folders.source)

    version = lesson_fingerprint(folders, lesson)
    with one_writer(folders, lesson), Recorder(folders, release, version, options.unsafe, config) as recorder:
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
                    left_out[submission.student] = result
    results = (read_result(folders, lesson, name) for name in names if name not in left_out)
    outcome.results = [result for result in results if result is not None] + list(left_out.values())
    return outcome


def _judge_class(
    folders: Folders,
    release: Release,
    students: list[str],
    read: Callable[[str], Submission],
    options: GradingOptions,
    progress: LoggedProgress,
) -> Iterator[list[Judged]]:
    """Portions of submissions with their reports, each judged between two self tests."""
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
        coming = thread.submit(next, portions, None)
        while (portion := coming.result()) is not None:
            coming = thread.submit(next, portions, None)  # while this one is recorded
            yield portion


@contextlib.contextmanager
def one_writer(folders: Folders, lesson: str) -> Iterator[None]:
    """The right to write into one gradebook for one lesson; it ends with this process.

    Raises GradingStopped where another process has it, or where there is no room to write at all.
    """
    from filelock import FileLock, Timeout

    path = folders.batch(lesson).with_suffix(".lock")
    with contextlib.ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(path, timeout=0))
            with tempfile.TemporaryFile(dir=path.parent) as file:
                file.write(bytes(ROOM))
                file.flush()
                os.fsync(file.fileno())
        except Timeout:
            raise GradingStopped(
                f"{lesson} is being graded in this gradebook already, by another process. Grade again when it is done."
            ) from None
        except OSError as error:
            place, reason = shown(folders.gradebook), error.strerror or error
            raise GradingStopped(f"Nothing can be written to {place} ({reason}), so nothing was graded.") from None
        yield


def _require_bubblewrap() -> None:
    if not shutil.which("bwrap"):
        from helpers.grading.sandbox_files import find_bubblewrap

        find_bubblewrap()


def _find_students(folders: Folders, lesson: str, students: Iterable[str] | None) -> list[str]:
    names = find_submissions(folders.submitted, lesson)
    place = shown(folders.submitted / "STUDENT" / lesson / f"{lesson}.ipynb")
    if not names:
        raise GradingStopped(f"Nobody has handed in {lesson}. Submissions are expected as {place}.")
    if students is None:
        return names
    chosen = list(dict.fromkeys(students))
    if missing := [one_line(student) for student in chosen if student not in names]:
        raise GradingStopped(f"No submission of {lesson} by {', '.join(missing)}. It is expected as {place}.")
    return chosen


def lesson_fingerprint(folders: Folders, lesson: str) -> str:
    """Changes when the lesson changes: a submission graded against an older lesson is no longer finished."""
    digest = hashlib.sha256(json.dumps(released_notebook(folders.executed(lesson))).encode())
    key = ROOT / "helpers" / "answer_keys" / f"{lesson}.npz"
    digest.update(key.read_bytes() if key.is_file() else b"")
    return digest.hexdigest()[:16]


def batch_seed(folders: Folders, lesson: str) -> int:
    """The seed of this lesson's inputs for this class: drawn once, kept in gradebook/batches."""
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
