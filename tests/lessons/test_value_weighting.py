"""Lesson 7: the sources' numbers from its blocks, and its blocks against torch's own functions."""

import random as random_numbers

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from helpers import blocks, translator
from helpers.checking.rendering import as_text
from helpers.checking.tensor_memory import largest_tensor, tensors_alive
from helpers.checking.verdict import RESERVED
from helpers.corpus import lexicon, sentence_pairs
from helpers.lessons.value_weighting import figures
from helpers.translator import evaluation
from tests.judged import verdict_of

torch.set_num_threads(1)
LESSON = "07_value_weighting"
SIZES = st.integers(1, 6)
DTYPES = st.sampled_from([torch.float32, torch.float64])
LEADS = st.sampled_from([(), (2,), (3, 2)])
SEEDS = st.integers(0, 10_000)
# How a mask is cut down before it broadcasts: all axes, one for all of the batch, keys only, one row for all queries.
MASKS = st.sampled_from(["none", "full", "shared", "keys", "one row"])
TOKENS = ["Life", "is", "short", "eat", "dessert", "first"]


def random(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def close(actual, expected):
    """Equal in shape, dtype and, within the course's tolerance, value."""
    tolerance = 1e-5 if expected.dtype == torch.float32 else 1e-7
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


def random_mask(seed, kind, lead, t_q, t_k):
    """None or a mask of this kind in which every row sees something."""
    if kind == "none":
        return None
    shape = {"full": (*lead, t_q, t_k), "shared": (t_q, t_k), "keys": (t_k,), "one row": (*lead, 1, t_k)}[kind]
    mask = random(seed, *shape) > 0
    mask[..., seed % t_k] = True
    return mask


def life_is_short():
    torch.manual_seed(123)
    x = nn.Embedding(6, 16)(torch.tensor([0, 4, 5, 2, 1, 3])).detach()
    W_query, W_key, W_value = torch.rand(24, 16), torch.rand(24, 16), torch.rand(28, 16)
    return x @ W_query.T, x @ W_key.T, x @ W_value.T


def test_the_context_vector_of_is():
    Q, K, V = life_is_short()
    expected_scores = torch.tensor([-7.0847, -4.5398, 3.9887, 10.2379, 2.3206, -10.5434])
    torch.testing.assert_close(K @ Q[1], expected_scores, atol=6e-5, rtol=0)
    out, weights = blocks.attention(Q, K, V)
    assert Q[1].shape == (24,) and V.shape == (6, 28)
    expected_weights = torch.tensor([0.0185, 0.0312, 0.1778, 0.6368, 0.1265, 0.0092])
    torch.testing.assert_close(weights[1], expected_weights, atol=6e-5, rtol=0)
    context = sum(float(w) * v for w, v in zip(expected_weights, V, strict=True))
    torch.testing.assert_close(out[1], context, atol=5e-4, rtol=0)
    first = torch.tensor([-0.9495, -1.4345, -2.0504, -0.3737])
    torch.testing.assert_close(out[1, :4], first, atol=6e-5, rtol=0)


def test_what_the_context_vector_accumulates():
    Q, K, V = life_is_short()
    out, weights = blocks.attention(Q, K, V)
    assert ((out >= V.amin(0) - 1e-6) & (out <= V.amax(0) + 1e-6)).all()
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    close(blocks.attention(Q, K[order], V[order])[0], out)
    close(torch.linalg.lstsq(V.T, out[1, :, None]).solution[:, 0], weights[1])


def test_one_head_of_the_first_source():
    torch.manual_seed(1337)
    head = blocks.AttentionHead(32, 16)
    x = torch.randn(4, 8, 32)
    causal = torch.ones(8, 8, dtype=torch.bool).tril()
    out = head(x, causal)
    assert out.shape == (4, 8, 16)
    assert sum(p.numel() for p in head.parameters()) == 1536
    close(out[:, 0], head.W_v(x)[:, 0])  # the first token sees only itself
    later = x.clone()
    later[:, 5:] += 1
    assert torch.equal(head(later, causal)[:, :5], out[:, :5])


def test_numbers_on_paper():
    V = torch.tensor([[2.0, 0, 0], [0, 1, 1], [0, 0, 4]])
    assert blocks.weighted_values(torch.tensor([[0.25, 0.25, 0.5]]), V).tolist() == [[0.5, 0.25, 2.25]]
    plain = blocks.attention(torch.zeros(4, 6), random(0, 3, 6).float(), torch.tensor([[1.0, 0], [0, 2], [2, 4]]))
    close(plain[0], torch.tensor([[1.0, 2.0]] * 4))
    query, keys = torch.tensor([2.0, 0, 1]), torch.tensor([[3.0, 0, 0], [0, 4, 0], [2, 0, 3]])
    minutes = torch.tensor([[10.0], [60], [20]])
    assert blocks.soft_lookup(query, keys, minutes).item() == pytest.approx(17.34, abs=0.005)
    assert blocks.soft_lookup(query, keys, minutes, 0.01).item() == pytest.approx(20)
    bank, river = torch.tensor([1.0, 1.0]), torch.tensor([3.0, 0.0])
    before, after = torch.stack([bank, river]), torch.stack([0.5 * (bank + river), 0.9 * river + 0.1 * bank])
    assert blocks.context_shift(before, after).tolist() == pytest.approx([0.1425, 0.0006], abs=5e-5)
    q, k, v = torch.zeros(1, 1), torch.tensor([[1.0], [3]]), torch.tensor([[0.0], [4]])
    dQ, dK, dV = blocks.attention_backward(q, k, v, torch.ones(1, 1))
    assert (dQ.tolist(), dK.tolist(), dV.tolist()) == ([[2.0]], [[0.0], [0.0]], [[0.5], [0.5]])
    scores, numbers = torch.tensor([[0.0], [1], [2]]), torch.tensor([[10.0], [20], [30]])
    assert blocks.tiled_attention(torch.ones(1, 1), scores, numbers, 2).item() == pytest.approx(25.75, abs=0.005)


def test_equal_values_stay_as_they_are():
    x = random(0, 2, 5, 8)
    x[..., -1] = 1
    W_v = torch.zeros(3, 8, dtype=torch.float64)
    W_v[:, -1] = 1
    close(blocks.fixed_head(x, random(1, 4, 8), random(2, 4, 8), W_v), torch.ones(2, 5, 3, dtype=torch.float64))


@given(SEEDS, LEADS, DTYPES, SIZES, SIZES, SIZES, SIZES, MASKS)
def test_attention_is_torchs(seed, lead, dtype, t_q, t_k, d_k, d_v, kind):
    Q, K = random(seed, *lead, t_q, d_k, dtype=dtype), random(seed + 1, *lead, t_k, d_k, dtype=dtype)
    V = random(seed + 2, *lead, t_k, d_v, dtype=dtype)
    mask = random_mask(seed, kind, lead, t_q, t_k)
    out, weights = blocks.attention(Q, K, V, mask)
    full = None if mask is None else mask.expand(*lead, t_q, t_k)
    close(out, F.scaled_dot_product_attention(Q, K, V, full))
    unit = torch.eye(t_k, dtype=dtype).expand(*lead, t_k, t_k)  # attention to unit vectors gives the weights back
    close(weights, F.scaled_dot_product_attention(Q, K, unit, full))


@given(SEEDS, LEADS, DTYPES, SIZES, SIZES)
def test_rows_that_see_nothing_are_zero_and_pass_no_nan(seed, lead, dtype, t_q, t_k):
    Q, K, V = (random(seed + i, *lead, t, 4, dtype=dtype).requires_grad_() for i, t in enumerate((t_q, t_k, t_k)))
    mask = random(seed, t_q, t_k) > 0
    mask[seed % t_q] = False
    out, weights = blocks.attention(Q, K, V, mask)
    assert not out[..., seed % t_q, :].any() and not weights[..., seed % t_q, :].any()
    (out.sum() + (weights * weights).sum()).backward()
    assert all(t.grad.isfinite().all() for t in (Q, K, V))


@given(SEEDS, LEADS, DTYPES, SIZES, SIZES, SIZES, MASKS)
def test_a_head_is_torchs_attention_of_three_projections(seed, lead, dtype, t, d, d_head, kind):
    torch.manual_seed(seed)
    head = blocks.AttentionHead(d, d_head).to(dtype)
    x = random(seed, *lead, t, d, dtype=dtype)
    mask = random_mask(seed, kind, lead, t, t)
    q, k, v = (x @ layer.weight.T for layer in (head.W_q, head.W_k, head.W_v))
    full = None if mask is None else mask.expand(*lead, t, t)
    expected = F.scaled_dot_product_attention(q, k, v, full)
    close(head(x, mask), expected)
    if mask is None:
        close(blocks.fixed_head(x, head.W_q.weight, head.W_k.weight, head.W_v.weight), expected)


@given(SEEDS, LEADS, DTYPES, SIZES, SIZES)
def test_context_shift_is_torchs_cosine(seed, lead, dtype, t, d):
    before, after = random(seed, *lead, t, d, dtype=dtype), random(seed + 1, *lead, t, d, dtype=dtype)
    before[..., 0, :] = 0
    expected = 1 - F.cosine_similarity(before, after, dim=-1)
    close(blocks.context_shift(before, after), expected)
    assert (blocks.context_shift(before, after)[..., 0] == 1).all()


@given(SEEDS, DTYPES, SIZES, SIZES, SIZES, st.sampled_from([0.25, 1.0, 4.0]))
def test_soft_lookup_is_attention_at_another_temperature(seed, dtype, n, d, e, temperature):
    query, keys = random(seed, d, dtype=dtype), random(seed + 1, n, d, dtype=dtype)
    values = random(seed + 2, n, e, dtype=dtype)
    expected = F.scaled_dot_product_attention(query[None], keys, values, scale=1 / temperature)[0]
    close(blocks.soft_lookup(query, keys, values, temperature), expected)


@given(SEEDS, LEADS, DTYPES, SIZES, SIZES, SIZES, SIZES)
def test_backward_is_autograds(seed, lead, dtype, t_q, t_k, d_k, d_v):
    Q, K = random(seed, *lead, t_q, d_k, dtype=dtype), random(seed + 1, *lead, t_k, d_k, dtype=dtype)
    V, grad_out = random(seed + 2, *lead, t_k, d_v, dtype=dtype), random(seed + 3, *lead, t_q, d_v, dtype=dtype)
    leaves = [t.clone().requires_grad_() for t in (Q, K, V)]
    expected = torch.autograd.grad(F.scaled_dot_product_attention(*leaves), leaves, grad_out)
    for found, exact in zip(blocks.attention_backward(Q, K, V, grad_out), expected, strict=True):
        close(found, exact)


@given(SEEDS, LEADS, DTYPES, SIZES, st.integers(1, 9), SIZES, SIZES, st.integers(1, 10))
def test_tiles_change_nothing(seed, lead, dtype, t_q, t_k, d_k, d_v, block):
    Q, K = random(seed, *lead, t_q, d_k, dtype=dtype), random(seed + 1, *lead, t_k, d_k, dtype=dtype)
    V = random(seed + 2, *lead, t_k, d_v, dtype=dtype)
    close(blocks.tiled_attention(Q, K, V, block), F.scaled_dot_product_attention(Q, K, V))


def numbers_held(f, T):
    return largest_tensor(f, random(0, T, 8), random(1, T, 8), random(2, T, 8))[1]


def test_memory_of_tiles_is_linear_and_of_the_whole_quadratic():
    lengths = (64, 128, 256, 512)
    tiled = [numbers_held(lambda Q, K, V: blocks.tiled_attention(Q, K, V, 16), T) for T in lengths]
    whole = [numbers_held(blocks.attention, T) for T in lengths]
    assert tiled == [16 * T for T in lengths]
    assert whole == [T * T for T in lengths]


def test_an_expanded_view_costs_no_memory():
    assert largest_tensor(lambda x: x.expand(1000, 3), torch.ones(3))[1] == 3
    assert largest_tensor(lambda x: x.expand(1000, 3) + 0, torch.ones(3))[1] == 3000


def test_pictures_say_their_numbers():
    Q, K, V = life_is_short()
    weights = blocks.attention(Q, K, V)[1]
    alt = figures.context_range(weights[1], V, TOKENS).alt
    assert "eat 0.6368" in alt and "in 28 of 28 channels" in alt
    parts = torch.tensor([0.25, 0.25, 0.5]), torch.tensor([[2.0, 0, 0], [0, 1, 1], [0, 0, 4]])
    alt = figures.bag_of_words(*parts, figures.JANE, ["person", "action", "location"]).alt
    assert "person 0.5, action 0.25, location 2.25" in alt
    assert "output (4, 8, 16)" in figures.head_shapes(4, 8, 32, 16).alt
    assert "The blend lasts 17.3 minutes" in figures.Search()(1.0, 2.0, 1.0).alt
    assert "output 1.70" in figures.pressure().alt
    assert "inside the triangle" in figures.Triangle()(jane=0.0, visits=0.0, africa=0.0).alt


def test_answers_to_the_explorers():
    corner = torch.softmax(torch.tensor([6.0, -6, -6]).double(), dim=0)
    assert corner[0].item() == pytest.approx(0.99999, abs=5e-6)
    assert (
        "Hanoi 0.989" in figures.Search()(0.22, 2.0, 1.0).alt
        and "beginners 0.200" in figures.Search()(9.4, 2.0, 1.0).alt
    )
    alt = figures.Tiles()(0.6, 4, 4).alt
    assert "Tile 22 of 36" in alt and "16 scores instead of 576, and 24 running values" in alt


def test_every_step_of_the_tiles_explorer_can_be_drawn():
    tiles = figures.Tiles()
    for queries in (4, 6, 8, 12, 24):
        for keys in (4, 24):
            alts = [tiles(step / 50, queries, keys).alt for step in range(51)]
            assert (
                "Tile 1 of" in alts[0]
                and f"Tile {24 // queries * 24 // keys} of {24 // queries * 24 // keys}" in alts[-1]
            )


# ---------------------------------------------------------------- in the translator


def read_by_a_head(sentence, head):
    x, numbers = figures.inside_the_translator(sentence, head)
    mine = blocks.AttentionHead(64, 16)
    mine.load_state_dict(numbers)
    with torch.no_grad():
        return figures.head_weights(numbers, x), mine.W_v(x), mine(x), (numbers, x)


def test_one_head_looks_at_the_word_before():
    weights, values, found, (numbers, x) = read_by_a_head("jane visits africa in september", 3)
    shown = [weights[i, j].item() for i, j in ((0, 0), (1, 0), (1, 1), (2, 1), (3, 2))]
    assert shown == pytest.approx([0.99, 0.92, 0.08, 0.71, 0.80], abs=0.005)
    close(found, weights @ values)
    alt = figures.trained_head(numbers, x, found, "jane visits africa in september".split()).alt
    assert "visits attends to jane (0.92)" in alt


def test_the_other_head_tells_le_from_la():
    sentence = "the white dog forgets the green door"
    weights, values, found, (numbers, x) = read_by_a_head(sentence, 0)
    moved = blocks.context_shift(values, found)
    assert moved.tolist() == pytest.approx([0.76, 1.19, 0.01, 0.08, 1.13, 0.62, 0.00], abs=0.006)
    assert "dog 0.01" in figures.shifts(moved, numbers, x, sentence.split()).alt
    assert translator.translate(translator.machine(), sentence) == "le chien blanc oublie la porte verte"
    for noun, after in (("door", -0.43), ("umbrella", 0.72)):
        _, values, found, _ = read_by_a_head(f"the white dog forgets the green {noun}", 0)
        assert F.cosine_similarity(found[0], found[4], dim=0).item() == pytest.approx(after, abs=0.006)
        assert F.cosine_similarity(values[0], values[4], dim=0).item() == pytest.approx(0.55, abs=0.025)


@pytest.mark.full
def test_articles_and_adjectives_move_and_nouns_stay():
    kinds = {"article": {*lexicon.DETERMINERS, "an"}, "adjective": set(lexicon.ADJECTIVES), "noun": set(lexicon.NOUNS)}
    found = {kind: [] for kind in kinds}
    for pair in sentence_pairs(300, random_numbers.Random(evaluation.UNSEEN_SEED), unseen=True):
        _, values, outputs, _ = read_by_a_head(pair.english, 0)
        for word, moved in zip(pair.english.split(), blocks.context_shift(values, outputs).tolist(), strict=True):
            for kind, members in kinds.items():
                found[kind] += [moved] if word in members else []
    means = [sum(moved) / len(moved) for moved in found.values()]
    assert means == pytest.approx([0.96, 0.79, 0.02], abs=0.006)


def published_attention(Q, K, V, mask=None):
    scores = Q @ K.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1) * Q.shape[-1] ** -0.5
    return weights @ V, weights


def test_what_the_published_bug_costs():
    batch = evaluation.unseen(evaluation.LOSS_SENTENCES)
    deaf = translator.machine(attention=published_attention)
    assert evaluation.nats_a_word(deaf, batch) == pytest.approx(2.6, abs=0.05) and evaluation.exact(deaf, batch) == 0
    mine = translator.machine(attention=blocks.attention, AttentionHead=blocks.AttentionHead)
    assert evaluation.nats_a_word(mine, batch) < 0.001


# ---------------------------------------------------------------- wrong answers that must not pass


def judged(name, answer, seed=0):
    return verdict_of(LESSON, name, answer, seed)


def filled(low, again):
    """attention that fills blocked scores with `low`, and sets blocked weights to zero again or not."""

    def attention(Q, K, V, mask=None):
        scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        weights = torch.softmax(scores if mask is None else scores.masked_fill(~mask, low), dim=-1)
        weights = weights.masked_fill(~mask, 0.0) if mask is not None and again else weights
        return weights @ V, weights

    return attention


class WithDropout(blocks.AttentionHead):
    def forward(self, x, mask=None):
        return F.dropout(super().forward(x, mask), 0.1, self.training)


class WithATableOfPlaces(blocks.AttentionHead):
    """A buffer that fixes the number of tokens: fine up to 256."""

    def __init__(self, d_model, d_head):
        super().__init__(d_model, d_head)
        self.register_buffer("everybody", torch.ones(256, 256, dtype=torch.bool))

    def forward(self, x, mask=None):
        T = x.shape[-2]
        everybody = self.everybody[:T, :T].expand(T, T)
        return super().forward(x, everybody if mask is None else mask & everybody)


def filled_before_the_scale(Q, K, V, mask=None):
    """Blocked scores get float16's lowest number and are divided then: with wide keys that is not low enough."""
    scores = Q @ K.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(torch.float16).min)
    weights = torch.softmax(scores / Q.shape[-1] ** 0.5, dim=-1)
    weights = weights if mask is None else weights * mask
    return weights @ V, weights


def nan_in_the_weights(Q, K, V, mask=None):
    scores = Q @ K.mT / Q.shape[-1] ** 0.5
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return (weights @ V).nan_to_num(), weights


def test_it_is_said_which_output_has_nan_and_what_its_columns_are():
    assert "output at [1]: expected all zeros in row" in as_text(judged("attention", nan_in_the_weights))

    def turned_over(Q, K, V, mask=None):
        out, weights = blocks.attention(Q, K, V, mask)
        return out.mT, weights

    turned = as_text(judged("attention", turned_over))
    assert "one column for each of the 3 channels" in turned and "keys" not in turned


def shift_with(epsilon, hold=False):
    def context_shift(before, after):
        lengths = before.norm(dim=-1) * after.norm(dim=-1)
        return 1 - (before * after).sum(dim=-1) / (lengths.clamp(min=epsilon) if hold else lengths + epsilon)

    return context_shift


def shift_without_nan(before, after):
    cosines = (before * after).sum(dim=-1) / (before.norm(dim=-1) * after.norm(dim=-1))
    return 1 - cosines.nan_to_num(0.0)


def shift_by_where(before, after):
    squares = (before * before).sum(dim=-1) * (after * after).sum(dim=-1)
    cosines = (before * after).sum(dim=-1) / squares.sqrt()
    return 1 - torch.where(squares > 0, cosines, torch.zeros_like(cosines))


def squeezed(f):
    def answer(*args, **kwargs):
        out = f(*args, **kwargs)
        return tuple(t.squeeze() for t in out) if isinstance(out, tuple) else out.squeeze()

    return answer


WRONG = {
    "weighted_values": [squeezed(blocks.weighted_values), lambda weights, V: weights @ V.float()],
    "attention": [
        filled(-1e4, False),
        filled(-1e4, True),
        filled(-1e3, False),
        filled(-1e3, True),
        filled_before_the_scale,
        squeezed(blocks.attention),
        lambda Q, K, V, mask=None: (F.scaled_dot_product_attention(Q, K, V, mask), None),
    ],
    "AttentionHead": [WithDropout, WithATableOfPlaces],
    "context_shift": [
        shift_with(1e-8),
        shift_with(1e-2),
        shift_with(1e-2, hold=True),
        shift_with(1e-5, hold=True),
        shift_without_nan,
        shift_by_where,
        squeezed(blocks.context_shift),
    ],
    "attention_backward": [squeezed(blocks.attention_backward)],
}


@pytest.mark.parametrize(("name", "number"), [(name, k) for name, found in WRONG.items() for k in range(len(found))])
def test_a_wrong_answer_does_not_pass(name, number):
    verdict = judged(name, WRONG[name][number])
    assert not verdict.passed
    # Some of them are known mistakes, and are called so; none gets a name that is not its own.
    own = {"epsilon_on_the_product", None}
    assert verdict.mistake in own or verdict.mistake in RESERVED


def rows_alone(Q, K, V, block):
    rows = [blocks.attention(q, K, V)[0] for q in Q.split(1, dim=-2)]
    return torch.cat(rows, dim=-2)


def blocks_of_64(Q, K, V, block):
    return blocks.tiled_attention(Q, K, V, 64)


def all_blocks_in_a_list(Q, K, V, block):
    scores = [Q @ k.mT / Q.shape[-1] ** 0.5 for k in K.split(block, dim=-2)]
    peak = torch.stack([s.amax(dim=-1, keepdim=True) for s in scores]).amax(dim=0)
    out = total = 0.0
    for s, v in zip(scores, V.split(block, dim=-2), strict=True):
        out, total = out + (s - peak).exp() @ v, total + (s - peak).exp().sum(dim=-1, keepdim=True)
    return out / total


@pytest.mark.parametrize(
    "answer",
    [lambda Q, K, V, block: blocks.attention(Q, K, V)[0], rows_alone, blocks_of_64, all_blocks_in_a_list],
    ids=["plain", "rows alone", "blocks of 64", "all blocks in a list"],
)
def test_without_tiles_there_is_hardly_a_point(answer):
    verdict = judged("tiled_attention", answer)
    assert not verdict.passed and verdict.points <= 25, verdict.points


def test_tensors_that_live_at_one_time():
    def two_then_one(x):
        a, b = x + 1, x + 2  # 20 numbers live
        c = a + b  # 30
        del a, b
        return c + c[:2].sum()  # and 20 again, with the sum

    _, seen = tensors_alive(two_then_one, torch.ones(10), long=10)
    assert (seen.largest, seen.most, seen.long) == (10, 30, 40)


def test_the_memory_figure_leaves_out_what_is_not_answered():
    def unanswered(Q, K, V):
        raise NotImplementedError

    alt = figures.memory({"whole": lambda Q, K, V: blocks.attention(Q, K, V)[0], "mine": unanswered}, (16, 32)).alt
    assert "mine is not answered yet" in alt
    assert "whole: 256 entries at T = 16, 1,024 at T = 32" in alt


def test_gradients_of_self_attention_must_be_transposed_too():
    def attention_backward(Q, K, V, grad_out):
        if Q.shape[-2] != K.shape[-2]:
            return blocks.attention_backward(Q, K, V, grad_out)
        scale = Q.shape[-1] ** -0.5
        weights = torch.softmax(Q @ K.mT * scale, dim=-1)
        dS = blocks.softmax_backward(weights, grad_out @ V.mT) * scale
        return dS @ K, dS @ Q, weights @ grad_out

    verdict = judged("attention_backward", attention_backward)
    assert not verdict.passed and verdict.mistake is None


def test_a_list_of_the_results_of_all_blocks_is_refused():
    def tiled_attention(Q, K, V, block):
        parts = []
        for start in range(0, K.shape[-2], block):
            scores = Q @ K[..., start : start + block, :].mT / Q.shape[-1] ** 0.5
            top = scores.amax(-1, keepdim=True)
            powers = torch.exp(scores - top)
            parts.append((top, powers.sum(-1, keepdim=True), powers @ V[..., start : start + block, :]))
        most = parts[0][0]
        for top, _, _ in parts:
            most = torch.maximum(most, top)
        shares = [torch.exp(top - most) for top, _, _ in parts]
        total = sum(n * share for (_, n, _), share in zip(parts, shares, strict=True))
        return sum(o * share for (_, _, o), share in zip(parts, shares, strict=True)) / total

    verdict = judged("tiled_attention", tiled_attention)
    assert not verdict.passed and verdict.mistake == "results_kept"


def test_a_head_with_dropout_is_told_that_two_calls_differ():
    class AttentionHead(blocks.AttentionHead):
        def forward(self, x, mask=None):
            return torch.nn.functional.dropout(super().forward(x, mask), 0.2, self.training)

    assert not judged("AttentionHead", AttentionHead).passed
