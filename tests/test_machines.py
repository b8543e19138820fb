"""A right answer passes on a slow computer, with slow imports, and whatever a notebook has switched on."""

import contextlib
import importlib
import random
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest
import torch
from torch._tensor_str import PRINT_OPTS

from helpers import at_work
from helpers.checking.key import load_keys
from helpers.checking.messages import decide
from helpers.checking.observe import Facts, observe, observe_all
from helpers.checking.vocabulary import Case
from helpers.running.global_switches import switches_set
from helpers.running.time_limit import TooSlow, seconds_spent, time_limit
from tests.conftest import ROOT

SLOW = """
import importlib.abc, importlib.machinery, sys, time

class Slow(importlib.abc.MetaPathFinder):
    '''The first import of each of these modules computes for a while and then waits for a while.'''
    def find_spec(self, name, path=None, target=None):
        if name in NAMES:
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            run = spec.loader.exec_module
            def exec_module(module):
                end = time.process_time() + SECONDS
                while time.process_time() < end: pass
                time.sleep(SECONDS)
                run(module)
            spec.loader.exec_module = exec_module
            return spec

NAMES, SECONDS = ("torch._dynamo", "sympy", "colorsys", "torch.utils.flop_counter"), 1.0
sys.meta_path.insert(0, Slow())
"""


def answers(lesson: str) -> dict:
    """The finished blocks of a lesson, as if a learner had written them."""
    path = ROOT / "helpers" / "blocks" / f"{lesson}.py"
    names = {"__name__": "__main__"}
    exec(compile(path.read_text(encoding="utf-8"), "answers.py", "exec"), names)
    return names


def run(program: str) -> subprocess.CompletedProcess:
    source = textwrap.dedent(program)
    return subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.full
def test_imports_cost_an_answer_no_time_and_are_never_interrupted():
    result = run(
        SLOW
        + """
import torch
from helpers.checking.observe import Facts, observe_all
from helpers.checking.vocabulary import Case

def lazily(x):
    import colorsys
    from torch.utils.flop_counter import FlopCounterMode
    with FlopCounterMode(display=False):
        (x @ x.T).sum()
    return torch.func.jacrev(torch.exp)(x).sum((2, 3)) * 0 + 2 * x

(seen,) = observe_all(lazily, [Case((torch.ones(2, 3),))], Facts("lazily", "04_scaling", (), 0.5))
import sympy, colorsys, torch._dynamo
assert seen.error is None, seen.error
assert seen.output.equal(torch.full((2, 3), 2.0)) and sympy.printing and colorsys.rgb_to_hsv
"""
    )
    assert result.returncode == 0, result.stderr[-2000:]


@pytest.mark.full
def test_a_check_that_counts_products_does_not_time_out_because_of_an_import():
    result = run(
        SLOW
        + """
from helpers.checking.key import load_keys
from helpers.checking.messages import decide
from helpers.checking.observe import observe_all
import dataclasses
key = load_keys("10_decoder_block")["cached_attention"]
key = dataclasses.replace(key, facts=dataclasses.replace(key.facts, time_limit=1.0))
from tests.test_machines import answers
answer = answers("10_decoder_block")["cached_attention"]
verdict = decide(key, observe_all(answer, key.cases, key.facts))
assert verdict.passed, verdict.message
"""
    )
    assert result.returncode == 0, result.stderr[-2000:]


def test_an_endless_loop_in_a_learners_own_module_is_interrupted(tmp_path, monkeypatch):
    (tmp_path / "endless_module.py").write_text("while True: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(TooSlow), time_limit(0.3):
        importlib.import_module("endless_module")


def test_the_time_limit_is_suspended_while_a_library_is_imported(tmp_path, monkeypatch):
    wait = "while time.process_time() < end: pass\ntime.sleep(0.5)\n"
    (tmp_path / "slow_library.py").write_text(f"import time\nend = time.process_time() + 0.5\n{wait}")
    monkeypatch.setattr("helpers.running.time_limit.LIBRARIES", (str(tmp_path),))
    monkeypatch.syspath_prepend(str(tmp_path))
    with time_limit(0.3):
        importlib.import_module("slow_library")


def test_computing_and_sleeping_count_toward_the_time_limit():
    for wait in (lambda: time.sleep(5), lambda: [0 for _ in iter(int, 1)]):
        started = time.monotonic()
        with pytest.raises(TooSlow), time_limit(0.3):
            wait()
        assert time.monotonic() - started < 4


@pytest.mark.full
def test_waiting_for_the_processor_does_not_count_toward_the_time_limit():
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(8)]
    try:
        with time_limit(1.0):
            end = time.process_time() + 0.6
            while time.process_time() < end:
                pass
    finally:
        for other in others:
            other.kill()


def test_an_answer_that_catches_the_timeout_is_interrupted_again():
    def stubborn():
        end, stopped = time.process_time() + 5, 0
        for _ in range(2):
            try:
                while time.process_time() < end:
                    pass
            except BaseException:
                stopped += 1
        return stopped

    with time_limit(0.2):
        assert stubborn() == 2


def test_all_calls_of_a_check_share_a_time_limit():
    def slow(x):
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass
        return x

    before = seconds_spent()
    observations = observe_all(slow, [Case((torch.ones(2),))] * 20, Facts("slow", "04_scaling", (), 0.4))
    assert observations[0].error is None and observations[-1].error.message == "not tried"
    assert any(one.error and one.error.message.endswith("0.8 seconds in all") for one in observations)
    assert seconds_spent() - before < 3


def test_an_answer_that_was_slow_only_the_first_time_passes(monkeypatch):
    """Its first call loads something that the time limit does not recognize as an import."""

    def answer(x):
        if "wave" not in sys.modules:
            import wave  # noqa: F401

            end = time.process_time() + 2
            while time.process_time() < end:
                pass
        return x

    monkeypatch.delitem(sys.modules, "wave", raising=False)
    observations = observe_all(answer, [Case((torch.ones(2),))], Facts("slow", "04_scaling", (), 0.5))
    assert observations[0].error is None and len(observations) == 1


def less_exact_products():
    """Many notebooks set this for a GPU in both ways at once, and then torch refuses to say which value is set."""
    torch.set_float32_matmul_precision("medium")
    torch.backends.cuda.matmul.allow_tf32 = True


AUTOCAST, META = torch.autocast("cpu", dtype=torch.bfloat16), torch.device("meta")
LEFT = {  # name -> (switch on, switch off)
    "default device": (lambda: torch.set_default_device("meta"), lambda: torch.set_default_device(None)),
    "a device that is not here": (lambda: torch.set_default_device("cuda:0"), lambda: torch.set_default_device(None)),
    "with torch.device": (META.__enter__, lambda: META.__exit__(None, None, None)),
    "autocast": (AUTOCAST.__enter__, lambda: AUTOCAST.__exit__(None, None, None)),
    "products that are less exact": (less_exact_products, lambda: torch.set_float32_matmul_precision("highest")),
    "default dtype": (lambda: torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(torch.float32)),
    "no grad": (lambda: torch.set_grad_enabled(False), lambda: torch.set_grad_enabled(True)),
    "deterministic": (
        lambda: torch.use_deterministic_algorithms(True),
        lambda: torch.use_deterministic_algorithms(False),
    ),
    "anomalies": (lambda: torch.autograd.set_detect_anomaly(True), lambda: torch.autograd.set_detect_anomaly(False)),
    "print options": (
        lambda: torch.set_printoptions(precision=1, threshold=3, sci_mode=True),
        lambda: torch.set_printoptions(profile="default"),
    ),
    "seeds": (lambda: (torch.manual_seed(3), np.random.seed(3)), torch.seed),
    "threads": (lambda: torch.set_num_threads(3), lambda: torch.set_num_threads(1)),
    "warnings": (lambda: warnings.simplefilter("error"), warnings.resetwarnings),
}


@contextlib.contextmanager
def left_on_by(name):
    on, off = LEFT[name]
    on()
    try:
        yield
    finally:
        off()


EXERCISES = [("04_scaling", "scaled_scores"), ("05_masking", "causal_mask"), ("09_encoder_block", "EncoderBlock")]


@pytest.mark.parametrize("name", LEFT)
@pytest.mark.parametrize(("lesson", "exercise"), EXERCISES)
def test_a_switch_that_a_notebook_left_on_costs_no_points(lesson, exercise, name):
    key, answer = load_keys(lesson)[exercise], answers(lesson)[exercise]
    with left_on_by(name), switches_set():
        verdict = decide(key, observe_all(answer, key.cases, key.facts))
    assert verdict.passed, verdict.message


def left_on():
    """The state of all global switches, as a notebook sees it."""
    switches = torch.get_default_dtype(), torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    switches += torch.is_anomaly_enabled(), torch.are_deterministic_algorithms_enabled()
    switches += torch.get_num_threads(), warnings.filters[:]
    generators = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    return str(torch.get_default_device()), *switches, vars(PRINT_OPTS).copy(), *generators


def scaled_scores(Q, K):
    return Q @ K.mT / Q.shape[-1] ** 0.5


# The same code resets the switches for a check, so `make test` tries only these here.
SHOWN = {"default device", "default dtype", "seeds", "warnings"}


@pytest.mark.parametrize("name", [pytest.param(x, marks=() if x in SHOWN else pytest.mark.full) for x in LEFT])
def test_at_work_shows_the_same_whatever_a_notebook_left_on(name, few_sentences, capsys):
    at_work(scaled_scores)
    expected = capsys.readouterr().out
    with warnings.catch_warnings(), left_on_by(name):
        before = left_on()
        at_work(scaled_scores)
        after = left_on()
    assert capsys.readouterr().out == expected and "stopped" not in expected and "could not" not in expected
    assert after == before


def test_the_precision_of_products_is_restored_afterwards():
    with left_on_by("products that are less exact"):
        with switches_set():
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.backends.cuda.matmul.allow_tf32 and torch.backends.mkldnn.matmul.fp32_precision == "bf16"


@pytest.mark.parametrize("name", ["default dtype", "no grad", "anomalies", "deterministic"])
def test_switches_have_their_defaults_while_an_answer_is_judged(name):
    def look(x):
        seen.append((torch.get_default_dtype(), torch.is_grad_enabled(), torch.is_anomaly_enabled()))
        return x * torch.are_deterministic_algorithms_enabled()

    seen = []
    with left_on_by(name):
        assert not observe(look, Case((torch.ones(2),)), Facts("look", "04_scaling")).output.any()
    assert seen == [(torch.float32, True, False)]


def test_a_compiled_answer_is_judged_without_compiling():
    compiled = []

    def backend(graph, _inputs):
        compiled.append(graph)
        return graph.forward

    answer = torch.compile(lambda x: x + 1, backend=backend)
    (seen,) = observe_all(answer, [Case((torch.ones(2),))], Facts("answer", "04_scaling"))
    assert seen.error is None and compiled == []


def test_random_numbers_of_numpy_and_python_are_the_same_in_each_observation():
    def answer(x):
        return x + random.random() + float(np.random.rand())

    one, two = (observe(answer, Case((torch.ones(2),)), Facts("answer", "04_scaling")) for _ in range(2))
    assert one.output.equal(two.output)


def test_a_kernel_whose_folder_was_deleted_still_gets_a_verdict(tmp_path, monkeypatch, capsys):
    from helpers import check

    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("COURSE_PROGRESS_FILE", f"{home}/progress.json")
    monkeypatch.chdir(home)
    home.rmdir()
    check(scaled_scores)
    output = capsys.readouterr().out
    assert "✓ scaled_scores" in output and "could not be noted" in output


@pytest.mark.parametrize("bound", [True, False], ids=["named", "in passing"])
def test_an_instance_in_place_of_its_class_is_named(bound, capsys):
    from helpers import check
    from helpers.errors import CheckFailed

    class FeedForward(torch.nn.Linear):
        pass

    instance = FeedForward(4, 4)
    with pytest.raises(CheckFailed):
        check(FeedForward=instance) if bound else check(instance)
    assert "an object that FeedForward made" in capsys.readouterr().out
