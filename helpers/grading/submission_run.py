"""Runs one submission's cells in order in a process; if a cell ends it, they run again without that cell."""

import contextlib
import time
from collections.abc import Callable, Iterable

from helpers.grading.inside.cell_runner import ERROR_BYTES, PATIENCE, RICH_BYTES, TEXT_BYTES
from helpers.grading.learner_process import LearnerProcess, Lost
from helpers.grading.sandbox import Sandbox
from helpers.grading.submission import Cell

RESTARTS = 6  # how often the cells are run again without one that ended the process
OUTPUT_CHARACTERS = 20_000_000  # of all cells together
MOST_OUTPUTS, MOST_ERROR = 200, 1000  # outputs of one cell; characters of its error
BUSY = 10.0  # limit of a cell's wall time on a busy processor, as a multiple of its limit of CPU time
NOT_RAISED = ("SyntaxError", "IndentationError", "TabError")
MISSING_HERE = ("ModuleNotFoundError", "ImportError", "FileNotFoundError", "PermissionError", "OSError", "EOFError")
MISSING_HERE += ("StdinNotImplementedError",)
MOST_WAITED, LEAST_WAITED = 120.0, 5.0  # seconds to wait for calls that do not return: all together; the least for each
GRACE = 3.0  # seconds between a soft limit, which learner code can ignore, and the hard one
TOO_MUCH_TEXT = "This notebook has too much output; the rest was left out.\n"
TOO_MUCH = {"output_type": "stream", "name": "stderr", "text": TOO_MUCH_TEXT}  # replaces outputs beyond the limit
LOST_WORDS = {
    "too slow": "it did not end in time",
    "memory": "it took more memory than a submission may take",
    "crowd": "it started too many processes, or took more processor time with them than a submission may take",
    "stopped": "it stopped the process that it ran in",
    "garbage": "it sent something that is not an output",
}


class SubmissionRun:
    """The process in which one submission's cells run; it is restarted if it dies. exercises: the names whose bindings
    are looked up. seconds: after this time nothing of the submission is run."""

    def __init__(self, sandbox: Sandbox, cells: list[Cell], exercises: Iterable[str], seconds: float):
        self.sandbox, self.cells, self.exercises = sandbox, cells, list(exercises)
        self.index = 0  # of the current cell
        self.left_out: dict[str, str] = {}  # cell id -> reason
        self.outputs: dict[str, list[dict]] = {}
        self.output_left = OUTPUT_CHARACTERS
        self.errors: dict[str, str] = {}
        self.flags: list[str] = []
        self.passed: list[str] = []  # exercises whose answers `or_finished` returns
        self.passed_known = 0  # how many of them this process has been told
        self.process: LearnerProcess | None = None
        self.seen_alive = False  # known to be alive since it last ran learner code
        self.bindings: dict[str, tuple[str, str | None]] = {}
        self.rebound: set[str] = set()  # exercises whose names were rebound after their check cells
        self.blocks_lent: set[str] = set()  # exercises whose finished block was put into this process
        self.restarts = 0
        self.late = False
        self.end = time.monotonic() + seconds
        self.seconds_waited = 0.0  # for calls that did not return

    def close(self) -> None:
        if self.process is not None:
            self.process.close()
            self.process = None

    def run_cells(self, at_check: Callable[[str], None]) -> None:
        """Run the cells in order, without those that end the process, and call `at_check` with the exercise of each
        check cell."""
        self.process = self.sandbox.submission()
        for index, cell in enumerate(self.cells):
            self.index = index
            if cell.kind == "check" and not cell.gone:
                at_check(cell.exercise)
                self._tell_passed()
            elif cell.runs and not self._run_cell(cell) and not (self.restart() and self._run_cell(cell)):
                return
        self.index = len(self.cells)

    def restart(self) -> bool:
        """Start a new process and rerun the cells so far, except those that are left out. Returns whether it worked."""
        while True:
            self.close()
            self.restarts += 1
            if self.too_fragile():
                self.flags.append("Its cells ended the process again and again; the rest of it could not be judged.")
                return False
            if self.is_late():
                return False
            self.process = self.sandbox.submission()
            self.passed_known, self.seen_alive = 0, False
            self.blocks_lent.clear()
            self.outputs, self.errors, self.output_left = {}, dict(self.left_out), OUTPUT_CHARACTERS
            if all(self._repeat_cell(cell) for cell in self.cells[: self.index]):
                return True

    def restart_unblamed(self, keep: str) -> None:
        """Start a new process without counting it as a restart. keep: as in `read_bindings`."""
        self.restarts -= 1
        if self.restart():
            self.read_bindings(keep)

    def too_fragile(self) -> bool:
        return self.restarts > RESTARTS

    def _repeat_cell(self, cell: Cell) -> bool:
        if cell.runs:
            return self._run_cell(cell)
        if cell.kind != "check" or cell.gone:
            return True
        self._tell_passed()
        return self.read_bindings(keep=cell.exercise)

    def _tell_passed(self) -> None:
        """Let `or_finished` return the learner's answers that have passed so far, as it does in a notebook."""
        if self.process is not None and self.passed_known < len(self.passed):
            with contextlib.suppress(Lost):  # if the process has ended, the next request notices
                self.process.ask({"do": "passed", "names": self.passed[self.passed_known :]}, 10)
                self.passed_known = len(self.passed)

    def is_late(self) -> bool:
        """Whether this submission's time is up; from then on, nothing of it is run or judged."""
        self.late = self.late or time.monotonic() > self.end
        return self.late

    def find_bindings(self, keep: str | None = None) -> None:
        """Look up what the exercises' names are bound to now, restarting the process if necessary. keep: as below."""
        self.bindings = {}
        while self.process is None or not self.read_bindings(keep):
            if self.restarts >= RESTARTS or self.is_late() or not self.restart():
                return

    def read_bindings(self, keep: str | None = None) -> bool:
        """Look up what the exercises' names are bound to. Returns False if the process does not answer. keep: a name
        whose current value the process keeps, to notice if it is rebound."""
        try:
            request = {"do": "names", "names": [*self.exercises, "harm"], "keep": keep}
            reply = self.process.ask(request, 10)
            bindings = {str(name): (str(kind), text and str(text)) for name, (kind, text) in reply["found"].items()}
            self.rebound = {str(name) for name in reply["changed"]} & set(self.exercises)
            self.flag_environment(reply)
            self.bindings = bindings
            self.seen_alive = True
        except (Lost, TypeError, KeyError, ValueError, AttributeError):
            self.flags.append("Its process ended after its cells had run.")
            return False
        return True

    def ensure_alive(self) -> bool:
        """Whether there is a process to send requests to. One that died during an exercise is restarted."""
        if self.process is None:
            return False
        self.seen_alive = self.seen_alive or self.process.alive()
        return self.seen_alive or self.restart()

    def call_answer(self, request: dict, patience: float) -> tuple[dict, list[str]]:
        """Call an answer in a fork of the process. Returns its reply and the notes that it sent before. Raises Lost."""
        if self.is_late():
            raise Lost("too slow")
        if not self.ensure_alive():
            raise Lost("died")
        started, self.seen_alive = time.monotonic(), False
        left = max(MOST_WAITED - self.seconds_waited, LEAST_WAITED)
        try:
            return self.process.observe(request, min(patience + GRACE, max(self.end - started, 1.0), left))
        except Lost as lost:
            self.is_late()
            self.seconds_waited += time.monotonic() - started
            if lost.reason == "died" and time.monotonic() - started > request["cpu_seconds"]:
                raise Lost("too slow") from None
            raise

    def flag_environment(self, reply: dict) -> None:
        """Flag code that replaced functions which observe it, or that asked for a device which is not available."""
        if patched := [str(name)[:80] for name in reply["patched"]]:
            self.flags.append(f"Its code replaced {', '.join(patched[:5])}.")
        if moved := [str(name)[:20] for name in reply["moved"]]:
            names = " and ".join(sorted(set(moved[:5])))
            self.flags.append(f"Its code asks for the device {names}, which is not available, so it ran on the CPU.")

    def _run_cell(self, cell: Cell) -> bool:
        """Run one cell, unless it is left out. Returns False if it ended the process; from then on it is left out."""
        if cell.id in self.left_out:
            self.outputs[cell.id] = [error_output("CellLeftOut", self.left_out[cell.id])]
            return True
        if self.is_late():
            return True
        seconds = min(self.sandbox.limits.cell_seconds, max(self.end - time.monotonic(), 1.0))
        started = time.monotonic()
        try:
            request = {"do": "cell", "id": cell.id, "source": cell.source, "seconds": seconds}
            request["resume"] = cell.ran is not False
            wait = max(PATIENCE * seconds, min(BUSY * seconds, self.end - started))
            self.seen_alive = False
            reply = self.process.ask(request, wait + GRACE)
            outputs = [clean_output(output) for output in reply["outputs"][:MOST_OUTPUTS]]
            self.output_left -= sum(len(str(output)) for output in outputs)
            self.outputs[cell.id] = outputs if self.output_left >= 0 else [TOO_MUCH]
            error = str(reply["error"])[:MOST_ERROR]
        except Lost as lost:
            too_slow = lost.reason == "died" and time.monotonic() - started > seconds
            self._leave_out(cell, "too slow" if too_slow else lost.reason)
            return False
        except (TypeError, KeyError, ValueError, AttributeError):
            self._leave_out(cell, "garbage")
            return False
        if error:
            self.errors[cell.id] = error
        kind = error.split(":")[0].split(" ")[0]
        if kind == "CellTimeout":
            self.flags.append(f"Cell {cell.id} was stopped after {round(seconds, 1):g} s.")
        elif error and not cell.trusted and kind not in NOT_RAISED:
            # It did not raise on the learner's computer, or needs something that exists only there.
            if cell.ran or cell.ran is None and kind in MISSING_HERE:
                where = " here, though not at home" if cell.ran else " here"
                self.flags.append(f"Cell {cell.id} raised {error}{where}; its other statements were run.")
        return True

    def _leave_out(self, cell: Cell, reason: str) -> None:
        words = LOST_WORDS.get(reason, "it ended the process (an exit, a crash or too little memory)")
        self.left_out[cell.id] = f"this code was left out: {words}"
        self.flags.append(f"Cell {cell.id} was left out: {words}.")


def error_output(name: str, text: str) -> dict:
    return {"output_type": "error", "ename": name, "evalue": text, "traceback": [f"{name}: {text}"]}


def clean_output(output: dict) -> dict:
    """A valid nbformat output from one that the learner's process may have manipulated, cut to the length that the
    worker allows. Raises KeyError, TypeError or AttributeError if it is no output at all."""
    kind = output["output_type"]
    if kind == "stream":
        name = "stderr" if output["name"] == "stderr" else "stdout"
        return {"output_type": "stream", "name": name, "text": str(output["text"])[: 2 * TEXT_BYTES]}
    if kind == "error":
        lines = [str(line)[:ERROR_BYTES] for line in output["traceback"][:200]]
        while sum(map(len, lines)) > 2 * ERROR_BYTES:
            del lines[: max(1, len(lines) // 2)]
        return {
            "output_type": "error",
            "ename": str(output["ename"])[:100],
            "evalue": str(output["evalue"])[:ERROR_BYTES],
            "traceback": lines,
        }
    if kind not in ("display_data", "execute_result"):
        raise KeyError(kind)
    data = {str(mime)[:80]: body for mime, body in output["data"].items() if isinstance(body, str)}
    if sum(map(len, data.values())) > 2 * RICH_BYTES:
        data = {"text/plain": "This output is too large and was left out."}
    return {"output_type": kind, "data": data, "metadata": {}}
