"""Combine a learner's cells, in the learner's order, with the check cells and locked cells of the release."""

import ast
import functools
import re

from helpers.grading.lesson_release import is_learners
from helpers.grading.name_bindings import TopLevel
from helpers.grading.notebook_file import grade_id_of, squeezed
from helpers.grading.safe_text import one_line
from helpers.grading.submission import Cell, Release

# A link with an image or a platform's name and nothing else, as Colab, Deepnote and similar platforms add it.
BADGE = re.compile(r"(?is)<a\b[^>]*>\s*<img\b(?:(?!</?a\b).){0,8000}</a>|\[!\[[^\]]*\]\([^)]*\)\]\([^)]*\)")
FEWEST_WORDS = 8  # in an added code cell that may contain a written answer


def merge_cells(cells: list[dict], release: Release, flags: list[str]) -> list[Cell]:
    """The cells of a submission.

    cells: the learner's, as notebook_file.py returns them. flags: a list to which anything unusual is added.
    If an answer cell was copied, all copies are kept and the last one is the answer. Check and locked cells are the
    release's, at the position of the learner's first copy. Missing cells are restored after the cell that precedes them
    in the release.
    """
    merge = _Merge(cells, release, flags)
    for index, grade_id in enumerate(merge.names):
        if grade_id is None:
            merge.add_ordinary(cells[index], index)
        elif is_learners(release.graded[grade_id]):
            merge.add_answer(index, grade_id)
        else:
            merge.add_locked(index, grade_id)
    _restore_deleted(merge.merged, release, flags)
    _restore_needed(merge.merged, release, flags)
    _find_written(merge.merged, release, flags)
    return merge.merged


def identify_cells(cells: list[dict], release: Release) -> list[str | None]:
    """For each cell, the grade_id of the release's cell to which it corresponds, or None.

    If a platform has removed all metadata, a check cell is recognized by its source, and an answer cell as the last one
    that defines the exercise.
    """
    names = [_identify(cell, release) for cell in cells]
    if any(names):
        return names
    defined = functools.cache(lambda index: TopLevel([cells[index]["source"]]).bound)
    for grade_id, pristine in release.graded.items():
        kind = pristine["cell_type"]
        free = [i for i, cell in enumerate(cells) if names[i] is None and cell["cell_type"] == kind]
        if is_learners(pristine) and kind == "code":
            matching = [i for i in free if grade_id in defined(i)][-1:]
        else:
            matching = [i for i in free if squeezed(cells[i]["source"]) == squeezed(pristine["source"])][:1]
        for index in matching:
            names[index] = grade_id
    return names


def _identify(cell: dict, release: Release) -> str | None:
    """The grade_id of a cell, from its metadata, or from its cell id if an editor has removed these, or None."""
    grade_id = grade_id_of(cell) or release.ids.get(cell["id"])
    return grade_id if grade_id in release.graded else None


class _Merge:
    def __init__(self, cells: list[dict], release: Release, flags: list[str]):
        self.cells, self.release, self.flags = cells, release, flags
        self.names = identify_cells(cells, release)
        self.merged: list[Cell] = []
        self.used_ids = {pristine.get("id") or grade_id for grade_id, pristine in release.graded.items()}

    def add_answer(self, index: int, grade_id: str) -> None:
        cell, pristine = self.cells[index], self.release.graded[grade_id]
        if grade_id in self.names[index + 1 :]:
            self.add_ordinary(cell, index)
            return
        source = cell["source"]
        if self.names.count(grade_id) > 1:
            if grade_id in self.release.written:  # Join the parts of a split answer for the person who grades it.
                stub = pristine["source"]
                copies = [copy["source"] for copy, name in zip(self.cells, self.names, strict=True) if name == grade_id]
                source = "\n\n".join(copy for copy in copies if copy.strip() not in ("", stub.strip())) or stub
                self.merged = [cell for cell in self.merged if cell.metadata.get("copy") != grade_id]
            self.flags.append(f"copied answer cell: {grade_id}")
        if cell["cell_type"] != pristine["cell_type"]:
            self.flags.append(f"answer cell {grade_id} had become a {cell['cell_type']} cell; it was changed back")
        answer = _named_cell(grade_id, self.release, source)
        answer.attachments, answer.ran = cell["attachments"], cell["ran"]
        self.merged.append(answer)

    def add_locked(self, index: int, grade_id: str) -> None:
        cell, pristine = self.cells[index], self.release.graded[grade_id]
        kind = "check" if pristine["metadata"]["nbgrader"].get("grade") else "locked"
        check = pristine["source"].strip()
        rest = "\n".join(line for line in cell["source"].split("\n") if line.strip() != check)
        if kind == "check" and TopLevel([rest]).bound:  # Keep definitions that the learner has added to a check cell.
            self.add_ordinary({**cell, "source": rest, "id": None}, index)
        if grade_id in self.names[:index]:
            self.flags.append(f"copied {kind} cell: {grade_id} (the copy was left out)")
            return
        if cell["source"].strip() != check:
            self.flags.append(f"edited {kind} cell: {grade_id} (the original was used)")
        locked = _named_cell(grade_id, self.release, pristine["source"])
        locked.passed = locked.exercise in cell["passed"]
        self.merged.append(locked)

    def add_ordinary(self, cell: dict, index: int) -> None:
        cell_id = cell["id"] or ""
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", cell_id) or cell_id in self.used_ids:
            cell_id = _unused(f"cell-{index + 1}", self.used_ids)
        self.used_ids.add(cell_id)
        ordinary = Cell(cell_id, cell["source"], cell["cell_type"], attachments=cell["attachments"], ran=cell["ran"])
        ordinary.metadata = {"copy": _identify(cell, self.release)}
        ordinary.trusted = cell["source"] in self.release.sources
        self.merged.append(ordinary)


def _unused(cell_id: str, used: set[str]) -> str:
    while cell_id in used:
        cell_id += "x"
    return cell_id


def _named_cell(grade_id: str, release: Release, source: str) -> Cell:
    pristine = release.graded[grade_id]
    exercise = None
    if grade_id in release.written:
        kind = "written"
    elif pristine["metadata"]["nbgrader"].get("grade"):
        kind, exercise = "check", grade_id.removeprefix("check_")
    elif is_learners(pristine):
        kind, exercise = ("answer" if pristine["cell_type"] == "code" else "markdown"), grade_id
    else:
        kind = pristine["cell_type"]
    cell_id, trusted = pristine.get("id") or grade_id, source == pristine["source"]
    return Cell(cell_id, source, kind, exercise, grade_id, pristine["metadata"], trusted=trusted)


def _restore_deleted(merged: list[Cell], release: Release, flags: list[str]) -> None:
    """Restore graded and locked cells that the learner deleted, after the cell that precedes them in the release."""
    previous, deleted = -1, []
    for grade_id, pristine in release.graded.items():
        index = next((i for i, cell in enumerate(merged) if cell.grade_id == grade_id), None)
        if index is None:
            blank = is_learners(pristine) and pristine["cell_type"] == "code"
            index = previous + 1
            merged.insert(index, _named_cell(grade_id, release, "" if blank else pristine["source"]))
            merged[index].gone = True
            deleted.append(grade_id)
        previous = index
    if deleted:
        flags.append(f"deleted {'cell' if len(deleted) == 1 else 'cells'}: {', '.join(deleted)} (put back)")


def _restore_needed(merged: list[Cell], release: Release, flags: list[str]) -> None:
    """Restore deleted cells of the lesson that bind a name which an answer needs and no other cell binds."""
    needed = _needed_sources(merged, release)
    index, used_ids = 0, {cell.id for cell in merged}
    for position, (name, source) in enumerate(release.code):
        if source in needed and not name:
            merged.insert(index, Cell(_unused(f"given-{position}", used_ids), source, trusted=True))
            used_ids.add(merged[index].id)
            flags.append(f"deleted cell of the lesson: {one_line(source, 60)} (put back)")
        matching = (i for i, cell in enumerate(merged) if (cell.grade_id == name if name else cell.source == source))
        index = next(matching, index - 1) + 1


def _needed_sources(merged: list[Cell], release: Release) -> set[str]:
    """The sources of the lesson's missing cells without which a name that an answer uses would be unbound."""
    present = {cell.source for cell in merged}
    missing = [source for name, source in release.code if not name and source not in present]
    binds = {source: set(TopLevel([source]).bound) for source in missing}
    if not binds:
        return set()
    code = TopLevel(cell.source for cell in merged if cell.kind in ("code", "answer"))
    needed, names = set(), set(release.checks)
    while names:
        unbound = set().union(*map(code.closure, names)) - code.bound.keys()
        fresh = [source for source in binds if source not in needed and binds[source] & unbound]
        names = set().union(*(binds[source] & unbound for source in fresh))
        needed.update(fresh)
        for source in fresh:
            code.read(source)
    return needed


def _find_written(merged: list[Cell], release: Release, flags: list[str]) -> None:
    """If the cell of a written answer is unchanged or deleted, look for the answer in cells that the learner added.

    Text cells next to its position are the answer. If there is any other added text, a person must look.
    """
    for cell in list(merged):
        if cell.kind != "written" or cell.source.strip() not in ("", release.graded[cell.grade_id]["source"].strip()):
            continue
        if cell.gone:
            expected = squeezed(release.above[cell.grade_id])
            above = [any_cell for any_cell in merged if squeezed(any_cell.source) == expected]
            if above:
                merged.remove(cell)
                merged.insert(merged.index(above[0]) + 1, cell)
        neighbors = _text_around(merged, merged.index(cell), release)
        if neighbors:
            cell.source = "\n\n".join(neighbor.source.strip() for neighbor in neighbors)
            for neighbor in neighbors:
                cell.attachments |= neighbor.attachments
                merged.remove(neighbor)
            flags.append(f"written answer {cell.grade_id} was found in a cell of its own")
        elif any(_is_added_text(any_cell, release) or _is_prose(any_cell) for any_cell in merged):
            cell.waits = True
            flags.append(f"written answer {cell.grade_id} is empty, but there is other text; is the answer among it?")
        elif not cell.source.strip() and not cell.attachments:
            cell.source = release.graded[cell.grade_id]["source"]  # A person need not read an answer that was emptied.


def _text_around(merged: list[Cell], start: int, release: Release) -> list[Cell]:
    """The learner's text cells directly below a cell, or if there are none, those directly above it."""
    below = start + 1
    while below < len(merged) and _is_added_text(merged[below], release):
        below += 1
    above = start
    while above > 0 and _is_added_text(merged[above - 1], release):
        above -= 1
    return merged[start + 1 : below] or merged[above:start]


def _is_added_text(cell: Cell, release: Release) -> bool:
    """Whether a cell contains text that is not part of the release."""
    if cell.kind not in ("markdown", "raw") or cell.grade_id or not cell.source.strip():
        return False
    return squeezed(cell.source) not in release.texts and not BADGE.fullmatch(cell.source.strip())


def _is_prose(cell: Cell) -> bool:
    """Whether an added code cell contains text instead of code, as comments, as a string or as invalid Python."""
    if cell.kind != "code" or cell.trusted or len(cell.source.split()) < FEWEST_WORDS:
        return False
    try:
        body = ast.parse(cell.source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return not re.search(r"(?m)^[ \t]*+[%!]|[=(\[]", cell.source)
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in body)
