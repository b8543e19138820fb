"""Lesson 3: the sources' numbers from its blocks, and its blocks against independent forms."""

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from helpers import blocks, translator
from helpers.checking.views import VIEWS
from helpers.lessons.query_key import figures
from helpers.translator import evaluation
from tests.draws import life_is_short, random

torch.set_num_threads(1)


def test_the_scores_of_is():
    x, W_query, W_key, W_value = life_is_short()
    Q, K = blocks.project(x, W_query), blocks.project(x, W_key)
    expected = torch.tensor([-7.0847, -4.5398, 3.9887, 10.2379, 2.3206, -10.5434])
    torch.testing.assert_close(blocks.attention_scores(Q, K)[1], expected, atol=1e-4, rtol=0)
    torch.testing.assert_close(figures.scores_of_is(), expected, atol=1e-4, rtol=0)
    assert Q[1].shape == (24,) and K.shape == (6, 24) and blocks.project(x, W_value).shape == (6, 28)


def test_the_first_matmul_of_the_lecture():
    torch.manual_seed(1337)
    Wk, Wq, _ = (nn.Linear(32, 16, bias=False) for _ in range(3))
    x = torch.randn(4, 8, 32)
    scores = blocks.attention_scores(Wq(x), Wk(x))
    assert scores.shape == (4, 8, 8)
    assert scores[0, 1, 6].item() == pytest.approx(0.4970, abs=1e-4)


def test_jane_on_paper():
    W_q = torch.tensor([[3.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    W_k = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    scores = blocks.fixed_self_scores(torch.eye(3), W_q, W_k)
    assert scores.tolist() == [[0, 3, 0], [0, 0, 3], [0, 2, 0]]
    # The same two words in another sentence: the same score. Mixed with the previous token: another in each sentence.
    jane, loves, visits = [1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 1.0, 0.0]
    other = torch.tensor([jane, loves, visits])
    assert blocks.fixed_self_scores(other, W_q, W_k)[0].tolist() == [0, 6, 3]
    blended = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 1.5, 0.0]])
    assert blocks.fixed_self_scores(blended, W_q, W_k)[0].tolist() == [0, 1.5, 4.5]


def test_the_video_search_on_paper():
    query, keys = torch.tensor([2.0, 0.0, 1.0]), torch.tensor([[3.0, 0, 0], [0, 4.0, 0], [2.0, 0, 3.0]])
    assert blocks.attention_scores(query[None], keys).tolist() == [[6, 0, 7]]
    assert blocks.hard_lookup(query, keys, torch.eye(3)).tolist() == [0, 0, 1]


@pytest.mark.parametrize("max_len", [2, 3, 4, 17, 128])
def test_every_query_looks_one_back(max_len):
    W_q, W_k = blocks.previous_token_weights(max_len)
    x = torch.eye(max_len)
    scores = (x @ W_q.T) @ (x @ W_k.T).T
    for t in range(1, max_len):
        others = torch.cat((scores[t, : t - 1], scores[t, t:]))
        assert scores[t, t - 1] > others.max()
    assert W_q.dtype == W_k.dtype == torch.float32


def test_two_channels_are_enough_and_one_is_not():
    """What the lesson says once the puzzle is solved: margins on the circle, and d = 1 up to three tokens."""
    for n, margin in ((10, 0.19), (100, 0.002), (1000, 0.00002)):
        angle = 2 * torch.pi * torch.arange(n, dtype=torch.float64) / n
        K = torch.stack((angle.cos(), angle.sin()), dim=1)
        best_two = (K @ K.T).topk(2).values
        torch.testing.assert_close(
            best_two[:, 0] - best_two[:, 1], torch.full((n,), margin).double(), rtol=0.06, atol=0
        )
    view = VIEWS["previous_token"]
    one_channel = torch.tensor([[0.0, 1.0, -1.0]]), torch.tensor([[1.0, -1.0, 0.0]])
    assert view((3,), {}, one_channel)["every query from 1 on attends to"] == "the token before it"


@pytest.mark.parametrize(
    ("scores", "looks_at"),
    [
        ([[9, 9, 9], [1, 0, 0], [0, 1, 0]], "the token before it"),
        ([[0, 0, 0], [1, 1, 0], [0, 1, 0]], "other tokens: query 1 attends to 0 and 1"),
        ([[0, 0, 0], [1, 0, 0], [0, 0, 0]], "the token before it, except the last query, whose scores are all equal"),
        ([[0, 0, 0], [1, 0, 0], [0, 1, 1]], "other tokens: query 2 attends to 1 and 2"),
        ([[0, 0, 0], [1, 0, 0], [1, 1, 0]], "all tokens before it equally"),
        ([[0, 0, 0], [0, 1, 0], [0, 0, 1]], "itself"),
        ([[0, 0, 0], [0, 0, 1], [0, 0, 0]], "the token after it"),
        ([[0, 0, 0], [1, 0, 0], [1, 0, 0]], "the first token"),
        ([[0, 0, 0], [float("nan")] * 3, [0, 1, 0]], "other tokens: query 1 attends to none"),
    ],
)
def test_the_view_sees_where_queries_look(scores, looks_at):
    W_q = torch.tensor(scores, dtype=torch.float32).T
    seen = VIEWS["previous_token"]((3,), {}, (W_q, torch.eye(3)))
    assert seen["every query from 1 on attends to"] == looks_at


def test_the_chain_on_paper():
    P = blocks.bigram_probabilities(torch.tensor([0, 1, 2, 0, 3, 1]), 4)
    assert P.tolist() == [[0, 0.5, 0, 0.5], [0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    apples = blocks.bigram_probabilities(torch.arange(5), 5)
    torch.testing.assert_close(apples[4], torch.full((5,), 0.2))


def test_jane_has_the_edges_of_the_table():
    weights = torch.tensor([[0.04, 0.94, 0.02], [0.10, 0.04, 0.86], [0.14, 0.76, 0.10]])
    edges = blocks.attention_edges(weights, list(figures.JANE), 0.5)
    assert [(q, k) for q, k, _ in edges] == [("jane", "visits"), ("visits", "africa"), ("africa", "visits")]


def test_a_product_through_d_k_channels_has_at_most_that_rank():
    for d_k in (1, 3, 5):
        M = random(d_k, d_k, 16).T @ random(d_k + 1, d_k, 16)
        assert torch.linalg.matrix_rank(M) == d_k
    table = figures.wanted_table("three tastes")
    assert (table - figures.best_with_channels(table, 2)).norm() > 0.1 * table.norm()
    torch.testing.assert_close(figures.best_with_channels(table, 3), table, atol=1e-4, rtol=1e-4)


def test_what_the_figures_say():
    assert "I 1.00, like 2.00" in figures.five_by_five(torch.tensor([1.0, 2, 3, 4, 5]).diag()).alt
    fractions = [float(n) for n in re.findall(r": ([01]\.\d\d\d)", figures.self_scores_by_kind().alt)]
    plain, shared, same_length, uniform, around_zero = fractions
    assert plain > 0.95 and shared > 0.95 and same_length == 1.0
    assert abs(around_zero - 1 / 6) < 0.03 and uniform == pytest.approx(0.34, abs=0.01)
    W_q, W_k = torch.tensor([[3.0, 0, 2], [0, 3, 0]]), torch.tensor([[0.0, 1, 0], [0, 0, 1]])
    assert "(3 0), (0 3), (2 0)" in figures.projections(torch.eye(3), W_q, W_k).alt
    assert "jane attends most to visits (3)" in figures.scores_of_graph(torch.eye(3), W_q, W_k).alt
    assert "jane loves visits: jane to loves 6.0, jane to visits 3.0" in figures.two_sentences(W_q, W_k, 0.5).alt


def test_training_wires_the_words_after_six_steps():
    tables, _ = figures._training_run()
    right = [table.argmax(-1).tolist() == [1, 2, 1] for table in tables]
    assert right.index(True) == 6 and all(right[6:])
    assert all(float(tables[60][i, i]) < float(tables[60][i].max()) for i in range(3))
    assert "jane to visits, visits to africa, africa to visits. Wanted" in figures.Training()(60).alt


def test_the_real_head_attends_to_the_previous_token():
    x, W_q, W_k = figures.one_real_head()
    scores = blocks.fixed_self_scores(x, W_q, W_k)
    assert scores.argmax(-1).tolist() == [0, 0, 1, 2, 2]
    assert scores[1, 0].item() == pytest.approx(39.9, abs=0.05) and scores[0, 1].item() == pytest.approx(24.6, abs=0.05)
    assert scores.min().item() == pytest.approx(-21.4, abs=0.05)
    assert scores.max().item() == pytest.approx(43.9, abs=0.05)
    assert torch.linalg.matrix_rank(W_q.T @ W_k) == 16
    tokens = "jane visits africa in september".split()
    assert (
        "visits to jane 0.92"
        in figures.drawn_by(blocks.attention_edges, torch.softmax(scores / 4, -1), tokens, 1 / 3).alt
    )

    def unanswered(*_):
        raise NotImplementedError

    assert figures.drawn_by(unanswered, scores, tokens, 0.3) is None


def test_what_the_published_bug_costs():
    def published(Q, K):
        return Q @ K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])

    batch = evaluation.unseen(200)
    assert evaluation.nats_a_word(translator.machine(attention_scores=published), batch) == pytest.approx(
        5.31, abs=0.05
    )
    assert evaluation.nats_a_word(translator.machine(attention_scores=blocks.attention_scores), batch) < 0.0003


@given(st.integers(2, 50), st.data())
def test_two_channels_draw_every_graph(T, data):
    looks_at = torch.tensor(data.draw(st.lists(st.integers(0, T - 1), min_size=T, max_size=T)))
    W_q, W_k = blocks.two_channel_graph(looks_at)
    assert W_q.shape == W_k.shape == (2, T) and W_q.dtype == W_k.dtype == torch.float32
    scores = blocks.fixed_self_scores(torch.eye(T), W_q, W_k)
    best = scores.topk(2).values
    assert scores.argmax(-1).tolist() == looks_at.tolist() and (best[:, 0] > best[:, 1]).all()


def test_the_graph_keeps_an_edge_that_is_as_heavy_as_the_threshold():
    weights = torch.tensor([[0.04, 0.94, 0.02], [0.10, 0.04, 0.86], [0.14, 0.76, 0.10]])
    graph = figures.GraphBesideTable(weights, figures.JANE)
    assert "africa to visits 0.76" in graph(0.76).alt and "africa to visits" not in graph(0.78).alt
