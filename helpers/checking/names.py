"""Find the names that code uses, for functions and classes in memory and for parsed source.

The learner's own functions that an answer calls count as part of the answer, so the names that they use are included.
"""

import ast
import dis
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Iterator

LOADS = ("LOAD_GLOBAL", "LOAD_NAME")


def used_names(answer: Callable) -> set[str]:
    """The global names that an answer loads, itself or through the learner's own functions and classes."""

    def loaded(function: types.FunctionType) -> Iterator[tuple[str, object]]:
        return ((name, function.__globals__.get(name)) for name in _loaded_names(function.__code__))

    return {name for name, _ in _walk(answer, loaded)}


def used_things(answer) -> Iterator[tuple[str, object]]:
    """(dotted name, object) for every name in the source of an answer and of the learner's functions that it uses."""
    return _walk(answer, _things_in_source)


def namespace(answer) -> dict | None:
    """The namespace in which an answer looks up global names; None if it contains no Python function."""
    return next((function.__globals__ for function in functions_of(answer)), None)


def functions_of(thing) -> list[types.FunctionType]:
    """The Python functions in a function, method, class or partial."""
    thing = inspect.unwrap(thing) if callable(thing) else thing
    if isinstance(thing, types.FunctionType):
        return [thing]
    if isinstance(thing, types.MethodType):
        return functions_of(thing.__func__)
    if isinstance(thing, type):
        return [item for item in vars(thing).values() if isinstance(item, types.FunctionType)]
    inner = getattr(thing, "func", None)  # functools.partial
    return functions_of(inner) if inner is not None else []


def bound_names(tree: ast.AST) -> set[str]:
    """The names that a syntax tree binds anywhere: functions, classes, arguments, variables, imports."""
    bound = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound.add(name)
            case ast.alias():
                bound.add(node.asname or node.name.split(".")[0])
    return bound


def free_names(tree: ast.AST) -> set[str]:
    """The names that a syntax tree reads somewhere and binds nowhere."""
    loaded = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return loaded - bound_names(tree)


def _walk(answer, find: Callable) -> Iterator[tuple[str, object]]:
    """The pairs (name, object) that `find` finds in an answer and in the learner's own functions that it leads to."""
    waiting, visited = [answer], set()
    while waiting:
        current = waiting.pop()
        if id(current) in visited:
            continue
        visited.add(id(current))
        for function in functions_of(current):
            for name, thing in find(function):
                yield name, thing
                if _is_own(thing, function):
                    waiting.append(thing)


def _is_own(thing, function: types.FunctionType) -> bool:
    """Whether `thing` is a function or class from the same namespace as `function`."""
    if isinstance(thing, type):
        return thing.__module__ == function.__module__ or namespace(thing) is function.__globals__
    thing = thing.__func__ if isinstance(thing, types.MethodType) else thing
    return isinstance(thing, types.FunctionType) and thing.__globals__ is function.__globals__


def _loaded_names(code: types.CodeType) -> set[str]:
    names = {item.argval for item in dis.get_instructions(code) if item.opname in LOADS}
    return names.union(*(_loaded_names(inner) for inner in code.co_consts if isinstance(inner, types.CodeType)))


def _things_in_source(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    try:
        nodes = list(ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))))
    except (OSError, TypeError, SyntaxError, ValueError):
        return
    imported = list(_imported(nodes))
    for _, text, thing in imported:
        if text and not isinstance(thing, types.ModuleType):  # a module counts only by what is used from it
            yield text, thing
    try:
        closure = inspect.getclosurevars(function).nonlocals
    except (TypeError, ValueError):
        closure = {}
    scope = {**function.__globals__, **closure, **{name: thing for name, _, thing in imported}}
    local = set(function.__code__.co_varnames) - {name for name, _, _ in imported}
    # Comprehensions, loops and inner functions also bind names, so `_` in `for _ in range(3)` is not a global.
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    stored |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    local |= stored - _global_names(function.__code__) - set(function.__code__.co_freevars)
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        chain = _chain(node)
        if chain and chain[0] in scope and chain[0] not in local:
            thing = scope[chain[0]]
            for part in chain[1:]:
                thing = getattr(thing, part, None)
            is_prefix = isinstance(thing, types.ModuleType) and id(node) in inner  # torch.func in torch.func.vmap
            if thing is not None and not is_prefix:
                yield ".".join(chain), thing


def _imported(nodes: list[ast.AST]) -> Iterator[tuple[str, str, object]]:
    """(bound name, dotted name, object) for each import inside a function; the dotted name of a module is ""."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.split(".")[0]
                yield alias.asname or name, "", sys.modules.get(name)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            home = sys.modules.get(node.module or "")
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}", getattr(home, alias.name, None)


def _global_names(code: types.CodeType) -> set[str]:
    """The names that the code, or a function inside it, may look up as globals or attributes."""
    inner = (_global_names(part) for part in code.co_consts if isinstance(part, types.CodeType))
    return set(code.co_names).union(*inner)


def _chain(node) -> list[str] | None:
    """["a", "b", "c"] for the expression a.b.c or getattr(a.b, "c"); None for other expressions."""
    parts = []
    while True:
        match node:
            case ast.Attribute(value=inner, attr=name):
                pass
            case ast.Call(func=ast.Name(id="getattr"), args=[inner, ast.Constant(value=str(name)), *_]):
                pass
            case _:
                break
        parts.append(name)
        node = inner
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else None
