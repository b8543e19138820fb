"""Lesson 9: its blocks compared with torch's layers, and the numbers in its text."""

import functools
import itertools
import random
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from helpers import blocks, translator
from helpers.checking.forbidden import Watch, in_source
from helpers.checking.rendering import as_text
from helpers.corpus import lexicon
from helpers.lessons.encoder_block import explore, figures
from helpers.translator.evaluation import exact, nats_per_word, unseen
from tests import draws
from tests.draws import pictures_of
from tests.from_torch import block_from_torch
from tests.judged import stored_verdict
from tests.lessons import lesson_text

HEADS = st.sampled_from([(6, 1), (6, 2), (6, 3), (8, 4), (12, 2)])
close = functools.partial(draws.close, single=1e-6, double=1e-12)


def randomized(module, seed):
    """Set all parameters of `module` to random values, also those of the norms."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        size = parameter.shape[-1] ** -0.5 if parameter.dim() > 1 else 0.5
        size *= 0.3 if parameter.dtype == torch.float32 else 1.0  # keeps rounding errors small
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype) * size
    return module


@given(st.integers(0, 10_000), HEADS, st.integers(1, 7), st.booleans(), st.integers(1, 4), st.booleans())
def test_a_stack_of_our_blocks_equals_nn_transformer_encoder(seed, sizes, T, norm_first, depth, padded):
    D, H = sizes
    layer = nn.TransformerEncoderLayer(
        D, H, 9, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    theirs = randomized(nn.TransformerEncoder(layer, depth, enable_nested_tensor=False), seed)
    mine = randomized(blocks.Encoder(13, D, H, 9, depth, 8, norm_first=norm_first).double(), seed + 1)
    for block, other in zip(mine.blocks, theirs.layers, strict=True):
        block_from_torch(block, other)
    ids = torch.randint(0, 13, (3, T), generator=torch.Generator().manual_seed(seed))
    mask = torch.arange(T) < (torch.tensor([T, max(1, T - 1), 1])[:, None] if padded else T)  # (3, T)
    mask = mask.expand(3, T)
    x = mine.tokens.weight[ids] + mine.positions.weight[:T]
    out, expected = mine(ids, mask[:, None, None]), theirs(x, src_key_padding_mask=~mask)
    close(out[mask], expected[mask])


@given(st.integers(1, 8), st.sampled_from([(8, 2), (12, 3)]), st.integers(1, 30))
def test_block_macs_are_half_of_the_operations_that_torch_counts(T, sizes, d_ff):
    from torch.utils.flop_counter import FlopCounterMode

    D, H = sizes
    block = blocks.EncoderBlock(D, H, d_ff)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        block(torch.zeros(1, T, D))
    assert 2 * blocks.block_macs(T, D, d_ff) == counter.get_total_flops()


verdict_on = functools.partial(stored_verdict, "09_encoder_block")


class Wrapped(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False, activation=F.relu):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(d_model, num_heads, d_ff, 0.0, activation, batch_first=True)

    def forward(self, x, mask=None):
        return self.layer(x, mask)


class Inherited(nn.TransformerEncoderLayer):
    pass


@pytest.mark.full
@pytest.mark.parametrize("answer", [Wrapped, Inherited])
def test_torchs_own_layer_is_a_forbidden_call_and_not_an_error(answer):
    verdict = verdict_on("EncoderBlock", answer)
    assert verdict.mistake == "forbidden_call" and verdict.points == 0
    assert "nn.TransformerEncoderLayer" in verdict.message


def test_a_learners_own_layer_norm_is_allowed():
    with Watch(("layer_norm", "transformer")) as watch:
        blocks.layer_norm(torch.randn(3, 4), torch.ones(4), torch.zeros(4))
    assert not watch.found
    assert not in_source(blocks.layer_norm, ("layer_norm", "transformer"), "99_test")


def test_a_message_describes_the_parts_of_a_block_only_once():
    def unchanged(x, attention, feed_forward, norm1, norm2, mask=None):
        return x.clone()

    lines = as_text(verdict_on("fixed_block", unchanged)).splitlines()
    assert len(lines) == len(set(lines)) and "0.19999" not in "".join(lines)


def test_an_error_in_token_influence_is_not_taken_for_a_change_of_x():
    def as_wide_as_x(f, x):
        x = x.detach().clone().requires_grad_()
        y = f(x)
        grads = [torch.autograd.grad(y[:, e].sum(), x, retain_graph=True)[0] for e in range(x.shape[1])]
        return torch.stack(grads).pow(2).sum(dim=0)

    text = as_text(verdict_on("token_influence", as_wide_as_x))
    assert "IndexError" in text and "requires_grad" not in text


def test_the_skeleton_of_encoder_leaves_out_the_courses_options():
    from helpers.authoring.release import student_notebook
    from helpers.authoring.text import read_lesson
    from helpers.course import course

    lesson = course().lesson("09_encoder_block")
    released = student_notebook(read_lesson(course(), lesson).notebook)
    assert "num_layers, max_len):" in released and "**options" not in released
    assert blocks.Encoder(9, 8, 2, 12, 1, 6, norm_first=True).blocks[0].norm_first


def test_a_norm_over_the_sentence_lets_one_word_change_another():
    one, other = (figures.word_vectors(f"jane visits africa in {month}") for month in ("september", "may"))
    assert (F.layer_norm(one, (64,)) - F.layer_norm(other, (64,)))[0].norm() == 0
    moved = (F.layer_norm(one, one.shape) - F.layer_norm(other, other.shape))[0].norm()
    assert moved.item() == pytest.approx(0.0322, abs=5e-4)


@pytest.mark.full
def test_gradients_by_depth_and_kind_of_block():
    along, last = figures.measured_gradients()
    free = along["residual, no norm"]
    assert free[0].item() == pytest.approx(499, rel=0.01) and free[-1].item() == pytest.approx(0.00034, rel=0.05)
    starts = [figures.gradients("residual, no norm", 24, seed=seed)[0][0].item() for seed in range(15)]
    assert 31 < min(starts) < 33 and 93_000 < max(starts) < 95_000
    for kind in ("no residual", "post-norm", "pre-norm"):
        assert 1 < along[kind].min() and along[kind].max() < 20, kind
    assert last["post-norm"][0] == pytest.approx(76, abs=1) and last["post-norm"][-1] == pytest.approx(70, abs=1.5)
    assert last["pre-norm"][-1] == pytest.approx(14, abs=1)
    for depth, value in zip(last["depths"], last["pre-norm"], strict=True):
        assert value == pytest.approx(last["pre-norm"][0] / depth**0.5, rel=0.45)


def test_how_much_of_a_word_each_block_leaves():
    found = figures.measured_traces()
    assert found["no residual"][0][0] == pytest.approx(0.05, abs=0.006) and found["no residual"][-1][0] < 0.01
    assert [round(found["no residual"][block][1], 2) for block in (0, 2)] == [0.29, 0.00]
    assert [found["pre-norm"][block][0] for block in (0, 11)] == pytest.approx([0.80, 0.37], abs=0.006)
    assert [found["post-norm"][block][0] for block in (0, 8, 11)] == pytest.approx([0.74, 0.08, 0.03], abs=0.006)
    x = figures.random_words()  # the control: recovered from the sentence's mean alone
    mean = x.mean(dim=1, keepdim=True).expand_as(x)
    assert figures.recovered(mean.flatten(0, 1), x.flatten(0, 1)) == pytest.approx(0.17, abs=0.006)
    for bug, post in zip(found[figures.BUG], found["post-norm"], strict=True):
        assert bug[0] == pytest.approx(post[0], abs=0.05)  # the bug's line coincides with that of post-norm


def test_interactions_are_counted_exactly():
    one, two, three = (figures.orders_of_interaction("linear", depth) for depth in (1, 2, 3))
    assert [sum(size > 1e-9 for size in sizes) for sizes in (one, two, three)] == [2, 5, 8]
    assert max(one[2:] + two[5:]) < 1e-12
    stated = [4.4, 1.1, 0.17, 0.21, 0.089, 0.0049]
    assert figures.orders_of_interaction("softmax", 1)[:6] == pytest.approx(stated, rel=0.05)


def test_the_word_that_visits_attends_to_depends_on_the_sentence():
    first, second = translator.model().encoder.blocks
    seen = {}
    for sentence in ("jane visits africa in september", "paul visits france in september"):
        _, weights = second.attention(first(figures.word_vectors(sentence)[None]))
        row = weights[0, 0, 1]
        seen[sentence.split()[row.argmax()]] = round(row.max().item(), 2)
    assert seen == {"jane": 0.49, "france": 0.53}


class ByTheLetter(translator.FINISHED_PARTS["EncoderBlock"]):
    def forward(self, x, mask=None):
        x = x + self.norm1(self.attention(x, mask=mask)[0])
        return x + self.norm2(self.feed_forward(x))


def test_loss_of_the_translator_when_its_blocks_are_rewired():
    batch, cost = unseen(200), figures.loss_when_rewired
    assert cost("post-norm") == pytest.approx(0.0002, abs=1e-4)
    assert cost(figures.BUG) == pytest.approx(0.06, abs=0.01)
    assert cost("pre-norm") == pytest.approx(2.76, abs=0.03)
    assert cost("no residual") == pytest.approx(8.42, abs=0.05)
    assert nats_per_word(translator.model(EncoderBlock=ByTheLetter), batch) == pytest.approx(8.0, abs=0.1)
    right = translator.model(EncoderBlock=blocks.EncoderBlock, layer_norm=blocks.layer_norm)
    assert exact(right, batch.first(100)) > 0.98


@pytest.mark.full
def test_figures_state_their_numbers():
    assert "jane 0.50 ± 0.50" in figures.normed_words().alt
    assert "two layers 5" in figures.interactions().alt
    assert "linear layer: the row of jane 1.00, 0.00" in figures.three_influences().alt
    assert "1024 tokens and everything else together at 3072" in figures.costs(blocks.block_macs).alt
    assert "3 words; after 1 layer of attention on all 15" in figures.receptive(1, 3).alt
    assert "depend on 15 words" in figures.receptive(7, 3).alt and "depend on 15 words" in figures.receptive(3, 7).alt
    assert "2 times the usual size" in pictures_of(explore.stack)(2.0).alt


# Measured claims. The lesson has to contain each sentence that is quoted here.

says = functools.partial(lesson_text.says, "09_encoder_block")


def test_attention_is_linear_for_fixed_weights():
    says("for fixed attention weights, the output is linear in the input")
    generator = torch.Generator().manual_seed(0)
    weights = torch.softmax(torch.randn(5, 5, generator=generator), dim=-1)
    x, y = torch.randn(2, 5, 3, generator=generator)
    torch.testing.assert_close(weights @ (2 * x - y), 2 * weights @ x - weights @ y)


@pytest.mark.full
def test_the_last_gradient_falls_with_depth_only_with_a_final_norm():
    says("In pre-norm with a final norm it falls from 70 to 14", "Without the final norm it barely changes.")
    _, last = figures.measured_gradients()
    assert last["pre-norm"][0] == pytest.approx(70, abs=1)  # its end: test_gradients_by_depth_and_kind_of_block
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


def test_the_fixed_block_keeps_as_much_of_a_word_as_pre_norm():
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
def test_damage_to_the_translator_without_feed_forward_networks():
    says("the loss rises to 0.17 nats per word, and 146 of 200 sentences are still correct")
    says("it rises to 4.95 nats and no sentence is correct")
    whole, cut, straight = figures.damage_without_feed_forward().values()
    assert whole[0] < 0.0003 and whole[1] > 0.99
    assert cut == pytest.approx((0.17, 146 / 200), abs=0.006)
    assert straight == pytest.approx((4.95, 0.0), abs=0.01)


def test_figures_are_drawn_from_the_learners_functions():
    assert "Dots are the sum for 30 tokens" in figures.costs(blocks.block_macs).alt
    moved = figures.encoder_influence(blocks.token_influence).alt
    rows = [list(map(float, row.split(", "))) for row in re.findall(r": ([\d., ]+?)[.;](?= |$)", moved)]
    assert len(rows) == 5 and all(row.index(max(row)) == i for i, row in enumerate(rows))


@pytest.mark.full
def test_small_matrices_keep_the_stream_only_with_residual_connections():
    says(
        "the three lines with residual connections are close together in both charts, because small matrices",
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
def test_near_words_matter_more_on_average_but_not_for_every_name():
    says("at the fourth word turns the name's vector three to four times as far as the same replacement at the seventh")
    says("(in untrained blocks 1.2 times)", "(for *jane* it's 1.3 times)", "1.2 times if things are replaced")
    encoders = figures.encoders_to_compare()
    names = sorted(lexicon.NAMES)
    for kind in ("trained", "trained words, untrained blocks"):
        assert near_over_far(encoders[kind], names, lexicon.THINGS) == pytest.approx(1.2, abs=0.06)
    assert 2.8 < near_over_far(encoders["trained"], names) < 4.2
    assert near_over_far(encoders["trained words, untrained blocks"], names) == pytest.approx(1.2, abs=0.06)
    assert near_over_far(encoders["trained"], ["jane"]) == pytest.approx(1.3, abs=0.15)
    says("the mean depends on a few masculine names")
    nouns = sorted(set(lexicon.BEINGS) - {"teacher"})
    names = encoders["trained"](translator.source_batch([f"omar sees the {noun} with the teacher" for noun in nouns]))
    turned: dict = {True: [], False: []}  # whether the noun changes its gender
    for i, j in itertools.combinations(range(len(nouns)), 2):
        changed = lexicon.BEINGS[nouns[i]][1] != lexicon.BEINGS[nouns[j]][1]
        turned[changed].append(1 - torch.cosine_similarity(names[i, 0], names[j, 0], dim=0).item())
    assert sum(turned[True]) / len(turned[True]) > 3 * sum(turned[False]) / len(turned[False])


def near_over_far(encoder, names, nouns=lexicon.BEINGS) -> float:
    """Return how far replacing the fourth word turns the name's vector, divided by the same for the seventh word."""
    draw, sentences = random.Random(0), []
    verbs, nouns = (sorted(words) for words in (lexicon.VERBS, nouns))
    for _ in range(300):
        start, (other, *pair) = f"{draw.choice(names)} {draw.choice(verbs)} the", draw.sample(nouns, 3)
        sentences += [f"{start} {noun} with the {other}" for noun in pair]
        sentences += [f"{start} {other} with the {noun}" for noun in pair]
    ids = translator.source_batch(sentences)
    vectors = encoder(ids)[:, 0].double().view(300, 2, 2, -1)  # (sentence, near or far, noun, channel)
    near, far = (1 - torch.cosine_similarity(vectors[:, :, 0], vectors[:, :, 1], dim=-1)).mean(0)
    return (near / far).item()
