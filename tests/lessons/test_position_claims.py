"""Lesson 2's claims about what was measured: each sentence, its measurement, its control and the bound."""

import functools
import math

import pytest
import torch
import torch.nn.functional as F

from helpers import blocks, corpus, translator
from helpers.translator import evaluation
from helpers.translator.trained import greedy
from helpers.translator.word_ids import EOS, PAD
from tests.lessons.lesson_text import says
from tests.lessons.test_position import published_layer

torch.set_num_threads(1)
says = functools.partial(says, "02_position")


def test_the_positions_are_long_and_mostly_the_same_vector():
    says(
        "which has length $4.86$. Only the differences from it, which are at most $3.4$ long, tell positions apart.",
        "Nine of them contain 99% of the squared length of all position vectors, and",
        "$\\ln 194 = 5.3$",
    )  # tests/lessons/test_position.py measures the first two
    assert math.log(194) == pytest.approx(5.3, abs=0.04) and len(translator.french) == 194


@pytest.mark.full
def test_at_late_positions_the_translator_stops():
    says("at most 4% of the sentences, at 2 and 3 in over half, and from 13 on in over 90%.")
    src = evaluation.unseen(60).src
    bounds = {0: (0, 0.04), 1: (0, 0.04), 2: (0.5, 0.8), 3: (0.5, 0.8)} | {place: (0.9, 1) for place in (13, 17, 23)}
    for position, (low, high) in bounds.items():
        network = translator.machine(add_positions=lambda x, table, position=position: x + table[position])
        stopped = (greedy(network, src) == EOS).any(dim=1).double().mean().item()
        assert low <= stopped <= high


def test_no_cat_is_visited_in_the_grammar():
    says(
        "In its training grammar only countries and continents can be visited, so "
        "the translator has never seen either sentence."
    )
    assert corpus.translate("the dog paints the cat").french == "le chien peint le chat"
    for sentence in ("the dog visits the cat", "the cat visits the dog"):
        with pytest.raises(ValueError):
            corpus.translate(sentence)


def test_a_cosine_with_an_exponent_of_its_own_costs_little():
    says(
        "| cosine with an exponent of its own, $2i + 1$ instead of $2i$ | 0.00045 |",
        "| the same, $2i + 2$ instead of $2i$ | 0.014 |",
        "the two speeds of a pair differ only by a seventh or a quarter at width 64",
    )
    batch, even = evaluation.unseen(200), torch.arange(0, 64, 2).double()
    for ahead, nats, slower in ((0, 0.00016, 0), (1, 0.00045, 1 / 7), (2, 0.0143, 1 / 4)):

        def table(length, d_model, ahead=ahead):
            cosines = (torch.arange(length)[:, None] / 10000 ** ((even + ahead) / d_model)).cos()
            return torch.stack([blocks.sinusoidal_positions(length, d_model)[:, 0::2], cosines], -1).flatten(1).float()

        network = translator.machine(sinusoidal_positions=table)
        assert evaluation.nats_a_word(network, batch) == pytest.approx(nats, rel=0.03)
        assert 1 - 10000 ** (-ahead / 64) == pytest.approx(slower, abs=0.011)


def test_sentences_get_places_that_the_translator_has_never_seen():
    says(
        "trained on only 24 positions, so the first sentences, which get these positions, cost $6.7$ nats per word,",
        "On a batch of many sentences the layer of exercise 2.4 is worse than guessing.",
    )
    assert translator.MAX_LEN == 24
    batch = evaluation.unseen(200)
    with torch.no_grad():
        logits = translator.machine(add_positions=published_layer)(batch.src, batch.tgt_in)

    def nats(rows):
        return F.cross_entropy(logits[rows].flatten(0, 1), batch.tgt_out[rows].flatten(), ignore_index=PAD).item()

    assert nats(slice(0, 24)) == pytest.approx(6.7, abs=0.05) and nats(slice(24, 200)) == pytest.approx(10.2, abs=0.06)
    assert nats(slice(0, 24)) > math.log(194)


def test_who_visits_whom():
    says(
        "The translations are *le chien visite le chat* and *le chat visite le chien*",
        "Without positions the translator writes *le chat* for both sentences and stops.",
        "it writes *le chat le chat le chat* until it reaches the length limit",
    )
    sentences = "the dog visits the cat", "the cat visits the dog"

    def french(**parts):
        return [translator.translate(translator.machine(**parts), sentence) for sentence in sentences]

    assert french() == ["le chien visite le chat", "le chat visite le chien"]
    assert french(add_positions=lambda x, table: x) == ["le chat", "le chat"]
    assert all(line.startswith("le chat le chat le chat") for line in french(add_positions=published_layer))
    for place in (0, 5, 10):
        lines = french(add_positions=lambda x, table, place=place: x + table[place])
        assert all(len(line.split()) == translator.MAX_LEN - 1 for line in lines)
