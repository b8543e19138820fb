"""Lesson 14: the blocks compared with Llama and Mistral of transformers, the numbers in the text, and the programs of
bench/ that measured them."""

import math
import os
import random
import re

import pytest
import torch
from torch.nn import functional as F

from bench import dialect, six_changes, small_writer
from helpers import blocks, corpus, translator
from helpers.course import course
from helpers.drawing.measured import measured
from helpers.lessons.today import adapting, explore, figures, layout, published
from helpers.lessons.today.decoder import Decoder, reach
from helpers.translator import evaluation
from tests.draws import pictures_of
from tests.lessons.lesson_text import says

os.environ.setdefault("HF_HUB_OFFLINE", "1")
LESSON = "14_today"

# ---------------------------------------------------------------- the learner's decoder equals the published one


def with_random_weights(model, seed):
    """Give a model of transformers larger random weights, because its own initialization hides most differences."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, item in model.named_parameters():
            size = 1.0 if item.dim() == 1 else item.shape[-1] ** -0.5
            item.copy_(torch.randn(item.shape, generator=generator, dtype=item.dtype) * size)
            if "norm" in name and item.dim() == 1:
                item.add_(1)
    return model.eval()


def sizes(seed):
    """Return random sizes of a small model, as arguments of Decoder, and token ids for it."""
    rng = random.Random(seed)
    kv_heads, group, width = rng.choice((1, 2, 3)), rng.choice((1, 2, 3)), rng.choice((2, 4, 6, 8))
    heads = kv_heads * group
    T, V = rng.randrange(5, 14), rng.randrange(11, 40)
    taken = dict(
        vocab_size=V,
        d_model=heads * width,
        num_heads=heads,
        num_kv_heads=kv_heads,
        d_ff=rng.randrange(5, 40),
        num_layers=rng.choice((1, 2, 3)),
        base=rng.choice((50.0, 10_000.0, 500_000.0)),
        eps=rng.choice((1e-5, 1e-6)),
    )
    return taken, torch.randint(V, (2, T), generator=torch.Generator().manual_seed(seed))


def settings_of_transformers(taken, **more):
    return dict(
        vocab_size=taken["vocab_size"],
        hidden_size=taken["d_model"],
        intermediate_size=taken["d_ff"],
        num_hidden_layers=taken["num_layers"],
        num_attention_heads=taken["num_heads"],
        num_key_value_heads=taken["num_kv_heads"],
        head_dim=taken["d_model"] // taken["num_heads"],
        rms_norm_eps=taken["eps"],
        rope_parameters={"rope_type": "default", "rope_theta": taken["base"]},
        max_position_embeddings=64,
        attn_implementation="eager",
        **more,
    )


@pytest.mark.parametrize("seed", range(14))
@torch.no_grad()
def test_the_decoder_equals_llama_and_with_a_window_mistral(seed):
    import transformers

    taken, ids = sizes(seed)
    window = 1 + seed % 4 if seed >= 8 else None
    tied = window is None and seed % 3 == 0
    kind, more = ("Mistral", {"sliding_window": window}) if window else ("Llama", {})
    config = getattr(transformers, f"{kind}Config")(**settings_of_transformers(taken, tie_word_embeddings=tied, **more))
    theirs = with_random_weights(getattr(transformers, f"{kind}ForCausalLM")(config), seed)
    state = dict(theirs.state_dict())
    if tied:
        state.pop("lm_head.weight", None)
    mine = Decoder(blocks.LlamaBlock, **taken)
    mine.load_state_dict(blocks.rename_llama(state))
    mask = blocks.sliding_window_mask(ids.shape[1], window=window) if window else None
    expected = theirs(ids).logits
    torch.testing.assert_close(mine(ids, mask), expected, atol=1e-5, rtol=1e-5)
    assert not window or (mine(ids) - expected).abs().max() > 1e-3  # the window matters


@pytest.mark.parametrize("tied", [False, True])
@torch.no_grad()
def test_the_made_up_weights_have_llamas_names_and_give_its_logits(tied):
    import transformers

    taken = layout.SIZES | {"base": layout.BASE, "eps": layout.EPS}
    config = transformers.LlamaConfig(**settings_of_transformers(taken, tie_word_embeddings=tied))
    theirs, state = transformers.LlamaForCausalLM(config).eval(), layout.random_llama(tied)
    missing, unexpected = theirs.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= ({"lm_head.weight"} if tied else set())
    theirs.tie_weights()
    ids = torch.randint(40, (2, 9), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(layout.llama_logits(state, ids), theirs(ids).logits, atol=1e-5, rtol=1e-5)
    mine = Decoder(blocks.LlamaBlock, **layout.SIZES)
    mine.load_state_dict(blocks.rename_llama(state))
    written = ids[:1]
    for _ in range(8):
        written = torch.cat([written, layout.llama_logits(state, written)[:, -1:].argmax(-1)], dim=1)
    assert mine.write(ids[:1], 8).tolist() == written.tolist()


# ---------------------------------------------------------------- byte-pair encoding


def test_the_figure_of_merges_shows_what_training_does():
    space = [tuple(token.decode().replace(" ", "␣") for token in pair) for pair in blocks.train_bpe("ab ab abc", 9)]
    assert space == [("a", "b"), ("␣", "ab"), ("␣ab", "c")]
    for pair in space:
        assert f"({pair[0]}, {pair[1]})" in figures.merges().alt


# ---------------------------------------------------------------- a published model


@pytest.fixture
def a_folder(tmp_path):
    """A folder laid out like a published model, with random weights, and the libraries' model and tokenizer for it."""
    import transformers
    from safetensors.torch import save_file
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    taught = ["jane visits africa in september"] * 3 + ["l'été à l'hôtel"]
    tokenizer.train_from_iterator(taught, trainers.BpeTrainer(vocab_size=290, initial_alphabet=alphabet))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    taken = layout.SIZES | {"vocab_size": 290, "base": 1000.0, "eps": 1e-5}
    config = transformers.LlamaConfig(**settings_of_transformers(taken, tie_word_embeddings=True))
    theirs = with_random_weights(transformers.LlamaForCausalLM(config), 3)
    config.save_pretrained(tmp_path)
    save_file({n: t for n, t in theirs.state_dict().items() if n != "lm_head.weight"}, tmp_path / "model.safetensors")
    return tmp_path, theirs, tokenizer


def test_a_published_model_writes_the_same_text_with_the_learners_blocks(a_folder):
    folder, theirs, tokenizer = a_folder
    found, text = published.model(folder), "jane visits"
    mine = Decoder(blocks.LlamaBlock, **found.sizes)
    mine.load_state_dict(blocks.rename_llama(found.state))
    ids = torch.tensor([tokenizer.encode(text).ids])
    written = theirs.generate(ids, max_new_tokens=8, do_sample=False, eos_token_id=None, pad_token_id=0)[0].tolist()
    assert mine.write(ids, 8)[0].tolist() == written
    assert found.continued(mine, blocks.encode_bpe(text, found.merges), 8) == tokenizer.decode(written)


def test_a_model_of_another_kind_is_refused_with_the_reason(a_folder):
    import json

    folder, _, _ = a_folder
    config = json.loads((folder / "config.json").read_text())
    assert published.sizes_of(config)["base"] == 1000.0
    for change, reason in (
        ({"attention_bias": True}, "biases"),
        ({"hidden_act": "gelu"}, "silu"),
        ({"model_type": "gemma"}, "Llama's"),
        ({"head_dim": 16}, "width"),
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 1.0}}, "RoPE"),
    ):
        with pytest.raises(ValueError, match=reason):
            published.sizes_of(config | change)


@torch.no_grad()
def test_without_a_folder_the_courses_own_model_writes_and_says_what_to_do(tmp_path, capsys):
    found = published.model(tmp_path / "llama")
    assert "into a folder llama beside this notebook" in capsys.readouterr().out
    mine = Decoder(blocks.LlamaBlock, **found.sizes).eval()
    mine.load_state_dict(blocks.rename_llama(found.state))
    assert sum(item.numel() for name, item in mine.named_parameters() if name != "unembed.weight") == 824_448
    says(LESSON, "four blocks and 824,448 parameters")
    line, strange = "I pray you, sir, tell me what is the matter.\n", "0x7f [kernel] panic: {not} syncing; @@ -1,3 +1,9"
    assert small_writer.nats_per_byte(mine, line * 9, found.merges) < 1.5
    assert small_writer.nats_per_byte(mine, strange * 9, found.merges) > 3
    prompt = blocks.encode_bpe("ROMEO:\n", found.merges)
    drawn = [found.continued(mine, prompt, 30, 0.8, seed) for seed in (0, 1, 1)]
    assert drawn[0] != drawn[1] == drawn[2] and all(text.startswith("ROMEO:\n") for text in drawn)
    files = list(published.WRITER.iterdir())
    assert sorted(file.name for file in files) == sorted(published.FILES)
    assert sum(file.stat().st_size for file in files) < 2_000_000


def test_loss_of_the_small_model_with_windows_and_sinks():
    found = measured("today", "sinks")
    rows = ["all tokens", "window 16, 0 sinks", "window 16, 1 sinks", "window 16, 4 sinks", "window 17", "window 20"]
    assert list(found) == [rows[i] for i in (0, 1, 2, 4, 3, 5)]
    text = (course().root / "solutions" / LESSON / f"{LESSON}.py").read_text("utf-8")
    assert re.findall(r"^# \|.*\| (\d\.\d{3}) \|$", text, re.MULTILINE) == [f"{found[row]:.3f}" for row in rows]
    cost = found["window 16, 0 sinks"] - found["all tokens"]
    back = [(found["window 16, 0 sinks"] - found[row]) / cost for row in ("window 16, 4 sinks", "window 20")]
    assert cost == pytest.approx(0.02, abs=0.002) and back == pytest.approx([1 / 20, 0.73], abs=0.02)
    says(LESSON, "four sinks give back a twentieth", "nearly three quarters")


def test_cache_sizes_of_published_models():
    by_name = {model.name: model for model in figures.MODELS}
    llama2, llama3 = by_name["Llama 2, 7B"], by_name["Llama 3, 8B"]
    assert llama2.bytes_of_a_token() == 524_288 and llama2.bytes_of(4096) == 2 * figures.GIB
    assert figures.in_bytes(llama3.bytes_of_a_token()) == "128 KiB"
    assert 2 * 6_738_415_616 / llama2.bytes_of(4096) == pytest.approx(6.28, abs=0.01)  # about a sixth of its weights
    mistral = by_name["Mistral v0.1, 7B"]
    assert mistral.bytes_of(65_536) == mistral.bytes_of(4096) == 512 * figures.MIB
    assert [figures.kind(model) for model in figures.MODELS] == ["MHA", "MHA", "GQA", "GQA", "MQA", "GQA"]
    assert "Falcon, 7B (MQA) 8 KiB per token" in figures.cache_bytes().alt


def test_parameter_counts_of_published_models():
    def counts(heads, kv_heads, d_ff, V, tables=2):
        with torch.device("meta"):
            block = blocks.LlamaBlock(4096, heads, kv_heads, d_ff)
        return 32 * sum(p.numel() for p in block.parameters()) + tables * V * 4096 + 4096

    assert counts(32, 8, 14336, 128256) == 8_030_261_248  # Llama 3, 8B
    assert counts(32, 8, 14336, 32000) == 7_241_732_096  # Mistral v0.1, 7B
    assert counts(32, 32, 11008, 32000) == 6_738_415_616  # Llama 2, 7B
    share = 3 * 4096 * 14336 / 218_112_000
    assert share == pytest.approx(0.8, abs=0.01)
    says(
        LESSON,
        "These 8,030,261,248 parameters are the *8B* in the name",
        "four fifths of each block are its feed-forward network",
    )
    assert 218_112_000 / (2 * 4096 * 1024) == pytest.approx(26, abs=0.5)


def test_rms_norm_and_layer_norm_hardly_differ_on_the_translators_words():
    words = translator.state()["encoder.tokens.weight"][1:]
    share = words.mean(-1) ** 2 / words.pow(2).mean(-1)
    assert share.mean().item() == pytest.approx(0.0026, abs=1e-4)
    assert share.max().item() == pytest.approx(0.0231, abs=1e-4)
    apart = blocks.rms_norm(words, torch.ones(64)) - blocks.layer_norm(words, torch.ones(64), torch.zeros(64))
    assert apart.norm(dim=-1).mean().item() / 8 == pytest.approx(0.040, abs=1e-3)
    chance = torch.randn(4000, 64, generator=torch.Generator().manual_seed(0))  # the control
    share = chance.mean(-1) ** 2 / chance.pow(2).mean(-1)
    assert share.mean().item() == pytest.approx(1 / 64, abs=1e-3)
    says(LESSON, "Only a quarter of a percent is in the mean", "the mean would account for about 1.6%")


def test_the_explorer_shows_which_tokens_a_stack_depends_on():
    for window, sinks, layers in ((3, 0, 1), (3, 0, 3), (3, 1, 2), (2, 2, 3)):
        mask = blocks.sliding_window_mask(explore.TOKENS, window=window, sinks=sinks)
        reached = reach(blocks.LlamaBlock, mask, layers)
        assert reached == explore.seen_through(window, sinks, layers)[-1].nonzero().flatten().tolist()
        if sinks == 0:
            assert len(reached) == 1 + layers * (window - 1)


def test_frequent_words_become_one_token():
    sentences = corpus.training_pairs()[:200]
    learned = blocks.train_bpe("\n".join(f"{pair.english}\n{pair.french}" for pair in sentences), 300)
    assert {b" visits", b" september"} <= set(blocks.encode_bpe("jane visits africa in september", learned))
    for text in ("東京", "👋"):
        assert all(len(token) == 1 for token in blocks.encode_bpe(text, learned))
    says(LESSON, "Frequent words such as *visits* and *september* have become single tokens")


def test_untrained_lora_leaves_the_translator_unchanged():
    finished, network = adapting.finished_translator(), adapting.adapted(adapting.finished_translator(), blocks.LoRA, 4)
    learn = [name for name, item in network.named_parameters() if item.requires_grad]
    assert len(learn) == 24 and all(name.endswith((".A", ".B")) for name in learn)
    number = sum(item.numel() for item in network.parameters() if item.requires_grad)
    assert number == 6144 and number / sum(item.numel() for item in network.parameters()) < 0.03
    before = adapting.nats_per_word(finished, 20)
    assert adapting.nats_per_word(network, 20) == pytest.approx(before, abs=1e-7) and before < 0.001
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():  # other weights do change the loss
        for name, item in network.named_parameters():
            if name.endswith(".B"):
                item.copy_(torch.randn(item.shape, generator=generator) * 4)
    assert adapting.nats_per_word(network, 20) > 10 * before


ONE_HEAD = "one head of keys and values"


def test_of_six_changes_only_rope_matters_in_a_short_training_run():
    found = figures.measured("today", "changes")
    above = {name: [loss - found["line"] for loss in three] for name, three in found["losses"].items()}
    mean = {name: round(sum(three) / 3, 2) for name, three in above.items()}
    assert (mean["2017"], mean["rotations"], mean["all six"]) == (0.60, 0.52, 0.53)
    assert {name for name, three in above.items() if max(three) < min(above["2017"])} == {"rotations", "all six"}
    for name, three in above.items():  # the others differ by no more than another seed does
        if name not in ("rotations", "all six"):
            assert min(three) < max(above["2017"]) and max(three) > min(above["2017"]), name
    counts = {
        name: sum(item.numel() for item in six_changes.Model(31, **six_changes.CHANGES[name]).parameters())
        for name in above
    }
    assert (counts["2017"], counts["all six"]) == (108_063, 94_528)
    assert all(counts[name] < 108_063 for name in ("RMS norm", "no biases", ONE_HEAD))
    rotary, higher = mean["2017"] - mean["rotations"], [mean[name] - mean["2017"] for name in ("RMS norm", ONE_HEAD)]
    assert all(rotary / 4 < item < rotary / 2 for item in higher)
    says(
        LESSON,
        "RoPE is the only single change that lowers the loss clearly, from 0.60 to 0.52, and "
        "all six together reach 0.53",
        "for 400 steps",
    )
    says(LESSON, "end a little higher on average, by about a third of what RoPE gains")
    assert six_changes.STEPS == 400
    assert "RoPE 0.520, from 0.504 to 0.542" in figures.six_changes().alt


@pytest.mark.slow
def test_a_short_training_run_with_rope_ends_at_the_measured_loss():
    losses = figures.measured("today", "changes")["losses"]
    for name in ("2017", "rotations"):
        assert six_changes.trained(name, 0)[0] == pytest.approx(losses[name][0], abs=0.05)


def test_lora_learns_the_dialect_as_well_as_full_fine_tuning_and_both_forget():
    found = figures.measured("today", "dialect")
    exact = {name: [sum(row[i] for row in rows) / len(rows) for i in (2, 3)] for name, rows in found.items()}
    assert exact["before"] == [0, 1] and found["merged"] == found["LoRA"]
    for name in ("LoRA", "all numbers"):
        assert exact[name] == pytest.approx([0.96, 0.33], abs=0.006), name
        assert min(row[2] for row in found[name]) > 0.94
    pairs = corpus.sentence_pairs(200, random.Random(evaluation.UNSEEN_SEED), unseen=True)  # the control
    same = sum(dialect.in_dialect(pair).french == pair.french for pair in pairs) / len(pairs)
    assert same == pytest.approx(exact["LoRA"][1], abs=0.01)
    assert sum(item.numel() for item in adapting.finished_translator().parameters()) == 206_146
    says(LESSON, "three seeds of a longer program: 94.5 to 98% and 33%; full fine-tuning 94.5 to 97.5% and 33%")
    says(LESSON, "6,144 parameters instead of 206,146")
    assert "the new French, LoRA, merged: 98.0, 97.0, 94.5" in figures.dialect().alt


@pytest.mark.slow
def test_lora_learns_the_dialect_in_a_new_training_run():
    new, pairs = evaluation.as_batch(dialect.dialect_pairs(50, 2015, unseen=True)), dialect.dialect_pairs(300, 100)
    torch.manual_seed(0)
    network = adapting.adapted(adapting.finished_translator(), blocks.LoRA, dialect.RANK, dialect.ALPHA)
    before = network.state_dict()["encoder.tokens.weight"].clone()
    dialect.train(network, lambda g: evaluation.as_batch(g.sample(pairs, dialect.BATCH)), 0, dialect.RATES["LoRA"], 300)
    assert evaluation.exact(network.eval(), new) > 0.9
    assert torch.equal(network.state_dict()["encoder.tokens.weight"], before)


def test_figures_state_their_numbers():
    scores = torch.zeros(5, 5)
    assert "20 of 25 scores are wrong" in figures.three_scores(scores, scores, 1 - torch.eye(5)).alt
    assert "attends to 5 keys" in figures.windows(blocks.sliding_window_mask).alt
    assert pictures_of(explore.cache)(8, 65536, 4096).alt.endswith(
        "8 heads of keys, 65,536 tokens, window 4,096: 512 MiB."
    )
    assert pictures_of(explore.cache)(32, 4096, 0).alt.endswith("no window: 2 GiB.")
    assert "Through 4 it depends on 9, from position 7 on" in pictures_of(explore.windows)(3, 0, 4).alt


# ---------------------------------------------------------------- the programs in bench/


@torch.no_grad()
def test_with_none_and_all_of_six_changes_a_block_equals_that_of_lesson_9_and_14():
    x = torch.randn(2, 7, 64, generator=torch.Generator().manual_seed(0))
    old, mine = six_changes.Block(), blocks.EncoderBlock(64, 2, 256)
    names = {name: f"attention.{name}" if name.startswith("W_") else name for name in old.state_dict()}
    mine.load_state_dict({names[name]: tensor for name, tensor in old.state_dict().items()})
    torch.testing.assert_close(old(x), mine(x, blocks.causal_mask(7)), atol=1e-5, rtol=1e-5)
    new, mine = six_changes.Block(**six_changes.CHANGES["all six"]), blocks.LlamaBlock(64, 2, 1, 171, six_changes.BASE)
    mine.load_state_dict(new.state_dict())
    torch.testing.assert_close(new(x), mine(x), atol=1e-5, rtol=1e-5)
    models = {name: six_changes.Model(31, **changes) for name, changes in six_changes.CHANGES.items()}
    sizes = {name: sum(item.numel() for item in model.parameters()) for name, model in models.items()}
    assert max(sizes.values()) < 1.15 * min(sizes.values())


def test_the_dialect_moves_adjectives_and_nothing_else():
    for pair in corpus.unseen_pairs()[:100]:
        other, words = dialect.in_dialect(pair), pair.english.split()
        assert sorted(other.french.split()) == sorted(pair.french.split()) and other.english == pair.english
        for i, described in enumerate(zip(words, words[1:], strict=False)):
            if described in pair.described:
                assert other.alignment.index(i) < other.alignment.index(i + 1), other
        still = [item for item in pair.alignment if words[item] not in dialect.ADJECTIVES]
        assert still == [item for item in other.alignment if words[item] not in dialect.ADJECTIVES]
    assert all(pair.french != corpus.translate(pair.english).french for pair in dialect.dialect_pairs(20, 1))


@torch.no_grad()
def test_the_small_model_is_stored_in_the_layout_of_published_models(tmp_path):
    from tokenizers import Tokenizer

    text = "the cat sat on the mat\nthe hat, the cats  and l'été "
    merges = blocks.train_bpe(text, 40)
    torch.manual_seed(1)
    model = small_writer.new_model(len(small_writer.tokens_of(merges)))
    small_writer.store(tmp_path, model, merges)
    found = published.model(tmp_path)
    assert found.merges == merges and found.sizes | {"vocab_size": 0} == small_writer.SIZES | {"vocab_size": 0}
    ids = small_writer.ids_of(text, merges)
    assert Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode(text).ids == ids.tolist()
    assert [found.ids[token] for token in blocks.encode_bpe(text, merges)] == ids.tolist()
    mine = Decoder(blocks.LlamaBlock, **found.sizes)
    mine.load_state_dict(blocks.rename_llama(found.state))
    torch.testing.assert_close(mine(ids[None]), model(ids[None]), atol=1e-2, rtol=1e-2)  # stored in 16 bits
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 2_000_000
    loss = small_writer.nats_per_byte(model, text * 20, merges)
    tokens = small_writer.ids_of(text * 20, merges)
    assert loss == pytest.approx(math.log(len(found.ids)) * len(tokens) / len((text * 20).encode()), rel=0.1)


# ---------------------------------------------------------------- the learner's training run


def lesson_cells(*beginnings):
    """Run the lesson's code cells that begin with these lines, one after another, and return their namespace."""
    source = (course().root / "solutions" / LESSON / f"{LESSON}.py").read_text("utf-8")
    cells = [cell.split("\n", 1)[1] for cell in re.split(r"(?m)^# %%", source)[1:]]
    names = {
        "adapted": adapting.adapted,
        "corpus": corpus,
        "evaluation": evaluation,
        "F": F,
        "finished_translator": adapting.finished_translator,
        "LoRA": blocks.LoRA,
        "nats_per_word": adapting.nats_per_word,
        "or_finished": lambda answer: answer,
        "torch": torch,
        "translator": translator,
    }
    for beginning in beginnings:
        (cell,) = [cell for cell in cells if cell.lstrip().startswith(beginning)]
        exec(cell, names)
    return names


@pytest.mark.full
def test_the_lesson_and_the_bench_move_adjectives_alike():
    names = lesson_cells("def adjectives_first(pair):")
    for pair in corpus.training_pairs()[:2000]:  # the lesson keeps the old alignment
        assert names["adjectives_first"](pair) == pair._replace(french=dialect.in_dialect(pair).french)


@pytest.mark.full
def test_the_lessons_fine_tuning_learns_and_forgets():
    names = lesson_cells("def adjectives_first(pair):", "torch.manual_seed(0)", "optimizer, generator")
    network = names["network"]
    assert evaluation.exact(network, names["test"]) > 0.9
    assert evaluation.exact(network, evaluation.unseen(100)) == pytest.approx(0.3, abs=0.06)
    says(LESSON, "Nearly all of the test sentences are right, but of ordinary French only about 30% is left")
