"""The structure of helpers/: few top-level modules, unique file names, no circular imports, separate subpackages."""

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
# Every lesson's directory may have these modules. The translator also has a module network.
ROLES = {"__init__", "__main__", "experiments", "figures", "explore", "probes", "stand_ins", "network"}
PYTHON = sorted(path for path in HELPERS.rglob("*.py"))


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in PYTHON}


def imports(path: Path, module: str = "") -> set[str]:
    """The modules of helpers that a file imports, including imports inside functions.

    `helpers` itself is left out, because Python imports a package before anything in it.
    """
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level or path.parent.name == "inside", f"{path}: imports by full names"
            # inside/ alone uses relative imports, because it is copied alone into the sandbox.
            home = f"{module_of(path.parent / '__init__.py')}." if node.level else ""
            home = f"{home}{node.module or ''}".rstrip(".")
            inside = {f"{home}.{alias.name}" for alias in node.names}
            found |= inside & set(MODULES) or {home}
    return {name for name in found if name in MODULES} - {module, "helpers"}


@functools.cache
def graph() -> dict[str, set[str]]:
    return {module: imports(path, module) for module, path in MODULES.items() if module != "helpers"}


SEPARATE = ("helpers.authoring", "helpers.grading", "helpers.classroom")
OPEN_TO = {"classroom": {"grading"}}  # classroom passes submissions to grading and reads its points


def package_of(module: str) -> str:
    return module.split(".")[1] if module.startswith(SEPARATE) else "learner"


def test_helpers_has_at_most_ten_top_level_modules():
    files = [path.name for path in HELPERS.glob("*.py")]
    assert len(files) <= 10, sorted(files)


def test_file_names_of_modules_are_unique():
    places = defaultdict(list)
    for path in PYTHON:
        if path.stem not in ROLES:
            places[path.name].append(path.relative_to(ROOT).as_posix())
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_there_are_no_circular_imports():
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_authoring_grading_and_classroom_are_separate():
    crossed = {
        (a, b)
        for a, others in graph().items()
        for b in others
        if package_of(b) not in {"learner", package_of(a)} | OPEN_TO.get(package_of(a), set())
    }
    assert crossed == set()


# What each of these low-level packages may import besides itself.
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
def test_low_level_packages_import_nothing_from_higher_levels(package):
    allowed = MAY_IMPORT[package] | {package}
    upward = {
        (a, b)
        for a, others in graph().items()
        for b in others
        if within(a, package) and not any(within(b, other) for other in allowed)
    }
    assert upward == set()


def topic_of(module: str) -> str | None:
    """The topic of the lesson whose directory in helpers/lessons contains the module."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["helpers", "lessons"] and len(parts) > 2 and parts[2] in TOPICS else None


def test_only_a_lesson_itself_imports_from_its_directory():
    entered = {(topic_of(a) or a, topic_of(b)) for a, others in graph().items() for b in others if topic_of(b)}
    entered -= {(topic, topic) for topic in TOPICS}
    for topic, name in TOPICS.items():
        for path in (ROOT / "solutions" / name).glob("*.py"):
            entered |= {(path.name, other) for other in map(topic_of, imports(path)) if other not in (None, topic)}
    assert entered == set()


@pytest.mark.parametrize("topic", TOPICS)
def test_all_files_of_a_lesson_exist_under_its_name(topic):
    name = TOPICS[topic]
    for path in (
        f"helpers/lessons/{topic}/__init__.py",
        f"tests/lessons/test_{topic}.py",
        f"tests/accepted_variants/{topic}.py",
        f"helpers/blocks/{name}.py",
        f"helpers/answer_keys/{name}.npz",
        f"solutions/{name}/{name}.py",
        f"solutions/{name}/answer_key.py",
        f"notebooks/{name}/{name}.ipynb",
    ):
        assert (ROOT / path).is_file(), path


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
def test_folders_of_lesson_files_contain_nothing_else(folder, pattern):
    pattern = pattern.format(topic="|".join(TOPICS), name="|".join(TOPICS.values()))
    strange = [path.name for path in (ROOT / folder).iterdir() if not re.fullmatch(pattern, path.name)]
    assert strange == []


def test_measured_numbers_are_data_files_and_not_python():
    """No long list of measured numbers is written into a lesson's Python code."""
    for path in sorted((HELPERS / "lessons").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.List | ast.Tuple | ast.Dict):
                numbers = [item for item in ast.walk(node) if isinstance(getattr(item, "value", None), float)]
                assert len(numbers) < 60, f"{path.relative_to(ROOT)}, line {node.lineno}: {len(numbers)} numbers"


@pytest.mark.parametrize("path", sorted((HELPERS / "lessons").glob("*/*.json")), ids=lambda path: path.stem)
def test_a_measurement_is_read_and_written_without_change(path, tmp_path):
    (tmp_path / path.parent.name).mkdir()
    again = write(path.parent.name, path.stem, measured(path.parent.name, path.stem), tmp_path)
    assert again.read_bytes() == path.read_bytes()


def test_all_data_files_of_helpers_are_declared_as_package_data():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = settings["tool"]["setuptools"]["package-data"]
    patterns = {f"{package.replace('.', '/')}/{name}" for package, names in named.items() for name in names}
    tracked = subprocess.run(
        ["git", "ls-files", "helpers"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    data = [name for name in tracked.split() if not name.endswith(".py")]
    assert data and [name for name in data if not any(fnmatch(name, pattern) for pattern in patterns)] == []
    assert (ROOT / "helpers" / "course.toml").is_symlink(), "a copy falls behind the course.toml that people edit"
