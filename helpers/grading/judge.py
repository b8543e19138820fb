"""The trusted side of grading: fresh inputs go into the sandbox, raw tensors come back, the verdict is made here.

A Judge knows a lesson and holds its sandbox; a Trial is one submission before it, with the verdicts so far.
"""

import contextlib
import dataclasses
import math
import re
from collections.abc import Collection, Sequence

import torch

from helpers.checking.forbidden import banned_names
from helpers.checking.key import ExerciseKey
from helpers.checking.messages import decide, forbidden_text
from helpers.checking.observe import Observation, case_to_tree, changed_of
from helpers.checking.retry import TriedAnswer
from helpers.checking.session import wrong_kind_text
from helpers.checking.verdict import RESERVED, Verdict, decide_quiz, not_answered, refused
from helpers.checking.vocabulary import VALUES, Case
from helpers.course import course
from helpers.grading.learner_process import Lost
from helpers.grading.name_bindings import TopLevel, home_of_block
from helpers.grading.reference import PRELUDE, GraderBroken, blocks_source, fresh_keys, release_imports, visible_keys
from helpers.grading.safe_text import one_line
from helpers.grading.sandbox import Limits, Sandbox, SandboxFailed
from helpers.grading.submission import Cell, SubmissionReport
from helpers.grading.submission_run import NOT_RAISED, SubmissionRun
from helpers.grading.suspicious_code import flags_of

TOO_DEEP = "Its code is nested too deeply to be looked at; grade it by hand."
TOO_LONG = "It took longer than a submission may, so not all of it could be judged; grade it by hand."
TOO_FRAGILE = "Its code ended the process again and again, so not all of it could be judged; grade it by hand."
RETRY_TIME = 4.0  # times its limit that an answer gets when it is tried again because it was too slow
MAX_FUTILE = 2  # such retries of one submission that were too slow again
HURRIED = 20.0  # seconds that a submission may take while others wait for their turn
ABSENT = ("missing", "none")  # what a name is bound to that is no answer
NOT_HARD_CODED = ("not_answered", "forbidden_call", "too_slow", "input_changed", "hard_coded")
LOST_WORDS = {
    "too slow": ("too_slow", "no answer within the time limit; is there an endless loop?"),
    "memory": ("raises", "your code took more memory than a submission may take"),
    "crowd": ("raises", "your code started too many processes, or took more processor time with them than it may"),
    "stopped": ("raises", "your code stopped the process that it runs in"),
    "garbage": ("raises", "what came back from your code could not be read"),
    "died": ("raises", "the process ended while your code ran: an exit, a crash or too little memory"),
}


class Judge(contextlib.AbstractContextManager):
    """Judges submissions of one lesson, with inputs drawn from `seed`. Use as a context manager.

    lesson: its name or number. unsafe: run learner code in a plain process where there is no bubblewrap.
    notebook: submissions are notebook cells, else loose files. keys: those of another judge of the same lesson and
    seed.
    Raises CourseError (unknown lesson), GraderBroken (the lesson is not built), SandboxMissing.
    """

    def __init__(
        self,
        lesson: str,
        seed: int,
        unsafe: bool = False,
        notebook: bool = True,
        limits: Limits | None = None,
        keys: dict[str, ExerciseKey] | None = None,
    ):
        torch.set_num_threads(1)
        self.lesson = course().lesson(lesson)
        self.seed, self.unsafe, self.notebook = seed, unsafe, notebook
        self.limits = limits or Limits(cell_seconds=self.lesson.cell_seconds)
        self.keys = keys if keys is not None else fresh_keys(self.lesson, seed)
        self.visible = visible_keys(self.lesson.name)
        self.blocks = TopLevel([blocks_source(self.lesson)])
        try:
            given = release_imports(self.lesson, self.keys) if notebook else PRELUDE
            self.sandbox = Sandbox(self.lesson.name, notebook, unsafe, self.limits, given)
        except SandboxFailed as error:
            raise GraderBroken(str(error)) from None

    def __exit__(self, *exc) -> None:
        self.sandbox.close()

    def judge_cells(
        self,
        cells: list[Cell],
        exercises: list[str] | None = None,
        files: dict[str, bytes] | None = None,
        hurried: bool = False,
    ) -> SubmissionReport:
        """Run the learner's cells in order and judge each exercise at its check cell; one that is not answered
        there, or has none, at the end.

        exercises: those that are judged, else all of the lesson, or of a loose file all that it defines. files: what
        lies beside the notebook (helpers/grading/attachments.py). hurried: others wait, so what takes long is given up
        soon, with the problem TOO_LONG.
        """
        self.sandbox.files = files or {}
        wanted = list(self.keys) if exercises is None else exercises
        try:
            with Trial(self, cells, wanted, hurried) as trial:
                if exercises is None and not self.notebook:
                    wanted = [name for name in self.keys if name in trial.code.bound]
                for name in self.keys:
                    if name in wanted:
                        trial.verdict(name)
                return trial.result(wanted)
        except RecursionError:
            return SubmissionReport({key.name: not_answered(key) for key in self.keys.values()}, problem=TOO_DEEP)


class Trial:
    """One submission, and the verdicts on it so far. Use as a context manager.

    wanted: the exercises that are judged at their check cells, while the cells run. hurried: as in `judge_cells`.
    """

    def __init__(self, judge: Judge, cells: list[Cell], wanted: Collection[str] = (), hurried: bool = False):
        self.judge, self.cells, self.hurried = judge, cells, hurried
        self.wanted = set(wanted) & set(judge.keys)
        self.code, self.cells_read = TopLevel(), 0  # of the cells that ran so far, and how many these are
        self.run = SubmissionRun(judge.sandbox, cells, judge.keys, HURRIED if hurried else judge.lesson.seconds)
        self.verdicts: dict[str, Verdict] = {}
        self.unanswered: dict[str, Verdict] = {}  # of those that were not answered at their check cell
        self.provisional: dict[tuple[int, str], Verdict] = {}
        self.detours: dict[str, list[str]] = {}  # way around the watch -> exercises that take it
        self.raised: dict[str, set[str]] = {}
        self.gone: list[str] = []  # exercises whose check cells are
        self.futile_retries = 0

    def __enter__(self) -> "Trial":
        try:
            self.run.run_cells(self._judge_at_check)
            self._read_cells(len(self.cells))
            self.run.find_bindings()
        except BaseException:
            self.run.close()
            raise
        return self

    def __exit__(self, *exc) -> None:
        self.run.close()

    def result(self, wanted: list[str]) -> SubmissionReport:
        run = self.run
        for name in wanted:
            if name in run.rebound and name in self.verdicts:
                self._flag_better_below(name)
        exercises = [key for key in self.judge.keys.values() if key.kind == "exercise"]
        banned = set().union(*(banned_names(key.facts.forbidden) for key in exercises))
        if self.gone:
            these = f"cell of {self.gone[0]} is" if len(self.gone) == 1 else f"cells of {', '.join(self.gone)} are"
            run.flags.append(f"The check {these} gone; what stands at the end counts.")
        run.flags += [f"Code outside of the answers reaches {detour}." for detour in self.code.runs_text(banned)]
        for detour, names in self.detours.items():
            takers = " and ".join(dict.fromkeys(names))
            run.flags.append(f"{takers} {'reach' if ' and ' in takers else 'reaches'} {detour}.")
        verdicts = {name: self.verdicts[name] for name in self.judge.keys if name in wanted and name in self.verdicts}
        flags = [one_line(flag) for flag in dict.fromkeys(run.flags)]
        problem = TOO_LONG if run.late else TOO_FRAGILE if run.too_fragile() else None
        return SubmissionReport(verdicts, run.outputs, flags, run.errors, problem)

    def _read_cells(self, index: int) -> None:
        """Read the code above a cell: what stands below a check costs nothing at it."""
        for cell in self.cells[self.cells_read : index]:
            if cell.runs:
                body = self.code.read(cell.source)
                self.run.flags += [] if cell.trusted else flags_of(cell, body)
        self.cells_read = index

    def _judge_at_check(self, name: str) -> None:
        """Judge an exercise at its check cell, unless there is nothing to judge yet."""
        if name not in self.wanted or name in self.verdicts:
            return
        self.run.find_bindings(keep=name)
        self._read_cells(self.run.index)
        self.raised.clear()
        verdict = self._verdict(self.judge.keys[name])
        unknown_name = verdict.mistake == "raises" and self.raised.get(name) == {"NameError"}
        if not verdict.answered or self.run.bindings.get(name, ABSENT)[0] in ABSENT or unknown_name:
            self.unanswered[name] = verdict
        else:
            self._record(name, verdict)
        self.run.ensure_alive()  # else the next cell would pay for what an answer did to the process

    def verdict(self, name: str) -> Verdict:
        """The verdict at the check cell, else as the answer stands at the end."""
        if name not in self.verdicts:
            verdict = self._verdict(self.judge.keys[name])
            at_check = self.unanswered.get(name, verdict)
            if verdict.points > at_check.points:
                self.run.flags.append(
                    f"{name} could not be judged at its check cell; it counts as it stands at the end."
                )
            gone = any(cell.gone and cell.exercise == name for cell in self.cells)
            if name not in self.unanswered and verdict.answered and gone:
                self.gone.append(name)
            self._record(name, max(verdict, at_check, key=lambda one: one.points))
        return self.verdicts[name]

    def _record(self, name: str, verdict: Verdict) -> None:
        self.verdicts[name] = verdict
        if verdict.passed:
            self.run.passed.append(name)

    def _flag_better_below(self, name: str) -> None:
        """Say so where an answer that is wrong at its check cell is better at the end: a person may want to know."""
        counted = self.verdicts[name]
        if counted.passed or self.judge.keys[name].kind != "exercise" or self.run.process is None:
            return
        later = self._verdict(self.judge.keys[name])
        if later.points > counted.points:
            self.run.flags.append(
                f"{name} was changed below its check cell, where it earned {counted.points:g} of "
                f"{counted.max_points:g} points; as it stands at the end it would earn {later.points:g}."
            )

    def earlier_verdict(self, name: str) -> Verdict:
        """The verdict on an earlier answer; as it stands here, where it has none yet."""
        here = self.run.index, name
        if name not in self.verdicts and here not in self.provisional:
            self.provisional[here] = self._verdict(self.judge.keys[name])
        return self.verdicts.get(name) or self.provisional[here]

    def _verdict(self, key: ExerciseKey) -> Verdict:
        verdict = self._judge_exercise(key)
        if key.name not in self.run.blocks_lent or verdict.points == 0:
            return verdict
        # Its finished block was in this process, for a later exercise, and may have been kept for now.
        self.run.restart_unblamed(keep=key.name)
        return self._judge_exercise(key)

    def _judge_exercise(self, key: ExerciseKey) -> Verdict:
        if key.kind == "quiz":
            kind, text = self.run.bindings.get(key.name, ("missing", None))
            return self._missing(key) if kind in ABSENT else decide_quiz(key, text if kind == "str" else ...)
        for detour in self.code.detours(key.name, banned_names(key.facts.forbidden)):
            self.detours.setdefault(detour, []).append(key.name)
        if inside := self.code.looks_inside(key.name):
            self.run.flags.append(f"{key.name} looks inside what it is called with ({', '.join(inside)}).")
        kind, _ = self.run.bindings.get(key.name, ("missing", None))
        if kind in ABSENT:
            verdict = self._missing(key)  # so is a block that this lesson's sandbox has not, when it is imported
            return self.refusal(key, verdict) or verdict
        if kind != "callable":
            return refused(key, "wrong_type", wrong_kind_text(key, kind))
        verdict = SandboxAnswer(key, self).verdict()
        return verdict if verdict.passed else self._hard_coded(key, verdict) or verdict

    def earlier_called(self, key: ExerciseKey) -> list[str]:
        """The earlier exercises that an answer calls, of those that have a finished block."""
        order = list(self.judge.keys)
        called = self.code.closure(key.name)
        return [name for name in order[: order.index(key.name)] if name in called and name in self.judge.blocks.bound]

    def refusal(self, key: ExerciseKey, verdict: Verdict) -> Verdict | None:
        """Another verdict where the answer is, or uses, a finished block of this or a later lesson, other than through
        another answer; the same where it is of a wrong type altogether."""
        for name, lesson in self.code.blocks_used(key.name, set(self.judge.keys) - {key.name}):
            home = lesson if lesson is not None else home_of_block(name)
            if home is not None and home >= int(self.judge.lesson.number):
                return refused(key, "forbidden_call", forbidden_text(f"helpers.blocks.{name}", key))
        return verdict if verdict.mistake == "wrong_type" and not verdict.parts else None

    def observe(self, key: ExerciseKey, replaced: Sequence[str] = (), builtins: bool = False) -> Verdict:
        """The verdict on a callable answer, with more time where it was slow: a crowded machine is not a mistake.

        Not for ever: where that was no use a few times, the rest of a submission is endless too. And not while others
        wait: a hurried submission ends here.

        replaced: earlier answers that are replaced by finished blocks. builtins: with Python's own functions where a
        star import hides them.
        """
        verdict = self._verdict_on_observations(key, replaced, builtins)
        if replaced or builtins or not may_be_graders_fault(verdict) or self.futile_retries >= MAX_FUTILE:
            return verdict
        if self.hurried:
            self.run.late = True
            return verdict
        retried = self._verdict_on_observations(key, time_factor=RETRY_TIME)
        self.futile_retries += may_be_graders_fault(retried)
        return retried

    def _verdict_on_observations(self, key: ExerciseKey, *how, **more) -> Verdict:
        try:
            return decide(key, self._observations(key, *how, **more))
        except Lost as lost:
            if lost.reason == "garbage":
                self.run.flags.append(f"{key.name} sent something that is not an observation.")
            return refused(key, *LOST_WORDS.get(lost.reason, LOST_WORDS["died"]))
        except Exception as error:  # decide met something no honest answer returns
            self.run.flags.append(f"{key.name} could not be judged: {type(error).__name__}: {str(error)[:200]}.")
            return refused(key, "wrong_type", "what your answer returned could not be read")

    def _observations(
        self, key: ExerciseKey, replaced: Sequence[str] = (), builtins: bool = False, time_factor: float = 1.0
    ) -> list[Observation]:
        """What forks of the submission's process saw, one observation for each case. Raises Lost.

        Each case of a measured answer has a fork of its own, so that a model cannot remember what it said in another.
        time_factor: how many times the exercise's time it may take.
        """
        blocks = self.judge.blocks
        request = {
            "name": key.name,
            "facts": dataclasses.asdict(dataclasses.replace(key.facts, time_limit=time_factor * key.facts.time_limit)),
            "measured": bool(key.metric),
            "replace": {"source": blocks.source_of(replaced), "names": [*replaced]} if replaced else None,
            "builtins": builtins,
            "cpu_seconds": math.ceil(time_factor * max(15.0, 3 * key.facts.time_limit)),
        }
        self.run.blocks_lent.update(replaced, *map(blocks.closure, replaced))
        patience = time_factor * max(30.0, 8 * key.facts.time_limit)
        forks = [[case] for case in key.cases] if key.metric else [key.cases]
        return [one for cases in forks for one in self._observe_in_fork(key, cases, request, patience)]

    def _observe_in_fork(
        self, key: ExerciseKey, cases: list[Case], request: dict, patience: float
    ) -> list[Observation]:
        """What one fork saw of some cases. Raises Lost."""
        # Not what a case is for, nor its words: for a yes or no they give the answer away.
        told = [case_to_tree(dataclasses.replace(case, part="", note="")) for case in cases]
        reply, notes = self.run.call_answer({**request, "cases": told}, patience)
        try:
            observations = [Observation.from_tree(tree) for tree in reply["observations"]]
            self.run.flag_environment(reply)
            if key.metric and not reply["ran"] and all(observation.error is None for observation in observations):
                self.run.flags.append(f"{key.name} answered without running a model.")
            if reply["raised"]:
                self.run.flags.append(f"{key.name} raised {reply['raised']} in the observed call, and in no other.")
            for case, observation in zip(cases, observations, strict=True):
                observation.changed = [*observation.changed, *changed_of(case, observation.left)]
        except Exception:
            raise Lost("garbage") from None
        observations[0].forbidden = list(dict.fromkeys([*observations[0].forbidden, *notes]))
        if not request["replace"]:
            self.raised.setdefault(key.name, set()).update(one.error.type for one in observations if one.error)
        return observations

    def _missing(self, key: ExerciseKey) -> Verdict:
        """Not answered, unless the code that should define the answer raised: then that is what to say."""
        pattern = re.compile(rf"^(?:async\s+)?(?:def|class)\s+{key.name}\b|^{key.name}\s*=", re.MULTILINE)
        for cell in reversed(self.cells):
            defines_it = cell.exercise == key.name or pattern.search(cell.source) or not self.judge.notebook
            if cell.id in self.run.errors and defines_it:
                error = self.run.errors[cell.id]
                plain = cell.id in self.run.left_out or error.startswith(NOT_RAISED)
                return refused(key, "raises", error if plain else f"your code raised {error}")
        return not_answered(key)

    def _hard_coded(self, key: ExerciseKey, verdict: Verdict) -> Verdict | None:
        """Another verdict on an answer that is right for the numbers that learners see alone."""
        named = verdict.mistake is not None and verdict.mistake not in RESERVED
        fails = any(part.name == VALUES and not part.passed for part in verdict.parts)
        visible_key = self.judge.visible.get(key.name) if self.wanted else None  # the self test need not know
        if named or not fails or visible_key is None or key.metric or verdict.mistake in NOT_HARD_CODED:
            return None
        on_visible = self.observe(visible_key)
        if not any(part.name == VALUES and part.passed for part in on_visible.parts):
            return None
        message = "right for the numbers of the visible check only; compute the result from the arguments"
        return dataclasses.replace(verdict, mistake="hard_coded", message=message)


class SandboxAnswer(TriedAnswer):
    """An answer that is tried in forks of its submission's process."""

    def __init__(self, key: ExerciseKey, trial: Trial):
        super().__init__(key)
        self.trial = trial

    def observe(self, replaced: Sequence[str], builtins: bool) -> Verdict:
        return self.trial.observe(self.key, replaced, builtins)

    def hides_builtins(self) -> bool:
        return self.trial.code.starred

    def earlier(self) -> dict[str, Verdict]:
        return {name: self.trial.earlier_verdict(name) for name in self.trial.earlier_called(self.key)}

    def has_block(self, name: str) -> bool:
        return name in self.trial.judge.blocks.bound

    def refusal(self, verdict: Verdict) -> Verdict | None:
        return self.trial.refusal(self.key, verdict)

    def rebound(self) -> list[str]:
        called = [name for name in self.trial.earlier_called(self.key) if name in self.trial.run.rebound]
        return [name for name in called if self.trial.earlier_verdict(name).passed]


def may_be_graders_fault(verdict: Verdict) -> bool:
    """Whether it may be the machine's fault: too little time, or a process that was ended."""
    return verdict.mistake == "too_slow" or verdict.message == LOST_WORDS["died"][1]
