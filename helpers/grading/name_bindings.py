"""Which names code binds at its top level, and which other names each of them uses."""

import ast
import functools
import re
import symtable
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from helpers.grading.folders import ROOT
from helpers.grading.suspicious_code import FUNCTION_INTERNALS, RUNS_STRINGS, detours_in

RUN_PYTHON = ("time", "timeit", "capture", "prun", "memit", "mprun")  # magics that run the code after or below them
STARS = ("torch", "numpy", "math")
MOST_SCOPES = 500  # functions, lambdas and classes in one statement; resolving their names takes quadratic time
MOST_KEPT, LONGEST_KEPT = 200, 4000  # cells cached after parsing, because a class has them in common; characters of one
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.comprehension)


@dataclass(frozen=True)
class Statement:
    """One top-level statement.

    uses: all names in it, including attributes and local variables. calls: the names that it looks up at the top level.
    blocks: the finished blocks that it imports, each with the number of its lesson if the import names the lesson.
    internals: the attributes it reads that reveal how a function is made. starred: whether a star import in it may hide
    built-in functions.
    """

    node: ast.stmt
    binds: frozenset[str]
    uses: frozenset[str]
    calls: frozenset[str]
    blocks: frozenset[tuple[str, int | None]]
    internals: frozenset[str]
    starred: bool


class TopLevel:
    """The top level of some code: its statements, and for each name the statements that bind it."""

    def __init__(self, sources: Iterable[str] = ()):
        self.bound: dict[str, list[Statement]] = {}
        self.statements: list[Statement] = []
        for source in sources:
            self.read(source)

    def read(self, source: str) -> list[ast.stmt]:
        """Add the statements of some code and return them; an empty list if Python cannot parse it."""
        new = (_read if len(source) <= LONGEST_KEPT else _read.__wrapped__)(source)
        for statement in new:
            for name in statement.binds:
                self.bound.setdefault(name, []).append(statement)
        self.statements += new
        return [statement.node for statement in new]

    @property
    def starred(self) -> bool:
        """Whether a star import may hide built-in functions."""
        return any(statement.starred for statement in self.statements)

    def reads(self) -> set[str]:
        """All names that are looked up at the top level."""
        return set().union(*(statement.calls for statement in self.statements))

    def closure(self, name: str, excluded: Collection[str] = (), by: str = "calls") -> set[str]:
        """All names that `name` looks up, directly or through other names bound here, but not through `excluded`.
        by: "calls", or "uses" for all names in the statements, including attributes and local variables."""
        reached, waiting, seen = set(), [name], set()
        while waiting:
            for statement in self.bound.get(waiting.pop(), ()):
                if id(statement) not in seen:
                    seen.add(id(statement))
                    new = getattr(statement, by) - reached - set(excluded)
                    reached |= new
                    waiting += new
        return reached - {name}

    def blocks_used(self, name: str, excluded: Collection[str]) -> set[tuple[str, int | None]]:
        """The finished blocks that `name` uses, as in `Statement.blocks`; excluded: as in `closure`."""
        used = {name, *self.closure(name, excluded)}
        return set().union(*(statement.blocks for statement in self.statements if statement.binds & used))

    def detours(self, name: str, banned: set[str]) -> list[str]:
        """Phrases for the ways in which `name`, or code that it uses, may call a banned function without naming it."""
        if not banned:
            return []
        used = {name, *self.closure(name, by="uses")}
        binding = (statement.node for statement in self.statements if statement.binds & used)
        detours = [detour for node in binding for detour in detours_in(node, banned)]
        if name not in self.bound:  # no statement binds it, so code that runs from a string must
            detours += self.code_in_strings(banned)
        return list(dict.fromkeys(detours))

    def code_in_strings(self, banned: set[str]) -> list[str]:
        """Phrases as in `detours`, for statements that run strings as code, because these may define any answer."""
        unbound = [statement.node for statement in self.statements if not statement.binds]
        running = [node for node in unbound if any(getattr(item, "id", "") in RUNS_STRINGS for item in ast.walk(node))]
        return list(dict.fromkeys(detour for node in running for detour in detours_in(node, banned)))

    def internals_read(self, name: str) -> list[str]:
        """The attributes, as in `Statement.internals`, that `name` or code that it uses reads."""
        used = {name, *self.closure(name, by="uses")}
        return sorted(set().union(*(statement.internals for statement in self.statements if statement.binds & used)))

    def source_of(self, names: Collection[str]) -> str:
        """The source of the statements that bind `names` and everything that these use, in the original order."""
        needed = set(names).union(*(self.closure(name) for name in names))
        return "\n".join(ast.unparse(statement.node) for statement in self.statements if statement.binds & needed)


@functools.lru_cache(maxsize=MOST_KEPT)
def _read(source: str) -> tuple[Statement, ...]:
    return tuple(map(_statement, statements(source)))


def _statement(node: ast.stmt) -> Statement:
    bound, used, blocks, internals, starred = set(), set(), set(), set(), False
    definition = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    if definition:
        bound.add(node.name)
    for item in ast.walk(node):
        if isinstance(item, ast.Name):
            (used if isinstance(item.ctx, ast.Load) or definition else bound).add(item.id)
        elif isinstance(item, ast.Attribute):
            used.add(item.attr)
            internals |= {item.attr} & FUNCTION_INTERNALS
        elif isinstance(item, (ast.Import, ast.ImportFrom)):
            names = {alias.asname or alias.name.split(".")[0] for alias in item.names}
            if not definition:
                bound |= names
            if module := re.fullmatch(r"helpers\.blocks(?:\.(\d\d)_\w+)?", getattr(item, "module", None) or ""):
                blocks |= {(alias.name, int(module[1]) if module[1] else None) for alias in item.names}
            starred |= "*" in names and (item.module or "").split(".")[0] in STARS
        elif isinstance(item, (ast.FunctionDef, ast.ClassDef)) and not definition:
            bound.add(item.name)
    called = looked_up(node)
    sets = map(frozenset, (bound, used, used if called is None else called, blocks, internals))
    return Statement(node, *sets, starred)


def looked_up(node: ast.stmt) -> set[str] | None:
    """The names that a statement, or a function in it, looks up at the top level; None if they cannot be resolved."""
    nodes = [*ast.walk(node)]
    scopes = sum(isinstance(inner, SCOPES) for inner in nodes)
    if scopes > MOST_SCOPES:
        return None
    if scopes == 0:
        return {inner.id for inner in nodes if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)}
    try:
        generators = _Generators().visit(ast.parse(ast.unparse(node)))
        waiting, names = [symtable.symtable(ast.unparse(generators), "cell", "exec")], set()
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


class _Generators(ast.NodeTransformer):
    """Replace comprehensions by generators, because since Python 3.12 their variables seem to be top-level names."""

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp) -> ast.GeneratorExp:
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    visit_SetComp = visit_ListComp

    def visit_DictComp(self, node: ast.DictComp) -> ast.GeneratorExp:
        self.generic_visit(node)
        return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)


def home_of_block(name: str) -> int | None:
    """The number of the lesson whose finished blocks define `name`; None if there is none."""
    from helpers.blocks import defined_names

    for path in sorted((ROOT / "helpers" / "blocks").glob("[0-9]*.py")):
        if name in defined_names(path.read_text(encoding="utf-8")):
            return int(path.stem[:2])
    return None


def statements(source: str) -> list[ast.stmt]:
    """The top-level statements of a cell, without its magics; an empty list if Python cannot parse it."""
    try:
        return ast.parse(without_magics(source)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


CELL_MAGIC = re.compile(r"\s*+%%(\w+)(.*)(?:\n|$)")
OPTIONS = r"\b(?:[ \t]+-\w+(?:[ \t]+\d+)?)*"
RUN_LINE = re.compile(rf"^([ \t]*)%(?:{'|'.join(RUN_PYTHON)}){OPTIONS}[ \t]+(?=\w)")
LINE_MAGIC = re.compile(r"^([ \t]*)(?:[%!?].*|[\w.]+\?{1,2}[ \t]*)$")
SET_BY_MAGIC = re.compile(r"^([\w., \t]++=[ \t]*+)[%!].*$")
# Tokens that decide whether a statement continues on the next line: strings, comments, brackets and line ends.
TOKEN = re.compile(
    r"(?s)\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''"
    r"|\"(?:\\.|[^\\\"\n])*+\"|'(?:\\.|[^\\'\n])*+'|#[^\n]*|\\\n|[\[({\])}\n]"
)


def without_magics(source: str) -> str:
    """The source of a cell as plain Python. Code that a magic runs or writes into a module stays; other magics, shell
    commands and requests for help (`attention?`) become code without effect. A continuation line is none of these."""
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
