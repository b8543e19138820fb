"""Read submitted folders and turn their notebooks into cells that can be judged.

Anything unusual is flagged for a person, and a submission that cannot be read gets a `problem`. Submitted files never
make this module raise an error, so that no single one stops the grading of a class.
"""

import contextlib
import functools
import hashlib
import os
from collections.abc import Iterable, Set
from pathlib import Path

from helpers.grading.attachments import is_course_model, read_files_beside
from helpers.grading.lesson_release import is_learners, read_release
from helpers.grading.merge_cells import identify_cells, merge_cells
from helpers.grading.name_bindings import TopLevel
from helpers.grading.not_supported import HERE, missing_packages, names_bound, without_newer_syntax
from helpers.grading.notebook_file import ENDINGS, Unreadable, grade_id_of, parse_cells, read_cells, read_file, squeezed
from helpers.grading.public_solution import is_published, published_flags
from helpers.grading.repository_files import notebooks_below
from helpers.grading.safe_text import one_line
from helpers.grading.submission import Release, Submission

MOST_NAME = 128  # bytes of a student's id, which names a folder, a file and a row of the gradebook
FORBIDDEN_IN_NAMES = set('<>"\\[]*?')  # Formgrader copies ids into its pages unescaped, nbgrader into glob patterns.
MOST_NOTEBOOKS = 12  # of one submission, which are searched for the one that has answers


def find_submissions(submitted: Path, lesson: str) -> list[str]:
    """The sorted ids of all students who submitted something for this lesson."""
    return [folder.name for folder in _student_folders(submitted) if os.path.lexists(folder / lesson)]


def find_misplaced(submitted: Path, lesson: str) -> dict[str, str]:
    """A sentence for each student whose notebook of this lesson is not in the folder where it is expected."""
    sentences = {}
    for folder in _student_folders(submitted):
        loose = sorted(path.name for path in folder.glob("*.ipynb") if lesson in path.name)
        if loose and not os.path.lexists(folder / lesson):
            name = one_line(loose[0], 80)
            sentences[folder.name] = f"{name} lies outside of the folder {lesson}; move it there and grade again."
    return sentences


def _student_folders(submitted: Path) -> list[Path]:
    folders = []
    for folder in submitted.iterdir() if submitted.is_dir() else ():
        with contextlib.suppress(OSError):  # A folder without read permission counts as empty.
            if not folder.name.startswith(".") and folder.is_dir():
                folders.append(folder)
    return sorted(folders)


def name_problem(student: str) -> str | None:
    """Why a folder's name cannot be a student's id: it's too long, or unsafe to show. None if it can be one."""
    can_be_shown = student == one_line(student) and not FORBIDDEN_IN_NAMES & set(student)
    if can_be_shown and len(student.encode("utf-8", "replace")) <= MOST_NAME:
        return None
    return f"The folder {one_line(student, 60)!r} has a name that is too long or cannot be shown; rename it."


def read_submission(submitted: Path, student: str, release: Release, notebooks: Path) -> Submission:
    """Read the submission of `student`. notebooks: the folder of all lessons, to tell which one a wrong notebook is."""
    return read_folder(submitted / student / release.lesson, student, release, notebooks)


def read_folder(folder: Path, student: str, release: Release, notebooks: Path, path: Path | None = None) -> Submission:
    """Read the submission in a folder. path: its notebook, if it is known which one to grade."""
    submission = Submission(student, release.lesson, [], sha="")
    digest = hashlib.sha256()
    try:
        path = path or _choose_notebook(folder, release, submission.flags)
        content = read_file(path)
        digest.update(content)
        cells = parse_cells(content, path.name)
        _refuse_other_lesson(cells, release, notebooks, path.name)
        left_out = _leave_out_newer_syntax(cells, release, submission.flags)
        submission.cells = merge_cells(cells, release, submission.flags)
        submission.folder = path.parent
        _wait_for_a_person(submission, release, left_out, "what was left out")
        missing = missing_packages(submission.cells, path.parent)
        packages = " and ".join(sorted(set(missing.values())))
        _wait_for_a_person(submission, release, missing.keys(), f"{packages}, which the grader does not have")
        submission.timestamp = _read_timestamp(folder, submission.flags)
        submission.flags += published_flags(submission.cells, release)
        beside, flags = read_files_beside(submission.folder, submission.code())
        weights = [name for name in beside if name.endswith(".safetensors") and is_course_model(beside[name])]
        submission.flags += flags + [f"{name} holds the weights of the course's own translator" for name in weights]
        files = b"".join(f"{name} {len(data)} ".encode() + data for name, data in beside.items())
    except Unreadable as problem:
        submission.problem = one_line(str(problem))
    except Exception as error:  # Whatever is wrong with one submission, the others are graded.
        reason = f"{type(error).__name__}: {error}"
        submission.problem = one_line(f"This submission cannot be read ({reason}). Ask for the notebook again.")
    if submission.problem:
        submission.cells, submission.folder, files = merge_cells([], release, []), None, b""
    digest.update((submission.problem or "").encode() + files)
    submission.sha = digest.hexdigest()
    submission.flags = [one_line(flag) for flag in submission.flags]
    return submission


def _leave_out_newer_syntax(cells: list[dict], release: Release, flags: list[str]) -> set[str]:
    """Comment out statements that only a newer Python can parse, and return the names that they would bind."""
    names: set[str] = set()
    for cell in cells:
        if cell["cell_type"] == "code" and cell["ran"] is not False and cell["source"] not in release.sources:
            cell["source"], left_out = without_newer_syntax(cell["source"], ran=bool(cell["ran"]))
            names.update(*map(names_bound, left_out))
            where = f"Cell {grade_id_of(cell) or cell['id'] or 'without a name'} has a statement"
            elsewhere = ", though it ran at home" if cell["ran"] else ", and a newer one may"
            flag = f"{where} that the grader's Python {HERE} cannot read{elsewhere}; left out: "
            flags += [flag + statement.split("\n")[0][:60] for statement in left_out]
    return names


def _wait_for_a_person(submission: Submission, release: Release, names: Set[str], without: str) -> None:
    """Let exercises that depend on `names`, which are unbound in the grader, wait for a person. without: what is
    missing, for the flag."""
    if not names:
        return
    code = TopLevel(cell.source for cell in submission.cells if cell.runs)
    waiting = [name for name in release.checks if {name, *code.closure(name)} & names]
    for cell in submission.cells:
        if cell.kind == "check" and cell.exercise in waiting:
            cell.waits = True
    if waiting:
        wait, they = ("waits", "it passes") if len(waiting) == 1 else ("wait", "they pass")
        submission.flags.append(f"{', '.join(waiting)} {wait} for a person, unless {they} without {without}")


def _choose_notebook(folder: Path, release: Release, flags: list[str]) -> Path:
    """The notebook to grade: of several, the one with the expected name if it has answers, else that with most answers.

    Subfolders are searched if the folder itself has no notebook; in a clone of the course, the solution never counts.
    Raises Unreadable if there is no notebook.
    """
    expected = f"{release.lesson}.ipynb"
    candidates = _find_notebooks(folder, release, expected)
    answers = functools.cache(lambda path: _count_answers(path, release))
    named = [path for path in candidates if path.name == expected]
    examined = named + [path for path in candidates if path.name != expected][:MOST_NOTEBOOKS]
    chosen = examined[0]
    if len(candidates) > 1 and not (named and answers(chosen)[0] > 0):
        chosen = max(examined, key=answers)
    if chosen.name != expected:
        flags.append(f"the notebook is called {chosen.name[:80]}, not {expected}")
    for path in candidates[:MOST_NOTEBOOKS]:
        if path != chosen and (path.suffix.lower() == ".ipynb" or answers(path)[1] > 0):
            flags.append(f"{path.name[:80]} is next to it and was not graded")
    if len(candidates) > MOST_NOTEBOOKS:
        flags.append(f"{len(candidates)} notebooks are in its folder; not all of them were examined")
    return chosen


def _find_notebooks(folder: Path, release: Release, expected: str) -> list[Path]:
    if folder.is_symlink() or not folder.is_dir():
        raise Unreadable(f"{release.lesson} is not a folder; nothing was read. Ask for the notebook {expected}.")
    try:
        paths = sorted(p for p in folder.iterdir() if p.name.lower().endswith(ENDINGS))
    except OSError as error:
        raise Unreadable(f"The folder cannot be read ({error.strerror}). Ask for the notebook {expected}.") from None
    if not paths:
        paths = sorted(notebooks_below(folder), key=lambda path: path.name != expected)[:MOST_NOTEBOOKS]
        paths = [path for path in paths if path.name == expected or lesson_of(path, [release])[0]]
    if not paths:
        raise Unreadable(f"No notebook was handed in; {expected} was expected.")
    return paths


def _count_answers(path: Path, release: Release) -> tuple[int, int]:
    """The number of a notebook's answers that differ from the release, and the number of its cells of this lesson. Both
    are -1 if the notebook cannot be read; the first is -1 if it is the published solution."""
    try:
        cells = read_cells(path)
    except Unreadable:
        return -1, -1
    identified = zip(cells, identify_cells(cells, release), strict=True)
    sources = [(name, cell["source"]) for cell, name in identified if name is not None]
    if is_published(sources, release):
        return -1, len(sources)
    edited = [name for name, source in sources if squeezed(source) not in release.texts]
    return sum(is_learners(release.graded[name]) for name in edited), len(sources)


def lesson_of(path: Path, releases: list[Release]) -> tuple[str | None, int]:
    """The lesson to which a notebook belongs, and the number of its answers that differ from the release. Returns None
    and -1 if its cells do not tell the lesson, or if it cannot be read."""
    try:
        cells = read_cells(path)
    except Unreadable:
        return None, -1
    ids = {grade_id_of(cell) for cell in cells} - {None}
    named = [ids & release.graded.keys() if ids else identify_cells(cells, release) for release in releases]
    counts = [len(_specific_to_lesson(names)) for names in named]
    if not any(counts):
        return None, -1
    best = releases[counts.index(max(counts))]
    return best.lesson, _count_answers(path, best)[0]


def _refuse_other_lesson(cells: list[dict], release: Release, notebooks: Path, name: str) -> None:
    """Raise Unreadable for a notebook that has cells of another lesson and none of this one."""
    ids = _specific_to_lesson(map(grade_id_of, cells))
    if not ids or _specific_to_lesson(identify_cells(cells, release)):
        return
    others = [path for path in sorted(notebooks.glob("*/*.ipynb")) if path.stem == path.parent.name]
    counts = {path.stem: len(ids & read_release(path).graded.keys()) for path in others}
    best = max(counts, key=lambda lesson: counts[lesson])
    other = best if counts[best] else "another lesson"
    raise Unreadable(f"{name} is the notebook of {other}, not of {release.lesson}. Ask for the right one.")


def _specific_to_lesson(names: Iterable[str | None]) -> set[str]:
    """The names of cells that do not occur in every lesson."""
    in_every_lesson = ("setup", "quiz_", "written_")
    return {name for name in names if name and not name.removeprefix("check_").startswith(in_every_lesson)}


def _read_timestamp(folder: Path, flags: list[str]) -> str | None:
    """The time of the submission, which nbgrader's collect writes to timestamp.txt; None if there is no such file."""
    path = folder / "timestamp.txt"
    try:
        if any(folder.glob("timestamp ([0-9]*).txt")):  # `course collect` renames a learner's own file like this.
            flags.append("a timestamp.txt was handed in with the notebook; it says nothing about the time")
        if path.is_symlink() or not path.is_file() or path.stat().st_size > 200:
            return None
        text = path.read_text(encoding="utf-8").strip()
        from nbgrader.utils import parse_utc

        return text if text and parse_utc(text) is not None else None
    except (OSError, ValueError, OverflowError, TypeError):
        flags.append("timestamp.txt holds no time; the submission counts as on time")
        return None
