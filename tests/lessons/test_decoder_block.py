"""Lesson 10: a stack of its blocks compared with torch's Transformer, and the numbers in its text."""

import functools
import itertools
import random
import re
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from helpers import blocks, translator
from helpers.blocks import EncoderBlock, causal_mask
from helpers.corpus import lexicon, sentence_pairs, training_pairs
from helpers.lessons.decoder_block import explore, figures
from helpers.translator import evaluation
from tests import draws
from tests.draws import pictures_of
from tests.from_torch import block_from_torch
from tests.lessons import lesson_text


def randomize(module, seed):
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_(draws.random(seed + i, *parameter.shape) * 0.4 + (parameter.dim() == 1))


@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 7), st.booleans())
def test_a_stack_of_our_blocks_equals_nn_transformer(seed, T_s, T_t, norm_first):
    D, H, F_, dtype = 12, 3, 20, torch.float64
    options = dict(dropout=0.0, batch_first=True, norm_first=norm_first, dtype=dtype)
    theirs = nn.Transformer(D, H, 2, 2, F_, **options).eval()
    randomize(theirs, seed)
    encoder = [EncoderBlock(D, H, F_, norm_first).to(dtype) for _ in range(2)]
    decoder = [blocks.DecoderBlock(D, H, F_, norm_first).to(dtype) for _ in range(2)]
    for mine, other in zip([*encoder, *decoder], [*theirs.encoder.layers, *theirs.decoder.layers], strict=True):
        block_from_torch(mine, other)
    x, y = draws.random(seed, 2, T_s, D), draws.random(seed + 1, 2, T_t, D)
    real = torch.arange(T_s) < torch.tensor([[T_s], [1]])  # (2, T_s); the second sentence is padded
    expected = theirs(x, y, tgt_mask=~causal_mask(T_t), src_key_padding_mask=~real, memory_key_padding_mask=~real)
    for block in encoder:
        x = block(x, real[:, None, None])
    memory = theirs.encoder.norm(x)
    for block in decoder:
        y, _ = block(y, memory, causal_mask(T_t), real[:, None, None])
    draws.close(theirs.decoder.norm(y), expected, double=1e-12)


def test_a_beam_finds_a_likelier_sentence_than_greedy_decoding():
    words = ("<bos>", "<eos>", "le", "la", "chat", "chien", "roi", "reine", "mer")

    def step(prefix):  # (1, t) -> (1, V)
        chances = figures.SMALL.get(tuple(words[i] for i in prefix[0].tolist()), {"<eos>": 1.0})
        return torch.tensor([[chances.get(word, 1e-9) for word in words]]).log()

    greedy = blocks.greedy_decode(step, 0, 1, 5)
    assert [words[i] for i in greedy] == ["<bos>", "le", "chat", "<eos>"]
    for width, best in ((1, "le chat"), (2, "la reine"), (5, "la reine")):
        ids, score = blocks.beam_search(step, 0, 1, 5, width)
        assert " ".join(words[i] for i in ids[1:-1]) == best
        assert torch.tensor(score).exp().item() == pytest.approx(0.36 if best == "la reine" else 0.24, abs=1e-6)
        assert f"finds {best} with" in pictures_of(explore.beams)(width).alt


@pytest.mark.full
def test_counted_operations_with_and_without_a_cache_match_the_formula():
    D, width = figures.D, figures.D_FF
    for T in (4, 16):
        plain = sum(4 * t * D**2 + 2 * t * t * D + 2 * t * D * width for t in range(1, T + 1))
        cached = sum(4 * D**2 + 2 * t * D + 2 * D * width for t in range(1, T + 1))
        assert figures.counted_macs(T) == plain
        assert figures.counted_macs(T, blocks.cached_attention) == cached
    alt = figures.cache_saving(blocks.cached_attention).alt
    assert "64 words 79,605,760 against 2,363,392, 33.7 times" in alt
    assert figures.cache_saving(translator.FINISHED_PARTS["cached_attention"]).alt == alt


def test_loss_of_the_translator_with_and_without_the_shift():
    network, batch = translator.model(), evaluation.unseen(200)
    assert evaluation.nats_per_word(network, batch) < 0.0003
    assert evaluation.nats_per_word(network, batch, lambda targets, bos: targets) == pytest.approx(8.5, abs=0.06)
    tgt = torch.cat([batch.tgt_in[:, :1], batch.tgt_out], dim=1)
    with torch.no_grad():
        mine = blocks.fixed_loss(network, batch.src, tgt, translator.PAD).item()
    assert mine == pytest.approx(evaluation.nats_per_word(network, batch), rel=1e-2)
    assert torch.equal(blocks.shift_right(batch.tgt_out[:1, :4], translator.BOS), batch.tgt_in[:1, :4])


def test_with_every_word_at_position_0_the_translation_never_ends():
    network = translator.model()
    with torch.no_grad():
        network.positions.weight[:] = network.positions.weight[:1].clone()
    assert evaluation.nats_per_word(network, evaluation.unseen(200)) == pytest.approx(11.8, abs=0.05)
    assert set(translator.translate(network, figures.ENGLISH).split()) == {"jane"}


def test_figures_state_their_numbers():
    alt = figures.cross_attention().alt
    assert "jane (next: visite) to visits 0.97" in alt and "visite (next: l') to africa 0.89" in alt
    assert "septembre (next: <eos>) to jane" in alt and "<eos> 1.000. With" in alt
    alt = figures.next_words().alt
    assert "ma 0.54, la 0.14, une 0.08, david 0.05" in alt and "180 more words: 0.012" in alt
    assert "8 words can be sampled, effective number 4.01" in pictures_of(explore.next_word)(1.0, 194, 0.9).alt
    assert "all 28 visible cells" in figures.cache_cells().alt
    assert "2: reads visite, predicts l'" in figures.teacher_forcing().alt


# Measured claims. The lesson has to contain each sentence that is quoted here.

SPAIN = "l' visite l' espagne en septembre"
JANE = "l' visite jane en septembre"


says = functools.partial(lesson_text.says, "10_decoder_block")


@pytest.mark.full
def test_trained_without_the_shift_it_has_the_lower_loss_and_writes_nothing():
    says("0.04 compared with 0.11, but it writes only bos, whereas the other one writes all its sentences")
    copied, shifted = figures.trained_to_copy(), figures.trained_with(blocks.fixed_loss)
    assert copied.curve[0] == pytest.approx(shifted.curve[0], abs=0.5)
    assert copied.curve[-1] == pytest.approx(0.04, abs=0.02) and shifted.curve[-1] == pytest.approx(0.11, abs=0.04)
    assert copied.right == 0 and shifted.right == 40
    assert set(copied.written.split()) == {"<bos>"}


def test_the_last_position_attends_to_the_first_and_the_last_word():
    says("over 300 sentences it gives 0.41 to the first English word and 0.28 to the last")
    pairs = sentence_pairs(300, random.Random(evaluation.UNSEEN_SEED), unseen=True)
    batch = evaluation.as_batch(pairs)
    weights = evaluation.attention_of(translator.model(), batch.src, batch.tgt_in).cross.mean(dim=1)  # (B, T_t, T_s)
    rows = torch.arange(len(pairs))
    end = (batch.tgt_out == translator.EOS).int().argmax(dim=1)
    last = (batch.src != translator.PAD).sum(dim=1) - 1
    assert weights[rows, end, 0].mean().item() == pytest.approx(0.41, abs=0.01)
    assert weights[rows, end, last].mean().item() == pytest.approx(0.28, abs=0.01)


def test_eos_needs_the_source_after_a_short_sentence_and_not_after_a_long_one():
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


def test_greedy_decoding_writes_spain_and_a_beam_of_three_writes_jane():
    says("A beam of three finds a sentence that greedy decoding missed", "(−0.94 instead of −1.51)")
    assert written(translator.model()) == (SPAIN, pytest.approx(-1.51, abs=0.01))
    assert written(translator.model(), 3) == (JANE, pytest.approx(-0.945, abs=0.006))


def test_no_place_is_the_subject_of_a_training_sentence():
    says("In the training data no continent ever visits anybody")
    verbs = {"is", *lexicon.VERBS, *lexicon.PLACE_VERBS, *(verb for verb, _ in lexicon.MOVES)}
    before = set()  # all words that precede a verb
    for pair in training_pairs():
        words = pair.english.split()
        before |= {word for word, following in itertools.pairwise(words) if following in verbs}
    assert "jane" in before and {"africa", "asia", "europe"} < set(lexicon.COUNTRIES)
    assert before.isdisjoint(lexicon.COUNTRIES)


@pytest.mark.slow
def test_translators_of_other_training_runs_write_jane():
    says("all three translators trained from other seeds write *l' visite jane en septembre*")
    from tests.other_trainings import trained

    assert [written(trained(seed))[0] for seed in (1, 2, 3)] == [JANE] * 3


def test_without_a_source_the_first_words_do_not_follow_their_frequencies():
    says("in the training sentences *ma* comes first in 5 of 100, and *un* and *mon* in 10 of 100 each")
    pairs = training_pairs()
    counts = Counter(pair.french.split()[0] for pair in pairs)
    predicted = torch.softmax(figures.first_word_logits(), dim=0)
    assert counts["ma"] / len(pairs) == pytest.approx(0.05, abs=0.005) and predicted[translator.french["ma"]] > 0.5
    for word in ("un", "mon"):
        assert counts[word] / len(pairs) == pytest.approx(0.10, abs=0.006) and predicted[translator.french[word]] < 0.03


def test_how_many_parameters_of_the_translator_were_trained():
    says("3,072 of them, the two tables of positions, are lesson 2's sinusoids and were not trained")
    tables = [table for name, table in translator.state().items() if name.endswith("positions.weight")]
    assert sum(table.numel() for table in tables) == 3072
    says("1,152 biases of $W_Q$, $W_K$ and $W_V$ are 0")
    biases = [bias for name, bias in translator.state().items() if re.search(r"W_[qkv]\.bias$", name)]
    assert sum(bias.numel() for bias in biases) == 1152 and not any(bias.any() for bias in biases)
    for table in tables:
        torch.testing.assert_close(table, blocks.sinusoidal_positions(24, 64), atol=1e-3, rtol=0)
    assert sum(tensor.numel() for tensor in translator.state().values()) == 206_146


def test_top_k_and_top_p_never_sample_from_the_tail():
    first = figures.first_word_logits()
    tail = first.argsort(descending=True)[14:]
    hits = {}
    for name, options in (("none", {}), ("k", {"top_k": 5}), ("p", {"top_p": 0.9})):
        p = torch.softmax(blocks.filter_logits(first, **options), dim=-1)
        drawn = torch.multinomial(p, 2000, replacement=True, generator=torch.Generator().manual_seed(0))
        hits[name] = int(torch.isin(drawn, tail).sum())
    says("about 1% of the words come from the tail", "Top-p keeps eight here")
    assert hits == {"none": pytest.approx(19, abs=2), "k": 0, "p": 0}
