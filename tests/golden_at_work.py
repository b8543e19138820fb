"""The output of `at_work` in every lesson, stored in tests/golden/at_work.txt.

    python -m tests.golden_at_work        rewrites the file; look at the difference before you commit it

Each call runs with the finished blocks and with the names that the lesson defines before the call.
"""

import ast
import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

from helpers import at_work, blocks
from helpers.course import course
from helpers.translator.parts import PART
from tests.sample_class import names_bound

GOLDEN = Path(__file__).parent / "golden" / "at_work.txt"


def calls(lesson: str) -> Iterator[tuple[str, dict]]:
    """Yield (source, names that it needs) for each call of `at_work` in a lesson."""
    text = (course().root / "solutions" / lesson / f"{lesson}.py").read_text(encoding="utf-8")
    above: dict[str, ast.stmt] = {}
    for statement in ast.parse(text).body:
        if _is_call(statement):
            names: dict[str, object] = {"at_work": at_work}
            _define(statement, above, names)
            yield ast.unparse(statement), names
        above |= dict.fromkeys(names_bound(statement), statement)


def _is_call(statement: ast.stmt) -> bool:
    call = getattr(statement, "value", None)
    return isinstance(call, ast.Call) and getattr(call.func, "id", "") == "at_work"


def _define(statement: ast.stmt, above: dict[str, ast.stmt], names: dict) -> None:
    """Bind the names that a statement uses: a finished block, or an earlier definition of the lesson."""
    for node in ast.walk(statement):
        name = getattr(node, "id", None)
        if name is None or name in names:
            continue
        if name in PART and name in dir(blocks):
            names[name] = getattr(blocks, name)
        elif name in above and above[name] is not statement:
            _define(above[name], above, names)
            exec(compile(ast.Module([above[name]], []), name, "exec"), names)


def printed(source: str, names: dict) -> str:
    """Return what a call prints in a plain script."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(source, names)
    return out.getvalue()


def sections() -> dict[str, str]:
    """Return the stored output of each call, by "LESSON: CALL"."""
    parts = GOLDEN.read_text(encoding="utf-8").split("\n>>> ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}


def main() -> None:
    text = "Written by python -m tests.golden_at_work; never by hand.\n"
    for lesson in course().lessons:
        for source, names in calls(lesson.name):
            text += f"\n>>> {lesson.name}: {source}\n{printed(source, names)}"
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
