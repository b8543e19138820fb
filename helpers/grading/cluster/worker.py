"""The functions that a dask worker runs. Its judge is kept, and tests itself before and after each portion.

The judge has its own process, which ends with the worker's. Learner code runs only in the judge's sandbox.
"""

import threading
from dataclasses import dataclass
from typing import Any

from distributed import get_worker

from helpers.course import course
from helpers.errors import CourseError
from helpers.grading.course_version import version_of
from helpers.grading.pool import Batch, Pool
from helpers.grading.safe_text import one_line
from helpers.grading.sandbox_files import find_bubblewrap
from helpers.grading.submission import Cell

_judges: dict[str, tuple[Batch, Pool]] = {}  # by worker id, because the workers of a local cluster share a process
_lock = threading.Lock()


@dataclass(frozen=True)
class Request:
    """A portion to judge. version: of the course. hurried: do not judge slow submissions."""

    version: str
    batch: Batch
    hurried: bool
    submissions: list[tuple[list[Cell], dict[str, bytes]]]


def why_not(lesson: str, version: str) -> str:
    """Why submissions of this lesson cannot be judged here; empty if they can."""
    try:
        find_bubblewrap()
        if version_of(course().lesson(lesson).name) != version:
            return f"it has another version of {lesson}, of Python or of torch than this machine; bring it up to date"
    except CourseError as error:
        return str(error)
    return ""


def judge(request: Request) -> tuple[str, Any]:
    """("judged", list of (kind, answer), one per submission); ("refused", reason) if nothing was judged; ("failed",
    reason) if the results cannot be trusted."""
    if reason := why_not(request.batch.lesson, request.version):
        return "refused", reason
    try:
        pool = _warm(request.batch)
        pool.self_test("before a portion")
    except CourseError as error:
        end_judge()
        return "refused", str(error)
    judged = {}
    try:
        numbers = range(len(request.submissions))
        for number, kind, answer in pool.answers(numbers, lambda n: (*request.submissions[n], request.hurried, False)):
            if kind in ("broken", "refused"):
                raise CourseError(str(answer))
            judged[number] = kind, answer
        pool.self_test("after a portion")
    except Exception as error:
        end_judge()
        return "failed", one_line(str(error) or type(error).__name__, 200)
    return "judged", [judged[number] for number in numbers]


def _warm(batch: Batch) -> Pool:
    """The worker's judge, which is started only if the worker has none for this batch yet."""
    worker = get_worker().id
    with _lock:
        entry = _judges.get(worker)
    if entry is None or entry[0] != batch:
        end_judge()
        entry = batch, Pool(batch, 1).__enter__()
        with _lock:
            _judges[worker] = entry
    return entry[1]


def end_judge() -> None:
    """End this worker's judge, if it has one."""
    with _lock:
        entry = _judges.pop(get_worker().id, None)
    if entry is not None:
        entry[1].__exit__()
