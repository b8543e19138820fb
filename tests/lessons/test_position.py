"""Lesson 2: its blocks against closed forms and against properties that define them, over random shapes."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers import translator
from helpers.blocks import add_positions, apply_rope, equivariance_error, shift_matrix, sinusoidal_positions
from helpers.lessons.position import explore, figures
from helpers.translator.stage import attempt
from tests.draws import random

SENTENCE = "jane visits africa in september"
WORDS = torch.tensor([[1.0, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]])  # jane, visits, africa
BACKWARDS = torch.tensor([2, 1, 0])
even_widths = st.integers(1, 12).map(lambda i: 2 * i)
seeds = st.integers(0, 2**31)


def mix(x):
    return torch.softmax(x @ x.T, dim=-1) @ x


def test_numbers_of_the_worked_example():
    assert torch.softmax(WORDS @ WORDS.T, -1)[0].tolist() == pytest.approx([0.665, 0.090, 0.245], abs=5e-4)
    assert mix(WORDS)[0].tolist() == pytest.approx([0.910, 0.335, 0.090, 0.665], abs=5e-4)
    table = sinusoidal_positions(3, 4)
    printed = torch.tensor([[0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 1.0000], [0.9093, -0.4161, 0.0200, 0.9998]])
    assert torch.allclose(table, printed, atol=5.1e-5)


def test_attention_is_blind_to_order_until_positions_are_added():
    def with_positions(x):
        return mix(add_positions(x, sinusoidal_positions(3, 4)))

    assert equivariance_error(mix, WORDS, BACKWARDS) < 1e-6
    assert equivariance_error(with_positions, WORDS, BACKWARDS) > 0.5


def test_running_mean_has_the_gap_that_the_lesson_prints():
    def running_mean(x):
        return x.cumsum(0) / torch.arange(1, len(x) + 1)[:, None]

    gap = equivariance_error(running_mean, WORDS, BACKWARDS)
    assert type(gap) is float
    assert gap == pytest.approx(2 / 3)


@given(seeds, st.integers(2, 9), even_widths)
def test_rotary_attention_weights_only_shuffle_when_the_places_move_with_the_words(seed, T, D):
    x, perm = random(seed, T, D), torch.randperm(T, generator=torch.Generator().manual_seed(seed))
    turned = apply_rope(x, torch.arange(T))
    assert torch.allclose(apply_rope(x[perm], torch.arange(T)[perm]), turned[perm])


def test_dot_products_depend_on_the_distance_and_rows_have_one_length():
    table = sinusoidal_positions(48, 32).double()
    dots = table @ table.T
    assert torch.allclose(dots.diagonal(), torch.full((48,), 16.0, dtype=torch.float64), atol=1e-5)
    assert torch.allclose(dots[:-5, :-5], dots[5:, 5:], atol=1e-5)
    assert dots[5, 6].item() == pytest.approx(15.31, abs=0.005)


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100), even_widths, seeds)
def test_rotary_scores_depend_on_the_distance(m, n, step, D, seed):
    q, k = random(seed, 1, D), random(seed + 1, 1, D)

    def score(at, other):
        return (apply_rope(q, torch.tensor([at])) * apply_rope(k, torch.tensor([other]))).sum().item()

    assert score(m + step, n + step) == pytest.approx(score(m, n), abs=1e-9)


def test_a_step_on_paper_as_matrix_and_as_rotation():
    c, s = math.cos(1), math.sin(1)
    M = shift_matrix(1, 2)
    assert torch.allclose(M, torch.tensor([[c, s], [-s, c]]))
    assert torch.allclose(M @ torch.tensor([0.0, 1.0]), torch.tensor([0.8415, 0.5403]), atol=5e-5)
    R = apply_rope(torch.eye(2), torch.tensor([1, 1])).T  # its columns: where the two unit vectors go
    assert torch.allclose(R, M.T)
    table = sinusoidal_positions(3, 4)
    assert (table[0] @ table[1]).item() == pytest.approx(1.5403, abs=5e-5)


def test_a_query_and_a_key_turned_together_keep_their_score():
    alt = figures.turned_together().alt
    assert alt.count("angle 1, score 0.54") == 2 and "angle 3, score -0.99" in alt


def test_rotary_scores_know_the_sign_of_the_offset():
    q, k = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])

    def score(at, other):
        return (apply_rope(q, torch.tensor([at])) @ apply_rope(k, torch.tensor([other])).T).item()

    assert score(3, 4) == pytest.approx(-0.8415, abs=5e-5)
    assert score(3, 2) == pytest.approx(0.8415, abs=5e-5)
    drawn = explore.Rotary()
    assert "7.078 at offset 1, 5.844 at offset -1" in drawn(5, 6, 0).alt
    assert "5.844 at offset -1, 7.078 at offset 1" in drawn(6, 5, 0).alt


def test_what_the_explorer_of_sinusoids_answers():
    near, far = figures.apart(10, 11, 16), figures.apart(10, 54, 16)
    assert near[[0, 2]].tolist() == pytest.approx([0.96, 0.10], abs=5e-3) and near.argmax() == 0
    assert far[[0, 1, 2, 3, 7]].tolist() == pytest.approx([0.02, 1.25, 1.62, 1.28, 0.01], abs=5e-3)
    assert "pair 2 1.617" in explore.Sinusoids()(0, 10, 54).alt


def test_wavelengths_that_the_text_says():
    assert 10000 ** (510 / 512) == pytest.approx(9647, abs=0.5)
    assert 10000 ** (2 / 4) == pytest.approx(100)
    rounds = [2 * math.pi * 10000 ** (2 * i / 16) for i in range(4)]
    assert [round(steps) for steps in rounds] == [6, 20, 63, 199]
    assert 1 - 10000 ** (-1 / 64) == pytest.approx(0.13, abs=5e-3)


def test_words_and_places_in_the_translator_fill_different_directions():
    numbers = translator.state()
    positions, words = numbers["encoder.positions.weight"], numbers["encoder.tokens.weight"]
    assert len(positions) == 24
    assert positions.norm(dim=1).mean().item() == pytest.approx(5.66, abs=5e-3)
    ours = words[[translator.english[word] for word in SENTENCE.split()]]
    assert 0.9 < ours.norm(dim=1).min() < ours.norm(dim=1).max() < 1.15
    mean = positions.mean(dim=0)
    assert mean.norm().item() == pytest.approx(4.86, abs=0.01) and (positions - mean).norm(dim=1).max() < 3.4
    held = torch.linalg.svdvals(positions).square().cumsum(0)
    assert held[7] < 0.99 * held[-1] < held[8]


def without_positions(x, table):
    return x


def published_layer(x, table):
    return x + sinusoidal_positions(5000, 64)[:, None][: x.size(0)]


def sines_first(length, d_model):
    table = sinusoidal_positions(length, d_model)
    return torch.cat([table[:, 0::2], table[:, 1::2]], dim=-1)


def exponent_doubled(length, d_model):
    angles = torch.arange(length)[:, None] / 10000 ** (2 * torch.arange(0, d_model, 2).double() / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


@pytest.mark.parametrize(
    ("part", "function", "nats", "french"),
    [
        ("add_positions", add_positions, 0.00016, "jane visite l' afrique en septembre"),
        ("add_positions", without_positions, 4.85, "jane en septembre"),
        ("add_positions", published_layer, 9.81, "jane jane jane jane"),
        ("sinusoidal_positions", sines_first, 12.97, ""),
        ("sinusoidal_positions", exponent_doubled, 1.21, ""),
    ],
)
def test_what_the_text_says_of_the_translator(part, function, nats, french):
    trial = attempt({part: function}, SENTENCE, 60.0)
    assert trial.nats == pytest.approx(nats, rel=0.03)
    assert trial.french.startswith(french)
    if function is add_positions:
        assert any("shuffled: 6.04 nats" in fact.text for fact in trial.facts)
    if function is sines_first:
        assert trial.french == ""
