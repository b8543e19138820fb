"""Grade many submissions of one lesson: judges side by side, one writer, nothing recorded by a broken grader.

Submissions are judged in portions. Before the first and after each portion every judge tests itself; only then the
portion is recorded. The batch's seed is kept, so a grader that was killed, or a regrade, draws the same inputs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import secrets
import shutil
import signal
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait

from helpers.grading.folders import ROOT, Folders
from helpers.grading.intake import IntakeCell, Release, Submission, find_submissions, read_release, read_submission
from helpers.grading.record import Graded, GradingStopped, Recorder, Result, Score, read_result, write_atomically

PORTION = 50  # submissions a judge takes between two self tests
WORTH_A_JUDGE = 8  # submissions for which it pays to start one more judge
PATIENCE = 900  # seconds after which a judge that says nothing about a submission is given up

RESERVED = {
    "not_answered": "not answered", "raises": "raised an error", "wrong_type": "wrong type",
    "wrong_shape": "wrong shape", "nan": "nan in the output", "forbidden_call": "forbidden call",
    "input_changed": "changed its input", "dtype_lost": "lost the dtype", "detached": "cut off from the gradient",
    "too_slow": "took too long", "hard_coded": "hard-coded numbers",
}  # fmt: skip


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
    on_start: Callable[[int, int], None] = lambda new, unchanged: None,
    on_judged: Callable[[str], None] = lambda student: None,
) -> Outcome:
    """Grade the submissions of `lesson`, all or those of `students`.

    force: grade unchanged ones again too. cell_seconds: what one cell may take, else the sandbox's own limit.
    on_start(new, unchanged) and on_judged(student) report progress.
    Raises GradingStopped, with nothing more recorded, when the lesson or the class is unknown or the grader is broken.
    """
    release = _release(folders, lesson)
    names = _names(folders, lesson, students)
    outcome = Outcome(lesson)
    with Recorder(folders, release, fingerprint(folders, lesson), unsafe, config) as recorder:
        todo = []
        for student in names:
            submission = read_submission(folders.submitted, student, release, folders.release)
            if not force and recorder.finished(submission):
                outcome.unchanged += 1
            else:
                todo.append(student)
        on_start(len(todo), outcome.unchanged)
        if todo:
            if not unsafe:
                _require_bubblewrap()
            seed = batch_seed(folders, lesson)
            jobs = max(1, min(jobs or default_jobs(), -(-len(todo) // WORTH_A_JUDGE)))
            with Judges(lesson, seed, unsafe, jobs, cell_seconds) as judges:
                judges.self_test("before the batch")
                size = PORTION * jobs
                for start in range(0, len(todo), size):
                    portion = [
                        read_submission(folders.submitted, student, release, folders.release)
                        for student in todo[start : start + size]
                    ]
                    judged = judges.judge(portion, release, on_judged)
                    judges.self_test("after the batch")
                    for submission in portion:
                        recorder.record(submission, judged[submission.student])
                        outcome.new += 1
    results = (read_result(folders, lesson, student) for student in names)
    outcome.results = [result for result in results if result is not None]
    return outcome


def _require_bubblewrap() -> None:
    """Refuse at once, before a judge is started."""
    if shutil.which("bwrap"):
        return
    from helpers.grading.sandbox import SandboxMissing, find_bubblewrap

    try:
        find_bubblewrap()
    except SandboxMissing as missing:
        raise GradingStopped(str(missing)) from None


def _release(folders: Folders, lesson: str) -> Release:
    path = folders.notebook(lesson)
    if not path.is_file():
        known = ", ".join(folders.lessons()) or "none is built yet; see `course build`"
        raise GradingStopped(f"There is no lesson {lesson!r}. Lessons: {known}.")
    release = read_release(path, folders.executed(lesson))
    if not release.checks:
        raise GradingStopped(f"Lesson {lesson} has no exercises to grade.")
    return release


def _names(folders: Folders, lesson: str, students: Iterable[str] | None) -> list[str]:
    from helpers.grading.folders import shown

    names = find_submissions(folders.submitted, lesson)
    place = shown(folders.submitted / "STUDENT" / lesson / f"{lesson}.ipynb")
    if not names:
        raise GradingStopped(f"Nobody has handed in {lesson}. Submissions are expected as {place}.")
    if students is None:
        return names
    wanted = list(dict.fromkeys(students))
    if missing := [student for student in wanted if student not in names]:
        raise GradingStopped(f"No submission of {lesson} by {', '.join(missing)}. It is expected as {place}.")
    return wanted


def fingerprint(folders: Folders, lesson: str) -> str:
    """Changes when the lesson changes: a submission graded against an older lesson is no longer finished."""
    digest = hashlib.sha256()
    for path in (folders.notebook(lesson), ROOT / "helpers" / "answer_keys" / f"{lesson}.npz"):
        digest.update(path.read_bytes() if path.is_file() else b"")
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


def judge_input(submission: Submission, release: Release) -> list[IntakeCell]:
    """The code and check cells of a submission, without those whose figures are known already."""
    return [
        cell for cell in submission.cells
        if cell.kind in ("answer", "check") or cell.kind == "code" and cell.source not in release.shown
    ]  # fmt: skip


class Judges:
    """Several judges, each in a process of its own that ends with this one. Use as a context manager."""

    def __init__(self, lesson: str, seed: int, unsafe: bool, jobs: int, cell_seconds: float | None = None):
        self.arguments = (lesson, seed, unsafe, cell_seconds)
        self.jobs = jobs
        self.judges: list[_Judge] = []

    def __enter__(self) -> Judges:
        self.judges = [_Judge(*self.arguments) for _ in range(self.jobs)]
        return self

    def __exit__(self, *exc) -> None:
        for judge in self.judges:
            judge.stop()

    def self_test(self, when: str) -> None:
        """Every judge: reference full, blank 0, hostile canary 0. Raises GradingStopped."""
        for judge in self.judges:
            judge.ask("test")
        for judge in self.judges:
            kind, answer = judge.answer(PATIENCE)
            if kind == "refused":
                raise GradingStopped(answer)
            if kind != "tested":
                reason = answer.rstrip(".")
                raise GradingStopped(
                    f"Stopped: the grader failed its own test {when} ({reason}).\n"
                    "Nothing of this portion was recorded. See `course doctor`."
                )

    def judge(
        self, portion: list[Submission], release: Release, on_judged: Callable[[str], None]
    ) -> dict[str, Graded | None]:
        """Judge submissions; one that has, or gets, a problem is None."""
        judged: dict[str, Graded | None] = {}
        waiting = deque(submission for submission in portion if not submission.problem)
        for submission in portion:
            if submission.problem:
                judged[submission.student] = None
                on_judged(submission.student)
        busy: dict[Connection, tuple[int, Submission]] = {}

        def give(index: int) -> None:
            submission = waiting.popleft()
            self.judges[index].ask(judge_input(submission, release))
            busy[self.judges[index].pipe] = (index, submission)

        for index in range(len(self.judges)):
            if waiting:
                give(index)
        while busy:
            ready = wait(list(busy), timeout=PATIENCE)
            for pipe in ready or list(busy):
                index, submission = busy.pop(pipe)
                kind, answer = self.judges[index].answer(0 if ready else None)
                if kind in ("broken", "refused"):
                    raise GradingStopped(
                        f"Stopped: {answer.rstrip('.')}.\nNothing of this portion was recorded. See `course doctor`."
                    )
                if kind == "judged":
                    judged[submission.student] = answer
                else:  # the judge itself died or is stuck: a fresh one, and a person for this submission
                    judged[submission.student] = None
                    submission.problem = f"The grader could not judge this notebook ({answer}); grade it by hand."
                    self.judges[index].stop()
                    self.judges[index] = _Judge(*self.arguments)
                on_judged(submission.student)
                if waiting:
                    give(index)
        return judged

class _Judge:
    """One judge in its own process, spoken to through a pipe; when this process dies the pipe ends, and so does it."""

    def __init__(self, *arguments):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, *arguments), daemon=True)
        self.process.start()
        theirs.close()

    def ask(self, message) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            self.pipe.send(message)

    def answer(self, patience: float | None) -> tuple[str, object]:
        """(kind, answer): tested, judged, broken, refused, odd or died. patience None: it had its time already."""
        try:
            if patience is None or (patience and not self.pipe.poll(patience)):
                return "died", f"no answer in {PATIENCE} seconds"
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join(5)
            return "died", f"its process ended with code {self.process.exitcode}"

    def stop(self) -> None:
        self.pipe.close()
        self.process.join(10)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _serve(pipe: Connection, lesson: str, seed: int, unsafe: bool, cell_seconds: float | None) -> None:
    """The judge's process: answers tests and submissions until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the parent, which then closes the pipe
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionError):
        try:
            from helpers.grading.judge import GraderBroken, Judge
            from helpers.grading.sandbox import Limits, SandboxMissing
        except Exception as error:  # a broken installation
            pipe.recv()
            pipe.send(("broken", f"{type(error).__name__}: {error}"))
            return
        try:
            limits = Limits() if cell_seconds is None else Limits(cell_seconds=cell_seconds)
            with Judge(lesson, seed, unsafe, limits=limits) as judge:
                while True:
                    pipe.send(_reply(judge, pipe.recv(), lesson))
        except SandboxMissing as error:
            pipe.send(("refused", str(error)))
        except (GraderBroken, OSError, ValueError, RuntimeError) as error:
            pipe.send(("broken", str(error) or type(error).__name__))


def _reply(judge, message, lesson: str) -> tuple[str, object]:
    from helpers.grading.judge import Cell, GraderBroken
    from helpers.grading.sandbox import SandboxMissing

    try:
        if message == "test":
            judge.self_test()
            return "tested", ""
        checks = {cell.name for cell in message if cell.kind == "check"}
        cells = [
            Cell(cell.id, cell.source, "check" if cell.kind == "check" else "learner", cell.name, cell.trusted)
            for cell in message
        ]
        graded = as_graded(judge.judge_cells(cells))
        if missing := checks - set(graded.scores):
            return "broken", f"the answer key of {lesson} has no exercise {', '.join(sorted(missing))}; build it again"
        return "judged", graded
    except GraderBroken as error:
        return "broken", str(error)
    except SandboxMissing as error:
        return "refused", str(error)
    except Exception as error:  # one submission's trouble is not the class's: the self test tells them apart
        return "odd", f"{type(error).__name__}: {str(error)[:200]}"


def as_graded(result) -> Graded:
    """The judge's result in the words that the record keeps."""
    from helpers.check.report import as_html, as_text

    scores = {}
    for name, verdict in result.verdicts.items():
        label = verdict.label or RESERVED.get(verdict.mistake, (verdict.mistake or "").replace("_", " "))
        scores[name] = Score(
            name, float(verdict.points), float(verdict.max_points), verdict.passed, verdict.answered, verdict.mistake,
            label, as_text(verdict), as_html(verdict),
        )  # fmt: skip
    return Graded(scores, result.outputs, list(result.flags))

