"""Sends portions of submissions to workers and returns their reports, as if they had been judged on this computer.

If a worker is lost, another one judges its portion again, but not if two workers were lost with it. If a worker fails
its self test, its results are discarded and it gets no more work. Slow submissions wait until all others are sent.
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
from helpers.grading.cluster import worker as remote
from helpers.grading.course_version import version_of
from helpers.grading.pool import WORTH_A_JUDGE, Batch, GradingStopped, Judged, judge_message, report_of_answer
from helpers.grading.safe_text import one_line
from helpers.grading.submission import Cell, Release, Submission, SubmissionReport

LOCAL = "local:"
PORTION = 64  # submissions in a portion, at most, so that some are recorded while others are judged
LARGEST = 64 << 20  # bytes of code and files from which on no submission is added to a portion
FEW = 4  # submissions in a portion of slow ones, at most
TICK, UPDATE = 0.1, 0.5  # seconds between two checks for replies, and for workers
WAIT = 60.0  # seconds after which grading stops if no worker takes work
FETCH = 120.0  # seconds that the transfer of a reply may take
LOST_WITH = 2  # workers, after which no other one gets the portion

Message = tuple[list[Cell], dict[str, bytes]]  # what a judge receives of a submission


@dataclass
class Portion:
    """Submissions that are sent together. lost: number of workers lost with it. hurried: slow ones are not judged."""

    items: list[tuple[Submission, Message]] = field(default_factory=list)
    lost: int = 0
    hurried: bool = True


@dataclass
class Worker:
    """A dask worker. future, portion: its pending request. refusal: why it gets no more work; empty if it does."""

    address: str
    future: Future | None = None
    portion: Portion | None = None
    refusal: str = ""


class Cluster:
    """The workers of a scheduler, instead of a Pool. Use as a context manager.

    where: the scheduler's address, or local:N for N workers in this process. Raises GradingStopped.
    """

    def __init__(self, batch: Batch, where: str):
        if batch.unsafe:
            raise GradingStopped(
                "Workers judge in a sandbox only: --unsafe is for a class that is graded without them."
            )
        self.where, self.stack = where, contextlib.ExitStack()
        self.version = version_of(course().lesson(batch.lesson).name)
        self.batch = replace(batch, key_cache=None)  # a file on this computer
        self.scheduler = ""  # its id
        self.workers: dict[str, Worker] = {}
        self.updated = 0.0
        self.waiting: deque[Portion] = deque()
        self.slow: deque[tuple[Submission, Message]] = deque()
        self.finished: deque[list[Judged]] = deque()

    def __enter__(self) -> "Cluster":
        for name in ("distributed", "distributed.client"):  # this module reports errors itself
            logging.getLogger(name).setLevel(logging.CRITICAL)
        # dask should not warn that a portion is large, because it consists of data. Nothing is served over HTTP.
        no_pages = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
        settings = {"distributed.admin.large-graph-warning-threshold": 2 * LARGEST, **no_pages}
        self.stack.enter_context(dask.config.set(settings))
        try:
            address = self.where
            if self.where.startswith(LOCAL):
                cluster = LocalCluster(
                    n_workers=int(self.where.removeprefix(LOCAL)),
                    threads_per_worker=1,
                    processes=False,  # so that no port is open to other users of this computer
                    protocol="inproc://",
                    dashboard_address="127.0.0.1:0",
                    worker_dashboard_address="127.0.0.1:0",
                )
                address = self.stack.enter_context(cluster)
            self.client = self.stack.enter_context(Client(address, name="course-grade"))
        except (OSError, ValueError, RuntimeError, TypeError) as error:  # TypeError: TLS without a key
            self.stack.close()
            reason = one_line(str(error), 120)
            raise GradingStopped(f"{one_line(self.where)} cannot be reached ({reason}). Nothing was graded.") from None
        return self

    def __exit__(self, *exc) -> None:
        with contextlib.suppress(Exception):  # otherwise a worker ends its judge with the next batch, or at its own end
            idle = [worker for worker in self.workers.values() if worker.future is None]
            for future in [self._ask(worker, remote.end_judge) for worker in idle]:
                future.result(timeout=15)
        self.stack.close()

    def portions(
        self, submissions: Iterator[Submission], total: int, release: Release, on_judged: Callable[[str], None]
    ) -> Iterator[list[Judged]]:
        """Yield portions of submissions with their reports as they arrive. submissions: `total` of them, read only when
        they are needed. Raises GradingStopped if there is no worker left to judge."""
        busy_until = time.monotonic()
        while total:
            self._update_workers()
            for worker in list(self.workers.values()):
                if worker.future is not None and worker.future.done():
                    self._receive(worker)
                if worker.future is None and not worker.refusal:
                    self._give(worker, submissions, total, release)
            while self.finished:
                judged = self.finished.popleft()
                for submission, _ in judged:
                    on_judged(submission.student)
                total -= len(judged)
                yield judged
            if any(worker.future for worker in self.workers.values()):
                busy_until = time.monotonic()
            elif total and time.monotonic() - busy_until > WAIT:
                message = f"Stopped: no worker of {one_line(self.where)} took work for {WAIT:.0f} s. "
                message += "What was recorded so far stays; grade again when there are workers."
                refusals = [f"{worker.address}: {worker.refusal}" for worker in self.workers.values() if worker.refusal]
                raise GradingStopped("\n".join([message, *refusals]))
            time.sleep(TICK)

    def _update_workers(self) -> None:
        """Update the list of workers. The portions of lost workers, or of all if the scheduler is new, wait again."""
        if self.client.status == "closed":
            raise GradingStopped(
                f"Stopped: the scheduler at {one_line(self.where)} is gone. What was recorded so far stays; grade "
                "again when it is back."
            )
        if time.monotonic() - self.updated < UPDATE:
            return
        try:
            info = self.client.sync(self.client.scheduler.identity, n_workers=-1, callback_timeout=10)
        except (OSError, TimeoutError):  # the scheduler restarts, and dask's client reconnects
            return
        self.updated = time.monotonic()
        if info["id"] != self.scheduler:
            self.waiting.extendleft(worker.portion for worker in self.workers.values() if worker.portion)
            self.workers, self.scheduler = {}, info["id"]
        for address in set(self.workers) - set(info["workers"]):
            worker = self.workers.pop(address)
            self._print(worker, "was lost")
            self._retry(worker.portion)
        for address in set(info["workers"]) - set(self.workers):
            self.workers[address] = Worker(address)

    def _ask(self, worker: Worker, function: Callable, *arguments) -> Future:
        """Let this worker, and no other one, run a function."""
        return self.client.submit(function, *arguments, workers=[worker.address], allow_other_workers=False, pure=False)

    def _give(self, worker: Worker, submissions: Iterator[Submission], total: int, release: Release) -> None:
        portion = self.waiting.popleft() if self.waiting else self._next(submissions, total, release)
        if portion.items:
            messages = [message for _, message in portion.items]
            request = remote.Request(self.version, self.batch, portion.hurried, messages)
            worker.portion, worker.future = portion, self._ask(worker, remote.judge, request)

    def _next(self, submissions: Iterator[Submission], total: int, release: Release) -> Portion:
        """The next submissions, as many as fit into a request, and after them slow ones; empty if all have been sent.
        A submission with a problem is finished at once."""
        able = sum(not worker.refusal for worker in self.workers.values())
        size = max(WORTH_A_JUDGE, min(PORTION, -(-total // able)))
        portion, room = Portion(), LARGEST
        while len(portion.items) < size and room > 0:
            submission = next(submissions, None)
            if submission is None:
                break
            if submission.problem:
                self.finished.append([(submission, None)])
                continue
            cells, files = judge_message(submission, release)
            portion.items.append((submission, (cells, files)))
            room -= sum(len(cell.source) for cell in cells) + sum(map(len, files.values()))
        if not portion.items and self.slow:
            return Portion([self.slow.popleft() for _ in range(min(FEW, -(-len(self.slow) // able)))], hurried=False)
        return portion

    def _receive(self, worker: Worker) -> None:
        (kind, answer), portion = self._reply(worker), worker.portion
        worker.future = worker.portion = None
        if kind == "judged":
            self._finish(portion, answer)
        elif kind == "forgotten":  # the worker is not to blame
            self.waiting.appendleft(portion)
        else:
            worker.refusal = one_line(answer)
            self._print(worker, f"takes no work: {worker.refusal}")
            if kind == "refused":
                self.waiting.appendleft(portion)
            else:
                self._retry(portion)

    def _reply(self, worker: Worker) -> tuple[str, Any]:
        """(kind, answer): judged, refused or failed, as in worker.judge; forgotten if the scheduler was restarted."""
        future = worker.future
        try:
            if future.status == "error":
                return "failed", f"{type(future.exception()).__name__}: {future.exception()}"
            return future.result(timeout=FETCH) if future.status == "finished" else ("forgotten", "")
        except Exception as error:  # whatever it was, there is no reply
            return "failed", f"{type(error).__name__}: {error}"
        finally:
            future.release()

    def _retry(self, portion: Portion | None) -> None:
        """Let another worker judge a portion whose results are lost, unless too many workers were lost with it."""
        if portion is None:
            return
        portion.lost += 1
        if portion.lost < LOST_WITH:
            self.waiting.append(portion)
        else:
            reason = f"{LOST_WITH} workers were lost while judging its portion of {len(portion.items)} submissions"
            self._finish(portion, [("died", reason)] * len(portion.items))

    def _finish(self, portion: Portion, answers: list[tuple[str, SubmissionReport | str]]) -> None:
        judged = []
        for (submission, message), (kind, answer) in zip(portion.items, answers, strict=True):
            if kind == "slow" and portion.hurried:
                self.slow.append((submission, message))
            else:
                judged.append((submission, report_of_answer(submission, kind, answer)))
        self.finished.append(judged)

    def _print(self, worker: Worker, event: str) -> None:
        print(f"  worker {worker.address} {event}", file=sys.stderr, flush=True)
