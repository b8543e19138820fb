"""What a worker of dask runs: a warm judge, which tests itself before and after each portion.

The judge is a process of its own that ends with the worker's; learner code runs in its sandbox and nowhere else.
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

_judges: dict[str, tuple[Batch, Pool]] = {}  # by the worker: those of a local cluster share a process
_turn = threading.Lock()


@dataclass(frozen=True)
class Request:
    """A portion. hurried: what takes long is not judged."""

    version: str
    batch: Batch
    hurried: bool
    submissions: list[tuple[list[Cell], dict[str, bytes]]]


def why_not(lesson: str, version: str) -> str:
    """Why no submission of this lesson may be judged here; empty where it may."""
    try:
        find_bubblewrap()
        if version_of(course().lesson(lesson).name) != version:
            return f"it has another version of {lesson}, of Python or of torch than this machine; bring it up to date"
    except CourseError as error:
        return str(error)
    return ""


def judge(request: Request) -> tuple[str, Any]:
    """("judged", (kind, answer) of each submission); ("refused", why), if nothing was done; ("failed", why), if what
    was judged is not to be believed."""
    if reason := why_not(request.batch.lesson, request.version):
        return "refused", reason
    try:
        pool = _warm(request.batch)
        pool.self_test("before a portion")
    except CourseError as error:
        let_go()
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
        let_go()
        return "failed", one_line(str(error) or type(error).__name__, 200)
    return "judged", [judged[number] for number in numbers]


def _warm(batch: Batch) -> Pool:
    """The judge of this batch, with everything imported and drawn since the portion before."""
    worker = get_worker().id
    with _turn:
        entry = _judges.get(worker)
    if entry is None or entry[0] != batch:
        let_go()
        entry = batch, Pool(batch, 1).__enter__()
        with _turn:
            _judges[worker] = entry
    return entry[1]


def let_go() -> None:
    """End the judge of this worker."""
    with _turn:
        entry = _judges.pop(get_worker().id, None)
    if entry is not None:
        entry[1].__exit__()
