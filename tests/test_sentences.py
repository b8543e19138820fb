"""Sentences that stand in a lesson because something was measured stand there still, also where measuring takes long.

The tests of the claims are read, not run: those that train are for `make test-all` and `make retrain`.
"""

import ast
from pathlib import Path

import pytest

from tests.conftest import lesson_names
from tests.lessons.lesson_text import says


def sentences(path: Path) -> list[str]:
    """What a file of tests asserts to be said: the words of `says`, and what is looked for in the fixture `text`."""
    found = []
    for test in ast.parse(path.read_text(encoding="utf-8")).body:
        given = [one.arg for one in test.args.args] if isinstance(test, ast.FunctionDef) else []
        for node in ast.walk(test):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("says", "lesson_says"):
                found += node.args
            elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In) and "text" in given:
                found += [node.left] if getattr(node.comparators[0], "id", "") == "text" else []
    return [node.value for node in found if isinstance(node, ast.Constant) and isinstance(node.value, str)]


@pytest.mark.parametrize("lesson", lesson_names())
def test_what_was_measured_is_still_said(lesson):
    files = (Path(__file__).parent / "lessons").glob(f"test_{lesson[3:]}*.py")
    said = [text for path in files for text in sentences(path) if text != lesson]
    assert said
    says(lesson, *said)
