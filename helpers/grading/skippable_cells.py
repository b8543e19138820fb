"""Which cells of a submission have to run, so that every point is what it would be if all of them ran."""

from __future__ import annotations

import ast
import builtins

from helpers.grading.submission import Cell, Release, Submission
from helpers.grading.top_level import TopLevel, without_magics

SILENT = {"at_work", "check", "progress"}  # where learner code runs they show nothing
HANDS_ON = "or_finished"  # a right answer, else the finished block: what is called so shows the same for all
# Code that looks up one of these may read any name.
ANY_NAME = {"globals", "locals", "vars", "dir", "eval", "exec", "get_ipython", "sys", "In", "Out", "_", "__", "___"}


def only_shows(source: str) -> bool:
    """Whether a cell of the release does nothing but draw one of the course's own figures, explorers or its map."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return False
    call = body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else None
    maker = call.func if isinstance(call, ast.Call) else None
    if isinstance(maker, ast.Name) and maker.id == "transformer_map":
        return True
    module = maker.value if isinstance(maker, ast.Attribute) else None
    if not isinstance(module, ast.Name):
        return False
    # An experiment without arguments is the course's own; with them it runs what the learner wrote.
    return module.id in ("figures", "explore") or (module.id == "experiments" and not call.args)


def names_touched(source: str, exercises: set[str]) -> set[str] | None:
    """The names that a cell of the release binds or looks up, where it does the same whatever the answers are; None
    for one that calls an answer as it is. An import looks up nothing: the sandbox has made it."""
    if only_shows(source):
        return set()
    pieces = TopLevel([source])
    nodes = [one.node for one in pieces.statements]
    if not nodes or without_magics(source) != source or exercises & pieces.uses.keys():
        return None
    walked = [item for node in nodes for item in ast.walk(node)]
    handed_on = {id(name) for item in walked for name in _handed_on(item)}
    if any(isinstance(item, ast.Name) and item.id in exercises and id(item) not in handed_on for item in walked):
        return None
    return (pieces.uses.keys() | pieces.reads()) - exercises


def _handed_on(node: ast.AST) -> list[ast.expr]:
    """The arguments of a call that does not call them as they are."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return []
    return [*node.args, *(one.value for one in node.keywords)] if node.func.id in {HANDS_ON, *SILENT} else []


def is_silent(source: str) -> bool:
    """Whether a cell of the release shows nothing, or something else, where learner code runs."""
    return bool(SILENT & TopLevel([source]).reads())


def import_names(pieces: TopLevel) -> dict[str, set[str]]:
    """Python's own names and those of imports, where no other statement binds them -> the imports that do."""
    found: dict[str, set[str]] = {name: set() for name in dir(builtins)}
    bound: set[str] = set()
    for one in pieces.statements:
        if not isinstance(one.node, (ast.Import, ast.ImportFrom)):
            bound |= one.binds
            continue
        origin = "" if isinstance(one.node, ast.Import) else f"from {one.node.module} "
        for alias in one.node.names:
            name = alias.asname or alias.name.split(".")[0]
            found.setdefault(name, set()).add(f"{origin}import {alias.name}")
    return {name: said for name, said in found.items() if name not in bound}


def judge_input(submission: Submission, release: Release) -> list[Cell]:
    """The code and check cells of a submission, without those of the release on which no answer hangs: trainings, and
    figures and demonstrations, whose outputs are known. Of a notebook that is as it was released the check cells alone:
    there is nothing to judge."""
    if all(cell.source in release.sources for cell in submission.cells if cell.kind in ("answer", "code")):
        return [cell for cell in submission.cells if cell.kind == "check"]
    idle = _idle([cell.source for cell in submission.cells if cell.runs], release)
    return [
        cell
        for cell in submission.cells
        if cell.kind in ("answer", "check") or cell.kind == "code" and cell.source not in idle
    ]


def _idle(sources: list[str], release: Release) -> set[str]:
    """Which of these need not run."""
    own = [source for source in sources if source not in release.sources]
    read = TopLevel(own).reads()
    trainings = {source for source, bound in release.ungraded.items() if not bound & read}
    wary = _any_name(own, read)
    idle = {source: names for source, names in release.demonstrations.items() if not (names and wary)}
    running = TopLevel(source for source in sources if source not in trainings and source not in idle)
    again = {name for name, said in import_names(running).items() if said <= release.given.get(name, set())}
    touched = running.uses.keys() - again | running.reads() - release.given.keys()
    while needed := {source for source, names in idle.items() if names & touched}:
        touched |= set().union(*map(idle.pop, needed)) - release.given.keys()
    return trainings | idle.keys()


def _any_name(sources: list[str], read: set[str]) -> bool:
    """Whether this code may read names that it does not write: through the notebook's own dictionary, or a magic."""
    return bool(ANY_NAME & read) or any(
        without_magics(source) != source or not TopLevel([source]).statements and source.strip() for source in sources
    )
