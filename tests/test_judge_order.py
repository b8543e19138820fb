"""An answer is judged in the state that it has at its check cell. Later experiments cost nothing."""

import dataclasses

import pytest

from helpers.grading.submission import Cell
from tests.sandboxes import RIGHT, WRONG, full_scores, honest_cells, scores

pytestmark = pytest.mark.xdist_group("judge of lesson 3")


def cells(judge, answer=RIGHT, below="", above="", last="", drop=()):
    """An honest submission with another `attention_scores`, and cells above that answer, below its check and last."""
    result = []
    for cell in honest_cells(judge):
        if cell.id == "attention_scores":
            result += [Cell("above", above), dataclasses.replace(cell, source=answer)]
        elif cell.id == "check_attention_scores":
            result += [cell, Cell("below", below)]
        else:
            result.append(cell)
    return [cell for cell in [*result, Cell("last", last)] if cell.id not in drop]


BELOW = {
    "the name becomes a result": "attention_scores = attention_scores(torch.ones(3, 4), torch.ones(5, 4))",
    "a worse variant": WRONG,
    "a worse variant that prints": WRONG + "\nprint(attention_scores(torch.ones(3, 4), torch.ones(5, 4)))",
    "the name is deleted": "del attention_scores",
    "an exit": "import os\nos._exit(0)",
    "an endless loop": "while True: pass",
    "star imports": "from torch import *\nfrom math import *",
}


@pytest.mark.full
@pytest.mark.parametrize("what", BELOW)
def test_experiments_below_a_passed_check_cost_nothing(judge, what):
    found = judge.judge_cells(cells(judge, below=BELOW[what]))
    assert scores(found) == full_scores(judge)


def test_a_global_that_changes_below_the_check_has_no_effect(judge):
    answer = (
        "scale = 1.0\ndef attention_scores(Q, K):\n    return scaled(Q @ K.mT)\ndef scaled(x):\n    return scale * x"
    )
    found = judge.judge_cells(cells(judge, answer, below="scale = 7.0", last="def scaled(x):\n    return None"))
    assert scores(found) == full_scores(judge) and found.flags == []


def test_a_wrong_answer_that_is_corrected_at_the_end_is_flagged(judge):
    found = judge.judge_cells(cells(judge, WRONG, last=RIGHT))
    assert scores(found) == full_scores(judge) | {"attention_scores": 0}
    worth = full_scores(judge)["attention_scores"]
    told = f"it earned 0 of {worth:g} points; its code at the end of the notebook would earn {worth:g}."
    assert told in " ".join(found.flags)


@pytest.mark.parametrize(
    "options",
    [
        {"answer": "", "last": RIGHT},
        {"answer": "def attention_scores(Q, K):\n    raise NotImplementedError", "last": RIGHT},
        {"answer": "def attention_scores(Q, K) return Q", "last": RIGHT},
        {"answer": "attention_scores = None", "below": RIGHT},
        {
            "answer": "def attention_scores(Q, K):\n    return dots(Q, K)",
            "last": "def dots(Q, K):\n    return Q @ K.mT",
        },
    ],
)
def test_an_answer_that_is_missing_at_its_check_is_judged_at_the_end(judge, options):
    found = judge.judge_cells(cells(judge, **options))
    assert scores(found) == full_scores(judge)
    flag = "attention_scores could not be judged at its check cell; its code at the end of the notebook counts."
    assert flag in found.flags


KEPT = """
def attention_scores(Q, K):
    import os
    if not os.path.exists("/dev/shm/lent"):
        raise NotImplementedError
    space = {"torch": torch}
    exec(open("/dev/shm/lent").read(), space)
    return space["attention_scores"](Q, K)
"""
KEEPS = """
def fixed_self_scores(x, W_q, W_k):
    import linecache
    lent = linecache.cache.get("<finished block>")
    if lent is not None:
        open("/dev/shm/lent", "w").write("".join(lent[2]))
    return attention_scores(project(x, W_q), project(x, W_k))
"""


@pytest.mark.parametrize("below", [False, True])
def test_a_finished_block_that_was_saved_in_a_later_exercise_earns_nothing(judge, below):
    """below: whether the check cell of the answer comes after that exercise instead of before it."""
    submission = [
        dataclasses.replace(cell, source=KEEPS) if cell.id == "fixed_self_scores" else cell
        for cell in cells(judge, KEPT)
    ]
    if below:
        submission.sort(key=lambda cell: cell.exercise == "attention_scores")
    found = judge.judge_cells(submission)
    assert scores(found) == full_scores(judge) | {"attention_scores": 0}


def test_an_honest_answer_below_its_callers_gets_full_points(judge):
    submission = sorted(cells(judge), key=lambda cell: cell.exercise == "attention_scores")
    found = judge.judge_cells(submission)
    assert scores(found) == full_scores(judge) and found.problem is None


def test_an_answer_without_its_check_cell_is_judged_at_the_end(judge):
    submission = [
        dataclasses.replace(cell, gone=True) if cell.id == "check_attention_scores" else cell
        for cell in cells(judge, last=WRONG)
    ]
    found = judge.judge_cells(submission)
    assert scores(found) == full_scores(judge) | {"attention_scores": 0}
    flag = "The check cell of attention_scores was deleted; the code at the end of the notebook counts."
    assert flag in found.flags


def test_a_missing_answer_is_not_flagged(judge):
    found = judge.judge_cells(cells(judge, ""))
    assert found.verdicts["attention_scores"].mistake == "not_answered" and found.flags == []


def test_a_quiz_is_judged_at_its_check_cell(judge):
    quiz = next(name for name, key in judge.keys.items() if key.kind == "quiz")
    found = judge.judge_cells([*honest_cells(judge), Cell("spoiled", f"{quiz} = 7")])
    assert scores(found) == full_scores(judge)


@pytest.mark.full
def test_a_submission_has_one_deadline_in_all(judge, monkeypatch):
    monkeypatch.setattr(judge, "lesson", dataclasses.replace(judge.lesson, seconds=3.0))
    found = judge.judge_cells(cells(judge, above="import time\ntime.sleep(3.5)"))
    assert "longer than a submission may" in found.problem


@pytest.mark.full
def test_a_submission_that_keeps_ending_its_process_waits_for_a_person(judge):
    deaths = [Cell(f"death-{number}", "import os\nos._exit(0)") for number in range(8)]
    found = judge.judge_cells([*deaths, *honest_cells(judge)])
    assert "ended the process again and again" in found.problem
