"""The trusted part of grading: it sends fresh inputs into the sandbox, gets raw tensors back, and decides the verdict.

A Judge has a lesson and its sandbox. A Trial is one submission that it judges, with the verdicts so far.
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

TOO_DEEP = "Its code is nested too deeply to be analyzed; grade it by hand."
TOO_LONG = "It took longer than a submission may, so not all of it could be judged; grade it by hand."
TOO_FRAGILE = "Its code ended the process again and again, so not all of it could be judged; grade it by hand."
RETRY_TIME = 4.0  # An answer that was too slow is tried again with this many times its time limit.
MAX_FUTILE = 2  # A submission gets no further retries after this many of them were too slow as well.
HURRIED = 20.0  # seconds that a submission may take while others wait for their turn
ABSENT = ("missing", "none")  # kinds of bindings, as in inside/answers.py, which mean that there is no answer
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
    """Judges submissions of one lesson, with inputs drawn from `seed`. Use it as a context manager.

    lesson: name or number. unsafe: run learner code in an ordinary process, without a sandbox.
    notebook: whether submissions are notebook cells or loose files. keys: the answer keys of another judge with the
    same lesson and seed, to save time.
    Raises CourseError (unknown lesson), GraderBroken (the lesson is not built) or SandboxMissing.
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
        """Run the learner's cells in order and judge each exercise at its check cell, or after the last cell if it has
        no check cell or no answer there.

        exercises: the ones to judge, by default all of the lesson, or those that a loose file defines. files: the files
        that accompany the notebook (helpers/grading/attachments.py). hurried: others wait, so give up early if it takes
        long, and report the problem TOO_LONG.
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
    """One submission and the verdicts on it so far. Use it as a context manager: entering it runs the cells.

    wanted: the exercises to judge at their check cells, while the cells run. hurried: as in `judge_cells`.
    """

    def __init__(self, judge: Judge, cells: list[Cell], wanted: Collection[str] = (), hurried: bool = False):
        self.judge, self.cells, self.hurried = judge, cells, hurried
        self.wanted = set(wanted) & set(judge.keys)
        self.code, self.cells_read = TopLevel(), 0  # the code of the cells that ran so far, and the number of cells
        self.run = SubmissionRun(judge.sandbox, cells, judge.keys, HURRIED if hurried else judge.lesson.seconds)
        self.verdicts: dict[str, Verdict] = {}
        self.unanswered: dict[str, Verdict] = {}  # verdicts on exercises that were not answered at their check cells
        self.provisional: dict[tuple[int, str], Verdict] = {}  # (index of a cell, exercise) -> verdict on it there
        self.detours: dict[str, list[str]] = {}  # a way to call something forbidden unobserved -> exercises that use it
        self.raised: dict[str, set[str]] = {}  # exercise -> types of the errors that its answer raised
        self.gone: list[str] = []  # exercises whose check cells were deleted
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
        """The report on the submission, with the verdicts on the exercises in `wanted`."""
        run = self.run
        for name in wanted:
            if name in run.rebound and name in self.verdicts:
                self._flag_better_below(name)
        run.flags += [f"The answer cell of {name} defines other names, but no {name}." for name in self._misnamed()]
        exercises = [key for key in self.judge.keys.values() if key.kind == "exercise"]
        banned = set().union(*(banned_names(key.facts.forbidden) for key in exercises))
        if self.gone:
            cells = f"cell of {self.gone[0]} was" if len(self.gone) == 1 else f"cells of {', '.join(self.gone)} were"
            run.flags.append(f"The check {cells} deleted; the code at the end of the notebook counts.")
        run.flags += [f"Code outside of the answers reaches {detour}." for detour in self.code.code_in_strings(banned)]
        for detour, names in self.detours.items():
            takers = " and ".join(dict.fromkeys(names))
            run.flags.append(f"{takers} {'reach' if ' and ' in takers else 'reaches'} {detour}.")
        verdicts = {name: self.verdicts[name] for name in self.judge.keys if name in wanted and name in self.verdicts}
        flags = [one_line(flag) for flag in dict.fromkeys(run.flags)]
        problem = TOO_LONG if run.late else TOO_FRAGILE if run.too_fragile() else None
        return SubmissionReport(verdicts, run.outputs, flags, run.errors, problem)

    def _misnamed(self) -> list[str]:
        """The exercises without an answer whose answer cells were changed and define something else."""
        changed = {cell.exercise: cell.source for cell in self.cells if cell.kind == "answer" and not cell.trusted}
        unanswered = [name for name, verdict in self.verdicts.items() if not verdict.answered]
        missing = [name for name in unanswered if name in changed and name not in self.code.bound]
        return [name for name in missing if TopLevel([changed[name]]).bound]

    def _read_cells(self, index: int) -> None:
        """Read the code above the cell at `index`. Code below a check must not affect the verdict there."""
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
        self.run.ensure_alive()  # If the answer ended the process, the next cell must not be blamed for it.

    def verdict(self, name: str) -> Verdict:
        """The verdict at the check cell, or if there is none, on the answer after the last cell."""
        if name not in self.verdicts:
            at_end = self._verdict(self.judge.keys[name])
            at_check = self.unanswered.get(name, at_end)
            if at_end.points > at_check.points:
                self.run.flags.append(
                    f"{name} could not be judged at its check cell; its code at the end of the notebook counts."
                )
            gone = any(cell.gone and cell.exercise == name for cell in self.cells)
            if name not in self.unanswered and at_end.answered and gone:
                self.gone.append(name)
            self._record(name, max(at_end, at_check, key=lambda verdict: verdict.points))
        return self.verdicts[name]

    def _record(self, name: str, verdict: Verdict) -> None:
        self.verdicts[name] = verdict
        if verdict.passed:
            self.run.passed.append(name)

    def _flag_better_below(self, name: str) -> None:
        """Flag an answer that is wrong at its check cell and better after the last cell, for a person to decide."""
        at_check = self.verdicts[name]
        if at_check.passed or self.judge.keys[name].kind != "exercise" or self.run.process is None:
            return
        at_end = self._verdict(self.judge.keys[name])
        if at_end.points > at_check.points:
            self.run.flags.append(
                f"{name} was changed below its check cell, where it earned {at_check.points:g} of "
                f"{at_check.max_points:g} points; its code at the end of the notebook would earn {at_end.points:g}."
            )

    def earlier_verdict(self, name: str) -> Verdict:
        """The verdict on an earlier answer, or a provisional one if its exercise has not been judged yet."""
        key = self.run.index, name
        if name not in self.verdicts and key not in self.provisional:
            self.provisional[key] = self._verdict(self.judge.keys[name])
        return self.verdicts.get(name) or self.provisional[key]

    def _verdict(self, key: ExerciseKey) -> Verdict:
        verdict = self._judge_exercise(key)
        if key.name not in self.run.blocks_lent or verdict.points == 0:
            return verdict
        # A later exercise used the finished block in this process, where learner code may have stored it for this one.
        self.run.restart_unblamed(keep=key.name)
        return self._judge_exercise(key)

    def _judge_exercise(self, key: ExerciseKey) -> Verdict:
        if key.kind == "quiz":
            kind, text = self.run.bindings.get(key.name, ("missing", None))
            return self._missing(key) if kind in ABSENT else decide_quiz(key, text if kind == "str" else ...)
        banned = banned_names(key.facts.forbidden)
        for detour in self.code.detours(key.name, banned):
            self.detours.setdefault(detour, []).append(key.name)
        if inside := self.code.internals_read(key.name):
            self.run.flags.append(f"{key.name} inspects the functions that it is called with ({', '.join(inside)}).")
        kind, _ = self.run.bindings.get(key.name, ("missing", None))
        if kind in ABSENT:
            # The name is also missing if the learner imported a finished block that this lesson's sandbox lacks.
            verdict = self._missing(key)
            return self.refusal(key, verdict) or verdict
        if kind != "callable":
            return refused(key, "wrong_type", wrong_kind_text(key, kind))
        verdict = SandboxAnswer(key, self).verdict()
        if verdict.points and (named := self.code.banned_in(key.name, banned, self.judge.keys)):
            names = ", ".join(named)
            self.run.flags.append(f"{key.name} contains {names}, which is forbidden there, but no call of it was seen.")
        return verdict if verdict.passed else self._hard_coded(key, verdict) or verdict

    def earlier_called(self, key: ExerciseKey) -> list[str]:
        """The earlier exercises that an answer calls and that have a finished block."""
        order = list(self.judge.keys)
        called = self.code.closure(key.name)
        return [name for name in order[: order.index(key.name)] if name in called and name in self.judge.blocks.bound]

    def refusal(self, key: ExerciseKey, verdict: Verdict) -> Verdict | None:
        """The verdict that replaces `verdict` if the answer is, or uses other than through another answer, a finished
        block of this or a later lesson; the same verdict if the answer is not of the required type; None otherwise."""
        for name, number in self.code.blocks_used(key.name, set(self.judge.keys) - {key.name}):
            number = number if number is not None else home_of_block(name)
            if number is not None and number >= int(self.judge.lesson.number):
                return refused(key, "forbidden_call", forbidden_text(f"helpers.blocks.{name}", key))
        return verdict if verdict.mistake == "wrong_type" and not verdict.parts else None

    def observe(self, key: ExerciseKey, replaced: Sequence[str] = (), builtins: bool = False) -> Verdict:
        """The verdict on a callable answer. If it was too slow it gets more time, because the computer may be busy.

        After a few retries without success there are no more, because other answers are then probably endless as well.
        A hurried submission is not retried but ends here, because others wait.

        replaced: earlier answers to replace with finished blocks. builtins: whether to restore Python's built-in
        functions that a star import replaced.
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

    def _verdict_on_observations(self, key: ExerciseKey, *args, **kwargs) -> Verdict:
        """The verdict on an answer, from its observations or from the reason why its process was lost."""
        try:
            return decide(key, self._observations(key, *args, **kwargs))
        except Lost as lost:
            if lost.reason == "garbage":
                self.run.flags.append(f"{key.name} sent something that is not an observation.")
            return refused(key, *LOST_WORDS.get(lost.reason, LOST_WORDS["died"]))
        except Exception as error:  # No honest answer returns a value with which `decide` fails.
            self.run.flags.append(f"{key.name} could not be judged: {type(error).__name__}: {str(error)[:200]}.")
            return refused(key, "wrong_type", "what your answer returned could not be read")

    def _observations(
        self, key: ExerciseKey, replaced: Sequence[str] = (), builtins: bool = False, time_factor: float = 1.0
    ) -> list[Observation]:
        """Observe the answer in forks of the submission's process. Returns one observation per case. Raises Lost.

        If a model is measured, each case gets its own fork, so that the model cannot remember what it returned for
        another case. time_factor: the factor by which the exercise's time limit is multiplied.
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
        return [observation for cases in forks for observation in self._observe_in_fork(key, cases, request, patience)]

    def _observe_in_fork(
        self, key: ExerciseKey, cases: list[Case], request: dict, patience: float
    ) -> list[Observation]:
        """Observe some cases in one fork. Raises Lost."""
        # Learner code must not see a case's part and note, which give the answer away if it is True or False.
        trees = [case_to_tree(dataclasses.replace(case, part="", note="")) for case in cases]
        reply, notes = self.run.call_answer({**request, "cases": trees}, patience)
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
            errors = [observation.error for observation in observations if observation.error]
            self.raised.setdefault(key.name, set()).update(error.type for error in errors)
        return observations

    def _missing(self, key: ExerciseKey) -> Verdict:
        """The verdict on an undefined answer: not answered, or the error of the code that should define it."""
        pattern = re.compile(rf"^(?:async\s+)?(?:def|class)\s+{key.name}\b|^{key.name}\s*=", re.MULTILINE)
        for cell in reversed(self.cells):
            defines_it = cell.exercise == key.name or pattern.search(cell.source) or not self.judge.notebook
            if cell.id in self.run.errors and defines_it:
                error = self.run.errors[cell.id]
                plain = cell.id in self.run.left_out or error.startswith(NOT_RAISED)
                return refused(key, "raises", error if plain else f"your code raised {error}")
        return not_answered(key)

    def _hard_coded(self, key: ExerciseKey, verdict: Verdict) -> Verdict | None:
        """The verdict that replaces `verdict` if the answer is right only for the inputs that learners see, or None."""
        named = verdict.mistake is not None and verdict.mistake not in RESERVED
        fails = any(part.name == VALUES and not part.passed for part in verdict.parts)
        visible_key = self.judge.visible.get(key.name) if self.wanted else None  # The self-test does without this.
        if named or not fails or visible_key is None or key.metric or verdict.mistake in NOT_HARD_CODED:
            return None
        on_visible = self.observe(visible_key)
        if not any(part.name == VALUES and part.passed for part in on_visible.parts):
            return None
        message = "right for the numbers of the visible check only; compute the result from the arguments"
        return dataclasses.replace(verdict, mistake="hard_coded", message=message)


class SandboxAnswer(TriedAnswer):
    """An answer that is called in forks of its submission's process."""

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
    """Whether a verdict may be due to the computer and not to the answer: too slow, or a process that was killed."""
    return verdict.mistake == "too_slow" or verdict.message == LOST_WORDS["died"][1]
