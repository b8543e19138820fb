"""No honest learner loses a point, because unusual but right submissions get full points."""

import dataclasses
import os
import signal
import time

import pytest
import torch

from helpers.checking.key import load_keys
from helpers.checking.session import verdict_on
from helpers.grading.inside.protocol import Limits
from helpers.grading.judge import TOO_LONG, Judge, Trial
from helpers.grading.merge_cells import _is_prose
from helpers.grading.name_bindings import TopLevel, without_magics
from helpers.grading.pool import Batch, Pool
from helpers.grading.submission import Cell, Release, Submission
from tests.sandboxes import LESSON, SEED, WRONG, full_scores, honest_cells, scores, with_answer

pytestmark = pytest.mark.xdist_group("judge of lesson 3")


def cells(judge, first="", answer=None, last=""):
    """An honest submission with one more cell at each end, and optionally another `attention_scores`."""
    honest = honest_cells(judge)
    if answer is not None:
        honest = with_answer(honest, "attention_scores", answer)
    return [honest[0], Cell("first", first), *honest[1:], Cell("last", last)]


# What exists where the notebook ran, but not in the grader.

IMPORTS = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\nimport math"
ONLY_AT_HOME = {
    "a package": ("import a_package_of_home as aph\n" + IMPORTS, "ModuleNotFoundError in line 1"),
    "on one line": (
        "import a_package_of_home as aph; import torch\nfrom torch import nn",
        "ModuleNotFoundError in line 1",
    ),
    "installed": ("!pip install -q of_home > /dev/null\nimport of_home\n" + IMPORTS, "ModuleNotFoundError in line 2"),
    "colab": ("from google.colab import drive\ndrive.mount('/content')\n" + IMPORTS, "ModuleNotFoundError in line 1"),
    "input": ("name = input('Your name? ')\nprint(name.title())\n" + IMPORTS, "EOFError in line 1"),
    "a file elsewhere": ("open('../log.txt', 'w')\n" + IMPORTS, "OSError in line 1"),
    "a block of a later lesson": ("from helpers.blocks import attention\n" + IMPORTS, "ImportError in line 1"),
    "nothing else": ("import a_package_of_home", "ModuleNotFoundError in line 1"),
}


@pytest.mark.full
@pytest.mark.parametrize("how", ONLY_AT_HOME)
def test_a_failing_line_of_the_import_cell_costs_nothing_and_is_flagged(judge, how):
    source, error = ONLY_AT_HOME[how]
    made = cells(judge, "print(math.pi)" if "math" in source else "", last="torch.ones(2) @ torch.ones(2)")
    made[0] = dataclasses.replace(made[0], source=source)
    found = judge.judge_cells(made)
    assert scores(found) == full_scores(judge), {n: v.message for n, v in found.verdicts.items() if not v.passed}
    assert [*found.errors] == ["imports"] and len(found.flags) == 1
    assert found.flags[0].startswith(f"Cell imports raised {error}: ")
    assert found.flags[0].endswith(" here; its other statements were run.")


def test_an_annotation_from_a_missing_package_costs_no_points(judge):
    typed = "from of_home import Float\ndef attention_scores(Q: Float['q k'], K) -> Float:\n    return Q @ K.mT\n"
    found = judge.judge_cells(cells(judge, answer=typed + "\ndef also(x: Float): return x"))
    assert scores(found) == full_scores(judge) and len(found.flags) == 1, found.flags


def test_a_cell_that_also_failed_in_the_notebook_ends_there_without_a_flag(judge):
    """Then its answer was not defined in the learner's notebook either."""
    lines = "del not_there\n" + judge_answer(judge, "attention_scores")
    flag = "Cell attention_scores raised NameError in line 1: name 'not_there' is not defined here, though not at home"
    for ran in (True, None, False):
        made = [dataclasses.replace(c, ran=ran) for c in cells(judge, answer=lines)]
        found = judge.judge_cells(made)
        assert scores(found) == full_scores(judge) | ({"attention_scores": 0} if ran is False else {})
        assert found.flags == ([f"{flag}; its other statements were run."] if ran else [])


def test_an_answer_under_another_name_is_flagged(judge):
    flag = "The answer cell of attention_scores defines other names, but no attention_scores."
    for answer, flags in (("def attention_score(Q, K):\n    return Q @ K.mT", [flag]), ("# later\npass", [])):
        found = judge.judge_cells(cells(judge, answer=answer))
        assert not found.verdicts["attention_scores"].answered and found.flags == flags


def judge_answer(judge, name):
    return next(cell.source for cell in honest_cells(judge) if cell.id == name)


def test_a_module_that_a_cell_writes_can_be_imported_by_the_next(judge):
    written = "%%writefile my_tools.py\ndef swap(K):\n    return K.transpose(-2, -1)"
    answer = "from my_tools import swap\ndef attention_scores(Q, K):\n    return Q @ swap(K)"
    found = judge.judge_cells(cells(judge, written, answer))
    assert (scores(found), found.flags, found.errors) == (full_scores(judge), [], {})


def test_a_learners_data_file_is_read_or_its_absence_flagged(judge):
    reads = "with open('notes.txt') as file:\n    factor = float(file.read())"
    answer = "def attention_scores(Q, K):\n    return Q @ K.transpose(-2, -1)"
    made = cells(judge, reads, answer, last="assert factor == 2")
    found = judge.judge_cells(made, files={"notes.txt": b"2"})
    assert (scores(found), found.flags, found.errors) == (full_scores(judge), [], {})
    found = judge.judge_cells(made)
    flag = "Cell first raised FileNotFoundError in line 1: [Errno 2] No such file or directory: 'notes.txt' here"
    assert (scores(found), found.flags) == (full_scores(judge), [f"{flag}; its other statements were run."])


def test_an_import_below_the_check_does_not_reduce_partial_credit(judge):
    cut_off = "def attention_scores(Q, K):\n    return Q.detach() @ K.detach().transpose(-2, -1)"
    alone = scores(judge.judge_cells(cells(judge, answer=cut_off)))
    assert 0 < alone["attention_scores"] < full_scores(judge)["attention_scores"]
    for below in ("from helpers.blocks import attention_scores", "from torch import *"):
        assert scores(judge.judge_cells(cells(judge, answer=cut_off, last=below))) == alone


# Magics in an answer cell. Without them the judge finds out which answers call which.

CALLS = "def scores_of(X):\n    return attention_scores(X, X)\n"
MAGIC = {
    "timed": "%%time\n" + CALLS,
    "timed twice": "%%capture out\n%%time\n" + CALLS,
    "timed with options": "%%timeit -n 1 -r 1\n" + CALLS,
    "help below": CALLS + "\nattention_scores?",
    "help with the source": "attention_scores??\n" + CALLS,
    "help above": "?attention_scores\n" + CALLS,
    "a shell line": "!pip list > /dev/null\n" + CALLS,
    "output of magics": "files = !ls\nplaces = %pwd\n" + CALLS,
    "a timed line": CALLS + "%time result = scores_of(3)\n%timeit -n 1 scores_of(3)",
    "a magic inside": CALLS + "for _ in range(2):\n    %time scores_of(3)\n",
}


@pytest.mark.parametrize("how", MAGIC)
def test_calls_of_answers_are_found_in_cells_with_magics(how):
    pieces = TopLevel([MAGIC[how]])
    assert "attention_scores" in pieces.closure("scores_of"), without_magics(MAGIC[how])


@pytest.mark.parametrize("part", ['"\\', "'\\", "\\'"])
def test_unclosed_strings_are_read_quickly(part):
    """100 kB of the first of these once took nine seconds."""
    began = time.process_time()
    assert TopLevel([f"x = 1\n{part * 50_000}"]).statements == []
    assert time.process_time() - began < 1


def test_lines_of_magics_and_other_languages_are_not_read_as_python():
    assert without_magics("%%html\n<b>x</b>") == without_magics("%%bash\nls") == ""
    for goes_on in ("x = (7\n     % 3)", "x = 7 \\\n % 3", "x = '''\n%time\n!ls\n'''"):
        assert without_magics(f"{goes_on}\n%time y = 1\n!ls 'it") == f"{goes_on}\ny = 1\npass"
    assert without_magics("%%writefile my.py\ndef f(): pass") == "def f(): pass"
    assert without_magics("%%writefile my.txt\ndef f(): pass") == ""
    assert without_magics("x = 5 % 3\nprint('%d' % x)") == "x = 5 % 3\nprint('%d' % x)"


STARRED = """
def attention_scores(Q, K):
    total = float(0)
    for _ in range(3):
        total += 1
    return Q @ K.mT * (total / 3)
"""


def test_a_star_import_that_replaces_builtins_costs_no_points(judge):
    """`from torch import *` replaces `float` and `range`, so grader and notebook check also try Python's builtins."""
    found = judge.judge_cells(cells(judge, "from torch import *", STARRED))
    assert scores(found) == full_scores(judge)
    names = {}
    exec(f"from torch import *\n{STARRED}", names)
    hidden = names["float"]
    verdict = verdict_on(load_keys(LESSON)["attention_scores"], names["attention_scores"])
    assert verdict.passed and names["float"] is hidden is torch.float


def test_a_wrong_answer_below_a_star_import_is_still_wrong(judge):
    found = judge.judge_cells(cells(judge, "from torch import *", WRONG))
    assert scores(found) == full_scores(judge) | {"attention_scores": 0}


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "source",
    [
        pytest.param("x=1\n" * 20_000, id="lines"),
        pytest.param("%%time\n" * 20_000, id="magics"),
        pytest.param(" " * 50_000 + "x", id="spaces"),
        pytest.param("\n" * 50_000 + "x", id="empty lines"),
        pytest.param("def f():\n    return " + "+".join("x" * 700), id="a sum"),
        pytest.param("def f(q):\n" + "".join(f"    def g{i}(): return q\n" for i in range(12_000)), id="functions"),
        pytest.param("class F:\n" + "".join(f"    def g{i}(self): return {i}\n" for i in range(12_000)), id="methods"),
        pytest.param("from helpers.blocks import " + ", ".join(f"a{i}" for i in range(30_000)), id="imports"),
    ],
)
def test_long_code_is_analyzed_within_seconds(source):
    started = time.process_time()
    pieces = TopLevel([source, CALLS])
    assert "scores_of" in pieces.bound
    assert pieces.blocks_used("scores_of", ()) == set()
    assert time.process_time() - started < 8
    cell = Cell("long", source + "\n$ a b c d e f g h")
    _is_prose(cell)  # raises no error


FORMS = {
    "compiled": "@torch.compile\ndef attention_scores(Q, K):\n    return Q @ K.mT",
    "scripted": "@torch.jit.script\ndef attention_scores(Q, K):\n    return Q @ K.mT",
    "a partial": "import functools\nattention_scores = functools.partial(torch.einsum, '...ik,...jk->...ij')",
    "cached and typed": "from __future__ import annotations\nimport functools\n@functools.cache\n"
    "def root(): return 1.0\ndef attention_scores(Q: NoSuch['b'], K: Float) -> Scores:\n    return Q @ K.mT * root()",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_wrapped_answer_gets_full_points(judge, form):
    found = judge.judge_cells(cells(judge, answer=FORMS[form]))
    assert scores(found) == full_scores(judge), (found.verdicts["attention_scores"].message, found.flags, found.errors)


# Memory and time.


@pytest.mark.full
def test_a_large_tensor_that_is_still_alive_costs_nothing(judge):
    """A fork of the submission shares the tensor, so that it counts once."""
    limits = Limits(memory_bytes=1600 << 20, total_bytes=1600 << 20, processes=24, cell_seconds=20.0)
    slow = "def attention_scores(Q, K):\n    import time\n    time.sleep(0.4)\n    return Q @ K.mT"
    with Judge(LESSON, SEED, limits=limits, keys=judge.keys) as roomy:
        found = roomy.judge_cells(cells(roomy, "large = torch.ones(250_000_000)", slow))
        assert (scores(found), found.flags) == (full_scores(judge), [])
        eater = "large = torch.ones(250_000_000)\nimport os\nchild = os.fork()\nlarge += 1\nimport time\ntime.sleep(2)"
        assert any("memory" in flag for flag in roomy.judge_cells(cells(roomy, eater)).flags)


def busy(seconds):
    """An answer whose first call computes for that long. All calls of a check share one time limit."""
    return (
        "rest = [True]\ndef attention_scores(Q, K):\n    import time\n    end = time.process_time() + "
        f"{seconds}\n    while rest and time.process_time() < end:\n        pass\n    rest.clear()\n    return Q @ K.mT"
    )


@pytest.fixture
def hasty(judge, monkeypatch):
    """A judge that gives each call of `attention_scores` half a second."""
    key = judge.keys["attention_scores"]
    facts = dataclasses.replace(key.facts, time_limit=0.5)
    monkeypatch.setitem(judge.keys, "attention_scores", dataclasses.replace(key, facts=facts))
    return judge


@pytest.mark.full
def test_a_slow_answer_is_given_four_times_the_limit_before_it_costs_points(hasty):
    found = hasty.judge_cells(cells(hasty, answer=busy(0.8)))
    assert (scores(found), found.flags) == (full_scores(hasty), [])
    found = hasty.judge_cells(cells(hasty, answer=busy(1000)))
    assert scores(found) == full_scores(hasty) | {"attention_scores": 0}
    assert found.verdicts["attention_scores"].mistake == "too_slow"


ENDED_ONCE = """
def attention_scores(Q, K):
    import os
    if not os.path.exists("tried"):
        open("tried", "w").close()
        os.kill(os.getpid(), 9)
    return Q @ K.mT
"""


def test_an_answer_whose_process_was_killed_is_tried_once_more(judge):
    """For example, the system may kill it when memory is short."""
    assert scores(judge.judge_cells(cells(judge, answer=ENDED_ONCE))) == full_scores(judge)
    always = "def attention_scores(Q, K):\n    import os\n    os.kill(os.getpid(), 9)"
    found = judge.judge_cells(cells(judge, answer=always))
    assert scores(found) == full_scores(judge) | {"attention_scores": 0}
    assert found.verdicts["attention_scores"].mistake == "raises"


@pytest.mark.full
def test_endless_loops_are_retried_only_a_limited_number_of_times(hasty, monkeypatch):
    tried = []
    monkeypatch.setattr("helpers.grading.judge.MAX_FUTILE", 0)
    observations = Trial._observations

    def counted(self, key, *how, time_factor=1.0):
        tried.append(time_factor)
        return observations(self, key, *how, time_factor=time_factor)

    monkeypatch.setattr(Trial, "_observations", counted)
    assert scores(hasty.judge_cells(cells(hasty, answer=busy(1000)), ["attention_scores"])) == {"attention_scores": 0}
    assert set(tried) == {1.0}


@pytest.mark.full
def test_a_slow_submission_is_postponed_while_others_wait(hasty, monkeypatch):
    assert hasty.judge_cells(cells(hasty, answer=busy(1000)), hurried=True).problem == TOO_LONG
    monkeypatch.setattr("helpers.grading.judge.HURRIED", 0.5)
    waits = cells(hasty, "import time\ntime.sleep(1.5)")
    assert hasty.judge_cells(waits, hurried=True).problem == TOO_LONG
    assert scores(hasty.judge_cells(waits)) == full_scores(hasty)


@pytest.mark.full
def test_a_cell_may_wait_slightly_longer_than_it_may_compute(judge):
    found = judge.judge_cells(cells(judge, "import time\ntime.sleep(4.5)"))
    assert (scores(found), found.errors) == (full_scores(judge), {})


# A judge that dies.


def submission(judge, student, source=""):
    return Submission(student, LESSON, cells(judge, source), sha=f"sha of {student}")


@pytest.mark.full
def test_a_judge_that_dies_costs_nobody_a_point(judge, monkeypatch):
    """A new judge tries the submission again. If that one also dies, the submission waits for a person."""
    waits = "import time\ntime.sleep(3)"
    portion = [submission(judge, "ada"), submission(judge, "unlucky", waits), submission(judge, "zoe")]
    with Pool(Batch(LESSON, SEED), 1) as pool:
        ask, killed = type(pool.judges[0]).ask, []

        def ask_and_kill(self, message):
            ask(self, message)
            handed_in = isinstance(message, tuple) and isinstance(message[0], list)
            if handed_in and any(cell.source == waits for cell in message[0]) and len(killed) < times:
                killed.append(self.process.pid)
                time.sleep(1)
                os.kill(self.process.pid, signal.SIGKILL)

        monkeypatch.setattr(type(pool.judges[0]), "ask", ask_and_kill)
        release = Release(LESSON, {}, {}, {}, {}, set())
        for times in (1, 2):
            killed.clear()
            judged = {one.student: report for one, report in pool.judge(portion, release, lambda _: None, False)}
            for student in ("ada", "zoe"):
                assert {n: s.points for n, s in judged[student].verdicts.items()} == full_scores(judge)
            assert len(killed) == times
        assert judged["unlucky"] is None and "grade it by hand" in portion[1].problem
        assert [one.again for one in portion] == [False, True, False]
        ends = "def attention_scores(Q, K):\n    import os\n    os.kill(os.getpid(), 9)"
        portion = [Submission("slow", LESSON, cells(judge, answer=ends), sha="slow"), submission(judge, "zoe")]
        done = []
        judged = pool.judge(portion, release, done.append, hurried=True)
        assert [one.student for one, _ in judged] == done == ["zoe"] and portion[0].problem is None
