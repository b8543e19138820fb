"""Lesson 6: what it says of numbers and networks, measured with controls. Each sentence stands in the lesson's text."""

import functools
import math

import pytest
import torch

from helpers import blocks, translator
from helpers.translator.evaluation import LOSS_SENTENCES, exact, nats_a_word, unseen
from helpers.translator.network import Parts
from helpers.translator.trained import SIZES
from tests.lessons.lesson_text import says
from tests.other_trainings import trained

torch.set_num_threads(1)
lesson_says = functools.partial(says, "06_softmax")
SCORES_IS = torch.tensor([-7.0847, -4.5398, 3.9887, 10.2379, 2.3206, -10.5434], dtype=torch.float64)


def test_where_the_entropy_rises_fastest():
    lesson_says("On this logarithmic axis, the entropy rises fastest near it, at a temperature of 3.6.")
    hot = torch.logspace(-1, 3, 4001, dtype=torch.float64)
    entropy = blocks.entropy(torch.softmax(SCORES_IS / hot[:, None], dim=-1))
    slope = (entropy[2:] - entropy[:-2]) / (hot[2:] / hot[:-2]).log()
    assert hot[1 + int(slope.argmax())].item() == pytest.approx(3.6, abs=0.01)


def test_no_score_has_a_loss_of_zero():
    lesson_says("because a probability of exactly 1 would need a score of $+\\infty$")
    losses = [-blocks.log_softmax(torch.tensor([0.0, math.log(2), s], dtype=torch.float64))[2] for s in (8.5, 20, 30)]
    assert all(loss > 0 for loss in losses) and losses == sorted(losses, reverse=True)


def test_the_wrong_axis_lets_the_future_in_and_the_right_one_does_not():
    lesson_says("so the weight of token 0 depends on tokens that come after it", "The wrong axis leaks the future")
    for seed in range(3):
        scores = torch.randn(8, 8, generator=torch.Generator().manual_seed(seed))
        later, seen = scores.clone(), torch.ones(8, 8, dtype=torch.bool).tril()
        later[1:] = torch.randn(7, 8, generator=torch.Generator().manual_seed(seed + 9))  # other words after token 0
        for dim, moves in ((-1, False), (-2, True)):
            a, b = (blocks.softmax(s.masked_fill(~seen, -math.inf), dim=dim)[0, 0] for s in (scores, later))
            assert bool((a - b).abs() > 1e-4) is moves


def test_no_sum_complains_until_a_mask_does():
    lesson_says(
        "None of the three raises an error", "The diffusion model had no mask, so there the same bug went unnoticed."
    )
    scores = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    assert torch.softmax(scores, dim=-2).isfinite().all()
    padded = scores.masked_fill(torch.arange(5) == 4, -math.inf)
    assert torch.softmax(padded, dim=-2).isnan().any() and torch.softmax(padded, dim=-1).isfinite().all()


def test_what_an_epsilon_leaves_of_the_gradient():
    lesson_says(
        "With $\\varepsilon = 10^{-9}$, a score 20 points below the maximum keeps two thirds of its gradient, and one "
        "25 points below keeps 1%"
    )
    for gap, left in ((20, 0.67), (25, 0.014)):
        scores = torch.tensor([0.0, -gap], dtype=torch.float64, requires_grad=True)
        (torch.softmax(scores, 0)[1] + 1e-9).log().backward()
        assert scores.grad[1].item() == pytest.approx(left, abs=0.01)


def test_steps_against_the_gradient_lower_the_loss_from_any_start():
    lesson_says("the loss starts near $\\ln 6 = 1.79$")
    for seed in range(3):
        torch.manual_seed(seed)
        logits, targets = 0.1 * torch.randn(8, 6), torch.randint(6, (8,))
        losses = []
        for _ in range(5):
            losses.append(blocks.cross_entropy(logits, targets).item())
            logits = logits - 8 * blocks.cross_entropy_backward(logits, targets)
        assert losses[0] == pytest.approx(math.log(6), abs=0.1)
        assert losses == sorted(losses, reverse=True)


def test_the_loss_of_a_model_that_knows_nothing():
    lesson_says("so its loss is $\\ln V$, which is 5.27 for our translator's French vocabulary of 194 entries")
    assert len(translator.french) == 194
    assert math.log(194) == pytest.approx(5.27, abs=0.005)


def at(temperature):
    return lambda x, dim=-1: torch.softmax(x / temperature, dim)


def costs(numbers=None):
    """Losses at the temperatures 0.5, 2 and 4 over the loss at 1, and sentences of 100 that go wrong at 4."""
    losses = []
    for temperature in (1, 0.5, 2, 4):
        network = translator.machine(softmax=at(temperature))
        if numbers:
            network = Parts({"softmax": at(temperature)}).module("Transformer", *SIZES).eval()
            network.load_state_dict(numbers, strict=False)
        losses.append(nats_a_word(network, unseen(LOSS_SENTENCES)))
    return losses[1] / losses[0], losses[2] / losses[0], 100 * (1 - exact(network, unseen(LOSS_SENTENCES).first(100)))


def test_other_temperatures_in_this_training():
    lesson_says("| seed 0 | 2.6 times | 3.9 times | 14 |")
    assert costs() == pytest.approx((2.6, 3.9, 14), rel=0.04)


@torch.no_grad()
def test_no_target_lies_twenty_points_below_the_maximum():
    lesson_says("because no target is as much as 20 points below the maximum", "loss is 0.00009 instead of 0.00016")
    batch = unseen(LOSS_SENTENCES)
    kept = batch.tgt_out != translator.PAD
    scores, right = translator.machine()(batch.src, batch.tgt_in)[kept], batch.tgt_out[kept]
    assert (scores.amax(-1) - scores.gather(-1, right[:, None])[:, 0]).max() < 20
    probabilities = torch.softmax(scores, -1).gather(-1, right[:, None])
    assert (probabilities + 1e-9).log().mean().item() == pytest.approx(probabilities.log().mean().item(), abs=1e-7)


@pytest.mark.slow
def test_other_temperatures_in_other_trainings():
    lesson_says("| seed 1 | 1.5 times | 2.9 times | 10 |", "| seed 2 | 5.2 times | 22 times | 18 |")
    # A computer that rounds differently trains other networks from the same seeds, so each value has a range.
    for seed in (1, 2):
        half, twice, wrong = costs(trained(seed).state_dict())
        assert 1.2 < half < 6 and 2 < twice < 30 and 5 < wrong < 22
