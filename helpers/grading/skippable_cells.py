"""Which cells of a submission have to run, so that every point is what it would be if all of them ran."""

import ast
import builtins
import re

from helpers.grading.name_bindings import RUN_LINE, TopLevel, without_magics
from helpers.grading.submission import Cell, Release, Submission

SILENT = {"at_work", "check", "progress"}  # where learner code runs they show nothing
HANDS_ON = "or_finished"  # a right answer, else the finished block: what is called so shows the same for all
# Code that looks up one of these may read any name.
ANY_NAME = {"globals", "locals", "vars", "dir", "eval", "exec", "get_ipython", "sys", "In", "Out", "_", "__", "___"}

# Magics that read no name, but for those in the code that they run, which is read like any other.
NAMELESS = re.compile(
    r"(?m)^[ \t]*(?:%%(?:time|timeit|capture)|[%!](?:matplotlib|load_ext|autoreload|config|pip|conda|ls|nvidia-smi))\b"
    r"[^\n{}$]*$"
)


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
    code = TopLevel([source])
    nodes = [statement.node for statement in code.statements]
    if not nodes or without_magics(source) != source or exercises & code.uses.keys():
        return None
    parts = [part for node in nodes for part in ast.walk(node)]
    handed_on = {id(name) for part in parts for name in _arguments_handed_on(part)}
    if any(isinstance(part, ast.Name) and part.id in exercises and id(part) not in handed_on for part in parts):
        return None
    return (code.uses.keys() | code.reads()) - exercises


def _arguments_handed_on(node: ast.AST) -> list[ast.expr]:
    """The arguments of a call that does not call them as they are."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return []
    return [*node.args, *(keyword.value for keyword in node.keywords)] if node.func.id in {HANDS_ON, *SILENT} else []


def is_silent(source: str) -> bool:
    """Whether a cell of the release shows nothing, or something else, where learner code runs."""
    return bool(SILENT & TopLevel([source]).reads())


def import_names(pieces: TopLevel) -> dict[str, set[str]]:
    """Python's own names and those of imports, where no other statement binds them -> the imports that do."""
    imports: dict[str, set[str]] = {name: set() for name in dir(builtins)}
    bound: set[str] = set()
    for statement in pieces.statements:
        if not isinstance(statement.node, (ast.Import, ast.ImportFrom)):
            bound |= statement.binds
            continue
        origin = "" if isinstance(statement.node, ast.Import) else f"from {statement.node.module} "
        for alias in statement.node.names:
            name = alias.asname or alias.name.split(".")[0]
            imports.setdefault(name, set()).add(f"{origin}import {alias.name}")
    return {name: origins for name, origins in imports.items() if name not in bound}


def judge_input(submission: Submission, release: Release) -> list[Cell]:
    """The code and check cells of a submission, without those of the release on which no answer depends: trainings, and
    figures and demonstrations, whose outputs are known. Of a notebook that is as it was released the check cells alone:
    there is nothing to judge."""
    if all(cell.source in release.sources for cell in submission.cells if cell.kind in ("answer", "code")):
        return [cell for cell in submission.cells if cell.kind == "check"]
    skippable = _skippable_sources([cell.source for cell in submission.cells if cell.runs], release)
    return [
        cell
        for cell in submission.cells
        if cell.kind in ("answer", "check") or cell.kind == "code" and cell.source not in skippable
    ]


def _skippable_sources(sources: list[str], release: Release) -> set[str]:
    """The sources of the release on which no answer of these cells depends.

    A training is needed where a cell of the learner's reads what it binds. A demonstration is needed where a cell that
    runs binds or reads a name of it; what it touches is then needed too, and so on.
    """
    learners = [source for source in sources if source not in release.sources]
    names_read = TopLevel(learners).reads()
    trainings = {source for source, bound in release.ungraded.items() if not bound & names_read}
    skippable = dict(release.demonstrations)
    if _may_read_any_name(learners, names_read):
        skippable = {source: names for source, names in skippable.items() if not names}
    running = TopLevel(source for source in sources if source not in trainings and source not in skippable)
    imports = import_names(running).items()
    reimported = {name for name, origins in imports if origins <= release.given.get(name, set())}
    touched = running.uses.keys() - reimported | running.reads() - release.given.keys()
    while needed := {source for source, names in skippable.items() if names & touched}:
        touched |= set().union(*map(skippable.pop, needed)) - release.given.keys()
    return trainings | skippable.keys()


def _may_read_any_name(sources: list[str], names_read: set[str]) -> bool:
    """Whether this code may read names that it does not write: through the notebook's own dictionary, or a magic."""
    return bool(ANY_NAME & names_read) or any(
        _has_magics(source) or not TopLevel([source]).statements and source.strip() for source in sources
    )


def _has_magics(source: str) -> bool:
    """Whether there are magics that may read a name."""
    plain = "\n".join(RUN_LINE.sub(r"\1", line) for line in NAMELESS.sub("", source).split("\n"))
    return without_magics(plain) != plain
