"""torch's private parts still behave as helpers/running/torch_insides.py assumes."""

import ast
import re
import sys

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from helpers.running import torch_insides
from tests.lab import ROOT


class Seen(torch_insides.OperatorMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(torch_insides.operator_name(func))
        return func(*args, **(kwargs or {}))


class Called(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(torch_insides.readable(func, getattr(func, "__name__", "")))
        return func(*args, **(kwargs or {}))


def test_operators_are_observed_by_name_and_not_compiled():
    with Seen() as seen:
        F.softmax(torch.zeros(2, 3), -1)
    assert "_softmax" in seen.names
    assert TorchDispatchMode._should_skip_dynamo() is True, "else the override in OperatorMode is needed no more"


def test_functions_have_their_public_names():
    x = torch.zeros(2, 3)
    with Called() as called:
        F.softmax(x, -1)
        torch.logsumexp(x, -1)
        x.exp()
        F.scaled_dot_product_attention(x, x, x)
        F.gelu(x)
    assert {"F.softmax", "torch.logsumexp", "torch.Tensor.exp", "F.scaled_dot_product_attention", "F.gelu"} <= set(
        called.names
    )


def test_each_run_of_the_autograd_engine_is_noticed():
    runs = []
    x = torch.ones(2, requires_grad=True)
    engine = torch.autograd.Variable._execution_engine
    with torch_insides.watched_engine(lambda: runs.append(1)):
        x.sum().backward()
        torch.autograd.grad(x.sum(), x)
        torch.func.grad(lambda y: y.sum())(torch.ones(2))
    assert len(runs) == 3 and torch.autograd.Variable._execution_engine is engine


def test_the_profiler_reports_the_autograd_engine_under_known_names():
    heard = set()
    sys.setprofile(lambda frame, event, arg: heard.add(getattr(arg, "__name__", "") or frame.f_code.co_name))
    try:
        torch.ones(2, requires_grad=True).sum().backward()
        heard.add(sys._getframe().f_code.co_name)
    finally:
        sys.setprofile(None)
    assert torch_insides.ENGINE & heard


def test_differentiation_functions_live_in_the_expected_modules():
    assert torch.func.grad.__module__.startswith(torch_insides.AUTOGRAD_HOMES)
    assert torch.autograd.functional.jacobian.__module__.startswith(torch_insides.AUTOGRAD_HOMES)
    assert torch.utils.checkpoint.checkpoint.__module__ in torch_insides.AUTOGRAD_HOMES


def test_operators_of_a_scripted_function_are_found():
    @torch.jit.script
    def scripted(x: torch.Tensor):
        return torch.softmax(x, -1)

    assert "softmax" in torch_insides.scripted_operators(scripted)
    assert torch_insides.scripted_operators(torch.softmax) == []


def test_tree_leaves_are_found_in_order():
    assert torch_insides.tree_leaves((1, [2, {"a": 3}])) == [1, 2, 3]


def test_only_one_module_of_the_check_uses_private_names_of_torch():
    for path in sorted((ROOT / "helpers").glob("[cr]*ing/*.py")):
        if path.name == "torch_insides.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                dotted = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Attribute):
                dotted = [ast.unparse(node)]
            else:
                continue
            private = [name for name in dotted if re.match(r"torch\..*?(?<=\.)_(?!_)", name)]
            assert not private, f"{path.name}: {private}"
