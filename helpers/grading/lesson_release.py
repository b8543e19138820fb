"""The release of a lesson, read from its built notebook: which cells are graded, locked, or need not run."""

import functools
import json
import re
from pathlib import Path

from helpers.grading.name_bindings import TopLevel
from helpers.grading.notebook_file import grade_id_of, joined_text, squeezed
from helpers.grading.skippable_cells import import_names, is_silent, names_touched, only_shows
from helpers.grading.submission import Release
from helpers.released import released_notebook

UNGRADED = "ungraded"  # the tag of a lesson's cells, trainings above all, on which no later cell's answer depends


def course_release(solution: Path) -> Release:
    """The release of a lesson by its solution notebook, solutions/NN_topic/NN_topic.ipynb.

    The solution has the outputs of what need not run for every submission (skippable_cells.py). The set-up cell is one
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
            release.shown[source] = [] if is_silent(source) else cell["outputs"]
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
                release.ungraded[source] = set(TopLevel([source]).uses)
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
