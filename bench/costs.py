"""What each known mistake costs the translator: `python -m bench.costs [LESSON ...]`, many minutes of one core.

Each known mistake of an exercise whose block is a part of the translator is put in place of that part. The result is
docs/what_a_mistake_costs.md, with a table for each part; if lessons are named, only their sections are measured again.
The accepted variants (tests/accepted_variants) are put in too, and the program fails if one of them costs something.
"""

import argparse
import html
import itertools
import textwrap
import time
from collections import Counter
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
SENTENCE = "jane visits africa in september"
FINISHED = "the finished block"
FOLD = "<details><summary>Its mistakes, one per line</summary>\n"  # There are hundreds of them.
TABLE = "| mistake | nats per word | exact |\n|---|---|---|\n"
SECONDS = 20.0  # of processor time, for one mistake
LONGEST = 120  # characters of the reason why the translator stopped
# Parts of the messages for correct variants that cannot be measured, and what the page says about them.
NOT_MEASURED = {
    "don't fit": "could not load the trained weights",
    "took more than": f"took more than {SECONDS:g} seconds",
}
HEAD = """# What a mistake costs

Made by `python -m bench.costs`; don't edit it.

Every known mistake that fits into the translator was put in place of the finished block. The tables show the loss in
nats per word on {count} unseen sentences, with teacher forcing, and how many of {exact} sentences were translated
exactly. The finished translator has {loss} nats per word and {percent}% exact translations. A range stands for several
forms of one mistake. All of this holds for one trained network, and a bug that was there during training would cost
something else. Where a mistake costs nothing here, these sentences don't depend on what it gets wrong.

"""


class Cost(NamedTuple):
    lesson: str
    part: str
    name: str
    label: str
    nats: float | None
    exact: float | None
    failed: str  # why the translator stopped, or ""


def main() -> int:
    """Measure, and write the page. Returns 1 if a finished block or an accepted variant costs something."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 04_scaling (default: all lessons)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    home = course()
    lessons = [home.lesson(name) for name in args.lessons] or list(home.lessons)
    start = time.process_time()
    candidates = [row for lesson in lessons for row in parts_of_lesson(home, lesson)]
    rows = [cost(*row) for row in bar(candidates, "what mistakes cost")]
    path = home.root / PAGE
    kept = sections_of(path.read_text("utf-8")) if args.lessons and path.is_file() else {}
    made = kept | sections(rows)
    path.write_text(page({lesson.name: made[lesson.name] for lesson in home.lessons if lesson.name in made}), "utf-8")
    print(f"{PAGE}: {len(rows)} parts measured, {time.process_time() - start:.0f} s of processor time")
    costly = [row for row in rows if row.name == "right" and not is_right(row) and not why_not_measured(row)]
    for row in costly:
        print(f"{row.lesson}, {row.part}: an accepted variant costs something: {row.label} {row.nats} {row.failed}")
    return int(bool(costly))


def parts_of_lesson(home: Course, lesson: Lesson) -> Iterator[tuple[str, str, str, str, Callable]]:
    """Yield (lesson, part, the mistake's name or "right", label, function) for all that fits into the translator."""
    blocks = load_blocks(home, lesson)
    path = home.root / "tests" / "accepted_variants" / f"{lesson.topic}.py"
    variants = load_source(path, f"accepted_variants_{lesson.topic}").VARIANTS if path.is_file() else {}
    for exercise in load_answer_key(home, lesson).exercises:
        name = exercise.name
        reference = getattr(blocks, name, None)
        if name not in PART or PART[name].runs == "beside" or reference is None:
            continue
        yield lesson.name, name, "right", FINISHED, reference
        for variant in variants.get(name, ()):
            yield lesson.name, name, "right", variant.__name__, variant
        for mistake in exercise.mistakes:
            yield lesson.name, name, mistake.name, mistake.label, wrong_answer(mistake, reference)


def cost(lesson: str, part: str, name: str, label: str, function: Callable) -> Cost:
    """Measure one mistake or one accepted variant."""
    torch.manual_seed(0)
    trial = stage.attempt({part: function}, SENTENCE, SECONDS, shown=False)
    return Cost(lesson, part, name, label, trial.nats, trial.exact, trial.failed)


def is_right(row: Cost) -> bool:
    usual = stage.attempt_finished(SENTENCE)
    return not row.failed and abs(row.nats - usual.nats) <= 1e-5 + 1e-3 * usual.nats


def why_not_measured(row: Cost) -> str:
    return next((words for part, words in NOT_MEASURED.items() if part in row.failed), "")


def sections(rows: list[Cost]) -> dict[str, str]:
    """Each lesson's section of the page. Each part has a table, which begins with the finished block; the accepted
    variants of all parts are summed up in a sentence at the end."""
    made = {}
    for lesson in dict.fromkeys(row.lesson for row in rows):
        rows_here = [row for row in rows if row.lesson == lesson]
        right = [row for row in rows_here if row.name == "right"]
        shown = [row for row in rows_here if row.name != "right" or row.label == FINISHED]
        parts = itertools.groupby(shown, key=lambda row: row.part)
        tables = (f"\n### `{part}`\n\n{TABLE}{_lines(list(group))}" for part, group in parts)
        made[lesson] = f"## {lesson}\n\n{FOLD}{''.join(tables)}\n</details>\n"
        free = sum(is_right(row) for row in right)
        others = Counter(filter(None, map(why_not_measured, right)))
        facts = [f"{free} cost nothing", *(f"{count} {words}" for words, count in others.items())]
        made[lesson] += f"\nOf {len(right)} correct variants that were put in, {' and '.join(facts)}."
    return made


def sections_of(text: str) -> dict[str, str]:
    """The sections of an existing page, by lesson."""
    parts = [part.strip() for part in text.split("\n## ")[1:]]
    return {part.partition("\n")[0]: f"## {part}" for part in parts}


def page(made: dict[str, str]) -> str:
    usual = stage.attempt_finished(SENTENCE)
    head = HEAD.format(
        count=evaluation.LOSS_SENTENCES,
        exact=stage.EXACT_SENTENCES,
        loss=evaluation.in_nats(usual.nats),
        percent=f"{100 * usual.exact:.0f}",
    )
    return head + "\n\n".join(made.values()) + "\n"


def _lines(rows: list[Cost]) -> str:
    """The table rows of a part, one for all mistakes with the same label and the same reason for a stop."""
    alike: dict[tuple[str, str], list[Cost]] = {}
    for row in rows:
        alike.setdefault((row.label, row.failed), []).append(row)
    return "".join(map(_line, alike.values()))


def _line(alike: list[Cost]) -> str:
    """The table row of mistakes with the same label. If the translator stopped, the reason is below the label."""
    row = alike[0]
    label = "*right*" if row.name == "right" and row.label == FINISHED else _cell(row.label)
    if row.nats is None or row.failed:
        return f"| {label}<br><small>{html.escape(_cell(_reason(row)), quote=False)}</small> | – | |\n"
    nats = _range([evaluation.in_nats(one.nats) for one in sorted(alike, key=lambda one: one.nats)])
    exact = _range([f"{100 * one.exact:.0f}" for one in sorted(alike, key=lambda one: one.exact)])
    return f"| {label} | {nats} | {exact}% |\n"


def _range(texts: list[str]) -> str:
    return " to ".join(dict.fromkeys([texts[0], texts[-1]]))


def _reason(row: Cost) -> str:
    """Why the translator stopped, without the part's name, which stands above the table."""
    first = row.failed.splitlines()[0] if row.failed else "no number"
    for opening in (f"With your {row.part} the translator stopped: ", f"Your {row.part} raised "):
        first = first.removeprefix(opening)
    return textwrap.shorten(first.replace(f"Your {row.part} returned", "It returned"), LONGEST, placeholder=" …")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    raise SystemExit(main())
