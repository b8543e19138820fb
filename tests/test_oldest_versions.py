"""The course uses only names that the oldest supported versions of torch, NumPy and ipywidgets have, and other
differences between supported versions change no verdict.

CI has the newest versions. tests/golden/oldest_names.txt lists all names that the course uses and that were found in
torch 2.5.1, numpy 1.26.4 and ipywidgets 7.7.5. Methods of tensors are not among them.
"""

import ast

import pytest
import torch

from helpers.checking.codec import plain
from helpers.grading.name_bindings import looked_up
from helpers.running.torch_insides import exact_products
from tests.lab import ROOT

PACKAGES = {"torch", "numpy", "ipywidgets"}
GUARDED = {
    "torch.backends.mkldnn.matmul",  # read after an error that only torch 2.9 and later raise
    "torch.compiler.set_stance",  # read after hasattr
}


def names_used(text: str) -> set[str]:
    """The dotted names from PACKAGES in code, such as torch.nn.functional.softmax for F.softmax."""
    tree = ast.parse(text)
    names, used = {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                full = alias.name if alias.asname else alias.name.split(".")[0]
                names[alias.asname or full] = full
                used.add(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                used.add(f"{node.module}.{alias.name}")
    for node in ast.walk(tree):
        attributes = []
        while isinstance(node, ast.Attribute):
            attributes.insert(0, node.attr)
            node = node.value
        if attributes and isinstance(node, ast.Name) and node.id in names:
            used.add(".".join([names[node.id], *attributes]))
    return {name for name in used if name.split(".")[0] in PACKAGES}


def test_names_exist_in_the_oldest_versions():
    sources = [*ROOT.glob("helpers/**/*.py"), *ROOT.glob("solutions/*/*.py")]
    used = set().union(*(names_used(path.read_text("utf-8")) for path in sources)) - GUARDED
    found = set((ROOT / "tests/golden/oldest_names.txt").read_text("utf-8").split())
    assert not used - found, "look these up in the documentation of the oldest versions, then add them to the list"
    assert not found - used, "no longer used: remove these from the list"


def test_names_are_found_through_aliases():
    code = "import torch.nn.functional as F\nfrom torch import nn as layers\nF.silu(layers.utils.x)\nimport math"
    assert names_used(code) == {
        "torch.nn", "torch.nn.functional", "torch.nn.functional.silu", "torch.nn.utils", "torch.nn.utils.x"
    }  # fmt: skip


def test_products_are_exact_without_the_settings_of_torch_2_9(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(type(torch.backends.mkldnn), "matmul", raising=False)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with exact_products():
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_a_plain_tensor_is_not_made_a_subclass_again(monkeypatch: pytest.MonkeyPatch):
    """In a dispatch mode, torch 2.5 refuses it."""
    as_subclass = torch.Tensor.as_subclass

    def refusing(tensor, kind):
        assert type(tensor) is not torch.Tensor
        return as_subclass(tensor, kind)

    monkeypatch.setattr(torch.Tensor, "as_subclass", refusing)
    assert plain(torch.ones(3, requires_grad=True)).equal(torch.ones(3))
    assert type(plain(torch.nn.Buffer(torch.ones(3)))) is torch.Tensor


@pytest.mark.parametrize(
    "made", ["[f(x) for x in y]", "{f(x) for x in y}", "{x: f(x) for x in y}", "[*(f(x) for x in y)]"]
)
def test_the_variable_of_a_comprehension_is_not_looked_up_at_the_top_level(made):
    assert looked_up(ast.parse(f"data = {made}").body[0]) == {"f", "y"}
    assert looked_up(ast.parse(f"data = {made}, x").body[0]) == {"f", "x", "y"}
