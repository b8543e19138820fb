"""Lesson 4: the sources' numbers from its blocks, and its blocks against independent forms."""

import math
import re

import pytest
import torch
from torch import nn

from helpers import blocks, translator
from helpers.lessons.scaling import explore, figures
from helpers.translator.evaluation import LOSS_SENTENCES, exact, in_nats, nats_a_word, unseen
from tests.draws import life_is_short
from tests.lab import ROOT

torch.set_num_threads(1)
TOKENS = ["Life", "is", "short", "eat", "dessert", "first"]


def test_the_weights_of_is():
    weights = torch.softmax(blocks.head_scores(*life_is_short()[:3])[1], dim=0)
    expected = torch.tensor([0.0185, 0.0312, 0.1778, 0.6368, 0.1265, 0.0092])
    torch.testing.assert_close(weights, expected, atol=6e-5, rtol=0)


def test_the_running_example_breaks_the_assumptions():
    x, W_query, W_key = life_is_short()[:3]
    assert blocks.score_variance(x @ W_query.T, x @ W_key.T).sqrt().item() == pytest.approx(54.27, abs=0.05)


def test_the_lectures_code_without_the_factor():
    torch.manual_seed(1337)
    Wk, Wq, _ = (nn.Linear(32, 16, bias=False) for _ in "kqv")
    x = torch.randn(4, 8, 32)
    assert blocks.score_variance(Wq(x), Wk(x)).item() == pytest.approx(1.91, abs=0.01)
    assert blocks.head_scores(x, Wq.weight, Wk.weight).var(correction=0).item() == pytest.approx(0.119, abs=0.001)


def test_coin_tosses_have_the_variance_of_the_table():
    tosses = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 4)  # all 16 keys of width 4
    assert blocks.score_variance(torch.ones(1, 4), tosses).item() == 4
    assert blocks.scaled_scores(torch.ones(1, 4), tosses).var(correction=0).item() == 1


def test_numbers_on_paper():
    J = blocks.softmax_jacobian(torch.tensor([0.5, 0.25, 0.25]))
    expected = [[0.25, -0.125, -0.125], [-0.125, 0.1875, -0.0625], [-0.125, -0.0625, 0.1875]]
    assert J.tolist() == expected
    p = torch.softmax(torch.tensor([0.0, 1.0, 2.0]), dim=0)
    assert [round(v, 3) for v in p.tolist()] == [0.090, 0.245, 0.665]
    assert figures.effective_tokens(torch.tensor([0.5, 0.25, 0.25])).log().item() == pytest.approx(1.5 * math.log(2))


def weights_of_is(divisor):
    x, W_query, W_key = life_is_short()[:3]
    keys, query = x @ W_key.T, W_query @ x[1]
    return keys, query, torch.softmax(keys @ query / divisor, dim=0)


def test_effective_words_and_the_size_of_the_querys_gradient():
    sizes, entropies = [], []
    for divisor in (1, 24**0.5, 24, 100):
        keys, query, p = weights_of_is(divisor)
        sizes.append(blocks.weights_jacobian(query, keys, divisor).norm().item())
        entropies.append(torch.special.entr(p).sum().item())
    assert sizes == pytest.approx([0.033, 0.533, 0.146, 0.037], abs=5e-4)
    assert entropies == pytest.approx([0.02, 1.08, 1.75, 1.79], abs=5e-3)
    for temperature, words in ((3.3, 2), (math.sqrt(24), 2.9), (11.6, 5)):
        *_, p = weights_of_is(temperature)
        assert figures.effective_tokens(p).item() == pytest.approx(words, abs=0.05)


def test_four_of_six_rows_are_saturated_with_scaling_too():
    largest = torch.softmax(blocks.head_scores(*life_is_short()[:3]), dim=-1).amax(dim=-1)
    assert (largest > 0.96).tolist() == [False, False, True, True, True, True]


def test_the_weights_jacobian_on_paper():
    q, K = torch.tensor([math.log(2) / 2, 0.0]), torch.tensor([[4.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
    torch.testing.assert_close(torch.softmax(K @ q / 2, dim=0), torch.tensor([0.5, 0.25, 0.25]))
    expected = torch.tensor([[0.5, -0.25], [-0.25, 0.375], [-0.25, -0.125]])
    torch.testing.assert_close(blocks.weights_jacobian(q, K, 2), expected)


def test_the_explorers_slider_reaches_every_peak():
    for start in figures.INITIALIZATIONS:
        for curve in explore.curves(1024, start)[1:]:
            assert 0 < int(curve.argmax()) < len(curve) - 1


def test_rotated_vectors_have_the_lengths_and_angles_of_wide_ones():
    q, keys = figures.rotated(256, explore.QUERIES, explore.KEYS)
    wide_q, wide_keys = figures.queries_and_keys(256, 1000, explore.KEYS, seed=3)
    for narrow, wide in ((q, wide_q), (keys, wide_keys)):
        assert narrow.square().sum(-1).mean().item() == pytest.approx(wide.square().sum(-1).mean().item(), rel=0.01)
    for narrow, wide in (
        (torch.einsum("nd,nkd->nk", q, keys), torch.einsum("nd,nkd->nk", wide_q, wide_keys)),
        (torch.einsum("nid,njd->nij", keys, keys), torch.einsum("nid,njd->nij", wide_keys, wide_keys)),
    ):
        assert narrow.std().item() == pytest.approx(wide.std().item(), rel=0.02)


def test_lengths_of_weight_vectors_that_the_notes_name():
    torch.manual_seed(0)
    seen = []
    for d_k in (16, 256):
        s = torch.einsum("nd,nkd->nk", torch.randn(1000, d_k), torch.randn(1000, 6, d_k))
        seen += [torch.softmax(s / c, dim=-1).norm(dim=-1).mean().item() for c in (d_k**0.5, 1)]
    assert seen == pytest.approx([0.53, 0.81, 0.53, 0.95], abs=0.015)


def test_what_each_divisor_costs_the_translator():
    text = (ROOT / "solutions/04_scaling/04_scaling.py").read_text("utf-8")
    right = nats_a_word(translator.machine(), unseen(LOSS_SENTENCES))
    for divisor, nats, times, percent in (
        (4, "0.00016", 1, 100),
        (8, "0.00062", 4, 100),
        (1, "0.011", 70, 97),
        (16, "0.068", 420, 86),
    ):
        machine = translator.machine(scaled_scores=lambda Q, K, divisor=divisor: Q @ K.mT / divisor)
        loss = nats_a_word(machine, unseen(LOSS_SENTENCES))
        assert in_nats(loss) == nats and loss / right == pytest.approx(times, rel=0.04)
        assert exact(machine, unseen(LOSS_SENTENCES).first(100)) == pytest.approx(percent / 100, abs=0.005)
        assert re.search(rf"\| {nats}(, {times} times)? \| {percent}% \|", text), divisor


def test_how_far_the_translators_queries_move_their_weights():
    x, W_q, W_k = figures.first_head("jane visits africa in september")
    sizes = [
        sum(blocks.weights_jacobian(q, x @ W_k.T, divisor).norm().item() for q in x @ W_q.T) / 5
        for divisor in (1, 4, 16, 100)
    ]
    assert sizes == pytest.approx([0.32, 0.09, 0.02, 0.004], abs=0.005)


def test_pictures_say_their_numbers():
    x, W_query, W_key = life_is_short()[:3]
    scores = (x @ W_key.T) @ (W_query @ x[1])
    assert "divided by √24: Life 0.02, is 0.03, short 0.18, eat 0.64" in figures.four_divisors(scores, TOKENS).alt
    assert "short 0.178, eat 0.637, dessert 0.127" in explore.Temperature(scores, TOKENS)(math.sqrt(24)).alt
    assert "0.090, 0.245, 0.665" in figures.three_numbers().alt
    drawn = (
        figures.score_distributions(),
        figures.two_jacobians(),
        figures.gradients_against_width(),
        figures.initializations_against_width(),
    )
    for picture in drawn:
        assert len(picture.alt) > 100 and picture.caption.startswith("Figure 4.")


def test_gradients_vanish_without_scaling_and_stay_with_it():
    wide = figures.random_scores(1024, 300, 6)
    assert figures.largest_derivative(wide).median() < 1e-5
    assert figures.largest_derivative(wide / 32).median() > 0.2
    alt = explore.WidthAndDivisor()(64, "variance 1", 8.0).alt
    assert "Width 64, initialization variance 1, scores divided by 8" in alt
