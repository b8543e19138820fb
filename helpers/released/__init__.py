"""A lesson's notebook as it is released: what `course build` makes of the solution, whatever lies in notebooks/.

A notebook in notebooks/ is somebody's working copy, which may hold answers. Pack, book and grader take the release from
the solution notebook, without its answers, as nbgrader's own preprocessors do, with two differences: an answer that is
a value (`quiz_1 = None`) needs no stub, and `**options` of the course's own is no part of the skeleton.
"""

import hashlib
import json
import re
from pathlib import Path

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
OPTIONS = ", **options):"
CODE_STUB, TEXT_STUB = "raise NotImplementedError", "*Write your answer here.*"


def without_marks(source: str) -> str:
    """A solution's cell without the marks of its solutions."""
    return "\n".join(line for line in source.split("\n") if line.strip() not in (BEGIN, END))


def solution_of(source: str) -> str:
    """What stands between the marks of a solution's cell."""
    return "\n".join(part.split(END)[0] for part in source.split(BEGIN)[1:])


def released_notebook(solution: Path) -> dict:
    """The learner's notebook of the solution notebook at `solution`, without outputs. Raises OSError or ValueError."""
    notebook = json.loads(solution.read_text(encoding="utf-8"))
    bare: dict[str, dict] = {"code": {"outputs": [], "execution_count": None}}
    return {**notebook, "cells": [released_cell(cell) | bare.get(cell["cell_type"], {}) for cell in notebook["cells"]]}


def differs(working_copy: Path, solution: Path) -> bool:
    """Whether a working copy holds other cells than the release; outputs say nothing. One that is gone does not."""
    if not working_copy.is_file():
        return False
    try:
        cells = json.loads(working_copy.read_text(encoding="utf-8"))["cells"]
        found = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    except (OSError, ValueError, KeyError, TypeError):
        return True
    return found != [(cell["cell_type"], "".join(cell["source"])) for cell in released_notebook(solution)["cells"]]


def working_copies(root: Path) -> list[str]:
    """The lessons of the course at `root` whose working copies differ from the release; none without solutions."""
    built = [path for path in sorted(root.glob("solutions/*/*.ipynb")) if path.stem == path.parent.name]
    return [path.stem for path in built if differs(root / "notebooks" / path.stem / path.name, path)]


def told_of_working_copies(names: list[str], what: str) -> list[str]:
    """One sentence where there are such lessons, else none. what: what is done with the release."""
    if not names:
        return []
    one = len(names) == 1
    return [
        f"{', '.join(names)}: the {'notebook' if one else 'notebooks'} in notebooks/ {'is' if one else 'are'} not as "
        f"released (somebody has worked there); {what} the release as it was built."
    ]


def released_cell(cell: dict) -> dict:
    """A cell of the solution notebook without its answer, locked and marked as nbgrader does; outputs stay."""
    source, metadata = "".join(cell["source"]), dict(cell["metadata"])
    if facts := metadata.get("nbgrader"):
        if facts["solution"]:
            source = without_answer(source, cell["cell_type"], facts["grade_id"])
        if facts["locked"] or facts["grade"] and not facts["solution"]:
            metadata["editable"] = False
        metadata["deletable"] = False
        own = {"cell_type": cell["cell_type"], "checksum": _checksum(source, cell["cell_type"], facts)}
        metadata["nbgrader"] = {**facts, **own}
    return {**cell, "source": source, "metadata": metadata}


def without_answer(source: str, kind: str, name: str) -> str:
    """The text of an answer cell with a stub in place of each solution, or of the whole where none is marked."""
    stub = CODE_STUB if kind == "code" else TEXT_STUB
    if BEGIN not in source:
        return stub
    # Whatever else stands in the lines of the marks, or where the last one is missing: no solution is handed out.
    source = re.sub(rf"(?m)^([ \t]*).*{BEGIN}(?s:.*?)(?:{END}.*|\Z)", rf"\1{stub}", source)
    if re.search(rf"^{re.escape(name)} = None\b", source, re.MULTILINE):  # a value needs no stub to run
        source = "\n".join(line for line in source.split("\n") if line != stub)
    return source.replace(OPTIONS, "):")


def _checksum(source: str, kind: str, facts: dict) -> str:
    """As nbgrader.utils.compute_checksum makes it, by which it knows an untouched answer."""
    points = str(float(facts["points"])) if facts["grade"] else ""
    parts = (source, kind, facts["grade"], facts["solution"], facts["locked"], facts["grade_id"], points)
    return hashlib.md5("".join(map(str, parts)).encode(), usedforsecurity=False).hexdigest()
