"""Lesson 6: the sources' numbers from its blocks, its blocks against torch's own functions, and what it forbids."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

from helpers.authoring.blocks import load_blocks
from helpers.blocks import lesson_04, lesson_06
from helpers.checking.compare import difference
from helpers.checking.making import make_key
from helpers.checking.observe import Facts, observe_all
from helpers.checking.verdict import decide
from helpers.course import course
from helpers.explore import softmax as explore
from helpers.figures import softmax as figures
from tests.kill_rate import exercises

torch.set_num_threads(1)
LESSON = "06_softmax"
DTYPES = st.sampled_from([torch.float32, torch.float64])
LEADS = st.sampled_from([(), (2,), (3, 2)])
SEEDS = st.integers(0, 10_000)
SIZES = st.integers(1, 6)
TABLE = torch.tensor(
    [
        [1.00, 0.20, 0.10, 0.10, 0.05],
        [0.20, 1.00, 0.40, 0.30, 0.10],
        [0.10, 0.40, 1.00, 0.50, 0.20],
        [0.10, 0.30, 0.50, 1.00, 0.60],
        [0.05, 0.10, 0.20, 0.60, 1.00],
    ]
)


def random(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def close(actual, expected):
    """Equal in shape, dtype and, within the course's tolerance, value."""
    tolerance = 1e-5 if expected.dtype == torch.float32 else 1e-7
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


def gradient(f, x):
    x = x.clone().requires_grad_()
    y = f(x)
    (y * torch.arange(y.numel(), dtype=y.dtype).cos().reshape(y.shape)).sum().backward()
    return x.grad


def test_the_published_five_by_five_table():
    weights = lesson_06.softmax(TABLE)
    torch.testing.assert_close(weights[0], torch.tensor([0.377, 0.170, 0.153, 0.153, 0.146]), atol=6e-4, rtol=0)
    assert weights[1, 0].item() == pytest.approx(0.155, abs=6e-4)  # like -> I, although the scores are symmetric
    quarter = lesson_06.softmax(TABLE[0] / 4)
    torch.testing.assert_close(quarter, torch.tensor([0.238, 0.195, 0.190, 0.190, 0.188]), atol=6e-4, rtol=0)
    close(lesson_06.softmax(TABLE, dim=0), weights.T.contiguous())


def test_the_weights_of_is():
    torch.manual_seed(123)
    x = nn.Embedding(6, 16)(torch.tensor([0, 4, 5, 2, 1, 3])).detach()
    W_query, W_key = torch.rand(24, 16), torch.rand(24, 16)
    scores = (x @ W_key.T) @ (W_query @ x[1])
    expected = torch.tensor([0.0185, 0.0312, 0.1778, 0.6368, 0.1265, 0.0092])
    weights = lesson_06.softmax_with_temperature(scores, math.sqrt(24))
    torch.testing.assert_close(weights, expected, atol=6e-5, rtol=0)


def test_the_lectures_scores_masked_then_softmax():
    torch.manual_seed(1337)
    Wk, Wq, _ = (nn.Linear(32, 16, bias=False) for _ in "kqv")
    x = torch.randn(4, 8, 32)
    scores = (Wq(x) @ Wk(x).transpose(-2, -1)).masked_fill(torch.ones(8, 8).tril() == 0, -math.inf)
    weights = lesson_06.softmax(scores)
    assert weights.shape == (4, 8, 8)
    close(weights.sum(-1), torch.ones(4, 8))
    assert weights[0, 1, 0].item() == pytest.approx(0.9870, abs=6e-5)
    sums = lesson_06.softmax(scores, dim=-2)[0].sum(-1)
    assert sums[0].item() == pytest.approx(0.0278, abs=6e-5)  # the wrong axis: token 0 has hardly anything to give


def test_the_wrong_axis_leaks_the_future():
    scores = random(3, 5, 5).masked_fill(torch.ones(5, 5).tril() == 0, -math.inf)
    changed = scores.clone()
    changed[4] += torch.tensor([3.0, 0, 0, 0, 0])  # the last query changes its mind
    assert torch.equal(lesson_06.softmax(scores)[:4], lesson_06.softmax(changed)[:4])
    assert not torch.allclose(lesson_06.softmax(scores, dim=-2)[0], lesson_06.softmax(changed, dim=-2)[0])


def test_numbers_on_paper():
    scores = torch.tensor([1.0, 2, 5], dtype=torch.float64).log()
    p = lesson_06.softmax(scores)
    close(p, torch.tensor([1 / 8, 1 / 4, 5 / 8], dtype=torch.float64))
    assert lesson_06.entropy(p).item() == pytest.approx(0.900, abs=6e-4)
    loss = lesson_06.cross_entropy(scores.expand(3, 3), torch.tensor([2, 0, -100]))
    assert loss.item() == pytest.approx(1.275, abs=6e-4)
    back = lesson_06.softmax_backward(p, torch.tensor([4.0, 0, 0], dtype=torch.float64))
    close(back, torch.tensor([7 / 16, -1 / 8, -5 / 16], dtype=torch.float64))
    values = torch.tensor([[8.0], [0], [16]], dtype=torch.float64)
    streamed = lesson_06.streaming_softmax([scores[:2], scores[2:]], [values[:2], values[2:]])
    close(streamed, torch.tensor([11.0], dtype=torch.float64))
    hand = lesson_06.softmax(torch.tensor([[0.0, 3, 0], [0, 0, 3], [0, 2, 0]]))
    assert [round(hand[i, j].item(), 2) for i, j in ((0, 1), (1, 2), (2, 1))] == [0.91, 0.91, 0.79]


@given(SEEDS, st.lists(SIZES, min_size=1, max_size=4), DTYPES, st.data())
@settings(max_examples=80, deadline=None)
def test_softmax_and_log_softmax_are_torchs(seed, shape, dtype, data):
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = 3 * random(seed, *shape, dtype=dtype)
    close(lesson_06.softmax(x, dim), torch.softmax(x, dim))
    close(lesson_06.log_softmax(x, dim=dim), torch.log_softmax(x, dim))
    close(lesson_06.softmax(x), torch.softmax(x, -1))


@given(SEEDS, LEADS, SIZES, st.sampled_from([-9900.0, 0.0, 9900.0]))
@settings(max_examples=60, deadline=None)
def test_large_and_blocked_scores_with_clean_gradients(seed, lead, n, height):
    x = 30 * random(seed, *lead, n) + height
    blocked = torch.rand(*lead, n, generator=torch.Generator().manual_seed(seed)) < 0.4
    assume(not blocked.all(-1).any())
    x = x.masked_fill(blocked, -math.inf)
    close(lesson_06.softmax(x), torch.softmax(x, -1))
    close(lesson_06.log_softmax(x), torch.log_softmax(x, -1))
    ours, torchs = gradient(lesson_06.softmax, x), gradient(lambda x: torch.softmax(x, -1), x)
    torch.testing.assert_close(ours, torchs, atol=1e-9, rtol=1e-9)


@given(SEEDS, LEADS, DTYPES, st.integers(2, 6), st.sampled_from([-100, -1, 0, 1, 255]), st.sampled_from([1.0, 3e3]))
@settings(max_examples=80, deadline=None)
def test_cross_entropy_is_torchs(seed, lead, dtype, v, ignore_index, scale):
    logits = scale * random(seed, *lead, v, dtype=torch.float64).clamp(-3, 3)
    generator = torch.Generator().manual_seed(seed)
    targets = torch.randint(0, v, lead, generator=generator)
    targets = torch.where(torch.rand(lead, generator=generator) < 0.3, ignore_index, targets)
    assume((targets != ignore_index).any())
    logits = logits.to(dtype)

    def torchs(logits):
        return F.cross_entropy(logits.reshape(-1, v), targets.reshape(-1), ignore_index=ignore_index)

    def ours(logits):
        return lesson_06.cross_entropy(logits, targets, ignore_index)

    close(ours(logits), torchs(logits))
    torch.testing.assert_close(gradient(ours, logits), gradient(torchs, logits), atol=1e-5, rtol=1e-5)


@given(SEEDS, LEADS, DTYPES, SIZES)
@settings(max_examples=50, deadline=None)
def test_entropy_is_torchs_also_behind_a_mask(seed, lead, dtype, n):
    x = random(seed, *lead, n + 1, dtype=dtype)
    x[..., 0] = -math.inf
    p = torch.softmax(x, -1)
    close(lesson_06.entropy(p), torch.special.entr(p).sum(-1))
    q = torch.softmax(random(seed, *lead, n), -1)
    close(gradient(lesson_06.entropy, q), gradient(lambda q: torch.special.entr(q).sum(-1), q))
    assert gradient(lesson_06.entropy, p).isfinite().all()


@given(SEEDS, LEADS, DTYPES, SIZES)
@settings(max_examples=50, deadline=None)
def test_softmax_backward_is_autograds_and_lesson_4s_table(seed, lead, dtype, n):
    s, g = 2 * random(seed, *lead, n, dtype=dtype), random(seed + 1, *lead, n, dtype=dtype)
    s.requires_grad_()
    p = torch.softmax(s, -1)
    (exact,) = torch.autograd.grad(p, s, g)
    p = p.detach()
    close(lesson_06.softmax_backward(p, g), exact)
    close(lesson_06.softmax_backward(p, g), torch.einsum("...i,...ij->...j", g, lesson_04.softmax_jacobian(p)))


@given(SEEDS, LEADS, st.sampled_from([0.01, 0.5, 1, 3, 1e4]), SIZES)
@settings(max_examples=50, deadline=None)
def test_temperature(seed, lead, temperature, n):
    x = 20 * random(seed, *lead, n)
    close(lesson_06.softmax_with_temperature(x, temperature), torch.softmax(x / temperature, -1))
    for wrong in (0, 0.0, -temperature):
        with pytest.raises(ValueError, match="temperature"):
            lesson_06.softmax_with_temperature(x, wrong)


@given(SEEDS, LEADS, DTYPES, st.lists(SIZES, min_size=1, max_size=5), st.booleans())
@settings(max_examples=60, deadline=None)
def test_streaming_softmax_is_one_softmax(seed, lead, dtype, sizes, far_apart):
    scores = [random(seed + i, *lead, n) for i, n in enumerate(sizes)]
    if far_apart:  # the first block very low, the others higher and higher
        scores = [s - 9990 + 4000 * i for i, s in enumerate(scores)]
        dtype = torch.float64
    scores = [s.to(dtype) for s in scores]
    values = [random(seed + 50 + i, *lead, n, 3, dtype=dtype) for i, n in enumerate(sizes)]
    weights = torch.softmax(torch.cat(scores, -1), -1)
    close(lesson_06.streaming_softmax(scores, values), (weights.unsqueeze(-1) * torch.cat(values, -2)).sum(-2))


@given(SEEDS, LEADS, DTYPES, SIZES, SIZES, SIZES, SIZES)
@settings(max_examples=50, deadline=None)
def test_fixed_head_weights_are_those_inside_torch(seed, lead, dtype, t_q, t_k, h, d):
    q, k = random(seed, *lead, t_q, h, d, dtype=dtype), random(seed + 1, *lead, t_k, h, d, dtype=dtype)
    values = torch.eye(t_k, dtype=dtype).expand(*lead, h, t_k, t_k)  # attention to unit vectors gives the weights back
    weights = F.scaled_dot_product_attention(q.transpose(-3, -2), k.transpose(-3, -2), values)
    close(lesson_06.fixed_head_weights(q, k), weights.movedim(-3, -1).contiguous())


def verdict(name, answer):
    """What the check says of an answer, on the exercise's own cases."""
    exercise = next(item for item in exercises(LESSON) if item.name == name)
    reference = getattr(load_blocks(course(), course().lesson(LESSON)), name)
    key = make_key(LESSON, exercise, 100, False, reference, seed=7)
    return decide(key, observe_all(answer, key.cases, Facts(name, "99_test", key.facts.forbidden, 5.0)))


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


FORBIDDEN = [
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
    ("streaming_softmax", lambda s, v: (torch.softmax(torch.cat(s, -1), -1).unsqueeze(-1) * torch.cat(v, -2)).sum(-2)),
]


@pytest.mark.parametrize(("name", "answer"), FORBIDDEN, ids=[f"{i}-{name}" for i, (name, _) in enumerate(FORBIDDEN)])
def test_library_calls_that_are_the_answer_earn_nothing(name, answer):
    said = verdict(name, answer)
    assert (said.points, said.mistake) == (0, "forbidden_call")


def test_einsum_is_no_autograd():
    said = verdict("softmax_backward", lambda p, g: p * (g - torch.einsum("...i,...i->...", p, g).unsqueeze(-1)))
    assert said.passed


def test_minus_infinity_is_met_only_by_itself():
    expected = torch.tensor([-math.inf, 0.0])
    assert difference(expected, expected.clone()) is None
    assert difference(expected, torch.tensor([-1e9, 0.0])) is not None
    assert difference(expected, torch.tensor([math.inf, 0.0])) is not None
    assert difference(-math.inf, -1e300) is not None


def test_pictures_say_their_numbers():
    assert "0.125, 0.250, 0.625" in figures.from_scores_to_shares().alt
    assert "float32 from -87 to 89" in figures.where_exp_works().alt
    assert "I 0.377, 0.170, 0.153, 0.153, 0.146" in figures.before_and_after(TABLE, ["I", *"abcd"]).alt
    assert "0.4375, -0.125, -0.3125" in figures.push_and_pull().alt
    assert "ends at a distance of 103" in figures.log_of_softmax().alt
    jane = figures.three_axes(torch.tensor([[0.0, 3, 0], [0, 0, 3], [0, 2, 0]]), ["jane", "visits", "africa"])
    assert "rows add up to 1.08, 1.28, 0.64" in jane.alt
    scores = torch.tensor([-7.0847, -4.5398, 3.9887, 10.2379, 2.3206, -10.5434])
    life = "Life is short eat dessert first".split()
    assert "eat 0.637" in explore.Temperature(scores, life)(24**0.5).alt


@pytest.mark.parametrize("block", [1, 2, 3, 4, 6, 12])
def test_the_stream_arrives_at_the_softmax_of_all(block):
    generator = torch.Generator().manual_seed(1)
    scores, values = torch.randn(12, generator=generator), torch.randn(12, generator=generator)
    states = figures.running(scores, values, block)
    assert len(states) == 12 // block
    assert states[-1][2] == pytest.approx(float((torch.softmax(scores, 0) * values).sum()), abs=1e-5)
    assert f"After {12 // block} of {12 // block} blocks" in explore.draw_stream(block, 12).alt
