"""The programs of bench/: all are started in one way, keep what they measured, and judge as they say."""

import importlib
import json
import pkgutil
from dataclasses import replace

import pytest
import torch

import bench
from bench import gpu
from bench.__main__ import PROGRAMS
from bench.truth import alike, judged
from bench.written import RESULTS, ROOT, keep
from helpers.authoring.badges import MEASURED, MEASURED_END, with_figures
from helpers.corpus import real_text
from tests.mutation_score import exercises

MODULES = [found.name for found in pkgutil.iter_modules(bench.__path__) if found.name != "__main__"]
TOOLS = {"written", "fused_attention", "nanogpt"}  # what programs share


@pytest.mark.parametrize("name", sorted(set(MODULES) - TOOLS))
def test_each_program_says_how_it_is_started(name):
    module = importlib.import_module(f"bench.{name}")
    assert f"python -m bench.{name}" in module.__doc__ and callable(module.main)


def test_make_bench_knows_programs_that_are_there():
    assert set(PROGRAMS) < set(MODULES)


def test_what_was_measured_is_kept_with_its_machine_and_is_told(tmp_path):
    keep("blocks", "At most 1.10 times as long.", {"attention": {128: 1.1}}, tmp_path)
    told = json.loads((tmp_path / "blocks.json").read_text())
    assert told["figures"] == {"attention": {"128": 1.1}}
    assert told["versions"]["torch"] == torch.__version__.partition("+")[0] or told["versions"]["torch"]
    assert "cores, Python 3" in told["machine"] and told["commit"].strip("+")
    page = with_figures(f"above\n{MEASURED}\nold\n{MEASURED_END}\nbelow", tmp_path)
    assert page == f"above\n{MEASURED}\n- At most 1.10 times as long.\n{MEASURED_END}\nbelow"


def test_the_docs_say_what_was_measured_last():
    page = (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")
    assert with_figures(page, RESULTS) == page, "run `course build`"


def test_the_simple_judges_look_at_numbers_or_at_shapes_alone():
    one, other = torch.ones(2, 3), torch.full((2, 3), 2.0)
    assert alike(one, one, True) and not alike(other, one, True) and alike(other, one, False)
    assert not alike(one[0], one, False) and not alike([1, 2], one, False)
    assert alike((one, {"a": 2.0}), (one, {"a": 2.0 + 1e-7}), True) and not alike((one,), (one, one), False)
    assert not alike({"a": 1}, {"b": 1}, False) and not alike([1, 2], [1, 3], True) and alike([1, 2], [1, 3], False)


def test_simple_judges_let_more_wrong_answers_pass_and_ours_refuses_nothing_right():
    scaled = next(item for item in exercises("04_scaling") if item.name == "scaled_scores")
    tallies = judged("04_scaling", scaled)
    passed = {judge: tally[0] for judge, tally in tallies.items()}
    assert passed["check"] == 0 < passed["allclose"] < passed["shape"]
    assert tallies["check"][2] == 0 and tallies["check"][3] > 1


def test_the_gpu_program_trains_each_of_its_variants_and_names_what_differs():
    text = real_text(length=4000)
    tiny = {"layers": 1, "heads": 2, "width": 8, "context": 16, "batch": 2, "steps": 3}
    found = {}
    for name, variant in gpu.VARIANTS.items():
        small = replace(variant, recipe=replace(variant.recipe, **tiny))
        found[name] = gpu.trained(small, text, seed=1, device=torch.device("cpu"))["best"]
    assert len(set(found.values())) == len(found) - 1  # a schedule cut to three steps is the same as another
    assert found["nanoGPT"] == found["nanoGPT, 2,000 steps"]
