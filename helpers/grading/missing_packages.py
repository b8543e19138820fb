"""What a submission imports and the grader does not have: an answer that needs it waits for a person."""

import ast
import functools
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

from helpers.grading.name_bindings import statements
from helpers.grading.submission import Cell

MOST_MISSING = 50  # names of one submission


def missing_packages(cells: list[Cell], folder: Path) -> dict[str, str]:
    """The names that the learner's cells bind to what cannot be imported here, each with its package. A function that
    imports such a package by itself is such a name too. folder: where the learner's own modules lie."""
    missing: dict[str, str] = {}
    learners = [cell for cell in cells if cell.runs and not cell.trusted]
    written = {name for cell in learners for name in re.findall(r"\b(\w++)\.py", cell.source)}

    @functools.cache
    def is_missing(package: str) -> bool:
        return not _is_here(package) and package not in written and not (folder / f"{package}.py").is_file()

    for cell in learners:
        for statement in statements(cell.source) if cell.ran is not False and "import" in cell.source else ():
            for package, name in _imports(statement):
                if len(missing) < MOST_MISSING and is_missing(package):
                    missing[getattr(statement, "name", name)] = package  # a function's or a class's
    return missing


def _imports(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """(top-level package, name that it is bound to) of each import in a statement."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Import):
            for alias in node.names:
                package = alias.name.partition(".")[0]
                yield package, alias.asname or package
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield node.module.partition(".")[0], alias.asname or alias.name


@functools.lru_cache(maxsize=1000)
def _is_here(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError, AttributeError):  # as of __main__
        return True
