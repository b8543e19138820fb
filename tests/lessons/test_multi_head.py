"""Lesson 8: its blocks against torch's own attention, and the numbers that its text says."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from helpers import blocks, translator
from helpers.blocks import causal_mask, leaks_future
from helpers.lessons.multi_head import figures
from tests.draws import random
from tests.judged import stored_verdict
from tests.lessons.lesson_text import says

torch.set_num_threads(1)
HEADS, WIDTHS, SIZES = st.integers(1, 4), st.integers(1, 5), st.integers(1, 6)
SEEDS = st.integers(0, 10_000)
DTYPES = st.sampled_from([(torch.float32, 1e-6), (torch.float64, 1e-12)])
MASKS = st.sampled_from(["none", "full", "shared", "padding", "causal"])


def random_mask(seed, kind, B, H, t_q, t_k):
    """None or a mask of this kind in which every row sees something."""
    if kind == "none":
        return None
    if kind == "causal":
        return torch.ones(t_q, t_k, dtype=torch.bool).tril()
    shape = {"full": (B, H, t_q, t_k), "shared": (t_q, t_k), "padding": (B, 1, 1, t_k)}[kind]
    mask = random(seed, *shape) > 0
    mask[..., seed % t_k] = True
    return mask


def pair(seed, D, H, dtype):
    """torch's module with random numbers everywhere, and ours with the same."""
    theirs = nn.MultiheadAttention(D, H, batch_first=True, dtype=dtype)
    with torch.no_grad():
        for i, parameter in enumerate(theirs.parameters()):
            parameter.copy_(random(seed + i, *parameter.shape, dtype=dtype) / D**0.5)
    mine = blocks.MultiHeadAttention(D, H).to(dtype)
    blocks.load_from_torch(mine, theirs)
    return mine, theirs.eval()


@given(SEEDS, HEADS, WIDTHS, SIZES, SIZES, SIZES, MASKS, DTYPES, st.sampled_from(["self", "cross", "three"]))
def test_many_heads_are_torchs(seed, H, width, B, t_q, t_k, kind, precision, inputs):
    dtype, tolerance = precision
    D = H * width
    mine, theirs = pair(seed, D, H, dtype)
    query = random(seed, B, t_q, D, dtype=dtype)
    given_inputs = {"self": (query,), "cross": (query, random(seed + 1, B, t_k, D, dtype=dtype))}
    given_inputs["three"] = (*given_inputs["cross"], random(seed + 2, B, t_k, D, dtype=dtype))
    args = given_inputs[inputs]
    key, value = args[min(1, len(args) - 1)], args[-1]
    mask = random_mask(seed, kind, B, H, t_q, key.shape[1])
    blocked = None if mask is None else ~mask.expand(B, H, t_q, key.shape[1]).flatten(0, 1)
    expected, expected_weights = theirs(query, key, value, attn_mask=blocked, average_attn_weights=False)
    out, weights = mine(*args, mask=mask)
    torch.testing.assert_close(out, expected, atol=tolerance, rtol=tolerance)
    torch.testing.assert_close(weights, expected_weights, atol=tolerance, rtol=tolerance)


def test_blocks_keep_dtype_and_device():
    x = random(0, 2, 5, 12).bfloat16()
    mine = blocks.MultiHeadAttention(12, 3).bfloat16()
    out, weights = mine(x, mask=torch.ones(5, 5, dtype=torch.bool).tril())
    assert out.dtype == weights.dtype == torch.bfloat16
    exact = mine.double()(x.double(), mask=torch.ones(5, 5, dtype=torch.bool).tril())[0]
    torch.testing.assert_close(out.double(), exact, atol=0.05, rtol=0.05)
    devices = ["meta", *(["cuda"] if torch.cuda.is_available() else [])]
    for device in devices:
        moved = blocks.MultiHeadAttention(12, 3).to(device)
        x, mask = torch.ones(2, 5, 12, device=device), torch.ones(5, 5, dtype=torch.bool, device=device)
        out, weights = moved(x, mask=mask)
        assert out.device.type == weights.device.type == device and weights.shape == (2, 3, 5, 5)
        Q, K = torch.ones(2, 6, 5, 4, device=device), torch.ones(2, 3, 5, 4, device=device)
        assert blocks.grouped_query_attention(Q, K, K, mask).device.type == device
        assert blocks.head_importance(moved, x).shape == (3,)


def test_numbers_of_the_paper():
    numbers = figures.budget_numbers(512, 8, 512)
    assert numbers["parameters"] == 4 * (512**2 + 512) == 1_050_624
    assert numbers["width of a head"] == 64 and 512 * 512 + 512 == 262_656
    says("08_multi_head", "512 · 512 + 512 = 262,656")
    assert figures.budget_numbers(512, 1, 512)["products for scores"] == numbers["products for scores"]
    assert numbers["attention weights"] == 8 * figures.budget_numbers(512, 1, 512)["attention weights"]
    cache = 2 * 32 * 32 * 128 * 8192 * 2  # keys and values, heads, layers, width, tokens, bytes
    assert cache == 4 * 2**30 and cache * 8 // 32 == 2**30


def published_heads(x, W_q, W_k, W_v, W_o, num_heads, mask=None):
    """The lesson's bug: heads glued without moving their axis back."""
    Q, K, V = (blocks.split_heads(x @ W.T, num_heads) for W in (W_q, W_k, W_v))
    return blocks.attention(Q, K, V, mask)[0].reshape(x.shape) @ W_o.T


def test_the_published_heads_leak_and_ours_do_not():
    g = torch.Generator().manual_seed(0)
    four, tokens = torch.randn(4, 16, 16, generator=g) / 4, torch.randn(2, 8, 16, generator=g)
    for heads, leaks in ((published_heads, True), (blocks.fixed_heads, False)):
        assert leaks_future(lambda x, heads=heads: heads(x, *four, 2, causal_mask(8)), tokens) is leaks
    moved = figures.influence(lambda x: published_heads(x, *four, 2, causal_mask(8)), tokens[0]) > 1e-6
    assert moved[0].nonzero().flatten().tolist() == [0, 1]
    assert moved[3, 4:].all()
    assert moved[4].nonzero().flatten().tolist() == [0, 1]


def test_one_head_misses_half_of_a_difference():
    best = []
    for w in torch.linspace(0, 1, 21).tolist():  # the best linear guess of a - b from w a + (1 - w) b
        best.append(1 - (2 * w - 1) ** 2 / (2 * (w * w + (1 - w) ** 2)))
    assert min(best) == pytest.approx(0.5) and best[10] == pytest.approx(1.0)


def test_what_the_text_says_of_the_translator():
    whole, rows = figures.damage()
    assert whole < 0.0003
    assert rows[1][0] > 300 * whole and 0.05 < rows[1][0] < 0.07
    assert max(*rows[0], *rows[1][1:]) < 0.002
    whole, side_by_side, off = figures.damage_of_identity()
    assert side_by_side == pytest.approx(1.6, abs=0.05) and off == pytest.approx(0.7, abs=0.05)
    assert len(translator.french) == 194 and math.log(194) == pytest.approx(5.3, abs=0.05)


def test_what_the_text_says_of_its_heads():
    with_positions, without = figures.weight_by_distance(True), figures.weight_by_distance(False)
    assert [round(100 * with_positions[3, i].item()) for i in (2, 4)] == [47, 9]
    assert [round(100 * with_positions[0, i].item()) for i in (2, 4, 5)] == [10, 35, 27]
    assert 0.1 <= without.min() + 0.005 and without.max() < 0.2
    house = figures.encoder_weights("a clever teacher sees the white house")[1]
    found = [(0, 2), (1, 2), (4, 6), (5, 6)]
    assert [round(house[0, q, k].item(), 2) for q, k in found] == [0.98, 0.98, 0.98, 0.99]
    assert house[3, 3, 2] > 0.9
    jane = figures.encoder_weights("jane visits africa in september")[1, 3]
    assert [round(jane[i, i - 1].item(), 2) for i in (1, 2, 3)] == [0.92, 0.71, 0.8]


def test_pictures_say_their_numbers():
    assert "1 head 0.51" in figures.two_questions({"1 head": 0.51}).alt
    cut = figures.cut(torch.arange(12.0).view(2, 6), 2).alt
    assert "head 0 rows [[0, 1, 2], [6, 7, 8]]" in cut and "head 0 rows [[0, 1, 2], [3, 4, 5]]" in cut
    assert "weights (3, 4, 5, 5)" in figures.shapes(3, 5, 64, 4).alt
    assert "parameters 1,050,624" in figures.Budget()(8, 512).alt

    def unanswered(mine, theirs):
        raise NotImplementedError

    assert "not answered yet" in figures.transplant(unanswered, None, None)


def test_masks_of_queries_split_into_groups_are_tried():
    def five_axes(Q, K, V, mask=None):
        B, H, T, d = Q.shape
        if mask is not None and mask.dim() == 4:
            shape = (B, K.shape[1], -1, T, mask.shape[-1])
            mask = mask.reshape(shape) if mask.shape[1] == H else mask[:, :, None]
        Q = Q.reshape(B, K.shape[1], -1, T, d)
        return blocks.attention(Q, K[:, :, None], V[:, :, None], mask)[0].reshape(B, H, T, d)

    verdict = stored_verdict("08_multi_head", "grouped_query_attention", five_axes)
    assert [item.name for item in verdict.parts if not item.passed] == ["a mask"]
