"""Portions go out to workers, and what comes back goes to the one writer, as if it had been judged here.

A worker that is lost has its portion judged again, by another one; a portion that two were lost with is handed to no
third. What a worker that fails its own test has judged is thrown away, and it gets nothing more. What takes long waits
until all others were given out.
"""

import contextlib
import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import dask
from distributed import Client, Future, LocalCluster

from helpers.course import course
from helpers.grading.cluster import worker as far
from helpers.grading.cluster.parcels import (
    LARGEST_HAND_IN,
    LARGEST_REPLY,
    LARGEST_REQUEST,
    REPLY,
    pack,
    parcel_of,
    unpack,
    unsealed,
)
from helpers.grading.course_version import version_of
from helpers.grading.pool import WORTH_A_JUDGE, Batch, GradingStopped, judge_message, report_of_answer
from helpers.grading.reports import SubmissionReport
from helpers.grading.safe_text import one_line
from helpers.grading.submission import Release, Submission

LOCAL = "local:"
PORTION = 64  # submissions at most that travel together: what came back is recorded while others judge on
FEW = 4  # of those that take long
TICK, LOOK = 0.1, 0.5  # seconds between two looks at what came back, and at who is there
WAIT = 60.0  # seconds without a worker that may judge, after which nothing more is expected
FETCH = 120.0  # seconds that a reply may take from a worker to here
LOST_WITH = 2  # workers, after which a portion is handed to no other

Judged = dict[str, SubmissionReport | None]


@dataclass
class Portion:
    """Submissions that travel together. lost: workers lost with it. hurried: what takes long is not judged."""

    submissions: list[Submission] = field(default_factory=list)
    parcels: list[dict] = field(default_factory=list)
    lost: int = 0
    hurried: bool = True


@dataclass
class Worker:
    """One of dask's workers. token: of its process, once it may judge. asked: what it has not answered yet. why: it
    gets no work."""

    address: str
    asked: Future | None = None
    portion: Portion | None = None
    token: str = ""
    why: str = ""


class Cluster:
    """The workers of a scheduler, in place of a Pool. Use as a context manager.

    where: the scheduler's address, or local:N for N workers in this process. Raises GradingStopped.
    """

    def __init__(self, batch: Batch, where: str):
        if batch.unsafe:
            raise GradingStopped(
                "Workers judge in a sandbox only: --unsafe is for a class that is graded without them."
            )
        self.where, self.stack = where, contextlib.ExitStack()
        self.version = version_of(course().lesson(batch.lesson).name)
        self.batch = {"lesson": batch.lesson, "seed": batch.seed, "cell_seconds": batch.cell_seconds}
        self.scheduler = ""
        self.workers: dict[str, Worker] = {}
        self.looked = 0.0
        self.waiting: deque[Portion] = deque()
        self.slow: deque[tuple[Submission, dict]] = deque()  # with their parcels
        self.finished: deque[tuple[list[Submission], Judged]] = deque()

    def __enter__(self) -> "Cluster":
        for name in ("distributed", "distributed.client"):  # this module reports what goes wrong, in a sentence
            logging.getLogger(name).setLevel(logging.CRITICAL)
        # A portion is data, however large, and no graph that should have been scattered.
        silent = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
        settings = {"distributed.admin.large-graph-warning-threshold": 2 * LARGEST_REQUEST, **silent}
        self.stack.enter_context(dask.config.set(settings))
        try:
            place = self.where
            if self.where.startswith(LOCAL):
                place = self.stack.enter_context(
                    LocalCluster(
                        n_workers=int(self.where.removeprefix(LOCAL)),
                        threads_per_worker=1,
                        processes=False,  # and so no port that others of this machine could reach
                        protocol="inproc://",
                        dashboard_address="127.0.0.1:0",
                        worker_dashboard_address="127.0.0.1:0",
                    )
                )
            self.client = self.stack.enter_context(Client(place, name="course-grade"))
        except (OSError, ValueError, RuntimeError, TypeError) as error:  # TypeError: TLS without a key
            self.stack.close()
            reason = one_line(str(error), 120)
            raise GradingStopped(f"{one_line(self.where)} cannot be reached ({reason}). Nothing was graded.") from None
        return self

    def __exit__(self, *exc) -> None:
        with contextlib.suppress(Exception):  # a worker that misses this ends its judge with the next batch, or itself
            idle = [worker for worker in self.workers.values() if worker.token and worker.asked is None]
            for farewells in [self._ask(worker, far.let_go, b"") for worker in idle]:
                farewells.result(timeout=15)
        self.stack.close()

    def portions(
        self, submissions: Iterator[Submission], total: int, release: Release, on_judged: Callable[[str], None]
    ) -> Iterator[tuple[list[Submission], Judged]]:
        """(portion, what was judged of it), as it comes back. submissions: `total` of them, read as they are needed.

        Raises GradingStopped where nobody judges any more.
        """
        busy_until = time.monotonic()
        while total:
            self._look()
            for worker in list(self.workers.values()):
                if worker.asked is not None and worker.asked.done():
                    self._hear(worker)
                if worker.token and worker.asked is None:
                    self._give(worker, submissions, total, release)
            while self.finished:
                portion, judged = self.finished.popleft()
                for student in judged:
                    on_judged(student)
                total -= len(portion)
                yield portion, judged
            if any(worker.asked for worker in self.workers.values()):
                busy_until = time.monotonic()
            elif total and time.monotonic() - busy_until > WAIT:
                whys = [f"{worker.address}: {worker.why}" for worker in self.workers.values() if worker.why]
                raise GradingStopped(
                    f"Stopped: no worker of {one_line(self.where)} took work for {WAIT:.0f} s. "
                    + "\n".join(["What was recorded so far stays; grade again when there are workers.", *whys])
                )
            time.sleep(TICK)

    def _look(self) -> None:
        """Greet who is new. What was with somebody who is gone waits again, as does all where the scheduler is new."""
        if self.client.status == "closed":
            raise GradingStopped(
                f"Stopped: the scheduler at {one_line(self.where)} is gone. What was recorded so far stays; grade "
                "again when it is back."
            )
        if time.monotonic() - self.looked < LOOK:
            return
        try:
            seen = self.client.sync(self.client.scheduler.identity, n_workers=-1, callback_timeout=10)
        except (OSError, TimeoutError):  # it is being started again, and dask's client looks for it
            return
        self.looked = time.monotonic()
        if seen["id"] != self.scheduler:
            self.waiting.extendleft(worker.portion for worker in self.workers.values() if worker.portion)
            self.workers, self.scheduler = {}, seen["id"]
        for address in set(self.workers) - set(seen["workers"]):
            worker = self.workers.pop(address)
            self._tell(worker, "was lost")
            self._lose(worker)
        for address in set(seen["workers"]) - set(self.workers):
            worker = self.workers[address] = Worker(address)
            greeting = {"lesson": self.batch["lesson"], "version": self.version}
            worker.asked = self._ask(worker, far.greet, pack(greeting))

    def _ask(self, worker: Worker, function: Callable[[bytes], bytes], data: bytes) -> Future:
        """Let this worker, and no other one, run a function of the course on bytes."""
        return self.client.submit(function, data, workers=[worker.address], allow_other_workers=False, pure=False)

    def _give(self, worker: Worker, submissions: Iterator[Submission], total: int, release: Release) -> None:
        portion = self.waiting.popleft() if self.waiting else self._next(submissions, total, release)
        if portion.submissions:
            request = {"token": worker.token, "version": self.version, "batch": self.batch, "hurried": portion.hurried}
            request["submissions"] = portion.parcels
            worker.portion, worker.asked = portion, self._ask(worker, far.judge, pack(request))

    def _next(self, submissions: Iterator[Submission], total: int, release: Release) -> Portion:
        """The next submissions, as many as fit a request, then those that take long; none where all are given out.
        What cannot be read is done."""
        able = sum(bool(worker.token) for worker in self.workers.values())
        size = max(WORTH_A_JUDGE, min(PORTION, -(-total // able)))
        portion, room = Portion(), LARGEST_REQUEST - LARGEST_HAND_IN
        while len(portion.submissions) < size and room > 0:
            submission = next(submissions, None)
            if submission is None:
                break
            if submission.problem:
                self.finished.append(([submission], {submission.student: None}))
                continue
            portion.submissions.append(submission)
            portion.parcels.append(parcel_of(*judge_message(submission, release)))
            room -= len(pack(portion.parcels[-1]))
        if not portion.submissions and self.slow:
            few = [self.slow.popleft() for _ in range(min(FEW, -(-len(self.slow) // able)))]
            return Portion([submission_of for submission_of, _ in few], [parcel for _, parcel in few], hurried=False)
        return portion

    def _hear(self, worker: Worker) -> None:
        """Take what a worker answered, to a greeting or a portion."""
        reply, portion = self._reply(worker), worker.portion
        worker.asked = None
        if reply is None:  # the worker is not to blame: it is greeted anew, if it is there
            del self.workers[worker.address]
            worker.token = ""
            self.waiting.extendleft([portion] if portion else [])
        elif "ready" in reply and portion is None:
            worker.token = reply["ready"]
        elif "judged" in reply and portion is not None:
            worker.portion = None
            self._finish(portion, [unsealed(parcel) for parcel in reply["judged"]])
        else:
            worker.why = one_line(reply.get("refused") or reply.get("failed") or "it answered something else")
            worker.token = ""
            self._tell(worker, f"takes no work: {worker.why}")
            if "refused" in reply:
                self.waiting.extendleft([portion] if portion else [])
                worker.portion = None
            else:
                self._lose(worker)

    def _reply(self, worker: Worker) -> dict | None:
        """What came back; None where dask forgot that it was asked, as the scheduler was gone."""
        future = worker.asked
        try:
            if future.status == "error":
                return {"failed": f"{type(future.exception()).__name__}: {future.exception()}"}
            if future.status != "finished":
                return None
            return unpack(future.result(timeout=FETCH), REPLY, LARGEST_REPLY)
        except Exception as error:  # whatever it is, it is no reply
            return {"failed": f"{type(error).__name__}: {error}"}
        finally:
            future.release()

    def _lose(self, worker: Worker) -> None:
        """Whatever this worker has judged of its portion counts no more."""
        portion, worker.portion = worker.portion, None
        if portion is None:
            return
        portion.lost += 1
        if portion.lost < LOST_WITH:
            self.waiting.append(portion)
        else:
            reason = f"{LOST_WITH} workers were lost while they judged the {len(portion.submissions)} of its portion"
            self._finish(portion, [("died", reason)] * len(portion.submissions))

    def _finish(self, portion: Portion, answers: list[tuple[str, SubmissionReport | str]]) -> None:
        """Of a portion the answers that came; what there was no room for is sent again."""
        count = len(answers)
        remainder = replace(portion, submissions=portion.submissions[count:], parcels=portion.parcels[count:])
        self.waiting.extendleft([remainder] if remainder.submissions else [])
        finished, judged = [], {}
        for submission, parcel, (kind, answer) in zip(portion.submissions, portion.parcels, answers, strict=False):
            if kind == "slow" and portion.hurried:
                self.slow.append((submission, parcel))
                continue
            finished.append(submission)
            judged[submission.student] = report_of_answer(submission, kind, answer)
        self.finished.append((finished, judged))

    def _tell(self, worker: Worker, event: str) -> None:
        print(f"  worker {worker.address} {event}", file=sys.stderr, flush=True)
