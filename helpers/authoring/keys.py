"""Make a lesson's answer key: its cases, and the outputs of the reference and of known mistakes, as an .npz file."""

import ast
import math
import traceback
from collections import Counter
from types import ModuleType

import torch

from helpers.authoring import BuildError
from helpers.authoring.blocks import load_blocks
from helpers.authoring.lesson_rules import quiz_options
from helpers.authoring.text import LessonText, require_none
from helpers.checking.key import SKETCH, ExerciseKey, key_to_tree, load_keys, sketched
from helpers.checking.make_keys import UnsoundKey, lesson_keys
from helpers.checking.mistake_lists import UnreadableList
from helpers.checking.vocabulary import Stub
from helpers.course import Course, Lesson, load_source

SEED = 0
# Processors differ in the last bits, so differences up to these don't count. A Python float may come from float32.
SAME_INPUTS = {torch.float64: 1e-10, torch.float32: 1e-6, float: 1e-5}
# Random inputs differ in the last bits too (in float64, by those of float32), and outputs then differ by more.
OTHER_INPUTS = {torch.float64: 1e-4, torch.float32: 1e-4, float: 1e-4}
EXACT = {float: 0.0}
# A known mistake may be a rounding error, such as cancellation, whose digits depend on the processor.
MISTAKES = {torch.float32: 1e-3}


def key_path(course: Course, lesson: Lesson):
    return course.root / "helpers" / "answer_keys" / f"{lesson.name}.npz"


def make_keys(course: Course, text: LessonText) -> list[ExerciseKey]:
    """Make the keys of all exercises and quizzes of a lesson, in the order of its text. Its blocks must be built."""
    lesson = text.lesson
    module = load_answer_key(course, lesson)
    items = [*module.exercises, *getattr(module, "quizzes", ())]
    described, answers = {item.name: item for item in items}, text.answers
    where = f"solutions/{lesson.name}/answer_key.py"
    counts = Counter(item.name for item in items)
    problems = [f"{where} describes {name} twice. Keep one of them." for name in counts if counts[name] > 1]
    unknown, missing = sorted(described.keys() - answers), sorted(answers.keys() - described)
    problems += [f"{where} describes {name}, which has no answer cell in the lesson." for name in unknown]
    problems += [f"{where} does not describe {name}. Add it to exercises or quizzes." for name in missing]
    require_none(problems)
    for name, options in quiz_options(text).items():
        if options and options != (explained := sorted(described[name].explanations)):
            problems.append(f"{where}: {name} has the options {options} in the lesson, and explains {explained}.")
    blocks, keys = load_blocks(course, lesson), []
    for name in text.answers:
        try:
            keys += lesson_keys(lesson, [described[name]], blocks, SEED)
        except UnsoundKey as error:
            problems += [f"{where}: {problem}." for problem in error.args]
        except Exception as error:
            problems.append(f"{where}{_line_in(error, module.__file__)}, {name}: {type(error).__name__}: {error}.")
    require_none(problems)
    return keys


def measured_exercises(course: Course, lesson: Lesson) -> set[str]:
    """The exercises that the answer key judges by a metric: Exercise("name", ..., metric="..."). The key is not run,
    because it may need blocks that are built later."""
    path = course.root / "solutions" / lesson.name / "answer_key.py"
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return set()
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    calls = [call for call in calls if any(word.arg == "metric" for word in call.keywords)]
    return {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}


def _line_in(error: Exception, path: str) -> str:
    """The line of the file at `path` that caused the error, as " line 7", or "" if it came from elsewhere."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return f" line {lines[-1]}" if lines else ""


def load_answer_key(course: Course, lesson: Lesson) -> ModuleType:
    """The lesson's answer_key.py as a module. Raises BuildError if it is missing or does not run."""
    path = course.root / "solutions" / lesson.name / "answer_key.py"
    where = path.relative_to(course.root).as_posix()
    if not path.is_file():
        raise BuildError(f"{where} is missing. It holds the cases and known mistakes of {lesson.name}.")
    try:
        module = load_source(path, f"answer_key_{lesson.name}")
    except SyntaxError as error:
        raise BuildError(f"{where} line {error.lineno}: {error.msg}.") from None
    except UnreadableList as error:
        raise BuildError(f"{where}, {error}.") from None
    except Exception as error:
        line = _line_in(error, str(path))
        raise BuildError(f"{where}{line} does not run: {type(error).__name__}: {error}.") from None
    if not hasattr(module, "exercises"):
        raise BuildError(f"{where} has no list `exercises`.")
    return module


def keys_differ(course: Course, lesson: Lesson, keys: list[ExerciseKey]) -> bool:
    """Whether `keys` differ from the stored ones in more than the last bits of floats."""
    try:
        stored = load_keys(lesson.name, key_path(course, lesson))
    except (ValueError, KeyError, OSError):  # missing, or of another version
        return True
    return list(stored) != [key.name for key in keys] or any(key_differs(key, stored[key.name]) for key in keys)


def key_differs(key: ExerciseKey, stored: ExerciseKey) -> bool:
    fresh, old = key_to_tree(key), key_to_tree(stored)
    inputs = [[[case["args"], case["kwargs"]] for case in tree["cases"]] for tree in (fresh, old)]
    tolerances = SAME_INPUTS if same(*inputs, EXACT) else OTHER_INPUTS
    wrong = [tree.pop("mistakes") for tree in (fresh, old)]
    return not (same(fresh, old, tolerances) and same(*wrong, tolerances | MISTAKES))


def same(a, b, tolerances: dict) -> bool:
    """Whether two trees of tensors, numbers and strings are equal, with floats within `tolerances`.

    The tolerance of a tensor is relative to its largest absolute value, or to 0.1 if that is larger, so that rounding
    around 0 does not count as a change.
    """
    if {type(a), type(b)} == {torch.Tensor, Stub}:  # the size is near the limit above which tensors are sketched
        a, b = (sketched(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in (a, b))
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        if a.dtype != b.dtype or a.shape != b.shape or not a.is_floating_point():
            return a.dtype == b.dtype and torch.equal(a, b)
        return _close(a, b, tolerances.get(a.dtype, 0.0))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[name], b[name], tolerances) for name in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y, tolerances) for x, y in zip(a, b, strict=True))
    if isinstance(a, float):
        return a == b or bool(_close(torch.tensor(a).double(), torch.tensor(b).double(), tolerances[float]))
    if isinstance(a, Stub) and a.name == b.name == SKETCH:
        # The sums of a sketch add up many numbers, so they differ by more than each of them.
        (dtype, shape, rounded, sums), (*_, others) = a.args, b.args
        if not others.any():  # rounding errors around 0, which float32 may hold exactly or not
            rounded = b.args[2]
        tolerance = 100 * tolerances.get(getattr(torch, dtype), 0.0) * math.sqrt(math.prod(shape))
        return (dtype, shape, rounded) == b.args[:-1] and bool(((sums - others).abs() <= tolerance).all())
    if isinstance(a, Stub):
        return a.name == b.name and same(a.args, b.args, tolerances)
    return a == b


def _close(a: torch.Tensor, b: torch.Tensor, tolerance: float) -> bool:
    finite = a.isfinite()
    if not torch.equal(finite, b.isfinite()) or not torch.equal(a.isnan(), b.isnan()):
        return False
    infinite = a.isinf()
    if not torch.equal(a[infinite], b[infinite]):
        return False
    scale = a[finite].abs().max().clamp(min=0.1) if finite.any() else 1.0
    return bool(((a[finite] - b[finite]).abs() <= tolerance * scale).all())
