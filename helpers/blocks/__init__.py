"""The finished blocks of every lesson in one flat namespace: `from helpers.blocks import attention_scores`.

Each lesson's blocks are in a file of its own, NN_topic.py, and what lessons hand out besides is in handouts.py. A name
imports only the file it comes from, and files may be missing: a lesson that is being graded sees the blocks of earlier
lessons alone.
"""

import ast
import functools
import importlib
from importlib import resources


def __getattr__(name: str):
    if not name.startswith("_"):
        for module, names in _contents().items():
            if name in names:
                return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"no finished lesson here has a block named {name!r}")


def __dir__() -> list[str]:
    return sorted(name for names in _contents().values() for name in names)


@functools.cache  # asked for by every import of a block, inside functions too
def _contents() -> dict[str, set[str]]:
    """Module name to the public names defined in it, read from the sources without running them."""
    files = [file for file in resources.files(__name__).iterdir() if not file.name.startswith("_")]
    return {
        file.name.removesuffix(".py"): defined_names(file.read_text(encoding="utf-8"))
        for file in sorted(files, key=lambda file: file.name)
        if file.name.endswith(".py")
    }


def defined_names(source: str) -> set[str]:
    """The public functions, classes and constants that a module's top level defines."""
    names = set()
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return {name for name in names if not name.startswith("_")}
