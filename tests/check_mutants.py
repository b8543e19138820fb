"""Mutation test of the check's own code: cosmic-ray makes the mutants, the tests of test_check_facts.py judge them.

`python -m tests.check_mutants [MODULE ...]` prints a table and every survivor. A survivor that does no harm is listed
in harmless_mutants.toml with the reason. Each mutant replaces one function or constant in this process, and only tests
that call it run, so that all mutants together take minutes instead of hours.
"""

import __future__

import ast
import contextlib
import importlib
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from cosmic_ray.plugins import operator_names

from helpers.running.time_limit import TooSlow, time_limit
from tests import test_check_facts
from tests.mutants import Mutant, Outcome, listed, mutants, show

MODULES = ("verdict", "compare", "facets", "wording", "diagnosis", "messages")
SECONDS = 1.0  # of processor time for all tests of one mutant
HARMLESS = Path(__file__).with_name("harmless_mutants.toml")
# Like PIT's defaults: comparisons are negated or move their bound; other operators become a similar one or are removed.
CHANGES = """
    Eq_NotEq NotEq_Eq Is_IsNot IsNot_Is Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt
    Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_Mul Pow_Mul BitOr_BitAnd BitAnd_BitOr
    Delete_Not Delete_USub Delete_Invert
""".split()
OPERATORS = tuple(name for name in operator_names() if name.partition("Operator_")[2] in ("", *CHANGES))
# These arguments state assumptions that hold in all tests, so that changing them has no effect.
PROMISES = ("strict", "frozen")


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield (name, source) of every function, class and constant of a module."""
    lines = text.splitlines(True)
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            yield node.name, "".join(lines[first - 1 : node.end_lineno])
        elif isinstance(node, ast.Assign):
            yield node.targets[0].id, "".join(lines[node.lineno - 1 : node.end_lineno])


def _without_promises(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for promise in {"annotation", "returns"} & set(node._fields):
            setattr(node, promise, None)
        if isinstance(node, ast.Call):
            node.keywords = [item for item in node.keywords if item.arg not in PROMISES]
    return ast.dump(tree)


def changes(name: str, source: str) -> list[Mutant]:
    """Return the mutants of a piece that change more than an annotation, `strict` or `frozen`."""
    plain = _without_promises(source)
    return [item for item in mutants(name, source, OPERATORS) if _without_promises(item.source) != plain]


@contextlib.contextmanager
def changed(module: types.ModuleType, name: str, source: str):
    """Replace a function, class or constant of the module wherever it is used, and restore it afterwards."""
    old = vars(module)[name]
    names = dict(vars(module))
    exec(compile(source, f"<mutant of {name}>", "exec", __future__.annotations.compiler_flag), names)
    with pytest.MonkeyPatch.context() as patch:
        if isinstance(old, types.FunctionType):
            for part in ("__code__", "__defaults__", "__kwdefaults__"):
                patch.setattr(old, part, getattr(names[name], part))
        for place, user in list(sys.modules.items()):
            here = place.startswith(("helpers.checking", "tests.test_check_facts"))
            if here and vars(user).get(name) is old and not isinstance(old, types.FunctionType):
                patch.setattr(user, name, names[name])
        yield


def killer(module: types.ModuleType, mutant: Mutant, facts: list[Callable]) -> Callable | None:
    """Return the first test that fails for the mutant, or None if all pass."""
    fact = facts[0] if facts else None
    try:
        with time_limit(SECONDS), changed(module, mutant.exercise, mutant.source):
            for fact in facts:
                fact()
    except (Exception, TooSlow):
        return fact
    return None


def all_facts() -> list[Callable]:
    return [item for name, item in vars(test_check_facts).items() if name.startswith("test_")]


def callers(facts: list[Callable]) -> dict[types.CodeType, list[Callable]]:
    """Return the tests that call a function, by the function's code object."""
    found: dict[types.CodeType, list[Callable]] = {}
    for fact in facts:
        called = set()
        sys.setprofile(lambda frame, event, _, called=called: called.add(frame.f_code) if event == "call" else None)
        try:
            fact()
        finally:
            sys.setprofile(None)
        for code in called:
            found.setdefault(code, []).append(fact)
    return found


def outcome(name: str) -> Outcome:
    """Judge the mutants of a module. A listed line that no mutant changes counts as a survivor."""
    started = time.process_time()
    module = importlib.import_module(f"helpers.checking.{name}")
    facts, known, result = all_facts(), listed(HARMLESS, name), Outcome(name)
    called, unused = callers(facts), set(known)
    for piece, source in pieces(Path(module.__file__).read_text("utf-8")):
        function = vars(module)[piece]
        own = list(called.get(function.__code__, ())) if isinstance(function, types.FunctionType) else list(facts)
        for mutant in changes(piece, source):
            fact = killer(module, mutant, own)
            if fact is not None:
                own.remove(fact)
                own.insert(0, fact)  # it is likely to kill the next one too
                result.killed += 1
            elif (may := known.get((piece, mutant.was))) is not None and (not may or mutant.became in may):
                result.listed += 1
                unused.discard((piece, mutant.was))
            else:
                result.survivors.append(mutant)
    missing = "nothing: it is listed in harmless_mutants.toml, but no mutant changes it"
    result.survivors += [Mutant(*item, missing, "") for item in unused]
    result.seconds = time.process_time() - started
    return result


def main(names: list[str]) -> int:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", SyntaxWarning)  # mutants contain odd code, such as `is` before a number
    return 1 if show(map(outcome, names or MODULES)) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
