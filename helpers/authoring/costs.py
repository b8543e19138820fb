"""`course costs`: every known mistake of the parts that the translator can take, as a table of what it costs there.

Needs solutions/ and the finished blocks, so it works in the author's and the teacher's edition only.
"""

import argparse
import html
import itertools
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch

from helpers.authoring.blocks import load_blocks
from helpers.authoring.keys import load_answer_key
from helpers.checking.make_keys import wrong_answer
from helpers.course import Course, Lesson, course, load_source
from helpers.translator import evaluation, stage
from helpers.translator.parts import PART
from helpers.widgets.progress_bar import bar

PAGE = "docs/what_a_mistake_costs.md"
FINISHED = "the finished block"
FOLD = "<details><summary>Its mistakes, one a line</summary>\n"  # hundreds of them
TABLE = "| mistake | nats per word | exact |\n|---|---|---|\n"
SECONDS = 20.0  # of processor time, for one mistake
HEAD = """# What a mistake costs

Made by `course costs`; never edited here.

Every known mistake of the course that the translator can take, put in the place of the finished block: the loss in nats
a word on {count} unseen sentences with the true words given, and how many of {exact} sentences come out word for word.
The finished translator: {loss} nats, {share}% exact. The numbers are of one trained network; a bug that was there
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
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 04_scaling: only these are measured anew")


def run(args: argparse.Namespace) -> int:
    """Measure and write the page. 1 where a finished block is not as good as the translator's own part."""
    home = course()
    lessons = [home.lesson(name) for name in args.lessons] or list(home.lessons)
    start = time.process_time()
    candidates = [row for lesson in lessons for row in parts_of_lesson(home, lesson)]
    rows = [cost(*row) for row in bar(candidates, "what mistakes cost")]
    path = home.root / PAGE
    kept = sections_of(path.read_text("utf-8")) if args.lessons and path.is_file() else {}
    both = kept | sections(rows)
    path.write_text(page({lesson.name: both[lesson.name] for lesson in home.lessons if lesson.name in both}), "utf-8")
    print(f"{PAGE}: {len(rows)} parts tried, {time.process_time() - start:.0f} s of processor time")
    bad = [row for row in rows if row.name == "right" and not is_right(row)]
    for row in bad:
        print(f"{row.lesson}, {row.part}: an accepted variant costs something: {row.label} {row.nats} {row.said}")
    return int(bool(bad))


def parts_of_lesson(home: Course, lesson: Lesson) -> Iterator[tuple[str, str, str, str, Callable]]:
    """(lesson, part, mistake or "right", label, function) for everything that can be put in."""
    blocks = load_blocks(home, lesson)
    path = home.root / "tests" / "accepted_variants" / f"{lesson.topic}.py"
    variants = load_source(path, f"accepted_variants_{lesson.topic}").VARIANTS if path.is_file() else {}
    for exercise in load_answer_key(home, lesson).exercises:
        name = exercise.name
        reference = getattr(blocks, name, None)
        if name not in PART or PART[name].runs == "beside" or reference is None:
            continue
        yield lesson.name, name, "right", FINISHED, reference
        for form in variants.get(name, ()):
            yield lesson.name, name, "right", form.__name__, form
        for mistake in exercise.mistakes:
            yield lesson.name, name, mistake.name, mistake.label, wrong_answer(mistake, reference)


def cost(lesson: str, part: str, name: str, label: str, function: Callable) -> Cost:
    """Measure one mistake or one accepted variant."""
    torch.manual_seed(0)
    trial = stage.attempt({part: function}, "jane visits africa in september", SECONDS, shown=False)
    return Cost(lesson, part, name, label, trial.nats, trial.exact, trial.failed)


def is_right(row: Cost) -> bool:
    usual = stage.attempt_finished("jane visits africa in september")
    return not row.said and abs(row.nats - usual.nats) <= 1e-5 + 1e-3 * usual.nats


def sections(rows: list[Cost]) -> dict[str, str]:
    """Each lesson's section of the page, with a table for each part of the translator. Finished blocks have a line of
    their own, accepted variants a sentence."""
    made = {}
    for lesson in dict.fromkeys(row.lesson for row in rows):
        rows_here = [row for row in rows if row.lesson == lesson]
        right = [row for row in rows_here if row.name == "right"]
        shown = [row for row in rows_here if row.name != "right" or row.label == FINISHED]
        parts = itertools.groupby(shown, key=lambda row: row.part)
        tables = (f"\n### `{part}`\n\n{TABLE}{''.join(map(_line, group))}" for part, group in parts)
        made[lesson] = f"## {lesson}\n\n{FOLD}{''.join(tables)}\n</details>\n"
        good = sum(is_right(row) for row in right)
        made[lesson] += f"\nRight forms that were put in: {len(right)}; {good} of them cost nothing"
        others = "; the trained weights don't fit the others, whose parts have other names"
        made[lesson] += f"{others if good < len(right) else ''}."
    return made


def sections_of(text: str) -> dict[str, str]:
    """The lessons' parts of a page that was written before."""
    parts = [part.strip() for part in text.split("\n## ")[1:]]
    return {part.partition("\n")[0]: f"## {part}" for part in parts}


def page(made: dict[str, str]) -> str:
    usual = stage.attempt_finished("jane visits africa in september")
    head = HEAD.format(
        count=evaluation.LOSS_SENTENCES,
        exact=stage.EXACT_SENTENCES,
        loss=evaluation.in_nats(usual.nats),
        share=f"{100 * usual.exact:.0f}",
    )
    return head + "\n\n".join(made.values()) + "\n"


def _line(row: Cost) -> str:
    """A mistake's row; what stops the translator says so below its name."""
    label = "*right*" if row.name == "right" and row.label == FINISHED else _cell(row.label)
    if row.nats is None or row.said:
        reason = row.said.splitlines()[0] if row.said else "no number"
        return f"| {label}<br><small>{html.escape(_cell(reason), quote=False)}</small> | – | |\n"
    return f"| {label} | {evaluation.in_nats(row.nats)} | {100 * row.exact:.0f}% |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
