"""What a submission needs but the grader lacks: the syntax of a newer Python version, and packages."""

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
MARK = "#~ "  # stands before each line that is left out
MOST_LEFT_OUT = 20  # statements of one cell
LOOKS_NEWER = re.compile(
    r"(?m)^[ \t]*+(?:type\s++\w++\s*+(?:\[[^\]\n]*+\]\s*+)?=|(?:async\s++)?(?:def|class)\s++\w++\s*+\["
    r"|except\*?\s++[\w.]++\s*+,\s*+[\w.]++[^:\n]*+:)|\bt[rR]?[\"']"
)
BOUND = re.compile(r"(?m)^(?:async\s+)?(?:def|class|type)\s+(\w+)|^(\w+)\s*=")
INNER = re.compile(r"[)\]}]|(?:else|elif|except|finally)\b|\"\"\"|'''")  # no statement begins with these
MOST_MISSING = 50  # names of one submission


def without_newer_syntax(source: str, ran: bool) -> tuple[str, list[str]]:
    """A cell's code with the statements that this Python cannot parse turned into comments, and a list of these. If
    there are none or too many, the code is unchanged. ran: whether the cell certainly ran on the learner's computer;
    otherwise a statement is left out only if it looks like newer syntax."""
    lines = source.split("\n")
    left_out: list[str] = []
    starts = [i for i, line in enumerate(lines) if line and not line[0].isspace() and not INNER.match(line)]
    while error := _syntax_error("\n".join(lines)):
        error_line, message = error
        start = max((i for i in starts if i <= error_line), default=None)
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
    """The names that a statement would bind, although this Python cannot parse it."""
    return {defined or assigned for defined, assigned in BOUND.findall(statement)}


def _syntax_error(source: str) -> tuple[int, str] | None:
    """The line, counted from 0, of a cell's first syntax error, and Python's message; None if there is none."""
    plain = without_magics(source)
    try:
        ast.parse(plain)
    except SyntaxError as error:
        removed = source.count("\n") - plain.count("\n")  # lines of cell magics
        return (error.lineno or 1) - 1 + removed, error.msg or ""
    except (ValueError, RecursionError, MemoryError):
        return None
    return None


def missing_packages(cells: list[Cell], folder: Path) -> dict[str, str]:
    """The names that the learner's cells import from packages that are not installed here, and the functions and
    classes whose code imports such a package, each with the package. folder: holds the learner's modules."""
    missing: dict[str, str] = {}
    learners_cells = [cell for cell in cells if cell.runs and not cell.trusted]
    written = {name for cell in learners_cells for name in re.findall(r"\b(\w++)\.py", cell.source)}

    @functools.cache
    def is_missing(package: str) -> bool:
        return not _is_installed(package) and package not in written and not (folder / f"{package}.py").is_file()

    for cell in learners_cells:
        for statement in statements(cell.source) if cell.ran is not False and "import" in cell.source else ():
            for package, name in _imports(statement):
                if len(missing) < MOST_MISSING and is_missing(package):
                    missing[getattr(statement, "name", name)] = package  # a function or a class has a name
    return missing


def _imports(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """(top-level package, bound name) for each import in a statement."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Import):
            for alias in node.names:
                package = alias.name.partition(".")[0]
                yield package, alias.asname or package
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield node.module.partition(".")[0], alias.asname or alias.name


@functools.lru_cache(maxsize=1000)
def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError, AttributeError):  # for example for __main__
        return True
