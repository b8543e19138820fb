"""In the grader, too, a missing GPU, switches that were left on, and slow imports cost no points."""

import pytest

from helpers.grading.submission import Cell
from tests.conftest import ONE

pytestmark = pytest.mark.xdist_group(ONE)  # where its judge is
IMPORTS = "import math\nimport torch\nfrom torch import nn"
RIGHT = "def scaled_scores(Q, K):\n    return Q @ K.mT / Q.size(-1) ** 0.5"


@pytest.fixture(scope="module")
def judge(judges):
    return judges(ONE)


def judged(judge, *sources):
    cells = [Cell("imports", IMPORTS), *(Cell(f"cell-{n}", source) for n, source in enumerate(sources))]
    cells.append(Cell("check_scaled_scores", "", "check", "scaled_scores"))
    return judge.judge_cells(cells, ["scaled_scores"])


def some(sources: dict[str, str]) -> list:
    """The sources as parameters with their names as ids. Every second one runs only in `make test-all`."""
    return [
        pytest.param(source, id=name, marks=pytest.mark.full if number % 2 else ())
        for number, (name, source) in enumerate(sources.items())
    ]


LEFT_ON = {
    "default device": "torch.set_default_device('meta')",
    "a GPU as default device": "torch.set_default_device('cuda')",
    "products that are less exact": "torch.set_float32_matmul_precision('high')\n"
    "torch.backends.cuda.matmul.allow_tf32 = True\ntorch.backends.mkldnn.matmul.fp32_precision = 'bf16'",
    "default dtype": "torch.set_default_dtype(torch.float64)",
    "autocast": "torch.autocast('cpu', dtype=torch.bfloat16).__enter__()",
    "no grad": "torch.set_grad_enabled(False)",
    "inference": "torch.inference_mode().__enter__()",
    "deterministic": "torch.use_deterministic_algorithms(True)",
    "print options": "torch.set_printoptions(precision=1, threshold=2)",
}


@pytest.mark.parametrize("source", some(LEFT_ON))
def test_a_switch_that_was_left_on_costs_no_points_in_the_grader(judge, source):
    verdict = judged(judge, source, RIGHT).verdicts["scaled_scores"]
    assert verdict.passed, verdict.message


ON_A_GPU = {
    "in the answer": "def scaled_scores(Q, K):\n    device = 'cuda'\n    Q, K = Q.to(device), K.to(device)\n"
    "    return (Q @ K.mT / Q.size(-1) ** 0.5).cpu()",
    "by its method": "def scaled_scores(Q, K):\n    return (Q.cuda() @ K.cuda().mT / Q.size(-1) ** 0.5).to(Q.device)",
    "above the answer": "device = torch.device('cuda:0')\nscale = torch.ones(1, device=device)\n"
    "def scaled_scores(Q, K):\n    return (Q.to(device) @ K.to(device).mT * scale.to(Q) / Q.size(-1) ** 0.5).cpu()",
    "Apple's": "device = 'mps'\ndef scaled_scores(Q, K):\n"
    "    return (Q.to(device) @ K.to(device).mT / Q.size(-1) ** 0.5).to('cpu')",
    "Intel's": "def scaled_scores(Q, K):\n    return (Q.to('xpu') @ K.to('xpu').mT / Q.size(-1) ** 0.5).cpu()",
    "by the calls of its module": "torch.cuda.synchronize()\ntimer = torch.cuda.Event(enable_timing=True)\n"
    "print(f'{timer.elapsed_time(timer):.1f}', torch.cuda.get_device_properties(0).total_memory / 1e9)\n"
    "major, minor = torch.cuda.get_device_capability()\nwith torch.cuda.stream(torch.cuda.Stream()):\n    pass\n"
    "def scaled_scores(Q, K):\n    torch.cuda.synchronize()\n    torch.cuda.reset_peak_memory_stats()\n"
    "    return Q @ K.mT / Q.size(-1) ** 0.5",
    "in a generator": "noise = torch.randn(3, generator=torch.Generator('cuda').manual_seed(0), device='cuda')\n"
    "assert isinstance(torch.default_generator, torch.Generator)\n" + RIGHT,
    "in a module": "layer = nn.Linear(2, 2, device='cuda').to('cuda')\nlayer(torch.ones(2).cuda())\n" + RIGHT,
}


@pytest.mark.parametrize("source", some(ON_A_GPU))
def test_a_missing_device_is_replaced_by_the_cpu_and_flagged(judge, source):
    graded = judged(judge, source)
    assert graded.verdicts["scaled_scores"].passed, graded.verdicts["scaled_scores"].message
    assert [flag for flag in graded.flags if "which is not available, so it ran on the CPU" in flag]
    assert not graded.errors


def test_an_error_of_torchs_names_the_learners_line_and_nothing_of_the_graders(judge):
    asks = "device = torch.device('cuda:7')\ntorch.ones(2, 3, device=device) @ torch.ones(2, 3)"
    chained = "try:\n    torch.ones(2, 3) @ torch.ones(2, 3)\nexcept RuntimeError:\n    raise ValueError"
    graded = judged(judge, asks, "def scaled_scores(Q, K):\n    return Q @ K", chained)
    message = graded.verdicts["scaled_scores"].message
    assert "shapes cannot be multiplied (5x6 and 7x6)\nin line 2: return Q @ K\n" in message
    for cell in ("cell-0", "cell-2"):
        (shown,) = graded.outputs[cell]
        assert "line 2" in str(shown["traceback"]) and "devices.py" not in str(shown["traceback"])


def test_seeding_a_missing_device_is_not_flagged_and_using_it_is(judge):
    seeds = "torch.manual_seed(3)\ntorch.cuda.manual_seed_all(3)\ntorch.backends.cudnn.deterministic = True\n"
    seeds += "with torch.random.fork_rng():\n    torch.rand(2)"
    graded = judged(judge, seeds, RIGHT)
    assert graded.flags == [] and graded.errors == {}
    asks = "def fork_rng():  # as torch 2.11's\n    return torch.device('cuda').type\nassert fork_rng() == 'cuda'"
    assert judged(judge, asks, RIGHT).errors == {}
    (flag,) = judged(judge, "torch.set_default_device('mps')\ntorch.ones(1)", RIGHT).flags
    assert "asks for the device mps, which" in flag


@pytest.mark.parametrize("test", ["torch.cuda.is_available()", "torch.backends.mps.is_available()"])
def test_code_that_first_asks_whether_a_device_exists_is_not_flagged(judge, test):
    kind = "mps" if "mps" in test else "cuda"
    graded = judged(judge, f'device = "{kind}" if {test} else "cpu"\n' + RIGHT)
    assert graded.verdicts["scaled_scores"].passed and graded.flags == []


def test_an_answer_that_imports_torchs_compiler_stays_within_the_time_limit(judge):
    answer = (
        "from torch.utils.flop_counter import FlopCounterMode\ndef scaled_scores(Q, K):\n"
        "    with FlopCounterMode(display=False):\n        found = Q @ K.mT\n"
        "    torch.func.jacrev(torch.exp)(torch.ones(2))\n    return found / Q.size(-1) ** 0.5"
    )
    found = judged(judge, answer, "import sys\nassert 'torch._dynamo' in sys.modules")
    assert found.verdicts["scaled_scores"].passed and not found.errors and found.flags == []


def test_an_instance_in_place_of_its_class_is_named_in_the_message(judge):
    source = "class scaled_scores(nn.Module):\n    pass\nscaled_scores = scaled_scores()"
    verdict = judged(judge, source).verdicts["scaled_scores"]
    assert "an object that scaled_scores made" in verdict.message and verdict.points == 0
