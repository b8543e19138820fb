"""Lesson 9: its blocks against torch's layers and a random BERT, and the numbers that its prose says."""

import functools
import os

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from helpers import blocks, translator
from helpers.checking.forbidden import Watch, in_source
from helpers.checking.rendering import as_text
from helpers.lessons.encoder_block import explore, figures
from helpers.translator.evaluation import exact, nats_a_word, unseen
from tests import draws
from tests.draws import random
from tests.from_torch import block_from_torch
from tests.judged import stored_verdict

torch.set_num_threads(1)
SEEDS = st.integers(0, 10_000)
HEADS = st.sampled_from([(6, 1), (6, 2), (6, 3), (8, 4), (12, 2)])
LENGTHS = st.integers(1, 7)
ORDERS = st.booleans()
close = functools.partial(draws.close, single=1e-6, double=1e-12)


def randomized(module, seed):
    """All parameters random, the norms' too."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        size = parameter.shape[-1] ** -0.5 if parameter.dim() > 1 else 0.5
        size *= 0.3 if parameter.dtype == torch.float32 else 1.0  # so that rounding stays rounding
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype) * size
    return module


@given(SEEDS, HEADS, LENGTHS, ORDERS, st.integers(1, 4), st.booleans())
def test_a_stack_is_torchs_encoder(seed, sizes, T, norm_first, depth, padded):
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


@pytest.mark.full
def test_a_random_bert_has_our_hidden_states():
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import transformers

    config = transformers.BertConfig(
        vocab_size=30,
        hidden_size=24,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=40,
        max_position_embeddings=16,
        hidden_act="gelu",
        layer_norm_eps=1e-12,
        attn_implementation="eager",
    )
    bert = randomized(transformers.BertModel(config, add_pooling_layer=False).double(), 7).eval()
    ids = torch.randint(0, 30, (3, 10), generator=torch.Generator().manual_seed(1))
    mask = torch.arange(10) < torch.tensor([10, 7, 4])[:, None]
    with torch.no_grad():
        hidden = bert(ids, attention_mask=mask.long(), output_hidden_states=True).hidden_states
        x = hidden[0]  # after BERT's own embeddings
        for layer, expected in zip(bert.encoder.layer, hidden[1:], strict=True):
            block = blocks.EncoderBlock(24, 4, 40, activation=F.gelu).double()
            block.norm1.eps = block.norm2.eps = 1e-12
            parts = {
                "attention.W_q": layer.attention.self.query,
                "attention.W_k": layer.attention.self.key,
                "attention.W_v": layer.attention.self.value,
                "attention.W_o": layer.attention.output.dense,
                "norm1": layer.attention.output.LayerNorm,
                "feed_forward.up": layer.intermediate.dense,
                "feed_forward.down": layer.output.dense,
                "norm2": layer.output.LayerNorm,
            }
            block.load_state_dict({f"{p}.{n}": v for p, part in parts.items() for n, v in part.state_dict().items()})
            x = block(x, mask[:, None, None])
            torch.testing.assert_close(x[mask], expected[mask], atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("norm_first", [False, True])
def test_dtype_and_device_of_the_inputs(norm_first):
    encoder = blocks.Encoder(9, 8, 2, 12, 2, 6, norm_first=norm_first).to(torch.bfloat16)
    ids = torch.tensor([[1, 2, 3]])
    assert encoder(ids, torch.ones(3, 3, dtype=torch.bool).tril()).dtype == torch.bfloat16
    on_meta = blocks.Encoder(9, 8, 2, 12, 2, 6).to("meta")
    assert on_meta(ids.to("meta")).device.type == "meta"
    x = random(0, 2, 3, 8).to(torch.bfloat16)
    one = torch.ones(8, dtype=torch.bfloat16)
    assert blocks.layer_norm(x, one, one).dtype == torch.bfloat16


@given(st.integers(1, 8), st.sampled_from([(8, 2), (12, 3)]), st.integers(1, 30))
def test_multiply_adds_are_those_that_torch_counts(T, sizes, d_ff):
    from torch.utils.flop_counter import FlopCounterMode

    D, H = sizes
    block = blocks.EncoderBlock(D, H, d_ff)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        block(torch.zeros(1, T, D))
    assert 2 * blocks.block_macs(T, D, d_ff) == counter.get_total_flops()


# ---------------------------------------------------------------- what the check must see


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
def test_torchs_own_layer_is_a_forbidden_call_and_no_error(answer):
    verdict = verdict_on("EncoderBlock", answer)
    assert verdict.mistake == "forbidden_call" and verdict.points == 0
    assert "nn.TransformerEncoderLayer" in verdict.message


def test_a_learners_own_layer_norm_is_no_forbidden_call():
    with Watch(("layer_norm", "transformer")) as watch:
        blocks.layer_norm(torch.randn(3, 4), torch.ones(4), torch.zeros(4))
    assert not watch.found
    assert not in_source(blocks.layer_norm, ("layer_norm", "transformer"), "99_test")


def test_what_the_parts_of_a_block_are_is_said_once():
    def unchanged(x, attention, feed_forward, norm1, norm2, mask=None):
        return x.clone()

    lines = as_text(verdict_on("fixed_block", unchanged)).splitlines()
    assert len(lines) == len(set(lines)) and "0.19999" not in "".join(lines)


def test_the_options_of_the_courses_encoder_are_no_part_of_the_skeleton():
    from helpers.authoring.release import student_notebook
    from helpers.authoring.text import read_lesson
    from helpers.course import course

    lesson = course().lesson("09_encoder_block")
    released = student_notebook(read_lesson(course(), lesson).notebook, lesson.name)
    assert "num_layers, max_len):" in released and "**options" not in released
    assert blocks.Encoder(9, 8, 2, 12, 1, 6, norm_first=True).blocks[0].norm_first


# ---------------------------------------------------------------- the numbers in the prose


def test_numbers_on_paper():
    x, one, zero = torch.tensor([1.0, 1, 5, 5]), torch.ones(4), torch.zeros(4)
    for row in (x, 10 * x):
        torch.testing.assert_close(blocks.layer_norm(row, one, zero, 0.0), torch.tensor([-1.0, -1, 1, 1]))
    assert round(1.1**30) == 17
    assert blocks.block_macs(3072, 512, 2048) == 2 * 2 * 3072**2 * 512
    block = blocks.EncoderBlock(64, 4, 256)
    assert sum(p.numel() for p in block.feed_forward.parameters() if p.dim() > 1) == 8 * 64**2
    assert sum(p.numel() for p in block.attention.parameters() if p.dim() > 1) == 4 * 64**2


def test_the_sentence_wide_norm_moves_jane():
    one, other = (figures.word_vectors(f"jane visits africa in {month}") for month in ("september", "may"))
    assert (F.layer_norm(one, (64,)) - F.layer_norm(other, (64,)))[0].norm() == 0
    moved = (F.layer_norm(one, one.shape) - F.layer_norm(other, other.shape))[0].norm()
    assert moved.item() == pytest.approx(0.0322, abs=5e-4)


@pytest.mark.full
def test_gradients_over_depth():
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


def test_traces_of_words():
    found = figures.measured_traces()
    assert found["no residual"][0][0] == pytest.approx(0.05, abs=0.006) and found["no residual"][-1][0] < 0.01
    assert [round(found["no residual"][block][1], 2) for block in (0, 2)] == [0.29, 0.00]
    assert [found["pre-norm"][block][0] for block in (0, 11)] == pytest.approx([0.80, 0.37], abs=0.006)
    assert [found["post-norm"][block][0] for block in (0, 8, 11)] == pytest.approx([0.74, 0.08, 0.03], abs=0.006)
    x = figures.random_words()  # the control: what the sentence's mean alone tells
    mean = x.mean(dim=1, keepdim=True).expand_as(x)
    assert figures.recovered(mean.flatten(0, 1), x.flatten(0, 1)) == pytest.approx(0.17, abs=0.006)
    for bug, post in zip(found[figures.BUG], found["post-norm"], strict=True):
        assert bug[0] == pytest.approx(post[0], abs=0.05)  # the bug's line runs on post-norm's


def test_interactions_are_counted_exactly():
    found = figures.measured_interactions()
    assert [sum(size > 1e-9 for size in found["linear", depth]) for depth in (1, 2, 3)] == [2, 5, 8]
    assert max(found["linear", 1][2:] + found["linear", 2][5:]) < 1e-12
    said = [4.4, 1.1, 0.17, 0.21, 0.089, 0.0049]
    assert found["softmax", 1][:6] == pytest.approx(said, rel=0.05)


def test_fast_weights_of_visits():
    first, second = translator.machine().encoder.blocks
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


def test_what_the_wirings_cost_in_the_translator():
    batch, cost = unseen(200), figures.loss_when_rewired
    assert cost("post-norm") == pytest.approx(0.0002, abs=1e-4)
    assert cost(figures.BUG) == pytest.approx(0.06, abs=0.01)
    assert cost("pre-norm") == pytest.approx(2.76, abs=0.03)
    assert cost("no residual") == pytest.approx(8.42, abs=0.05)
    assert nats_a_word(translator.machine(EncoderBlock=ByTheLetter), batch) == pytest.approx(8.0, abs=0.1)
    right = translator.machine(EncoderBlock=blocks.EncoderBlock, layer_norm=blocks.layer_norm)
    assert exact(right, batch.first(100)) > 0.98


def test_a_trained_encoder_loads():
    encoder = blocks.Encoder(len(translator.english), 64, 4, 128, 2, 24)
    encoder.load_state_dict(translator.part_state("encoder"))
    ids = translator.source_batch([figures.SENTENCE])
    torch.testing.assert_close(encoder(ids), translator.machine().encode(ids), atol=1e-5, rtol=1e-5)


@pytest.mark.full
def test_pictures_say_their_numbers():
    assert "jane 0.50 ± 0.50" in figures.normed_words().alt
    assert "two layers 5" in figures.interactions().alt
    assert "linear layer: the row of jane 1.00, 0.00" in figures.three_influences().alt
    assert "1024 tokens and everything else together at 3072" in figures.costs(blocks.block_macs).alt
    assert "3 words; after 1 layer of attention on all 15" in figures.receptive(1, 3).alt
    assert "depend on 15 words" in figures.receptive(7, 3).alt and "depend on 15 words" in figures.receptive(3, 7).alt
    assert "2 times the usual size" in explore.Stack()(2.0).alt
    for picture in (figures.shared_statistics(), figures.absolute_value(), figures.two_orders()):
        assert len(picture.alt) > 100 and picture.caption.startswith("Figure 9.")
