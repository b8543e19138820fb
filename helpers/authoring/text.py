"""Read a lesson's text (jupytext py:percent) into a notebook with nbgrader's full metadata, and check it."""

import ast
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import jupytext
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook

from helpers.authoring import BuildError
from helpers.authoring.badges import badges
from helpers.authoring.setup_cell import set_up_source
from helpers.blocks import defined_names
from helpers.course import Course, Lesson
from helpers.released import BEGIN, END, solution_of

LONGEST_CELL = 25  # lines
FIRST = "  # Run the set-up cell at the top first."  # If nobody has, Python's error message shows this line.
FOLD = '<details style="margin-bottom:0.7em">'
HINT = re.compile(r"<details>\s*<summary>(?:(?!</summary>).)*hint.*?</details>", re.DOTALL | re.IGNORECASE)
METADATA = {  # without versions, which depend on the computer
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


@dataclass
class LessonText:
    """A lesson's text. notebook: with solutions, without outputs. answers, checks and written: name -> source, for the
    code answer cells, the check cells, and the cells for written answers."""

    lesson: Lesson
    notebook: NotebookNode
    answers: dict[str, str] = field(default_factory=dict)
    checks: dict[str, str] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)

    @property
    def exercises(self) -> list[str]:
        """The names of the exercises in order, without quizzes."""
        return [name for name in self.answers if not is_quiz(name)]


def is_quiz(name: str) -> bool:
    return name.startswith("quiz_")


def read_lesson(
    course: Course, lesson: Lesson, more_rules: Callable[[LessonText], Iterable[str]] = lambda text: ()
) -> LessonText:
    """Read and check the text of `lesson`. more_rules: returns a sentence for each further rule that is broken.

    Raises BuildError if the text is missing or breaks a rule of docs/authoring.md; the message names all problems.
    """
    path = course.root / "solutions" / lesson.name / f"{lesson.name}.py"
    where = path.relative_to(course.root).as_posix()
    try:
        source = path.read_text(encoding="utf-8")
        ast.parse(source)
    except FileNotFoundError:
        raise BuildError(f"{where} is missing. It is the text that {lesson.name} is built from.") from None
    except UnicodeDecodeError:
        raise BuildError(f"{where} is not UTF-8. Save it in that encoding.") from None
    except SyntaxError as error:
        raise BuildError(f"{where} line {error.lineno}: {error.msg}.") from None
    cells = [cell for cell in jupytext.reads(source, fmt="py:percent").cells if cell.source.strip() or cell.metadata]
    text = LessonText(lesson, new_notebook(cells=cells, metadata=METADATA))
    problems = []
    for cell in cells:
        cell.metadata.pop("lines_to_next_cell", None)
        try:
            _expand(cell, text, course, where)
        except BuildError as error:
            problems.append(str(error))
    if course.url:
        cells.insert(0, new_markdown_cell(badges(course, lesson)))
    problems += _name_cells(cells, where)
    require_none(problems)
    require_none([*_check_rules(text, where), *more_rules(text)])
    for cell in cells:
        if cell.cell_type == "markdown":  # JupyterLab leaves no space below a fold
            cell.source = cell.source.replace("<details>", FOLD)
    return text


def require_none(problems: list[str]) -> None:
    """Raise a BuildError with all problems, one per line, so that an author can fix them together."""
    if problems:
        raise BuildError("\n".join(dict.fromkeys(problems)))


def _expand(cell, text: LessonText, course: Course, where: str) -> None:
    """Replace the short form of nbgrader's metadata by the full one, and fill in the set-up cell's source."""
    short = cell.metadata.pop("nbgrader", None)
    if "setup" in cell.metadata.get("tags", []):
        cell.source = set_up_source(course, text.lesson.name)
        cell.metadata["nbgrader"] = _nbgrader("setup", locked=True)
        # JupyterLab and Colab fold the cell to its first line, because learners need not read it.
        cell.metadata["jupyter"], cell.metadata["cellView"] = {"source_hidden": True}, "form"
        return
    if short is None:
        if BEGIN in cell.source or END in cell.source:
            raise BuildError(f"{where}: a solution is outside an answer cell:\n{cell.source}")
        return
    kinds = {
        "solution": ("code", text.answers, "answer cell"),
        "grade": ("code", text.checks, "check cell"),
        "written": ("markdown", text.written, "written question"),
    }
    kind, name = next(iter(short.items())) if isinstance(short, dict) and len(short) == 1 else (None, None)
    if kind not in kinds or not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w*", name):
        raise BuildError(f"{where}: nbgrader={short!r} must be solution, grade or written with one exercise's name.")
    cell_type, seen, what = kinds[kind]
    if cell.cell_type != cell_type:
        raise BuildError(f"{where}: the cell {kind} {name} must be a {cell_type} cell.")
    if name in seen:
        raise BuildError(f"{where}: {name} has two {what}s. Keep one of them.")
    seen[name] = cell.source
    paid = {"points": text.lesson.points.get(name, 0)}
    if kind == "written":
        cell.metadata["nbgrader"] = _nbgrader(name, grade=True, solution=True, **paid)
        return
    cell.metadata["tags"] = sorted({*cell.metadata.get("tags", []), "raises-exception"})
    if kind == "solution":
        cell.metadata["nbgrader"] = _nbgrader(name, solution=True)
    else:
        cell.source += FIRST
        graded = bool(text.lesson.points)
        cell.metadata["nbgrader"] = _nbgrader(f"check_{name}", grade=graded, locked=True, **(paid if graded else {}))


def _nbgrader(grade_id: str, grade=False, locked=False, solution=False, **points) -> dict:
    flags = {"grade": grade, "grade_id": grade_id, "locked": locked, "solution": solution}
    return {**flags, "schema_version": 3, "task": False, **points}


def _length(source: str) -> int:
    """The number of a cell's lines, without docstrings and the marks of a solution."""
    plain = re.sub(r'^ *""".*?"""\n+', "", source, flags=re.DOTALL | re.MULTILINE)
    return sum(line.strip() not in (BEGIN, END) for line in plain.split("\n"))


def headings(source: str) -> list[str]:
    """The headings of a Markdown cell, without lines in code fences."""
    plain = re.sub(r"^\s*```.*?^\s*```", "", source, flags=re.DOTALL | re.MULTILINE)
    return [title.strip() for title in re.findall(r"^#{1,6} +(.+)", plain, re.MULTILINE)]


def _slug(heading: str) -> str:
    ascii_text = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_text.lower()).strip("-")[:48].strip("-") or "section"


def _name_cells(cells: list, where: str) -> Iterator[str]:
    """Set reproducible cell ids: an nbgrader cell's name, or the last heading and a counter."""
    heading_of: dict[str, str] = {}
    slug, count = "start", 0
    for cell in cells:
        if cell.cell_type == "markdown":
            for heading in headings(cell.source):
                slug, count = _slug(heading), 0
                if slug in heading_of:
                    yield f"{where}: the headings {heading_of[slug]!r} and {heading!r} are too similar. Reword one."
                heading_of[slug] = heading
        if "nbgrader" in cell.metadata:
            cell["id"] = cell.metadata["nbgrader"]["grade_id"][:64]
        else:
            count += 1
            cell["id"] = f"{slug}--{count}"  # names and headings never have two dashes
    for cell_id, count in Counter(cell["id"] for cell in cells).items():
        if count > 1:
            yield f"{where}: two cells would have the id {cell_id}. Rename an exercise or a heading."


def _check_rules(text: LessonText, where: str) -> Iterator[str]:
    cells = text.notebook.cells
    if sum("setup" in cell.metadata.get("tags", []) for cell in cells) != 1:
        yield f'{where} needs exactly one set-up cell: # %% tags=["setup"]'
    for cell in cells:
        lines = _length(cell.source)
        plumbing = "setup" in cell.metadata.get("tags", [])  # folded
        if cell.cell_type == "code" and lines > LONGEST_CELL and not plumbing:
            limit = f"the limit is {LONGEST_CELL}. Split it, or move code to helpers."
            yield f"{where}: cell {cell['id']} has {lines} lines, but {limit}"
    for name, source in text.answers.items():
        if name not in text.checks:
            yield f"{where}: {name} has an answer cell and no check cell."
        marks = re.findall(f"{BEGIN}|{END}", source)
        if not marks or marks != [BEGIN, END] * (len(marks) // 2):
            yield f"{where}: {name} needs one {BEGIN} and one {END}, in this order, or several such pairs."
        if re.search(rf"^class .*(\n( .*)?)*\n {{4}}{BEGIN}", source, re.MULTILINE):
            yield f"{where}: {name} has a solution region between its methods. Put one into each method."
        if name not in defined_names(source):
            yield f"{where}: the answer cell of {name} does not define {name}."
    for name in sorted(text.checks.keys() - text.answers):
        yield f"{where}: {name} has a check cell and no answer cell."
    yield from _check_points(text, where)
    yield from _check_hints(text, where)


def _check_points(text: LessonText, where: str) -> Iterator[str]:
    lesson = text.lesson
    paid, present = {**lesson.points, **lesson.bonus}, {*text.answers, *text.written}
    for name in sorted(set(lesson.points) & set(lesson.bonus)):
        yield f"course.toml: {name} of {lesson.name} is under points and under bonus. Keep one."
    if not lesson.points:
        return
    for name in sorted(set(paid) - present):
        yield f"course.toml gives points for {name}, which is not in {where}."
    for name in sorted(present - set(paid)):
        yield f"course.toml gives no points for {name} of {where}. Add it to the lesson's table."
    if (total := sum(lesson.points.values())) != 100:
        yield f"course.toml: the points of {lesson.name} add up to {total:g}, not to 100."


def _check_hints(text: LessonText, where: str) -> Iterator[str]:
    """Each exercise needs two hints in its section, and no hint may contain a line of the solution."""
    sections: list[list] = [[]]  # each begins with a heading
    for cell in text.notebook.cells:
        if cell.cell_type == "markdown" and headings(cell.source):
            sections.append([])
        sections[-1].append(cell)
    for section in sections:
        names = [cell.metadata["nbgrader"]["grade_id"] for cell in section if is_answer(cell)]
        names = [name for name in names if not is_quiz(name)]
        hints = HINT.findall("\n".join(cell.source for cell in section if cell.cell_type == "markdown"))
        if len(hints) < 2 * len(names):
            found = f"and has {len(hints)}" if hints else "and has none"
            yield f"{where}: {names[0]} needs two hints (<details><summary>Hint 1</summary>), {found}."
        for name in names:
            for line in solution_lines(text.answers[name]):
                if len(line) > 15 and any(line in _squeeze(hint) for hint in hints):
                    yield f"{where}: a hint of {name} gives the solution away: {line}"


def is_answer(cell) -> bool:
    return cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("solution", False)


def solution_lines(source: str) -> list[str]:
    """The lines of an answer cell's solution regions, without comments, white space and a leading `return`."""
    lines = [_squeeze(line.split("#")[0]).removeprefix("return") for line in solution_of(source).split("\n")]
    return [line for line in lines if line]


def _squeeze(text: str) -> str:
    return re.sub(r"\s+", "", text)
