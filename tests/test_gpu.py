"""Tests that need a GPU: `make test-gpu`. COURSE_GPU=cpu runs them on the CPU, to try the tests themselves.

Every answer is checked, and every solved lesson runs, with the GPU as torch's default device and without.
"""

import os
from dataclasses import replace

import nbformat
import pytest
import torch
from nbclient import NotebookClient

from bench.gpu import VARIANTS, trained
from helpers.authoring.blocks import load_blocks
from helpers.blocks import GPT
from helpers.checking.key import load_keys
from helpers.corpus import real_text
from helpers.course import course
from helpers.lessons.language_model import full_size
from helpers.running.global_switches import switches_set
from tests.judged import stored_verdict
from tests.mutation_score import accepted_variants, lessons

DEVICE = torch.device(os.environ.get("COURSE_GPU", "cuda"))
pytestmark = pytest.mark.gpu
SMALL = {"layers": 2, "heads": 2, "width": 32, "context": 32, "batch": 4, "steps": 20}


@pytest.mark.parametrize("default", [True, False])
@pytest.mark.parametrize("lesson", lessons())
def test_a_solved_lesson_runs_to_its_end(lesson, default, monkeypatch):
    monkeypatch.setenv("COURSE_QUICK", "1")
    path = course().root / "solutions" / lesson / f"{lesson}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    if default:
        set_device = f"import torch\ntorch.set_default_device({str(DEVICE)!r})"
        setup = next(i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code")
        notebook.cells.insert(setup + 1, nbformat.v4.new_code_cell(set_device))
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": path.parent}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output.ename for output in outputs if output.output_type == "error"]
    checks = [cell for cell in notebook.cells if cell.source.startswith("check(")]
    assert checks and all("✓" in str(cell.outputs) for cell in checks)


@pytest.mark.parametrize("lesson", lessons())
def test_right_answers_pass_with_the_gpu_as_default_device(lesson):
    keys, blocks = load_keys(lesson), load_blocks(course(), course().lesson(lesson))
    answers = {name: [getattr(blocks, name)] for name in keys if hasattr(blocks, name)}
    for name, variants in accepted_variants(lesson).items():
        answers.setdefault(name, []).extend(variants)
    before = torch.get_default_device()
    torch.set_default_device(DEVICE)
    try:
        with switches_set():
            verdicts = {
                f"{name}, {answer}": stored_verdict(lesson, name, answer)
                for name, variants in answers.items()
                for answer in variants
            }
    finally:
        torch.set_default_device(before)
    refused = [f"{which}: {verdict.message}" for which, verdict in verdicts.items() if not verdict.passed]
    assert verdicts and not refused, "\n".join(refused)


def test_the_full_size_run_trains_and_continues_compiled_and_in_mixed_precision(tmp_path, capsys):
    text = real_text(length=20_000)
    recipe = full_size.Recipe(**SMALL, look_every=10)
    full_size.train(GPT, text, recipe, DEVICE, str(tmp_path))
    model, run = full_size.train(GPT, text, recipe, DEVICE, str(tmp_path))
    output = capsys.readouterr().out
    assert "continues at step 20" in output and "does not work here" not in output
    assert run.validation[-1] < run.validation[0] and next(model.parameters()).device.type == DEVICE.type


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_of_the_gpu_benchmark_trains(name):
    variant = replace(VARIANTS[name], recipe=replace(VARIANTS[name].recipe, **SMALL))
    assert trained(variant, real_text(length=20_000), 1, DEVICE)["best"] < 6
