"""From a folder that was handed in to cells that can be judged.

Whatever is odd is flagged for a person; what cannot be read becomes a submission with a `problem`. Nothing here
raises because of what a learner handed in, so one odd file never stops a class.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import json
import os
import re
import stat
from pathlib import Path

from helpers.grading.attachments import is_the_courses, lying_beside
from helpers.grading.newer_python import without_newer_syntax
from helpers.grading.public_solution import is_published, published_flags
from helpers.grading.safe_text import one_line
from helpers.grading.skippable_cells import import_names, is_silent, names_touched, only_shows
from helpers.grading.submission import Cell, Release, Submission
from helpers.grading.top_level import TopLevel
from helpers.grading.whole_clone import notebooks_below
from helpers.released import released_notebook

LARGEST = 20 * 2**20  # bytes of a submitted notebook
LARGEST_TEXT = "20 MB"
MOST_CELLS = 5000
MOST_CODE = 1_000_000  # characters of all its code
MOST_NAME = 128  # bytes of a student's name: a folder, a file and a row of the gradebook are called so
UNGRADED = "ungraded"  # the tag of a lesson's cells, trainings above all, on which no later cell's answer hangs
NO_NAME = set('<>"\\')  # Formgrader writes names into its pages as they are
MOST_ATTACHMENTS = 50  # of one cell
MOST_OUTPUTS = 200  # of one cell, of which an error is looked for
# A link with a picture or a platform's name, and nothing else: what Colab, Deepnote and their like add.
BADGE = re.compile(r"(?is)<a\b[^>]*>\s*<img\b(?:(?!</?a\b).){0,8000}</a>|\[!\[[^\]]*\]\([^)]*\)\]\([^)]*\)")
MOST_NOTEBOOKS = 12  # of one submission, of which the answered one is looked for


class Unreadable(Exception):
    """A submission that cannot be graded; the message is the sentence for the teacher."""


def course_release(solution: Path) -> Release:
    """The release of a lesson by its solution notebook, solutions/NN_topic/NN_topic.ipynb.

    The solution has the outputs of what need not run for every submission (skippable_cells.py), the set-up cell among
    it: the sandbox has found the course.
    """
    return _read_release(solution.stem, released_notebook(solution), solution)


def read_release(path: Path) -> Release:
    """The release that is the notebook at `path`."""
    return _read_release(path.stem, json.loads(path.read_text(encoding="utf-8")))


def _read_release(lesson: str, notebook: dict, executed: Path | None = None) -> Release:
    release = Release(lesson, notebook.get("metadata", {}), {}, {}, {}, set())
    before = ""
    for cell in notebook["cells"]:
        source = _text(cell.get("source", ""))
        facts = cell.get("metadata", {}).get("nbgrader")
        release.sources.add(source)
        release.texts.add(_squeezed(source))
        above, before = before, _squeezed(source)
        grade_id = (facts or {}).get("grade_id") or None
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
        if facts.get("grade") and facts.get("solution"):
            release.written[grade_id] = float(facts["points"])
        elif facts.get("grade"):
            release.checks[grade_id.removeprefix("check_")] = float(facts["points"])
    if not release.ungraded:  # where models are trained, random numbers that a cell draws move the next one's
        plain = [source for name, source in release.code if not name]
        found = {source: names_touched(source, set(release.checks)) for source in plain}
        release.demonstrations = {source: names for source, names in found.items() if names is not None}
        release.given = import_names(TopLevel(plain))
    else:
        release.demonstrations = {source: set() for _, source in release.code if only_shows(source)}
    if executed is not None:
        for cell in json.loads(executed.read_text(encoding="utf-8"))["cells"]:
            source = _text(cell.get("source", ""))
            if (name := _grade_id(cell)) in release.graded and _learners(release.graded[name]):
                release.solved[name] = source
            if _grade_id(cell) == "setup" and source in release.sources:
                release.demonstrations[source] = set()
            if source in release.demonstrations:
                release.shown[source] = [] if is_silent(source) else cell["outputs"]
    return release


def find_submissions(submitted: Path, lesson: str) -> list[str]:
    """The students who handed in something for this lesson, sorted."""
    if not submitted.is_dir():
        return []
    found = []
    for folder in submitted.iterdir():
        with contextlib.suppress(OSError):  # a folder that nobody may look into holds no submission
            if not folder.name.startswith(".") and folder.is_dir() and os.path.lexists(folder / lesson):
                found.append(folder.name)
    return sorted(found)


def misplaced(submitted: Path, lesson: str) -> dict[str, str]:
    """A sentence for each student whose notebook of this lesson lies outside of the folder that it is expected in."""
    found = {}
    for folder in submitted.iterdir() if submitted.is_dir() else ():
        with contextlib.suppress(OSError):
            if folder.name.startswith(".") or not folder.is_dir() or os.path.lexists(folder / lesson):
                continue
            loose = sorted(path.name for path in folder.glob("*.ipynb") if lesson in path.name)
            if loose:
                what = one_line(loose[0], 80)
                found[folder.name] = f"{what} lies outside of the folder {lesson}; move it there and grade again."
    return dict(sorted(found.items()))


def name_problem(student: str) -> str | None:
    """Why a folder's name cannot be a student's, as gradebook, page or terminal could not show it; else None."""
    written = student == one_line(student) and not NO_NAME & set(student)
    if written and len(student.encode("utf-8", "replace")) <= MOST_NAME:
        return None
    return f"The folder {one_line(student, 60)!r} has a name that is too long or cannot be shown; rename it."


def read_submission(submitted: Path, student: str, release: Release, notebooks: Path) -> Submission:
    """Read what `student` handed in. notebooks: the folder of all lessons, to name a wrong one."""
    folder = submitted / student / release.lesson
    submission = Submission(student, release.lesson, [], sha="")
    content, beside = b"", b""
    try:
        path = _choose(folder, release, submission.flags)
        content = _read_bytes(path)
        cells = _cells(content, path.name)
        _refuse_other_lesson(cells, release, notebooks, path.name)
        for cell in cells:
            if cell["cell_type"] == "code" and cell["source"] not in release.sources:
                _leave_out_newer_syntax(cell, submission.flags)
        submission.cells = _merge(cells, release, submission.flags)
        _wait_for_a_person(submission, set().union(*(cell.get("unread", ()) for cell in cells)), release)
        submission.timestamp = _timestamp(folder, submission.flags)
        submission.folder = path.parent
        submission.flags += published_flags(submission.cells, release)
        files, flags = lying_beside(path.parent, submission.code())
        submission.flags += flags
        for name, data in files.items():
            if name.endswith(".safetensors") and is_the_courses(data):
                submission.flags.append(f"{name} holds the numbers of the course's own translator")
            beside += f"{name} {len(data)} ".encode() + data
    except Unreadable as problem:
        submission.problem = one_line(str(problem))
    except Exception as error:  # whatever is odd about one submission, the others are graded
        submission.problem = one_line(
            f"This submission cannot be read ({type(error).__name__}: {error}). Ask for it again."
        )
    if submission.problem:
        submission.cells, submission.folder = blank_cells(release), None
    submission.sha = hashlib.sha256(content + (submission.problem or "").encode() + beside).hexdigest()
    submission.flags = [one_line(flag) for flag in submission.flags]
    return submission


def _leave_out_newer_syntax(cell: dict, flags: list[str]) -> None:
    """Keep what a newer Python alone can read from the rest of a cell, and note the names that it would bind."""
    cell["source"], unread = without_newer_syntax(cell["source"], cell["ran"])
    cell["unread"] = set().union(*(one.names for one in unread))
    flags += [one.told(_grade_id(cell) or cell["id"] or "without a name") for one in unread]


def _wait_for_a_person(submission: Submission, unread: set[str], release: Release) -> None:
    """Let exercises that hang on what could not be read wait for a person."""
    if not unread:
        return
    code = TopLevel(cell.source for cell in submission.cells if cell.runs)
    waiting = [name for name in release.checks if {name, *code.closure(name)} & unread]
    for cell in submission.cells:
        if cell.kind == "check" and cell.exercise in waiting:
            cell.waits = True
    if waiting:
        submission.flags.append(f"{', '.join(waiting)} {'waits' if len(waiting) == 1 else 'wait'} for a person")


def blank_cells(release: Release) -> list[Cell]:
    """The cells of a submission of which nothing can be used."""
    return _merge([], release, [])


def _choose(folder: Path, release: Release, flags: list[str]) -> Path:
    """The notebook in the folder: of several the one that holds answers, of the right name if that has some.

    Where none lies there but folders do, the one in them; of a clone of the course the learner's, never the solution.
    """
    expected = f"{release.lesson}.ipynb"
    if folder.is_symlink() or not folder.is_dir():
        raise Unreadable(f"{release.lesson} is not a folder; nothing was read. Ask for the notebook {expected}.")
    try:
        found = sorted(p for p in folder.iterdir() if p.suffix.lower() in (".ipynb", ".json"))
    except OSError as error:
        raise Unreadable(f"The folder cannot be read ({error.strerror}). Ask for the notebook {expected}.") from None
    if not found:
        found = sorted(notebooks_below(folder), key=lambda path: path.name != expected)[:MOST_NOTEBOOKS]
        found = [path for path in found if path.name == expected or lesson_of(path, [release])[0]]
    if not found:
        raise Unreadable(f"No notebook was handed in; {expected} was expected.")
    own = [path for path in found if path.name == expected]
    others = [path for path in found if path.name != expected][:MOST_NOTEBOOKS]
    chosen = own[0] if own else others[0]
    if len(found) > 1 and not (own and _likeness(own[0], release)[0] > 0):
        chosen = max([*own, *others], key=lambda path: _likeness(path, release))
    if chosen.name != expected:
        flags.append(f"the notebook is called {chosen.name[:80]}, not {expected}")
    for path in found:
        if path != chosen and (path.suffix.lower() == ".ipynb" or _likeness(path, release)[1] > 0):
            flags.append(f"{path.name[:80]} lies beside it and was not graded")
    return chosen


def _likeness(path: Path, release: Release) -> tuple[int, int]:
    """How many answers a notebook holds that differ from the release, and how many cells of the lesson; -1, -1 where it
    cannot be read. The published solution's own notebook holds no answers of a learner's."""
    try:
        cells = _cells(_read_bytes(path), path.name)
    except Unreadable:
        return -1, -1
    named = [(cell, name) for cell, name in zip(cells, _names(cells, release), strict=True) if name is not None]
    if is_published(((name, cell["source"]) for cell, name in named), release):
        return -1, len(named)
    own = sum(
        _learners(release.graded[name]) and _squeezed(cell["source"]) not in release.texts for cell, name in named
    )
    return own, len(named)


def lesson_of(path: Path, releases: list[Release]) -> tuple[str | None, int]:
    """Which lesson's notebook a file is, and how many of its answers differ from the release; None, -1 where its cells
    do not say so, or it cannot be read."""
    try:
        cells = _cells(_read_bytes(path), path.name)
    except Unreadable:
        return None, -1
    ids = {_grade_id(cell) for cell in cells} - {None}
    best, most = None, 0
    for release in releases:
        own = ids & set(release.graded) if ids else {name for name in _names(cells, release) if name is not None}
        count = sum(not _shared(grade_id) for grade_id in own)
        if count > most:
            best, most = release, count
    return (best.lesson, _likeness(path, best)[0]) if best else (None, -1)


def _read_bytes(path: Path) -> bytes:
    """The bytes of a regular file that is no link and not too large."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if path.is_symlink():
            raise Unreadable(f"{path.name} is a link, not a file; it was not followed. Ask for the notebook.") from None
        raise Unreadable(f"{path.name} cannot be opened ({error.strerror}). Ask for the notebook again.") from None
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            what = "a folder" if stat.S_ISDIR(facts.st_mode) else "not a regular file"
            raise Unreadable(f"{path.name} is {what}; it was not read. Ask for the notebook.")
        file = os.fdopen(handle, "rb", closefd=False)
        if facts.st_size > LARGEST:
            raise Unreadable(
                f"{path.name} is larger than {LARGEST_TEXT}; it was not read. Ask for it with its outputs cleared."
            )
        return file.read(LARGEST + 1)
    finally:
        os.close(handle)


def _decode(content: bytes) -> str:
    """Text in any common encoding: UTF-8, UTF-16 or UTF-32, with or without a mark, else Latin-1."""
    try:
        return content.decode(json.detect_encoding(content))
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _cells(content: bytes, name: str) -> list[dict]:
    """The cells of a notebook, whatever its minor version, each with cell_type, source and metadata."""
    try:
        notebook = json.loads(_decode(content))
        if not isinstance(notebook, dict):
            raise ValueError("it holds no notebook")
        cells = notebook.get("cells")
        if cells is None and isinstance(notebook.get("worksheets"), list):  # notebook format 3
            cells = [cell for sheet in notebook["worksheets"] for cell in sheet.get("cells", [])]
        if not isinstance(cells, list):
            raise ValueError("it holds no cells")
        if len(cells) > MOST_CELLS:
            raise ValueError(f"it holds {len(cells)} cells")
        cells = [_plain(cell) for cell in cells if isinstance(cell, dict)]
        code = sum(len(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        if code > MOST_CODE:
            raise ValueError(f"it holds {code:,} characters of code")
        return cells
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:120]
        empty = "it is empty" if not content.strip() else reason
        raise Unreadable(f"{name} cannot be read as a notebook: {empty}. Ask for the notebook again.") from None


def _plain(cell: dict) -> dict:
    metadata = cell.get("metadata") if isinstance(cell.get("metadata"), dict) else {}
    kind, own = cell.get("cell_type"), cell.get("id", metadata.get("id"))  # Colab keeps ids in the metadata
    return {
        "cell_type": {"heading": "markdown"}.get(kind, kind) if kind in ("code", "markdown", "heading") else "raw",
        "source": _text(cell.get("source", cell.get("input", ""))),
        "metadata": metadata,
        "attachments": _attachments(cell.get("attachments")),
        "ran": _ran(cell),
        "id": own if isinstance(own, str) else None,
    }


def _ran(cell: dict) -> bool | None:
    """Whether a cell ran at home without an error, as far as its outputs tell."""
    outputs = cell.get("outputs")
    shown = outputs[:MOST_OUTPUTS] if isinstance(outputs, list) else []
    if any(isinstance(output, dict) and output.get("output_type") in ("error", "pyerr") for output in shown):
        return False
    return True if isinstance(cell.get("execution_count"), int) else None


def _attachments(found) -> dict:
    """Attachments whose names can be written, at most MOST_ATTACHMENTS."""
    if not isinstance(found, dict):
        return {}
    return {_clean(name)[:200]: bundle for name, bundle in list(found.items())[:MOST_ATTACHMENTS]}


def _text(source) -> str:
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    return re.sub(r"\r\n?", "\n", _clean(source)) if isinstance(source, str) else ""


def _clean(text: str) -> str:
    """Text that can be written as UTF-8: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _grade_id(cell: dict) -> str | None:
    facts = cell["metadata"].get("nbgrader")
    grade_id = facts.get("grade_id") if isinstance(facts, dict) else None
    return grade_id if isinstance(grade_id, str) and grade_id else None


def _refuse_other_lesson(cells: list[dict], release: Release, notebooks: Path, name: str) -> None:
    """A notebook with cells of another lesson and none of this one was handed in by mistake."""
    ids = {_grade_id(cell) for cell in cells} - {None}
    own = set(release.graded)
    if not ids or ids & {grade_id for grade_id in own if not _shared(grade_id)}:
        return
    best, most = None, 0
    for path in sorted(notebooks.glob("*/*.ipynb")):
        if path.stem != release.lesson and path.stem == path.parent.name:
            theirs = {grade_id for grade_id in read_release(path).graded if not _shared(grade_id)}
            if len(theirs & ids) > most:
                best, most = path.stem, len(theirs & ids)
    if best:
        raise Unreadable(f"{name} is the notebook of {best}, not of {release.lesson}. Ask for the right one.")


def _shared(grade_id: str) -> bool:
    """Whether a cell name occurs in every lesson, so that it says nothing about which one this is."""
    return grade_id.removeprefix("check_").startswith(("setup", "quiz_", "written_"))


def _merge(cells: list[dict], release: Release, flags: list[str]) -> list[Cell]:
    """The learner's cells in the learner's order, with check and locked cells from the release.

    Of several copies of an answer cell all stay and the last carries the name; the first copy of a check cell is
    the place where the pristine one goes; what is missing is put back behind its neighbor in the release.
    """
    merged: list[Cell] = []
    used = {pristine.get("id") or grade_id for grade_id, pristine in release.graded.items()}
    names = _names(cells, release)
    for index, (cell, grade_id) in enumerate(zip(cells, names, strict=True)):
        if grade_id is None:
            merged.append(_ordinary(cell, index, release, used))
            continue
        pristine = release.graded[grade_id]
        if _learners(pristine):
            if grade_id in names[index + 1 :]:
                merged.append(_ordinary(cell, index, release, used))
                continue
            source = cell["source"]
            if names.count(grade_id) > 1:
                if grade_id in release.written:
                    source = _join(cells, names, grade_id, pristine["source"])
                    merged = [m for m in merged if m.metadata.get("copy") != grade_id]
                flags.append(f"copied answer cell: {grade_id}")
            if cell["cell_type"] != pristine["cell_type"]:
                flags.append(f"answer cell {grade_id} had become a {cell['cell_type']} cell; it was changed back")
            merged.append(_named(grade_id, release, source, cell["attachments"], cell["ran"]))
            continue
        if _sort(pristine) == "check" and (own := _written_into(cell["source"], pristine["source"])):
            merged.append(_ordinary({**cell, "source": own, "id": None}, index, release, used))
        if grade_id in names[:index]:
            flags.append(f"copied {_sort(pristine)} cell: {grade_id} (the copy was left out)")
        else:
            if cell["source"].strip() != pristine["source"].strip():
                flags.append(f"edited {_sort(pristine)} cell: {grade_id} (the original was used)")
            merged.append(_named(grade_id, release, pristine["source"]))
    _restore(merged, release, flags)
    _restore_given(merged, release, flags)
    _find_written(merged, release, flags)
    return merged


def _written_into(source: str, pristine: str) -> str:
    """What a learner defines in a check cell, without the check; "" where that is nothing."""
    own = "\n".join(line for line in source.split("\n") if line.strip() != pristine.strip())
    return own if TopLevel([own]).uses else ""


def _find_written(merged: list[Cell], release: Release, flags: list[str]) -> None:
    """Where the cell of a written answer is untouched or gone, look for the answer in a cell of the learner's own.

    Text right below it, or where it stood, is the answer. Any other text of the learner's lets it wait for a person.
    """
    for cell in list(merged):
        if cell.kind != "written" or cell.source.strip() not in ("", release.graded[cell.grade_id]["source"].strip()):
            continue
        if cell.gone:
            above = [other for other in merged if _squeezed(other.source) == release.above.get(cell.grade_id)]
            if above:
                merged.remove(cell)
                merged.insert(merged.index(above[0]) + 1, cell)
        start = merged.index(cell)
        near = []
        for step in (1, -1):
            index = start + step
            while 0 <= index < len(merged) and _own_text(merged[index], release):
                near.insert(0 if step < 0 else len(near), merged[index])
                index += step
            if near:
                break
        if near:
            cell.source = "\n\n".join(found.source.strip() for found in near)
            for found in near:
                cell.attachments |= found.attachments
                merged.remove(found)
            flags.append(f"written answer {cell.grade_id} was found in a cell of its own")
        elif any(_own_text(other, release) or _prose(other) for other in merged):
            cell.waits = True
            flags.append(f"written answer {cell.grade_id} is empty, but there is other text; is the answer among it?")
        elif not cell.source.strip() and not cell.attachments:
            cell.source = release.graded[cell.grade_id]["source"]  # an emptied answer is none: nobody needs to read it


def _own_text(cell: Cell, release: Release) -> bool:
    """Whether a cell holds text that is not the release's."""
    if cell.kind not in ("markdown", "raw") or cell.grade_id or not cell.source.strip():
        return False
    return _squeezed(cell.source) not in release.texts and not BADGE.fullmatch(cell.source.strip())


def _prose(cell: Cell) -> bool:
    """Whether an added code cell holds a text instead of code: comments, a string, or what is no Python."""
    if cell.kind != "code" or cell.trusted or len(cell.source.split()) < 8:
        return False
    try:
        body = ast.parse(cell.source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return not re.search(r"(?m)^[ \t]*+[%!]|[=(\[]", cell.source)
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in body)


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _name(cell: dict, release: Release) -> str | None:
    """Which cell of the release this is, by grade_id, or by cell id where an editor dropped the metadata."""
    grade_id = _grade_id(cell)
    if grade_id is None:
        grade_id = release.ids.get(cell["id"])
    return grade_id if grade_id in release.graded else None


def _names(cells: list[dict], release: Release) -> list[str | None]:
    """Which cells of the release these are. Where a platform dropped all that says so, a check cell is known by its
    call, and an answer by the exercise that it defines, the last one where there are several."""
    names = [_name(cell, release) for cell in cells]
    if any(names):
        return names
    defined = functools.cache(lambda index: TopLevel([cells[index]["source"]]).uses)
    for grade_id, pristine in release.graded.items():
        kind = pristine["cell_type"]
        free = [i for i, cell in enumerate(cells) if names[i] is None and cell["cell_type"] == kind]
        if _learners(pristine) and kind == "code":
            found = [i for i in free if grade_id in defined(i)][-1:]
        else:
            found = [i for i in free if _squeezed(cells[i]["source"]) == _squeezed(pristine["source"])][:1]
        for index in found:
            names[index] = grade_id
    return names


def _learners(pristine: dict) -> bool:
    """Whether the release leaves this cell to the learner."""
    return bool(pristine["metadata"]["nbgrader"].get("solution"))


def _sort(pristine: dict) -> str:
    return "check" if pristine["metadata"]["nbgrader"].get("grade") else "locked"


def _join(cells, names, grade_id, stub) -> str:
    """A written answer that was split over copies of its cell, in one piece for the person who grades it."""
    parts = [cell["source"] for cell, name in zip(cells, names, strict=True) if name == grade_id]
    return "\n\n".join(part for part in parts if part.strip() and part.strip() != stub.strip()) or stub


def _ordinary(cell: dict, index: int, release: Release, used: set[str]) -> Cell:
    own = cell["id"] or ""
    id = own if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", own) and own not in used else f"cell-{index + 1}"
    while id in used:
        id += "x"
    used.add(id)
    return Cell(
        id,
        cell["source"],
        cell["cell_type"],
        attachments=cell["attachments"],
        metadata={"copy": _name(cell, release)},
        trusted=cell["source"] in release.sources,
        ran=cell["ran"],
    )


def _named(
    grade_id: str, release: Release, source: str, attachments: dict | None = None, ran: bool | None = None
) -> Cell:
    pristine = release.graded[grade_id]
    name = None
    if grade_id in release.written:
        kind = "written"
    elif pristine["metadata"]["nbgrader"].get("grade"):
        kind, name = "check", grade_id.removeprefix("check_")
    elif _learners(pristine):
        kind, name = ("answer" if pristine["cell_type"] == "code" else "markdown"), grade_id
    else:
        kind = pristine["cell_type"]
    return Cell(
        pristine.get("id") or grade_id,
        source,
        kind,
        name,
        grade_id,
        pristine["metadata"],
        attachments or {},
        trusted=source == pristine["source"],
        ran=ran,
    )


def _restore(merged: list[Cell], release: Release, flags: list[str]) -> None:
    """Put back what the learner deleted, behind the cell that comes before it in the release."""
    previous, deleted = None, []
    for grade_id, pristine in release.graded.items():
        indices = {cell.grade_id: index for index, cell in enumerate(merged) if cell.grade_id}
        if grade_id not in indices:
            blank = _learners(pristine) and pristine["cell_type"] == "code"
            index = 0 if previous is None else indices[previous] + 1
            merged.insert(index, _named(grade_id, release, "" if blank else pristine["source"]))
            merged[index].gone = True
            deleted.append(grade_id)
        previous = grade_id
    if deleted:
        flags.append(f"deleted {'cell' if len(deleted) == 1 else 'cells'}: {', '.join(deleted)} (put back)")


def _restore_given(merged: list[Cell], release: Release, flags: list[str]) -> None:
    """Put back a cell that came with the lesson where an answer, or such a cell, needs what it alone would bind."""
    there = {cell.source for cell in merged}
    binds = {source: set(TopLevel([source]).uses) for name, source in release.code if not name and source not in there}
    if not binds:
        return
    pieces = TopLevel(cell.source for cell in merged if cell.kind in ("code", "answer"))
    back, asking = set(), set(release.checks)
    while asking:
        missing = set().union(*map(pieces.closure, asking)) - pieces.uses.keys()
        fresh = [source for source in binds if source not in back and binds[source] & missing]
        asking = set().union(*(binds[source] & missing for source in fresh))
        back.update(fresh)
        for source in fresh:
            pieces.read(source)
    index, ids = 0, {cell.id for cell in merged}
    for place, (name, source) in enumerate(release.code):
        if source in back and not name:
            id = next(id for id in (f"given-{place}{'x' * more}" for more in range(len(ids) + 1)) if id not in ids)
            merged.insert(index, Cell(id, source, trusted=True))
            flags.append(f"deleted cell of the lesson: {one_line(source, 60)} (put back)")
        found = (i for i, cell in enumerate(merged) if (cell.grade_id == name if name else cell.source == source))
        index = next(found, index - 1) + 1


def _timestamp(folder: Path, flags: list[str]) -> str | None:
    """The time of the submission that nbgrader's collect writes beside the notebook."""
    path = folder / "timestamp.txt"
    try:
        if any(folder.glob("timestamp ([0-9]*).txt")):  # as `course collect` calls one that a learner made
            flags.append("a timestamp.txt was handed in with the notebook; it says nothing about the time")
        if path.is_symlink() or not path.is_file() or path.stat().st_size > 200:
            return None
        text = path.read_text(encoding="utf-8").strip()
        from nbgrader.utils import parse_utc

        return text if text and parse_utc(text) is not None else None
    except (OSError, ValueError, OverflowError, TypeError):
        flags.append("timestamp.txt holds no time; the submission counts as on time")
        return None
