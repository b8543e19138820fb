"""Statements of measurements in the lessons: tested sentences are still there, and losses appear in an output.

The tests of these statements are only parsed here. Those that train run in `make test-all` and `make retrain`.
"""

import ast
import re
from pathlib import Path

import nbformat
import pytest

from tests.conftest import ROOT, lesson_names
from tests.lessons.lesson_text import says


def sentences(path: Path) -> list[str]:
    """The sentences that a test file requires of a lesson: arguments of `says`, and strings tested for `in text`."""
    found = []
    for test in ast.parse(path.read_text(encoding="utf-8")).body:
        given = [one.arg for one in test.args.args] if isinstance(test, ast.FunctionDef) else []
        for node in ast.walk(test):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("says", "lesson_says"):
                found += node.args
            elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In) and "text" in given:
                found += [node.left] if getattr(node.comparators[0], "id", "") == "text" else []
    return [node.value for node in found if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def measured(lesson: str) -> list[str]:
    files = (Path(__file__).parent / "lessons").glob(f"test_{lesson[3:]}*.py")
    return [text for path in files for text in sentences(path) if text != lesson]


@pytest.mark.parametrize("lesson", lesson_names())
def test_every_tested_sentence_still_stands_in_the_lesson(lesson):
    assert measured(lesson)
    says(lesson, *measured(lesson))


# Losses that no output shows: computed by hand, of other models or larger runs, or differences of two losses.
ELSEWHERE = {
    "06_softmax": {"0.900"},
    "09_encoder_block": {"8.0"},
    "10_decoder_block": {"11.8"},
    "11_translation": {"0.39"},
    "12_language_model": {"1.50", "0.14"},
    "14_today": {"0.08", "0.02"},
}


@pytest.mark.parametrize("lesson", lesson_names())
def test_every_loss_in_the_text_appears_in_an_output(lesson):
    """A loss in a tested sentence needs no output."""
    cells = nbformat.read(ROOT / "solutions" / lesson / f"{lesson}.ipynb", as_version=4).cells
    shown = str([cell.outputs for cell in cells if cell.cell_type == "code"]).replace("\\n", " ")
    numbers = re.findall(r"(?<![\w.])\d+\.\d+(?![\w.])", re.sub(r'src="[^"]*"', "", shown))
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    losses = set(re.findall(r"\$?(\d+\.\d+)\$?(?= nats)", text)) - ELSEWHERE.get(lesson, set())
    for loss in losses:
        digits = len(loss.partition(".")[2])
        shows = any(f"{float(number):.{digits}f}" == loss for number in numbers)
        assert shows or any(loss in sentence for sentence in measured(lesson)), f"no output shows {loss} nats"
