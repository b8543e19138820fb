"""Known mistakes, and the text in which an answer key lists them: a name, what is wrong, the edit, a hint.

divided_by_d_k: divided by the width instead of its square root
    d_k**0.5 -> d_k
    The dot product's variance is d_k. What is its standard deviation?
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

ARROW = " -> "  # between what an edit takes out of the solution and what it puts in
OPTION = re.compile(r"(?P<option>\w): (?P<why>.+)")
HEAD = re.compile(r"(?P<name>\w+)( for (?P<word>\w+) in (?P<values>[^:]+))?: (?P<label>.+)")


class UnreadableList(ValueError):
    """A text that breaks the rules of its list; the sentence names the line, the mistake or the quiz."""


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that people really give, with a hint: a nudge, never the fix.

    `label` is what the learner reads after "This looks like:". `wrong` is an edit of the solution, "d_k**0.5 -> d_k",
    or several of them in a tuple; or, only where an edit cannot say it, a function (or class) of its own. The text
    left of the arrow must stand exactly once in the solution. None only in a measured exercise: its metric names it.
    """

    name: str
    label: str
    hint: str
    wrong: str | tuple[str, ...] | Callable | None = None

    @property
    def edits(self) -> tuple[str, ...]:
        """The edits as a tuple; empty where the mistake is a function."""
        return (self.wrong,) if isinstance(self.wrong, str) else self.wrong if isinstance(self.wrong, tuple) else ()


@dataclass(frozen=True)
class Quiz:
    """A multiple-choice question. Every option, right or wrong, has its own explanation."""

    name: str
    correct: str
    explanations: dict[str, str]


def mistakes(text: str, **functions: Callable) -> list[Mistake]:
    """The mistakes that a text lists: for each a line `name: label` and, further in, its edits and its hint.

    A line with an arrow is an edit; with nothing right of the arrow it takes out what stands left of it. A line that
    begins with the arrow goes on with the edit above. So does one that begins with a bar: what follows the bar is the
    code's next line, with its indentation. All other lines are the hint. A mistake without an edit is the function
    given under its name. `added_EPS for EPS in 1e-8, 1e-9: label` is a mistake for each number, which stands in place
    of EPS in name, label and edits. Raises UnreadableList.
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
            changed = tuple(edit.replace(word, value) if word else edit for edit in edits)
            wrong = changed if len(changed) > 1 else changed[0] if changed else functions.get(name)
            own_name, label_of_value = (text.replace(word, value) if word else text for text in (name, label))
            listed.append(Mistake(own_name, label_of_value, hint, wrong))
    names = [mistake.name for mistake in listed]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UnreadableList(f"two mistakes are called {twice[0]}")
    if unknown := sorted(set(functions) - set(names)):
        raise UnreadableList(f"the function {unknown[0]} belongs to no mistake of the text")
    return listed


def listed_quizzes(text: str) -> list[Quiz]:
    """The quizzes that a text lists: for each a line `name: right option` and, further in, `option: explanation`.

    Lines without an option of their own go on with the explanation above. Raises UnreadableList.
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
    """What begins at the margin, each with the lines further in: lines of an edit that go on are one."""
    blocks: list[tuple[str, list[str]]] = []
    margin = None
    for line in filter(str.strip, text.splitlines()):
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        margin = indent if margin is None else margin
        if stripped.startswith(("|", ARROW.strip())):
            if not blocks or not blocks[-1][1]:
                raise UnreadableList(f"{stripped!r} has no edit above it to go on with")
            blocks[-1][1][-1] += f"\n{stripped[1:]}" if stripped[0] == "|" else f" {stripped}"
        elif indent > margin:
            blocks[-1][1].append(stripped)
        else:
            blocks.append((stripped, []))
    return blocks
