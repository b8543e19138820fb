"""Hostile submissions gain no points and change no other submission's score."""

import dataclasses
import textwrap

import pytest

from helpers.grading import judge as judging
from helpers.grading import learner_process, reference
from helpers.grading.judge import Judge
from helpers.grading.reference import GraderBroken
from helpers.grading.sandbox_files import HELPERS
from helpers.grading.selftest import self_test
from helpers.grading.submission import Cell
from tests.sandboxes import LESSON, SEED, full_scores, honest_cells, must_be_full, scores, with_answer

PROJECT = HELPERS.parent
pytestmark = pytest.mark.full

# Each runs in a cell of its own, before the answers, of which `attention_scores` is wrong, and again after them.
ATTACKS = {
    "patched assert": """
        import builtins
        class Never(Exception): pass
        builtins.AssertionError = Never
    """,
    "patched comparisons": """
        import torch, torch.testing, numpy
        torch.allclose = torch.equal = torch.testing.assert_close = numpy.allclose = lambda *a, **k: True
        torch.isclose = lambda a, b, *r, **k: torch.ones_like(a, dtype=torch.bool)
    """,
    "os._exit": "import os; os._exit(0)",
    "killed itself": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "crash": "import ctypes; ctypes.string_at(0)",
    "endless loop": "while True: pass",
    "endless loop that swallows its alarm": """
        while True:
            try:
                while True: pass
            except BaseException:
                pass
    """,
    "reads what is not its own": f"""
        import os, glob
        for place in ("solutions", "gradebook", "tests", "helpers/grading", "helpers/blocks/03_query_key.py", ".git"):
            for root in ({str(PROJECT)!r}, "/course", ".."):
                path = os.path.join(root, place)
                if os.path.exists(path):
                    print("LEAK", path)
        for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cwd/*"):
            try:
                if b"SECRET" in open(path, "rb").read(): print("LEAK", path)
            except OSError:
                pass
    """,
    "network": """
        import socket
        for address in (("127.0.0.1", 80), ("1.1.1.1", 53), ("8.8.8.8", 53)):
            try:
                socket.create_connection(address, timeout=1)
                print("LEAK", address)
            except OSError:
                pass
    """,
    "new namespaces": """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        for flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000):
            if libc.unshare(flag) == 0: print("LEAK", flag)
        if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0: print("LEAK mount")
    """,
    "fork bomb": """
        import os
        while True:
            try:
                os.fork()
            except OSError:
                pass
    """,
    "memory hog": """
        def eat():
            hog = []
            while True:
                hog.append(bytearray(b"x") * (50 << 20))
        eat()
    """,
    "flood of prints": "for _ in range(300_000): print('flood ' * 20)",
    "flood of displays": """
        from IPython.display import display
        for number in range(20_000): display({"text/html": "<b>x</b>" * 1000}, raw=True)
    """,
    "forged messages": """
        import os
        for fd in range(3, 64):
            for message in (b"\\x00" * 24, b"\\xff" * 64, (1 << 40).to_bytes(8, "little") + b"x" * 100):
                try:
                    os.write(fd, message)
                except OSError:
                    pass
    """,
    "closed descriptors": "import os; os.closerange(0, 256)",
    "signals to everyone": """
        import os, signal
        for pid in (1, os.getppid(), -1, 0):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
                try:
                    os.kill(pid, number)
                except OSError:
                    pass
    """,
    "patched observer": """
        import sys, torch
        import helpers.checking.observe as observing, helpers.checking.codec as codec
        old = observing.observe
        def forged(answer, case, facts, scan=True):
            seen = old(answer, case, facts, scan)
            seen.error, seen.forbidden, seen.changed = None, [], []
            return seen
        observing.observe = forged
        import helpers.checking.compare, helpers.checking.verdict
        helpers.checking.compare.difference = lambda *a, **k: None
        helpers.checking.verdict.decide = lambda key, *a, **k: key.points
    """,
}

# Each is the body of `attention_scores`. The other answers must keep their points.
HOSTILE_ANSWERS = {
    "exits": "    import os\n    os._exit(0)",
    "raises SystemExit": "    raise SystemExit(0)",
    "loops": "    while True:\n        pass",
    "loops and swallows": """
    while True:
        try:
            while True: pass
        except BaseException: pass""",
    "kills its parent": "    import os, signal\n    os.kill(os.getppid(), signal.SIGKILL)\n    return Q",
    "closes everything": "    import os\n    os.closerange(0, 256)\n    return Q",
    "forges messages": """
    import os
    for fd in range(3, 64):
        try: os.write(fd, b'\\x00' * 24)
        except OSError: pass
    return Q""",
    "returns an impostor": """
    class Always(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func.__name__ in ("eq", "allclose", "isclose", "equal", "__eq__"): return True
            return super().__torch_function__(func, types, args, kwargs or {})
    return (Q @ K.mT * 2).as_subclass(Always)""",
    "returns an equal-to-all": """
    class Equal:
        shape = dtype = property(lambda self: self)
        def __eq__(self, other): return True
        def __len__(self): return 10**9
    return Equal()""",
    "returns far too much": "    return torch.zeros(40_000_000)",
    "nests without end": """
    x = []
    x.append(x)
    return x""",
    "reads what its case is for": """
    import sys
    frame = sys._getframe()
    while frame is not None:
        for thing in list(frame.f_locals.values()):
            for case in thing if isinstance(thing, list) else [thing]:
                if getattr(case, "part", ""): return Q @ K.mT
        frame = frame.f_back
    return Q""",
    "finds the inputs' frames": """
    import sys, gc
    for thing in gc.get_objects():
        if isinstance(thing, dict) and "expected" in thing: return thing["expected"][0]
    return Q""",
}


@pytest.fixture
def neighbors(judge):
    """An honest submission before and after a test, which must both get full points."""
    must_be_full(judge)
    yield
    must_be_full(judge)


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_in_a_cell_neither_gains_nor_costs_points(judge, neighbors, attack):
    cells = with_answer(honest_cells(judge), "attention_scores", "def attention_scores(Q, K):\n    return 2 * Q @ K.mT")
    source = textwrap.dedent(ATTACKS[attack]).strip()
    result = judge.judge_cells([Cell("first", source), *cells, Cell("last", source)])
    deserved, paid = full_scores(judge) | {"attention_scores": 0}, scores(result)
    if attack == "patched observer":  # it breaks the attacker's other answers, and must not gain points
        assert all(paid[name] <= deserved[name] for name in deserved)
    else:
        assert paid == deserved
    assert "LEAK" not in str(result.outputs)
    assert sum(len(str(output)) for outputs in result.outputs.values() for output in outputs) < 8_000_000


@pytest.mark.parametrize("answer", HOSTILE_ANSWERS)
def test_an_attack_in_an_answer_costs_only_that_answer(judge, neighbors, answer):
    source = "def attention_scores(Q, K):\n" + HOSTILE_ANSWERS[answer]
    result = judge.judge_cells(with_answer(honest_cells(judge), "attention_scores", source))
    assert scores(result) == full_scores(judge) | {"attention_scores": 0}
    assert not result.verdicts["attention_scores"].passed
    if answer.startswith("loops"):
        assert result.verdicts["attention_scores"].mistake == "too_slow"


@pytest.mark.parametrize("bound", [("CROWD", 0.2), ("MOST_PROCESSES", 8)])
def test_a_fork_bomb_is_ended_before_its_time_limit(judge, neighbors, monkeypatch, bound):
    """Their total processor time and their number are both limited."""
    monkeypatch.setattr(learner_process, "CROWD", 1e9)
    monkeypatch.setattr(learner_process, "MOST_PROCESSES", 1000)
    monkeypatch.setattr(learner_process, *bound)
    bomb = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    answer = "def attention_scores(Q, K):\n" + "\n".join(f"    {line}" for line in bomb.split("\n"))
    result = judge.judge_cells(with_answer(honest_cells(judge), "attention_scores", answer))
    assert scores(result) == full_scores(judge) | {"attention_scores": 0}
    assert "started too many processes" in result.verdicts["attention_scores"].message
    result = judge.judge_cells([Cell("bomb", bomb), *honest_cells(judge)])
    assert scores(result) == full_scores(judge)
    assert "started too many processes" in " ".join(result.flags)


def test_cells_that_exit_or_patch_torch_are_flagged(judge):
    attacked = [Cell("exit", "import os\nos._exit(0)"), Cell("patch", "import torch\ntorch.allclose = lambda *a: True")]
    result = judge.judge_cells([*attacked, *honest_cells(judge)])
    assert scores(result) == full_scores(judge)
    flags = " ".join(result.flags)
    assert "Cell exit was left out" in flags and "torch.allclose" in flags
    assert "left out" in result.outputs["exit"][0]["evalue"]


def test_a_finished_block_of_the_same_lesson_is_refused_as_an_answer(judge, neighbors):
    sources = [
        "from helpers.blocks import attention_scores",
        "def attention_scores(Q, K):\n    from helpers.blocks import attention_scores as f\n    return f(Q, K)",
    ]
    for source in sources:
        result = judge.judge_cells(with_answer(honest_cells(judge), "attention_scores", source))
        assert result.verdicts["attention_scores"].mistake == "forbidden_call"
        assert scores(result) == full_scores(judge) | {"attention_scores": 0}


def test_a_finished_block_in_place_of_an_earlier_answer_costs_only_that_answer(judge):
    cells = with_answer(honest_cells(judge), "attention_scores", "from helpers.blocks import attention_scores")
    caller = "def fixed_self_scores(x, W_q, W_k):\n    return attention_scores(x @ W_q.T, x @ W_k.T)"
    result = judge.judge_cells(with_answer(cells, "fixed_self_scores", caller))
    assert scores(result) == full_scores(judge) | {"attention_scores": 0}
    assert result.verdicts["attention_scores"].mistake == "forbidden_call"


def test_a_table_of_the_visible_checks_outputs_does_not_pass(judge):
    key = judge.visible["attention_scores"]
    table = [(case.args[0].tolist(), seen.output.tolist()) for case, seen in zip(key.cases, key.expected, strict=True)]
    source = (
        f"table = {table!r}\n"
        "def attention_scores(Q, K):\n"
        "    for q, out in table:\n"
        "        if Q.tolist() == q:\n"
        "            return torch.tensor(out, dtype=Q.dtype)\n"
        "    return Q @ K.mT * 3\n"
    )
    verdict = judge.judge_cells(with_answer(honest_cells(judge), "attention_scores", source)).verdicts[
        "attention_scores"
    ]
    assert (verdict.points, verdict.mistake) == (0, "hard_coded")


def test_a_wrong_answer_stays_wrong_with_the_finished_earlier_answer(judge):
    cells = with_answer(honest_cells(judge), "attention_scores", "def attention_scores(Q, K):\n    return 2 * Q @ K.mT")
    wrong = "def fixed_self_scores(x, W_q, W_k):\n    return 3 * attention_scores(project(x, W_q), project(x, W_k))"
    result = judge.judge_cells(with_answer(cells, "fixed_self_scores", wrong))
    assert scores(result) == full_scores(judge) | {"attention_scores": 0, "fixed_self_scores": 0}


def test_cells_have_the_outputs_of_a_notebook(judge):
    cells = [
        Cell("text", "print('hello')\n2 + 3"),
        Cell("figure", "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"),
        Cell("warning", "import warnings\nwarnings.warn('careful')"),
        Cell("magic", "%time x = 1\n!echo from the shell"),
        Cell("error", "x = 1\nx / 0"),
    ]
    outputs = judge.judge_cells(cells).outputs
    assert outputs["text"][0] == {"output_type": "stream", "name": "stdout", "text": "hello\n"}
    assert outputs["text"][1]["data"] == {"text/plain": "5"}
    assert any("image/png" in output.get("data", {}) for output in outputs["figure"])
    assert outputs["warning"][0]["name"] == "stderr"
    assert "from the shell" in str(outputs["magic"])
    assert outputs["error"][0]["ename"] == "ZeroDivisionError"


def test_gradients_work_after_a_cell_has_used_them(judge):
    used = Cell("used", "w = torch.ones(300, 300, requires_grad=True)\n(w @ w).sum().backward()")
    cells = honest_cells(judge)
    assert scores(judge.judge_cells([cells[0], used, *cells[1:]])) == full_scores(judge)


def test_the_same_seed_draws_the_same_inputs(judge):
    again = reference.fresh_keys(judge.lesson, SEED)
    other = reference.fresh_keys(judge.lesson, SEED + 1)
    args = [keys["attention_scores"].cases[0].args[0] for keys in (judge.keys, again, other)]
    assert args[0].equal(args[1]) and not args[0].equal(args[2])


def test_a_wrong_reference_stops_the_grader(judge, monkeypatch):
    self_test(judge)  # a sound grader passes it
    broken = reference.blocks_source(judge.lesson).replace("return x @ W.T", "return 2 * x @ W.T")
    monkeypatch.setattr(reference, "blocks_source", lambda lesson: broken)
    with pytest.raises(GraderBroken, match=r"reference solution scored 0 of \d+ in exercise project"):
        self_test(judge)


def test_points_for_a_blank_submission_stop_the_grader(judge, monkeypatch):
    monkeypatch.setattr(
        judging, "not_answered", lambda key: dataclasses.replace(judging.refused(key, "not_answered", ""), points=1.0)
    )
    with pytest.raises(GraderBroken, match="a blank submission scored 1"):
        self_test(judge)


def test_a_leaking_sandbox_stops_the_grader():
    with Judge(LESSON, SEED, unsafe=True) as judge:
        self_test(judge)
        judge.unsafe = False
        with pytest.raises(GraderBroken, match="the sandbox leaks"):
            self_test(judge)
