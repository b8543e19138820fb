"""What attacks on the grader revealed: each kind earns nothing, ends within seconds, and is reported truthfully."""

import dataclasses
import time

import pytest

from helpers.course import course
from helpers.grading.judge import HURRIED, TOO_LONG, Judge
from helpers.grading.name_bindings import TopLevel
from helpers.grading.reference import blocks_source
from helpers.grading.sandbox import Limits
from helpers.grading.submission import Cell
from tests.sandboxes import SEED, need_sandbox

LESSON = "09_encoder_block"
pytestmark = pytest.mark.full
IMPORTS = "import math\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F"


@pytest.fixture(scope="module")
def judge():
    need_sandbox()
    with Judge(LESSON, SEED, limits=Limits(total_bytes=1 << 30)) as judge:
        yield judge


@pytest.fixture(scope="module")
def right(judge):
    return TopLevel([blocks_source(judge.lesson)]).source_of(["FeedForward"])


def judged(judge, name, *sources, files=None):
    cells = [Cell("imports", IMPORTS), *(Cell(f"cell-{n}", source) for n, source in enumerate(sources))]
    graded = judge.judge_cells([*cells, Cell(f"check_{name}", "", "check", name)], [name], files=files)
    return graded, graded.verdicts[name]


def test_a_thread_started_before_the_call_earns_nothing(judge):
    answer = """
import os, queue, threading
ask, out = queue.Queue(), queue.Queue()
def work():
    while True:
        out.put(F.layer_norm(*ask.get()))
os.register_at_fork(after_in_child=lambda: threading.Thread(target=work, daemon=True).start())
def layer_norm(x, gamma, beta, eps=1e-5):
    ask.put((x, x.shape[-1:], gamma, beta, eps))
    return out.get()
"""
    _, verdict = judged(judge, "layer_norm", answer)
    assert verdict.points == 0 and "a thread that was there before the call" in verdict.message


HOARDS = {
    "files of memory": "import os\nkept = []\nfor n in range(60):\n    kept.append(os.memfd_create(str(n)))\n"
    "    for _ in range(16):\n        os.write(kept[-1], bytes(4 << 20))\nimport time\ntime.sleep(2)",
    "shared maps": "import mmap, time\nkept = [mmap.mmap(-1, 64 << 20) for _ in range(30)]\n"
    "for one in kept:\n    one.write(bytes(64 << 20))\ntime.sleep(2)",
}


@pytest.mark.parametrize("hoard", HOARDS.values(), ids=HOARDS)
def test_memory_outside_of_processes_is_limited(judge, right, hoard):
    graded, verdict = judged(judge, "FeedForward", hoard, right)
    assert any("more memory than a submission may take" in flag for flag in graded.flags) and verdict.passed


@pytest.mark.parametrize("how", ["os.kill(os.getpid(), signal.SIGSTOP)", "time.sleep(1000)"])
def test_an_answer_that_stops_or_sleeps_ends_soon(judge, right, how, monkeypatch):
    monkeypatch.setattr("helpers.grading.learner_process.MOST_IDLE", 6)  # 60 seconds in a class
    answer = (
        f"{right}\nimport os, signal, time\nclass FeedForward(FeedForward):\n    def forward(self, x):\n        {how}"
    )
    started = time.monotonic()
    _, verdict = judged(judge, "FeedForward", answer)
    assert verdict.points == 0 and time.monotonic() - started < 60
    assert ("stopped the process" in verdict.message) == ("SIGSTOP" in how)


HANGING = {
    "cells": ["import time\ntime.sleep(5)"] * 60,
    "cells that raise": ["import time\ntime.sleep(2)\n1 / 0\ntime.sleep(2)\n1 / 0"] * 60,
    "answers": [
        f"import time\ndef {name}(*_):\n    while True:\n        try:\n            time.sleep(99)\n"
        "        except BaseException:\n            pass"
        for name in ("layer_norm", "FeedForward", "EncoderBlock", "Encoder")
    ],
}


@pytest.mark.parametrize("sources", HANGING.values(), ids=HANGING)
def test_a_submission_ends_at_its_time_limit_however_many_cells_hang(judge, sources, monkeypatch):
    monkeypatch.setattr(judge, "lesson", dataclasses.replace(judge.lesson, seconds=12))
    started = time.monotonic()
    cells = [Cell("imports", IMPORTS), *(Cell(f"cell-{n}", source) for n, source in enumerate(sources))]
    names = ("layer_norm", "FeedForward", "EncoderBlock", "Encoder")
    graded = judge.judge_cells([*cells, *(Cell(f"check_{name}", "", "check", name) for name in names)], list(names))
    assert graded.problem == TOO_LONG and time.monotonic() - started < 40


def test_a_submission_that_trains_nothing_has_five_minutes():
    trains = {"11_translation", "12_language_model"}
    assert {lesson.seconds for lesson in course().lessons if lesson.name not in trains} == {300}
    assert HURRIED <= 20


def test_a_stopped_child_process_costs_no_points(judge, right):
    child = "import os, signal\nif os.fork() == 0:\n    os.kill(os.getpid(), signal.SIGSTOP)\n    os._exit(0)"
    slow = f"{right}\nimport time\nclass FeedForward(FeedForward):\n    def forward(self, x):\n"
    slow += "        time.sleep(0.3)\n        return super().forward(x)"
    _, verdict = judged(judge, "FeedForward", child, slow)
    assert verdict.passed, verdict.message


def test_modules_beside_the_notebook_take_precedence_over_pythons(judge, right):
    own = {"test.py": b"def helper():\n    return 1\n", "random.py": b"raise SystemExit\n"}
    graded, verdict = judged(judge, "FeedForward", f"from test import helper\nassert helper() == 1\n{right}", files=own)
    assert verdict.passed and not graded.errors


def test_an_activation_found_by_its_name_is_flagged_once(judge):
    answer = """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.activation = getattr(F, activation) if isinstance(activation, str) else activation
    def forward(self, x):
        return self.down(self.activation(self.up(x)))
"""
    cells = [Cell("imports", IMPORTS), Cell("one", answer), Cell("two", "EncoderBlock = Encoder = FeedForward")]
    cells += [Cell(f"check_{name}", "", "check", name) for name in ("FeedForward", "EncoderBlock", "Encoder")]
    graded = judge.judge_cells(cells, ["FeedForward", "EncoderBlock", "Encoder"])
    assert len([flag for flag in graded.flags if "getattr" in flag]) == 1
    assert graded.verdicts["FeedForward"].passed


def test_replaced_functions_are_flagged_and_new_attributes_are_not(judge, right):
    graded, _ = judged(judge, "FeedForward", "torch.Tensor.describe = lambda self: 1\nsetattr(torch, 'mine', 2)", right)
    assert graded.flags == []
    for replaced in ("torch.Tensor.exp = lambda self: 1", "kept, F.gelu = F.gelu, None"):
        graded, _ = judged(judge, "FeedForward", replaced, right)
        assert any("replaces functions" in flag for flag in graded.flags)


@pytest.mark.parametrize("signature", ["d_model, d_ff, activation=F.relu", "*args, **kwargs"])
def test_a_function_that_returns_the_module_passes(judge, right, signature):
    made = right.replace("class FeedForward", "class _FF")
    passed = "*args, **kwargs" if "*" in signature else "d_model, d_ff, activation"
    _, verdict = judged(judge, "FeedForward", f"{made}\ndef FeedForward({signature}):\n    return _FF({passed})")
    assert verdict.passed, verdict.message


NESTED = {
    "brackets": "x = " + "[" * 2500 + "]" * 2500,
    "items": "x = y" + "[0]" * 2500,
    "setattr": "setattr(torch" + "[0]" * 2500 + ", 'x', 1)",
    "calls": "f" + "()" * 2500,
    "a forbidden name": "def h():\n    return vars()" + "['layer_norm']" * 2500,
}


@pytest.mark.parametrize("source", NESTED.values(), ids=NESTED)
def test_deeply_nested_code_is_judged_like_any_other(judge, right, source):
    graded, verdict = judged(judge, "FeedForward", source, right)
    assert verdict.passed and graded.problem is None
