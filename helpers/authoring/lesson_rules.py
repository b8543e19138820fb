"""The rules for the form of a lesson's text, so that all lessons read as if the same person had written them.

They apply to lessons that open with the map of the Transformer.
"""

import re
from collections.abc import Iterator

from helpers.authoring import BuildError
from helpers.authoring.text import LessonText, headings, is_quiz

WORDS_PER_MINUTE = 120
TIME_TOLERANCE = 0.10  # how far stated minutes may be from the sum of reading and exercises, relative to that sum
MAX_CORE_MINUTES = 100
MAP = re.compile(r"^transformer_map\(\"([^\"]+)\"\)", re.MULTILINE)
DIFFICULTY = re.compile(
    r"^((?:\*\*(?:Extra|Find the bug)\*\* · )*)Difficulty ([1-5] of 5) · Importance ([1-5] of 5) · (\d+) minutes"
    r"(?: · (\d+) (bonus points|points|point))?$",
    re.MULTILINE,
)
RECAP, FURTHER = "Recap", "Going further"  # the recap ends the core; extras follow under the second heading
RAW = re.compile(r"[√_$^ᵀ\\]")


def template_problems(text: LessonText) -> Iterator[str]:
    """Yield a sentence for each broken rule."""
    maps = [name for cell in text.notebook.cells if cell.cell_type == "code" for name in MAP.findall(cell.source)]
    if not maps:
        return
    where = f"{text.lesson.name}.py"
    if maps != [text.lesson.name]:
        yield f'{where} needs exactly one map, transformer_map("{text.lesson.name}"); it has {maps}.'
    for check in (_check_headings, _check_exercises, _check_quizzes, _check_lines, _check_time):
        yield from check(text, where)


def _prose(text: LessonText) -> list[str]:
    return [cell.source for cell in text.notebook.cells if cell.cell_type == "markdown"]


def _titles(text: LessonText, prefix: str = "") -> list[str]:
    """The headings that begin with `prefix`."""
    return [title for source in _prose(text) for title in headings(source) if title.startswith(prefix)]


def _section(text: LessonText, title: str) -> str:
    section = rf"^#+ {re.escape(title)}.*?(?=^#+ |\Z)"
    found = re.search(section, "\n".join(_prose(text)), re.DOTALL | re.MULTILINE)
    return found[0] if found else ""


def _check_headings(text: LessonText, where: str) -> Iterator[str]:
    titles = _titles(text)
    for title in titles:
        if RAW.search(re.sub(r"`[^`]*`", "", title)):
            yield f"{where}: the heading {title!r} contains raw notation. Say it in words."
    if not titles or not re.match(rf"{int(text.lesson.number)}\. ", titles[0]):
        yield f"{where}: the first heading must begin with {int(text.lesson.number)} and a dot."
    closing = [RECAP, FURTHER, "Further reading"]
    present = [title for title in titles if title in closing]
    if present != closing:
        yield f"{where} must end with the headings {', '.join(closing)}, in this order; it has {present}."


def _check_exercises(text: LessonText, where: str) -> Iterator[str]:
    """Headings have the numbers N.1, N.2, ... and the exercise's name, and the line of difficulty follows each."""
    number = int(text.lesson.number)
    titles = _titles(text, "Exercise ")
    # A warm-up without points does not need a heading.
    named = [name for name in text.exercises if any(f"`{name}`" in title for title in titles) or text.lesson.points]
    wanted = [f"Exercise {number}.{k} `{name}`" for k, name in enumerate(named, 1)]
    if titles != wanted:
        yield f"{where}: the headings of its exercises must be {wanted}, but they are {titles}."
        return
    for title, name in zip(wanted, named, strict=True):
        match = DIFFICULTY.search(_section(text, title))
        if not match:
            yield f"{where}: {title} needs a line like: Difficulty 2 of 5 · Importance 4 of 5 · 10 minutes · 14 points"
            continue
        bonus = name in text.lesson.bonus
        points = {**text.lesson.points, **text.lesson.bonus}.get(name)
        if points is not None and (float(match[5] or 0), match[6] == "bonus points") != (points, bonus):
            kind = "bonus points" if bonus else "points"
            yield f"{where}: {title} has other points than course.toml, which gives {points:g} {kind}."
        if bonus and "**Extra**" not in match[0]:
            yield f"{where}: {title} is a bonus; its line of difficulty must begin with **Extra**."
        if bonus and f"# {title}\n" in core_prose(text):
            yield f"{where}: {title} is a bonus; it belongs under the heading {FURTHER}."


def _check_quizzes(text: LessonText, where: str) -> Iterator[str]:
    quizzes = quiz_options(text)
    titles = _titles(text, "Quiz")
    wanted = [f"Quiz {int(text.lesson.number)}.{k}" for k in range(1, len(quizzes) + 1)]
    if titles != wanted:
        yield f"{where}: the headings of its quizzes must be {wanted}, but they are {titles}."
        return
    for title, options in zip(wanted, quizzes.values(), strict=True):
        if len(options) < 2 or options != [chr(ord("a") + k) for k in range(len(options))]:
            yield f"{where}: {title} needs its options as a list, `- **a** …`, `- **b** …`; it has {options}."


def quiz_options(text: LessonText) -> dict[str, list[str]]:
    """The letters of each quiz's options, from the section below its heading."""
    names, number = filter(is_quiz, text.answers), int(text.lesson.number)
    sections = {name: _section(text, f"Quiz {number}.{k}") for k, name in enumerate(names, 1)}
    return {name: re.findall(r"^- \*\*([a-z])\*\* \S", lines, re.MULTILINE) for name, lines in sections.items()}


def _check_lines(text: LessonText, where: str) -> Iterator[str]:
    """Lines must not begin with a number and a dot by accident, because Markdown turns them into lists."""
    for source in _prose(text):
        before, fenced = "", False
        for line in source.split("\n"):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            number = re.match(r" {0,3}(\d+)[.)]\s", line)
            in_list = re.match(r"\s*(\d+[.)]|[-*])\s|\s{2,}\S", before)
            begins = number and not fenced and not in_list
            in_order = begins and number[1] == "1" and re.search(r"^ *2[.)]\s", source, re.M)
            if begins and not in_order and (before.strip() or number[1] != "1"):
                yield f"{where}: this line would begin a list; break it elsewhere: {line.strip()}"
            before = line if line.strip() or not in_list else before


def core_prose(text: LessonText) -> str:
    """The Markdown that a learner reads in the core, up to the heading Going further, without model answers."""
    cells = [cell for cell in text.notebook.cells if cell.cell_type == "markdown"]
    prose = "\n".join(cell.source for cell in cells if not cell.metadata.get("nbgrader", {}).get("solution"))
    return re.split(rf"^#+ {FURTHER}$", prose, maxsplit=1, flags=re.MULTILINE)[0]


def minutes_of(prose: str) -> float:
    """The minutes for reading, at WORDS_PER_MINUTE, plus those that exercises and written questions state."""
    words = len(re.sub(r"<[^>]+>", " ", prose).split())
    stated = sum(int(match[4]) for match in DIFFICULTY.finditer(prose))
    stated += sum(map(int, re.findall(r"graded by hand,.*?(\d+) minutes", prose, re.DOTALL)))
    return words / WORDS_PER_MINUTE + stated


def _check_time(text: LessonText, where: str) -> Iterator[str]:
    needed = minutes_of(core_prose(text))
    stated = re.search(r"\*\*Core:\*\* about (\d+) minutes", core_prose(text))
    if not stated:
        yield f"{where} must say: **Core:** about {round(needed / 5) * 5} minutes."
        return
    for place, minutes in ((where, int(stated[1])), ("course.toml", text.lesson.minutes)):
        if abs(minutes - needed) > TIME_TOLERANCE * needed:
            estimate = f"reading and exercises of the core need about {needed:.0f}"
            yield f"{place} gives {text.lesson.name} {minutes} minutes, but {estimate}."
    if int(stated[1]) > MAX_CORE_MINUTES:
        yield f"{where}: the core may take at most {MAX_CORE_MINUTES} minutes. Move parts to {FURTHER}, or cut."


def check_captions(notebook, lesson) -> None:
    """Raise BuildError unless the notebook's figures are numbered N.1, N.2, ... in order, and are not too wide."""
    outputs = (output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs)
    shown = "\n".join("".join(output.get("data", {}).get("text/html", "")) for output in outputs)
    numbers = re.findall(r">Figure (\d+\.\d+)\.", shown)
    wanted = [f"{int(lesson.number)}.{k}" for k in range(1, len(numbers) + 1)]
    if numbers != wanted:
        found = f"its figures are numbered {', '.join(numbers)}"
        raise BuildError(f"{lesson.name}: {found}, but they must be numbered in order, from {wanted[0]}.")
    for width in map(int, re.findall(r'<img [^>]*?width="(\d+)"', shown)):
        if width > 840:
            raise BuildError(f"{lesson.name}: a figure is {width} pixels wide, but the limit is 840 (8.6 inches).")
