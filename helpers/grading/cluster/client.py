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
from typing import Any

import dask
from distributed import Client, Future, LocalCluster

from helpers.course import course
from helpers.grading.cluster import worker as far
from helpers.grading.course_version import version_of
from helpers.grading.pool import WORTH_A_JUDGE, Batch, GradingStopped, Judged, judge_message, report_of_answer
from helpers.grading.safe_text import one_line
from helpers.grading.submission import Cell, Release, Submission, SubmissionReport

LOCAL = "local:"
PORTION = 64  # submissions at most that travel together: what came back is recorded while others judge on
LARGEST = 64 << 20  # bytes of code and files, after which a portion takes no further submission
FEW = 4  # of those that take long
TICK, LOOK = 0.1, 0.5  # seconds between two looks at what came back, and at who is there
WAIT = 60.0  # seconds without a worker that may judge, after which nothing more is expected
FETCH = 120.0  # seconds that a reply may take from a worker to here
LOST_WITH = 2  # workers, after which a portion is handed to no other

Asked = tuple[list[Cell], dict[str, bytes]]  # what a judge is asked about a submission


@dataclass
class Portion:
    """Submissions that travel together. lost: workers lost with it. hurried: what takes long is not judged."""

    asked: list[tuple[Submission, Asked]] = field(default_factory=list)
    lost: int = 0
    hurried: bool = True


@dataclass
class Worker:
    """One of dask's workers. asked: what it has not answered yet. why: it gets no more work."""

    address: str
    asked: Future | None = None
    portion: Portion | None = None
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
        self.batch = replace(batch, key_cache=None)  # a file of this machine
        self.scheduler = ""
        self.workers: dict[str, Worker] = {}
        self.looked = 0.0
        self.waiting: deque[Portion] = deque()
        self.slow: deque[tuple[Submission, Asked]] = deque()
        self.finished: deque[list[Judged]] = deque()

    def __enter__(self) -> "Cluster":
        for name in ("distributed", "distributed.client"):  # this module reports what goes wrong, in a sentence
            logging.getLogger(name).setLevel(logging.CRITICAL)
        # A portion is data, however large, and no graph that should have been scattered.
        silent = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
        settings = {"distributed.admin.large-graph-warning-threshold": 2 * LARGEST, **silent}
        self.stack.enter_context(dask.config.set(settings))
        try:
            place = self.where
            if self.where.startswith(LOCAL):
                here = LocalCluster(
                    n_workers=int(self.where.removeprefix(LOCAL)),
                    threads_per_worker=1,
                    processes=False,  # and so no port that others of this machine could reach
                    protocol="inproc://",
                    dashboard_address="127.0.0.1:0",
                    worker_dashboard_address="127.0.0.1:0",
                )
                place = self.stack.enter_context(here)
            self.client = self.stack.enter_context(Client(place, name="course-grade"))
        except (OSError, ValueError, RuntimeError, TypeError) as error:  # TypeError: TLS without a key
            self.stack.close()
            reason = one_line(str(error), 120)
            raise GradingStopped(f"{one_line(self.where)} cannot be reached ({reason}). Nothing was graded.") from None
        return self

    def __exit__(self, *exc) -> None:
        with contextlib.suppress(Exception):  # a worker that misses this ends its judge with the next batch, or itself
            idle = [worker for worker in self.workers.values() if worker.asked is None]
            for farewells in [self._ask(worker, far.let_go) for worker in idle]:
                farewells.result(timeout=15)
        self.stack.close()

    def portions(
        self, submissions: Iterator[Submission], total: int, release: Release, on_judged: Callable[[str], None]
    ) -> Iterator[list[Judged]]:
        """Portions with their reports, as they come back. submissions: `total` of them, read as they are needed.

        Raises GradingStopped where nobody judges any more.
        """
        busy_until = time.monotonic()
        while total:
            self._look()
            for worker in list(self.workers.values()):
                if worker.asked is not None and worker.asked.done():
                    self._hear(worker)
                if worker.asked is None and not worker.why:
                    self._give(worker, submissions, total, release)
            while self.finished:
                judged = self.finished.popleft()
                for submission, _ in judged:
                    on_judged(submission.student)
                total -= len(judged)
                yield judged
            if any(worker.asked for worker in self.workers.values()):
                busy_until = time.monotonic()
            elif total and time.monotonic() - busy_until > WAIT:
                told = f"Stopped: no worker of {one_line(self.where)} took work for {WAIT:.0f} s. "
                told += "What was recorded so far stays; grade again when there are workers."
                whys = [f"{worker.address}: {worker.why}" for worker in self.workers.values() if worker.why]
                raise GradingStopped("\n".join([told, *whys]))
            time.sleep(TICK)

    def _look(self) -> None:
        """See who is there. What was with somebody who is gone waits again, as does all where the scheduler is new."""
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
            self._lose(worker.portion)
        for address in set(seen["workers"]) - set(self.workers):
            self.workers[address] = Worker(address)

    def _ask(self, worker: Worker, function: Callable, *arguments) -> Future:
        """Let this worker, and no other one, run a function of the course."""
        return self.client.submit(function, *arguments, workers=[worker.address], allow_other_workers=False, pure=False)

    def _give(self, worker: Worker, submissions: Iterator[Submission], total: int, release: Release) -> None:
        portion = self.waiting.popleft() if self.waiting else self._next(submissions, total, release)
        if portion.asked:
            request = far.Request(self.version, self.batch, portion.hurried, [asked for _, asked in portion.asked])
            worker.portion, worker.asked = portion, self._ask(worker, far.judge, request)

    def _next(self, submissions: Iterator[Submission], total: int, release: Release) -> Portion:
        """The next submissions, as many as fit a request, then those that take long; none where all are given out.
        What cannot be read is done."""
        able = sum(not worker.why for worker in self.workers.values())
        size = max(WORTH_A_JUDGE, min(PORTION, -(-total // able)))
        portion, room = Portion(), LARGEST
        while len(portion.asked) < size and room > 0:
            submission = next(submissions, None)
            if submission is None:
                break
            if submission.problem:
                self.finished.append([(submission, None)])
                continue
            cells, files = judge_message(submission, release)
            portion.asked.append((submission, (cells, files)))
            room -= sum(len(cell.source) for cell in cells) + sum(map(len, files.values()))
        if not portion.asked and self.slow:
            return Portion([self.slow.popleft() for _ in range(min(FEW, -(-len(self.slow) // able)))], hurried=False)
        return portion

    def _hear(self, worker: Worker) -> None:
        (kind, answer), portion = self._reply(worker), worker.portion
        worker.asked = worker.portion = None
        if kind == "judged":
            self._finish(portion, answer)
        elif kind == "forgotten":  # the worker is not to blame
            self.waiting.appendleft(portion)
        else:
            worker.why = one_line(answer)
            self._tell(worker, f"takes no work: {worker.why}")
            if kind == "refused":
                self.waiting.appendleft(portion)
            else:
                self._lose(portion)

    def _reply(self, worker: Worker) -> tuple[str, Any]:
        """(kind, answer): judged, refused or failed; forgotten where dask was, as the scheduler was gone."""
        future = worker.asked
        try:
            if future.status == "error":
                return "failed", f"{type(future.exception()).__name__}: {future.exception()}"
            return future.result(timeout=FETCH) if future.status == "finished" else ("forgotten", "")
        except Exception as error:  # whatever it is, it is no reply
            return "failed", f"{type(error).__name__}: {error}"
        finally:
            future.release()

    def _lose(self, portion: Portion | None) -> None:
        """Whatever was judged of this portion counts no more."""
        if portion is None:
            return
        portion.lost += 1
        if portion.lost < LOST_WITH:
            self.waiting.append(portion)
        else:
            reason = f"{LOST_WITH} workers were lost while they judged the {len(portion.asked)} of its portion"
            self._finish(portion, [("died", reason)] * len(portion.asked))

    def _finish(self, portion: Portion, answers: list[tuple[str, SubmissionReport | str]]) -> None:
        judged = []
        for (submission, asked), (kind, answer) in zip(portion.asked, answers, strict=True):
            if kind == "slow" and portion.hurried:
                self.slow.append((submission, asked))
            else:
                judged.append((submission, report_of_answer(submission, kind, answer)))
        self.finished.append(judged)

    def _tell(self, worker: Worker, event: str) -> None:
        print(f"  worker {worker.address} {event}", file=sys.stderr, flush=True)
