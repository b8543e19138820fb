"""A lesson's blocks: the solution cells as a module that later lessons import."""

import ast
import builtins
import importlib.util
import sys
from collections.abc import Collection
from types import ModuleType

from helpers.authoring import BuildError
from helpers.authoring.text import LessonText, require_none
from helpers.checking.names import bound_names, free_names
from helpers.course import Course, Lesson
from helpers.released import without_marks


def blocks_path(course: Course, lesson: Lesson):
    return course.root / "helpers" / "blocks" / f"{lesson.name}.py"


def blocks_source(text: LessonText, measured: Collection[str] = ()) -> str:
    """The source of helpers/blocks/NN_topic.py. BuildError if a solution uses a name that it must not use.

    measured: exercises whose answer is a trained model (see helpers/authoring/keys.py). They don't become blocks, and
    their solutions may use every name of the notebook.
    """
    name = text.lesson.name
    answers = [text.answers[exercise] for exercise in text.exercises if exercise not in measured]
    pieces = [without_marks(answer).strip("\n") for answer in answers]
    cells = [cell for cell in text.notebook.cells if cell.cell_type == "code" and "nbgrader" not in cell.metadata]
    available = _allowed_imports("\n".join(cell.source for cell in cells))
    defined, used = set(dir(builtins)), set()
    for piece in pieces:
        tree = ast.parse(piece)
        defined |= bound_names(tree)
        used |= free_names(tree) - defined
    where = "not imported in an import cell from the standard library, torch or helpers.blocks"
    unknown = sorted(used - available.keys())
    require_none([f"{name}: a solution uses {word}, which is no earlier answer and is {where}." for word in unknown])
    imports = {available[word] for word in used}
    head = (
        f"# Made by `course build` from solutions/{name}/{name}.py; never edited here.\n"
        f'"""The finished blocks of lesson {text.lesson.number}: {text.lesson.title}."""\n'
    )
    packages = {line: line.split()[1].partition(".")[0] for line in imports}
    own = {"torch": 1, "helpers": 2}
    groups = [sorted(line for line in imports if own.get(packages[line], 0) == rank) for rank in range(3)]
    parts = [head, *("\n".join(group) + "\n" for group in groups if group)]
    return "\n".join([*parts, *("\n" + piece + "\n" for piece in pieces)])


def load_blocks(course: Course, lesson: Lesson) -> ModuleType:
    """Load the built module from its file, even if it was imported before."""
    spec = importlib.util.spec_from_file_location(f"helpers.blocks.{lesson.name}", blocks_path(course, lesson))
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise BuildError(f"The solutions of {lesson.name} do not run as blocks: {reason}.") from None
    return module


def _allowed_imports(source: str) -> dict[str, str]:
    """Map each name to the import statement that binds it, for the imports that a block may have."""
    imports = {}
    for node in ast.parse(source).body:
        for alias in node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else ():
            module = alias.name if isinstance(node, ast.Import) else node.module or ""
            top = module.partition(".")[0]
            if module == "helpers.blocks" or top == "torch" or top in sys.stdlib_module_names:
                statement = ast.Import([alias]) if isinstance(node, ast.Import) else ast.ImportFrom(module, [alias], 0)
                imports[alias.asname or alias.name.split(".")[0]] = ast.unparse(statement)
    return imports
