"""The programs of bench/: how they are started, how they store their measurements, and their simple judges."""

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
TOOLS = {"written", "fused_attention", "nanogpt"}  # shared by programs


@pytest.mark.parametrize("name", sorted(set(MODULES) - TOOLS))
def test_each_programs_docstring_says_how_to_start_it(name):
    module = importlib.import_module(f"bench.{name}")
    assert f"python -m bench.{name}" in module.__doc__ and callable(module.main)


def test_make_bench_names_only_existing_programs():
    assert set(PROGRAMS) < set(MODULES)


def test_measurements_are_stored_with_their_machine_and_shown_on_a_page(tmp_path):
    keep("blocks", "At most 1.10 times as long.", {"attention": {128: 1.1}}, tmp_path)
    stored = json.loads((tmp_path / "blocks.json").read_text())
    assert stored["figures"] == {"attention": {"128": 1.1}}
    assert stored["versions"]["torch"] == torch.__version__.partition("+")[0] or stored["versions"]["torch"]
    assert "cores, Python 3" in stored["machine"] and stored["commit"].strip("+")
    page = with_figures(f"above\n{MEASURED}\nold\n{MEASURED_END}\nbelow", tmp_path)
    assert page == f"above\n{MEASURED}\n- At most 1.10 times as long.\n{MEASURED_END}\nbelow"


def test_the_docs_show_the_latest_measurements():
    page = (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")
    assert with_figures(page, RESULTS) == page, "run `course build`"


def test_the_simple_judges_compare_only_numbers_or_only_shapes():
    one, other = torch.ones(2, 3), torch.full((2, 3), 2.0)
    assert alike(one, one, True) and not alike(other, one, True) and alike(other, one, False)
    assert not alike(one[0], one, False) and not alike([1, 2], one, False)
    assert alike((one, {"a": 2.0}), (one, {"a": 2.0 + 1e-7}), True) and not alike((one,), (one, one), False)
    assert not alike({"a": 1}, {"b": 1}, False) and not alike([1, 2], [1, 3], True) and alike([1, 2], [1, 3], False)


def test_simple_judges_pass_more_wrong_answers_and_ours_passes_all_right_ones():
    scaled = next(item for item in exercises("04_scaling") if item.name == "scaled_scores")
    tallies = judged("04_scaling", scaled)
    passed = {judge: tally[0] for judge, tally in tallies.items()}
    assert passed["check"] == 0 < passed["allclose"] < passed["shape"]
    assert tallies["check"][2] == 0 and tallies["check"][3] > 1


def test_the_gpu_program_trains_each_of_its_variants():
    text = real_text(length=4000)
    tiny = {"layers": 1, "heads": 2, "width": 8, "context": 16, "batch": 2, "steps": 3}
    found = {}
    for name, variant in gpu.VARIANTS.items():
        small = replace(variant, recipe=replace(variant.recipe, **tiny))
        found[name] = gpu.trained(small, text, seed=1, device=torch.device("cpu"))["best"]
    assert len(set(found.values())) == len(found) - 1  # two schedules agree in three steps
    assert found["nanoGPT"] == found["nanoGPT, 2,000 steps"]
