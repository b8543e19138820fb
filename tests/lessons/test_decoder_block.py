"""Lesson 10: its blocks against torch's modules and brute force, whole networks, the machine, and the numbers said."""

import functools
import itertools

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from helpers import blocks, translator
from helpers.blocks import EncoderBlock, causal_mask, split_heads
from helpers.lessons.decoder_block import figures
from helpers.lessons.decoder_block.probes import step_from_table
from tests import draws
from tests.draws import random
from tests.from_torch import block_from_torch

torch.set_num_threads(1)
SEEDS = st.integers(0, 10_000)
LENGTHS = st.integers(1, 7)
close = functools.partial(draws.close, single=1e-6, double=1e-12)


def make_random(module, seed):
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_(random(seed + i, *parameter.shape) * 0.4 + (parameter.dim() == 1))


def make_gentle(module, seed):
    """Random parameters of the size of a fresh network's, under which rounding in float32 stays rounding."""
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            drawn = random(seed + i, *parameter.shape)
            matrix = parameter.dim() > 1
            parameter.copy_(0.3 * parameter.shape[-1] ** -0.5 * drawn if matrix else 1 + 0.1 * drawn)


# ---------------------------------------------------------------- parity with torch's modules


BLOCKS = st.fixed_dictionaries(
    {
        "sizes": st.sampled_from([(4, 1), (6, 2), (12, 3), (16, 4)]),
        "norm_first": st.booleans(),
        "activation": st.sampled_from([F.relu, F.gelu]),
        "dtype": st.sampled_from([torch.float32, torch.float64]),
    }
)


def theirs_and_mine(layers, seed, sizes, norm_first, activation, dtype):
    D, H = sizes
    options = dict(dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first, dtype=dtype)
    theirs = [nn.TransformerDecoderLayer(D, H, 2 * D + 1, **options).eval() for _ in range(layers)]
    mine = [blocks.DecoderBlock(D, H, 2 * D + 1, norm_first, activation).to(dtype) for _ in range(layers)]
    for i, (one, other) in enumerate(zip(mine, theirs, strict=True)):
        (make_gentle if dtype == torch.float32 else make_random)(other, seed + 100 * i)
        block_from_torch(one, other)
    return theirs, mine


@given(SEEDS, st.integers(1, 3), LENGTHS, LENGTHS, st.integers(1, 3), st.booleans(), BLOCKS)
def test_a_stack_of_decoder_blocks_is_torchs(seed, B, T_t, T_s, layers, padded, options):
    theirs, mine = theirs_and_mine(layers, seed, **options)
    D, dtype = options["sizes"][0], options["dtype"]
    y, memory = random(seed, B, T_t, D, dtype=dtype), random(seed + 1, B, T_s, D, dtype=dtype)
    real = torch.ones(B, T_s, dtype=torch.bool)
    if padded:
        real = random(seed + 2, B, T_s) > 0
        real[:, 0] = True
    expected, actual = y, y
    for one, other in zip(mine, theirs, strict=True):
        expected = other(expected, memory, tgt_mask=~causal_mask(T_t), memory_key_padding_mask=~real)
        actual, weights = one(actual, memory, causal_mask(T_t), real[:, None, None, :])
    close(actual, expected)
    assert weights.shape == (B, options["sizes"][1], T_t, T_s)
    close(weights.sum(-1), torch.ones(B, options["sizes"][1], T_t, dtype=dtype))


@given(SEEDS, LENGTHS, LENGTHS, st.booleans())
def test_a_whole_stack_is_nn_transformer(seed, T_s, T_t, norm_first):
    D, H, F_, dtype = 12, 3, 20, torch.float64
    options = dict(dropout=0.0, batch_first=True, norm_first=norm_first, dtype=dtype)
    theirs = nn.Transformer(D, H, 2, 2, F_, **options).eval()
    make_random(theirs, seed)
    encoder = [EncoderBlock(D, H, F_, norm_first).to(dtype) for _ in range(2)]
    decoder = [blocks.DecoderBlock(D, H, F_, norm_first).to(dtype) for _ in range(2)]
    for mine, other in zip([*encoder, *decoder], [*theirs.encoder.layers, *theirs.decoder.layers], strict=True):
        block_from_torch(mine, other)
    x, y = random(seed, 2, T_s, D), random(seed + 1, 2, T_t, D)
    expected = theirs(x, y, tgt_mask=~causal_mask(T_t))
    for block in encoder:
        x = block(x)
    memory = theirs.encoder.norm(x)
    for block in decoder:
        y, _ = block(y, memory, causal_mask(T_t))
    close(theirs.decoder.norm(y), expected)


@pytest.mark.full
def test_gpt2_of_the_transformers_library_gives_the_same_logits():
    import transformers

    config = transformers.GPT2Config(
        vocab_size=37, n_positions=11, n_embd=24, n_layer=3, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0
    )
    torch.manual_seed(0)
    theirs = transformers.GPT2LMHeadModel(config).eval().double()
    make_random(theirs, 5)
    ids = torch.randint(0, 37, (2, 9))
    gpt = theirs.transformer
    x = gpt.wte(ids) + gpt.wpe.weight[:9]
    for layer in gpt.h:
        block = EncoderBlock(24, 4, 96, norm_first=True, activation=lambda z: F.gelu(z, approximate="tanh")).double()
        W, b = layer.attn.c_attn.weight.T.chunk(3), layer.attn.c_attn.bias.chunk(3)  # Conv1D keeps (in, out)
        state = {"norm1.weight": layer.ln_1.weight, "norm1.bias": layer.ln_1.bias}
        state |= {"norm2.weight": layer.ln_2.weight, "norm2.bias": layer.ln_2.bias}
        for name, weight, bias in zip("qkv", W, b, strict=True):
            state |= {f"attention.W_{name}.weight": weight, f"attention.W_{name}.bias": bias}
        for name, part in (
            ("attention.W_o", layer.attn.c_proj),
            ("feed_forward.up", layer.mlp.c_fc),
            ("feed_forward.down", layer.mlp.c_proj),
        ):
            state |= {f"{name}.weight": part.weight.T, f"{name}.bias": part.bias}
        block.load_state_dict(state)
        x = block(x, causal_mask(9))
    logits = gpt.ln_f(x) @ theirs.lm_head.weight.T
    torch.testing.assert_close(logits, theirs(ids).logits, atol=1e-10, rtol=1e-10)


# ---------------------------------------------------------------- the whole Transformer


def small(dtype=torch.float32, seed=0, **options):
    torch.manual_seed(seed)
    model = blocks.Transformer(9, 7, 12, 3, 20, 2, 8, **options).to(dtype).eval()
    make_random(model, seed)
    return model


def test_the_machines_numbers_load_whole_and_translate():
    model = blocks.Transformer(*translator.SIZES)
    model.load_state_dict(translator.state())
    model.eval()
    assert sum(p.numel() for p in model.parameters()) == 206_146
    with torch.no_grad():
        for english, french in (
            ("jane visits africa in september", "jane visite l' afrique en septembre"),
            ("africa visits jane in september", "l' visite l' espagne en septembre"),
        ):
            src = translator.source_batch([english])
            memory = model.encode(src)
            words = {index: word for word, index in translator.french.items()}
            ids = blocks.greedy_decode(lambda p: model.decode(p, memory, src)[:, -1], 1, 2, 20)  # noqa: B023
            assert " ".join(words[i] for i in ids[1:-1]) == french
            ids, score = blocks.beam_search(lambda p: model.decode(p, memory, src)[:, -1], 1, 2, 20, 3)  # noqa: B023
            if english.startswith("jane"):
                assert " ".join(words[i] for i in ids[1:-1]) == french and -0.1 < score < 0
    network = translator.machine()
    src, tgt = torch.randint(1, 160, (3, 6)), torch.randint(1, 190, (3, 7))
    src[1, 4:] = src[2, 2:] = 0
    torch.testing.assert_close(model(src, tgt), network(src, tgt), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_blocks_keep_the_dtype_and_device_of_their_inputs(dtype):
    model = small(dtype)
    assert model(torch.ones(2, 5).long(), torch.ones(2, 4).long()).dtype == dtype
    block = blocks.DecoderBlock(12, 3, 20).to(dtype)
    y, weights = block(torch.randn(2, 4, 12, dtype=dtype), torch.randn(2, 5, 12, dtype=dtype), causal_mask(4))
    assert y.dtype == weights.dtype == dtype
    with torch.device("meta"):
        away = blocks.Transformer(9, 7, 12, 3, 20, 2, 8)
        logits = away(torch.ones(2, 5).long(), torch.ones(2, 4).long())
    assert logits.device.type == "meta" and logits.shape == (2, 4, 7)


# ---------------------------------------------------------------- search


def every_sentence(step, bos, eos, max_len, V):
    """All sequences that end with eos, or have max_len words, with their log-probabilities."""
    for words in itertools.chain(*(itertools.product(range(V), repeat=n) for n in range(1, max_len + 1))):
        if eos in words[:-1] or (words[-1] != eos and len(words) < max_len):
            continue
        total = 0.0
        for t in range(len(words)):
            total += torch.log_softmax(step(torch.tensor([[bos, *words[:t]]])).double(), dim=-1)[0, words[t]].item()
        yield [bos, *words], total


@given(SEEDS, st.integers(2, 4), st.integers(1, 3), st.sampled_from([0.0, 0.6, 1.0, 2.0]))
def test_a_wide_beam_finds_the_best_of_all_sentences(seed, V, max_len, penalty):
    step = step_from_table(random(seed, 53, V))
    ids, score = blocks.beam_search(step, 0, V - 1, max_len, V**max_len, penalty)
    finished = [
        (s / (len(w) - 1) ** penalty, w) for w, s in every_sentence(step, 0, V - 1, max_len, V) if w[-1] == V - 1
    ]
    best, words = max(finished)
    assert ids == words and score == pytest.approx(best, abs=1e-9)


@given(SEEDS, st.integers(2, 6), st.integers(1, 8))
def test_a_beam_of_one_is_greedy_and_greedy_is_the_best_word_each_time(seed, V, max_len):
    step = step_from_table(random(seed, 53, V))
    ids = blocks.greedy_decode(step, 0, V - 1, max_len)
    assert blocks.beam_search(step, 0, V - 1, max_len, 1)[0] == ids
    for t in range(1, len(ids)):
        assert ids[t] == step(torch.tensor([ids[:t]])).argmax()
        assert ids[t] != V - 1 or t == len(ids) - 1
    assert len(ids) == max_len + 1 or ids[-1] == V - 1


def test_the_small_machine_of_the_lesson():
    words = ("<bos>", "<eos>", "le", "la", "chat", "chien", "roi", "reine", "mer")

    def step(prefix):  # (1, t) -> (1, V)
        chances = figures.SMALL.get(tuple(words[i] for i in prefix[0].tolist()), {"<eos>": 1.0})
        return torch.tensor([[chances.get(word, 1e-9) for word in words]]).log()

    greedy = blocks.greedy_decode(step, 0, 1, 5)
    assert [words[i] for i in greedy] == ["<bos>", "le", "chat", "<eos>"]
    for width, said in ((1, "le chat"), (2, "la reine"), (5, "la reine")):
        ids, score = blocks.beam_search(step, 0, 1, 5, width)
        assert " ".join(words[i] for i in ids[1:-1]) == said
        assert torch.tensor(score).exp().item() == pytest.approx(0.36 if said == "la reine" else 0.24, abs=1e-6)
        assert f"finds {said} with" in figures.Beams()(width).alt


def test_filters_on_paper():
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()
    shares = torch.softmax(blocks.filter_logits(logits, top_p=0.7), dim=0)
    torch.testing.assert_close(shares, torch.tensor([0.625, 0.375, 0, 0]))


# ---------------------------------------------------------------- the cache


def test_cached_and_uncached_generation_agree_token_for_token():
    model = blocks.Transformer(*translator.SIZES)
    model.load_state_dict(translator.state())
    model.eval()
    src = translator.source_batch(["my uncle often paints a small yellow bird"])

    def cached_step(cache_of):
        """step of one row that keeps the caches of both blocks; a prefix is longer by one each time."""

        def step(prefix):
            t = prefix.shape[1] - 1
            y = model.tokens(prefix[:, -1:]) + model.positions.weight[t : t + 1]
            for i, block in enumerate(model.blocks):
                mha = block.self_attention
                q, k, v = (split_heads(W(y), mha.num_heads) for W in (mha.W_q, mha.W_k, mha.W_v))
                out, cache_of[i] = blocks.cached_attention(q, k, v, cache_of[i])
                y = block.norm1(y + mha.W_o(out.transpose(1, 2).flatten(2)))
                y = block.norm2(y + block.cross_attention(y, memory)[0])
                y = block.norm3(y + block.feed_forward(y))
            return model.unembed(y)[:, -1]

        return step

    with torch.no_grad():
        memory = model.encode(src)
        plain = blocks.greedy_decode(lambda p: model.decode(p, memory, src)[:, -1], 1, 2, 20)
        cached = blocks.greedy_decode(cached_step([None, None]), 1, 2, 20)
    assert plain == cached and len(plain) > 6


@pytest.mark.full
def test_what_the_cache_saves_is_what_the_formula_says():
    D, width = figures.D, figures.D_FF
    for T in (4, 16):
        plain = sum(4 * t * D**2 + 2 * t * t * D + 2 * t * D * width for t in range(1, T + 1))
        cached = sum(4 * D**2 + 2 * t * D + 2 * D * width for t in range(1, T + 1))
        assert figures.counted_macs(T) == plain
        assert figures.counted_macs(T, blocks.cached_attention) == cached
    alt = figures.cache_saving(blocks.cached_attention).alt
    assert "64 words 79,605,760 against 2,363,392, 33.7 times" in alt
    assert figures.cache_saving(translator.FINISHED_PARTS["cached_attention"]).alt == alt


# ---------------------------------------------------------------- what is said


def test_the_loss_of_the_machine_with_and_without_the_shift():
    from helpers.translator import evaluation

    network, batch = translator.machine(), evaluation.unseen(200)
    assert evaluation.nats_a_word(network, batch) < 0.0003
    assert evaluation.nats_a_word(network, batch, lambda targets, bos: targets) == pytest.approx(8.5, abs=0.06)
    tgt = torch.cat([batch.tgt_in[:, :1], batch.tgt_out], dim=1)
    with torch.no_grad():
        mine = blocks.fixed_loss(network, batch.src, tgt, translator.PAD).item()
    assert mine == pytest.approx(evaluation.nats_a_word(network, batch), rel=1e-2)
    assert torch.equal(blocks.shift_right(batch.tgt_out[:1, :4], translator.BOS), batch.tgt_in[:1, :4])


def test_every_word_at_position_0_never_ends():
    from helpers.translator import evaluation

    network = translator.machine()
    with torch.no_grad():
        network.positions.weight[:] = network.positions.weight[:1].clone()
    assert evaluation.nats_a_word(network, evaluation.unseen(200)) == pytest.approx(11.8, abs=0.05)
    assert set(translator.translate(network, figures.ENGLISH).split()) == {"jane"}


def test_pictures_say_their_numbers():
    alt = figures.cross_attention().alt
    assert "jane (next: visite) to visits 0.97" in alt and "visite (next: l') to africa 0.89" in alt
    assert "septembre (next: <eos>) to jane" in alt and "<eos> 1.000. With" in alt
    alt = figures.next_words().alt
    assert "ma 0.54, la 0.14, une 0.08, david 0.05" in alt and "180 more words: 0.012" in alt
    assert "8 words can be sampled, effective number 4.01" in figures.NextWord()(1.0, 194, 0.9).alt
    assert "all 28 visible cells" in figures.cache_cells().alt
    assert "2: reads visite, predicts l'" in figures.teacher_forcing().alt
