"""How an answer is tried again, in the notebook as in the grader, and how two verdicts on it become one.

An error is charged once: an answer that fails and calls earlier ones that are wrong too is tried again with finished
blocks in their place. Nor is it charged with Python's own functions where `from torch import *` hides them from it.
"""

import builtins
import contextlib
import dataclasses
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from helpers.checking.forbidden import not_watched
from helpers.checking.key import ExerciseKey
from helpers.checking.messages import with_message
from helpers.checking.verdict import Verdict
from helpers.or_finished import stand_in_for


class TriedAnswer:
    """An answer that can be tried again. Notebook and grader each say how; nothing is asked before it matters, so that
    of a right answer only the first observation is made."""

    def __init__(self, key: ExerciseKey):
        self.key = key

    def observe(self, replaced: Sequence[str], builtins: bool) -> Verdict:
        """The verdict with finished blocks in place of the earlier answers of these names, and with Python's own
        functions where they are hidden or not."""
        raise NotImplementedError

    def hides_builtins(self) -> bool:
        """Whether the names that the answer looks up hide functions of Python's."""
        raise NotImplementedError

    def earlier(self) -> dict[str, Verdict]:
        """The verdicts on the earlier answers that it calls, itself or through others, in the lesson's order."""
        raise NotImplementedError

    def has_block(self, name: str) -> bool:
        """Whether a finished block of an exercise is at hand."""
        raise NotImplementedError

    def refusal(self, verdict: Verdict) -> Verdict | None:
        """Another verdict on an answer that failed, which no finished block changes; else None."""
        return None

    def rebound(self) -> list[str]:
        """Earlier answers that passed, and whose names stand for something else by now."""
        return []

    def verdict(self) -> Verdict:
        """The verdict on the answer, with its words."""
        first = self._better_of_two_verdicts([])
        if first.passed or not first.answered:
            return first
        return self.refusal(first) or self._retry_with_blocks(first)

    def _better_of_two_verdicts(self, replaced: Sequence[str]) -> Verdict:
        verdicts = [self.observe(replaced, False)]
        if not verdicts[0].passed and verdicts[0].answered and self.hides_builtins():
            verdicts.append(self.observe(replaced, True))
        return max(verdicts, key=lambda verdict: verdict.points)

    def _retry_with_blocks(self, first: Verdict) -> Verdict:
        """The verdict on an answer that failed: with finished blocks, where that is fair and does not cost points."""
        earlier, rebound = self.earlier(), self.rebound()
        wrong = {name: verdict for name, verdict in earlier.items() if not verdict.passed}
        forgivable = any(verdict.mistake == "forbidden_call" for verdict in wrong.values())
        if not wrong and not rebound or first.mistake == "forbidden_call" and not forgivable:
            return with_message(self.key, first)
        if missing := [name for name in wrong if not self.has_block(name)]:
            # It names no mistake, as it may be the earlier answer's.
            names, verb = " and ".join(missing), "are" if len(missing) > 1 else "is"
            message = f"It calls {names}, which {verb} not right yet: mend {names} first."
            parts = [dataclasses.replace(part, detail="") for part in first.parts]
            return dataclasses.replace(
                first, mistake=None, label="", message=message, parts=parts, picture=None, problems=[]
            )
        again = with_message(self.key, self._better_of_two_verdicts([*wrong, *rebound]))
        if again.mistake == "forbidden_call":
            return again  # whatever else is wrong: this call is its own
        if again.points < first.points or again.points == first.points and not wrong:
            return with_message(self.key, first)
        note = _note(wrong, rebound)
        message = f"{again.message}\n{note}" if again.message else note
        return dataclasses.replace(again, message=message, alone=again.alone and not wrong)


def _note(wrong: dict[str, Verdict], rebound: list[str]) -> str:
    """A sentence on what was replaced, and why: the earlier answers that are wrong, else those of other meaning."""
    names, several = " and ".join(wrong or rebound), len(wrong) > 1
    if not wrong:
        return f"Judged with a finished {names}: by here the name stands for something else."
    if all(verdict.mistake == "forbidden_call" for verdict in wrong.values()):
        yours = "yours are finished ones too, or call" if several else "yours is a finished one too, or calls"
        return f"Judged with a finished {names}: {yours} what is forbidden there. Here that does not count."
    state = "right" if any(verdict.answered for verdict in wrong.values()) else "there"
    return f"Judged with a finished {names} in place of yours, which {'are' if several else 'is'} not {state} yet."


def finished_block(lesson: str, name: str) -> Callable | None:
    """The finished block of an exercise as far as this edition has one: the lesson's block, else a machine's."""
    with contextlib.suppress(Exception):  # no file of it need be here
        return getattr(importlib.import_module(f"helpers.blocks.{lesson}"), name)
    piece = stand_in_for(lesson, name)
    return piece if callable(piece) else None


def hidden_builtins(names: Mapping[str, object]) -> dict[str, Callable]:
    """Python's own functions that `from torch import *` and its like hide in a namespace, as `float` and `range`."""
    homes = [sys.modules.get(home) for home in ("torch", "torch.nn.functional", "numpy", "math")]
    return {
        name: builtin
        for name, builtin in vars(builtins).items()
        if names.get(name, builtin) is not builtin and any(names[name] is getattr(home, name, None) for home in homes)
    }


@contextlib.contextmanager
def put_in(names: dict, pieces: Mapping[str, Callable], watched: bool = False) -> Iterator[None]:
    """While active, finished blocks stand in a namespace under the names of earlier answers. Their calls are nobody's:
    what an exercise forbids is not looked for inside them, unless they are `watched`."""
    before = {name: names[name] for name in pieces if name in names}
    names.update({name: piece if watched else not_watched(piece) for name, piece in pieces.items()})
    try:
        yield
    finally:
        for name in pieces.keys() - before:
            names.pop(name, None)
        names.update(before)
