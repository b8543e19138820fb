"""Lesson 3: the sources' numbers from its blocks, what its check sees, and the claims of the lesson."""

import functools
import random
import re

import pytest
import torch

from helpers import blocks, translator
from helpers.checking.registry import VIEWS
from helpers.corpus import index_words, lexicon, sentence_pairs
from helpers.grading.lesson_release import only_shows
from helpers.lessons.query_key import experiments, explore, figures
from helpers.translator import evaluation, training
from helpers.translator.network import Parts
from tests import draws
from tests.draws import life_is_short, pictures_of
from tests.lessons.lesson_text import says


def test_scores_of_the_word_is():
    x, W_query, W_key, W_value = life_is_short()
    Q, K = blocks.project(x, W_query), blocks.project(x, W_key)
    expected = torch.tensor([-7.0847, -4.5398, 3.9887, 10.2379, 2.3206, -10.5434])
    torch.testing.assert_close(blocks.attention_scores(Q, K)[1], expected, atol=1e-4, rtol=0)
    torch.testing.assert_close(figures.scores_of_is(), expected, atol=1e-4, rtol=0)
    assert Q[1].shape == (24,) and K.shape == (6, 24) and blocks.project(x, W_value).shape == (6, 28)


def test_first_scores_of_the_lecture():
    x, key, query = draws.lecture()
    scores = blocks.attention_scores(query(x), key(x))
    assert scores.shape == (4, 8, 8)
    assert scores[0, 1, 6].item() == pytest.approx(0.4970, abs=1e-4)


def test_two_channels_suffice_for_any_length_and_one_for_three_tokens():
    """The solution of the lesson's puzzle: margins on the circle, and d = 1 for up to three tokens."""
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
    ("scores", "attends_to"),
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
def test_the_check_states_which_tokens_the_queries_attend_to(scores, attends_to):
    W_q = torch.tensor(scores, dtype=torch.float32).T
    seen = VIEWS["previous_token"]((3,), {}, (W_q, torch.eye(3)))
    assert seen["every query from 1 on attends to"] == attends_to


def test_a_product_through_d_k_channels_has_at_most_that_rank():
    for d_k in (1, 3, 5):
        M = draws.random(d_k, d_k, 16).T @ draws.random(d_k + 1, d_k, 16)
        assert torch.linalg.matrix_rank(M) == d_k
    table = explore.wanted_table("three tastes")
    assert (table - explore.best_with_channels(table, 2)).norm() > 0.1 * table.norm()
    torch.testing.assert_close(explore.best_with_channels(table, 3), table, atol=1e-4, rtol=1e-4)


def test_figures_state_their_numbers():
    assert "I 1.00, like 2.00" in figures.five_by_five(torch.tensor([1.0, 2, 3, 4, 5]).diag()).alt
    fractions = [float(n) for n in re.findall(r": ([01]\.\d\d\d)", figures.self_scores_by_kind().alt)]
    plain, shared, same_length, uniform, around_zero = fractions
    assert plain > 0.95 and shared > 0.95 and same_length == 1.0
    assert abs(around_zero - 1 / 6) < 0.03 and uniform == pytest.approx(0.34, abs=0.01)
    W_q, W_k = torch.tensor([[3.0, 0, 2], [0, 3, 0]]), torch.tensor([[0.0, 1, 0], [0, 0, 1]])
    assert "(3 0), (0 3), (2 0)" in figures.projections(torch.eye(3), W_q, W_k).alt
    assert "jane attends most to visits (3)" in figures.scores_of_graph(torch.eye(3), W_q, W_k).alt
    assert "jane loves visits: jane to loves 6.0, jane to visits 3.0" in figures.two_sentences(W_q, W_k, 0.5).alt


def test_training_finds_the_wanted_edges_after_six_steps():
    tables, _ = explore.training_run()
    right = [table.argmax(-1).tolist() == [1, 2, 1] for table in tables]
    assert right.index(True) == 6 and all(right[6:])
    assert all(float(tables[60][i, i]) < float(tables[60][i].max()) for i in range(3))
    assert "jane to visits, visits to africa, africa to visits. Wanted" in pictures_of(explore.training)(60).alt


def test_a_real_head_attends_to_the_previous_token_in_our_sentence():
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
        in figures.graph_of_edges(blocks.attention_edges, torch.softmax(scores / 4, -1), tokens, 1 / 3).alt
    )

    def unanswered(*_):
        raise NotImplementedError

    assert figures.graph_of_edges(unanswered, scores, tokens, 0.3) is None


def with_reshape(Q, K):
    """The lesson's bug, which reshapes the keys instead of transposing them."""
    return Q @ K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])


def test_loss_of_the_translator_with_the_reshape_bug():
    batch = evaluation.unseen(200)
    buggy = translator.model(attention_scores=with_reshape)
    assert evaluation.nats_per_word(buggy, batch) == pytest.approx(5.31, abs=0.05)
    assert evaluation.nats_per_word(translator.model(attention_scores=blocks.attention_scores), batch) < 0.0003


def test_the_graph_keeps_an_edge_at_the_threshold():
    weights = torch.tensor([[0.04, 0.94, 0.02], [0.10, 0.04, 0.86], [0.14, 0.76, 0.10]])
    graph = pictures_of(explore.graph, weights, figures.JANE)
    assert "africa to visits 0.76" in graph(0.76).alt and "africa to visits" not in graph(0.78).alt


# Measured claims. The lesson has to contain each sentence that is quoted here.

says = functools.partial(says, "03_query_key")


BATCH = functools.cache(lambda: evaluation.unseen(experiments.SENTENCES))
HEADS = [(block, head) for block in range(2) for head in range(4)]


def right(*heads):
    """Return how many of 300 sentences the translator gets right without these heads."""
    return round(300 * evaluation.exact(evaluation.ablated(list(heads)), BATCH()))


@pytest.mark.parametrize("head", [pytest.param(head, marks=() if head[1] == 0 else pytest.mark.full) for head in HEADS])
def test_only_one_head_is_needed_by_itself(head):
    assert right(head) == (247 if head == (1, 0) else 300)


@pytest.mark.full
def test_the_other_heads_are_needed_only_together():
    says(
        "so the story doesn't hold. In this small language every English verb has a single French form",
        "Only head 0 of block 1 matters by itself. You can ablate each of the other seven alone without a single error",
        "but without all seven a third of the translations are wrong.",
        "| 300 for each of seven heads alone | all of block 0: 286; all of block 1: 251 |",
    )
    assert evaluation.nats_per_word(evaluation.ablated([figures.REAL_HEAD]), BATCH()) < 0.0003
    assert (right(*HEADS[:4]), right(*HEADS[4:])) == (286, 251)
    assert right(*(head for head in HEADS if head != (1, 0))) == 200
    assert all(isinstance(french, str) for french in (*lexicon.VERBS.values(), *lexicon.PLACE_VERBS.values()))


def test_on_300_sentences_the_head_attends_mostly_to_the_previous_token():
    says(
        "Over 300 unseen sentences, the previous token has the largest score for 58% of the words.",
        "| weight on the previous token, block 1 head 3 | | trained: 0.47; three untrained networks: 0.13 |",
    )
    _, before, weight = experiments.choices(translator.model())
    assert before[figures.REAL_HEAD].item() == pytest.approx(0.58, abs=0.005)
    assert weight[figures.REAL_HEAD].item() == pytest.approx(0.47, abs=0.005)
    for seed in (0, 1, 2):
        assert experiments.choices(experiments.untrained(seed))[2].mean().item() == pytest.approx(0.13, abs=0.005)


def test_words_attend_to_themselves_twice_as_often_as_by_chance():
    says(
        "Training has doubled the fraction, from $0.13$ to $0.27$, but most words still attend mostly to another word.",
        "| 0.27 | three untrained networks: 0.12 to 0.13; by chance: 0.13 |",
    )
    chance = experiments.chance_of_itself()
    assert chance == pytest.approx(0.13, abs=0.002)
    own = experiments.choices(translator.model())[0]
    assert own.mean().item() == pytest.approx(0.27, abs=0.006) and (own > 1.3 * chance).all()
    untrained = [experiments.choices(experiments.untrained(seed))[0] for seed in (0, 1, 2)]
    assert all(0.115 < by_head.mean() < 0.135 for by_head in untrained)
    assert (own > max(by_head.max() for by_head in untrained)).sum() == 5


def test_bigrams_of_the_courses_language():
    says("After *visits* the four most likely words are all countries, whereas after *jane* they are of several kinds.")
    words, ids = index_words([pair.english + " <eos>" for pair in sentence_pairs(2000, random.Random(3))])
    chain = blocks.bigram_probabilities(torch.tensor([i for row in ids for i in row]), len(words))
    assert chain[words.index("jane")].max() < 0.15
    places = sum(
        p for word, p in zip(words, chain[words.index("visits")].tolist(), strict=True) if word in lexicon.COUNTRIES
    )
    others = sum(
        p for word, p in zip(words, chain[words.index("jane")].tolist(), strict=True) if word in lexicon.COUNTRIES
    )
    assert places > 0.7 and others < 0.05


def test_margins_of_two_channels_by_length(capsys):
    experiments.margins(blocks.two_channel_graph)
    printed = capsys.readouterr().out.splitlines()
    assert [line.split("margin ")[1] for line in printed] == ["0.6910", "0.1910", "0.0489", "0.0079"]
    assert all(f"{T} of {T} attend where they should" in line for T, line in zip((5, 10, 20, 50), printed, strict=True))


def test_scores_can_be_symmetric_for_two_different_projections():
    says("symmetric, whereas $q_i \\cdot k_j$ and $q_j \\cdot k_i$ usually differ")
    generator = torch.Generator().manual_seed(0)
    x, W_q, W_k = (torch.randn(*shape, generator=generator) for shape in ((5, 8), (4, 8), (4, 8)))

    def table(W_q, W_k):
        return blocks.attention_scores(x @ W_q.T, x @ W_k.T)

    assert not torch.allclose(table(W_q, W_k), table(W_q, W_k).T, atol=0.1)
    assert torch.allclose(table(W_q, 2 * W_q), table(W_q, 2 * W_q).T, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [7, 1])
def test_trained_with_the_reshape_bug_it_translates_batches_better_than_single_sentences(monkeypatch, seed):
    """Ranges, because rounding accumulates during training and differs between processors."""
    says("| lowest and highest of four | 0.015 to 0.03 | 93 to 99 | 40 to 47 |")

    def with_the_bug(*sizes):
        return Parts({"attention_scores": with_reshape}).module("Transformer", *sizes)

    monkeypatch.setattr(training, "Transformer", with_the_bug)
    bugged, batch = training.train(seed), evaluation.unseen(200)
    assert 0.01 < evaluation.nats_per_word(bugged, batch) < 0.05
    hundred = batch.first(100)
    for network, together, alone in ((bugged, range(90, 101), range(30, 61)), (translator.model(), [100], [100])):
        assert round(100 * evaluation.exact(network, hundred)) in together
        pairs = zip(hundred.english, hundred.french, strict=True)
        assert sum(translator.translate(network, english) == french for english, french in pairs) in alone


def test_the_grader_does_not_run_the_courses_own_experiments():
    assert only_shows("experiments.ablate(heads=[(1, 3)])") and only_shows("experiments.largest_weight_on_itself()")
    assert not only_shows("experiments.margins(two_channel_graph)")
