"""Finds a learner's own files in a submitted folder, such as a clone or a zip archive of the whole course.

Files that come from tools or from the course itself are not answers: environments, caches, `.git`, the course's
package and, above all, the public solutions.
"""

import os
from collections.abc import Iterable
from pathlib import Path

SKIPPED = {".git", ".github", ".venv", "venv", "env", "node_modules", "__pycache__", "site-packages"}
SKIPPED |= {".ipynb_checkpoints", ".pytest_cache", ".ruff_cache", ".mypy_cache", ".idea", ".vscode", "__MACOSX"}
NOTEBOOKS, COURSE = "notebooks", {"helpers", "solutions", "notebooks"}  # two of these folders make a clone
MOST_FILES, DEEPEST = 2000, 8  # limits for one submission: files, and levels of folders

Names = tuple[str, ...]


def own_files(paths: Iterable[Names]) -> dict[Names, Names]:
    """The files that may be a learner's, each with its path, except that files in notebooks/ of a clone get the path
    that they would have directly in the clone. Paths are tuples of the folders' names and the file's name."""
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
            renamed[names] = names  # the learner may have put it there
    return renamed


def files_below(folder: Path) -> list[Names]:
    """The paths of the files below a folder, relative to it and without links, up to the limits above."""
    paths: list[Names] = []
    for parent, folders, files in os.walk(folder):
        above = Path(parent).relative_to(folder).parts
        folders[:] = sorted(name for name in folders if name not in SKIPPED) if len(above) < DEEPEST else []
        paths += [(*above, name) for name in sorted(files) if not os.path.islink(os.path.join(parent, name))]
        if len(paths) > MOST_FILES:
            break
    return paths[:MOST_FILES]


def notebooks_below(folder: Path) -> list[Path]:
    """The notebooks anywhere below `folder` that may be a learner's."""
    return [folder.joinpath(*names) for names in own_files(files_below(folder)) if names[-1].lower().endswith(".ipynb")]
