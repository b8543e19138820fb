"""Known mistakes, and the text format in which an answer key lists them: a name, what is wrong, the edit, a hint.

divided_by_d_k: divided by the width instead of its square root
    d_k**0.5 -> d_k
    The dot product's variance is d_k. What is its standard deviation?
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

ARROW = " -> "  # separates the text that an edit removes from the solution and the text that replaces it
OPTION = re.compile(r"(?P<option>\w): (?P<why>.+)")
HEAD = re.compile(r"(?P<name>\w+)( for (?P<word>\w+) in (?P<values>[^:]+))?: (?P<label>.+)")


class UnreadableList(ValueError):
    """A list that breaks the format. The message names the line, the mistake or the quiz."""


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that people really give.

    label: what the learner reads after "This looks like:". hint: a nudge, never the fix. wrong: an edit of the
    solution, such as "d_k**0.5 -> d_k", or a tuple of edits, or, if edits cannot express it, a function or class. The
    text left of the arrow must occur exactly once in the solution. In a measured exercise, whose metric detects the
    mistake, `wrong` may be None.
    """

    name: str
    label: str
    hint: str
    wrong: str | tuple[str, ...] | Callable | None = None

    @property
    def edits(self) -> tuple[str, ...]:
        """The edits as a tuple; empty if the mistake is a function or only its metric detects it."""
        return (self.wrong,) if isinstance(self.wrong, str) else self.wrong if isinstance(self.wrong, tuple) else ()


@dataclass(frozen=True)
class Quiz:
    """A multiple-choice question. Every option, right or wrong, has its own explanation."""

    name: str
    correct: str
    explanations: dict[str, str]


def mistakes(text: str, **functions: Callable) -> list[Mistake]:
    """The mistakes that a text lists. Each is a line `name: label` with indented lines for its edits and hint.

    - A line with an arrow is an edit. With nothing right of the arrow, it deletes the text left of it.
    - A line that begins with the arrow continues the edit above. So does a line that begins with a bar; what follows
      the bar is the code's next line, with its indentation.
    - All other lines are the hint.
    - A mistake without an edit is the function passed under its name in `functions`.
    - `added_EPS for EPS in 1e-8, 1e-9: label` lists one mistake for each value, which replaces EPS in the name, the
      label and the edits.

    Raises UnreadableList.
    """
    listed: list[Mistake] = []
    for head, lines in _blocks(text):
        parts = HEAD.fullmatch(head)
        if parts is None:
            raise UnreadableList(f'{head!r} should be "name: label", because a mistake begins here')
        name, word, label = parts["name"], parts["word"], parts["label"]
        edits = [f"{line} " if line.endswith(ARROW[:-1]) else line for line in lines if ARROW in f"{line} "]
        hint = " ".join(line for line in lines if ARROW not in f"{line} ")
        if not hint:
            raise UnreadableList(f"{name} has no hint")
        if edits and name in functions:
            raise UnreadableList(f"{name} has both an edit and a function of that name; keep one of them")
        for value in re.split(r",\s*", parts["values"]) if word else [""]:
            own_name, own_label, *own_edits = (
                text.replace(word, value) if word else text for text in (name, label, *edits)
            )
            wrong = tuple(own_edits) if len(own_edits) > 1 else own_edits[0] if own_edits else functions.get(name)
            listed.append(Mistake(own_name, own_label, hint, wrong))
    names = [mistake.name for mistake in listed]
    if duplicates := [name for name in names if names.count(name) > 1]:
        raise UnreadableList(f"two mistakes are called {duplicates[0]}")
    if unknown := sorted(set(functions) - set(names)):
        raise UnreadableList(f"the text lists no mistake for the function {unknown[0]}")
    return listed


def listed_quizzes(text: str) -> list[Quiz]:
    """The quizzes that a text lists. Each is a line `name: right option` with indented lines `option: explanation`.

    A line without an option continues the explanation above. Raises UnreadableList.
    """
    quizzes = []
    for head, lines in _blocks(text):
        name, _, correct = head.partition(": ")
        explanations: dict[str, list[str]] = {}
        explanation: list[str] = []
        for line in lines:
            if parts := OPTION.fullmatch(line):
                explanation = explanations.setdefault(parts["option"], [])
                explanation.append(parts["why"])
            elif explanations:
                explanation.append(line)
        if correct not in explanations:
            raise UnreadableList(
                f'{head!r} should be "name: right option", with an explanation of that option below it'
            )
        quizzes.append(Quiz(name, correct, {option: " ".join(why) for option, why in explanations.items()}))
    return quizzes


def _blocks(text: str) -> list[tuple[str, list[str]]]:
    """Each line at the margin with the indented lines below it, in which an edit and its continuations are one."""
    blocks: list[tuple[str, list[str]]] = []
    margin = None
    for line in filter(str.strip, text.splitlines()):
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        margin = indent if margin is None else margin
        if stripped.startswith(("|", ARROW.strip())):
            if not blocks or not blocks[-1][1]:
                raise UnreadableList(f"{stripped!r} has no edit above it to continue")
            blocks[-1][1][-1] += f"\n{stripped[1:]}" if stripped[0] == "|" else f" {stripped}"
        elif indent > margin:
            blocks[-1][1].append(stripped)
        else:
            blocks.append((stripped, []))
    return blocks
