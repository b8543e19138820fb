"""The top level of some code: which names it binds, and which names each of them uses."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

from helpers.grading.staging import HELPERS
from helpers.grading.suspicion import INSIDE, RUNNING, detours_in

RUN_PYTHON = ("time", "timeit", "capture", "prun", "memit", "mprun")  # magics that run what stands behind or below them


class Pieces:
    """The top level of some code: which names it binds, and which names each of them uses."""

    def __init__(self, sources: list[str]):
        self.uses: dict[str, set[str]] = {}
        self.blocks: dict[str, set[tuple[str, int | None]]] = {}
        self.starred = any(
            re.search(r"(?m)^[ \t]*+from\s+(torch|numpy|math)\b.*import\s+\*", source) for source in sources
        )
        self.nodes: list[tuple[set[str], ast.stmt]] = []
        for source in sources:
            try:
                tree = ast.parse(without_magics(source))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            for node in tree.body:
                self._add(node)

    def _add(self, node: ast.stmt) -> None:
        bound, used, blocks = set(), set(), set()
        inner = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        if inner:
            bound.add(node.name)
        for item in ast.walk(node):
            if isinstance(item, ast.Name):
                (used if isinstance(item.ctx, ast.Load) or inner else bound).add(item.id)
            elif isinstance(item, ast.Attribute):
                used.add(item.attr)
            elif isinstance(item, (ast.Import, ast.ImportFrom)):
                names = {alias.asname or alias.name.split(".")[0] for alias in item.names}
                if not inner:
                    bound |= names
                blocks |= blocks_imported(item)
            elif isinstance(item, (ast.FunctionDef, ast.ClassDef)) and not inner:
                bound.add(item.name)
        for name in bound:
            self.uses.setdefault(name, set()).update(used - {name})
            self.blocks.setdefault(name, set()).update(blocks)
        self.nodes.append((bound, node))

    def closure(self, name: str, but: Collection[str] = ()) -> set[str]:
        """All names that `name` uses, directly or through others that are bound here; not those of `but`."""
        found, waiting = set(), [name]
        while waiting:
            for used in self.uses.get(waiting.pop(), ()):
                if used not in found and used not in but:
                    found.add(used)
                    waiting.append(used)
        return found

    def blocks_used(self, name: str, but: Collection[str]) -> set[tuple[str, int | None]]:
        return {item for used in {name, *self.closure(name, but)} for item in self.blocks.get(used, ())}

    def detours(self, name: str, banned: set[str]) -> list[str]:
        """How `name`, or what it uses, may call what is banned without naming it."""
        if not banned:
            return []
        used = {name, *self.closure(name)}
        found = []
        for bound, node in self.nodes:
            if bound & used or not bound and any(isinstance(n, ast.Name) and n.id in RUNNING for n in ast.walk(node)):
                found += detours_in(node, banned)
        return list(dict.fromkeys(found))

    def looks_inside(self, name: str) -> list[str]:
        """What `name`, or what it uses, asks of functions that tells how they are made."""
        used = {name, *self.closure(name)}
        nodes = (item for bound, node in self.nodes if bound & used for item in ast.walk(node))
        return sorted({item.attr for item in nodes if isinstance(item, ast.Attribute) and item.attr in INSIDE})

    def source_of(self, names: list[str]) -> str:
        """The statements that bind `names` and all that they use, in their order."""
        wanted = set(names).union(*(self.closure(name) for name in names))
        return "\n".join(ast.unparse(node) for bound, node in self.nodes if bound & wanted)


def blocks_imported(node: ast.Import | ast.ImportFrom) -> set[tuple[str, int | None]]:
    """(block, lesson if the import says it) for an import of finished blocks."""
    if not isinstance(node, ast.ImportFrom):
        return set()
    home = re.fullmatch(r"helpers\.blocks(?:\.(\d\d)_\w+)?", node.module or "")
    if not home:
        return set()
    return {(alias.name, int(home[1]) if home[1] else None) for alias in node.names}


def home_of_block(name: str) -> int | None:
    """The number of the lesson whose finished pieces define `name`, or None."""
    from helpers.blocks import defined_names

    for path in sorted((HELPERS / "blocks").glob("[0-9]*.py")):
        if name in defined_names(path.read_text(encoding="utf-8")):
            return int(path.stem[:2])
    return None


def without_magics(source: str) -> str:
    """The source as Python can parse it: what IPython's magics run stays, other magics, shell lines and questions for
    help (`attention?`) are blanked."""
    place, magic = 0, re.compile(r"\s*+%%(\w+).*(?:\n|$)")
    while cell := magic.match(source, place):
        if cell[1] not in RUN_PYTHON:
            return ""
        place = cell.end()
    source = source[place:]
    options = r"\b(?:[ \t]+-\w+(?:[ \t]+\d+)?)*"
    source = re.sub(rf"(?m)^([ \t]*)%(?:{'|'.join(RUN_PYTHON)}){options}[ \t]+(?=\w)", r"\1", source)
    source = re.sub(r"(?m)^([ \t]*)(?:[%!?].*|[\w.]+\?{1,2}[ \t]*)$", r"\1pass", source)
    return re.sub(r"(?m)^([\w., \t]++=[ \t]*+)[%!].*$", r"\1None", source)
