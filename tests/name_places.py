"""Lists every place that knows a name, so that renaming an exercise or a function is one command.

    python -m tests.name_places attention_scores                  the places
    python -m tests.name_places attention_scores raw_scores       renames it in all of them, then: course build

Built files (notebooks, keys, blocks) are left out, because `course build` makes them from the rest.
"""

import argparse
import re
import subprocess
from pathlib import Path

from helpers.course import course

BUILT = re.compile(r"\.(ipynb|npz|safetensors|webp|png)$|^helpers/blocks/\d\d_")


def places(name: str, root: Path) -> dict[str, list[int]]:
    """Path from the root -> the lines in which the name stands as a whole word."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
    word, known = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])"), {}
    for path in filter(None, listed.split("\0")):
        if BUILT.search(path) or not (root / path).is_file():
            continue
        lines = (root / path).read_text(encoding="utf-8", errors="ignore").splitlines()
        if found := [number for number, line in enumerate(lines, 1) if word.search(line)]:
            known[path] = found
    return known


def rename(old: str, new: str, root: Path) -> int:
    """Put the new name in every place of the old one. Returns in how many files. ValueError if the new one is taken."""
    if taken := places(new, root):
        raise ValueError(f"{new} is already known in {', '.join(taken)}.")
    known = places(old, root)
    for path in known:
        text = (root / path).read_text(encoding="utf-8")
        text = re.sub(rf"(?<![\w-]){re.escape(old)}(?![\w-])", new, text)
        (root / path).write_text(text, encoding="utf-8")
    return len(known)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("new", nargs="?", help="rename it to this")
    args = parser.parse_args()
    if args.new:
        print(f"Renamed in {rename(args.name, args.new, course().root)} files. Now run: course build")
        return
    for path, lines in places(args.name, course().root).items():
        print(f"{path}: {', '.join(map(str, lines))}")


if __name__ == "__main__":
    main()
