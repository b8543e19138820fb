"""Lesson 12: the source compared with brute force, the n-grams, the GPT, generation with and without a cache, the
score of trained models, and the numbers in the text."""

import math
import random
import re
from collections import Counter

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from bench import compute as bench_compute
from bench import dropout as bench_dropout
from bench import ladder as bench_ladder
from helpers import blocks, corpus
from helpers.blocks import RotaryAttention, RotaryBlock, cached_attention, causal_mask
from helpers.checking.codec import dumps, loads
from helpers.checking.forbidden import course_part
from helpers.checking.messages import decide
from helpers.checking.observe import observe_all
from helpers.checking.rendering import as_text
from helpers.checking.scenarios import WrongParts
from helpers.corpus.source import BETWEEN, Source
from helpers.lessons.language_model import figures, stand_ins, watch, writing
from helpers.lessons.language_model import probes as check_12
from helpers.lessons.language_model.figures import COMPUTE, DROPOUT, LADDER
from helpers.lessons.language_model.probes import NGRAM, loss_above_the_line
from tests.judged import made_key
from tests.lessons.lesson_text import says, text_of

LESSON = "12_language_model"


def seeded(seed):
    return torch.Generator().manual_seed(seed)


SMALL = Source(subjects="AB", pairs=("()",), letters="pqr", farthest=5, deepest=2, open=0.3, shortest=1, longest=2)

# ---------------------------------------------------------------- the source


def sentences(source, least):
    """Yield (sentence, probability) for all sentences with at least the probability `least`."""
    open_ones = [(BETWEEN, "", 1.0)]
    while open_ones:
        state, text, p = open_ones.pop()
        for token, chance in source.probabilities(state).items():
            if p * chance < least:
                continue
            following = source.after(state, token)
            if following == BETWEEN:
                yield text + token, p * chance
            else:
                open_ones.append((following, text + token, p * chance))


def test_entropy_rate_equals_the_sum_over_all_sentences():
    entropy = length = mass = 0.0
    for text, p in sentences(SMALL, 1e-9):
        entropy -= p * math.log(p)
        length += p * len(text)
        mass += p
    assert mass > 0.9999
    assert SMALL.entropy_rate() == pytest.approx(entropy / length, abs=2e-4)


@pytest.mark.parametrize("source", [Source(), SMALL])
def test_entropy_rate_equals_the_mean_over_a_long_text(source):
    ids = source.text(60_000, seed=1)
    nats = source.nats(ids)
    error = nats.std() / len(nats) ** 0.5
    assert abs(nats.mean().item() - source.entropy_rate()) < 6 * error < 0.05


def test_probabilities_sum_to_one_and_tokens_are_drawn_by_them():
    source, rng, counts = Source(), random.Random(3), {}
    for _ in range(3000):
        state = BETWEEN
        for token in source.sentence(rng):
            chances = source.probabilities(state)
            assert sum(chances.values()) == pytest.approx(1) and chances[token] > 0
            kind = state if state[0] in ("between", "agreement") else None
            counts.setdefault(kind, []).append(token)
            state = source.after(state, token)
        assert state == BETWEEN
    first = counts[BETWEEN]
    for token, chance in source.probabilities(BETWEEN).items():
        assert first.count(token) / len(first) == pytest.approx(chance, abs=0.03)


def test_the_source_writes_the_three_kinds_of_sentences():
    text = Source().decode(Source().text(30_000, seed=4))
    kinds = {"agreement": 0, "brackets": 0, "repetition": 0}
    for sentence in text.split(".")[:-1]:
        if sentence[0] == "|":
            _, first, second = sentence.split("|")
            assert first == second and 3 <= len(first) == len(set(first)) <= 8
            kinds["repetition"] += 1
        elif sentence[0].isupper():
            assert re.fullmatch(r"[A-F][p-z]*[a-f]", sentence) and sentence[-1] == sentence[0].lower()
            assert 2 <= len(sentence) - 1 <= 30
            kinds["agreement"] += 1
        else:
            stack, deepest = [], 0
            for token in sentence:
                if token in "([{":
                    stack.append(token)
                    deepest = max(deepest, len(stack))
                else:
                    assert "([{".index(stack.pop()) == ")]}".index(token)
            assert not stack and deepest <= 4
            kinds["brackets"] += 1
    share = {kind: count / sum(kinds.values()) for kind, count in kinds.items()}
    assert share["repetition"] == pytest.approx(0.4, abs=0.05) and share["brackets"] == pytest.approx(0.3, abs=0.05)


def test_the_source_is_seeded_and_its_two_kinds_of_prediction_agree():
    source = Source()
    assert torch.equal(source.text(500, 7), source.text(500, 7))
    assert not torch.equal(source.text(500, 7), source.text(500, 8))
    row = source.passages(1, 64, 5)[0]
    table, nats = source.next_probabilities(row), source.nats(row)
    assert source.symbols[row[0]] == "." and nats[0] == 0
    torch.testing.assert_close(table.sum(-1), torch.ones(64, dtype=torch.float64))
    torch.testing.assert_close(-table[:-1].gather(-1, row[1:, None])[:, 0].log(), nats[1:])
    with pytest.raises(ValueError, match="token 3"):
        source.nats(source.encode(".|pp|"))


@pytest.mark.full
def test_the_texts_survive_the_way_into_the_sandbox():
    assert loads(dumps(corpus.language_symbols())) == corpus.language_symbols()
    unseen = corpus.language_unseen()
    again = loads(dumps(unseen))
    assert torch.equal(again["ids"], unseen["ids"]) and torch.equal(again["nats"], unseen["nats"])
    assert corpus.language_text().dtype == torch.int64 and len(corpus.language_text()) == 300_000
    torch.testing.assert_close(Source().nats(unseen["ids"][:3]), unseen["nats"][:3])


# ---------------------------------------------------------------- n-grams


@given(st.integers(0, 1000), st.integers(1, 4), st.sampled_from([0.1, 1.0]))
def test_ngram_losses_equal_a_plain_count(seed, order, alpha):
    generator = torch.Generator().manual_seed(seed)
    train, test = torch.randint(4, (80,), generator=generator), torch.randint(4, (20,), generator=generator)
    a, b = train.tolist(), test.tolist()
    slow = 0.0
    for t in range(order - 1, len(b)):
        context = b[t - order + 1 : t]
        indices = [i for i in range(order - 1, len(a)) if a[i - order + 1 : i] == context]
        slow -= math.log((sum(a[i] == b[t] for i in indices) + alpha) / (len(indices) + 4 * alpha))
    slow /= len(b) - order + 1
    assert blocks.ngram_loss(train, test, order, 4, alpha) == pytest.approx(slow, abs=1e-12)
    assert figures.count_loss(train, test, order, 4, alpha) == pytest.approx(slow, abs=1e-12)


@pytest.mark.full
def test_the_best_ngram_is_far_above_the_entropy_line():
    losses, line = figures.counted(), corpus.entropy_rate()
    assert line == pytest.approx(1.41, abs=0.005)
    assert min(losses, key=losses.get) == 3 and losses[2] == pytest.approx(2.31, abs=0.01)
    assert min(losses.values()) - line == pytest.approx(NGRAM, abs=0.02)
    assert losses[6] > losses[5] > losses[3] + 0.3
    assert losses[1] - losses[2] == pytest.approx(0.77, abs=0.005)  # what one token of context gains
    assert 0.02 < losses[2] - losses[3] < 0.06 and abs(losses[4] - losses[3]) < 0.02


def test_numbers_that_the_text_calculates():
    line = dict(zip(".|rwt|", Source().nats(Source().encode(".|rwt|")).tolist(), strict=False))
    assert line["|"] == pytest.approx(math.log(4), abs=1e-6)
    assert math.exp(20) == pytest.approx(485e6, rel=0.01)
    assert math.perm(11, 8) == 6_652_800
    symbols = corpus.language_symbols()
    text = "".join(symbols[i] for i in corpus.language_text().tolist())
    assert len(set(re.findall(r"\|([p-z]{8})\|\1", text))) == 2_700


# ---------------------------------------------------------------- the GPT


def test_rotary_attention_depends_only_on_distances():
    torch.manual_seed(0)
    attention, x = RotaryAttention(8, 2).double(), torch.randn(1, 4, 8, dtype=torch.float64)
    behind = torch.cat([torch.zeros(1, 3, 8, dtype=torch.float64), x], dim=1)
    own = causal_mask(7)
    own[:, :3] = False
    torch.testing.assert_close(attention(x, mask=causal_mask(4))[0], attention(behind, mask=own)[0][:, 3:])


def test_generating_with_a_cache_gives_the_same_text():
    torch.manual_seed(1)
    model = blocks.GPT(11, 24, 16, 4, 3).eval()
    prompt = torch.randint(11, (3, 4))
    plain = blocks.generate(model, prompt, 20, top_k=1)
    assert torch.equal(writing.write_with_cache(model, prompt, 20, cached_attention), plain)
    with pytest.raises(ValueError, match="more than the context of 24"):
        writing.write_with_cache(model, prompt, 21, cached_attention)


class RenamedModules(torch.nn.Module):
    """A GPT whose modules have other names."""

    def __init__(self):
        super().__init__()
        self.inner = blocks.GPT(11, 12, 16, 4, 2)
        self.block_size = 12

    def forward(self, ids):
        return self.inner(ids)


class AddedTerm(blocks.GPT):
    """A GPT with the lesson's names that adds a term to the logits."""

    def forward(self, ids):
        return super().forward(ids) * 2 + self.tokens(ids).sum(-1, keepdim=True) * torch.arange(11)


@pytest.mark.parametrize(("make", "why"), [(RenamedModules, "has no part called 'tokens'"), (AddedTerm, "other parts")])
def test_a_gpt_with_other_modules_writes_without_a_cache_and_says_so(capsys, make, why):
    torch.manual_seed(2)
    model = make() if make is RenamedModules else make(11, 12, 16, 4, 2)
    ids = torch.randint(11, (2, 3))
    written = writing.write_with_cache(model, ids, 9, cached_attention)
    assert torch.equal(written, blocks.generate(model, ids, 9, top_k=1))
    printed = capsys.readouterr().out
    assert why in printed and printed.count("\n") == 1


# ---------------------------------------------------------------- the score of trained models


def source_logits(ids):
    source = Source()
    return torch.stack([source.next_probabilities(row).clamp_min(1e-12).log().float() for row in ids])


def truths(count=60):
    unseen = corpus.language_unseen()
    ids, nats = unseen["ids"][:count], unseen["nats"][:count]
    shape = (*ids.shape, len(corpus.language_symbols()))
    changed = ids.clone()
    changed[:, 32:] = ids.roll(1, dims=0)[:, 32:]
    return [{"shape": shape, "ids": ids, "nats": nats}, {"shape": shape, "ids": changed, "nats": nats}]


def test_the_source_itself_gets_full_points_and_a_leak_gets_none():
    both = truths()
    logits = source_logits(both[0]["ids"])
    perfect = loss_above_the_line(both, [logits, logits])
    assert perfect.passed and perfect.fraction == 1.0
    answers = F.one_hot(both[0]["ids"].roll(-1, dims=1), logits.shape[-1]) * 5.0
    leak = loss_above_the_line(both, [logits + answers, logits + answers])
    assert leak.fraction == 0 and leak.mistake == "below_the_line"
    moved = logits.clone()
    moved[:, 20] += torch.randn(logits.shape[-1])
    future = loss_above_the_line(both, [logits, moved])
    assert future.fraction == 0 and future.mistake == "sees_later_ids" and "at position 20 moved" in future.words
    for output in (logits, moved):  # no size of a single logit may hide a leak
        output[..., 0] = torch.where(both[0]["ids"].roll(-1, 1) == 0, output[..., 0], -1e7)
    assert loss_above_the_line(both, [logits, moved]).mistake == "sees_later_ids"
    logits = source_logits(both[0]["ids"])
    guess = loss_above_the_line(both, [logits * 0, logits * 0])
    assert guess.fraction == 0 and guess.mistake == "not_trained" and not guess.passed


def test_logits_at_a_low_temperature_cost_half_and_are_named():
    both = truths()
    logits = source_logits(both[0]["ids"]) / 0.35
    measured = loss_above_the_line(both, [logits, logits])
    assert not measured.passed and measured.fraction <= 0.5 and measured.mistake == "low_temperature"


@pytest.mark.parametrize("moved", [lambda x: x.roll(1, dims=1), lambda x: x.roll(-1, dims=1), lambda x: x.flip(1)])
def test_logits_at_other_positions_are_named(moved):
    both = truths(20)
    logits = [moved(source_logits(truth["ids"])) for truth in both]
    assert loss_above_the_line(both, logits).mistake == "at_other_positions"


@pytest.mark.parametrize(
    ("above", "points", "passed", "mistake"),
    [
        (0.0, 12, True, None),
        (0.099, 12, True, None),
        (0.101, 11, False, None),
        (0.47, 6, False, None),  # half way from 0.10 to 0.86 is 0.48
        (0.49, 5, False, None),
        (0.78, 1, False, None),
        (0.85, 0, False, None),
        (0.87, 0, False, "not_trained"),
        (-0.02, 0, False, "below_the_line"),
    ],
)
def test_points_depend_on_the_nats_above_the_entropy_line(above, points, passed, mistake):
    key = made_key("12_language_model", "language_model_logits", 3, points=12)
    ids, nats = (key.expected[0].output[name] for name in ("ids", "nats"))
    more = above if above > 0 else above * nats[:, 1:, None]  # a certain token cannot become more certain
    own = (-nats[:, 1:, None] - more).exp()  # (B, T - 1, 1), probability of the next token
    V = len(corpus.language_symbols())
    rest = ((1 - own) / (V - 1)).clamp_min(1e-30)
    p = rest.expand(*own.shape[:2], V).scatter(-1, ids[:, 1:, None], own)  # (B, T - 1, V)
    logits = torch.cat([p.log(), torch.zeros(len(ids), 1, V)], dim=1).float()  # (B, T, V)
    verdict = decide(key, observe_all(lambda ids: logits, key.cases, key.facts))
    assert (verdict.points, verdict.passed, verdict.mistake) == (points, passed, mistake)
    assert ("take another seed" in as_text(verdict)) == (0.10 < above < 0.86), "an untrained one needs more"


# ---------------------------------------------------------------- recording a training run


def test_kinds_of_tokens_and_the_targets_of_an_induction_head():
    text = ".|qtw|qtw.Bzb.()."
    assert watch.kinds(text)[6:10] == ["a repeated letter"] * 3 + ["the rest"]
    assert watch.kinds(text)[10:13] == ["the rest", "a new letter", "a verb"]
    assert watch.induction_targets(text) == [(6, 3), (7, 4)]
    weights = torch.zeros(1, 2, len(text), len(text))
    weights[0, 1, 6, 3] = weights[0, 1, 7, 4] = 0.9
    assert watch.induction_score([("", weights)], [text]) == (pytest.approx(0.9), 0, 1)


def test_a_watch_records_attention_and_leaves_the_model_unchanged():
    model = blocks.GPT(31, 64, 8, 2, 1).train()
    own = watch.Watch(passages=4)
    own(model, 1)
    assert model.training and not any(module._forward_hooks for module in model.modules())
    assert own.steps == [1] and set(own.losses) == set(figures.KIND_COLORS) and 0 < own.induction[0] < 1
    assert [w.step for w in own.written] == [1] and len(own.written[0].passage) == 60
    assert re.match(r" +1 steps, +\d+ of +\d+ sentences correct:  ", own.diary())


def test_is_sentence_accepts_exactly_what_the_source_writes():
    source, rng = Source(), random.Random(0)
    assert all(watch.is_sentence(source.sentence(rng)[:-1]) for _ in range(2000))
    wrong = ["", *"()() (] ( ) ((((()))) Bqc Bb |rwt|rwy |rwr|rwr |rw|rw q".split(), f"B{30 * 'q'}b"]
    assert not any(map(watch.is_sentence, wrong))


def test_half_of_the_long_contexts_are_rare():
    text, counts = corpus.language_text().tolist(), {}
    for width in (2, 5):
        seen = Counter(tuple(text[i : i + width]) for i in range(280_000 - width))
        counts[width] = sorted(seen[tuple(text[i : i + width])] for i in range(280_000, 300_000 - width))
    middle = {width: found[len(found) // 2] for width, found in counts.items()}
    assert middle[2] > 1000 and middle[5] == 1
    assert 1 / 3 < counts[5].count(0) / len(counts[5]) < 0.4
    says(LESSON, "half of the five-token contexts in the test text were counted at most once")


def test_beginnings_of_passages_have_a_higher_entropy():
    assert corpus.entropy_rate() < 1.42 < LADDER["line"]
    assert f"{LADDER['line']:.2f}" == "1.44"
    says(LESSON, "1.41 for long texts; 1.44 for the 200 short passages")
    nats = corpus.language_unseen()["nats"]
    assert nats[:, 1:9].mean() > nats[:, 33:].mean() + 0.2  # the beginning is hardest to predict


def test_each_step_of_the_ladder_lowers_the_loss():
    rungs = LADDER["rungs"]
    assert list(rungs) == ["bigram", *bench_ladder.RUNGS]
    assert all(len(rungs[name]) == len(bench_ladder.SEEDS) == 3 for name in bench_ladder.RUNGS)
    means = [sum(losses) / len(losses) for losses in rungs.values()]
    gains = [below - above for below, above in zip(means, means[1:], strict=False)]
    assert min(gains) >= bench_ladder.LEAST == 0.05
    assert means[-1] > LADDER["line"] == pytest.approx(bench_ladder.unseen()[1], abs=1e-4)
    paragraph = re.search(r"The first head contributes(.*?)All of these models stay far above", text_of(LESSON))[1]
    assert [f"{gain:.2f}" for gain in gains] == re.findall(r"\*\*(0\.\d\d)\*\*", paragraph)
    without, within = list(rungs.values())[-2:]
    extent = max(max(losses) - min(losses) for losses in (without, within))
    assert f"up to {extent:.2f} nats" in paragraph
    assert min(without) < max(within)  # "the best run without a residual is better than ..."


def test_dropout_helps_a_model_that_memorizes():
    rates = DROPOUT["rates"]
    unseen = {p: np.mean(runs["unseen"]) for p, runs in rates.items()}
    assert list(rates) == [str(p) for p in bench_dropout.RATES] and min(unseen, key=unseen.get) == "0.1"
    assert max(rates["0.0"]["seen"]) < DROPOUT["line"] - 0.1  # below the entropy line: memorized
    assert max(rates["0.1"]["unseen"]) < min(rates["0.0"]["unseen"]) - 0.2
    for value in (unseen["0.0"], unseen["0.1"], np.mean(rates["0.0"]["seen"])):
        assert f"{value:.2f}" in text_of(LESSON)


def test_dropout_of_the_bench_acts_only_in_training_mode():
    torch.manual_seed(0)
    plain = blocks.GPT(31, 64, 64, 2, 2).eval()
    ids = torch.randint(31, (2, 20))
    with torch.no_grad():
        expected = plain(ids)
        dropped = bench_dropout.with_dropout(plain, 0.2).eval()
        torch.testing.assert_close(dropped(ids), expected, atol=1e-5, rtol=1e-5)
        assert not torch.allclose(dropped.train()(ids), expected, atol=1e-2)


@pytest.mark.full
def test_the_bench_computes_the_bigram_loss_and_trains_a_model_that_beats_it():
    bigram = bench_ladder.bigram()
    assert [round(bigram, 4)] == LADDER["rungs"]["bigram"]
    assert bench_ladder.rung("one head", seed=5, steps=400) < bigram - 0.02


@pytest.mark.parametrize("name", ["one head", "four heads", "+ feed-forward", "+ residual and norm"])
def test_models_of_the_ladder_are_causal_and_have_the_modules_of_their_names(name):
    model = bench_ladder.Rung(31, **bench_ladder.RUNGS[name]).eval()
    parts = {type(module).__name__ for module in model.modules()}
    assert ("FeedForward" in parts, "LayerNorm" in parts) == (name[0] == "+", name == "+ residual and norm")
    ids = torch.randint(31, (2, 9), generator=seeded(0))
    changed = ids.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 31
    assert torch.equal(model(ids)[:, :5], model(changed)[:, :5])


def test_the_small_model_leads_early_and_the_large_one_at_the_end():
    small, middle, large = COMPUTE.values()
    assert [int(width) for width in COMPUTE] == list(bench_compute.WIDTHS)
    assert small["parameters"] * 3 < middle["parameters"] < large["parameters"] / 3
    for curve in COMPUTE.values():
        steps = torch.tensor(curve["spent"]) / (3 * curve["parameters"] * figures.TOKENS / 1e9)
        torch.testing.assert_close(steps, torch.tensor(bench_compute.POINTS, dtype=torch.float32), atol=0.1, rtol=0.01)
    assert small["above"][-1] > middle["above"][-1] > large["above"][-1] > 0
    loss_at = [np.interp(10, curve["spent"], curve["above"]) for curve in COMPUTE.values()]
    assert loss_at == sorted(loss_at)


def test_the_compute_figure_needs_no_training_run():
    picture = figures.compute(blocks.GPT(31, 64, 8, 2, 1), watch.Watch(passages=1))
    assert "width 16" in picture.alt and "the training run above" not in picture.alt


def test_the_benchs_fused_attention_equals_the_lessons():
    from bench.gpt_against_nanogpt import CONTEXT, HEADS, LAYERS, WIDTH, fused
    from bench.nanogpt import NanoGPT, whole_loss

    torch.manual_seed(0)
    model, ids = blocks.GPT(20, CONTEXT, WIDTH, HEADS, LAYERS), torch.randint(20, (2, CONTEXT))
    with torch.no_grad():
        expected = model(ids)
        torch.testing.assert_close(fused(model)(ids), expected, atol=1e-5, rtol=1e-5)
    baseline = NanoGPT(20, CONTEXT, WIDTH, HEADS, LAYERS)
    assert sum(p.numel() for p in baseline.parameters()) == 4 * (12 * 128**2 + 2 * 128) + 128 + (20 + 64) * 128
    assert whole_loss(baseline, torch.randint(20, (1000,)), CONTEXT) == pytest.approx(math.log(20), abs=0.2)


def test_real_text_is_available_and_survives_encoding():
    text = corpus.real_text(length=20_000)
    assert len(text.train) == 18_000 and len(text.test) == 2_000
    assert text.decode(text.encode("def f(self):\n")) == "def f(self):\n"
    assert "import" in text.decode(text.train)


def test_real_text_reads_a_whole_file_unless_a_length_is_given(tmp_path):
    (tmp_path / "input.txt").write_text("to be " * 200_000)
    text = corpus.real_text(tmp_path / "input.txt")
    assert (len(text.train), len(text.test), text.symbols) == (1_080_000, 120_000, " beot")
    assert len(corpus.real_text(tmp_path / "input.txt", length=100).train) == 90


# ---------------------------------------------------------------- the executed lesson


def test_the_trained_gpt_ends_close_to_the_entropy_line(executed_solution):
    notebook = executed_solution("12_language_model")
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    text = "\n".join(str(output.get("text", "")) + str(output.get("data", {})) for output in outputs)
    loss, line = map(
        float, re.search(r"(\d\.\d+) nats per token; the entropy line of these passages is (\d\.\d+)", text).groups()
    )
    assert line < loss <= line + 0.06
    assert loss < line + NGRAM - 0.3
    assert "the same tokens: True" in text
    induction = float(re.search(r"strongest head then puts (\d\.\d+) of its weight", text).group(1))
    assert induction > 0.3
    losses = r"your loss (\d\.\d+) nats.*?one (\d\.\d+), though its own value is (\d\.\d+)"
    right, published, own = map(float, re.search(losses, text, re.DOTALL).groups())
    assert right == pytest.approx(2.31, abs=0.06) and published == pytest.approx(3.35, abs=0.06)
    assert own == pytest.approx(3.0, abs=0.06)
    diary = [tuple(map(int, found)) for found in re.findall(r"(\d+) steps, +(\d+) of +(\d+) sentences correct", text)]
    shares = [right / sentences for _, right, sentences in diary]
    assert [diary[0][0], len(diary)] == [1, 10] and shares[0] < 0.1 and shares[-1] > 0.8


# ---------------------------------------------------------------- what replaces missing answers


def test_the_stand_in_gpt_writes_the_same_text_with_a_cache():
    torch.manual_seed(0)
    model, plain = stand_ins.GPT(7, 6, 8, 2, 2).eval(), torch.randint(7, (2, 1), generator=seeded(0))
    cached = writing.write_with_cache(model, plain, 5, cached_attention)
    for _ in range(5):
        plain = torch.cat([plain, model(plain)[:, -1:].argmax(-1)], dim=1)
    assert torch.equal(cached, plain)


# ---------------------------------------------------------------- what the check must detect


@pytest.mark.parametrize("answer", [lambda *args: None, lambda *args: torch.zeros(5, 6), lambda *args: (1, 2, 3)])
def test_a_batch_that_is_not_a_pair_of_tensors_is_reported(answer):
    args = (torch.arange(900), 6, 5, 3)
    made, _ = check_12.drawn_batches(answer, args, {})
    assert check_12.batch_behavior(args, {}, made) == {"x and y are": "no tensors"}


class AlwaysDropped(blocks.GPT):
    def forward(self, ids):
        return F.dropout(super().forward(ids))


def test_dropout_in_evaluation_mode_breaks_a_promise():
    ids = torch.arange(6).expand(3, 6)
    args = ((9, 8, 12, 3, 2), 0, ids, torch.cat([ids[:, :3], ids[:, 3:] + 1], dim=1))
    for answer, broken in ((AlwaysDropped, 1), (blocks.GPT, 0)):
        kept = check_12.gpt_promises_kept(args, {}, check_12.gpt_promises(answer, args, {})[0])
        assert len(kept) == 3 and sum(not value for value in kept.values()) == broken


def test_the_answer_may_use_the_block_that_the_lesson_hands_out():
    assert course_part(RotaryBlock) == "" and course_part(RotaryAttention) == ""
    assert RotaryBlock is blocks.RotaryBlock and {"RotaryBlock", "GPT"} <= set(dir(blocks))


def test_a_model_made_in_a_cell_is_not_taken_for_an_answer():
    """Exercise 12.4 may use the logits of the lesson's own GPT, which is trained if exercise 12.3 is not passed."""
    assert course_part(stand_ins.GPT(7, 6, 8, 2, 2)) == ""


def test_logits_that_require_a_gradient_are_refused():
    with pytest.raises(WrongParts, match="without"):
        check_12.without_gradient(lambda ids: torch.zeros(2, 3, requires_grad=True) * 2, (torch.arange(3),), {})


def test_logits_kept_from_an_earlier_call_are_refused():
    kept = []

    def remembering(ids):
        kept.append(blocks.causal_mask(ids.shape[1]).float()[None, :, :31].expand(len(ids), -1, -1))
        return kept[0]

    ids = torch.zeros(3, 64, dtype=torch.long)
    seen, _ = check_12.without_gradient(remembering, (ids,), {})
    assert len(seen) == 1  # one shape for 3 passages, which is refused


def test_equal_logits_for_all_passages_are_not_called_a_leak():
    both = truths(4)
    logits = source_logits(both[0]["ids"][:1]).expand(4, -1, -1)
    other = source_logits(both[0]["ids"][1:2]).expand(4, -1, -1)
    measured = loss_above_the_line(both, [logits, other])
    assert measured.fraction == 0 and measured.mistake is None and "the same logits" in measured.words
