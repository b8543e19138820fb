"""`course costs`: every known mistake of the parts that the translator can take, as a table of what it costs there.

Needs solutions/ and the finished blocks, so it works in the author's and the teacher's edition only.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch

from helpers.bar import bar
from helpers.checking.making import UnsoundKey, wrong_answer
from helpers.course import Course, Lesson, course
from helpers.translator import measures, stage
from helpers.translator.network import GIVEN

PAGE = "docs/what_a_mistake_costs.md"
SECONDS = 20.0  # of processor time, for one mistake
HEAD = """# What a mistake costs

Made by `course costs`; never edited here.

Every known mistake of the course that the translator can take, put in the place of the finished part: the loss in nats
a word on {count} unseen sentences with the true words given, and how many of {exact} sentences come out word for word.
The finished translator: {loss} nats, {share} % exact. The numbers are of one trained network; a bug that was there
during training would cost something else. Where a mistake costs nothing here, the translator never meets the case.

"""


class Cost(NamedTuple):
    lesson: str
    part: str
    name: str
    label: str
    nats: float | None
    exact: float | None
    said: str  # why there are no numbers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 04_scaling; all of them if none is given")
    parser.add_argument("--print", action="store_true", help="print the page; write nothing")


def run(args: argparse.Namespace) -> int:
    """Measure and write the page. 1 where a finished piece is not as good as the translator's own part."""
    home = course()
    lessons = [home.lesson(name) for name in args.lessons] or list(home.lessons)
    start = time.process_time()
    candidates = [row for lesson in lessons for row in parts_of_lesson(home, lesson)]
    rows = [cost(*row) for row in bar(candidates, "what mistakes cost")]
    text = page(rows)
    if args.print:
        print(text)
    else:
        (home.root / PAGE).write_text(text, encoding="utf-8")
        print(f"{PAGE}: {len(rows)} rows, {time.process_time() - start:.0f} s of processor time")
    bad = [row for row in rows if row.name == "right" and not is_right(row)]
    for row in bad:
        print(f"{row.lesson}, {row.part}: a right form costs something: {row.label} {row.nats} {row.said}")
    return int(bool(bad))


def parts_of_lesson(home: Course, lesson: Lesson) -> Iterator[tuple[str, str, str, str, Callable | None, str]]:
    """(lesson, part, mistake or "right", label, function, trouble) for everything that can be put in."""
    key, blocks = home.root / "solutions" / lesson.name / "answer_key.py", None
    blocks_file = home.root / "helpers" / "blocks" / f"lesson_{lesson.number}.py"
    if not key.is_file() or not blocks_file.is_file():
        return
    blocks = _load(blocks_file, f"helpers.blocks.lesson_{lesson.number}")
    forms = _right_forms(home, lesson)
    for exercise in getattr(_load(key, f"answer_key_{lesson.number}"), "exercises", ()):
        name = exercise.name
        reference = getattr(blocks, name, None)
        if name not in GIVEN or name in stage.NO_LOSS or reference is None:
            continue
        yield lesson.name, name, "right", "the finished piece", reference, ""
        for form in forms.get(name, ()):
            yield lesson.name, name, "right", form.__name__, form, ""
        for mistake in exercise.mistakes:
            try:
                yield lesson.name, name, mistake.name, mistake.label, wrong_answer(mistake, reference), ""
            except (UnsoundKey, OSError, LookupError) as error:
                yield lesson.name, name, mistake.name, mistake.label, None, str(error)


def _right_forms(home: Course, lesson: Lesson) -> dict[str, tuple]:
    path = home.root / "tests" / "right_forms" / f"lesson_{lesson.number}.py"
    return getattr(_load(path, f"right_forms_{lesson.number}"), "FORMS", {}) if path.is_file() else {}


def _load(path, name: str):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cost(lesson: str, part: str, name: str, label: str, function: Callable | None, trouble: str) -> Cost:
    """Measure one mistake or one right form."""
    if function is None:
        return Cost(lesson, part, name, label, None, None, trouble)
    torch.manual_seed(0)
    trial = stage.attempt({part: function}, "jane visits africa in september", SECONDS, shown=False)
    return Cost(lesson, part, name, label, trial.nats, trial.exact, trial.failed)


def is_right(row: Cost) -> bool:
    usual = stage.attempt_finished("jane visits africa in september")
    return not row.said and abs(row.nats - usual.nats) <= 1e-5 + 1e-3 * usual.nats


def page(rows: list[Cost]) -> str:
    """The Markdown page."""
    usual = stage.attempt_finished("jane visits africa in september")
    text = HEAD.format(
        count=measures.LOSS_SENTENCES,
        exact=stage.EXACT_SENTENCES,
        loss=measures.in_nats(usual.nats),
        share=f"{100 * usual.exact:.0f}",
    )
    for lesson in dict.fromkeys(row.lesson for row in rows):
        text += f"## {lesson}\n\n| part | mistake | nats a word | exact |\n|---|---|---|---|\n"
        for row in rows:
            if row.lesson == lesson and (row.name != "right" or row.label == "the finished piece" or not is_right(row)):
                text += _line(row)
        right = [row for row in rows if row.lesson == lesson and row.name == "right"]
        good = sum(is_right(row) for row in right)
        text += f"\nRight forms that were put in: {len(right)}; {good} of them cost nothing.\n\n"
    return text.rstrip() + "\n"


def _line(row: Cost) -> str:
    label = "*right*" if row.name == "right" and row.label == "the finished piece" else row.label
    if row.nats is None or row.said:
        said = row.said.splitlines()[0] if row.said else "no number"
        return f"| `{row.part}` | {_cell(label)} | {_cell(said)} | |\n"
    return f"| `{row.part}` | {_cell(label)} | {measures.in_nats(row.nats)} | {100 * row.exact:.0f} % |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
