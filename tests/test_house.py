"""The house: few doors, one meaning a name, no circles, three wings, one room a lesson, one table, data as data."""

import ast
import functools
import re
import subprocess
import tomllib
from collections import defaultdict
from fnmatch import fnmatch
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from bench.written import write
from helpers.course import course
from helpers.drawing.measured import measured
from tests.conftest import ROOT

HELPERS = ROOT / "helpers"
TOPICS = {lesson.topic: lesson.name for lesson in course().lessons}
# A lesson's directory may have each of these; the translator has a network as well.
ROLES = {"__init__", "__main__", "experiments", "figures", "explore", "probes", "stand_ins", "network"}
PYTHON = sorted(path for path in HELPERS.rglob("*.py"))


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in PYTHON}


def imports(path: Path, module: str = "") -> set[str]:
    """The modules of helpers that a file imports, those that its functions import included.

    `helpers` itself is left out, because Python imports a package before anything in it.
    """
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level or path.parent.name == "inside", f"{path}: imports by full names"
            home = f"{module_of(path.parent / '__init__.py')}." if node.level else ""  # inside/ goes alone into the box
            home = f"{home}{node.module or ''}".rstrip(".")
            inside = {f"{home}.{alias.name}" for alias in node.names}
            found |= inside & set(MODULES) or {home}
    return {name for name in found if name in MODULES} - {module, "helpers"}


@functools.cache
def graph() -> dict[str, set[str]]:
    return {module: imports(path, module) for module, path in MODULES.items() if module != "helpers"}


WINGS = ("helpers.authoring", "helpers.grading", "helpers.classroom")
OPEN_TO = {"classroom": {"grading"}}  # it brings submissions to the grader and takes points from there


def wing(module: str) -> str:
    return module.split(".")[1] if module.startswith(WINGS) else "learner"


def test_the_first_floor_has_ten_doors():
    files = [path.name for path in HELPERS.glob("*.py")]
    assert len(files) <= 10, sorted(files)


def test_no_file_name_means_two_things():
    places = defaultdict(list)
    for path in PYTHON:
        if path.stem not in ROLES:
            places[path.name].append(path.relative_to(ROOT).as_posix())
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_module_imports_itself_in_a_circle():
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_wings_stand_apart():
    crossed = {
        (a, b)
        for a, others in graph().items()
        for b in others
        if wing(b) not in {"learner", wing(a)} | OPEN_TO.get(wing(a), set())
    }
    assert crossed == set()


# What each of these may import besides itself, so that no arrow runs from a foundation up to what stands on it.
MAY_IMPORT = {
    "helpers.answer_keys": set(),
    "helpers.blocks": {"helpers.progress"},
    "helpers.progress": {"helpers.answer_keys"},
    "helpers.running": set(),
    "helpers.translator": {f"helpers.{name}" for name in "corpus drawing errors running setup widgets".split()},
}


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_no_foundation_imports_what_stands_on_it(package):
    allowed = MAY_IMPORT[package] | {package}
    upward = {
        (a, b)
        for a, others in graph().items()
        for b in others
        if within(a, package) and not any(within(b, other) for other in allowed)
    }
    assert upward == set()


def room_of(module: str) -> str | None:
    """The topic of the lesson whose room a module stands in."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["helpers", "lessons"] and len(parts) > 2 and parts[2] in TOPICS else None


def test_a_lessons_room_is_entered_by_its_own_only():
    entered = {(room_of(a) or a, room_of(b)) for a, others in graph().items() for b in others if room_of(b)}
    entered -= {(topic, topic) for topic in TOPICS}
    for topic, name in TOPICS.items():
        for path in (ROOT / "solutions" / name).glob("*.py"):
            entered |= {(path.name, other) for other in map(room_of, imports(path)) if other not in (None, topic)}
    assert entered == set()


@pytest.mark.parametrize("topic", TOPICS)
def test_a_lesson_has_its_places_under_one_name(topic):
    name = TOPICS[topic]
    for place in (
        f"helpers/lessons/{topic}/__init__.py",
        f"tests/lessons/test_{topic}.py",
        f"tests/accepted_variants/{topic}.py",
        f"helpers/blocks/{name}.py",
        f"helpers/answer_keys/{name}.npz",
        f"solutions/{name}/{name}.py",
        f"solutions/{name}/answer_key.py",
        f"notebooks/{name}/{name}.ipynb",
    ):
        assert (ROOT / place).is_file(), place


@pytest.mark.parametrize(
    ("folder", "pattern"),
    [
        ("helpers/lessons", r"({topic})|__init__\.py|__pycache__"),
        ("helpers/blocks", r"({name})\.py|__init__\.py|handouts\.py|__pycache__"),
        ("helpers/answer_keys", r"({name})\.npz|__init__\.py|__pycache__"),
        ("tests/accepted_variants", r"({topic})\.py|__pycache__"),
        ("tests/lessons", r"test_({topic})\w*\.py|__init__\.py|__pycache__|lesson_text\.py"),
    ],
)
def test_no_place_has_a_scheme_of_its_own(folder, pattern):
    pattern = pattern.format(topic="|".join(TOPICS), name="|".join(TOPICS.values()))
    strange = [path.name for path in (ROOT / folder).iterdir() if not re.fullmatch(pattern, path.name)]
    assert strange == []


def test_measured_numbers_are_data_and_no_python():
    """No row of numbers that a program once wrote stands in a lesson's Python; what is written is read as it was."""
    for path in sorted((HELPERS / "lessons").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.List | ast.Tuple | ast.Dict):
                numbers = [item for item in ast.walk(node) if isinstance(getattr(item, "value", None), float)]
                assert len(numbers) < 60, f"{path.relative_to(ROOT)}, line {node.lineno}: {len(numbers)} numbers"


@pytest.mark.parametrize("path", sorted((HELPERS / "lessons").glob("*/*.json")), ids=lambda path: path.stem)
def test_what_a_bench_program_writes_is_what_a_figure_reads(path, tmp_path):
    (tmp_path / path.parent.name).mkdir()
    again = write(path.parent.name, path.stem, measured(path.parent.name, path.stem), tmp_path)
    assert again.read_bytes() == path.read_bytes()


def test_an_installed_course_has_its_data():
    """Whatever in helpers is no Python is named as package data."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = settings["tool"]["setuptools"]["package-data"]
    patterns = {f"{package.replace('.', '/')}/{name}" for package, names in named.items() for name in names}
    tracked = subprocess.run(
        ["git", "ls-files", "helpers"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    data = [name for name in tracked.split() if not name.endswith(".py")]
    assert data and [name for name in data if not any(fnmatch(name, pattern) for pattern in patterns)] == []
    assert (ROOT / "helpers" / "course.toml").is_symlink(), "a copy falls behind the course.toml that people edit"
