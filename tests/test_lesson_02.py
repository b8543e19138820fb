"""Lesson 2: its blocks against closed forms and against properties that define them, over random shapes."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.blocks.lesson_02 import (
    add_positions,
    find_position,
    fixed_position_layer,
    permutation_gap,
    rotate,
    shift_matrix,
    sinusoidal_positions,
)

WORDS = torch.tensor([[1.0, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]])  # jane, visits, africa
BACKWARDS = torch.tensor([2, 1, 0])
even_widths = st.integers(1, 12).map(lambda i: 2 * i)
seeds = st.integers(0, 2**31)
dtypes = st.sampled_from([torch.float32, torch.float64])


def mix(x):
    return torch.softmax(x @ x.T, dim=-1) @ x


def normal(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def test_numbers_of_the_worked_example():
    assert torch.softmax(WORDS @ WORDS.T, -1)[0].tolist() == pytest.approx([0.665, 0.090, 0.245], abs=5e-4)
    assert mix(WORDS)[0].tolist() == pytest.approx([0.910, 0.335, 0.090, 0.665], abs=5e-4)
    table = sinusoidal_positions(3, 4)
    printed = torch.tensor([[0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 1.0000], [0.9093, -0.4161, 0.0200, 0.9998]])
    assert torch.allclose(table, printed, atol=5.1e-5)


def test_attention_is_blind_to_order_until_positions_are_added():
    def with_places(x):
        return mix(add_positions(x, sinusoidal_positions(3, 4)))

    assert permutation_gap(mix, WORDS, BACKWARDS) < 1e-6
    assert permutation_gap(with_places, WORDS, BACKWARDS) > 0.5


def test_running_mean_has_the_gap_that_the_lesson_prints():
    def running_mean(x):
        return x.cumsum(0) / torch.arange(1, len(x) + 1)[:, None]

    gap = permutation_gap(running_mean, WORDS, BACKWARDS)
    assert type(gap) is float
    assert gap == pytest.approx(2 / 3)


@given(seeds, st.integers(2, 9), even_widths)
@settings(max_examples=30, deadline=None)
def test_rotary_attention_weights_only_shuffle_when_the_places_move_with_the_words(seed, T, D):
    x, perm = normal(seed, T, D), torch.randperm(T, generator=torch.Generator().manual_seed(seed))
    turned = rotate(x, torch.arange(T))
    assert torch.allclose(rotate(x[perm], torch.arange(T)[perm]), turned[perm])


@given(st.integers(1, 65), even_widths)
@settings(max_examples=60, deadline=None)
def test_sinusoids_against_the_formula_entry_by_entry(length, d_model):
    expected = [
        [(math.cos if j % 2 else math.sin)(t / 10000 ** ((j - j % 2) / d_model)) for j in range(d_model)]
        for t in range(length)
    ]
    table = sinusoidal_positions(length, d_model)
    assert table.dtype == torch.float32
    assert torch.allclose(table.double(), torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-7)


def test_dot_products_depend_on_the_distance_and_rows_have_one_length():
    table = sinusoidal_positions(48, 32).double()
    dots = table @ table.T
    assert torch.allclose(dots.diagonal(), torch.full((48,), 16.0, dtype=torch.float64), atol=1e-5)
    assert torch.allclose(dots[:-5, :-5], dots[5:, 5:], atol=1e-5)
    assert dots[5, 6].item() == pytest.approx(15.31, abs=0.005)


@pytest.mark.parametrize("make", [lambda: sinusoidal_positions(4, 5), lambda: shift_matrix(1, 7)])
def test_odd_widths_are_refused(make):
    with pytest.raises(ValueError, match="even"):
        make()


@given(st.integers(2, 24).map(lambda i: 2 * i), st.integers(1, 512), seeds)
@settings(max_examples=60, deadline=None)
def test_a_blurred_row_gives_its_place_back(d_model, length, seed):
    t = seed % length
    blur = 0.01 * (2 * torch.rand(d_model, generator=torch.Generator().manual_seed(seed)) - 1)
    assert find_position(sinusoidal_positions(length, d_model)[t] + blur, length) == t


@given(st.lists(st.integers(1, 3), max_size=3), st.integers(1, 6), st.integers(1, 5), st.integers(0, 3), dtypes, seeds)
@settings(max_examples=50, deadline=None)
def test_added_positions_and_their_gradients(lead, T, D, spare, dtype, seed):
    x = normal(seed, *lead, T, D, dtype=dtype).requires_grad_()
    table = normal(seed + 1, T + spare, D, dtype=dtype).requires_grad_()
    out = add_positions(x, table)
    assert out.shape == x.shape and out.dtype == dtype
    assert torch.equal(out, x + torch.nn.functional.embedding(torch.arange(T), table))
    out.sum().backward()
    sentences = math.prod(lead)
    assert torch.equal(x.grad, torch.ones_like(x))
    assert torch.equal(table.grad, torch.cat([torch.full((T, D), sentences), torch.zeros(spare, D)]).to(dtype))


@pytest.mark.parametrize("rows", [1, 4])
def test_a_sentence_longer_than_the_table_is_refused(rows):
    with pytest.raises(ValueError, match="5 tokens"):
        add_positions(torch.zeros(2, 5, 3), torch.zeros(rows, 3))


@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 4), seeds)
@settings(max_examples=40, deadline=None)
def test_repaired_layer_is_the_tokens_first_layer_between_two_transposes(B, T, D, seed):
    x, pe = normal(seed, B, T, D), normal(seed + 1, 5, 1, D)
    tokens_first = x.transpose(0, 1)
    assert torch.equal(fixed_position_layer(x, pe), (tokens_first + pe[: tokens_first.size(0)]).transpose(0, 1))


@given(st.integers(-60, 60), even_widths, st.integers(60, 120))
@settings(max_examples=60, deadline=None)
def test_shift_matrix_moves_every_place(offset, d_model, t):
    table, M = sinusoidal_positions(200, d_model), shift_matrix(offset, d_model)
    assert M.dtype == torch.float32
    assert torch.allclose(M @ table[t], table[t + offset], atol=1e-5)
    assert torch.allclose(M @ shift_matrix(-offset, d_model), torch.eye(d_model), atol=1e-5)


@given(st.lists(st.integers(1, 3), max_size=2), st.integers(1, 6), even_widths, seeds, st.sampled_from([10000.0, 50.0]))
@settings(max_examples=60, deadline=None)
def test_rotation_is_multiplication_of_complex_numbers(lead, T, D, seed, base):
    x = normal(seed, *lead, T, D)
    positions = torch.randint(0, 300, (T,), generator=torch.Generator().manual_seed(seed))
    speeds = torch.tensor([base ** (-2 * i / D) for i in range(D // 2)], dtype=torch.float64)
    hands = torch.exp(1j * positions[:, None] * speeds)
    expected = torch.view_as_real(torch.view_as_complex(x.reshape(*lead, T, D // 2, 2)) * hands).flatten(-2)
    assert torch.allclose(rotate(x, positions, base), expected, atol=1e-10)
    assert rotate(x.float(), positions, base).dtype == torch.float32


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100), even_widths, seeds)
@settings(max_examples=60, deadline=None)
def test_rotary_scores_depend_on_the_distance(m, n, step, D, seed):
    q, k = normal(seed, 1, D), normal(seed + 1, 1, D)

    def score(at, other):
        return (rotate(q, torch.tensor([at])) * rotate(k, torch.tensor([other]))).sum().item()

    assert score(m + step, n + step) == pytest.approx(score(m, n), abs=1e-9)
