"""Parallel judges, each in its own process, which ends with this one.

The processes import only what the judge needs, and this module only the standard library and what reads submissions.
"""

import contextlib
import gc
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeVar

from helpers.course import course
from helpers.errors import CourseError
from helpers.grading.attachments import read_files_beside
from helpers.grading.folders import ROOT
from helpers.grading.inside.namespaces import die_with_parent
from helpers.grading.lesson_release import cells_to_judge
from helpers.grading.safe_text import one_line
from helpers.grading.submission import Cell, ExerciseReport, Release, Submission, SubmissionReport

Item = TypeVar("Item")
Judged = tuple[Submission, SubmissionReport | None]
PORTION = 32  # submissions per judge between two self tests
WORTH_A_JUDGE = 8  # submissions per judge from which on another judge saves time
PATIENCE = 900  # seconds, at least, before a judge that does not answer is replaced

NOT_RECORDED = "Nothing of this portion was recorded. See `course doctor`."
MISTAKE_LABELS = {
    "not_answered": "not answered",
    "raises": "raised an error",
    "wrong_type": "wrong type",
    "wrong_shape": "wrong shape",
    "nan": "nan in the output",
    "forbidden_call": "forbidden call",
    "input_changed": "changed its input",
    "dtype_lost": "lost the dtype",
    "detached": "cut off from the gradient",
    "too_slow": "took too long",
    "hard_coded": "hard-coded numbers",
}
# Phrases for the errors that answers raise, each with a pattern for the beginning of a line such as "ValueError: ...".
ERRORS = {
    r"(Syntax|Indentation|Tab)Error\b": "syntax error",
    r"(ModuleNotFound|Import)Error\b": "missing package",
    r"CellTimeout\b|.*did not end in time": "took too long",
    r".*(took|ran out of|not enough).* memory|MemoryError\b": "took too much memory",
    r"(Runtime|Value|Index)Error: .*(size|shape|dimension|must match|broadcast|einsum)": "shapes that do not fit",
    r"NameError\b": "a name that is not defined",
    r".*(?:ended|stopped) the process|the process ended": "ended its process",
}


class GradingStopped(CourseError):
    """Grading cannot go on. The message is one or two sentences for the teacher."""


class NoSandbox(GradingStopped):
    """Learner code cannot be isolated on this machine."""


@dataclass(frozen=True)
class Batch:
    """Settings of all judges of a batch. seed: of the inputs. cell_seconds: time limit per cell. key_cache: the file in
    which judges share the keys. notebook: whether submissions are notebooks, not loose files. only: the exercises to
    judge; None for all."""

    lesson: str
    seed: int
    unsafe: bool = False
    cell_seconds: float | None = None
    key_cache: Path | None = None
    notebook: bool = True
    only: list[str] | None = None


def judge_message(submission: Submission, release: Release) -> tuple[list[Cell], dict[str, bytes]]:
    """The part of a submission that a judge receives: its cells, and by name the files that lie beside it."""
    files = read_files_beside(submission.folder, submission.code())[0] if submission.folder else {}
    return cells_to_judge(submission, release), files


def report_of_answer(submission: Submission, kind: str, answer) -> SubmissionReport | None:
    """The report to record for the answer of a JudgeProcess; None if it could not judge, so that a person must grade.
    Either way, this sets the submission's `problem`."""
    if kind == "judged":
        submission.problem = answer.problem
        passed_at_home = (answer.verdicts.get(cell.exercise) for cell in submission.cells if cell.passed)
        answer.flags += [
            f"The notebook shows that {verdict.exercise} passed its check at home; here it has {verdict.points:g} of "
            f"{verdict.max_points:g} points."
            for verdict in passed_at_home
            if verdict is not None and verdict.points < verdict.max_points
        ]
        return answer
    submission.again = True
    reason = one_line(str(answer), 200)
    submission.problem = f"The grader could not judge this notebook ({reason}); grade it by hand."
    return None


def _stopped_by_self_test(when: str, reason: str) -> GradingStopped:
    reason = reason.rstrip(".")
    return GradingStopped(f"Stopped: the grader failed its own test {when} ({reason}).\n{NOT_RECORDED}")


def default_jobs() -> int:
    """One judge per core that this process may use, at most two, because memory runs out before cores do."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(2, cores))


class Pool:
    """Several judges, each in its own process, which ends with this one. Use as a context manager."""

    def __init__(self, batch: Batch, jobs: int):
        if not hasattr(os, "fork"):
            raise GradingStopped("Judging answers needs Linux or macOS; on Windows use WSL.")
        self.folder = tempfile.TemporaryDirectory(prefix="course-", ignore_cleanup_errors=True)
        key_cache = batch.key_cache or (Path(self.folder.name, "keys.npz") if jobs > 1 else None)
        self.batch = replace(batch, key_cache=key_cache)
        self.patience = max(PATIENCE, 1.5 * course().lesson(batch.lesson).seconds)
        self.jobs = jobs
        self.judges: list[JudgeProcess] = []
        self.closed = False

    def __enter__(self) -> "Pool":
        self.judges = [JudgeProcess(self.batch, self.folder.name) for _ in range(self.jobs)]
        return self

    def __exit__(self, kind=None, *exc) -> None:
        self.closed = True  # another thread may still be waiting for an answer
        for judge in self.judges:
            judge.stop(at_once=kind is not None)
        self.folder.cleanup()

    def exercises(self) -> list[str]:
        """The exercises that can be judged, once every judge is ready. Raises NoSandbox or GradingStopped."""
        names = []
        for kind, names in self._ask_all("names", self.patience):
            if kind != "names":
                raise (NoSandbox if kind == "refused" else GradingStopped)(f"{one_line(str(names)).rstrip('.')}.")
        return names

    def _ask_all(self, message: str, patience: float) -> list[tuple[str, Any]]:
        for judge in self.judges:
            judge.ask(message)
        return [judge.answer(patience) for judge in self.judges]

    def self_test(self, when: str) -> None:
        """Let every judge test itself (selftest.py). Raises GradingStopped if one fails. when: for the message."""
        for kind, answer in self._ask_all("test", PATIENCE):
            if kind == "refused":
                raise GradingStopped(answer)
            if kind != "tested":
                raise _stopped_by_self_test(when, answer)

    def portions(
        self, submissions: Iterator[Submission], total: int, release: Release, progress
    ) -> Iterator[list[Judged]]:
        """Yield portions of submissions with their reports, each judged between two self tests. Submissions that exceed
        a short time limit are left out at first and follow one by one at the end. submissions: `total` of them, read
        only when they are needed."""
        slow = list(submissions) if total == 1 else []
        self.self_test("before the batch")
        while portion := list(islice(submissions, self.jobs * PORTION)):
            finished = list(self.judge(portion, release, progress.step, hurried=True))
            self.self_test("after the batch")
            done = {submission.student for submission, _ in finished}
            slow += [submission for submission in portion if submission.student not in done]
            yield finished
        if total > 1 and slow:
            progress.slow(len(slow))
        for judged in self.judge(slow, release, progress.step, hurried=False):
            yield [judged]

    def judge(
        self, submissions: Iterable[Submission], release: Release, on_judged: Callable[[str], None], hurried: bool
    ) -> Iterator[Judged]:
        """Judge submissions. The report of one that has a problem or cannot be judged is None. hurried: leave out those
        that take long, to judge them later; otherwise a judge tests itself before each submission is yielded."""
        readable = []
        for submission in submissions:
            if submission.problem:
                on_judged(submission.student)
                yield submission, None
            else:
                readable.append(submission)

        def request(submission: Submission) -> tuple:
            return *judge_message(submission, release), hurried, not hurried

        for submission, kind, answer in self.answers(readable, request):
            if kind == "unsound":
                raise _stopped_by_self_test("after a submission", answer)
            if kind in ("broken", "refused"):
                raise GradingStopped(f"Stopped: {answer.rstrip('.')}.\n{NOT_RECORDED}")
            if kind != "slow":
                yield submission, report_of_answer(submission, kind, answer)
                on_judged(submission.student)

    def answers(self, items: Iterable[Item], message: Callable[[Item], object]) -> Iterator[tuple[Item, str, object]]:
        """Send message(item) for every item to a judge, and yield (item, kind, answer) as the answers arrive. If a
        judge dies, hangs or fails, a new one replaces it and tries the item once more."""
        waiting, tried = deque(enumerate(items)), set()
        busy: dict[Connection, tuple[int, tuple[int, Item]]] = {}

        def give_next_to(index: int) -> None:
            if waiting:
                numbered = waiting.popleft()
                self.judges[index].ask(message(numbered[1]))
                busy[self.judges[index].pipe] = (index, numbered)

        for index in range(len(self.judges)):
            give_next_to(index)
        while busy:
            ready = wait(list(busy), timeout=self.patience)
            for pipe in ready or list(busy):
                index, (number, item) = busy.pop(pipe)
                kind, answer = self.judges[index].answer(0 if ready else None)
                if self.closed:
                    raise GradingStopped("Grading was canceled.")
                again = False
                if kind in ("died", "odd"):
                    self.judges[index].stop()
                    self.judges[index] = JudgeProcess(self.batch, self.folder.name)
                    again = number not in tried
                if again:
                    tried.add(number)
                    waiting.append((number, item))
                give_next_to(index)
                if not again:
                    yield item, kind, answer


# multiprocessing.Process would first import the caller's main module, which takes seconds in Jupyter. Garbage
# collection is off while torch is imported, because it would find nothing and take a tenth of that time.
PROGRAM = (
    "import gc, sys; gc.disable(); sys.path.insert(0, sys.argv[1]); "
    "from helpers.grading.pool import serve; serve(int(sys.argv[2]))"
)


class JudgeProcess:
    """A judge in its own process, reached through a pipe. If the parent dies, the pipe closes and the judge ends."""

    def __init__(self, batch: Batch, folder: str):
        self.pipe, child = multiprocessing.Pipe()
        program = [sys.executable, "-c", PROGRAM, str(ROOT), str(child.fileno())]
        environment = os.environ | {"TMPDIR": folder}  # the pool removes what a killed judge leaves there
        self.process = subprocess.Popen(program, env=environment, pass_fds=[child.fileno()], stdin=subprocess.DEVNULL)
        child.close()
        self.ask(batch)

    def ask(self, message) -> None:
        with contextlib.suppress(ConnectionError):
            self.pipe.send(message)

    def answer(self, patience: float | None) -> tuple[str, object]:
        """(kind, answer), as _reply and serve send them, or ("died", reason). patience: seconds to wait for the answer;
        0 if it is there, None if the judge has run out of time."""
        try:
            if patience is None or (patience and not self.pipe.poll(patience)):
                return "died", "no answer within the time limit"
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
            return "died", f"its process ended with code {self.process.returncode}"

    def stop(self, at_once: bool = False) -> None:
        if at_once:  # a submission may keep it busy for minutes
            self.process.kill()
        self.pipe.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def serve(handle: int) -> None:
    """The main function of a judge's process. handle: file descriptor of its pipe, whose first message is the Batch."""
    die_with_parent()  # a closed pipe is noticed only between two submissions
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the parent, which then closes the pipe
    pipe = Connection(handle)
    with contextlib.suppress(EOFError, ConnectionError):
        batch = pipe.recv()
        try:
            from helpers.grading.judge import Judge
            from helpers.grading.reference import cached_keys
            from helpers.grading.sandbox import Limits
            from helpers.grading.sandbox_files import SandboxMissing

            gc.freeze()
            gc.enable()
        except Exception as error:  # a broken installation
            pipe.recv()
            pipe.send(("broken", f"{type(error).__name__}: {error}"))
            os._exit(0)
        try:
            limits = None if batch.cell_seconds is None else Limits(cell_seconds=batch.cell_seconds)
            lesson = course().lesson(batch.lesson)
            keys = None if batch.key_cache is None else cached_keys(lesson, batch.seed, batch.key_cache)
            with Judge(lesson.name, batch.seed, batch.unsafe, batch.notebook, limits, keys) as judge:
                while True:
                    pipe.send(_reply(judge, pipe.recv(), batch.only))
        except SandboxMissing as error:
            pipe.send(("refused", str(error)))
        except ConnectionError:
            raise
        except (CourseError, OSError, ValueError, RuntimeError) as error:
            pipe.send(("broken", str(error) or type(error).__name__))
    os._exit(0)  # after importing torch, a regular exit takes seconds


def _reply(judge, message, only: list[str] | None) -> tuple[str, object]:
    """(kind, answer) for a message. The kinds are tested, names, judged, slow (left out when hurried), broken (the
    grader itself), unsound (the self test after the submission failed), refused (no sandbox) and odd (else)."""
    from helpers.grading.judge import TOO_LONG
    from helpers.grading.reference import GraderBroken
    from helpers.grading.sandbox_files import SandboxMissing
    from helpers.grading.selftest import self_test

    try:
        if message == "test":
            self_test(judge)
            return "tested", ""
        if message == "names":
            return "names", list(judge.keys)
        cells, files, hurried, test_after = message
        graded = judge.judge_cells(cells, only, files, hurried)
        if hurried and graded.problem == TOO_LONG:
            return "slow", ""
        checks = {cell.exercise for cell in cells if cell.kind == "check"}
        if missing := checks - set(graded.verdicts):
            names = ", ".join(sorted(missing))
            return "broken", f"the answer key of {judge.lesson.name} has no exercise {names}; build it again"
        if test_after:
            try:
                self_test(judge)
            except GraderBroken as error:
                return "unsound", str(error)
        return "judged", replace(
            graded, verdicts={name: rendered(verdict) for name, verdict in graded.verdicts.items()}
        )
    except GraderBroken as error:
        return "broken", str(error)
    except SandboxMissing as error:
        return "refused", str(error)
    except Exception as error:  # perhaps due to one submission only; the self test will tell
        return "odd", f"{type(error).__name__}: {str(error)[:200]}"


def rendered(verdict) -> ExerciseReport:
    """A verdict as a report that can be read without torch."""
    from helpers.checking.rendering import as_html, as_text
    from helpers.checking.vocabulary import UNCHANGED, VALUES

    label = verdict.label or MISTAKE_LABELS.get(verdict.mistake, (verdict.mistake or "").replace("_", " "))
    if verdict.mistake == "raises" and not verdict.label:
        label = error_kind(verdict.message)
    results = [(part.name, part.passed) for part in verdict.parts]
    if results and VALUES not in dict(results):  # the first part's name contains this answer's own measurement
        results[0] = ("the measured goal", results[0][1])
    failed = [name for name, passed in results if not passed]
    if VALUES in failed:  # do not count consequences of wrong values
        failed = [name for name in failed if name in (VALUES, UNCHANGED)]
    copied = {name: getattr(verdict, name) for name in ("exercise", "passed", "answered", "mistake", "message")}
    points, worth, text, html = float(verdict.points), float(verdict.max_points), as_text(verdict), as_html(verdict)
    return ExerciseReport(
        **copied, points=points, max_points=worth, label=label, text=text, html=html, failed=tuple(failed)
    )


def error_kind(message: str) -> str:
    """The kind of error in a verdict's message, in a few words. Only the learner's report quotes the error itself."""
    raised = message.partition("\n")[0].split("your code raised ", 1)[-1]
    kind = next((phrase for pattern, phrase in ERRORS.items() if re.match(pattern, raised)), None)
    name = re.match(r"[A-Z][A-Za-z]{1,40}(?=:|$)", raised)
    return kind or (f"raised {name[0]}" if name else MISTAKE_LABELS["raises"])
