"""What no answer needs. Whoever uses it is not wrong for that, but a person should look."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from helpers.grading.cell import Cell

SUSPICIOUS = {
    r"helpers\.checking\.(observe|forbidden|codec|compare|verdict|key)": "reaches into the check itself",
    r"__torch_function__|TorchFunctionMode|TorchDispatchMode|_execution_engine": "interferes with how calls are seen",
    r"\bctypes\b|\bptrace\b": "uses ctypes",
    r"\bos\.(_exit|fork|kill|killpg)\b|\bsubprocess\b": "starts or ends processes",
    r"\b(socket|urllib|requests|http\.client)\b": "looks for a network",
    r"/proc/|\.\./solutions|/solutions|solutions/|gradebook": "looks for files that are not its own",
    r"(torch\.\w+|torch\.testing\.\w+|builtins\.\w+)\s*=(?!=)": "replaces functions of torch or Python",
    r"\bsetitimer\b|\bsignal\.(signal|alarm)\b": "changes timers",
}


def flags_of(cell: Cell) -> list[str]:
    return [f"Cell {cell.id} {words}." for pattern, words in SUSPICIOUS.items() if re.search(pattern, cell.source)]


REACHING = {"getattr", "exec", "eval", "__import__", "import_module", "attrgetter", "methodcaller", "__getattribute__"}
RUNNING = {"exec", "eval"}
INSIDE = {"__closure__", "__code__", "__globals__", "__qualname__", "cell_contents"}
SWITCHES = {"DisableTorchFunction", "DisableTorchFunctionSubclass", "_disable_current_modes", "_getframe", "setprofile"}


def detours_in(node: ast.AST, banned: set[str]) -> Iterator[str]:
    """Calls by a text that holds a banned name or is only made when they run, and switches of the looks."""
    for item in ast.walk(node):
        name = item.id if isinstance(item, ast.Name) else item.attr if isinstance(item, ast.Attribute) else ""
        if name in SWITCHES or name.startswith("_pop_"):
            yield f"for {name}"
        if isinstance(item, ast.Subscript) and _says(item.slice, banned) and _is_namespace(item.value):
            yield f"a banned name through {ast.unparse(item)[:60]}"
        if not isinstance(item, ast.Call):
            continue
        name = item.func.id if isinstance(item.func, ast.Name) else getattr(item.func, "attr", "")
        if name in REACHING and (item.args or item.keywords):  # else it is a model's own .eval()
            texts = item.args[1:2] if name == "getattr" else item.args[:1]
            if not texts or any(_says(text, banned) or not isinstance(text, ast.Constant) for text in texts):
                yield f"what it calls through {name}"


def _is_namespace(node: ast.AST) -> bool:
    """Whether this is vars(...), globals() and the like, or a __dict__."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("vars", "globals", "locals")
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


def _says(node: ast.AST, banned: set[str]) -> bool:
    """Whether a literal text holds a banned name as a word of its own."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    return any(word.strip("_").lower() in banned for word in re.findall(r"\w+", node.value))
