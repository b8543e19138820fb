"""Syntax of a Python that is newer than the grader's: what ran at home, or looks like it where the outputs are gone,
costs its own statement alone. Its lines become comments, the rest of the cell is judged, and a person decides."""

import ast
import re
import sys

from helpers.grading.name_bindings import without_magics

HERE = "{}.{}".format(*sys.version_info)
MARK = "#~ "  # before each line that is left out
MOST_LEFT_OUT = 20  # statements of one cell
LOOKS_NEWER = re.compile(
    r"(?m)^\s*type\s+\w+\s*(?:\[[^\]\n]*\])?\s*=|^\s*(?:async\s+)?(?:def|class)\s+\w+\s*\["
    r"|^\s*except\*?\s+[\w.]+\s*,\s*[\w.]+.*:|\bt[rR]?[\"']"
)
BOUND = re.compile(r"(?m)^(?:async\s+)?(?:def|class|type)\s+(\w+)|^(\w+)\s*=")
INNER = re.compile(r"[)\]}]|(?:else|elif|except|finally)\b|\"\"\"|'''")  # how no statement begins


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
