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

UNGRADED = "ungraded"  # the tag of cells, mostly training runs, on which no later answer of the lesson depends
SILENT = {"at_work", "check", "progress"}  # functions that show nothing in the sandbox
# Calls of these do not depend on the answers, because `or_finished` replaces wrong ones with the finished block.
SAFE_CALLERS = {"or_finished", *SILENT}
# Code that looks up one of these may read any name.
ANY_NAME = {"globals", "locals", "vars", "dir", "eval", "exec", "get_ipython", "sys", "In", "Out", "_", "__", "___"}

# Magics that read no names except in the code that they run, which is searched like any other code.
NAMELESS = re.compile(
    r"(?m)^[ \t]*(?:%%(?:time|timeit|capture)|[%!](?:matplotlib|load_ext|autoreload|config|pip|conda|ls|nvidia-smi))\b"
    r"[^\n{}$]*$"
)


def course_release(solution: Path) -> Release:
    """The release of a lesson, made from its solution notebook, solutions/NN_topic/NN_topic.ipynb.

    The solution's outputs are used for cells that need not run in each submission. The setup cell is one of them,
    because the sandbox already has the course. Releases are cached until the notebook changes, because reading those of
    all lessons takes half a second; callers must not modify them.
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
            # A silent function shows nothing in the sandbox, so the solution's output is left out.
            release.shown[source] = [] if SILENT & TopLevel([source]).reads() else cell["outputs"]
    return release


def read_release(path: Path) -> Release:
    return _parse_release(path.stem, json.loads(path.read_text(encoding="utf-8")))


def is_learners(pristine: dict) -> bool:
    """Whether a cell of the release is an answer cell, which learners edit."""
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
    """Find the cells whose outputs do not depend on the answers, and store the names that they bind or read."""
    if release.ungraded:  # In lessons that train models, random draws in one cell change the results of later ones.
        release.demonstrations = {source: set() for _, source in release.code if only_shows(source)}
        return
    sources = [source for name, source in release.code if not name]
    for source in sources:
        if (names := names_touched(source, set(release.checks))) is not None:
            release.demonstrations[source] = names
    release.given = import_names(TopLevel(sources))


def only_shows(source: str) -> bool:
    """Whether a cell of the release only shows one of the course's own figures or explorers, or its map."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return False
    call = body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    # An experiment without arguments is the course's own; one with arguments runs the learner's answers.
    modules = ("figures", "explore") if call.args else ("figures", "explore", "experiments")
    module = call.func.value if isinstance(call.func, ast.Attribute) else None
    return getattr(call.func, "id", "") == "transformer_map" or isinstance(module, ast.Name) and module.id in modules


def names_touched(source: str, exercises: set[str]) -> set[str] | None:
    """The names that a cell of the release binds or reads; None if its outputs may depend on the answers.

    exercises: names of the lesson's exercises. They may only be arguments of SAFE_CALLERS, and are not returned.
    """
    if only_shows(source):
        return set()
    code = TopLevel([source])
    nodes = [statement.node for statement in code.statements]
    if not nodes or without_magics(source) != source or exercises & code.bound.keys():
        return None
    nodes = [inner for node in nodes for inner in ast.walk(node)]
    calls = [node for node in nodes if isinstance(node, ast.Call) and getattr(node.func, "id", "") in SAFE_CALLERS]
    arguments = {id(argument) for call in calls for argument in call.args}
    arguments |= {id(keyword.value) for call in calls for keyword in call.keywords}
    if any(isinstance(node, ast.Name) and node.id in exercises and id(node) not in arguments for node in nodes):
        return None
    return (code.bound.keys() | code.reads()) - exercises


def import_names(code: TopLevel) -> dict[str, set[str]]:
    """The names of built-ins and imports that no other statement of `code` binds -> the imports that bind them."""
    imports: dict[str, set[str]] = {name: set() for name in dir(builtins)}
    bound: set[str] = set()
    for statement in code.statements:
        if not isinstance(statement.node, (ast.Import, ast.ImportFrom)):
            bound |= statement.binds
            continue
        origin = "" if isinstance(statement.node, ast.Import) else f"from {statement.node.module} "
        for alias in statement.node.names:
            name = alias.asname or alias.name.split(".")[0]
            imports.setdefault(name, set()).add(f"{origin}import {alias.name}")
    return {name: origins for name, origins in imports.items() if name not in bound}


def cells_to_judge(submission: Submission, release: Release) -> list[Cell]:
    """The code and check cells of a submission that have to run or to be judged.

    Cells of the release on which no answer depends are left out, that is training runs, figures and demonstrations.
    Of a notebook without any changes, only the check cells remain.
    """
    if all(cell.source in release.sources for cell in submission.cells if cell.kind in ("answer", "code")):
        return [cell for cell in submission.cells if cell.kind == "check"]
    skippable = _skippable_sources([cell.source for cell in submission.cells if cell.runs], release)
    code = [cell for cell in submission.cells if cell.kind in ("answer", "check", "code")]
    return [cell for cell in code if cell.kind != "code" or cell.source not in skippable]


def _skippable_sources(sources: list[str], release: Release) -> set[str]:
    """The sources of the release's cells on which none of the answers in `sources` depends.

    A training run is needed if a cell of the learner's reads a name that it binds. A demonstration is needed if any
    cell that runs binds or reads one of its names. Its own names then make further demonstrations needed, and so on.
    """
    learners = [source for source in sources if source not in release.sources]
    names_read = TopLevel(learners).reads()
    training_runs = {source for source, bound in release.ungraded.items() if not bound & names_read}
    skippable = dict(release.demonstrations)
    if ANY_NAME & names_read or any(map(_may_read_any_name, learners)):
        skippable = {source: names for source, names in skippable.items() if not names}
    running = TopLevel(source for source in sources if source not in training_runs and source not in skippable)
    imports = import_names(running).items()
    reimported = {name for name, origins in imports if origins <= release.given.get(name, set())}
    touched = running.bound.keys() - reimported | running.reads() - release.given.keys()
    while needed := {source for source, names in skippable.items() if names & touched}:
        touched |= set().union(*map(skippable.pop, needed)) - release.given.keys()
    return training_runs | skippable.keys()


def _may_read_any_name(source: str) -> bool:
    """Whether this code may read names that parsing does not find, because it has a magic or cannot be parsed."""
    plain = "\n".join(RUN_LINE.sub(r"\1", line) for line in NAMELESS.sub("", source).split("\n"))
    return without_magics(plain) != plain or bool(source.strip()) and not TopLevel([source]).statements
