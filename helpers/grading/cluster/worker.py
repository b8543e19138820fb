"""What a worker of dask runs: a warm judge, which tests itself before and after each portion.

The judge is a process of its own that ends with the worker's; learner code runs in its sandbox and nowhere else.
"""

import contextlib
import os
import secrets
import tempfile
import threading
from pathlib import Path

from distributed import get_worker

from helpers.course import course
from helpers.errors import CourseError
from helpers.grading.bubblewrap import find_bubblewrap
from helpers.grading.cluster.parcels import (
    GREETING,
    LARGEST_REPLY,
    LARGEST_REQUEST,
    REQUEST,
    opened,
    pack,
    sealed,
    unpack,
)
from helpers.grading.course_version import version_of
from helpers.grading.pool import Batch, Pool
from helpers.grading.safe_text import one_line

TOKEN = secrets.token_hex(8)  # of this process: a portion is for the one that was greeted and for none after it
_judges: dict[str, tuple[Batch, Pool]] = {}  # by the worker: those of a local cluster share a process
_turn = threading.Lock()


def greet(data: bytes) -> bytes:
    try:
        greeting = unpack(data, GREETING, LARGEST_REQUEST)
        reason = why_not(greeting["lesson"], greeting["version"])
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}", 200)
    return pack({"refused": reason} if reason else {"ready": TOKEN})


def why_not(lesson: str, version: str) -> str:
    """Why no submission of this lesson may be judged here; empty where it may."""
    try:
        if not hasattr(os, "fork"):
            return "judging answers needs Linux"
        find_bubblewrap()
        if version_of(course().lesson(lesson).name) != version:
            return f"it has another version of {lesson}, of Python or of torch than this machine; bring it up to date"
    except CourseError as error:
        return str(error)
    return ""


def judge(data: bytes) -> bytes:
    """Judge a portion. Fewer answers than submissions: the others did not fit into a reply and must be sent again."""
    try:
        return pack(_judge(unpack(data, REQUEST, LARGEST_REQUEST)))
    except Exception as error:
        let_go(b"")
        return pack({"failed": one_line(f"{type(error).__name__}: {error}", 200)})


def _judge(request: dict) -> dict:
    if request["token"] != TOKEN:
        return {"failed": "it was started anew"}
    if reason := why_not(request["batch"]["lesson"], request["version"]):
        return {"refused": reason}
    submissions = [opened(parcel) for parcel in request["submissions"]]
    try:
        pool = _warm(Batch(**request["batch"], lock_folder=_lock_folder()))
        pool.self_test("before a portion")
    except CourseError as error:
        let_go(b"")
        return {"refused": str(error)}
    answers: list[dict] = []
    room = LARGEST_REPLY - 1000
    for hand_in in submissions:
        [(_, kind, answer)] = pool.answers([hand_in], lambda item: (*item, request["hurried"], False))
        if kind in ("broken", "refused"):
            let_go(b"")
            return {"failed": one_line(str(answer), 200)}
        parcel = sealed(kind, answer)
        room -= len(pack(parcel)) + 1
        if room < 0 and answers:
            break
        answers.append(parcel if room >= 0 else sealed("odd", "what it shows is too large to be sent"))
    try:
        pool.self_test("after a portion")
    except CourseError as error:
        let_go(b"")
        return {"failed": str(error)}
    return {"judged": answers}


def _warm(batch: Batch) -> Pool:
    """The judge of this batch, with everything imported and drawn since the portion before."""
    worker = get_worker().id
    with _turn:
        entry = _judges.get(worker)
    if entry is None or entry[0] != batch:
        let_go(b"")
        entry = batch, Pool(batch, 1).__enter__()
        with _turn:
            _judges[worker] = entry
    return entry[1]


def let_go(data: bytes) -> bytes:
    """End the judge of this worker."""
    with _turn:
        entry = _judges.pop(get_worker().id, None)
    if entry is not None:
        entry[1].__exit__()
    return b""


def _lock_folder() -> str | None:
    """A folder that all workers on this machine know, so that they take turns (helpers/grading/judge_lock.py)."""
    place = Path(tempfile.gettempdir()) / f"course-workers-{os.getuid()}"
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700, exist_ok=True)
        if not place.is_symlink() and place.stat().st_uid == os.getuid():
            return str(place)
    return None
