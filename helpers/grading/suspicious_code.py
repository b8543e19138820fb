"""Finds code that no answer needs. It does not make an answer wrong, but a person should look at it."""

import ast
import importlib
import re
from collections.abc import Iterator

from helpers.grading.submission import Cell

MODULES = {
    "ctypes": "uses ctypes",
    "subprocess": "starts or ends processes",
    "multiprocessing": "uses multiprocessing",
    "socket": "looks for a network",
    "urllib": "looks for a network",
    "requests": "looks for a network",
    "http": "looks for a network",
}
CHECK = re.compile(r"helpers\.(inside|checking|lessons\.\w+\.probes)\b.*")
# In these modules, but useless for a network or a process.
HARMLESS = ("http.HTTPStatus", "urllib.parse", "urllib.error", "multiprocessing.cpu_count")
OBSERVATION = {"__torch_function__", "TorchFunctionMode", "TorchDispatchMode", "_execution_engine"}
# As attributes or imports, because a learner may use the names for variables.
FRAMES = {"f_back", "f_locals", "f_globals", "get_objects", "get_referrers", "settrace", "gettrace", "getprofile"}
MODULE_PATHS = {"__file__", "__path__"}  # of other modules; a file's own `__file__` only leads to the file itself
SPAWNING = {"_exit", "fork", "forkpty", "kill", "killpg", "popen", "system", "posix_spawn", "posix_spawnp"}
BY_MODULE = {
    "os": (SPAWNING, "starts or ends processes"),
    "concurrent.futures": ({"ProcessPoolExecutor"}, "starts or ends processes"),
    "signal": ({"signal", "alarm", "setitimer"}, "changes timers"),
}
ALIASES = {"F": "torch.nn.functional", "nn": "torch.nn"}
REPLACED = ("torch", "torch.testing", "torch.Tensor", "torch.nn", "torch.nn.functional", "builtins", *ALIASES)
ABOVE = r"(?:[/.~$]\S*)?/"  # start of a path from the root, a home or working folder, or after a joined part
PLACES = re.compile(  # beginning of a string without white space
    rf"{ABOVE}proc/(?!(?:cpuinfo|meminfo|version|loadavg|uptime)$)"  # these only describe the computer
    rf"|{ABOVE}(?:solutions|gradebook)(?:/|$)|(?:solutions|gradebook)/"
)
FILES = {"open", "Path", "listdir", "scandir", "walk", "glob", "rglob", "iglob", "joinpath", "chdir"}
FOLDERS = ("solutions", "gradebook")
FILES_OF_OTHERS = "looks for files that are not its own"
SHOWN = {"print", "display", "Markdown", "HTML", "warn", "title", "suptitle", "set_title", "annotate", "text", "write"}
SHOWN |= {"debug", "info", "warning", "error"}  # methods of a logger


def flags_of(cell: Cell, body: list[ast.stmt]) -> list[str]:
    """Sentences about suspicious code in a cell, whose top-level statements are `body`."""
    try:
        phrases = dict.fromkeys(phrase for node in body for phrase in _suspicious_phrases(node))
    except RecursionError:
        phrases = dict.fromkeys(["is nested too deeply to be checked"])
    return [f"Cell {cell.id} {phrase}." for phrase in phrases]


def _suspicious_phrases(statement: ast.stmt) -> Iterator[str]:
    shown = _only_shown(statement)
    for node in ast.walk(statement):
        for module, name in _names_of_modules(node):
            full = f"{module}.{name}" if module else name
            package = full.split(".")[0].removeprefix("_")  # _socket is the module that socket uses
            if isinstance(node, (ast.Import, ast.ImportFrom)) and package in MODULES and not full.startswith(HARMLESS):
                yield MODULES[package]
            if CHECK.fullmatch(full):
                yield "reaches into the check itself"
            if name in FRAMES:
                yield "inspects the code that runs it"
            if name in MODULE_PATHS and id(node) not in shown:
                yield FILES_OF_OTHERS
            if module in BY_MODULE and name in BY_MODULE[module][0]:
                yield BY_MODULE[module][1]
            if module in REPLACED and isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                if _exists(module, name):
                    yield "replaces functions of torch or Python"
        if isinstance(node, (ast.Name, ast.Attribute, ast.FunctionDef, ast.alias)):
            if OBSERVATION & {getattr(node, field, None) for field in ("id", "attr", "name")}:
                yield "interferes with how calls are observed"
        elif isinstance(node, ast.Call) and node.args:
            if _called(node) in ("setattr", "delattr") and _replaces(node.args):
                yield "replaces functions of torch or Python"
            if _called(node) in FILES and any(getattr(argument, "value", None) in FOLDERS for argument in node.args):
                yield FILES_OF_OTHERS
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in shown:
            if CHECK.fullmatch(node.value):
                yield "reaches into the check itself"
            if node.value.split() == [node.value] and PLACES.match(node.value):
                yield FILES_OF_OTHERS
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if getattr(node.right, "value", None) in FOLDERS:
                yield FILES_OF_OTHERS


def _names_of_modules(node: ast.AST) -> list[tuple[str, str]]:
    """(module, name) of each import, or of an attribute of something that may be a module, such as torch.nn.functional.
    The module is empty if there is none, or if its name has more than four parts."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(getattr(node, "module", None) or "", alias.name) for alias in node.names]
    if not isinstance(node, ast.Attribute):
        return []
    parts, inner = [], node.value
    while isinstance(inner, ast.Attribute) and len(parts) < 3:
        parts.append(inner.attr)
        inner = inner.value
    return [(".".join([inner.id, *reversed(parts)]) if isinstance(inner, ast.Name) else "", node.attr)]


def _called(node: ast.Call) -> str:
    return getattr(node.func, "id", "") or getattr(node.func, "attr", "")


def _replaces(arguments: list[ast.expr]) -> bool:
    """Whether setattr or delattr with these arguments replaces something that exists."""
    module = ast.unparse(arguments[0])
    if module not in REPLACED:
        return False
    name = getattr(arguments[1], "value", None) if len(arguments) > 1 else None
    return not isinstance(name, str) or _exists(module, name)


def _exists(module: str, name: str) -> bool:
    """Whether this module or class of torch or Python has an attribute `name`; a new one would replace nothing."""
    first, *parts = ALIASES.get(module, module).split(".")
    owner = importlib.import_module(first)
    for part in parts:
        owner = getattr(owner, part, None)
    return hasattr(owner, name)


def _only_shown(statement: ast.stmt) -> set[int]:
    """The ids of the nodes in docstrings, displayed text and error messages, except for paths of files opened there."""
    displayed, opened = [], []
    for node in ast.walk(statement):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            displayed.append(node.value)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            displayed += node.exc.args
        elif isinstance(node, ast.Assert) and node.msg is not None:
            displayed.append(node.msg)
        elif isinstance(node, ast.Call):
            called = _called(node)
            (displayed if called in SHOWN else opened if called in FILES else []).extend(node.args)
    below = [{id(inner) for node in nodes for inner in ast.walk(node)} for nodes in (displayed, opened)]
    return below[0] - below[1]


INDIRECT = {"getattr", "exec", "eval", "__import__", "import_module", "attrgetter", "methodcaller", "__getattribute__"}
RUNS_STRINGS = {"exec", "eval"}
FUNCTION_INTERNALS = {"__closure__", "__code__", "__globals__", "__qualname__", "cell_contents"}
EVASIONS = {"DisableTorchFunction", "DisableTorchFunctionSubclass", "_disable_current_modes", "_getframe", "setprofile"}
EVASION = re.compile(r"_pop_(mode|torch)\w*")  # torch's stacks of function modes


def detours_in(node: ast.AST, banned: set[str]) -> Iterator[str]:
    """Phrases for calls through a string that is computed or names a banned function, and for evading observation."""
    for item in ast.walk(node):
        name = item.id if isinstance(item, ast.Name) else item.attr if isinstance(item, ast.Attribute) else ""
        if name in EVASIONS or EVASION.fullmatch(name):
            yield f"for {name}"
        if isinstance(item, ast.Subscript) and _mentions(item.slice, banned) and _is_namespace(item.value):
            yield f"a banned name through {ast.unparse(item)[:60]}"
        if not isinstance(item, ast.Call):
            continue
        name = _called(item)
        if name in INDIRECT and (item.args or item.keywords):  # otherwise it is a model's .eval()
            if name == "getattr" and item.args and getattr(item.args[0], "id", "") == "self":
                continue  # an object's own attributes, for example by number
            names = item.args[1:2] if name == "getattr" else item.args[:1]
            if not names or any(_mentions(text, banned) or not isinstance(text, ast.Constant) for text in names):
                yield f"what it calls through {name}"


def banned_in(node: ast.AST, banned: set[str]) -> Iterator[str]:
    """The banned functions that code names, imported from torch or as attributes of anything but `self`."""
    for item in ast.walk(node):
        named = []
        if isinstance(item, ast.ImportFrom) and (item.module or "").split(".")[0] == "torch":
            named = [(item.module, alias.name) for alias in item.names]
        elif isinstance(item, ast.Attribute) and (owner := getattr(item.value, "id", "")) != "self":
            named = [(owner, item.attr)]
        yield from (f"{owner}.{name}" for owner, name in named if name.strip("_").lower() in banned)


def _is_namespace(node: ast.AST) -> bool:
    """Whether this is vars(...), globals(), locals() or a __dict__."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("vars", "globals", "locals")
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


def _mentions(node: ast.AST, banned: set[str]) -> bool:
    """Whether this is a string literal that contains a banned name as a separate word."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    return any(word.strip("_").lower() in banned for word in re.findall(r"\w+", node.value))
