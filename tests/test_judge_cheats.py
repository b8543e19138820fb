"""Cheats that only the learner's process can observe are made difficult, noticed and reported."""

import dataclasses
import textwrap

import pytest
import torch

from helpers.checking.forbidden import Watch, _names_of, banned_names
from helpers.checking.registry import METRICS, STUBS, Score
from helpers.checking.stubs import resolve
from helpers.checking.vocabulary import Stub
from helpers.grading.submission import Cell
from tests.sandboxes import between_honest_ones, honest_cells, with_answer

LESSON = "06_softmax"
TOP = "import sys, time, threading, functools, operator, torch\nimport torch.nn.functional as F\n"
# Each is the body of softmax(x, dim) and calls PyTorch's own softmax in some way.
CHEATS = {
    "plainly": "return F.softmax(x, dim=dim)",
    "in a thread of a thread": """
        box = []
        def inner():
            thread = threading.Thread(target=lambda: box.append(x.softmax(dim)))
            thread.start(); thread.join()
        thread = threading.Thread(target=inner)
        thread.start(); thread.join()
        return box[0]""",
    "in a pool of threads": """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(torch.softmax, x, dim).result()""",
    "in a thread below threading": """
        box = []
        early(lambda: box.append(torch.softmax(x, dim)), ())
        while not box: time.sleep(0.001)
        return box[0]""",
    "with torch's modes off": """
        from torch.utils._python_dispatch import _disable_current_modes
        with torch._C.DisableTorchFunction(), _disable_current_modes():
            return torch.softmax(x, dim)""",
    "with the modes popped": """
        from torch.overrides import _pop_mode, _push_mode
        from torch.utils._python_dispatch import _disable_current_modes
        mode = _pop_mode()
        with _disable_current_modes():
            y = x.softmax(dim)
        _push_mode(mode)
        return y""",
    "with the list emptied": """
        y = F.softmax(x, dim=dim)
        frame = sys._getframe()
        while frame is not None:
            for thing in list(frame.f_locals.values()):
                if type(thing).__name__ == "Watch":
                    thing.found.clear()
            frame = frame.f_back
        return y""",
    "with the watch blinded": """
        sys.modules["helpers.checking.forbidden"].Watch.note = lambda self, name: None
        return F.softmax(x, dim=dim)""",
    "in a fork": """
        import os, pickle
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.write(writing, pickle.dumps(torch.softmax(x, dim).detach()))
            os._exit(0)
        os.wait()
        return pickle.loads(os.read(reading, 1 << 16))""",
    "as a map to the simplex": """
        from torch.distributions import constraints, transform_to
        return transform_to(constraints.simplex)(x.movedim(dim, -1)).movedim(-1, dim)""",
    "when the output is read": """
        class Late(torch.Tensor):
            def detach(self):
                return F.softmax(x, dim=dim)
        return (x * 1).as_subclass(Late)""",
    "as the weights of a fused attention": """
        rows = x.movedim(dim, -1)
        n = rows.shape[-1]
        one = torch.eye(n, dtype=x.dtype)
        q = (rows.reshape(-1, 1, n) * n ** 0.5).expand(-1, n, n)
        none, k = torch.zeros(3 * n, dtype=x.dtype), one.expand(len(q), n, n)
        fused = torch._native_multi_head_attention
        weights = fused(q, k, k, n, 1, torch.cat([one] * 3), none, one, none[:n], None, True)[1]
        return weights[:, 0].reshape(rows.shape).movedim(-1, dim)""",
    "through exec": """
        space = dict(x=x, dim=dim, torch=torch)
        exec('y = torch.softmax(x, dim)', space)
        return space['y']""",
}


@pytest.fixture(scope="module")
def judge(judges):
    yield from between_honest_ones(judges, LESSON)


def with_softmax(judge, source):
    return with_answer(honest_cells(judge), "softmax", source)


def as_softmax(body):
    body = textwrap.indent(textwrap.dedent(body.strip("\n")), "    ")
    return f"from _thread import start_new_thread as early\n{TOP}def softmax(x, dim=-1):\n{body}"


@pytest.mark.full
@pytest.mark.parametrize("how", CHEATS)
def test_a_call_of_the_library_function_is_noticed_however_it_is_hidden(judge, how):
    verdict = judge.judge_cells(with_softmax(judge, as_softmax(CHEATS[how])), ["softmax"]).verdicts["softmax"]
    assert (verdict.points, verdict.mistake) == (0, "forbidden_call"), verdict


@pytest.fixture(scope="module")
def scaling(judges):
    yield from between_honest_ones(judges, "04_scaling")


FINISHED = "from helpers.translator.network import FINISHED_PARTS\npart = FINISHED_PARTS['scaled_scores']\n"
ROWS = (
    "def weights_jacobian(q, K, divisor):\n    weights = lambda q: torch.softmax(K @ q / divisor, -1)\n    rows = []\n"
)
EACH = "    for one in torch.eye(len({}), dtype=q.dtype):\n        "
# Calls that the source hides: of the course's finished blocks, and of derivatives that torch computes.
HIDDEN = {
    "a list": FINISHED + "box = [part]\ndef scaled_scores(Q, K):\n    return box[0](Q, K)",
    "a partial": FINISHED + "scaled_scores = functools.partial(part)",
    "an instance": FINISHED + "class Mine:\n    part = staticmethod(part)\n    def __call__(self, Q, K):\n"
    "        return self.part(Q, K)\nscaled_scores = Mine()",
    "tables": "box = [sys.modules]\ndef scaled_scores(Q, K):\n"
    "    return box[0]['helpers.translator.network'].FINISHED_PARTS['scaled_scores'](Q, K)",
    "forward mode": "box = [torch.func.jvp]\n" + ROWS + EACH.format("q")
    + "rows += [box[0](weights, (q,), (one,))[1]]\n    return torch.stack(rows, -1)",
    "dual numbers": ROWS + EACH.format("q") + "torch._C._enter_dual_level()\n        "
    "rows += [torch._unpack_dual(weights(torch._make_dual(q, one, level=0)), level=0)[1]]\n        "
    "torch._C._exit_dual_level(level=0)\n    return torch.stack(rows, -1)",
    "a node of the graph": ROWS + "    p = weights(q.detach().requires_grad_())\n" + EACH.format("K")
    + "rows += [p.grad_fn(one) @ K / divisor]\n    return torch.stack(rows)",
    "the engine": "box = [torch.autograd.variable.Variable._execution_engine]\n" + ROWS + EACH.format("K")
    + "x = q.detach().requires_grad_()\n        "
    "rows += box[0].run_backward((weights(x),), (one,), False, False, (x,), True, accumulate_grad=False)\n"
    "    return torch.stack(rows)",
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("how", HIDDEN)
def test_a_call_that_the_source_hides_is_noticed_when_it_runs(scaling, how):
    name = "weights_jacobian" if ROWS in HIDDEN[how] else "scaled_scores"
    until = [cell.id for cell in honest_cells(scaling)].index(f"check_{name}") + 1
    cells = with_answer(honest_cells(scaling)[:until], name, TOP + HIDDEN[how])
    found = scaling.judge_cells([Cell("used", "import helpers.translator"), *cells], [name])
    assert (found.verdicts[name].points, found.verdicts[name].mistake) == (0, "forbidden_call"), found.verdicts[name]


SCORES = "return Q @ K.mT / K.shape[-1] ** 0.5"
LOGGER = "import logging\nlogging.basicConfig(filename='log.txt', force=True)"
REMEMBERS = f"""import os
before = len(said) + os.path.exists("said")
with open("said", "a") as file:
    file.write("x")
said.append(1)
{SCORES} if before == 0 else None"""
# Code above a measured answer, the answer's body, and a part of the message: "" for full points.
MEASURED = {
    "writes a log": ("", f"with open('log.txt', 'a') as log:\n    log.write('x' * 10**5)\n{SCORES}", ""),
    "writes into an open file": (
        "log = open('log.txt', 'w')",
        f"print('x' * 10**5, file=log, flush=True)\n{SCORES}",
        "",
    ),
    "writes by a logger": (LOGGER, f"logging.warning('x' * 10**5)\n{SCORES}", ""),
    "writes by its path": ("from pathlib import Path", f"Path('log.txt').write_text('x')\n{SCORES}", ""),
    "remembers": ("said = []", REMEMBERS, ""),
    "reads again": (
        "",
        "with open('x.txt', 'w') as file:\n    file.write('x')\nreturn open('x.txt').read()",
        "'x.txt' (No file is kept that your code writes while its model is measured, such as x.txt.)",
    ),
    "writes by number": ("import os", "os.write(os.open('x', os.O_RDWR | os.O_CREAT), b'x')", "is measured.)"),
    "runs a model": ("model = nn.Identity()", SCORES.replace("Q", "model(Q)"), ""),
}


@pytest.fixture
def measured(scaling, monkeypatch):
    """measured(answer, files): lesson 4's judge treats `scaled_scores` as a trained model, measured in three cases."""

    def all_right(truths, outputs):
        right = all(torch.allclose(a, b) for a, b in zip(truths, outputs, strict=True))
        return Score(float(right), right, "")

    monkeypatch.setitem(METRICS, "all_right", all_right)
    key = scaling.keys["scaled_scores"]
    changes = {"cases": key.cases[:3], "expected": key.expected[:3], "mistakes": [], "metric": "all_right"}
    monkeypatch.setitem(scaling.keys, "scaled_scores", dataclasses.replace(key, **changes))
    return lambda answer, files=None: scaling.judge_cells(
        with_answer(honest_cells(scaling), "scaled_scores", answer), ["scaled_scores"], files
    )


@pytest.mark.parametrize("how", MEASURED)
def test_files_that_a_measured_answer_writes_are_not_kept(measured, how):
    above, body, message = MEASURED[how]
    found = measured(f"{above}\ndef scaled_scores(Q, K):\n{textwrap.indent(body, '    ')}")
    verdict = found.verdicts["scaled_scores"]
    assert (verdict.passed, message in verdict.message) == (not message, True), verdict
    flagged = "scaled_scores answered without running a model." in found.flags
    assert message or flagged == (how != "runs a model"), found.flags


def test_a_measured_answer_may_come_from_the_learners_own_module(measured):
    own = {"mine.py": f"def scaled_scores(Q, K):\n    {SCORES}\n".encode()}
    assert measured("from mine import scaled_scores", own).verdicts["scaled_scores"].passed


def test_an_error_that_only_occurs_in_the_observed_call_is_flagged(judge):
    shy = as_softmax("""
        if sys.getprofile() is not None:
            raise RuntimeError
        e = (x - x.amax(dim, keepdim=True)).exp()
        return e / e.sum(dim, keepdim=True)""")
    found = judge.judge_cells(with_softmax(judge, shy), ["softmax"])
    assert "softmax raised RuntimeError in the observed call, and in no other." in found.flags


def test_batch_norm_is_recognized_under_all_its_names_in_torch():
    x, one, none = torch.ones(1, 4, 6), torch.ones(4), torch.zeros(4)
    for call in (torch.ops.aten._batch_norm_with_update, torch.ops.aten._batch_norm_no_update):
        with Watch(("batch_norm",)) as watch:
            call(x, one, none, none.clone(), one.clone(), 0.1, 1e-5)
        assert watch.found


def test_attention_is_recognized_under_all_its_names_in_torch():
    x = torch.ones(1, 1, 2, 8)
    for call in (torch._scaled_dot_product_attention_math, torch.ops.aten._scaled_dot_product_flash_attention_for_cpu):
        with Watch(("attention",)) as watch:
            call(x, x, x)
        assert watch.found
    assert _names_of("flex_attention") & banned_names(("softmax",))


HONEST = {
    "loops": """
        rows = [torch.exp(row - row.max()) for row in x.movedim(dim, -1).reshape(-1, x.shape[dim])]
        rows = torch.stack([row / row.sum() for row in rows])
        return rows.reshape(x.movedim(dim, -1).shape).movedim(-1, dim)""",
    "functools": """
        e = functools.reduce(lambda a, f: f(a), [torch.exp], x - x.amax(dim, keepdim=True))
        return e / e.sum(dim, keepdim=True)""",
    "a thread of one's own": """
        box = []
        thread = threading.Thread(target=lambda: box.append((x - x.amax(dim, keepdim=True)).exp()))
        thread.start(); thread.join()
        return box[0] / box[0].sum(dim, keepdim=True)""",
    "a helper called softmax": """
        def softmax(y):
            e = (y - y.amax(dim, keepdim=True)).exp()
            return e / e.sum(dim, keepdim=True)
        return softmax(x)""",
}


@pytest.mark.parametrize("how", HONEST)
def test_honest_answers_are_not_mistaken_for_cheats(judge, how):
    found = judge.judge_cells(with_softmax(judge, as_softmax(HONEST[how])), ["softmax"])
    assert found.verdicts["softmax"].passed, found.verdicts["softmax"]


BLIND = """
import sys
observe = sys.modules["helpers.checking.observe"]
observe._changed = lambda *a, **k: []
observe._differs = lambda *a, **k: False
"""


def test_changed_inputs_are_also_noticed_outside_the_learners_process(judge):
    answer = (
        TOP + "def softmax(x, dim=-1):\n    e = (x - x.amax(dim, keepdim=True)).exp()\n"
        "    if not x.requires_grad:\n        x.zero_()\n    return e / e.sum(dim, keepdim=True)"
    )
    open_eyes = judge.judge_cells(with_softmax(judge, answer), ["softmax"]).verdicts["softmax"]
    found = judge.judge_cells([Cell("blind", BLIND), *with_softmax(judge, answer)], ["softmax"])
    assert open_eyes.mistake == found.verdicts["softmax"].mistake == "input_changed"
    assert found.verdicts["softmax"].points == open_eyes.points
    assert "helpers.checking.observe._changed" in " ".join(found.flags)


REACHES = {
    "getattr": "def softmax(x, dim=-1):\n    return getattr(torch, 'softmax')(x, dim)",
    "getattr of a made-up name": "def softmax(x, dim=-1):\n    return getattr(torch, p)(x, dim)\np = 'soft' + 'max'",
    "exec": "exec('import torch\\ndef softmax(x, dim=-1): return torch.softmax(x, dim)')",
    "attrgetter": "import operator\ndef softmax(x, dim=-1):\n    return operator.methodcaller('softmax', dim)(x)",
    "dictionary": "def softmax(x, dim=-1):\n    return vars(torch)['softmax'](x, dim)",
}


@pytest.mark.full
@pytest.mark.parametrize("how", REACHES)
def test_forbidden_names_reached_by_a_detour_are_flagged(judge, how):
    found = judge.judge_cells(with_softmax(judge, TOP + REACHES[how]), ["softmax"])
    assert "softmax reaches" in " ".join(found.flags), found.flags
    assert not found.verdicts["softmax"].passed


BLINDED = (
    TOP
    + """def softmax(x, dim=-1):
    mode = torch.overrides._get_current_function_mode()
    if mode is not None:
        mode.watch.names.clear()
    if threading._profile_hook is not None:
        threading._profile_hook.__self__.names.clear()
    return F.softmax(x, dim)"""
)


def test_a_forbidden_function_that_is_named_but_not_seen_is_flagged(judge):
    found = judge.judge_cells(with_softmax(judge, BLINDED), ["softmax"])
    assert found.verdicts["softmax"].passed
    assert found.flags == ["softmax contains F.softmax, which is forbidden there, but no call of it was seen."]


PEEKS = """
def leaks_future(f, x):
    names = repr(f)
    for cell in f.__closure__ or ():
        names += repr(cell.cell_contents)
    return "causal" not in names
"""


@pytest.mark.full
def test_an_answer_that_inspects_its_function_arguments_is_flagged(judges):
    judge = judges("05_masking")
    found = judge.judge_cells(with_answer(honest_cells(judge), "leaks_future", PEEKS), ["leaks_future"])
    flag = "leaks_future inspects the functions that it is called with (__closure__, cell_contents)."
    assert found.flags == [flag]


def test_functions_passed_by_cases_do_not_reveal_their_names():
    args = (torch.eye(2), 3)
    given = resolve(Stub("rows_of_a_text", args))
    assert "rows" not in repr(given) + given.__name__ + given.__qualname__ + " ".join(given.__code__.co_names)
    x = torch.ones(1, 2, 3)
    assert torch.equal(given(x), STUBS["rows_of_a_text"](*args)(x))
