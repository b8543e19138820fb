"""Sketches replace the outputs of known mistakes: comparisons give the same result as with the numbers themselves."""

import math

import pytest
import torch

from helpers.checking.compare import difference
from helpers.checking.facets import agree
from helpers.checking.observe import Observation
from helpers.checking.sketch import SMALL, SUMS, Sketch, can_be_sketched, sketch
from helpers.checking.vocabulary import Case

STORED = [5.450733, 4.985933]
SHAPES = [(9,), (3, 5, 7), (40, 50)]
BOTH = [torch.float32, torch.float64]


def drawn(shape, dtype, scale=1.0, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype) * scale


@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_tensors_within_the_tolerance_have_equal_sketches(shape, dtype, scale):
    x, limit = drawn(shape, dtype, scale), 1e-5 if dtype == torch.float32 else 1e-7
    for seed in range(1, 20):
        near = x + (0.5 * limit * (1 + x.abs()) * drawn(shape, dtype, seed=seed).clamp(-1, 1)).to(dtype)
        assert difference(sketch(x), near) is None and difference(x, sketch(near)) is None
        assert difference(sketch(x), sketch(near)) is None


@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_single_wrong_entry_is_noticed_at_any_position(shape, dtype):
    x, limit = drawn(shape, dtype), 1e-5 if dtype == torch.float32 else 1e-7
    off = 40 * limit * math.sqrt(x.numel())
    for index in range(x.numel()):
        other = x.clone()
        other.view(-1)[index] += off * 2
        assert difference(sketch(x), other).kind == "value", index


def test_exchanged_entries_are_noticed_beside_much_larger_ones():
    x = drawn((4, 6), torch.float64)
    x[0] = 1e9
    other = x.clone()
    other[1, 0], other[1, 1] = x[1, 1], x[1, 0]
    assert difference(sketch(x), other).kind == "value"
    assert difference(sketch(x), x * (1 + 1e-9)) is None


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_positions_of_nan_and_infinity_are_compared(odd):
    x = drawn((4, 6), torch.float32)
    x[1, 2] = odd
    moved = drawn((4, 6), torch.float32)
    moved[1, 3] = odd
    assert difference(sketch(x), x.clone()) is None
    assert difference(sketch(x), moved).kind == "value"
    assert difference(sketch(x), drawn((4, 6), torch.float32)).kind == "value"
    assert difference(sketch(x), torch.where(x == x.abs().max(), 0.0, x).nan_to_num(1.0, -5.0, 5.0)).kind == "value"


def test_differences_of_type_shape_dtype_and_gradients_are_noticed():
    x = drawn((3, 4), torch.float64)
    assert difference(sketch(x), x.tolist()).kind == "type" and difference([1], [sketch(x)]).kind == "type"
    assert difference(sketch(x), x.reshape(4, 3)).kind == "shape"
    single = x.float().double()
    assert difference(sketch(x), single).kind == "dtype" and difference(sketch(single), x) is None
    assert difference(x, sketch(single)).kind == "dtype"
    assert difference(sketch(x.float()), x.float().double()).kind == "dtype"
    assert difference(sketch(x), x + 1e-3, tolerance=1e-2) is None
    assert difference(sketch(x), x + 1e-3, tolerance=1e-5).kind == "value"
    case = Case((), gradient=True)
    none, zeros = Observation(gradients=[None]), Observation(gradients=[sketch(torch.zeros(3, 4))])
    assert agree(case, none, zeros, "gradient") and agree(case, zeros, none, "gradient")
    assert agree(case, none, Observation(gradients=[sketch(x)]), "gradient") is False


def test_only_floating_point_tensors_that_are_not_small_are_sketched():
    assert can_be_sketched(torch.zeros(SMALL + 1)) and not can_be_sketched(torch.zeros(SMALL))
    assert not can_be_sketched(torch.zeros(20, dtype=torch.int64)) and not can_be_sketched([0.0] * 20)
    sketched = sketch(drawn((3, 4), torch.float32))
    assert isinstance(sketched, Sketch) and sketched.sums.shape == (SUMS,) and sketch(sketched) is sketched
    # The answer keys contain such sums, so another computer must compute the same to recognize mistakes.
    assert sketched.shape == (3, 4) and torch.allclose(
        sketch(torch.arange(12.0)).sums, torch.tensor(STORED, dtype=torch.float64), rtol=0, atol=2e-6
    )
