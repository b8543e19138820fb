"""Lesson 6: the sources' numbers from its blocks, its blocks against torch's own functions, and what it forbids."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from helpers import blocks, translator
from helpers.lessons.softmax import explore, figures
from helpers.translator.evaluation import LOSS_SENTENCES, exact, in_nats, nats_a_word, unseen
from tests.draws import close, life_is_short
from tests.judged import verdict_of

torch.set_num_threads(1)
LESSON = "06_softmax"
LIFE = [-7.0847, -4.5398, 3.9887, 10.2379, 2.3206, -10.5434]
TABLE = torch.tensor(
    [
        [1.00, 0.20, 0.10, 0.10, 0.05],
        [0.20, 1.00, 0.40, 0.30, 0.10],
        [0.10, 0.40, 1.00, 0.50, 0.20],
        [0.10, 0.30, 0.50, 1.00, 0.60],
        [0.05, 0.10, 0.20, 0.60, 1.00],
    ]
)


def gradient(f, x):
    x = x.clone().requires_grad_()
    y = f(x)
    (y * torch.arange(y.numel(), dtype=y.dtype).cos().reshape(y.shape)).sum().backward()
    return x.grad


def test_the_published_five_by_five_table():
    weights = blocks.softmax(TABLE)
    torch.testing.assert_close(weights[0], torch.tensor([0.377, 0.170, 0.153, 0.153, 0.146]), atol=6e-4, rtol=0)
    assert weights[1, 0].item() == pytest.approx(0.155, abs=6e-4)  # like -> I, although the scores are symmetric
    quarter = blocks.softmax(TABLE[0] / 4)
    torch.testing.assert_close(quarter, torch.tensor([0.238, 0.195, 0.190, 0.190, 0.188]), atol=6e-4, rtol=0)
    close(blocks.softmax(TABLE, dim=0), weights.T.contiguous())


def test_the_weights_of_is():
    x, W_query, W_key, _ = life_is_short()
    scores = (x @ W_key.T) @ (W_query @ x[1])
    expected = torch.tensor([0.0185, 0.0312, 0.1778, 0.6368, 0.1265, 0.0092])
    weights = blocks.softmax_with_temperature(scores, math.sqrt(24))
    torch.testing.assert_close(weights, expected, atol=6e-5, rtol=0)


def test_the_lectures_scores_masked_then_softmax():
    torch.manual_seed(1337)
    Wk, Wq, _ = (nn.Linear(32, 16, bias=False) for _ in "kqv")
    x = torch.randn(4, 8, 32)
    scores = (Wq(x) @ Wk(x).transpose(-2, -1)).masked_fill(torch.ones(8, 8).tril() == 0, -math.inf)
    weights = blocks.softmax(scores)
    assert weights.shape == (4, 8, 8)
    close(weights.sum(-1), torch.ones(4, 8))
    assert weights[0, 1, 0].item() == pytest.approx(0.9870, abs=6e-5)
    sums = blocks.softmax(scores, dim=-2)[0].sum(-1)
    assert sums[0].item() == pytest.approx(0.0278, abs=6e-5)  # the wrong axis: token 0 has hardly anything to give


def test_numbers_on_paper():
    scores = torch.tensor([1.0, 2, 5], dtype=torch.float64).log()
    p = blocks.softmax(scores)
    close(p, torch.tensor([1 / 8, 1 / 4, 5 / 8], dtype=torch.float64))
    assert blocks.entropy(p).item() == pytest.approx(0.900, abs=6e-4)
    loss = blocks.cross_entropy(scores.expand(3, 3), torch.tensor([2, 0, -100]))
    assert loss.item() == pytest.approx(1.275, abs=6e-4)
    back = blocks.softmax_backward(p, torch.tensor([4.0, 0, 0], dtype=torch.float64))
    close(back, torch.tensor([7 / 16, -1 / 8, -5 / 16], dtype=torch.float64))
    values = torch.tensor([[8.0], [0], [16]], dtype=torch.float64)
    streamed = blocks.online_softmax([scores[:2], scores[2:]], [values[:2], values[2:]])
    close(streamed, torch.tensor([11.0], dtype=torch.float64))
    hand = blocks.softmax(torch.tensor([[0.0, 3, 0], [0, 0, 3], [0, 2, 0]]))
    assert [round(hand[i, j].item(), 2) for i, j in ((0, 1), (1, 2), (2, 1))] == [0.91, 0.91, 0.79]


def verdict(name, answer):
    """What the check says of an answer, on the exercise's own cases."""
    return verdict_of(LESSON, name, answer, seed=7, time_limit=5.0)


def loss_by(module):
    def loss(logits, targets, ignore_index=-100):
        log_p = logits.reshape(-1, logits.shape[-1]).log_softmax(-1)
        return module(ignore_index=ignore_index)(log_p, targets.flatten())

    return loss


def own_scores_gradient(p, grad):
    s = p.log().requires_grad_()
    return torch.autograd.grad(torch.softmax(s, -1), s, grad)[0]


def forward_mode(p, grad):
    return torch.func.jvp(lambda s: torch.softmax(s, -1), (p.log(),), (grad,))[1]


def loss_backwards(logits, targets):
    x = logits.clone().requires_grad_()
    rows = torch.log_softmax(x.reshape(-1, x.shape[-1]), -1)
    (-rows[torch.arange(len(rows)), targets.reshape(-1)].mean()).backward()
    return x.grad


FORBIDDEN = [
    ("cross_entropy_backward", loss_backwards),
    ("cross_entropy_backward", lambda x, y: torch.func.grad(lambda x: nn.CrossEntropyLoss()(x, y))(x)),
    ("softmax", lambda x, dim=-1: x.softmax(dim)),
    ("softmax", lambda x, dim=-1: nn.Softmin(dim)(-x)),
    ("softmax", lambda x, dim=-1: torch.special.log_softmax(x, dim).exp()),
    ("softmax", lambda x, dim=-1: (x - torch.logcumsumexp(x, dim).select(dim, -1).unsqueeze(dim)).exp()),
    ("log_softmax", lambda x, dim=-1: x - torch.special.logsumexp(x, dim, keepdim=True)),
    ("log_softmax", lambda x, dim=-1: nn.LogSoftmax(dim)(x)),
    ("cross_entropy", loss_by(nn.CrossEntropyLoss)),
    ("cross_entropy", loss_by(nn.NLLLoss)),
    ("softmax_backward", own_scores_gradient),
    ("softmax_backward", forward_mode),
    ("softmax_backward", lambda p, grad: torch._softmax_backward_data(grad, p, -1, p.dtype)),
    ("online_softmax", lambda s, v: (torch.softmax(torch.cat(s, -1), -1).unsqueeze(-1) * torch.cat(v, -2)).sum(-2)),
]


@pytest.mark.parametrize(("name", "answer"), FORBIDDEN, ids=[f"{i}-{name}" for i, (name, _) in enumerate(FORBIDDEN)])
def test_library_calls_that_are_the_answer_earn_nothing(name, answer):
    said = verdict(name, answer)
    assert (said.points, said.mistake) == (0, "forbidden_call")


def test_pictures_say_their_numbers():
    assert "0.125, 0.250, 0.625" in figures.from_scores_to_weights().alt
    assert "float32 from -87.3 to 88.7" in figures.where_exp_works().alt
    assert "I 0.377, 0.170, 0.153, 0.153, 0.146" in figures.before_and_after(TABLE, ["I", *"abcd"]).alt
    assert "0.4375, -0.125, -0.3125" in figures.push_and_pull().alt
    assert "ends at a distance of 103" in figures.log_of_softmax().alt
    jane = figures.three_axes(torch.tensor([[0.0, 3, 0], [0, 0, 3], [0, 2, 0]]), ["jane", "visits", "africa"])
    assert "rows sum to 1.08, 1.28, 0.64" in jane.alt
    sums = [text for axes in jane.figure.axes for text in axes.texts if text.get_weight() == "bold"]
    assert len(sums) == 6 and {text.get_text() for text in sums} == {"1.00"}
    scores = torch.tensor([-7.0847, -4.5398, 3.9887, 10.2379, 2.3206, -10.5434])
    life = "Life is short eat dessert first".split()
    drawn = figures.temperatures(blocks.softmax_with_temperature, blocks.entropy, scores, life)
    assert "0.02 at 1, 1.56 at 10" in drawn.alt and "steepest at 3.6; at most 1.79" in drawn.alt


@pytest.mark.parametrize("lift", [0.0, 3.0, 8.0])
def test_the_stream_arrives_at_the_softmax_of_all(lift):
    stream = explore.Stream()
    scores = stream.scores.clone()
    scores[6:9] += lift
    states = figures.running(scores, stream.values, 3)
    exact = float((torch.softmax(scores, 0) * stream.values).sum())
    assert len(states) == 4
    assert states[-1][2] / states[-1][1] == pytest.approx(exact, abs=1e-9)
    assert "After 4 of 4 blocks" in stream(4, lift).alt
    if lift == 8:  # what came before counts for less than 1%
        assert math.exp(states[1][0] - states[2][0]) * states[1][1] < 0.01 * states[2][1]


def test_the_loss_of_a_word_that_is_dragged():
    surprise = explore.Surprise()
    assert "visite has score 1.61, loss 0.470 and gradient -0.375" in surprise("visite", math.log(5)).alt
    assert "loss 2.079" in surprise("est", 0.0).alt
    assert "loss 0.0003" in surprise("visite", 9.2).alt and "loss 0.000 " not in surprise("visite", 10.0).alt
    assert math.log(50257) == pytest.approx(10.82, abs=5e-3)


def test_prediction_minus_truth():
    scores = torch.tensor([1.0, 2, 5], dtype=torch.float64).log()
    expected = torch.tensor([1 / 8, 1 / 4, -3 / 8], dtype=torch.float64)
    close(blocks.cross_entropy_backward(scores, torch.tensor(2)), expected)
    g = torch.tensor([0, 0, -8 / 5], dtype=torch.float64)
    close(blocks.softmax_backward(blocks.softmax(scores), g), expected)
    assert "visite -0.375" in figures.prediction_minus_truth().alt


def test_where_floats_end_and_slopes_fade():
    assert math.log(torch.finfo(torch.float32).max) == pytest.approx(88.7, abs=0.05)
    assert torch.tensor(12.0, dtype=torch.float16).exp().isinf()
    for dtype, more in ((torch.float16, 7), (torch.float32, 16)):  # subnormal numbers
        info = torch.finfo(dtype)
        assert math.log(info.tiny) - math.log(info.tiny * info.eps) == pytest.approx(more, abs=0.3)
    weights = [torch.softmax(torch.tensor(LIFE) / t, 0)[3].item() for t in (5, 10)]
    assert weights == [pytest.approx(0.63, abs=0.03), pytest.approx(0.38, abs=0.04)]


def test_what_the_translator_pays():
    def cost(**parts):
        return nats_a_word(translator.machine(**parts), unseen(LOSS_SENTENCES))

    def at(temperature):
        return lambda x, dim=-1: torch.softmax(x / temperature, dim)

    def over_queries(x, dim=-1):
        return torch.softmax(x, dim=-2)

    assert in_nats(cost(softmax=at(4.0))) == "0.068"
    assert in_nats(cost()) == "0.00016"
    assert exact(translator.machine(softmax=at(0.5)), unseen(100)) == 1
    assert exact(translator.machine(softmax=at(2.0)), unseen(100)) == 1
    assert math.isnan(cost(softmax=over_queries))
    sentence = "jane visits africa in september"
    assert translator.translate(translator.machine(softmax=over_queries), sentence) == ""

    def padding_counted(logits, targets, ignore_index):
        return F.cross_entropy(logits.mT, targets, ignore_index=ignore_index, reduction="none").mean()

    def padding_guessed(logits, targets, ignore_index):
        return F.cross_entropy(logits.mT, targets)

    def patched(logits, targets, ignore_index):
        mask = targets != ignore_index
        p = torch.softmax(logits[mask], -1).gather(-1, targets[mask][:, None])
        return -(p + 1e-9).log().mean()

    assert in_nats(cost(cross_entropy=padding_counted)) == "0.00009"
    assert in_nats(cost(cross_entropy=padding_guessed)) == "8.09"
    assert in_nats(cost(cross_entropy=patched)) == "0.00016"
