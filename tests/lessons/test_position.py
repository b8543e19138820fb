"""Lesson 2: the numbers and properties in its text, and what its figures state."""

import functools
import math

import pytest
import torch
import torch.nn.functional as F

from helpers import blocks, corpus, translator
from helpers.blocks import add_positions, apply_rope, sinusoidal_positions
from helpers.lessons.position import experiments, explore, figures
from helpers.translator import evaluation
from helpers.translator.stage import attempt
from helpers.translator.trained import greedy
from helpers.translator.word_ids import EOS, PAD
from tests.draws import pictures_of
from tests.lessons.lesson_text import says

SENTENCE = "jane visits africa in september"
says = functools.partial(says, "02_position")


def test_rotating_a_query_and_a_key_together_keeps_their_score():
    alt = figures.rotated_together().alt
    assert alt.count("angle 1, score 0.54") == 2 and "angle 3, score -0.99" in alt


def test_rotary_scores_depend_on_the_sign_of_the_offset():
    q, k = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])

    def score(at, other):
        return (apply_rope(q, torch.tensor([at])) @ apply_rope(k, torch.tensor([other])).T).item()

    assert score(3, 4) == pytest.approx(-0.8415, abs=5e-5)
    assert score(3, 2) == pytest.approx(0.8415, abs=5e-5)
    drawn = pictures_of(explore.rotary)
    assert "7.078 at offset 1, 5.844 at offset -1" in drawn(5, 6, 0).alt
    assert "5.844 at offset -1, 7.078 at offset 1" in drawn(6, 5, 0).alt


def test_distances_that_the_explorer_of_sinusoids_shows():
    near, far = figures.pair_distances(10, 11, 16), figures.pair_distances(10, 54, 16)
    assert near[[0, 2]].tolist() == pytest.approx([0.96, 0.10], abs=5e-3) and near.argmax() == 0
    assert far[[0, 1, 2, 3, 7]].tolist() == pytest.approx([0.02, 1.25, 1.62, 1.28, 0.01], abs=5e-3)
    assert "pair 2 1.617" in pictures_of(explore.sinusoids)(0, 10, 54).alt


def test_wavelengths_in_the_text():
    assert 10000 ** (510 / 512) == pytest.approx(9647, abs=0.5)
    assert 10000 ** (2 / 4) == pytest.approx(100)
    rounds = [2 * math.pi * 10000 ** (2 * i / 16) for i in range(4)]
    assert [round(steps) for steps in rounds] == [6, 20, 63, 199]
    assert 1 - 10000 ** (-1 / 64) == pytest.approx(0.13, abs=5e-3)


def test_words_and_positions_of_the_translator_lie_in_different_directions():
    says(
        "which has length $4.86$. Only the differences from it, which are at most $3.4$ long, tell positions apart.",
        "Nine of them contain 99% of the squared length of all position vectors, and",
    )
    numbers = translator.state()
    positions, words = numbers["encoder.positions.weight"], numbers["encoder.tokens.weight"]
    assert len(positions) == 24
    assert positions.norm(dim=1).mean().item() == pytest.approx(5.66, abs=5e-3)
    ours = words[[translator.english[word] for word in SENTENCE.split()]]
    assert 0.9 < ours.norm(dim=1).min() < ours.norm(dim=1).max() < 1.15
    mean = positions.mean(dim=0)
    assert mean.norm().item() == pytest.approx(4.86, abs=0.01) and (positions - mean).norm(dim=1).max() < 3.4
    held = torch.linalg.svdvals(positions).square().cumsum(0)
    assert held[7] < 0.99 * held[-1] < held[8]


def without_positions(x, table):
    return x


def published_layer(x, table):
    return x + sinusoidal_positions(5000, 64)[:, None][: x.size(0)]


def sines_first(length, d_model):
    table = sinusoidal_positions(length, d_model)
    return torch.cat([table[:, 0::2], table[:, 1::2]], dim=-1)


def exponent_doubled(length, d_model):
    angles = torch.arange(length)[:, None] / 10000 ** (2 * torch.arange(0, d_model, 2).double() / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


@pytest.mark.parametrize(
    ("part", "function", "nats", "french"),
    [
        ("add_positions", add_positions, 0.00016, "jane visite l' afrique en septembre"),
        ("add_positions", without_positions, 4.85, "jane en septembre"),
        ("add_positions", published_layer, 9.81, "jane jane jane jane"),
        ("sinusoidal_positions", sines_first, 12.97, ""),
        ("sinusoidal_positions", exponent_doubled, 1.21, ""),
    ],
)
def test_loss_of_the_translator_with_wrong_positions(part, function, nats, french):
    trial = attempt({part: function}, SENTENCE, 60.0)
    assert trial.nats == pytest.approx(nats, rel=0.03)
    assert trial.french.startswith(french)
    if function is add_positions:
        assert any("shuffled: 6.04 nats" in fact.text for fact in trial.facts)
    if function is sines_first:
        assert trial.french == ""


@pytest.mark.full
def test_words_at_late_positions_make_the_translator_stop():
    says("at most 4% of the sentences, at 2 and 3 in over half, and from 13 on in over 90%.")
    src = evaluation.unseen(60).src
    bounds = {0: (0, 0.04), 1: (0, 0.04), 2: (0.5, 0.8), 3: (0.5, 0.8)} | {place: (0.9, 1) for place in (13, 17, 23)}
    for position, (low, high) in bounds.items():
        network = translator.model(add_positions=lambda x, table, position=position: x + table[position])
        stopped = (greedy(network, src) == EOS).any(dim=1).double().mean().item()
        assert low <= stopped <= high


def test_nobody_visits_an_animal_in_the_grammar():
    says(
        "In its training grammar only countries and continents can be visited, so "
        "the translator has never seen either sentence."
    )
    assert corpus.translate("the dog paints the cat").french == "le chien peint le chat"
    for sentence in ("the dog visits the cat", "the cat visits the dog"):
        with pytest.raises(ValueError):
            corpus.translate(sentence)


def test_cosines_with_another_exponent_cost_little():
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

        network = translator.model(sinusoidal_positions=table)
        assert evaluation.nats_per_word(network, batch) == pytest.approx(nats, rel=0.03)
        assert 1 - 10000 ** (-ahead / 64) == pytest.approx(slower, abs=0.011)


def test_the_bug_gives_sentences_positions_beyond_those_of_training():
    says(
        "$\\ln 194 = 5.3$",
        "trained on only 24 positions, so the first sentences, which get these positions, cost $6.7$ nats per word,",
        "On a batch of many sentences the layer of exercise 2.4 is worse than guessing.",
    )
    assert translator.MAX_LEN == 24
    batch = evaluation.unseen(200)
    with torch.no_grad():
        logits = translator.model(add_positions=published_layer)(batch.src, batch.tgt_in)

    def nats(rows):
        return F.cross_entropy(logits[rows].flatten(0, 1), batch.tgt_out[rows].flatten(), ignore_index=PAD).item()

    assert nats(slice(0, 24)) == pytest.approx(6.7, abs=0.05) and nats(slice(24, 200)) == pytest.approx(10.2, abs=0.06)
    assert nats(slice(0, 24)) > math.log(len(translator.french)) == pytest.approx(5.3, abs=0.04)


def test_only_positions_tell_who_visits_whom():
    says(
        "The translations are *le chien visite le chat* and *le chat visite le chien*",
        "Without positions the translator writes *le chat* for both sentences and stops.",
        "it writes *le chat le chat le chat* until it reaches the length limit",
    )
    sentences = "the dog visits the cat", "the cat visits the dog"

    def french(**parts):
        return [translator.translate(translator.model(**parts), sentence) for sentence in sentences]

    assert french() == ["le chien visite le chat", "le chat visite le chien"]
    assert french(add_positions=lambda x, table: x) == ["le chat", "le chat"]
    assert all(line.startswith("le chat le chat le chat") for line in french(add_positions=published_layer))
    for place in (0, 5, 10):
        lines = french(add_positions=lambda x, table, place=place: x + table[place])
        assert all(len(line.split()) == translator.MAX_LEN - 1 for line in lines)


@pytest.mark.parametrize("rows", [lambda pe: pe[:, 0], lambda pe: pe.squeeze()])
def test_every_accepted_layer_is_shown_with_the_positions_of_its_tokens(capsys, rows):
    experiments.added_positions(lambda x, pe: x + rows(pe[: x.size(1)]))
    assert capsys.readouterr().out.count("its tokens get the positions 0 1 2") == 2
