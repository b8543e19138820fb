"""What lesson 9 says of networks, measured again, each with its control. A sentence that changes fails its test."""

import functools
import itertools
import random
import re

import pytest
import torch

from helpers import blocks, translator
from helpers.corpus import lexicon
from helpers.lessons.encoder_block import explore, figures
from tests.lessons import lesson_text

torch.set_num_threads(1)


says = functools.partial(lesson_text.says, "09_encoder_block")


def test_attention_is_linear_for_fixed_weights():
    says("for fixed attention weights, the output is linear in the input")
    generator = torch.Generator().manual_seed(0)
    weights = torch.softmax(torch.randn(5, 5, generator=generator), dim=-1)
    x, y = torch.randn(2, 5, 3, generator=generator)
    torch.testing.assert_close(weights @ (2 * x - y), 2 * weights @ x - weights @ y)


@pytest.mark.full
def test_it_is_the_last_norm_that_makes_the_last_gradient_fall_with_depth():
    says("In pre-norm with a final norm it falls from 70 to 14", "Without the final norm it doesn't fall.")
    _, last = figures.measured_gradients()
    assert last["pre-norm"][0] == pytest.approx(70, abs=1)  # test_gradients_over_depth has where it ends
    assert (last[figures.BARE][0], last[figures.BARE][-1]) == pytest.approx((88, 82), abs=1)
    assert min(last[figures.BARE]) > 0.9 * max(last[figures.BARE])


def test_training_makes_heads_less_predictable():
    says(
        "the second much less (0.30 to 0.54)",
        "Untrained heads that read the trained word vectors are almost completely",
    )
    says("with trained word vectors are predictable: 0.91 to 0.98 | 0.46 to 0.73 if the word vectors are random too")
    bounds = {
        "trained": [(0.87, 0.91), (0.30, 0.54)],
        "trained words, untrained blocks": [(0.91, 0.98)] * 2,
        "untrained": [(0.46, 0.73)] * 2,
    }
    for name, encoder in figures.encoders_to_compare().items():
        for row, (low, high) in zip(figures.predictable(encoder), bounds[name], strict=True):
            assert all(low - 0.006 <= share <= high + 0.006 for share in row), (name, row)


def test_the_repaired_block_keeps_what_pre_norm_keeps():
    says("your fix keeps exactly as much of each word as pre-norm does.", "would recover 17%.")
    says("only 5% of the word's variance can be recovered after **one** untrained block")
    says("80% can be recovered after one block and 37% after twelve", "from 74% after one block to 3% after twelve")
    with torch.no_grad():
        stream = figures.climb(blocks.fixed_block, figures.layers(figures.TRACED), figures.random_words())
    found = figures.traces(stream)
    for mine, theirs in zip(found, figures.measured_traces()["pre-norm"], strict=True):
        assert mine == pytest.approx(theirs, abs=1e-3)
    assert found[-1][0] > figures.measured_traces()[figures.BUG][-1][0] + 0.2


@pytest.mark.full
def test_the_translator_without_its_feed_forward_networks():
    says("the loss rises to 0.17 nats per word, and 146 of 200 sentences are still correct")
    says("it rises to 4.95 nats and no sentence is correct")
    whole, cut, straight = figures.damage_without_feed_forward().values()
    assert whole[0] < 0.0003 and whole[1] > 0.99
    assert cut == pytest.approx((0.17, 146 / 200), abs=0.006)
    assert straight == pytest.approx((4.95, 0.0), abs=0.01)


def test_what_the_figures_say_of_the_learners_functions():
    assert "Dots are the sum for 30 tokens" in figures.costs(blocks.block_macs).alt
    moved = figures.encoder_influence(blocks.token_influence).alt
    rows = [list(map(float, row.split(", "))) for row in re.findall(r": ([\d., ]+?)[.;](?= |$)", moved)]
    assert len(rows) == 5 and all(row.index(max(row)) == i for i, row in enumerate(rows))


@pytest.mark.full
def test_small_matrices_leave_the_stream_alone_only_beside_a_residual():
    says(
        "with residual connections small matrices add little",
        "Post-norm and the line without a residual connection keep size 1",
    )
    starts = torch.randn(20, 1, 5, explore.WIDTH, generator=torch.Generator().manual_seed(1))
    for kind in explore.KINDS:
        pairs = figures.layers(explore.DEPTH, explore.WIDTH, 0.25)
        ends = [figures.climb(figures.arranged(kind), pairs, x)[-1] for x in starts]
        left = torch.cosine_similarity(starts, torch.stack(ends), dim=-1).mean().item()
        assert abs(left) < 0.15 if kind == "no residual" else left > 0.9, (kind, left)
        size = explore.streams(kind, 2.0)[0][-1]
        assert (abs(size - 1) < 0.05) == (kind in ("post-norm", "no residual")), kind


@torch.no_grad()
def test_a_mean_says_that_the_translator_listens_more_to_what_is_near_and_single_names_do_not():
    says("at the fourth word turns the name's vector three to four times as far as the same replacement at the seventh")
    says("(in untrained blocks 1.2 times)", "(for *jane* it's 1.3 times)", "1.2 times if things are replaced")
    encoders = figures.encoders_to_compare()
    names = sorted(lexicon.NAMES)
    for kind in ("trained", "trained words, untrained blocks"):
        assert _near_to_far(encoders[kind], names, lexicon.THINGS) == pytest.approx(1.2, abs=0.06)
    assert 2.8 < _near_to_far(encoders["trained"], names) < 4.2
    assert _near_to_far(encoders["trained words, untrained blocks"], names) == pytest.approx(1.2, abs=0.06)
    assert _near_to_far(encoders["trained"], ["jane"]) == pytest.approx(1.3, abs=0.15)
    says("the mean depends on a few masculine names")
    nouns = sorted(set(lexicon.BEINGS) - {"teacher"})
    names = encoders["trained"](translator.source_batch([f"omar sees the {noun} with the teacher" for noun in nouns]))
    turned: dict = {True: [], False: []}  # whether the noun changes its gender
    for i, j in itertools.combinations(range(len(nouns)), 2):
        changed = lexicon.BEINGS[nouns[i]][1] != lexicon.BEINGS[nouns[j]][1]
        turned[changed].append(1 - torch.cosine_similarity(names[i, 0], names[j, 0], dim=0).item())
    assert sum(turned[True]) / len(turned[True]) > 3 * sum(turned[False]) / len(turned[False])


def _near_to_far(encoder, names, nouns=lexicon.BEINGS) -> float:
    """How many times as far a name turns by an exchange of two nouns at the fourth word as at the seventh."""
    draw, sentences = random.Random(0), []
    verbs, nouns = (sorted(words) for words in (lexicon.VERBS, nouns))
    for _ in range(300):
        start, (other, *pair) = f"{draw.choice(names)} {draw.choice(verbs)} the", draw.sample(nouns, 3)
        sentences += [f"{start} {noun} with the {other}" for noun in pair]
        sentences += [f"{start} {other} with the {noun}" for noun in pair]
    ids = translator.source_batch(sentences)
    vectors = encoder(ids)[:, 0].double().view(300, 2, 2, -1)  # sentence, near or far, which of the pair, channel
    near, far = (1 - torch.cosine_similarity(vectors[:, :, 0], vectors[:, :, 1], dim=-1)).mean(0)
    return (near / far).item()
