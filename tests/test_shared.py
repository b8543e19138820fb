"""What tests/conftest.py gives all tests: seeds of random numbers, and executed notebooks that are kept."""

import random

import numpy as np
import torch

from tests import conftest


def drawn():
    return random.random(), float(np.random.rand()), float(torch.rand(()))


def test_random_numbers_depend_only_on_the_run_and_the_test(monkeypatch):
    first = drawn()
    monkeypatch.setenv(conftest.SEED, "1")
    found = {}
    for name in ("one", "another"):
        conftest._begin(name)
        found[name] = drawn()
        conftest._begin(name)
        assert drawn() == found[name]
    monkeypatch.setenv(conftest.SEED, "2")
    conftest._begin("one")
    assert len({first, drawn(), *found.values()}) == 4


def test_a_kept_notebook_is_outdated_if_its_text_a_helper_or_a_version_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(conftest, "ROOT", tmp_path)
    lesson, other = tmp_path / "solutions/04_a/04_a.py", tmp_path / "solutions/05_b/05_b.py"
    helper, compiled = tmp_path / "helpers/drawing/style.py", tmp_path / "helpers/__pycache__/style.pyc"
    versions = tmp_path / "requirements.lock"
    for path in (lesson, other, helper, compiled, versions):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
    for path, old in ((lesson, True), (other, False), (helper, True), (compiled, False), (versions, True)):
        before = conftest.depends_on("04_a")
        assert conftest.depends_on("04_a") == before
        path.write_text("2")
        assert (conftest.depends_on("04_a") != before) == old, path
    helper.rename(helper.with_name("looks.py"))
    assert conftest.depends_on("04_a") != before
