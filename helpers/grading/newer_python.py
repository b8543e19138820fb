"""Syntax of a Python that is newer than the grader's: what ran at home and cannot be read here costs its own statement
alone. Its lines become comments, the rest of the cell is judged, and a person decides."""

import ast
import re
import sys

from helpers.grading.name_bindings import without_magics

HERE = "{}.{}".format(*sys.version_info)
MARK = "#~ "  # before each line that is left out
MOST_LEFT_OUT = 20  # statements of one cell
BOUND = re.compile(r"(?m)^(?:async\s+)?(?:def|class|type)\s+(\w+)|^(\w+)\s*=")
INNER = re.compile(r"[)\]}]|(?:else|elif|except|finally)\b|\"\"\"|'''")  # how no statement begins


def without_newer_syntax(source: str) -> tuple[str, list[str]]:
    """The code of a cell that ran at home, with the statements that cannot be read here as comments, and these; as it
    is where it can be read, or where too much of it cannot."""
    lines = source.split("\n")
    left_out: list[str] = []
    starts = [i for i, line in enumerate(lines) if line and not line[0].isspace() and not INNER.match(line)]
    while (wrong := _unreadable_line("\n".join(lines))) is not None:
        start = max((i for i in starts if i <= wrong), default=None)
        if start is None or lines[start].startswith(MARK) or len(left_out) == MOST_LEFT_OUT:
            return source, []
        end = min((i for i in starts if i > start), default=len(lines))
        left_out.append("\n".join(lines[start:end]))
        lines[start:end] = [MARK + line if line.strip() else line for line in lines[start:end]]
    return "\n".join(lines), left_out


def names_bound(statement: str) -> set[str]:
    """The names that a statement, which cannot be read, would bind."""
    return {defined or assigned for defined, assigned in BOUND.findall(statement)}


def _unreadable_line(source: str) -> int | None:
    """Where Python stops to read a cell, counted from 0; None where it reads all of it."""
    plain = without_magics(source)
    try:
        ast.parse(plain)
    except SyntaxError as error:
        return (error.lineno or 1) - 1 + source.count("\n") - plain.count("\n")  # a cell magic's line is gone
    except (ValueError, RecursionError, MemoryError):
        return None
    return None
