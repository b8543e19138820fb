"""Each part of the project declares the packages that it imports, and the lock file pins them and all they require."""

import ast
import functools
import re
import sys
import tomllib
from importlib.metadata import distributions, packages_distributions

import pytest
from packaging.specifiers import SpecifierSet

from helpers.course import course

ROOT = course().root
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
OWN = {"helpers", "tests", "bench", "google"}  # google: Colab's, tests/colab_stand_in
IF_THERE = {"huggingface_hub"}  # looked for before it is imported; nothing needs it
SPELLED = re.compile(r"([A-Za-z0-9][\w.-]*)==([\w.]+)")


def pins(lines) -> dict[str, str]:
    """Package -> version, from lines in pip's format."""
    found = [SPELLED.match(line.strip()) for line in lines]
    return {re.sub(r"[-_.]+", "-", match[1]).lower(): match[2] for match in found if match}


LEARNER = pins((ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines())
LOCK = pins((ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines())
ALL = LEARNER | pins(line for extra in EXTRAS.values() for line in extra)
DECLARED = {
    "learner": LEARNER,
    "authoring": LEARNER | pins(EXTRAS["author"]) | pins(EXTRAS["book"]),
    "grading": LEARNER | pins(EXTRAS["grade"]) | pins(EXTRAS["cluster"]),
    "classroom": LEARNER | pins(EXTRAS["grade"]),
    "tests": ALL,
    "bench": ALL,
    "docs": ALL,
    "solutions": LEARNER,
}


def part_of(path) -> str:
    top, *rest = path.relative_to(ROOT).parts
    return (rest[0] if rest[0] in DECLARED else "learner") if top == "helpers" else top


@functools.cache
def imported(path) -> set[str]:
    """Top-level names of the packages that a file imports anywhere."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - OWN - IF_THERE


owners_of_modules = functools.cache(packages_distributions)


@pytest.mark.parametrize("name", DECLARED)
def test_each_part_declares_the_packages_it_imports(name):
    known, missing = owners_of_modules(), set()
    folders = [ROOT / folder for folder in ("helpers", "tests", "bench", "docs", "solutions")]
    for path in [file for folder in folders for file in folder.rglob("*.py")]:
        if part_of(path) == name:
            for package in imported(path) - {path.stem for path in path.parent.glob("*.py")}:
                owners = {re.sub(r"[-_.]+", "-", owner).lower() for owner in known.get(package, [package])}
                if not owners & set(DECLARED[name]):
                    missing.add(f"{path.relative_to(ROOT)}: {package}")
    assert not missing


def test_the_lock_file_pins_the_declared_versions():
    assert {name: LOCK.get(name) for name in ALL} == ALL


def test_the_lock_file_contains_only_pins_and_comments():
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        assert line.startswith("#") or SPELLED.fullmatch(line), line
    assert LOCK["torch"] == "2.13.0"


def test_all_pinned_packages_support_the_python_of_debian_12():
    """It is 3.11.2, and pip reports a conflict if a package requires a later 3.11."""
    pinned = [package for package in distributions() if package.name.lower() in LOCK]
    needs = {package.name: package.metadata.get("Requires-Python") or "" for package in pinned}
    assert len(needs) > 100 and {name: need for name, need in needs.items() if "3.11.2" not in SpecifierSet(need)} == {}
