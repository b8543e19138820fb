"""Whole folders as submissions: of a clone of the course, or a zip of it, its owner's notebooks and nothing else.

What tools and the course itself put into a folder is no learner's answer: environments, caches, `.git`, the course's
package, and the public solutions above all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

SKIPPED = {".git", ".github", ".venv", "venv", "env", "node_modules", "__pycache__", "site-packages"}
SKIPPED |= {".ipynb_checkpoints", ".pytest_cache", ".ruff_cache", ".mypy_cache", ".idea", ".vscode", "__MACOSX"}
NOTEBOOKS, COURSE = "notebooks", {"helpers", "solutions", "notebooks"}  # of the last, two together make a clone
MOST_FILES, DEEPEST = 2000, 8  # that are looked at below one submission's folder

Names = tuple[str, ...]


def own_files(paths: Iterable[Names]) -> dict[Names, Names]:
    """The files that may be a learner's, each with its name as if notebooks/ of a clone were the clone's folder.

    found: the folders and the name of each file.
    """
    files = [names for names in paths if not SKIPPED & set(names)]
    inside: dict[Names, set[str]] = {}
    for names in files:
        for depth in range(len(names) - 1):
            inside.setdefault(names[:depth], set()).add(names[depth])
    clones = {root for root, folders in inside.items() if len(COURSE & folders) >= 2}
    renamed = {}
    for names in files:
        root = next((names[:depth] for depth in range(len(names)) if names[:depth] in clones), None)
        if root is None:
            renamed[names] = names
        elif names[len(root)] == NOTEBOOKS:
            renamed[names] = root + names[len(root) + 1 :]
        elif len(names) == len(root) + 1 and names[-1].lower().endswith((".ipynb", ".safetensors")):
            renamed[names] = names  # a learner may have put it there
    return renamed


def files_below(folder: Path) -> list[Names]:
    """The regular files below a folder, as names from there; links are not followed, and not all is looked at."""
    paths: list[Names] = []
    for place, folders, files in os.walk(folder):
        above = Path(place).relative_to(folder).parts
        folders[:] = sorted(name for name in folders if name not in SKIPPED) if len(above) < DEEPEST else []
        paths += [(*above, name) for name in sorted(files) if not os.path.islink(os.path.join(place, name))]
        if len(paths) > MOST_FILES:
            break
    return paths[:MOST_FILES]


def notebooks_below(folder: Path) -> list[Path]:
    """The notebooks that lie in folders below `folder` and may be a learner's."""
    return [folder.joinpath(*names) for names in own_files(files_below(folder)) if names[-1].lower().endswith(".ipynb")]
