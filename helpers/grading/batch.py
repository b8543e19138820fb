"""Grade many submissions of one lesson: judges side by side, one writer, nothing recorded by a broken grader.

Submissions are judged in portions. Before the first and after each portion every judge tests itself; only then the
portion is recorded, while the next one is being judged. What takes long waits until all others are judged. The
batch's seed is kept, so a grader that was killed, or a regrade, draws the same inputs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

from helpers.grading.folders import ROOT, Folders, shown
from helpers.grading.intake import find_misplaced, find_submissions, name_problem, read_submission
from helpers.grading.lesson_release import course_release
from helpers.grading.pool import FEW, PORTION, WORTH_A_JUDGE, Batch, GradingStopped, Pool
from helpers.grading.record import Recorder, Result, read_result, unrecorded, write_atomically
from helpers.grading.reports import SubmissionReport
from helpers.grading.safe_text import one_line
from helpers.grading.submission import Release, Submission
from helpers.grading.warm_pool import warm_pool
from helpers.released import released_notebook

ROOM = 2 << 20  # bytes that must be free on the disk of the gradebook


@dataclass
class Outcome:
    """What became of a batch. results: of every submission that was asked for, graded now or earlier."""

    lesson: str
    new: int = 0
    unchanged: int = 0
    results: list[Result] = field(default_factory=list)


def default_jobs() -> int:
    """One judge for each core this process may use, at most two: memory, not time, runs out first."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(2, cores))


def grade_lesson(
    folders: Folders,
    lesson: str,
    students: Iterable[str] | None = None,
    jobs: int | None = None,
    force: bool = False,
    unsafe: bool = False,
    cell_seconds: float | None = None,
    config=None,
    scheduler: str | None = None,
    keep: bool = False,
    on_start: Callable[[int, int], None] = lambda new, unchanged: None,
    on_judged: Callable[[str], None] = lambda student: None,
) -> Outcome:
    """Grade the submissions of `lesson`, all or those of `students`.

    force: grade unchanged ones again too. cell_seconds: what one cell may take, else the sandbox's own limit.
    scheduler: whose workers judge (helpers/grading/cluster), else judges on this machine. keep: these stay
    ready for a while (helpers/grading/warm_pool.py).
    on_start(new, unchanged) and on_judged(student) report progress.
    Raises GradingStopped, with nothing more recorded, when the lesson or the class is unknown or the grader is broken.
    """
    release = _load_release(folders, lesson)
    names = _find_students(folders, lesson, students)
    outcome = Outcome(lesson)
    odd = {name: unrecorded(name, problem) for name in names if (problem := name_problem(name))}
    names = [name for name in names if name not in odd]
    if students is None:
        odd |= {name: unrecorded(name, problem) for name, problem in find_misplaced(folders.submitted, lesson).items()}
    mark = fingerprint(folders, lesson)
    with OneWriter(folders, lesson), Recorder(folders, release, mark, unsafe, config) as recorder:
        todo = []
        for student in names:
            graded_before = not force and folders.result(lesson, student).is_file()
            if graded_before and recorder.finished(
                read_submission(folders.submitted, student, release, folders.source)
            ):
                outcome.unchanged += 1
            else:
                todo.append(student)
        on_start(len(todo), outcome.unchanged)
        if todo:
            if not unsafe and not scheduler:
                _require_bubblewrap()
            batch = Batch(lesson, batch_seed(folders, lesson), unsafe, cell_seconds, folders.drawn(lesson))

            def read(student: str) -> Submission:
                return read_submission(folders.submitted, student, release, folders.source)

            judges = _judge_portions(batch, jobs, scheduler, keep, todo, read, release, on_judged)
            with contextlib.closing(judges) as judging:
                for portion, judged in judging:
                    for submission in portion:
                        result = recorder.record(submission, judged[submission.student])
                        outcome.new += 1
                        if not result.sha:
                            odd[submission.student] = result
    results = (read_result(folders, lesson, student) for student in names if student not in odd)
    outcome.results = [result for result in results if result is not None] + list(odd.values())
    return outcome


def _judge_portions(
    batch: Batch,
    jobs: int | None,
    scheduler: str | None,
    keep: bool,
    students: list[str],
    read: Callable[[str], Submission],
    release: Release,
    on_judged: Callable[[str], None],
) -> Iterator[tuple[list[Submission], dict[str, SubmissionReport | None]]]:
    """(portion, what was judged of it), each between two self tests of whoever judged it."""
    if scheduler:
        from helpers.grading.cluster.client import Cluster

        with Cluster(batch, scheduler) as cluster:
            yield from cluster.portions(map(read, students), len(students), release, on_judged)
        return
    jobs = max(1, min(jobs or default_jobs(), -(-len(students) // WORTH_A_JUDGE)))
    with ThreadPoolExecutor(1) as thread, warm_pool(Pool, batch, jobs) if keep else Pool(batch, jobs) as pool:

        def portions() -> Iterator[tuple[list[Submission], dict[str, SubmissionReport | None]]]:
            slow: list[str] = []
            pool.self_test("before the batch")
            for names, hurried in ((students, len(students) > 1), (slow, False)):
                submissions = map(read, names)
                while portion := list(islice(submissions, jobs * (PORTION if hurried else FEW))):
                    judged = pool.judge(portion, release, on_judged, hurried)
                    pool.self_test("after the batch")
                    slow.extend(one.student for one in portion if one.student not in judged)
                    yield [one for one in portion if one.student in judged], judged

        made = portions()
        coming = thread.submit(next, made, None)
        while (portion := coming.result()) is not None:
            coming = thread.submit(next, made, None)  # while this one is recorded
            yield portion


class OneWriter:
    """The right to write into one gradebook for one lesson; it ends with this process. Use as a context manager.

    Raises GradingStopped where another process has it, or where there is no room to write at all.
    """

    def __init__(self, folders: Folders, lesson: str):
        self.folders, self.lesson = folders, lesson
        self.path = folders.batch(lesson).with_suffix(".lock")
        self.lock = None

    def __enter__(self) -> OneWriter:
        from filelock import FileLock, Timeout

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.lock = FileLock(self.path, timeout=0)
            self.lock.acquire()
            self._try_room()
        except Timeout:
            raise GradingStopped(
                f"{self.lesson} is being graded in this gradebook already, by another process. Grade again when it is "
                "done."
            ) from None
        except OSError as error:
            self.__exit__()
            place, reason = shown(self.folders.gradebook), error.strerror or error
            raise GradingStopped(f"Nothing can be written to {place} ({reason}), so nothing was graded.") from None
        return self

    def __exit__(self, *exc) -> None:
        if self.lock is not None:
            self.lock.release()

    def _try_room(self) -> None:
        """Write as much as some submissions need, and take it away again. OSError."""
        with tempfile.TemporaryFile(dir=self.path.parent) as file:
            file.write(bytes(ROOM))
            file.flush()
            os.fsync(file.fileno())


def _require_bubblewrap() -> None:
    """Refuse at once, before a judge is started."""
    if shutil.which("bwrap"):
        return
    from helpers.grading.bubblewrap import SandboxMissing, find_bubblewrap

    try:
        find_bubblewrap()
    except SandboxMissing as missing:
        raise GradingStopped(str(missing)) from None


def _load_release(folders: Folders, lesson: str) -> Release:
    path = folders.executed(lesson)
    if not path.is_file():
        lessons = ", ".join(folders.lessons()) or "none is built yet; see `course build`"
        raise GradingStopped(f"There is no lesson {lesson!r}. Lessons: {lessons}.")
    release = course_release(path)
    if not release.checks:
        raise GradingStopped(f"Lesson {lesson} has no exercises to grade.")
    return release


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


def fingerprint(folders: Folders, lesson: str) -> str:
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
