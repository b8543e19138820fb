"""Lesson 7: the sources' numbers from its blocks, and its blocks against torch's own functions."""

import pytest
import torch
import torch.nn.functional as F

from helpers import blocks, translator
from helpers.checking.tensor_memory import tensors_alive
from helpers.lessons.value_weighting import figures
from helpers.translator import evaluation
from tests import draws
from tests.draws import close, random

torch.set_num_threads(1)
LESSON = "07_value_weighting"
TOKENS = ["Life", "is", "short", "eat", "dessert", "first"]


def life_is_short():
    """Queries, keys and values of the source's sentence."""
    x, *matrices = draws.life_is_short()
    return [x @ W.T for W in matrices]


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


def numbers_held(f, T):
    return tensors_alive(f, random(0, T, 8), random(1, T, 8), random(2, T, 8))[1].largest


def test_memory_of_tiles_is_linear_and_of_the_whole_quadratic():
    lengths = (64, 128, 256, 512)
    tiled = [numbers_held(lambda Q, K, V: blocks.tiled_attention(Q, K, V, 16), T) for T in lengths]
    whole = [numbers_held(blocks.attention, T) for T in lengths]
    assert tiled == [16 * T for T in lengths]
    assert whole == [T * T for T in lengths]


def test_an_expanded_view_costs_no_memory():
    assert tensors_alive(lambda x: (x + 0).expand(1000, 3), torch.ones(3))[1].largest == 3
    assert tensors_alive(lambda x: x.expand(1000, 3) + 0, torch.ones(3))[1].largest == 3000


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
    assert "Hanoi 0.989" in figures.Search()(0.22, 2.0, 1.0).alt
    assert "beginners 0.200" in figures.Search()(9.4, 2.0, 1.0).alt
    alt = figures.Tiles()(0.6, 4, 4).alt
    assert "Tile 22 of 36" in alt and "16 scores instead of 576, and 24 running values" in alt


def test_every_step_of_the_tiles_explorer_can_be_drawn():
    tiles = figures.Tiles()
    for queries in (4, 6, 8, 12, 24):
        for keys in (4, 24):
            alts = [tiles(step / 50, queries, keys).alt for step in range(51)]
            assert "Tile 1 of" in alts[0]
            assert f"Tile {24 // queries * 24 // keys} of {24 // queries * 24 // keys}" in alts[-1]


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


def test_the_lessons_blocks_are_as_good_as_the_translators_own_parts():
    mine = translator.machine(attention=blocks.attention, AttentionHead=blocks.AttentionHead)
    assert evaluation.nats_a_word(mine, evaluation.unseen(evaluation.LOSS_SENTENCES)) < 0.001


# ---------------------------------------------------------------- wrong answers that must not pass


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
