"""What computes stays on the device of its inputs: every block and every part of the machine, without a GPU.

The device is tests/elsewhere.py's. It shows where a tensor is made on the processor, not how a GPU rounds.
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


def kept(answer, case) -> str | None:
    """What is wrong with the device of the answer's output on a case; None where nothing is, or nothing can be."""
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


def told(lesson: str, answers) -> tuple[list[str], int]:
    """What leaves the device, a line for each exercise, and how many calls were made."""
    found, calls = {}, 0
    for key in load_keys(lesson).values():
        answer = answers(key.name)
        if answer is None or key.kind == "quiz":
            continue
        for case in key.cases:
            given = any(isinstance(item, Stub) for item in tree_leaves((case.args, case.kwargs)))
            # A fixture's own tensors are on the processor.
            if case.raises is None and case.via in ("", None, "module") and not given:
                calls += 1
                wrong = kept(answer, case)
                if wrong:
                    found.setdefault(key.name, f"{key.name}: {wrong}")
    return list(found.values()), calls


@pytest.mark.parametrize("lesson", BUILT)
def test_blocks_stay_on_the_device_of_their_inputs(lesson):
    blocks = load_blocks(course(), course().lesson(lesson))
    found, calls = told(lesson, lambda name: getattr(blocks, name, None))
    assert calls and not found, "\n".join(found)


@pytest.mark.parametrize("lesson", BUILT)
def test_parts_of_the_machine_stay_on_the_device_of_their_inputs(lesson):
    """As functions; its modules are made of them. A part need not take every input that its exercise does."""
    parts = FINISHED_PARTS | vars(writer) | vars(real)
    found, _ = told(lesson, lambda name: lenient(parts[name]) if inspect.isfunction(parts.get(name)) else None)
    assert not found, "\n".join(found)


def test_the_cached_step_stays_there():
    """Its cases come in pieces, which the tests above leave out."""
    q = moved(torch.randn(1, 2, 3, 4))
    for attend in (FINISHED_PARTS["cached_attention"], load_blocks(course(), course().lesson("10")).cached_attention):
        with elsewhere():
            first, cache = attend(q, q, q, None)
            second, cache = attend(q, q, q, cache)
        assert all(isinstance(item, Elsewhere) for item in (first, second, *cache))


def test_no_other_lesson_asks_for_a_gpu():
    """So on a computer with one they run on the processor, as everywhere."""
    elsewhere = {"checking", "grading", "running"}  # what surrounds an answer knows of devices
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


def test_the_device_tells_one_from_the_other():
    x = Elsewhere(torch.ones(2, 3))
    with elsewhere():
        with pytest.raises(RuntimeError, match="mixes two devices"):
            made_here(x)
        assert made_there(x).here.tolist() == [[1, 2, 3], [1, 2, 3]]
        assert x.sum().item() == 6 and x[0].tolist() == [1, 1, 1] and bool((x > 0).all())


@pytest.mark.filterwarnings("ignore:for .* copying from a non-meta parameter")
def test_kept_numbers_go_from_one_device_to_the_other(tmp_path):
    """What a GPU trained is loaded on the processor, and the reverse; each model stays where it is."""
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
    """There is a GPU, which is DEVICE."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(watch, "GPU", DEVICE)


def test_lesson_12_takes_the_gpu_where_there_is_one_and_the_model_runs_on_it(gpu, monkeypatch, capsys):
    blocks = load_blocks(course(), course().lesson("12"))
    source = read_lesson(course(), course().lesson("12")).answers["GPT"]
    names = dict(vars(blocks))
    exec(source.replace(".to(ids.device)", ""), names)  # right on the processor
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
    """A generator that draws on the processor, whatever device it is asked for."""

    def __new__(cls, device="cpu"):
        return super().__new__(cls)


@pytest.mark.full
def test_lesson_12_trains_and_writes_on_another_device(gpu, monkeypatch, capsys):
    """Its own cells, solved, in quick mode, without checks (made for the processor) and what is slow there."""
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
    assert f"training on {DEVICE}" in capsys.readouterr().out  # it says what it did
    for model in (names["model"], names["writer"]):
        assert all(isinstance(part, Elsewhere) for part in model.parameters())
