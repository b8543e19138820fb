"""`course build`: make notebooks, answer keys and blocks from lesson texts. `--check` only compares."""

import argparse
import sys
import time
from pathlib import Path

import nbformat

from helpers.authoring import BuildError
from helpers.authoring.badges import with_badges, with_figures
from helpers.authoring.blocks import blocks_path, blocks_source
from helpers.authoring.execute import run_notebook
from helpers.authoring.keys import key_path, keys_differ, make_keys, measured_exercises
from helpers.authoring.lesson_rules import check_captions, template_problems
from helpers.authoring.release import student_notebook
from helpers.authoring.text import read_lesson, require_none
from helpers.blocks import defined_names
from helpers.checking.key import save_keys
from helpers.course import Course, CourseError, Lesson, course


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 04_scaling; all of them if none is given")
    parser.add_argument("--check", action="store_true", help="write nothing; list what is out of date and exit with 1")
    parser.add_argument("--weights", action="store_true", help="train the course's translator and store its weights")
    runs = parser.add_mutually_exclusive_group()
    for option, execute, what in (
        ("--run", True, "execute the solution notebook even if its code and the helpers have not changed"),
        ("--no-run", False, "do not execute the solution notebook; keep its outputs"),
    ):
        runs.add_argument(option, dest="execute", action="store_const", const=execute, help=what)


def run(args: argparse.Namespace) -> int:
    """Build or check the lessons. Returns 0, or 1 if something is out of date, or 2 if a lesson could not be built."""
    if args.weights:
        from helpers.translator import training

        training.build()
        return 0
    home = course()
    lessons = [home.lesson(name) for name in args.lessons] or list(home.lessons)
    stale, failed = [], False
    for lesson in lessons:
        start = time.perf_counter()
        try:
            if args.check:
                stale += out_of_date(home, lesson)
                continue
            ran = build(home, lesson, execute=args.execute)
        except CourseError as error:
            failed = True
            print(error, file=sys.stderr)
        else:
            how = "" if ran else ", with its previous outputs"
            print(f"{lesson.name:<24} built in {time.perf_counter() - start:.1f} s{how}", flush=True)
    if not args.lessons:
        for page, text in _pages(home):
            if not args.check:
                _write(page, text)
            elif text != _read(page):
                stale.append(page.relative_to(home.root).as_posix())
        stale += strays(home) if args.check else []
    if stale:
        print("Out of date; run `course build` and commit what it writes:")
        print("\n".join(f"  {item}" for item in stale))
    elif args.check and not failed:
        print("1 lesson is up to date." if len(lessons) == 1 else f"{len(lessons)} lessons are up to date.")
    return 2 if failed else int(bool(stale))


def _pages(home: Course) -> list[tuple[Path, str]]:
    """The pages that the build writes parts of, and what their text should be."""
    pages = {
        home.root / "README.md": lambda page: with_badges(page, home),
        home.root / "docs" / "measurements.md": lambda page: with_figures(page, home.root / "bench" / "results"),
    }
    return [(path, made(text)) for path, made in pages.items() if (text := _read(path)) is not None]


def build(home: Course, lesson: Lesson, execute: bool | None = None) -> bool:
    """Write the four built files of a lesson, and return whether its solution notebook was executed.

    execute: whether to execute it; None executes it if its code, or anything that the code uses, has changed. Raises
    BuildError if the lesson cannot be built.
    """
    text = read_lesson(home, lesson, template_problems)
    blocks = blocks_source(text, measured_exercises(home, lesson))
    _require_unique(home, lesson, blocks)
    _write(blocks_path(home, lesson), blocks)
    keys = make_keys(home, text)
    if keys_differ(home, lesson, keys):
        save_keys(key_path(home, lesson), keys)
    path = solution_path(home, lesson)
    if execute is None:
        execute = must_run(home, text.notebook, path)
    if execute:
        solution = run_notebook(home, text.notebook, path.parent, lesson.name)
        check_captions(solution, lesson)
    else:
        solution = _with_stored_outputs(text.notebook, path)
    _write(path, nbformat.writes(solution) + "\n")
    _write(student_path(home, lesson), student_notebook(solution))
    if execute:
        path.touch()  # newer than all files that it was made from
    return execute


def must_run(home: Course, notebook, path: Path) -> bool:
    """Whether the stored solution has other code, is older than a file that its code may use, or was not executed."""
    stored = _stored_notebook(path)
    old_cells = [cell for cell in stored.cells if cell.cell_type == "code"] if stored else []
    if [cell.source for cell in old_cells] != [cell.source for cell in notebook.cells if cell.cell_type == "code"]:
        return True
    packages = [path for path in (home.root / "helpers").iterdir() if path.name not in ("authoring", "grading")]
    used = [file for path in packages for file in (path, *path.rglob("*")) if file.is_file() and file.suffix != ".pyc"]
    newest = max(file.stat().st_mtime for file in used)
    return newest > path.stat().st_mtime or not all(cell.execution_count for cell in old_cells)


def out_of_date(home: Course, lesson: Lesson) -> list[str]:
    """The built files of a lesson that a build would change, as paths relative to the course's root."""
    text = read_lesson(home, lesson, template_problems)
    blocks = blocks_source(text, measured_exercises(home, lesson))
    stale = []
    if _read(blocks_path(home, lesson)) != blocks:
        stale.append(blocks_path(home, lesson))  # its references are these blocks, so the key cannot be compared
    elif keys_differ(home, lesson, make_keys(home, text)):
        stale.append(key_path(home, lesson))
    solution = _with_stored_outputs(text.notebook, solution_path(home, lesson))
    if _read(student_path(home, lesson)) != student_notebook(solution):
        stale.append(student_path(home, lesson))
    stored = _stored_notebook(solution_path(home, lesson))
    if stored is None or _without_outputs(stored) != _without_outputs(text.notebook):
        stale.append(solution_path(home, lesson))
    return [path.relative_to(home.root).as_posix() for path in stale]


def strays(home: Course) -> list[str]:
    """Built files without a lesson in course.toml."""
    names = {lesson.name for lesson in home.lessons}
    paths = [path for path in (home.root / "notebooks").glob("*/*.ipynb") if path.parent.name not in names]
    paths += [path for path in (home.root / "helpers" / "answer_keys").glob("*.npz") if path.stem not in names]
    paths += [path for path in (home.root / "helpers" / "blocks").glob("[0-9]*.py") if path.stem not in names]
    return [f"{path.relative_to(home.root).as_posix()} (belongs to no lesson)" for path in sorted(paths)]


def student_path(home: Course, lesson: Lesson) -> Path:
    return home.root / "notebooks" / lesson.name / f"{lesson.name}.ipynb"


def released_text(home: Course, lesson: Lesson) -> str:
    """The learner's .ipynb as `build` writes it, even if the file in notebooks/ was edited. BuildError if not built."""
    solution = _stored_notebook(solution_path(home, lesson))
    if solution is None:
        raise BuildError(f"{lesson.name} has no notebooks yet. Make them first: course build {lesson.name}")
    return student_notebook(solution)


def solution_path(home: Course, lesson: Lesson) -> Path:
    return home.root / "solutions" / lesson.name / f"{lesson.name}.ipynb"


def _require_unique(home: Course, lesson: Lesson, blocks: str) -> None:
    """Blocks of all lessons share one namespace, so a name may be defined in one lesson only."""
    mine = defined_names(blocks)
    others = [(each, _read(blocks_path(home, each)) or "") for each in home.lessons if each.name != lesson.name]
    shared = [(name, each.name) for each, source in others for name in sorted(mine & defined_names(source))]
    require_none([f"{name} is a block of {lesson.name} and of {other}. Rename one of them." for name, other in shared])


def _with_stored_outputs(notebook, path: Path):
    """Copy the stored notebook's outputs into those cells of `notebook` whose source has not changed."""
    stored = _stored_notebook(path)
    kept = {cell["id"]: cell for cell in stored.cells} if stored else {}
    for cell in notebook.cells:
        old = kept.get(cell["id"])
        if cell.cell_type == "code" and old and old.cell_type == "code" and old.source == cell.source:
            cell.outputs, cell.execution_count = old.outputs, old.execution_count
    return notebook


def _without_outputs(notebook) -> list:
    return [(cell["id"], cell.cell_type, cell.source, cell.metadata) for cell in notebook.cells] + [notebook.metadata]


def _stored_notebook(path: Path):
    """The notebook at `path`, or None if it is missing or unreadable."""
    text = _read(path)
    try:
        return None if text is None else nbformat.reads(text, as_version=4)
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, AttributeError):
        return None


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _write(path: Path, text: str) -> None:
    """Write the file if its text changed, so that an unchanged file keeps its date."""
    if _read(path) != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
