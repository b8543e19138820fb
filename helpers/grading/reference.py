"""What the grader knows about a lesson: answer keys with fresh inputs, finished blocks, and the release's imports."""

import ast
import contextlib
import hashlib
import os
from collections.abc import Collection
from pathlib import Path
from types import ModuleType

from helpers.checking.key import DamagedKey, ExerciseKey, load_keys, save_keys, stored_keys
from helpers.checking.make_keys import MissingPiece, UnsoundKey, lesson_keys
from helpers.checking.vocabulary import Exercise, Quiz
from helpers.course import Lesson, load_source
from helpers.errors import CourseError
from helpers.grading.course_version import version_of
from helpers.grading.name_bindings import statements
from helpers.grading.sandbox_files import HELPERS
from helpers.released import released_notebook

# Imports for a loose file, which has no import cell.
PRELUDE = "import math\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


class GraderBroken(CourseError):
    """The grader itself is broken, so nothing may be graded. The message is one sentence for a person."""


def fresh_keys(lesson: Lesson, seed: int) -> dict[str, ExerciseKey]:
    """The keys of a lesson's exercises and quizzes by name, with inputs drawn from `seed`, in the lesson's order."""
    described = answer_key(lesson)
    blocks = blocks_module(lesson)
    stored = list(visible_keys(lesson.name))
    names = sorted(described, key=lambda name: stored.index(name) if name in stored else len(stored))
    try:
        return {key.name: key for key in lesson_keys(lesson, [described[name] for name in names], blocks, seed)}
    except MissingPiece as error:
        raise GraderBroken(str(error)) from None
    except UnsoundKey as error:
        raise GraderBroken(f"the answer key of {lesson.name} contradicts itself: {error}") from None


def cached_keys(lesson: Lesson, seed: int, path: Path) -> dict[str, ExerciseKey]:
    """The same as `fresh_keys`, but cached in a file at `path`, whose name is extended by a hash of version and seed. A
    file that cannot be read or written is ignored."""
    version = hashlib.sha256(f"{version_of(lesson.name)} {seed}".encode()).hexdigest()[:16]
    cache = path.with_name(f"{path.stem}-{version}{path.suffix}")
    with contextlib.suppress(OSError, ValueError):
        return load_keys(lesson.name, cache)
    keys = fresh_keys(lesson, seed)
    with contextlib.suppress(OSError):
        for old in path.parent.glob(f"{path.stem}-*{path.suffix}"):
            old.unlink()
        fresh = cache.with_name(f".{os.getpid()}-{cache.name}")
        save_keys(fresh, list(keys.values()))
        fresh.replace(cache)
    return keys


def visible_keys(lesson: str) -> dict[str, ExerciseKey]:
    """The same as `stored_keys`, but raises GraderBroken if they cannot be read."""
    try:
        return stored_keys(lesson)
    except (OSError, DamagedKey) as error:
        raise GraderBroken(str(error)) from None


def release_imports(lesson: Lesson, exercises: Collection[str]) -> str:
    """The import statements of the lesson's release, one per line, except for names of exercises."""
    path = HELPERS.parent / "solutions" / lesson.name / f"{lesson.name}.ipynb"
    try:
        cells = released_notebook(path)["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, KeyError, TypeError):
        return PRELUDE
    nodes = [node for source in sources for node in statements(source)]
    imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    for node in imports:
        node.names = [alias for alias in node.names if (alias.asname or alias.name) not in exercises]
    return "\n".join(ast.unparse(node) for node in imports if node.names)


def answer_key(lesson: Lesson) -> dict[str, Exercise | Quiz]:
    """The exercises and quizzes of the lesson's answer_key.py, by name."""
    path = HELPERS.parent / "solutions" / lesson.name / "answer_key.py"
    module = load(path, f"answer_key_{lesson.name}", lesson)
    return {item.name: item for item in (*module.exercises, *getattr(module, "quizzes", ()))}


def blocks_path(lesson: Lesson) -> Path:
    return HELPERS / "blocks" / f"{lesson.name}.py"


def blocks_source(lesson: Lesson) -> str:
    try:
        return blocks_path(lesson).read_text(encoding="utf-8")
    except OSError:
        message = f"the finished blocks of {lesson.name} are missing; run `course build {lesson.name}`"
        raise GraderBroken(message) from None


def blocks_module(lesson: Lesson) -> ModuleType:
    return load(blocks_path(lesson), f"helpers.blocks.{lesson.name}", lesson)


def load(path: Path, name: str, lesson: Lesson) -> ModuleType:
    """Load a module from its file. Raises GraderBroken if the file is missing or does not run."""
    if not path.is_file():
        raise GraderBroken(f"{path.name} of {lesson.name} is missing, so there is nothing to judge with")
    try:
        return load_source(path, name)
    except Exception as error:
        raise GraderBroken(f"{path.name} of {lesson.name} does not run: {type(error).__name__}: {error}") from None
