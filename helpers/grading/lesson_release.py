"""The release of a lesson, read from its built notebook: which cells are graded, locked, or need not run."""

import ast
import builtins
import functools
import json
import re
from pathlib import Path

from helpers.grading.name_bindings import RUN_LINE, TopLevel, without_magics
from helpers.grading.notebook_file import grade_id_of, joined_text, squeezed
from helpers.grading.submission import Cell, Release, Submission
from helpers.released import released_notebook

UNGRADED = "ungraded"  # the tag of a lesson's cells, trainings above all, on which no later cell's answer depends
SILENT = {"at_work", "check", "progress"}  # where learner code runs they show nothing
# These do not call an answer as it is: `or_finished` hands on a right one, else the finished block.
HANDING_ON = {"or_finished", *SILENT}
# Code that looks up one of these may read any name.
ANY_NAME = {"globals", "locals", "vars", "dir", "eval", "exec", "get_ipython", "sys", "In", "Out", "_", "__", "___"}

# Magics that read no name, but for those in the code that they run, which is read like any other.
NAMELESS = re.compile(
    r"(?m)^[ \t]*(?:%%(?:time|timeit|capture)|[%!](?:matplotlib|load_ext|autoreload|config|pip|conda|ls|nvidia-smi))\b"
    r"[^\n{}$]*$"
)


def course_release(solution: Path) -> Release:
    """The release of a lesson by its solution notebook, solutions/NN_topic/NN_topic.ipynb.

    The solution has the outputs of what need not run for every submission. The set-up cell is one
    of these, because the sandbox has found the course. A notebook is read again only where it has changed: whoever
    collects reads all lessons', which takes half a second. Nobody changes a release.
    """
    status = solution.stat()
    return _course_release(solution.absolute(), status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=64)
def _course_release(solution: Path, *_version: int) -> Release:
    release = _parse_release(solution.stem, released_notebook(solution))
    for cell in json.loads(solution.read_text(encoding="utf-8"))["cells"]:
        source, name = joined_text(cell.get("source", "")), grade_id_of(cell)
        if name in release.graded and is_learners(release.graded[name]):
            release.solved[name] = source
        if name == "setup" and source in release.sources:
            release.demonstrations[source] = set()
        if source in release.demonstrations:
            # Where learner code runs, a silent one shows nothing, or something else.
            release.shown[source] = [] if SILENT & TopLevel([source]).reads() else cell["outputs"]
    return release


def read_release(path: Path) -> Release:
    return _parse_release(path.stem, json.loads(path.read_text(encoding="utf-8")))


def is_learners(pristine: dict) -> bool:
    """Whether the release leaves this cell to the learner."""
    return bool(pristine["metadata"]["nbgrader"].get("solution"))


def _parse_release(lesson: str, notebook: dict) -> Release:
    release = Release(lesson, notebook.get("metadata", {}), {}, {}, {}, set())
    prose = [joined_text(cell.get("source", "")) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    heading = re.search(r"^# (.+)$", "\n".join(prose), re.MULTILINE)
    release.title = heading[1] if heading else lesson
    previous = ""
    for cell in notebook["cells"]:
        source = joined_text(cell.get("source", ""))
        release.sources.add(source)
        release.texts.add(squeezed(source))
        above, previous = previous, source
        nbgrader = cell.get("metadata", {}).get("nbgrader") or {}
        grade_id = nbgrader.get("grade_id") or None
        if cell["cell_type"] == "code":
            release.code.append((grade_id, source))
            if UNGRADED in cell.get("metadata", {}).get("tags", []):
                release.ungraded[source] = set(TopLevel([source]).bound)
        if grade_id is None:
            continue
        release.graded[grade_id] = {**cell, "source": source}
        release.above[grade_id] = above
        if cell.get("id"):
            release.ids[cell["id"]] = grade_id
        if nbgrader.get("grade") and nbgrader.get("solution"):
            release.written[grade_id] = float(nbgrader["points"])
        elif nbgrader.get("grade"):
            release.checks[grade_id.removeprefix("check_")] = float(nbgrader["points"])
    _find_demonstrations(release)
    return release


def _find_demonstrations(release: Release) -> None:
    """Note the cells that do the same whatever the answers are."""
    if release.ungraded:  # where models are trained, random numbers that a cell draws move the next one's
        release.demonstrations = {source: set() for _, source in release.code if only_shows(source)}
        return
    sources = [source for name, source in release.code if not name]
    for source in sources:
        if (names := names_touched(source, set(release.checks))) is not None:
            release.demonstrations[source] = names
    release.given = import_names(TopLevel(sources))


def only_shows(source: str) -> bool:
    """Whether a cell of the release does nothing but draw one of the course's own figures, explorers or its map."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return False
    call = body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    # An experiment without arguments is the course's own; with them it runs what the learner wrote.
    own = ("figures", "explore") if call.args else ("figures", "explore", "experiments")
    module = call.func.value if isinstance(call.func, ast.Attribute) else None
    return getattr(call.func, "id", "") == "transformer_map" or isinstance(module, ast.Name) and module.id in own


def names_touched(source: str, exercises: set[str]) -> set[str] | None:
    """The names that a cell of the release binds or looks up, where it does the same whatever the answers are; None
    for one that calls an answer as it is. An import looks up nothing: the sandbox has made it."""
    if only_shows(source):
        return set()
    code = TopLevel([source])
    nodes = [statement.node for statement in code.statements]
    if not nodes or without_magics(source) != source or exercises & code.bound.keys():
        return None
    parts = [part for node in nodes for part in ast.walk(node)]
    handing_on = [part for part in parts if isinstance(part, ast.Call) and getattr(part.func, "id", "") in HANDING_ON]
    handed_on = {id(argument) for call in handing_on for argument in call.args}
    handed_on |= {id(keyword.value) for call in handing_on for keyword in call.keywords}
    if any(isinstance(part, ast.Name) and part.id in exercises and id(part) not in handed_on for part in parts):
        return None
    return (code.bound.keys() | code.reads()) - exercises


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
    code = [cell for cell in submission.cells if cell.kind in ("answer", "check", "code")]
    return [cell for cell in code if cell.kind != "code" or cell.source not in skippable]


def _skippable_sources(sources: list[str], release: Release) -> set[str]:
    """The sources of the release on which no answer of these cells depends.

    A training is needed where a cell of the learner's reads what it binds. A demonstration is needed where a cell that
    runs binds or reads a name of it; what it touches is then needed too, and so on.
    """
    learners = [source for source in sources if source not in release.sources]
    names_read = TopLevel(learners).reads()
    trainings = {source for source, bound in release.ungraded.items() if not bound & names_read}
    skippable = dict(release.demonstrations)
    if ANY_NAME & names_read or any(map(_may_read_any_name, learners)):
        skippable = {source: names for source, names in skippable.items() if not names}
    running = TopLevel(source for source in sources if source not in trainings and source not in skippable)
    imports = import_names(running).items()
    reimported = {name for name, origins in imports if origins <= release.given.get(name, set())}
    touched = running.bound.keys() - reimported | running.reads() - release.given.keys()
    while needed := {source for source, names in skippable.items() if names & touched}:
        touched |= set().union(*map(skippable.pop, needed)) - release.given.keys()
    return trainings | skippable.keys()


def _may_read_any_name(source: str) -> bool:
    """Whether this code may read names that nobody sees in it: through a magic, or as Python cannot read it."""
    plain = "\n".join(RUN_LINE.sub(r"\1", line) for line in NAMELESS.sub("", source).split("\n"))
    return without_magics(plain) != plain or bool(source.strip()) and not TopLevel([source]).statements
