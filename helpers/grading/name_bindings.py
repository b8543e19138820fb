"""The top level of some code: which names it binds, and which names each of them uses."""

import ast
import functools
import re
import symtable
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from helpers.grading.folders import ROOT
from helpers.grading.suspicious_code import INSIDE, RUNNING, detours_in

RUN_PYTHON = ("time", "timeit", "capture", "prun", "memit", "mprun")  # magics that run what stands behind or below them
STARS = ("torch", "numpy", "math")
MOST_SCOPES = 500  # functions, lambdas and classes in one statement: telling their names apart takes the square of that
MOST_KEPT, LONGEST_KEPT = 200, 4000  # cells that are read once, as a class has them in common; characters of one
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.comprehension)


@dataclass(frozen=True)
class Statement:
    """One statement of the top level.

    uses: all names in it, those of attributes and variables too; calls: those that are looked up at the top level;
    blocks: finished ones that it imports, each with its lesson if the import says it; inside: what it asks of functions
    that tells how they are made; starred: whether a star import in it may hide Python's own functions.
    """

    node: ast.stmt
    binds: frozenset[str]
    uses: frozenset[str]
    calls: frozenset[str]
    blocks: frozenset[tuple[str, int | None]]
    inside: frozenset[str]
    starred: bool


class TopLevel:
    """The top level of some code: its statements, and by each name those that bind it."""

    def __init__(self, sources: Iterable[str] = ()):
        self.bound: dict[str, list[Statement]] = {}
        self.statements: list[Statement] = []
        for source in sources:
            self.read(source)

    def read(self, source: str) -> list[ast.stmt]:
        """Add the statements of some code, and return them; none where Python cannot read it."""
        statements_read = (_read if len(source) <= LONGEST_KEPT else _read.__wrapped__)(source)
        for statement in statements_read:
            for name in statement.binds:
                self.bound.setdefault(name, []).append(statement)
        self.statements += statements_read
        return [statement.node for statement in statements_read]

    @property
    def starred(self) -> bool:
        """Whether a star import may hide Python's own functions."""
        return any(statement.starred for statement in self.statements)

    def reads(self) -> set[str]:
        """All names that are looked up at the top level."""
        return set().union(*(statement.calls for statement in self.statements))

    def closure(self, name: str, excluded: Collection[str] = (), by: str = "calls") -> set[str]:
        """All names that `name` looks up, directly or through others that are bound here, but not through `excluded`.
        by: "uses" for all names in the statements, those of attributes and variables too."""
        reached, waiting, seen = set(), [name], set()
        while waiting:
            for statement in self.bound.get(waiting.pop(), ()):
                if id(statement) not in seen:
                    seen.add(id(statement))
                    fresh = getattr(statement, by) - reached - set(excluded)
                    reached |= fresh
                    waiting += fresh
        return reached - {name}

    def blocks_used(self, name: str, excluded: Collection[str]) -> set[tuple[str, int | None]]:
        used = {name, *self.closure(name, excluded)}
        return set().union(*(statement.blocks for statement in self.statements if statement.binds & used))

    def detours(self, name: str, banned: set[str]) -> list[str]:
        """How `name`, or what it uses, may call what is banned without naming it."""
        if not banned:
            return []
        used = {name, *self.closure(name, by="uses")}
        binding = (statement.node for statement in self.statements if statement.binds & used)
        detours = [detour for node in binding for detour in detours_in(node, banned)]
        if name not in self.bound:  # no statement binds it: what is run as text does
            detours += self.runs_text(banned)
        return list(dict.fromkeys(detours))

    def runs_text(self, banned: set[str]) -> list[str]:
        """How statements that bind nothing run code that is only made then: it may belong to any answer."""
        loose = [statement.node for statement in self.statements if not statement.binds]
        running = [node for node in loose if any(getattr(item, "id", "") in RUNNING for item in ast.walk(node))]
        return list(dict.fromkeys(detour for node in running for detour in detours_in(node, banned)))

    def looks_inside(self, name: str) -> list[str]:
        """What `name`, or what it uses, asks of functions that tells how they are made."""
        used = {name, *self.closure(name, by="uses")}
        return sorted(set().union(*(statement.inside for statement in self.statements if statement.binds & used)))

    def source_of(self, names: Collection[str]) -> str:
        """The statements that bind `names` and all that they use, in their order."""
        needed = set(names).union(*(self.closure(name) for name in names))
        return "\n".join(ast.unparse(statement.node) for statement in self.statements if statement.binds & needed)


@functools.lru_cache(maxsize=MOST_KEPT)
def _read(source: str) -> tuple[Statement, ...]:
    return tuple(map(_statement, statements(source)))


def _statement(node: ast.stmt) -> Statement:
    bound, used, blocks, inside, starred = set(), set(), set(), set(), False
    inner = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    if inner:
        bound.add(node.name)
    for item in ast.walk(node):
        if isinstance(item, ast.Name):
            (used if isinstance(item.ctx, ast.Load) or inner else bound).add(item.id)
        elif isinstance(item, ast.Attribute):
            used.add(item.attr)
            inside |= {item.attr} & INSIDE
        elif isinstance(item, (ast.Import, ast.ImportFrom)):
            names = {alias.asname or alias.name.split(".")[0] for alias in item.names}
            if not inner:
                bound |= names
            if home := re.fullmatch(r"helpers\.blocks(?:\.(\d\d)_\w+)?", getattr(item, "module", None) or ""):
                blocks |= {(alias.name, int(home[1]) if home[1] else None) for alias in item.names}
            starred |= "*" in names and (item.module or "").split(".")[0] in STARS
        elif isinstance(item, (ast.FunctionDef, ast.ClassDef)) and not inner:
            bound.add(item.name)
    called = looked_up(node)
    kept = map(frozenset, (bound, used, used if called is None else called, blocks, inside))
    return Statement(node, *kept, starred)


def looked_up(node: ast.stmt) -> set[str] | None:
    """The names that a top-level statement looks up there, or in its functions; None where Python cannot tell."""
    nodes = [*ast.walk(node)]
    scopes = sum(isinstance(inner, SCOPES) for inner in nodes)
    if scopes > MOST_SCOPES:
        return None
    if scopes == 0:
        return {inner.id for inner in nodes if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)}
    try:
        waiting, names = [symtable.symtable(ast.unparse(node), "cell", "exec")], set()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        top = table.get_type() == "module"
        names |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (top or symbol.is_global())
        }
    return names


def home_of_block(name: str) -> int | None:
    """The number of the lesson whose finished blocks define `name`, or None."""
    from helpers.blocks import defined_names

    for path in sorted((ROOT / "helpers" / "blocks").glob("[0-9]*.py")):
        if name in defined_names(path.read_text(encoding="utf-8")):
            return int(path.stem[:2])
    return None


def statements(source: str) -> list[ast.stmt]:
    """The top level of a cell, without its magics; nothing where Python cannot read it."""
    try:
        return ast.parse(without_magics(source)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


CELL_MAGIC = re.compile(r"\s*+%%(\w+)(.*)(?:\n|$)")
OPTIONS = r"\b(?:[ \t]+-\w+(?:[ \t]+\d+)?)*"
RUN_LINE = re.compile(rf"^([ \t]*)%(?:{'|'.join(RUN_PYTHON)}){OPTIONS}[ \t]+(?=\w)")
LINE_MAGIC = re.compile(r"^([ \t]*)(?:[%!?].*|[\w.]+\?{1,2}[ \t]*)$")
SET_BY_MAGIC = re.compile(r"^([\w., \t]++=[ \t]*+)[%!].*$")
# What says whether a line goes on: texts, comments, brackets, ends of lines.
TOKEN = re.compile(
    r"(?s)\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''"
    r"|\"(?:\\.|[^\\\"\n])*+\"|'(?:\\.|[^\\'\n])*+'|#[^\n]*|\\\n|[\[({\])}\n]"
)


def without_magics(source: str) -> str:
    """The source as Python can parse it: what IPython's magics run or write into a module stays; other magics, shell
    lines and questions for help (`attention?`) are blanked. A line that goes on from the one above is none of these."""
    start = 0
    while cell := CELL_MAGIC.match(source, start):
        if cell[1] not in RUN_PYTHON and not (cell[1] == "writefile" and cell[2].rstrip().endswith(".py")):
            return ""
        start = cell.end()
    source, plain_parts, start, depth = source[start:], [], 0, 0
    while start < len(source):
        end = source.find("\n", start)
        line = source[start : end if end >= 0 else len(source)]
        if depth == 0 and (plain := _without_magic(line)) != line:
            plain_parts.append(plain)
            start += len(line)
            plain_parts.append(source[start : start + 1])
            start += 1
            continue
        token = ""
        for match in TOKEN.finditer(source, start):
            token = match[0]
            depth = depth + 1 if token in "([{" else max(0, depth - 1) if token in ")]}" else depth
            if token == "\n":
                break
        stop = match.end() if token == "\n" else len(source)
        plain_parts.append(source[start:stop])
        start = stop
    return "".join(plain_parts)


def _without_magic(line: str) -> str:
    if not any(mark in line for mark in "%!?"):
        return line
    line = RUN_LINE.sub(r"\1", line)
    return SET_BY_MAGIC.sub(r"\1None", LINE_MAGIC.sub(r"\1pass", line))
