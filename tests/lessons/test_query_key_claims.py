"""Lesson 3's claims about what was measured: each sentence, its measurement, its control and the bound."""

import functools
import random

import pytest
import torch

from helpers import blocks, translator
from helpers.corpus import index_words, lexicon, sentence_pairs
from helpers.grading.skippable_cells import only_shows
from helpers.lessons.query_key import experiments, figures
from helpers.translator import evaluation, training
from helpers.translator.network import Parts
from tests.lessons.lesson_text import says

torch.set_num_threads(1)
says = functools.partial(says, "03_query_key")


BATCH = functools.cache(lambda: evaluation.unseen(experiments.SENTENCES))
HEADS = [(block, head) for block in range(2) for head in range(4)]


def right(*heads):
    """How many of 300 sentences the translator has right without these heads."""
    return round(300 * evaluation.exact(evaluation.ablated(list(heads)), BATCH()))


@pytest.mark.parametrize("head", [pytest.param(head, marks=() if head[1] == 0 else pytest.mark.full) for head in HEADS])
def test_one_head_is_needed(head):
    assert right(head) == (247 if head == (1, 0) else 300)


@pytest.mark.full
def test_the_other_heads_are_needed_only_together():
    says(
        "so the story doesn't hold. In this small language every English verb has a single French form",
        "Head 0 of block 1 is the exception. You can ablate each of the other seven alone without a single error",
        "but without all seven a third of the translations are wrong.",
        "| 300 for each of seven heads alone | all of block 0: 286; all of block 1: 251 |",
    )
    assert evaluation.nats_a_word(evaluation.ablated([figures.ARCS]), BATCH()) < 0.0003
    assert (right(*HEADS[:4]), right(*HEADS[4:])) == (286, 251)
    assert right(*(head for head in HEADS if head != (1, 0))) == 200
    assert all(isinstance(french, str) for french in (*lexicon.VERBS.values(), *lexicon.PLACE_VERBS.values()))


def test_the_head_of_the_arcs_attends_mostly_to_the_previous_token():
    says(
        "Over 300 unseen sentences, the previous token has the largest score for 58% of the words.",
        "| weight on the previous token, block 1 head 3 | | trained: 0.47; three untrained networks: 0.13 |",
    )
    _, before, weight = experiments.choices(translator.machine())
    assert before[figures.ARCS].item() == pytest.approx(0.58, abs=0.005)
    assert weight[figures.ARCS].item() == pytest.approx(0.47, abs=0.005)
    for seed in (0, 1, 2):
        assert experiments.choices(experiments.untrained(seed))[2].mean().item() == pytest.approx(0.13, abs=0.005)


def test_a_trained_word_finds_itself_twice_as_often_as_by_chance():
    says(
        "Training has doubled the fraction, from $0.13$ to $0.27$, but most words still attend mostly to another word.",
        "| 0.27 | three untrained networks: 0.12 to 0.13; by chance: 0.13 |",
    )
    chance = experiments.chance_of_itself()
    assert chance == pytest.approx(0.13, abs=0.002)
    own = experiments.choices(translator.machine())[0]
    assert own.mean().item() == pytest.approx(0.27, abs=0.006) and (own > 1.3 * chance).all()
    untrained = [experiments.choices(experiments.untrained(seed))[0] for seed in (0, 1, 2)]
    assert all(0.115 < by_head.mean() < 0.135 for by_head in untrained)
    assert (own > max(by_head.max() for by_head in untrained)).sum() == 5


def test_the_chain_of_the_course():
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


def test_the_margins_of_two_channels(capsys):
    experiments.margins(blocks.two_channel_graph)
    said = capsys.readouterr().out.splitlines()
    assert [line.split("margin ")[1] for line in said] == ["0.6910", "0.1910", "0.0489", "0.0079"]
    assert all(f"{T} of {T} attend where they should" in line for T, line in zip((5, 10, 20, 50), said, strict=True))


def test_two_different_projections_may_still_give_a_symmetric_table():
    says("symmetric, whereas $q_i \\cdot k_j$ and $q_j \\cdot k_i$ usually differ")
    generator = torch.Generator().manual_seed(0)
    x, W_q, W_k = (torch.randn(*shape, generator=generator) for shape in ((5, 8), (4, 8), (4, 8)))

    def table(W_q, W_k):
        return blocks.attention_scores(x @ W_q.T, x @ W_k.T)

    assert not torch.allclose(table(W_q, W_k), table(W_q, W_k).T, atol=0.1)
    assert torch.allclose(table(W_q, 2 * W_q), table(W_q, 2 * W_q).T, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [7, 1])
def test_a_network_that_is_trained_with_the_published_scores(monkeypatch, seed):
    """In ranges: each kind of processor rounds in its own way, and a training adds that up."""
    says("| lowest and highest of four | 0.015 to 0.03 | 93 to 99 | 40 to 47 |")

    def published(Q, K):
        return Q @ K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])

    def with_the_bug(*sizes):
        return Parts({"attention_scores": published}).module("Transformer", *sizes)

    monkeypatch.setattr(training, "Transformer", with_the_bug)
    bugged, batch = training.train(seed), evaluation.unseen(200)
    assert 0.01 < evaluation.nats_a_word(bugged, batch) < 0.05
    hundred = batch.first(100)
    for network, together, alone in ((bugged, range(90, 101), range(30, 61)), (translator.machine(), [100], [100])):
        assert round(100 * evaluation.exact(network, hundred)) in together
        pairs = zip(hundred.english, hundred.french, strict=True)
        assert sum(translator.translate(network, english) == french for english, french in pairs) in alone


def test_the_grader_does_not_run_the_courses_own_experiments():
    assert only_shows("experiments.ablate(heads=[(1, 3)])") and only_shows("experiments.own_first_choices()")
    assert not only_shows("experiments.margins(two_channel_graph)")
