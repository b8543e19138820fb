"""What lesson 10 says of networks, measured again, each with its control. A sentence that changes fails its test."""

import functools
import itertools
import random
import re
from collections import Counter

import pytest
import torch

from helpers import blocks, translator
from helpers.corpus import lexicon, sentence_pairs, training_pairs
from helpers.lessons.decoder_block import figures
from helpers.translator import evaluation
from tests.lessons import lesson_text

torch.set_num_threads(1)
SPAIN = "l' visite l' espagne en septembre"
JANE = "l' visite jane en septembre"


says = functools.partial(lesson_text.says, "10_decoder_block")


@pytest.mark.full
def test_the_copying_student_has_the_better_loss_and_writes_nothing():
    says("0.04 compared with 0.11, but it writes nothing but bos, whereas the other one writes all its sentences")
    copied, shifted = figures.trained_to_copy(), figures.trained_with(blocks.fixed_loss)
    assert copied.curve[0] == pytest.approx(shifted.curve[0], abs=0.5)
    assert copied.curve[-1] == pytest.approx(0.04, abs=0.02) and shifted.curve[-1] == pytest.approx(0.11, abs=0.04)
    assert copied.right == 0 and shifted.right == 40
    assert set(copied.written.split()) == {"<bos>"}


def test_where_the_last_place_looks():
    says("over 300 sentences it gives 0.41 to the first English word and 0.28 to the last")
    pairs = sentence_pairs(300, random.Random(evaluation.UNSEEN_SEED), unseen=True)
    batch = evaluation.as_batch(pairs)
    weights = evaluation.look(translator.machine(), batch.src, batch.tgt_in).cross.mean(dim=1)  # (B, T_t, T_s)
    rows = torch.arange(len(pairs))
    end = (batch.tgt_out == translator.EOS).int().argmax(dim=1)
    last = (batch.src != translator.PAD).sum(dim=1) - 1
    assert weights[rows, end, 0].mean().item() == pytest.approx(0.41, abs=0.01)
    assert weights[rows, end, last].mean().item() == pytest.approx(0.28, abs=0.01)


def test_the_end_of_the_long_sentence_needs_no_source_and_that_of_the_short_one_does():
    says("with the source hidden", "Here the probability of eos falls to 0")
    long = figures.with_source_hidden(figures.ENGLISH, figures.FRENCH)
    assert all(seen > 0.999 for _, seen, _ in long)
    assert long[-1][2] > 0.999 and all(hidden < 0.15 for _, _, hidden in long[:-1])
    name, seen, hidden = figures.with_source_hidden("jane visits africa", "jane visite l' afrique")[-1]
    assert name == "<eos>" and seen > 0.999 and hidden < 0.01


def written(network, width=1):
    src = translator.source_batch(["africa visits jane in september"])
    words = {index: word for word, index in translator.french.items()}
    with torch.no_grad():
        memory = network.encode(src)
        ids, score = blocks.beam_search(
            lambda prefix: network.decode(prefix, memory, src)[:, -1], translator.BOS, translator.EOS, 12, width
        )
    return " ".join(words[i] for i in ids[1:-1]), score


def test_spain_was_a_greedy_choice():
    says("A beam of three finds a sentence that greedy decoding missed", "(−0.94 instead of −1.51)")
    assert written(translator.machine()) == (SPAIN, pytest.approx(-1.51, abs=0.01))
    assert written(translator.machine(), 3) == (JANE, pytest.approx(-0.945, abs=0.006))


def test_no_place_ever_visits_anybody_in_training():
    says("In the training data no continent ever visits anybody")
    verbs = {"is", *lexicon.VERBS, *lexicon.PLACE_VERBS, *(verb for verb, _ in lexicon.MOVES)}
    before = set()  # all words that stand in front of a verb
    for pair in training_pairs():
        words = pair.english.split()
        before |= {word for word, following in itertools.pairwise(words) if following in verbs}
    assert "jane" in before and {"africa", "asia", "europe"} < set(lexicon.COUNTRIES)
    assert before.isdisjoint(lexicon.COUNTRIES)


@pytest.mark.slow
def test_other_trainings_do_not_speak_of_spain():
    says("trained from other seeds write *l' visite jane en septembre*, all three")
    from tests.other_trainings import trained

    assert [written(trained(seed))[0] for seed in (1, 2, 3)] == [JANE] * 3


def test_a_covered_source_shows_no_knowledge_of_french():
    says("in the training sentences *ma* comes first in 5 of 100, and *un* and *mon* in 10 of 100 each")
    pairs = training_pairs()
    real = Counter(pair.french.split()[0] for pair in pairs)
    said = torch.softmax(figures.first_word_logits(), dim=0)
    assert real["ma"] / len(pairs) == pytest.approx(0.05, abs=0.005) and said[translator.french["ma"]] > 0.5
    for word in ("un", "mon"):
        assert real[word] / len(pairs) == pytest.approx(0.10, abs=0.006) and said[translator.french[word]] < 0.03


def test_which_of_the_machines_numbers_were_trained():
    says("3,072 of them, the two tables of positions, are lesson 2's sinusoids and were not trained")
    tables = [number for name, number in translator.state().items() if name.endswith("positions.weight")]
    assert sum(table.numel() for table in tables) == 3072
    says("1,152 biases of $W_Q$, $W_K$ and $W_V$ are 0")
    biases = [number for name, number in translator.state().items() if re.search(r"W_[qkv]\.bias$", name)]
    assert sum(bias.numel() for bias in biases) == 1152 and not any(bias.any() for bias in biases)
    for table in tables:
        torch.testing.assert_close(table, blocks.sinusoidal_positions(24, 64), atol=1e-3, rtol=0)
    assert sum(number.numel() for number in translator.state().values()) == 206_146


def test_what_the_filters_leave_of_the_tail():
    first = figures.first_word_logits()
    tail = first.argsort(descending=True)[14:]
    hits = {}
    for name, options in (("none", {}), ("k", {"top_k": 5}), ("p", {"top_p": 0.9})):
        p = torch.softmax(blocks.filter_logits(first, **options), dim=-1)
        drawn = torch.multinomial(p, 2000, replacement=True, generator=torch.Generator().manual_seed(0))
        hits[name] = int(torch.isin(drawn, tail).sum())
    says("about 1% of the words come from the tail", "Top-p keeps eight here")
    assert hits == {"none": pytest.approx(19, abs=2), "k": 0, "p": 0}
