"""Every block and every part of the translator computes on the device of its inputs, tested without a GPU.

The imitated device of tests/elsewhere.py detects tensors that are created on the CPU. It does not round like a GPU.
"""

import inspect
import re
import sys

import pytest
import torch
from torch.utils._pytree import tree_leaves

from helpers.authoring.blocks import load_blocks
from helpers.authoring.text import read_lesson
from helpers.checking.key import load_keys
from helpers.checking.vocabulary import Stub
from helpers.course import course
from helpers.lessons.language_model import stand_ins as writer
from helpers.lessons.language_model import watch
from helpers.lessons.real_model import stand_ins as real
from helpers.translator import FINISHED_PARTS
from helpers.widgets import checkpoint
from tests.elsewhere import DEVICE, Elsewhere, Factories, Literals, elsewhere, moved, tensors_in

BUILT = [x.name for x in course().lessons if (course().root / "helpers" / "answer_keys" / f"{x.name}.npz").is_file()]


def device_problem(answer, case) -> str | None:
    """Return what is wrong with the devices of an answer's output on a case, or None."""
    args, kwargs = case.args, case.kwargs
    with elsewhere():
        if case.via == "module":
            init, state, args, kwargs = args
            with torch.random.fork_rng(devices=[]):
                built = answer(*init)
            built.load_state_dict(dict(state), strict=False)
            floats = {value.dtype for value in state.values() if value.is_floating_point()}
            answer = moved(built.to(floats.pop()) if floats else built).eval()
        args, kwargs = moved((args, kwargs))
        if not any(isinstance(item, Elsewhere) for item in tensors_in((args, kwargs))):
            return None
        try:
            output = answer(*args, **kwargs)
        except RuntimeError as error:
            if "device" in str(error):
                return str(error)
            raise
    left = [tuple(item.shape) for item in tensors_in(output) if not isinstance(item, Elsewhere)]
    return f"tensors {left} of its output are on the processor" if left else None


def device_problems(lesson: str, answers) -> tuple[list[str], int]:
    """Return a line for each exercise whose answer leaves the device, and the number of calls."""
    found, calls = {}, 0
    for key in load_keys(lesson).values():
        answer = answers(key.name)
        if answer is None or key.kind == "quiz":
            continue
        for case in key.cases:
            given = any(isinstance(item, Stub) for item in tree_leaves((case.args, case.kwargs)))
            # The tensors of a stub are on the CPU.
            if case.raises is None and case.via in ("", None, "module") and not given:
                calls += 1
                wrong = device_problem(answer, case)
                if wrong:
                    found.setdefault(key.name, f"{key.name}: {wrong}")
    return list(found.values()), calls


@pytest.mark.parametrize("lesson", BUILT)
def test_blocks_stay_on_the_device_of_their_inputs(lesson):
    blocks = load_blocks(course(), course().lesson(lesson))
    found, calls = device_problems(lesson, lambda name: getattr(blocks, name, None))
    assert calls and not found, "\n".join(found)


@pytest.mark.parametrize("lesson", BUILT)
def test_parts_of_the_translator_stay_on_the_device_of_their_inputs(lesson):
    """Only functions, of which its modules consist. A part need not accept every input of its exercise."""
    parts = FINISHED_PARTS | vars(writer) | vars(real)
    functions = {name: lenient(part) for name, part in parts.items() if inspect.isfunction(part)}
    found, _ = device_problems(lesson, functions.get)
    assert not found, "\n".join(found)


def test_cached_attention_stays_on_the_device_of_its_inputs():
    """Its cases consist of several calls, which the tests above leave out."""
    q = moved(torch.randn(1, 2, 3, 4))
    for attend in (FINISHED_PARTS["cached_attention"], load_blocks(course(), course().lesson("10")).cached_attention):
        with elsewhere():
            first, cache = attend(q, q, q, None)
            second, cache = attend(q, q, q, cache)
        assert all(isinstance(item, Elsewhere) for item in (first, second, *cache))


def test_only_lesson_12_uses_a_gpu():
    """They run on the CPU, also on a computer with a GPU."""
    elsewhere = {"checking", "grading", "running"}  # these handle the devices of answers
    helpers = (path for path in course().root.glob("helpers/**/*.py") if not elsewhere & {*path.parts})
    sources = [*helpers, *course().root.glob("solutions/*/[0-9]*.py")]
    asking = [path.name for path in sources if re.search(r"cuda|\.to\(.?mps|default_device", path.read_text("utf-8"))]
    assert sorted(asking) == ["full_size.py", "watch.py"]


def lenient(part):
    def call(*args, **kwargs):
        try:
            return part(*args, **kwargs)
        except (IndexError, TypeError, ValueError):
            return None

    return call


def made_here(x):
    return x + torch.arange(x.shape[-1])


def made_there(x):
    return x + torch.arange(x.shape[-1], device=x.device)


def test_the_imitated_device_detects_tensors_from_the_cpu():
    x = Elsewhere(torch.ones(2, 3))
    with elsewhere():
        with pytest.raises(RuntimeError, match="mixes two devices"):
            made_here(x)
        assert made_there(x).here.tolist() == [[1, 2, 3], [1, 2, 3]]
        assert x.sum().item() == 6 and x[0].tolist() == [1, 1, 1] and bool((x > 0).all())


@pytest.mark.filterwarnings("ignore:for .* copying from a non-meta parameter")
def test_stored_weights_can_move_between_devices(tmp_path):
    """Weights trained on a GPU are loaded on the CPU and the reverse, while each model stays on its device."""
    there, back = moved(torch.nn.Linear(3, 2)), torch.nn.Linear(3, 2)
    first, path = torch.nn.Linear(3, 2), tmp_path / "numbers.safetensors"
    with elsewhere():
        checkpoint.write(first, path)
        checkpoint.load_into(there, path)
        assert isinstance(there.weight, Elsewhere) and there.weight.tolist() == first.weight.tolist()
        checkpoint.write(there, path)
        checkpoint.load_into(back, path)
    assert not isinstance(back.weight, Elsewhere) and back.bias.tolist() == first.bias.tolist()


@pytest.fixture
def gpu(monkeypatch):
    """Pretend that there is a GPU, which is DEVICE."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(watch, "GPU", DEVICE)


def test_lesson_12_uses_a_gpu_only_if_the_model_runs_on_it(gpu, monkeypatch, capsys):
    blocks = load_blocks(course(), course().lesson("12"))
    source = read_lesson(course(), course().lesson("12")).answers["GPT"]
    names = dict(vars(blocks))
    exec(source.replace(".to(ids.device)", ""), names)  # right on the CPU
    with_a_mask_made_here = names["GPT"]
    with Factories(), Literals():
        assert watch.best_device(blocks.GPT) == DEVICE
        assert watch.best_device(writer.GPT) == DEVICE
        assert capsys.readouterr().out == ""
        assert watch.best_device(with_a_mask_made_here).type == "cpu"
        assert "put that tensor on ids.device" in capsys.readouterr().out
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert watch.best_device(with_a_mask_made_here).type == "cpu" and capsys.readouterr().out == ""


class Here(torch.Generator):
    """A generator that draws on the CPU, whatever device is requested."""

    def __new__(cls, device="cpu"):
        return super().__new__(cls)


@pytest.mark.full
def test_lesson_12_trains_and_writes_on_another_device(gpu, monkeypatch, capsys):
    """It runs the solved cells in quick mode, without checks, whose keys are for the CPU, and without slow calls."""
    passed = {"get_batch", "next_token_loss", "GPT", "generate"}
    monkeypatch.setattr(sys.modules["helpers.or_finished"], "PASSED", passed)
    monkeypatch.setenv("COURSE_QUICK", "1")
    monkeypatch.setattr(torch, "Generator", Here)
    names, slow = {"__name__": "__main__"}, ("check(", "explore.writing(", "figures.two_losses(", "progress(")
    with Factories(), Literals():
        for cell in read_lesson(course(), course().lesson("12")).notebook.cells:
            left_out = cell["id"] == "setup" or cell.source.startswith(slow)
            if cell.cell_type == "code" and not left_out:
                exec(cell.source, names)
    assert f"training on {DEVICE}" in capsys.readouterr().out  # it says where it trains
    for model in (names["model"], names["writer"]):
        assert all(isinstance(part, Elsewhere) for part in model.parameters())
