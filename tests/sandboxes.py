"""Shared by the tests of the sandbox and the judge."""

import dataclasses
import functools
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.grading.judge import Judge
from helpers.grading.name_bindings import TopLevel
from helpers.grading.reference import blocks_source
from helpers.grading.sandbox import Limits
from helpers.grading.sandbox_files import SandboxMissing, bubblewrap
from helpers.grading.submission import Cell

LESSON = "03_query_key"
SEED = 11
RIGHT = "def attention_scores(Q, K):\n    return Q @ K.mT"  # of that lesson
WRONG = "def attention_scores(Q, K):\n    return 2 * Q @ K.mT"
SMALL = Limits(memory_bytes=600 << 20, total_bytes=1 << 30, disk_bytes=8 << 20, processes=24, cell_seconds=4.0)


def need_sandbox() -> None:
    """Skip the test if there is no sandbox; in CI let it fail."""
    if missing := _missing():
        if os.environ.get("COURSE_CI") == "1":
            pytest.fail(missing)
        pytest.skip(missing)


@functools.cache
def _missing() -> str:
    """Return why the sandbox does not work here, or "" if an empty one starts."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        try:
            command = bubblewrap(Path(folder), ["/bin/true"])
        except SandboxMissing as missing:
            return str(missing)
        done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr


def honest_cells(judge: Judge) -> list[Cell]:
    """Return a submission in which every answer is right, with a cell for each."""
    pieces = TopLevel([blocks_source(judge.lesson)])
    cells = [Cell("imports", "import torch\nfrom torch import nn\nimport torch.nn.functional as F\nimport math")]
    for key in judge.keys.values():
        quiz = key.kind == "quiz"
        source = f'{key.name} = "{key.correct}"' if quiz else pieces.source_of([key.name])
        cells += [Cell(key.name, source, "answer", key.name), Cell(f"check_{key.name}", "", "check", key.name)]
    return cells


def between_honest_ones(judges, lesson: str) -> Iterator[Judge]:
    """Yield a judge, and require full scores for an honest submission before and after it is used."""
    judge = judges(lesson)
    must_be_full(judge)
    yield judge
    must_be_full(judge)


def must_be_full(judge: Judge) -> None:
    honest = judge.judge_cells(honest_cells(judge))
    assert (scores(honest), honest.flags) == (full_scores(judge), [])


def with_answer(cells: list[Cell], name: str, source: str) -> list[Cell]:
    return [dataclasses.replace(cell, source=source) if cell.id == name else cell for cell in cells]


def full_scores(judge: Judge) -> dict[str, float]:
    return {name: key.points for name, key in judge.keys.items()}


def scores(result) -> dict[str, float]:
    return {name: verdict.points for name, verdict in result.verdicts.items()}
