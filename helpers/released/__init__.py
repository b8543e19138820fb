"""The released notebook of a lesson, made from its solution as `course build` does, independent of notebooks/.

A notebook in notebooks/ is a working copy and may contain answers. Therefore pack, book and grader derive the release
from the solution notebook. The answers are removed as nbgrader's preprocessors do it, with two differences: an answer
that is a value (`quiz_1 = None`) gets no stub, and the course's own parameter `**options` is left out of signatures.
"""

import hashlib
import json
import re
from pathlib import Path

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
OPTIONS = ", **options):"
CODE_STUB, TEXT_STUB = "raise NotImplementedError", "*Write your answer here.*"


def without_marks(source: str) -> str:
    """The source of a solution notebook's cell without the lines BEGIN and END."""
    return "\n".join(line for line in source.split("\n") if line.strip() not in (BEGIN, END))


def solution_of(source: str) -> str:
    """The code between BEGIN and END in the source of a solution notebook's cell."""
    return "\n".join(part.split(END)[0] for part in source.split(BEGIN)[1:])


def released_notebook(solution: Path) -> dict:
    """The learner's notebook for the solution notebook at `solution`, without outputs. Raises OSError or ValueError."""
    notebook = json.loads(solution.read_text(encoding="utf-8"))
    cleared: dict[str, dict] = {"code": {"outputs": [], "execution_count": None}}
    cells = [released_cell(cell) | cleared.get(cell["cell_type"], {}) for cell in notebook["cells"]]
    return {**notebook, "cells": cells}


def differs(working_copy: Path, solution: Path) -> bool:
    """Whether a working copy's cells differ from the release, apart from outputs. A missing copy does not differ."""
    if not working_copy.is_file():
        return False
    try:
        cells = json.loads(working_copy.read_text(encoding="utf-8"))["cells"]
        found = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    except (OSError, ValueError, KeyError, TypeError):
        return True
    return found != [(cell["cell_type"], "".join(cell["source"])) for cell in released_notebook(solution)["cells"]]


def working_copies(root: Path) -> list[str]:
    """The lessons of the course at `root` whose working copies differ from the release; empty without solutions/."""
    built = [path for path in sorted(root.glob("solutions/*/*.ipynb")) if path.stem == path.parent.name]
    return [path.stem for path in built if differs(root / "notebooks" / path.stem / path.name, path)]


def working_copies_note(names: list[str], what: str) -> list[str]:
    """One sentence about the lessons `names`, if there are any. what: such as "graded against"."""
    if not names:
        return []
    subject = "notebook in notebooks/ is" if len(names) == 1 else "notebooks in notebooks/ are"
    return [
        f"{', '.join(names)}: the {subject} not as released (somebody has worked there); {what} the release as it was "
        "built."
    ]


def released_cell(cell: dict) -> dict:
    """A solution notebook's cell without its answer, locked and with a checksum as nbgrader does. Outputs are kept."""
    source, metadata = "".join(cell["source"]), dict(cell["metadata"])
    if facts := metadata.get("nbgrader"):
        if facts["solution"]:
            source = without_answer(source, cell["cell_type"], facts["grade_id"])
        if facts["locked"] or facts["grade"] and not facts["solution"]:
            metadata["editable"] = False
        metadata["deletable"] = False
        kind = cell["cell_type"]
        metadata["nbgrader"] = {**facts, "cell_type": kind, "checksum": _checksum(source, kind, facts)}
    return {**cell, "source": source, "metadata": metadata}


def without_answer(source: str, kind: str, name: str) -> str:
    """The source of an answer cell with a stub for each marked solution, or for the whole cell if none is marked."""
    stub = CODE_STUB if kind == "code" else TEXT_STUB
    if BEGIN not in source:
        return stub
    # Also matches marks with other text on their lines and a missing END, so that no solution is ever released.
    source = re.sub(rf"(?m)^([ \t]*).*{BEGIN}(?s:.*?)(?:{END}.*|\Z)", rf"\1{stub}", source)
    if re.search(rf"^{re.escape(name)} = None\b", source, re.MULTILINE):  # the cell runs without a stub
        source = "\n".join(line for line in source.split("\n") if line != stub)
    return source.replace(OPTIONS, "):")


def _checksum(source: str, kind: str, facts: dict) -> str:
    """The checksum of nbgrader.utils.compute_checksum, by which nbgrader recognizes an unchanged answer."""
    points = str(float(facts["points"])) if facts["grade"] else ""
    parts = (source, kind, facts["grade"], facts["solution"], facts["locked"], facts["grade_id"], points)
    return hashlib.md5("".join(map(str, parts)).encode(), usedforsecurity=False).hexdigest()
