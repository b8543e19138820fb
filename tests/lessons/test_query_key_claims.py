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


def test_french_does_not_need_the_head_that_finds_the_subject():
    says(
        "None. The loss hardly moves, and all 300 come out word for word.",
        "Head 1 of the same block is another matter: without it 53 of 300 go wrong.",
        "in this little language every English verb has a single French form",
    )
    batch = evaluation.unseen(experiments.SENTENCES)
    whole, without = translator.machine(), experiments.silenced(*experiments.ARCS)
    other = experiments.silenced(experiments.ARCS[0], 0)
    assert evaluation.exact(whole, batch) == evaluation.exact(without, batch) == 1
    assert evaluation.nats_a_word(without, batch) < 0.0003
    assert round(300 * evaluation.exact(other, batch)) == 247 and evaluation.nats_a_word(other, batch) > 0.05
    assert all(isinstance(french, str) for french in (*lexicon.VERBS.values(), *lexicon.PLACE_VERBS.values()))


def test_the_head_of_the_arcs_mostly_looks_one_back():
    says("its first choice for 58 % of the words and gets 0.47 of the weight, where a random network gives 0.13")
    _, before, weight = experiments.choices(translator.machine())
    assert before[experiments.ARCS].item() == pytest.approx(0.58, abs=0.005)
    assert weight[experiments.ARCS].item() == pytest.approx(0.47, abs=0.005)
    for seed in (0, 1, 2):
        assert experiments.choices(experiments.untrained(seed))[2].mean().item() == pytest.approx(0.13, abs=0.005)


def test_a_trained_word_finds_itself_twice_as_often_as_by_chance():
    says(
        "Twice as often: 0.27 of the words in the trained network, 0.12 to 0.13 in the random ones",
        "and 0.13 by chance. So this training did change something.",
        "All eight heads lie above chance, and five of them above every untrained head that is printed here; and still",
        "three words of four look mostly at another one",
        "Training changed it in our translator from 0.13 to 0.27",
    )
    chance = experiments.chance_of_itself()
    assert chance == pytest.approx(0.13, abs=0.002)
    own = experiments.choices(translator.machine())[0]
    assert own.mean().item() == pytest.approx(0.27, abs=0.006) and (own > 1.3 * chance).all()
    untrained = [experiments.choices(experiments.untrained(seed))[0] for seed in (0, 1, 2)]
    assert all(0.115 < by_head.mean() < 0.135 for by_head in untrained)
    assert (own > max(by_head.max() for by_head in untrained)).sum() == 5


def test_the_chain_of_the_course():
    says("After *visits* a place, after *jane* nothing in particular")
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


def test_what_the_published_scores_find():
    says("The head of the arcs once more, by the published scores and by yours:")
    x, W_q, W_k = figures.one_real_head()
    Q, K = x @ W_q.T, x @ W_k.T
    published = Q @ K.reshape(16, 5)
    assert published.argmax(-1).tolist() != blocks.fixed_self_scores(x, W_q, W_k).argmax(-1).tolist() == [0, 0, 1, 2, 2]


def test_the_margins_of_two_channels(capsys):
    experiments.margins(blocks.two_channel_graph)
    said = capsys.readouterr().out.splitlines()
    assert [line.split("margin ")[1] for line in said] == ["0.6910", "0.1910", "0.0489", "0.0079"]
    assert all(f"{T} of {T} look where they should" in line for T, line in zip((5, 10, 20, 50), said, strict=True))


def test_exact_shares_save_one_channel_at_most():
    says(
        "Its shares fix a row of scores, but for one number that may be added to the whole row",
        "whoever wants exact shares saves one channel at most",
    )
    rank, ones = torch.linalg.matrix_rank, torch.ones(1, 9, dtype=torch.float64)
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        left, right = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((9, 5), (4, 9)))
        for rows, channels in ((torch.cat([right, right[:1] ** 2]), 5), (torch.cat([right, ones]), 4)):
            scores = left @ rows  # (T_q, T_k), rank 5
            logs = torch.log_softmax(scores, dim=-1)
            free = logs - logs.mean(dim=-1, keepdim=True)  # no number added to a row makes the rank smaller
            assert rank(scores) == 5 and rank(free) == channels


def test_two_different_projections_may_still_give_a_symmetric_table():
    says("are two different numbers, unless $W_Q$ and $W_K$ happen to fit together (as when they are equal).")
    generator = torch.Generator().manual_seed(0)
    x, W_q, W_k = (torch.randn(*shape, generator=generator) for shape in ((5, 8), (4, 8), (4, 8)))

    def table(W_q, W_k):
        return blocks.attention_scores(x @ W_q.T, x @ W_k.T)

    assert not torch.allclose(table(W_q, W_k), table(W_q, W_k).T, atol=0.1)
    assert torch.allclose(table(W_q, 2 * W_q), table(W_q, 2 * W_q).T, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("seed, nats, in_a_batch, one_at_a_time", [(7, 0.016, 99, 40), (1, 0.015, 95, 45)])
def test_a_network_that_is_trained_with_the_published_scores(monkeypatch, seed, nats, in_a_batch, one_at_a_time):
    says(
        "two trainings ended at 0.016 and 0.015 nats, and 99 and 95 of 100 sentences of a batch came out right.",
        "One at a time, without padding, only 40 and 45 of the same hundred came out right",
        "with the first of the two *jane visits africa in september* ends in India.",
        "(With the sound network all hundred come out right, in a batch and one at a time.)",
    )

    def published(Q, K):
        return Q @ K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])

    def with_the_bug(*sizes):
        return Parts({"attention_scores": published}).module("Transformer", *sizes)

    monkeypatch.setattr(training, "Transformer", with_the_bug)
    bugged, batch = training.train(seed), evaluation.unseen(200)
    assert evaluation.nats_a_word(bugged, batch) == pytest.approx(nats, rel=0.15)
    hundred = batch.first(100)
    for network, together, alone in ((bugged, in_a_batch, one_at_a_time), (translator.machine(), 100, 100)):
        assert 100 * evaluation.exact(network, hundred) == pytest.approx(together, abs=2)
        pairs = zip(hundred.english, hundred.french, strict=True)
        right = sum(translator.translate(network, english) == french for english, french in pairs)
        assert right == pytest.approx(alone, rel=0.1)
    country = {7: "inde", 1: "afrique"}[seed]
    assert translator.translate(bugged, "jane visits africa in september") == f"jane visite l' {country} en septembre"


def test_the_grader_does_not_run_the_courses_own_experiments():
    assert only_shows("experiments.silence_heads()") and only_shows("experiments.own_first_choices()")
    assert not only_shows("experiments.margins(two_channel_graph)")
