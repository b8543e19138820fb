"""What no answer needs. Whoever uses it is not wrong for that, but a person should look."""

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
CHECK = re.compile(r"helpers\.checking\.(observe|forbidden|codec|compare|verdict|deciding|key)\b.*")
# Of these modules, but of no use for a network or a process.
OF_NO_USE = ("http.HTTPStatus", "urllib.parse", "urllib.error", "multiprocessing.cpu_count")
SEEING = {"__torch_function__", "TorchFunctionMode", "TorchDispatchMode", "_execution_engine"}
# Attributes and imports; a learner may call a variable so.
AROUND = {"f_back", "f_locals", "f_globals", "get_objects", "get_referrers", "settrace", "gettrace", "getprofile"}
HOMES = {"__file__", "__path__"}  # of a module; a file's own `__file__` leads to itself
SPAWNING = {"_exit", "fork", "forkpty", "kill", "killpg", "popen", "system", "posix_spawn", "posix_spawnp"}
OF_MODULES = {
    "os": (SPAWNING, "starts or ends processes"),
    "concurrent.futures": ({"ProcessPoolExecutor"}, "starts or ends processes"),
    "signal": ({"signal", "alarm", "setitimer"}, "changes timers"),
}
ALIASES = {"F": "torch.nn.functional", "nn": "torch.nn"}
REPLACED = ("torch", "torch.testing", "torch.Tensor", "torch.nn", "torch.nn.functional", "builtins", *ALIASES)
ABOVE = r"(?:[/.~$]\S*)?/"  # a path from the root or a home, from the folder here or above, or behind what is joined
PLACES = re.compile(  # how a text without white space begins
    rf"{ABOVE}proc/(?!(?:cpuinfo|meminfo|version|loadavg|uptime)$)"  # these tell of the machine only
    rf"|{ABOVE}(?:solutions|gradebook)(?:/|$)|(?:solutions|gradebook)/"
)
FILES = {"open", "Path", "listdir", "scandir", "walk", "glob", "rglob", "iglob", "joinpath", "chdir"}
FOLDERS = ("solutions", "gradebook")
FILES_OF_OTHERS = "looks for files that are not its own"
SAYING = {"print", "display", "Markdown", "HTML", "warn", "title", "suptitle", "set_title", "annotate", "text", "write"}
SAYING |= {"debug", "info", "warning", "error"}  # of a log


def flags_of(cell: Cell, body: list[ast.stmt]) -> list[str]:
    """Sentences about a cell whose top level is `body`."""
    try:
        phrases = dict.fromkeys(word for node in body for word in _suspicious_phrases(node))
    except RecursionError:
        phrases = dict.fromkeys(["is nested too deeply to be looked at"])
    return [f"Cell {cell.id} {word}." for word in phrases]


def _suspicious_phrases(statement: ast.stmt) -> Iterator[str]:
    unread = _only_shown(statement)
    for node in ast.walk(statement):
        for home, name in _names_of_modules(node):
            full = f"{home}.{name}" if home else name
            package = full.split(".")[0]
            if isinstance(node, (ast.Import, ast.ImportFrom)) and package in MODULES and not full.startswith(OF_NO_USE):
                yield MODULES[package]
            if CHECK.fullmatch(full):
                yield "reaches into the check itself"
            if name in AROUND:
                yield "looks at what runs around it"
            if name in HOMES and id(node) not in unread:
                yield FILES_OF_OTHERS
            if home in OF_MODULES and name in OF_MODULES[home][0]:
                yield OF_MODULES[home][1]
            if home in REPLACED and isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                if _is_there(home, name):
                    yield "replaces functions of torch or Python"
        if isinstance(node, (ast.Name, ast.Attribute, ast.FunctionDef, ast.alias)):
            if SEEING & {getattr(node, field, None) for field in ("id", "attr", "name")}:
                yield "interferes with how calls are seen"
        elif isinstance(node, ast.Call) and node.args:
            if _called(node) in ("setattr", "delattr") and _replaces(node.args):
                yield "replaces functions of torch or Python"
            if _called(node) in FILES and any(getattr(argument, "value", None) in FOLDERS for argument in node.args):
                yield FILES_OF_OTHERS
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in unread:
            if CHECK.fullmatch(node.value):
                yield "reaches into the check itself"
            if node.value.split() == [node.value] and PLACES.match(node.value):
                yield FILES_OF_OTHERS
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if getattr(node.right, "value", None) in FOLDERS:
                yield FILES_OF_OTHERS


def _names_of_modules(node: ast.AST) -> list[tuple[str, str]]:
    """(module, name) of what is imported, or asked of what may be a module, as of torch.nn.functional; the module is
    empty where it is none, or longer."""
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
    """Whether setattr with these arguments puts something in the place of what is there."""
    home = ast.unparse(arguments[0])
    if home not in REPLACED:
        return False
    name = getattr(arguments[1], "value", None) if len(arguments) > 1 else None
    return not isinstance(name, str) or _is_there(home, name)


def _is_there(home: str, name: str) -> bool:
    """Whether torch or Python has something of this name there: a new attribute replaces nothing."""
    first, *parts = ALIASES.get(home, home).split(".")
    owner = importlib.import_module(first)
    for part in parts:
        owner = getattr(owner, part, None)
    return hasattr(owner, name)


def _only_shown(statement: ast.stmt) -> set[int]:
    """What is a docstring, is only shown to a person or words an error, by id; not what a file is opened with there."""
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
            (displayed if called in SAYING else opened if called in FILES else []).extend(node.args)
    below = [{id(inner) for node in nodes for inner in ast.walk(node)} for nodes in (displayed, opened)]
    return below[0] - below[1]


REACHING = {"getattr", "exec", "eval", "__import__", "import_module", "attrgetter", "methodcaller", "__getattribute__"}
RUNS_STRINGS = {"exec", "eval"}
FUNCTION_INTERNALS = {"__closure__", "__code__", "__globals__", "__qualname__", "cell_contents"}
SWITCHES = {"DisableTorchFunction", "DisableTorchFunctionSubclass", "_disable_current_modes", "_getframe", "setprofile"}
SWITCH = re.compile(r"_pop_(mode|torch)\w*")  # torch's own stacks of looks


def detours_in(node: ast.AST, banned: set[str]) -> Iterator[str]:
    """Calls by a text that holds a banned name or is only made when they run, and switches of the looks."""
    for item in ast.walk(node):
        name = item.id if isinstance(item, ast.Name) else item.attr if isinstance(item, ast.Attribute) else ""
        if name in SWITCHES or SWITCH.fullmatch(name):
            yield f"for {name}"
        if isinstance(item, ast.Subscript) and _mentions(item.slice, banned) and _is_namespace(item.value):
            yield f"a banned name through {ast.unparse(item)[:60]}"
        if not isinstance(item, ast.Call):
            continue
        name = _called(item)
        if name in REACHING and (item.args or item.keywords):  # else it is a model's own .eval()
            if name == "getattr" and item.args and getattr(item.args[0], "id", "") == "self":
                continue  # parts of one's own, by number
            texts = item.args[1:2] if name == "getattr" else item.args[:1]
            if not texts or any(_mentions(text, banned) or not isinstance(text, ast.Constant) for text in texts):
                yield f"what it calls through {name}"


def _is_namespace(node: ast.AST) -> bool:
    """Whether this is vars(...), globals() and the like, or a __dict__."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("vars", "globals", "locals")
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


def _mentions(node: ast.AST, banned: set[str]) -> bool:
    """Whether a literal text holds a banned name as a word of its own."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    return any(word.strip("_").lower() in banned for word in re.findall(r"\w+", node.value))
