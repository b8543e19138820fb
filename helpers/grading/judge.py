"""The trusted side of grading: fresh inputs go into the sandbox, raw tensors come back, the verdict is made here."""

from __future__ import annotations

import ast
import base64
import contextlib
import dataclasses
import json
import math
import re
import socket
import sys
import tempfile
import time
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Literal

import torch

from helpers.checking.codec import dumps
from helpers.checking.diagnose import forbidden_text
from helpers.checking.earlier import charged_once
from helpers.checking.forbidden import banned_names
from helpers.checking.key import DamagedKey, ExerciseKey, load_keys
from helpers.checking.making import MissingPiece, UnsoundKey, best_outputs, lesson_keys
from helpers.checking.observe import Observation, case_to_tree, changed_of
from helpers.checking.session import wrong_kind_text
from helpers.checking.verdict import RESERVED, Verdict, decide, decide_quiz, not_answered, refused
from helpers.checking.vocabulary import VALUES, Draw
from helpers.course import course, load_source
from helpers.errors import CourseError
from helpers.grading.sandbox import HELPERS, Limits, Lost, Sandbox, SandboxFailed, Submission
from helpers.grading.turns import Turns
from helpers.grading.words import one_line
from helpers.grading.worker import ERROR_BYTES, PATIENCE, RICH_BYTES, TEXT_BYTES

RESTARTS = 6  # how often the other cells run again without one that ended the process
OUTPUT_CHARACTERS = 20_000_000  # of all cells together
MOST_OUTPUTS, MOST_ERROR = 200, 1000  # outputs of one cell; characters of its error
TOO_LONG = "It took longer than a submission may, so that not all of it could be judged; grade it by hand."
TOO_FRAGILE = "Its code ended the process again and again, so that not all of it could be judged; grade it by hand."
SLACK, IN_VAIN = 4.0, 2  # what is too slow has this much more time once more; tries in vain of one submission
BUSY = 10.0  # times a cell's seconds that it may take by the clock where others keep the processor busy
GRACE = 3.0  # seconds between a soft limit, which learner code can ignore, and the hard one
NOT_HARD_CODED = ("not_answered", "forbidden_call", "too_slow", "input_changed", "hard_coded")
RUN_PYTHON = ("time", "timeit", "capture", "prun", "memit", "mprun")  # magics that run what stands behind or below them
# What a loose file may lack: a lesson's import cell.
PRELUDE = "import math\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F\n"

LOST_WORDS = {
    "too slow": ("too_slow", "no answer in the time it may take; is there an endless loop?"),
    "memory": ("raises", "your code took more memory than a submission may take"),
    "crowd": ("raises", "the processes that your code started took more time together than a submission may take"),
    "garbage": ("raises", "what came back from your code could not be read"),
    "died": ("raises", "the process ended while your code ran: an exit, a crash or too little memory"),
}
# What no answer needs. Whoever uses it is not wrong for that, but a person should look.
SUSPICIOUS = {
    r"helpers\.checking\.(observe|forbidden|codec|compare|verdict|key)": "reaches into the check itself",
    r"__torch_function__|TorchFunctionMode|TorchDispatchMode|_execution_engine": "interferes with how calls are seen",
    r"\bctypes\b|\bptrace\b": "uses ctypes",
    r"\bos\.(_exit|fork|kill|killpg)\b|\bsubprocess\b": "starts or ends processes",
    r"\b(socket|urllib|requests|http\.client)\b": "looks for a network",
    r"/proc/|\.\./solutions|/solutions|solutions/|gradebook": "looks for files that are not its own",
    r"(torch\.\w+|torch\.testing\.\w+|builtins\.\w+)\s*=(?!=)": "replaces functions of torch or Python",
    r"\bsetitimer\b|\bsignal\.(signal|alarm)\b": "changes timers",
}

HOSTILE_CANARY = """
import os, socket
harm = []
for path in {paths!r}:
    try:
        os.listdir(path) if os.path.isdir(path) else open(path).read()
        harm.append("read " + path)
    except OSError:
        pass
for path in {places!r}:
    if os.access(path, os.W_OK):
        harm.append("could write to " + path)
try:
    socket.create_connection(("127.0.0.1", {port}), timeout=1).close()
    harm.append("reached the network")
except OSError:
    pass
if os.getuid() == 0:
    harm.append("is root")
harm = ", ".join(harm)
import torch
torch.allclose = torch.equal = torch.testing.assert_close = lambda *a, **k: True
"""


class GraderBroken(CourseError):
    """The grader itself failed its own test: nobody may be graded. The message is one sentence for a person."""


@dataclass(frozen=True)
class Cell:
    """One code cell of a submission, in the order in which it stands.

    kind: "learner" cells run (locked cells of the release too); "check" cells are not run: there their `exercise` is
    judged; one that is "gone" was put back by the intake, so that its exercise counts as it stands at the end.
    trusted: the source is the release's own, so it is not searched for what learners should not write.
    """

    id: str
    source: str
    kind: Literal["learner", "check", "gone"] = "learner"
    exercise: str | None = None
    trusted: bool = False


@dataclass
class SubmissionResult:
    """What became of one submission.

    outputs: for each cell that ran, a list of nbformat output dicts (bounded in number and bytes).
    verdicts: one for each exercise and quiz of the lesson, in the order of the answer key.
    flags: sentences about what a person should look at.
    errors: for each cell that raised or ended the process, what happened, in one line.
    problem: a sentence where the points are not to be trusted, so that a person must grade it.
    """

    outputs: dict[str, list[dict]] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    problem: str | None = None


class Judge:
    """Judges submissions of one lesson, with inputs drawn from `seed`. Use as a context manager.

    lesson: its name or number. unsafe: run learner code in a plain process where there is no bubblewrap.
    notebook: submissions are notebook cells, else loose files. keys: those of another judge of the same lesson and
    seed. turns: a folder that all judges of a batch know (helpers/grading/turns.py). Raises CourseError (unknown
    lesson), GraderBroken (the lesson is not built), SandboxMissing.
    """

    def __init__(
        self,
        lesson: str,
        seed: int,
        unsafe: bool = False,
        notebook: bool = True,
        limits: Limits | None = None,
        keys: dict[str, ExerciseKey] | None = None,
        turns: str | None = None,
    ):
        torch.set_num_threads(1)
        self.lesson = course().lesson(lesson)
        self.seed, self.unsafe, self.notebook = seed, unsafe, notebook
        self.turns = Turns(turns)
        self.limits = limits or Limits(cell_seconds=self.lesson.cell_seconds)
        self.keys = keys if keys is not None else fresh_keys(self.lesson, seed)
        self.visible = visible_keys(self.lesson.name)
        self.released = released_sources(self.lesson)
        self.blocks = Pieces([blocks_source(self.lesson)])
        try:
            self.sandbox = Sandbox(self.lesson.name, notebook, unsafe, self.limits, course_imports(self.released))
        except SandboxFailed as error:
            raise GraderBroken(str(error)) from None

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *exc) -> None:
        self.close()

    def close(self) -> None:
        self.sandbox.close()

    def judge_cells(
        self, cells: list[Cell], exercises: list[str] | None = None, files: dict[str, bytes] | None = None
    ) -> SubmissionResult:
        """Run the learner's cells in order and judge each exercise (all of the lesson, or those named) at its check
        cell; one that is not answered there, or has none, at the end.

        files: what lies beside the notebook (helpers/grading/attachments.py).
        """
        self.sandbox.files = files or {}
        wanted = list(self.keys) if exercises is None else exercises
        with Trial(self, cells, wanted) as trial:
            for name in self.keys:
                if name in wanted:
                    trial.verdict(name)
            return trial.result(wanted)

    def judge_source(
        self,
        source: str,
        exercises: list[str] | None = None,
        name: str = "answer.py",
        files: dict[str, bytes] | None = None,
    ) -> SubmissionResult:
        """Judge a loose file, `name` being what its errors call it; without `exercises`, those that it defines."""
        self.sandbox.files = files or {}
        with Trial(self, [Cell("prelude", PRELUDE), Cell(name, source)]) as trial:
            wanted = [key for key in self.keys if trial.defines(key)] if exercises is None else exercises
            for key in self.keys:
                if key in wanted:
                    trial.verdict(key)
            return trial.result(wanted)

    def self_test(self) -> None:
        """Reference full, blank 0, hostile canary 0 and no harm done; otherwise GraderBroken."""
        try:
            self._test_reference()
            self._test_blank()
            self._test_canary()
        except SandboxFailed as error:
            raise GraderBroken(f"the sandbox stopped: {error}") from None

    def _test_reference(self) -> None:
        answers = "".join(f"\n{key.name} = {key.correct!r}" for key in self.keys.values() if key.kind == "quiz")
        answers += perfect_answers(self.lesson, self.keys, self.seed)
        result = self.judge_cells([Cell("reference", PRELUDE + blocks_source(self.lesson) + answers)])
        for name, verdict in result.verdicts.items():
            if not verdict.passed or verdict.points != verdict.max_points:
                why = verdict.message.splitlines()[0] if verdict.message else "no reason given"
                raise GraderBroken(
                    f"the reference solution scored {verdict.points:g} of {verdict.max_points:g} "
                    f"in exercise {name}: {why}"
                )

    def _test_blank(self) -> None:
        result = self.judge_cells([Cell("blank", "")])
        self._must_be_nothing(result, "a blank submission")

    def _test_canary(self) -> None:
        root = HELPERS.parent
        paths = [root / "solutions", root / "gradebook", root / "course.toml", HELPERS / "grading"]
        paths += [blocks_path(self.lesson), Path("/course/helpers/blocks") / f"{self.lesson.name}.py"]
        places = ["/course", "/usr", "/etc", "/", str(root), sys.prefix]
        exercises = [name for name, key in self.keys.items() if key.kind == "exercise"]
        wrong = "".join(f"\ndef {name}(*args, **kwargs):\n    return 12345.678\n" for name in exercises)
        with tempfile.NamedTemporaryFile() as secret, socket.create_server(("127.0.0.1", 0)) as server:
            canary = HOSTILE_CANARY.format(
                paths=[*map(str, paths), secret.name], places=places, port=server.getsockname()[1]
            )
            with Trial(self, [Cell("canary", canary + wrong)]) as trial:
                for name in exercises:
                    trial.verdict(name)
                result = trial.result(exercises)
                harm = trial.found.get("harm")
        self._must_be_nothing(result, "a hostile canary")
        if not self.unsafe and harm != ("str", ""):
            what = harm[1] if harm and harm[1] else "could not tell what it did"
            raise GraderBroken(f"the sandbox leaks: the canary {what}")

    def _must_be_nothing(self, result: SubmissionResult, who: str) -> None:
        for name, verdict in result.verdicts.items():
            if verdict.passed and verdict.max_points or verdict.points > 0:
                raise GraderBroken(f"{who} scored {verdict.points:g} in exercise {name}")


class Trial:
    """One submission before the judge: its process, restarted where it dies, and the verdicts so far.

    wanted: the exercises that are judged at their check cells, while the cells run.
    """

    def __init__(self, judge: Judge, cells: list[Cell], wanted: Iterable[str] = ()):
        self.judge = judge
        self.cells = cells
        self.wanted = set(wanted) & set(judge.keys)
        self.pieces = Pieces([cell.source for cell in cells if cell.kind == "learner"])
        self.place = 0  # of the cell that is next
        self.left_out: dict[str, str] = {}
        self.outputs: dict[str, list[dict]] = {}
        self.output_left = OUTPUT_CHARACTERS
        self.errors: dict[str, str] = {}
        self.flags: list[str] = []
        self.verdicts: dict[str, Verdict] = {}
        self.not_there: dict[str, Verdict] = {}  # of those that were not answered at their check cell
        self.standing: dict[tuple[int, str], Verdict] = {}
        self.raised: dict[str, set[str]] = {}
        self.submission: Submission | None = None
        self.found: dict[str, tuple[str, str | None]] = {}
        self.changed: set[str] = set()  # exercises whose names were bound anew below their check cells
        self.lent: set[str] = set()  # exercises of which this process has been given the finished piece
        self.restarts = 0
        self.in_vain = 0
        self.late = False
        self.end = time.monotonic() + judge.lesson.seconds

    def __enter__(self) -> Trial:
        try:
            self._flag_sources()
            self._run()
            self._find()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *exc) -> None:
        self._close()

    def _close(self) -> None:
        if self.submission is not None:
            self.submission.close()
            self.submission = None

    def result(self, wanted: list[str]) -> SubmissionResult:
        for name in wanted:
            if name in self.changed and name in self.verdicts:
                self._flag_mended(name)
        verdicts = {name: self.verdicts[name] for name in self.judge.keys if name in wanted and name in self.verdicts}
        flags = [one_line(flag) for flag in dict.fromkeys(self.flags)]
        problem = TOO_LONG if self.late else TOO_FRAGILE if self.restarts > RESTARTS else None
        return SubmissionResult(self.outputs, verdicts, flags, self.errors, problem)

    # The learner's cells.

    def _run(self) -> None:
        """Run the cells in order and judge at the check cells; one that ends the process is left out."""
        self.submission = self.judge.sandbox.submission()
        for place, cell in enumerate(self.cells):
            self.place = place
            if cell.kind == "check":
                self._judge_here(cell.exercise)
                self._tell_passed()
            elif cell.kind == "learner" and not self._run_cell(cell) and not (self._again() and self._run_cell(cell)):
                return
        self.place = len(self.cells)

    def _again(self) -> bool:
        """A fresh process in which the cells so far have run, without those that are left out."""
        while True:
            self._close()
            self.restarts += 1
            if self.restarts > RESTARTS:
                self.flags.append("Its cells ended the process again and again; the rest of it could not be judged.")
                return False
            if self._is_late():
                return False
            self.submission = self.judge.sandbox.submission()
            self.lent.clear()
            self.outputs, self.errors, self.output_left = {}, dict(self.left_out), OUTPUT_CHARACTERS
            if all(self._repeat(cell) for cell in self.cells[: self.place]):
                return True

    def _repeat(self, cell: Cell) -> bool:
        if cell.kind == "learner":
            return self._run_cell(cell)
        if cell.kind != "check":
            return True
        self._tell_passed()
        return self._look(keep=cell.exercise)

    def _tell_passed(self) -> None:
        """From here on `or_given` hands on the learner's own answers that are right, as it does in a notebook."""
        if self.submission is not None:
            with contextlib.suppress(Lost):  # a process that ended is seen by whoever asks it next
                self.submission.ask({"do": "passed", "names": [n for n, v in self.verdicts.items() if v.passed]}, 10)

    def _is_late(self) -> bool:
        """Whether this submission's time is over; from then on nothing of it is run or judged."""
        self.late = self.late or time.monotonic() > self.end
        return self.late

    def _find(self, keep: str | None = None) -> None:
        """Ask what the exercises' names are bound to now, in a fresh process where there is none."""
        self.found = {}
        while self.submission is None or not self._look(keep):
            if self.restarts >= RESTARTS or self._is_late() or not self._again():
                return

    def _look(self, keep: str | None = None) -> bool:
        """What the exercises' names are bound to. keep: a name of which the worker remembers what it stands for now.
        False where there is no answer."""
        try:
            request = {"do": "names", "names": [*self.judge.keys, "harm"], "keep": keep}
            reply = self.submission.ask(request, 10)
            found = {str(name): (str(kind), text and str(text)) for name, (kind, text) in reply["found"].items()}
            self.changed = {str(name) for name in reply["changed"]} & set(self.judge.keys)
            self._flag_patches(reply["patched"])
            self.found = found
        except (Lost, TypeError, KeyError, ValueError, AttributeError):
            self.flags.append("Its process ended after its cells had run.")
            return False
        return True

    def _flag_patches(self, patched) -> None:
        if patched:
            self.flags.append(f"Its code replaced {', '.join(str(name)[:80] for name in list(patched)[:5])}.")

    def _run_cell(self, cell: Cell) -> bool:
        """Run one cell, unless it is left out. False where it ended the process: it is left out from now on."""
        if cell.id in self.left_out:
            self.outputs[cell.id] = [error_output("CellLeftOut", self.left_out[cell.id])]
            return True
        if self._is_late():
            return True
        seconds = min(self.judge.limits.cell_seconds, max(self.end - time.monotonic(), 1.0))
        started = time.monotonic()
        try:
            request = {"do": "cell", "id": cell.id, "source": cell.source, "seconds": seconds}
            wait = max(PATIENCE * seconds, min(BUSY * seconds, self.end - started))
            reply = self.submission.ask(request, wait + GRACE)
            self.outputs[cell.id] = self._afford([clean_output(output) for output in reply["outputs"][:MOST_OUTPUTS]])
            error = str(reply["error"])[:MOST_ERROR]
        except Lost as lost:
            endless = lost.reason == "died" and time.monotonic() - started > seconds
            self._leave_out(cell, "too slow" if endless else lost.reason)
            return False
        except (TypeError, KeyError, ValueError, AttributeError):
            self._leave_out(cell, "garbage")
            return False
        if error:
            self.errors[cell.id] = error
        if error.startswith("CellTimeout"):
            self.flags.append(f"Cell {cell.id} was stopped after {seconds:g} s.")
        return True

    def _afford(self, outputs: list[dict]) -> list[dict]:
        """The outputs, or a word in their place once the submission has shown more than a page can hold."""
        self.output_left -= sum(len(str(output)) for output in outputs)
        if self.output_left >= 0:
            return outputs
        return [{"output_type": "stream", "name": "stderr", "text": "This notebook shows too much; left out.\n"}]

    def _leave_out(self, cell: Cell, reason: str) -> None:
        words = {
            "too slow": "it did not end in time",
            "memory": "it took more memory than a submission may take",
            "crowd": "the processes that it started took more time together than a submission may take",
            "garbage": "it sent something that is no output",
        }.get(reason, "it ended the process (an exit, a crash or too little memory)")
        self.left_out[cell.id] = f"this code was left out: {words}"
        self.flags.append(f"Cell {cell.id} was left out: {words}.")

    def _flag_sources(self) -> None:
        for cell in self.cells:
            if cell.trusted or cell.kind != "learner":
                continue
            for pattern, words in SUSPICIOUS.items():
                if re.search(pattern, cell.source) and cell.id != "prelude":
                    self.flags.append(f"Cell {cell.id} {words}.")

    def _alive(self) -> bool:
        """Whether there is a process to ask; one that died in an exercise is started again."""
        return self.submission is not None and (self.submission.alive() or self._again())

    # The verdicts.

    def defines(self, name: str) -> bool:
        """Whether the learner's code names this exercise at its top level."""
        return name in self.pieces.uses

    def _judge_here(self, name: str) -> None:
        """Judge an exercise at its check cell, unless there is nothing to judge yet."""
        if name not in self.wanted or name in self.verdicts:
            return
        self._find(keep=name)
        self.raised.clear()
        verdict = self._verdict(self.judge.keys[name])
        unknown_name = verdict.mistake == "raises" and self.raised.get(name) == {"NameError"}
        if not verdict.answered or self.found.get(name, ("missing",))[0] in ("missing", "none") or unknown_name:
            self.not_there[name] = verdict
        else:
            self.verdicts[name] = verdict
        self._alive()  # else the next cell would pay for what an answer did to the process

    def verdict(self, name: str) -> Verdict:
        """The verdict at the check cell, else as the answer stands at the end."""
        if name not in self.verdicts:
            verdict = self._verdict(self.judge.keys[name])
            there = self.not_there.get(name)
            if there is not None and verdict.points > there.points:
                self.flags.append(f"{name} could not be judged at its check cell; it counts as it stands at the end.")
            if there is None and verdict.answered and any(c.kind == "gone" and c.exercise == name for c in self.cells):
                self.flags.append(f"The check cell of {name} is gone; it counts as it stands at the end.")
            self.verdicts[name] = verdict if there is None or verdict.points >= there.points else there
        return self.verdicts[name]

    def _flag_mended(self, name: str) -> None:
        """Say so where an answer that is wrong at its check cell is better at the end: a person may want to know."""
        counted = self.verdicts[name]
        if counted.passed or self.judge.keys[name].kind != "exercise" or self.submission is None:
            return
        later = self._verdict(self.judge.keys[name])
        if later.points > counted.points:
            self.flags.append(
                f"{name} was changed below its check cell, where it earned {counted.points:g} of "
                f"{counted.max_points:g} points; as it stands at the end it would earn {later.points:g}."
            )

    def _stands(self, name: str) -> Verdict:
        """The verdict on an earlier answer; as it stands here, where it has none yet."""
        if name in self.verdicts:
            return self.verdicts[name]
        here = self.place, name
        if here not in self.standing:
            self.standing[here] = self._verdict(self.judge.keys[name])
        return self.standing[here]

    def _verdict(self, key: ExerciseKey) -> Verdict:
        verdict = self._judged(key)
        if key.name not in self.lent or verdict.points == 0:
            return verdict
        # Its finished piece was in this process, for a later exercise, and may have been kept for now.
        self.restarts -= 1  # nobody's fault
        if self._again():
            self._look(keep=key.name)
        return self._judged(key)

    def _judged(self, key: ExerciseKey) -> Verdict:
        if key.kind == "quiz":
            return self._quiz(key)
        for way in self.pieces.detours(key.name, banned_names(key.facts.forbidden)):
            self.flags.append(f"{key.name} reaches {way}.")
        if inside := self.pieces.looks_inside(key.name):
            self.flags.append(f"{key.name} looks inside what it is called with ({', '.join(inside)}).")
        verdict = self._observe(key)
        if perhaps_ours(verdict):
            verdict = self._with_patience(key, verdict)
        if verdict.passed:
            return verdict
        if block := self._block_in_place_of(key):
            return refused(key, "forbidden_call", forbidden_text(f"helpers.blocks.{block}", key))
        if verdict.mistake in ("not_answered", "wrong_type") and not verdict.parts:
            return verdict
        own = self._charged_once(key, verdict) or verdict
        return own if own.passed else self._hard_coded(key, own) or own

    def _quiz(self, key: ExerciseKey) -> Verdict:
        kind, text = self.found.get(key.name, ("missing", None))
        if kind in ("missing", "none"):
            return self._missing(key)
        return decide_quiz(key, text if kind == "str" else ...)

    def _observe(self, key: ExerciseKey, replace: list[str] | None = None, slack: float = 1.0) -> Verdict:
        """The verdict on the answer as it stands, or with finished blocks in place of `replace`.

        Where it fails and `from torch import *` hides Python's `float` or `range` from it, it is tried with those too.
        """
        verdict = self._observed(key, replace, slack)
        if verdict.passed or not verdict.answered or not self.pieces.starred:
            return verdict
        again = self._observed(key, replace, slack, builtins=True)
        return again if again.points > verdict.points else verdict

    def _observed(self, key: ExerciseKey, replace: list[str] | None, slack: float, builtins: bool = False) -> Verdict:
        kind, _ = self.found.get(key.name, ("missing", None))
        if kind in ("missing", "none"):
            return self._missing(key)
        if kind != "callable":
            return refused(key, "wrong_type", wrong_kind_text(key, kind))
        try:
            return decide(key, self._observations(key, replace, slack, builtins))
        except Lost as lost:
            if lost.reason == "garbage":
                self.flags.append(f"{key.name} sent something that is no observation.")
            return refused(key, *LOST_WORDS.get(lost.reason, LOST_WORDS["died"]))
        except Exception as error:  # decide met something no honest answer returns
            self.flags.append(f"{key.name} could not be judged: {type(error).__name__}: {str(error)[:200]}.")
            return refused(key, "wrong_type", "what your answer returned could not be read")

    def _with_patience(self, key: ExerciseKey, verdict: Verdict) -> Verdict:
        """The verdict with more time and nobody beside it: a slow answer, or a slow or crowded machine, is no mistake.

        Not for ever: where that was no use a few times, the rest of a submission is endless too.
        """
        if self.in_vain >= IN_VAIN:
            return verdict
        again = self._observe(key, slack=SLACK)
        self.in_vain += perhaps_ours(again)
        return again

    def _observations(
        self, key: ExerciseKey, replace: list[str] | None, slack: float, builtins: bool
    ) -> list[Observation]:
        """What a fork of the submission saw, one observation for each case. Raises Lost.

        slack: how much of the exercise's time it may take; where that is more than once, nobody is judged beside it.
        builtins: with Python's own functions where a star import hides them.
        """
        if self._is_late():
            raise Lost("too slow")
        if not self._alive():
            raise Lost("died")
        request = {
            "name": key.name,
            "facts": dataclasses.asdict(dataclasses.replace(key.facts, time_limit=slack * key.facts.time_limit)),
            # Not what a case is for, nor its words: for a yes or no they give the answer away.
            "cases": [case_to_tree(dataclasses.replace(case, part="", note="")) for case in key.cases],
            "replace": {"source": self.judge.blocks.source_of(replace), "names": replace} if replace else None,
            "builtins": builtins,
            "cpu_seconds": math.ceil(slack * max(15.0, 3 * key.facts.time_limit)),
        }
        if replace:
            self.lent.update(replace, *map(self.judge.blocks.closure, replace))
        started = time.monotonic()
        try:
            patience = slack * max(30.0, 8 * key.facts.time_limit) + GRACE
            with self.judge.turns.turn(alone=slack > 1) as waited:
                self.end += waited
                started = time.monotonic()
                reply, told = self.submission.observe(request, min(patience, max(self.end - started, 1.0)))
        except Lost as lost:
            self._is_late()
            if lost.reason == "died" and time.monotonic() - started > request["cpu_seconds"]:
                raise Lost("too slow") from None
            raise
        try:
            observations = [Observation.from_tree(tree) for tree in reply["observations"]]
            self._flag_patches(reply["patched"])
            if len(observations) != len(key.cases):
                raise Lost("garbage")
            for case, seen in zip(key.cases, observations, strict=True):
                seen.changed = [*seen.changed, *changed_of(case, seen.left)]
        except Exception:
            raise Lost("garbage") from None
        observations[0].forbidden = list(dict.fromkeys([*observations[0].forbidden, *told]))
        if not replace:
            self.raised.setdefault(key.name, {seen.error.type for seen in observations if seen.error is not None})
        return observations

    def _missing(self, key: ExerciseKey) -> Verdict:
        """Not answered, unless the code that should define the answer raised: then that is what to say."""
        pattern = re.compile(rf"^(?:async\s+)?(?:def|class)\s+{key.name}\b|^{key.name}\s*=", re.MULTILINE)
        for cell in reversed(self.cells):
            own = cell.exercise == key.name or pattern.search(cell.source) or not self.judge.notebook
            if cell.id in self.errors and own:
                error = self.errors[cell.id]
                plain = cell.id in self.left_out or error.startswith(("SyntaxError", "IndentationError", "TabError"))
                return refused(key, "raises", error if plain else f"your code raised {error}")
        return not_answered(key)

    def _block_in_place_of(self, key: ExerciseKey) -> str | None:
        """A finished block of this or a later lesson that the answer is or uses, other than through another answer."""
        own = int(self.judge.lesson.number)
        for name, lesson in self.pieces.blocks_used(key.name, set(self.judge.keys) - {key.name}):
            home = lesson if lesson is not None else home_of_block(name)
            if home is not None and home >= own:
                return name
        return None

    def _charged_once(self, key: ExerciseKey, verdict: Verdict) -> Verdict | None:
        """The verdict with finished pieces in place of earlier answers that are wrong too."""
        order = list(self.judge.keys)
        earlier = [
            name
            for name in order[: order.index(key.name)]
            if self.judge.keys[name].kind == "exercise" and name in self.pieces.closure(key.name)
        ]
        finished = [name for name in earlier if name in self.judge.blocks.uses]
        wrong = [name for name in finished if not self._stands(name).passed]
        reused = [name for name in finished if name not in wrong and name in self.changed]
        if not wrong and not reused:
            return None
        again = self._observe(key, [*wrong, *reused])
        if wrong:
            return charged_once(verdict, again, wrong, missing=not any(self._stands(name).answered for name in wrong))
        if again.points <= verdict.points:
            return None
        note = f"Judged with a finished {' and '.join(reused)}: by here the name stands for something else."
        return dataclasses.replace(again, message=f"{again.message}\n{note}" if again.message else note)

    def _hard_coded(self, key: ExerciseKey, verdict: Verdict) -> Verdict | None:
        known = verdict.mistake is not None and verdict.mistake not in RESERVED
        fails = any(part.name == VALUES and not part.passed for part in verdict.parts)
        visible = self.judge.visible.get(key.name)
        if known or not fails or visible is None or key.metric or verdict.mistake in NOT_HARD_CODED:
            return None
        shown = self._observe(visible)
        if not any(part.name == VALUES and part.passed for part in shown.parts):
            return None
        words = "right for the numbers of the visible check only; compute the result from the arguments"
        return dataclasses.replace(verdict, mistake="hard_coded", message=words)


def perhaps_ours(verdict: Verdict) -> bool:
    """Whether it may be the machine's fault: too little time, or a process that was ended."""
    return verdict.mistake == "too_slow" or verdict.message == LOST_WORDS["died"][1]


class Pieces:
    """The top level of some code: which names it binds, and which names each of them uses."""

    def __init__(self, sources: list[str]):
        self.uses: dict[str, set[str]] = {}
        self.blocks: dict[str, set[tuple[str, int | None]]] = {}
        self.starred = any(
            re.search(r"(?m)^[ \t]*+from\s+(torch|numpy|math)\b.*import\s+\*", source) for source in sources
        )
        self.nodes: list[tuple[set[str], ast.stmt]] = []
        for source in sources:
            try:
                tree = ast.parse(without_magics(source))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            for node in tree.body:
                self._add(node)

    def _add(self, node: ast.stmt) -> None:
        bound, used, blocks = set(), set(), set()
        inner = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        if inner:
            bound.add(node.name)
        for item in ast.walk(node):
            if isinstance(item, ast.Name):
                (used if isinstance(item.ctx, ast.Load) or inner else bound).add(item.id)
            elif isinstance(item, ast.Attribute):
                used.add(item.attr)
            elif isinstance(item, (ast.Import, ast.ImportFrom)):
                names = {alias.asname or alias.name.split(".")[0] for alias in item.names}
                if not inner:
                    bound |= names
                blocks |= blocks_imported(item)
            elif isinstance(item, (ast.FunctionDef, ast.ClassDef)) and not inner:
                bound.add(item.name)
        for name in bound:
            self.uses.setdefault(name, set()).update(used - {name})
            self.blocks.setdefault(name, set()).update(blocks)
        self.nodes.append((bound, node))

    def closure(self, name: str, but: Collection[str] = ()) -> set[str]:
        """All names that `name` uses, directly or through others that are bound here; not those of `but`."""
        found, waiting = set(), [name]
        while waiting:
            for used in self.uses.get(waiting.pop(), ()):
                if used not in found and used not in but:
                    found.add(used)
                    waiting.append(used)
        return found

    def blocks_used(self, name: str, but: Collection[str]) -> set[tuple[str, int | None]]:
        return {item for used in {name, *self.closure(name, but)} for item in self.blocks.get(used, ())}

    def detours(self, name: str, banned: set[str]) -> list[str]:
        """How `name`, or what it uses, may call what is banned without naming it."""
        if not banned:
            return []
        used = {name, *self.closure(name)}
        found = []
        for bound, node in self.nodes:
            if bound & used or not bound and any(isinstance(n, ast.Name) and n.id in RUNNING for n in ast.walk(node)):
                found += detours_in(node, banned)
        return list(dict.fromkeys(found))

    def looks_inside(self, name: str) -> list[str]:
        """What `name`, or what it uses, asks of functions that tells how they are made."""
        used = {name, *self.closure(name)}
        nodes = (item for bound, node in self.nodes if bound & used for item in ast.walk(node))
        return sorted({item.attr for item in nodes if isinstance(item, ast.Attribute) and item.attr in INSIDE})

    def source_of(self, names: list[str]) -> str:
        """The statements that bind `names` and all that they use, in their order."""
        wanted = set(names).union(*(self.closure(name) for name in names))
        return "\n".join(ast.unparse(node) for bound, node in self.nodes if bound & wanted)


REACHING = {"getattr", "exec", "eval", "__import__", "import_module", "attrgetter", "methodcaller", "__getattribute__"}
RUNNING = {"exec", "eval"}
INSIDE = {"__closure__", "__code__", "__globals__", "__qualname__", "cell_contents"}
SWITCHES = {"DisableTorchFunction", "DisableTorchFunctionSubclass", "_disable_current_modes", "_getframe", "setprofile"}


def detours_in(node: ast.AST, banned: set[str]) -> Iterator[str]:
    """Calls by a text that holds a banned name or is only made when they run, and switches of the looks."""
    for item in ast.walk(node):
        name = item.id if isinstance(item, ast.Name) else item.attr if isinstance(item, ast.Attribute) else ""
        if name in SWITCHES or name.startswith("_pop_"):
            yield f"for {name}"
        if isinstance(item, ast.Subscript) and _says(item.slice, banned) and _is_namespace(item.value):
            yield f"a banned name through {ast.unparse(item)[:60]}"
        if not isinstance(item, ast.Call):
            continue
        name = item.func.id if isinstance(item.func, ast.Name) else getattr(item.func, "attr", "")
        if name in REACHING and (item.args or item.keywords):  # else it is a model's own .eval()
            texts = item.args[1:2] if name == "getattr" else item.args[:1]
            if not texts or any(_says(text, banned) or not isinstance(text, ast.Constant) for text in texts):
                yield f"what it calls through {name}"


def _is_namespace(node: ast.AST) -> bool:
    """Whether this is vars(...), globals() and the like, or a __dict__."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("vars", "globals", "locals")
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


def _says(node: ast.AST, banned: set[str]) -> bool:
    """Whether a literal text holds a banned name as a word of its own."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    return any(word.strip("_").lower() in banned for word in re.findall(r"\w+", node.value))


def blocks_imported(node: ast.Import | ast.ImportFrom) -> set[tuple[str, int | None]]:
    """(block, lesson if the import says it) for an import of finished blocks."""
    if not isinstance(node, ast.ImportFrom):
        return set()
    home = re.fullmatch(r"helpers\.blocks(?:\.(\d\d)_\w+)?", node.module or "")
    if not home:
        return set()
    return {(alias.name, int(home[1]) if home[1] else None) for alias in node.names}


def home_of_block(name: str) -> int | None:
    """The number of the lesson whose finished pieces define `name`, or None."""
    from helpers.blocks import defined_names

    for path in sorted((HELPERS / "blocks").glob("[0-9]*.py")):
        if name in defined_names(path.read_text(encoding="utf-8")):
            return int(path.stem[:2])
    return None


def without_magics(source: str) -> str:
    """The source as Python can parse it: what IPython's magics run stays, other magics, shell lines and questions for
    help (`attention?`) are blanked."""
    place, magic = 0, re.compile(r"\s*+%%(\w+).*(?:\n|$)")
    while cell := magic.match(source, place):
        if cell[1] not in RUN_PYTHON:
            return ""
        place = cell.end()
    source = source[place:]
    options = r"\b(?:[ \t]+-\w+(?:[ \t]+\d+)?)*"
    source = re.sub(rf"(?m)^([ \t]*)%(?:{'|'.join(RUN_PYTHON)}){options}[ \t]+(?=\w)", r"\1", source)
    source = re.sub(r"(?m)^([ \t]*)(?:[%!?].*|[\w.]+\?{1,2}[ \t]*)$", r"\1pass", source)
    return re.sub(r"(?m)^([\w., \t]++=[ \t]*+)[%!].*$", r"\1None", source)


def error_output(name: str, text: str) -> dict:
    return {"output_type": "error", "ename": name, "evalue": text, "traceback": [f"{name}: {text}"]}


def clean_output(output: dict) -> dict:
    """An output as nbformat wants it, whatever the learner's process made of it, and no longer than the worker makes
    one. KeyError where it is none."""
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
        data = {"text/plain": "This output is too large; left out."}
    cleaned = {"output_type": kind, "data": data, "metadata": {}}
    return cleaned | {"execution_count": None} if kind == "execute_result" else cleaned


def fresh_keys(lesson, seed: int) -> dict[str, ExerciseKey]:
    """The keys of a lesson's exercises and quizzes, with inputs drawn from `seed`, in the order of the lesson."""
    described = answer_key(lesson)
    blocks = blocks_module(lesson)
    stored = list(visible_keys(lesson.name))
    names = sorted(described, key=lambda name: stored.index(name) if name in stored else len(stored))
    try:
        return {key.name: key for key in lesson_keys(lesson, [described[name] for name in names], blocks, seed)}
    except MissingPiece as error:
        raise GraderBroken(str(error)) from None
    except UnsoundKey as error:
        raise GraderBroken(f"the answer key of {lesson.name} contradicts itself: {error}") from None


PERFECT = """

def {name}(*args, **kwargs):
    import base64, zlib
    from helpers.checking.codec import dumps, loads
    table = loads(zlib.decompress(base64.b64decode({table!r})))
    asked = dumps([list(args), kwargs])
    return next(output for inputs, output in table if dumps(inputs) == asked)
"""


def perfect_answers(lesson, keys: dict[str, ExerciseKey], seed: int) -> str:
    """The source of perfect answers to the lesson's measured exercises: tables of what is true of the judge's inputs.

    They stand in for a reference, which a training would take minutes to make.
    """
    measured = [name for name, key in keys.items() if key.metric]
    described, source = answer_key(lesson) if measured else {}, ""
    for name in measured:
        cases = described[name].cases(Draw(seed))
        outputs = best_outputs(described[name], cases)
        asked = [[list(case.args), case.kwargs] for case in keys[name].cases]
        table = [[inputs, output] for inputs, output in zip(asked, outputs, strict=True)]
        source += PERFECT.format(name=name, table=base64.b64encode(zlib.compress(dumps(table))).decode())
    return source


def visible_keys(lesson: str) -> dict[str, ExerciseKey]:
    """The keys that travel with the notebooks; none where the lesson is not built."""
    try:
        return load_keys(lesson)
    except FileNotFoundError:
        return {}
    except (OSError, DamagedKey) as error:
        raise GraderBroken(str(error)) from None


def released_sources(lesson) -> set[str]:
    """The code cells that everybody gets, in which nothing is suspicious."""
    path = HELPERS.parent / "notebooks" / lesson.name / f"{lesson.name}.ipynb"
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return {"".join(cell["source"]).strip() for cell in cells if cell["cell_type"] == "code"}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def course_imports(sources: Iterable[str]) -> list[str]:
    """The course's own modules that these cells import: what every hand-in would spend its time on."""
    found = set()
    for source in sources:
        with contextlib.suppress(SyntaxError):
            for node in ast.walk(ast.parse(without_magics(source))):
                if isinstance(node, ast.Import):
                    found |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return sorted(name for name in found if name.startswith("helpers."))


def answer_key(lesson) -> dict[str, object]:
    """Exercises and quizzes of the lesson's answer_key.py, by name."""
    path = HELPERS.parent / "solutions" / lesson.name / "answer_key.py"
    module = load(path, f"answer_key_{lesson.name}", lesson)
    return {item.name: item for item in (*module.exercises, *getattr(module, "quizzes", ()))}


def blocks_path(lesson) -> Path:
    return HELPERS / "blocks" / f"{lesson.name}.py"


def blocks_source(lesson) -> str:
    try:
        return blocks_path(lesson).read_text(encoding="utf-8")
    except OSError:
        words = f"the finished blocks of {lesson.name} are missing; run `course build {lesson.name}`"
        raise GraderBroken(words) from None


def blocks_module(lesson) -> ModuleType:
    return load(blocks_path(lesson), f"helpers.blocks.{lesson.name}", lesson)


def load(path: Path, name: str, lesson) -> ModuleType:
    """A module from its file. GraderBroken where it is missing or does not run."""
    if not path.is_file():
        raise GraderBroken(f"{path.name} of {lesson.name} is missing, so there is nothing to judge with")
    try:
        return load_source(path, name)
    except Exception as error:
        raise GraderBroken(f"{path.name} of {lesson.name} does not run: {type(error).__name__}: {error}") from None
