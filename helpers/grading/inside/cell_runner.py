"""Run the learner's cells within a time limit, and collect their outputs and errors in bounded number and size."""

import contextlib
import importlib
import io
import linecache
import signal
import sys
import traceback
import types

from .devices import stand_in_for_devices

TEXT_BYTES = 200_000  # for one cell's printed text
RICH_BYTES = 3_000_000  # for one cell's figures and other displays
MAX_OUTPUTS = 100  # for one cell
ERROR_BYTES = 20_000
CUT = "\n[the rest of the output was cut]\n"
MOST_IMPORTING = 120  # seconds of processor time that one import of a library may take
PATIENCE = 1.5  # A cell's wall-clock limit is this many times its processor time; queueing for a core is not counted.


class Outputs:
    """The outputs of one cell as nbformat dicts, bounded in number and in bytes."""

    def __init__(self):
        self.items: list[dict] = []
        self.text_left = TEXT_BYTES
        self.rich_left = RICH_BYTES

    def stream(self, name: str, text: str) -> None:
        if self.text_left <= 0 or not text:
            return
        if len(text) > self.text_left:
            text = text[: self.text_left] + CUT
            self.text_left = 0
        self.text_left -= len(text)
        if self.items and self.items[-1]["output_type"] == "stream" and self.items[-1]["name"] == name:
            self.items[-1]["text"] += text
        elif len(self.items) < MAX_OUTPUTS:
            self.items.append({"output_type": "stream", "name": name, "text": text})

    def rich(self, kind: str, data: dict) -> None:
        data = {str(mime): body for mime, body in data.items() if isinstance(body, str)}
        size = sum(map(len, data.values()))
        if size > self.rich_left or len(self.items) >= MAX_OUTPUTS:
            self.stream("stderr", CUT)
            return
        self.rich_left -= size
        self.items.append({"output_type": kind, "data": data})

    def error(self, name: str, value: str, traceback: list[str]) -> None:
        lines = "\n".join(traceback)[-ERROR_BYTES:].split("\n")
        self.items.append({"output_type": "error", "ename": name, "evalue": value[:ERROR_BYTES], "traceback": lines})


class Stream(io.TextIOBase):
    """The sys.stdout or sys.stderr of learner code."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, outputs: Outputs, name: str):
        self.outputs, self.name = outputs, name

    def writable(self) -> bool:
        return True

    def write(self, text) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self.outputs.stream(self.name, text)
        return len(text)


def limit_processor_time(seconds: float) -> None:
    """Let the operating system end this process after so many further seconds of processor time."""
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime + seconds) + 1, hard))


class CellTimeout(KeyboardInterrupt):
    """A cell ran longer than its time limit."""


class CellTimers:
    """Raise CellTimeout after `seconds` of processor time, or after PATIENCE times as long on the wall clock.

    The time of library imports, which are not interrupted, does not count, nor does waiting for a busy core.
    """

    def __init__(self, seconds: float):
        from helpers.running.time_limit import queued_seconds

        self.seconds, self.importing, self._queued_seconds = seconds, False, queued_seconds

    def start(self) -> None:
        limit_processor_time(self.seconds + 5)  # for code that handles no signals, such as one long call of C code
        self.queued = self._queued_seconds() or 0.0
        for number in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(number, self._on_timer)
        self._set(self.seconds, PATIENCE * self.seconds)

    def stop(self) -> None:
        self._set(0, 0)
        for number in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)

    @contextlib.contextmanager
    def paused(self):
        """Pause both timers, as imports_unclocked does while a library is imported."""
        remaining = self._set(0, 0)
        limit_processor_time(MOST_IMPORTING)
        self.importing = True
        try:
            yield
        finally:
            self.importing = False
            processor_seconds, wall_seconds = (max(seconds, 0.01) for seconds in remaining)
            limit_processor_time(processor_seconds + 5)
            self._set(processor_seconds, wall_seconds)

    def _set(self, processor_seconds: float, wall_seconds: float) -> list[float]:
        """Set both timers and return the seconds that were left on them."""
        timers = (signal.ITIMER_PROF, processor_seconds), (signal.ITIMER_REAL, wall_seconds)
        return [signal.setitimer(timer, seconds)[0] for timer, seconds in timers]

    def _on_timer(self, number: int, _frame) -> None:
        if self.importing:
            return
        queued = (self._queued_seconds() or 0.0) - self.queued
        if number == signal.SIGALRM and queued > 1:
            self.queued += queued
            signal.setitimer(signal.ITIMER_REAL, queued)
            return
        raise CellTimeout(f"stopped after {self.seconds:g} s")


class Namespace:
    """The namespace in which a learner's cells run, by IPython for a notebook and by plain exec for loose files."""

    def __init__(self, shell):
        self.shell = shell
        if shell is None:
            module = types.ModuleType("__main__")
            module.__dict__["__builtins__"] = __builtins__
            sys.modules["__main__"] = module
            self.names = module.__dict__
        else:
            self.names = shell.user_ns

    def run_imports(self, imports: str) -> None:
        """Run these import statements, one per line, as far as the modules exist in the sandbox."""
        make_check_silent()
        for line in imports.splitlines():
            with contextlib.suppress(Exception):  # A module that is withheld fails again in the cell that imports it.
                exec(line, self.names)

    def run(self, cell_id: str, source: str, seconds: float, resume: bool) -> tuple[list[dict], str]:
        """Run one cell. Returns its outputs as nbformat dicts, and its first error as one line ("" for none).

        seconds: limit on processor time, see CellTimers.
        resume: in a notebook, whether to run the statements that follow one that raised.
        """
        from helpers.running.time_limit import imports_unclocked

        outputs = Outputs()
        importlib.invalidate_caches()  # so that modules written by the previous cell are found
        timers = CellTimers(seconds)
        stand_in_for_devices(source)
        make_check_silent()
        stdout, stderr = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = Stream(outputs, "stdout"), Stream(outputs, "stderr")
        timers.start()
        try:
            with imports_unclocked(timers):
                if self.shell is None:
                    error = self._run_plain(cell_id, source)
                else:
                    error = self.shell.run_to_end(source, f"<cell {cell_id}>", outputs, resume)
        except CellTimeout as timeout:
            error = f"CellTimeout: {timeout}"
        finally:
            timers.stop()
            sys.stdout, sys.stderr = stdout, stderr
        return outputs.items, error[:ERROR_BYTES]

    def _run_plain(self, name: str, source: str) -> str:
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        self.names["__file__"] = name
        try:
            exec(compile(source, name, "exec", dont_inherit=True), self.names)
        except BaseException as error:
            return one_line(error, name)
        return ""


def make_check_silent() -> None:
    """Let the learner's calls of check and at_work do nothing, because the judge decides and has the answer keys."""
    import helpers

    def check(*_answers, **_named):
        """Do nothing. The grader judges the answer outside of this process."""

    def at_work(*_answers, **_named):
        """Do nothing. The grader has no use for the display of an answer in the translator."""

    for silent in (check, at_work):
        setattr(helpers, silent.__name__, silent)
        setattr(sys.modules[f"helpers.{silent.__name__}"], silent.__name__, silent)


def one_line(error: BaseException, filename: str) -> str:
    """An error as "ValueError in line 3: its message", with the line of the deepest frame that is in `filename`."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    try:
        message = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception:
        message = ""
    where = f" in line {line}" if line else ""
    first = (message or "").strip().splitlines()[:1]
    traceback.clear_frames(error.__traceback__)  # Otherwise their locals, which may have filled the memory, stay alive.
    return f"{type(error).__name__}{where}" + (f": {first[0][:500]}" if first else "")
