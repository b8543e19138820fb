"""What a submission needs and the grader does not have: the syntax of a newer Python, and packages."""

import ast
import functools
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from helpers.grading.name_bindings import statements, without_magics
from helpers.grading.submission import Cell

HERE = "{}.{}".format(*sys.version_info)
MARK = "#~ "  # before each line that is left out
MOST_LEFT_OUT = 20  # statements of one cell
LOOKS_NEWER = re.compile(
    r"(?m)^\s*type\s+\w+\s*(?:\[[^\]\n]*\])?\s*=|^\s*(?:async\s+)?(?:def|class)\s+\w+\s*\["
    r"|^\s*except\*?\s+[\w.]+\s*,\s*[\w.]+.*:|\bt[rR]?[\"']"
)
BOUND = re.compile(r"(?m)^(?:async\s+)?(?:def|class|type)\s+(\w+)|^(\w+)\s*=")
INNER = re.compile(r"[)\]}]|(?:else|elif|except|finally)\b|\"\"\"|'''")  # how no statement begins
MOST_MISSING = 50  # names of one submission


def without_newer_syntax(source: str, ran: bool) -> tuple[str, list[str]]:
    """A cell's code, with the statements that cannot be read here as comments, and these; as it is where it can be
    read, or where too much of it cannot. ran: at home, for sure; otherwise only what looks newer is left out."""
    lines = source.split("\n")
    left_out: list[str] = []
    starts = [i for i, line in enumerate(lines) if line and not line[0].isspace() and not INNER.match(line)]
    while error := _syntax_error("\n".join(lines)):
        wrong, message = error
        start = max((i for i in starts if i <= wrong), default=None)
        if start is None or lines[start].startswith(MARK) or len(left_out) == MOST_LEFT_OUT:
            return source, []
        end = min((i for i in starts if i > start), default=len(lines))
        statement = "\n".join(lines[start:end])
        if not (ran or "f-string" in message or LOOKS_NEWER.search(statement)):
            return source, []
        left_out.append(statement)
        lines[start:end] = [MARK + line if line.strip() else line for line in lines[start:end]]
    return "\n".join(lines), left_out


def names_bound(statement: str) -> set[str]:
    """The names that a statement, which cannot be read, would bind."""
    return {defined or assigned for defined, assigned in BOUND.findall(statement)}


def _syntax_error(source: str) -> tuple[int, str] | None:
    """The line, counted from 0, where Python stops to read a cell, and its message; None where it reads all of it."""
    plain = without_magics(source)
    try:
        ast.parse(plain)
    except SyntaxError as error:
        gone = source.count("\n") - plain.count("\n")  # the line of a cell magic
        return (error.lineno or 1) - 1 + gone, error.msg or ""
    except (ValueError, RecursionError, MemoryError):
        return None
    return None


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
