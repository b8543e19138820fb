"""Judge a failed answer again, in the notebook and in the grader, and combine the two verdicts.

A mistake costs points only once. Therefore an answer that fails and calls earlier wrong answers is judged again with
finished blocks in their place. It also costs nothing if `from torch import *` hides Python's built-in functions.
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
    """An answer that can be judged again. Notebook and grader each implement the steps.

    `verdict` calls them only when it needs them, so a right answer is observed only once.
    """

    def __init__(self, key: ExerciseKey):
        self.key = key

    def observe(self, replaced: Sequence[str], builtins: bool) -> Verdict:
        """The verdict without a message.

        replaced: names of earlier answers to replace by finished blocks. builtins: restore hidden built-in functions.
        """
        raise NotImplementedError

    def hides_builtins(self) -> bool:
        """Whether the answer's namespace hides built-in functions of Python."""
        raise NotImplementedError

    def earlier(self) -> dict[str, Verdict]:
        """The verdicts on the earlier answers that it calls, directly or through others, in the lesson's order."""
        raise NotImplementedError

    def has_block(self, name: str) -> bool:
        """Whether a finished block of the exercise `name` is available."""
        raise NotImplementedError

    def refusal(self, verdict: Verdict) -> Verdict | None:
        """The final verdict on a failed answer, if finished blocks could not change it; None otherwise."""
        return None

    def rebound(self) -> list[str]:
        """The earlier answers that passed but whose names are now bound to something else."""
        return []

    def verdict(self) -> Verdict:
        """The verdict on the answer, with its message."""
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
        """The verdict on a failed answer, judged with finished blocks if that is fair and does not cost points."""
        wrong = {name: verdict for name, verdict in self.earlier().items() if not verdict.passed}
        rebound = self.rebound()
        forgivable = any(verdict.mistake == "forbidden_call" for verdict in wrong.values())
        if not wrong and not rebound or first.mistake == "forbidden_call" and not forgivable:
            return with_message(self.key, first)
        if missing := [name for name in wrong if not self.has_block(name)]:
            # The verdict names no mistake, because the mistake may be the earlier answer's.
            names, verb = " and ".join(missing), "are" if len(missing) > 1 else "is"
            message = f"It calls {names}, which {verb} not right yet; fix {names} first."
            parts = [dataclasses.replace(part, detail="") for part in first.parts]
            return dataclasses.replace(
                first, mistake=None, label="", message=message, parts=parts, picture=None, problems=[]
            )
        again = with_message(self.key, self._better_of_two_verdicts([*wrong, *rebound]))
        if again.mistake == "forbidden_call":
            return again  # the answer itself makes this call, so nothing else matters
        if again.points < first.points or again.points == first.points and not wrong:
            return with_message(self.key, first)
        note = _note(wrong, rebound)
        message = f"{again.message}\n{note}" if again.message else note
        return dataclasses.replace(again, message=message, unassisted=again.unassisted and not wrong)


def _note(wrong: dict[str, Verdict], rebound: list[str]) -> str:
    """A sentence on what was replaced and why: earlier answers that are wrong, or names that were rebound."""
    names, several = " and ".join(wrong or rebound), len(wrong) > 1
    if not wrong:
        return f"Judged with a finished {names}, because the name now means something else."
    if all(verdict.mistake == "forbidden_call" for verdict in wrong.values()):
        yours = "yours are finished ones too, or call" if several else "yours is a finished one too, or calls"
        return f"Judged with a finished {names}: {yours} what is forbidden there. Here that does not count."
    state = "right" if any(verdict.answered for verdict in wrong.values()) else "there"
    return f"Judged with a finished {names} in place of yours, which {'are' if several else 'is'} not {state} yet."


def finished_block(lesson: str, name: str) -> Callable | None:
    """The finished block of an exercise, from the lesson's blocks or else its stand-ins; None if there is none here."""
    with contextlib.suppress(Exception):  # an edition may lack the blocks
        return getattr(importlib.import_module(f"helpers.blocks.{lesson}"), name)
    stand_in = stand_in_for(lesson, name)
    return stand_in if callable(stand_in) else None


def hidden_builtins(names: Mapping[str, object]) -> dict[str, Callable]:
    """Python's built-in functions that `from torch import *` or the like hides in a namespace, such as `range`."""
    homes = [sys.modules.get(home) for home in ("torch", "torch.nn.functional", "numpy", "math")]
    return {
        name: builtin
        for name, builtin in vars(builtins).items()
        if names.get(name, builtin) is not builtin and any(names[name] is getattr(home, name, None) for home in homes)
    }


@contextlib.contextmanager
def put_in(names: dict, blocks: Mapping[str, Callable], watched: bool = False) -> Iterator[None]:
    """While active, finished blocks replace the values of these names in the namespace `names`.

    Forbidden calls inside the blocks are ignored, unless they are `watched`.
    """
    before = {name: names[name] for name in blocks if name in names}
    names.update({name: block if watched else not_watched(block) for name, block in blocks.items()})
    try:
        yield
    finally:
        for name in blocks.keys() - before:
            names.pop(name, None)
        names.update(before)
