"""Syntax of a Python that is newer than the grader's: it is named as such, and a person decides.

What cannot be read here and ran at home, or looks as newer Pythons have it, costs its own statement alone: the lines
become comments, and the rest of the cell is judged.
"""

import ast
import re
import sys
from dataclasses import dataclass

from helpers.grading.name_bindings import without_magics

HERE = "{}.{}".format(*sys.version_info)
MARK = "#~ "  # before each line that is left out
MOST_STATEMENTS, FARTHEST = 400, 40  # of a cell that is taken apart; lines at the margin that may belong to a statement
LOOKS = {
    "3.12": re.compile(r"(?m)^\s*type\s+\w+\s*(?:\[[^\]\n]*\])?\s*=|^\s*(?:async\s+)?(?:def|class)\s+\w+\s*\["),
    "3.14": re.compile(r"(?m)^\s*except\*?\s+[\w.]+\s*,\s*[\w.]+.*:|\bt[rR]?[\"']"),
}
BOUND = re.compile(r"(?m)^(?:async\s+)?(?:def|class|type)\s+(\w+)|^(\w+)\s*=")
INNER = re.compile(r"[)\]}]|(?:else|elif|except|finally)\b|\"\"\"|'''")  # how no statement begins


@dataclass(frozen=True)
class Unread:
    """A statement that the grader's Python cannot read. version: the Python that can; "" where only the outputs say
    that one did."""

    line: str
    version: str
    names: frozenset[str]

    def flag(self, cell_id: str) -> str:
        where = f"Cell {cell_id} has syntax of Python {self.version}, which the grader's {HERE} cannot read"
        if not self.version:
            where = f"Cell {cell_id} has a statement that the grader's Python {HERE} cannot read, though it ran at home"
        return f"{where}; left out: {self.line[:60]}"


def without_newer_syntax(source: str, ran: bool | None) -> tuple[str, list[Unread]]:
    """A cell's code with the statements of a newer Python as comments, and these; as it is where it can be read, or
    where something else is wrong with it. ran: whether it ran at home."""
    if ran is False or _syntax_error(source) is None:
        return source, []
    lines, kept, unread = source.split("\n"), [], []
    starts = [i for i, line in enumerate(lines) if line and not line[0].isspace() and not INNER.match(line)]
    if not starts or len(starts) > MOST_STATEMENTS:
        return source, []
    ends = [*starts[1:], len(lines)]
    kept, at = lines[: starts[0]], 0
    while at < len(starts):
        farthest = min(len(ends), at + FARTHEST)
        end = next(
            (j for j in range(at, farthest) if _syntax_error("\n".join(lines[starts[at] : ends[j]])) is None), None
        )
        statement = lines[starts[at] : ends[at if end is None else end]]
        if end is None:
            problem = _syntax_error("\n".join(statement))
            version = _needed_version("\n".join(statement), problem, ran)
            if version is None:
                return source, []
            names = {defined or assigned for defined, assigned in BOUND.findall("\n".join(statement))}
            unread.append(Unread(statement[0], version, frozenset(names)))
            statement = [MARK + line if line.strip() else line for line in statement]
        kept += statement
        at = (at if end is None else end) + 1
    return "\n".join(kept), unread


def _needed_version(statement: str, problem: SyntaxError | None, ran: bool | None) -> str | None:
    for version, looks in LOOKS.items():
        if looks.search(statement):
            return f"{version} or later"
    if problem and "f-string" in (problem.msg or ""):
        return "3.12 or later"
    return "" if ran else None


def _syntax_error(source: str) -> SyntaxError | None:
    try:
        ast.parse(without_magics(source))
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError):
        return None
    return None
