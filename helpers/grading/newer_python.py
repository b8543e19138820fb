"""Cells that only a Python newer than the grader's can read: a person decides about what depends on them."""

import ast
import re
import sys

from helpers.grading.name_bindings import without_magics

HERE = "{}.{}".format(*sys.version_info)
LOOKS_NEWER = re.compile(
    r"(?m)^\s*type\s+\w+\s*(?:\[[^\]\n]*\])?\s*=|^\s*(?:async\s+)?(?:def|class)\s+\w+\s*\["  # 3.12
    r"|^\s*except\*?\s+[\w.]+\s*,\s*[\w.]+.*:|\bt[rR]?[\"']"  # 3.14
)
BOUND = re.compile(r"(?m)^(?:async\s+)?(?:def|class|type)\s+(\w+)|^(\w+)\s*=")


def names_in_newer_syntax(source: str, ran: bool | None) -> set[str]:
    """The names that a cell binds, where a newer Python can read it and this one cannot: it ran at home, or nobody
    knows whether it did and it looks so. No names anywhere else."""
    try:
        ast.parse(without_magics(source))
    except SyntaxError as error:
        looks_newer = "f-string" in (error.msg or "") or LOOKS_NEWER.search(source)
        if ran or ran is None and looks_newer:
            return {defined or assigned for defined, assigned in BOUND.findall(source)}
    except (ValueError, RecursionError, MemoryError):
        pass
    return set()
