"""Runs learner code in a sandbox, where it can do no harm, and watches it.

Each submission gets its own namespaces inside one bubblewrap sandbox, so that it finds no trace of the previous one.
"""

import base64
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from helpers.errors import CourseError
from helpers.grading import sandbox_files
from helpers.grading.inside.protocol import FORK, KILL, TOKEN_BYTES, Limits, Setting
from helpers.grading.learner_process import LearnerProcess, Lost, ResourceWatch, receive

START_SECONDS = 180


class SandboxFailed(CourseError):
    """The sandbox did not start, or it stopped answering. This is the grader's problem, not the learner's."""


class Sandbox(contextlib.AbstractContextManager):
    """A worker process that has imported everything and forks a process per submission. Use as a context manager.

    lesson: finished blocks and answer keys of this lesson and later ones are left out. notebook: whether submissions
    are notebook cells, which need IPython and figures, rather than loose files. unsafe: use a plain process instead of
    bubblewrap. given: import statements, one per line, whose names every submission finds; failing ones are ignored.
    Raises SandboxMissing or SandboxFailed.
    """

    try_nested = True  # otherwise, or if the kernel refuses, each submission starts a bubblewrap sandbox of its own

    def __init__(
        self, lesson: str, notebook: bool = True, unsafe: bool = False, limits: Limits | None = None, given: str = ""
    ):
        self.lesson, self.notebook, self.unsafe, self.given = lesson, notebook, unsafe, given
        self.limits = limits or Limits()
        self.process: subprocess.Popen | None = None
        self.nested = False
        self.used = False
        self.files: dict[str, bytes] = {}  # written into the folder of every submission
        self.folder = Path(tempfile.mkdtemp(prefix="course-sandbox-"))
        try:
            if not unsafe:
                sandbox_files.find_bubblewrap()
            os.chmod(self.folder, 0o755)
            sandbox_files.stage_helpers(self.folder / "course", lesson, fonts=notebook)
            self._start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *exc) -> None:
        self.close()

    def close(self) -> None:
        self._stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def submission(self) -> LearnerProcess:
        """A new process for one submission. Close it before the next one is started."""
        worn = self.used and not (self.nested or self.unsafe)
        if worn or self.process is None or self.process.poll() is not None:
            self._stop()
            self._start()
        self.used = True
        own_end, child_end = socket.socketpair()
        try:
            socket.send_fds(self.control, [FORK], [child_end.fileno()])
        except OSError:
            raise SandboxFailed("the sandbox's worker stopped; start again") from None
        finally:
            child_end.close()
        submission = LearnerProcess(self, own_end)
        for name, content in self.files.items():
            with contextlib.suppress(Lost):  # the next request fails in the same way and reports it
                submission.ask({"do": "file", "name": name, "content": base64.b64encode(content).decode()}, 20)
        return submission

    def _start(self) -> None:
        self.control, child_end = socket.socketpair()
        boxed = not self.unsafe
        nested, places = boxed and self.try_nested, tuple(sandbox_files.writable_places())
        setting = Setting(self.limits, boxed, nested, self.notebook, self.given, places)
        argument = f"{child_end.fileno()} {setting.as_text()}"
        if self.unsafe:
            program = [sys.executable, "-B", str(self.folder / "course" / "helpers" / "inside"), argument]
            environment = sandbox_files.environment_inside(home=str(self.folder)) | {"PATH": os.environ.get("PATH", "")}
        else:
            inside = f"{sandbox_files.COURSE}/helpers/inside"
            program = sandbox_files.bubblewrap(self.folder / "course", [sys.executable, "-B", inside, argument])
            environment = {}
        self.stderr_file = open(self.folder / "stderr", "w+b")  # noqa: SIM115, closed in _stop
        self.process = subprocess.Popen(
            program,
            env=environment,
            pass_fds=[child_end.fileno()],
            cwd="/",
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.stderr_file,
        )
        child_end.close()
        try:
            hello = receive(self.control, bytes(TOKEN_BYTES), START_SECONDS, 1 << 20, lambda: None)
        except Lost:
            self._explain()
        self.nested = bool(hello["nested"])
        self.used = False

    def _explain(self) -> None:
        """Raise the exception that explains what the worker wrote to stderr."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.stderr_file.seek(0)
        lines = self.stderr_file.read().decode(errors="replace").strip().splitlines() or ["it wrote no error message"]
        if lines[0].startswith("bwrap: "):
            raise sandbox_files.SandboxMissing(
                f"Learner code cannot be isolated here ({lines[0]}). Allow user namespaces on this machine, or use "
                "--unsafe on code that you trust."
            )
        raise SandboxFailed(f"the sandbox could not start: {lines[-1]}")

    def _stop(self) -> None:
        if self.process is None:
            return
        self.control.close()  # the worker ends with its control socket
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.stderr_file.close()
        self.process = None

    def end_submission(self) -> None:
        """Kill all processes of the current submission and wait until they have ended."""
        try:
            self.control.settimeout(20)
            self.control.sendall(KILL)
            self.control.recv(1)
        except OSError:
            self._stop()

    def watch(self, seconds: float) -> ResourceWatch:
        """A watch over the current submission, in which each process may use `seconds` of CPU time from now on."""
        return ResourceWatch(self.process.pid, seconds, self.limits.total_bytes)
