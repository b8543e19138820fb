"""Flags answers that repeat the published solution word for word, because a teacher may want to know.

The comparison ignores the markers around solutions, white space and, in long answers, comments. An answer that many
people would write in the same way (short, and without a comment) counts only if its whole cell equals the solution's.
"""

import ast
import functools
import re
from collections.abc import Iterable

from helpers.grading.notebook_file import squeezed
from helpers.grading.sandbox_files import HELPERS
from helpers.grading.submission import Cell, Release
from helpers.released import BEGIN, solution_of, without_marks

LONG = 120  # characters; two people hardly write the same text of this length


def published_flags(cells: list[Cell], release: Release) -> list[str]:
    """Flags for answers that repeat the published solution, a published model answer or the course's stand-ins."""
    code = [cell for cell in cells if cell.kind in ("code", "answer") and not cell.trusted]
    text = "\n".join(without_marks(cell.source) for cell in code)
    cell_of = {cell.exercise: squeezed(without_marks(cell.source)) for cell in code if cell.exercise}
    answers = {name: source for name, source in release.solved.items() if name in release.checks}
    answers = {name: source for name, source in answers.items() if BEGIN in source and not name.startswith("quiz_")}
    identical, characteristic = [], False
    for name, source in answers.items():
        if repeats(text, solution_of(source)):
            identical.append(name)
            characteristic = True
        elif cell_of.get(name) == squeezed(without_marks(source)):
            identical.append(name)
    flags = []
    if characteristic:
        flags.append(f"identical to the published solution: {len(identical)} of {len(answers)} answers")
    written = {cell.grade_id: squeezed(cell.source) for cell in cells if cell.kind == "written"}
    flags += [
        f"identical to the published model answer: {name}"
        for name in release.written
        if written.get(name) and written[name] == squeezed(release.solved.get(name, ""))
    ]
    copied = [name for name, body in stand_ins(release.lesson).items() if repeats(text, body)]
    if copied:
        flags.append(f"identical to the course's stand-ins: {', '.join(dict.fromkeys(copied))}")
    return flags


def is_published(sources: Iterable[tuple[str | None, str]], release: Release) -> bool:
    """Whether a notebook, given as (grade_id, source) of its cells, is the solution notebook, with its markers."""
    source_of = dict(sources)
    marked = {name: source for name, source in release.solved.items() if BEGIN in source}
    return bool(marked) and all(squeezed(source_of.get(name, "")) == squeezed(text) for name, text in marked.items())


def repeats(text: str, published: str) -> bool:
    """Whether code repeats published code that has a comment or, apart from its comments, is long."""
    (text, bare_text), (published, bare) = _forms(text), _forms(published)
    return "#" in published and published in text or len(bare) >= LONG and bare in bare_text


@functools.lru_cache(maxsize=32)
def _forms(code: str) -> tuple[str, str]:
    """The code without needless white space, and also without its comments."""
    return squeezed(code), squeezed(re.sub(r"#[^\n]*", "", code))


@functools.cache
def stand_ins(lesson: str) -> dict[str, str]:
    """The bodies of the functions and classes that replace missing answers (helpers/or_finished.py), by name."""
    bodies: dict[str, str] = {}
    paths = [HELPERS / "lessons" / lesson[3:] / "stand_ins.py", HELPERS / "translator" / "finished_parts.py"]
    for text in (path.read_text(encoding="utf-8") for path in paths if path.is_file()):
        for node in ast.parse(text).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                if body:
                    lines = text.split("\n")[body[0].lineno - 1 : node.end_lineno]
                    bodies[node.name] = "\n".join(lines)
    return bodies
