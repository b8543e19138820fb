"""Lesson 11: its functions, the score of translations, the trained translator on unseen sentences, and the numbers in
its text."""

import functools
import inspect
import math
import random
import re
import time

import pytest
import torch

from helpers import blocks, corpus, or_finished, translator
from helpers.authoring.keys import load_answer_key
from helpers.blocks import Transformer
from helpers.checking import session
from helpers.checking.make_keys import make_key
from helpers.checking.messages import decide
from helpers.checking.observe import observe_all
from helpers.checking.rendering import as_text
from helpers.checking.vocabulary import Draw
from helpers.course import course
from helpers.errors import CheckFailed
from helpers.lessons.translation import explore, figures
from helpers.lessons.translation import probes as check_11
from helpers.lessons.translation.figures import RUNS
from helpers.translator import BOS, EOS, PAD, evaluation
from helpers.widgets import checkpoint
from helpers.widgets.checkpoint import load_into
from helpers.widgets.live_plot import Live, smoothed
from tests.draws import pictures_of
from tests.judged import made_key, verdict_of
from tests.lessons.lesson_text import text_of

LESSON = "11_translation"


def test_values_of_the_smoothed_loss():
    q = torch.tensor([0.92, 0.02, 0.02, 0.02, 0.02], dtype=torch.float64)
    lowest = blocks.label_smoothed_loss(q.log()[None], torch.tensor([0]), 0.1, 4)
    assert lowest.item() == pytest.approx(0.39, abs=0.005)
    assert figures.best_smoothed(0.1, 194)[2] == pytest.approx(0.85, abs=0.005)
    _, lead, _ = figures.best_smoothed(0.1, 194)
    logits = torch.zeros(1, 194, dtype=torch.float64)
    logits[0, 7] = lead
    at_best = blocks.label_smoothed_loss(logits.requires_grad_(), torch.tensor([7]), 0.1, 0)
    assert at_best.item() == pytest.approx(figures.best_smoothed(0.1, 194)[2])
    assert torch.autograd.grad(at_best, logits)[0].abs().max() < 1e-9  # a minimum


def test_bleu_equals_that_of_sacrebleu():
    """Values of sacrebleu 2.6.0 with tokenize="none", smooth_method="none"; 1,500 random corpora agreed to 1e-13."""
    candidates = ["le chat mange une pomme rouge", "la belle pomme", "un chien mange le chat"]
    references = ["le chat mange une belle pomme rouge", "la belle pomme rouge", "un chien mange le chien"]
    assert blocks.corpus_bleu(candidates, references) == pytest.approx(57.228085661390764)
    candidates = ["le le le le le le le", "un chien mange le chat rouge la pomme la"]
    references = ["le chat mange le chien", "un chien mange le chat"]
    assert blocks.corpus_bleu(candidates, references) == pytest.approx(28.117066259517443)
    split = [[text.split() for text in texts] for texts in (candidates, references)]
    assert blocks.corpus_bleu(*split) == blocks.corpus_bleu(candidates, references)


def test_bleu_of_short_equal_and_empty_texts():
    bleu = blocks.corpus_bleu
    assert bleu(["une pomme rouge est beau"], ["une pomme rouge est belle"]) == pytest.approx(66.9, abs=0.05)
    assert bleu(["a b c d e"], ["a b c d e"]) == 100.0
    assert bleu(["a b c"], ["a b c"]) == 0.0 and bleu([""], ["a b c d"]) == 0.0
    assert bleu(["a b c d"], ["a b c d e f"]) == pytest.approx(100 * math.exp(1 - 6 / 4))
    eight = [[f"w{i}" for i in range(8)]]
    scores = [bleu([[*eight[0][:i], "x", *eight[0][i + 1 :]]], eight) for i in range(8)]
    assert 49.9 < min(scores) < max(scores) < 85  # quiz 11.3


def judge(name, answer):
    return verdict_of(LESSON, name, answer, 7, points=20, lesson=LESSON)


def test_messages_show_a_learning_rate_with_all_its_digits():
    message = as_text(judge("noam_lr", lambda step, d_model, warmup: d_model**-0.5))
    want, got = map(float, re.search(r"expected (\S+)\s+yours +(\S+)", message).groups())
    assert 0 < want < 0.01 and got == 0.125 and "with noam_lr(" in message


@pytest.mark.parametrize(("change", "passes"), [(2e-7, True), (3e-6, False)])
def test_learning_rates_are_compared_by_their_ratio(change, passes):
    def nearly(step, d_model, warmup):
        return (1 + change) * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)

    assert judge("noam_lr", nearly).passed == passes


# ---------------------------------------------------------------- the score of translations


def exercise(name):
    return next(item for item in load_answer_key(course(), course().lesson(LESSON)).exercises if item.name == name)


def judged(answer, seed=3):
    key = made_key(LESSON, "translate", seed, points=22)
    truth = dict(zip(key.cases[0].args[0], key.expected[0].output, strict=True))
    number = {sentence: i for i, sentence in enumerate(reversed(truth))}  # sentence 598 occurs twice

    def translate(sentences):
        return [answer(truth.get(s, ""), number.get(s, 0)) for s in sentences]

    return decide(key, observe_all(translate, key.cases, key.facts))


@pytest.mark.parametrize(
    ("answer", "points", "passed", "mistake"),
    [
        (lambda french, i: french, 22, True, None),
        (lambda french, i: "non" if i < 3 else french, 22, True, None),
        (lambda french, i: "non" if i < 6 else french, 22, False, None),  # 99%: all points, but not passed
        (lambda french, i: "non" if i < 150 else french, 11, False, None),
        (lambda french, i: "non" if i < 301 else french, 0, False, None),
        (lambda french, i: f"<bos> {french} <eos>", 0, False, "marks_left_in"),
        (lambda french, i: f"{french} le le le", 0, False, "goes_on_after_the_end"),
        (lambda french, i: french.partition(" ")[2], 0, False, "first_word_missing"),
        (lambda french, i: french.rpartition(" ")[0], 0, False, "last_word_missing"),
        (lambda french, i: " ".join(french.split()[:9]), 12, False, "cut_short"),
        (lambda french, i: french.replace(" ", "  "), 11, False, "spaces"),
        (lambda french, i: f"{french} ", 11, False, "spaces"),
        (lambda french, i: french + ".", 0, False, None),
        (lambda french, i: "reine reine", 0, False, "not_trained"),
        (lambda french, i: "", 0, False, "not_trained"),
    ],
)
def test_points_depend_on_the_number_of_exact_translations(answer, points, passed, mistake):
    verdict = judged(answer)
    assert (verdict.points, verdict.passed, verdict.mistake) == (points, passed, mistake)
    assert "of 600 unseen sentences exactly right" in verdict.parts[0].name


def test_translations_in_another_order_are_named_and_one_is_shown():
    truth = [f"le chat {i}" for i in range(8)]
    measured = check_11.exact_translations([truth], [truth[::-1]])
    assert measured.mistake == "another_order" and not measured.fraction
    assert "expected “le chat 0”, yours “le chat 7”" in measured.words
    assert check_11.exact_translations([truth], [truth]).words == "8 of 8 unseen sentences exactly right"


machine = None  # the model that the answers below use


@functools.lru_cache(maxsize=1)
def measured_cases():
    return exercise("translate").cases(Draw(5))


def written(sentences, steps=24, cut=True, eos_not_before=0, rank=0, squeezed=False, barred=(), drop_last=False):
    """Translate greedily by `machine`, as the lesson asks for, or with one of the mistakes that a learner made."""
    src = translator.source_batch(sentences)
    memory, tgt = machine.encode(src), torch.full((len(src), 1), BOS)
    while tgt.shape[1] < min(translator.MAX_LEN, steps + 1 or src.shape[1] + 1) and not (tgt == EOS).any(1).all():
        logits = machine.decode(tgt, memory, src)[:, -1].clone()
        logits[:, EOS] -= 1e9 * (tgt.shape[1] <= eos_not_before)
        logits[:, list(barred)] -= 1e9
        following = logits.topk(rank + 1).indices[:, -1:]
        tgt = torch.cat([tgt, following], dim=1)
    rows = (tgt.squeeze() if squeezed else tgt)[:, 1:].tolist()
    rows = [row if EOS in row or not drop_last else row[:-1] for row in rows]
    rows = [row[: [*row, EOS].index(EOS)] if cut else [i for i in row if i > EOS] for row in rows]
    french = list(translator.french)
    return [" ".join(french[i] for i in row) for row in rows]


@pytest.mark.parametrize(
    ("way", "fraction", "mistake"),
    [
        ({}, 1, None),
        ({"cut": False}, 0.5, "goes_on_after_the_end"),
        ({"eos_not_before": 3}, 0.5, "eos_put_off"),
        ({"eos_not_before": 1}, 0.5, "eos_put_off"),
        ({"barred": (PAD, BOS)}, 0.5, "not_the_likeliest"),
        ({"steps": -1}, 0.5, "cut_short"),
        ({"steps": 20}, 0.5, "cut_short"),
        ({"drop_last": True}, 0.5, "cut_without_eos"),
        ({"rank": 1}, 0, "not_the_likeliest"),
    ],
)
def test_scripted_models_reveal_mistakes_that_a_trained_model_hides(way, fraction, mistake, monkeypatch):
    monkeypatch.setitem(globals(), "machine", translator.model())
    cases = measured_cases()
    english, french = cases[0].args[0][:40], cases[0].truth[:40]
    longer = {a: b for a, b in zip(english, french, strict=True) if len(a.split()) == len(b.split())}
    answer = functools.partial(written, **way)
    scripts = check_11.with_scripts(functools.update_wrapper(answer, written), cases[-1].args, {})[0]
    score = check_11.exact_translations([list(longer.values()), cases[-1].truth], [answer(list(longer)), scripts])
    assert (score.fraction, score.passed, score.mistake) == (fraction, mistake is None, mistake)


def test_a_single_sentence_is_translated_as_in_a_batch(monkeypatch):
    monkeypatch.setitem(globals(), "machine", translator.model())
    cases = measured_cases()
    (text,), truth = cases[1].args[0], cases[1].truth
    assert len(truth[0].split()) > len(text.split()) and written([text]) == truth
    whole = [cases[0].truth, truth, cases[2].truth], cases[0].truth, cases[2].truth
    for alone, mistake in ((truth[0], None), (truth[0].rpartition(" ")[0], "cut_short"), ("non", "another_alone")):
        score = check_11.exact_translations(whole[0], [whole[1], [alone], whole[2]])
        assert (score.passed, score.mistake) == (mistake is None, mistake)
    for among, mistake in (("le", "right_alone"), (truth[0], "not_trained")):
        others = [among if wanted == truth[0] else "le" for wanted in cases[0].truth]
        score = check_11.exact_translations(whole[0], [others, truth, whole[2]])
        assert (score.passed, score.mistake) == (False, mistake)
    with pytest.raises(IndexError):
        written([text], squeezed=True)


def test_all_points_without_a_pass_are_explained(capsys, monkeypatch):
    verdict = judged(lambda french, i: "non" if i < 6 else french)
    assert "which is worth all points; the check asks for 99.5%" in verdict.parts[0].name
    monkeypatch.setattr(session, "verdict_on", lambda key, answer: verdict)
    monkeypatch.setattr(session, "find_key", lambda *_: make_key(LESSON, exercise("translate"), 22, False, None, 3))
    with pytest.raises(CheckFailed, match="has all its points, and misses what the check asks for by little"):
        session.check_one("translate", written, {})


def test_or_finished_in_an_answer_calls_the_learners_function():
    def by_or_finished(cross_weights):
        return or_finished(by_or_finished_alignment)(cross_weights)

    def by_or_finished_alignment(cross_weights):
        return cross_weights.mean(0).argmax(-1)

    def alignment(cross_weights):
        return or_finished(alignment)(cross_weights)

    assert judge("alignment", by_or_finished).passed
    assert judge("alignment", alignment).mistake == "raises"  # it calls itself instead of the finished function


@pytest.mark.full
def test_each_sentence_of_the_grader_has_a_description_that_training_lacks():
    case = exercise("translate").cases(Draw(5))[0]
    described = {pair for p in corpus.training_pairs() for pair in p.described}
    for english, french in zip(case.args[0], case.truth, strict=True):
        pair = corpus.translate(english)
        assert pair.french == french and not set(pair.described) <= described


# ---------------------------------------------------------------- the trained translator


@pytest.fixture(scope="module")
def trained(executed_solution, executed_folder):
    """The executed solution notebook, and the model that it trained."""
    notebook = executed_solution(LESSON)
    model = Transformer(*translator.SIZES)
    load_into(model, executed_folder / f"{LESSON}.kept" / "translator.safetensors")
    return notebook, model.eval()


def outputs(notebook):
    return [str(output) for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_the_translator_is_exact_on_2000_unseen_sentences_and_aligns_their_words(trained):
    _, model = trained
    pairs = corpus.sentence_pairs(2000, random.Random(411), unseen=True)
    batch = evaluation.as_batch(pairs)
    assert evaluation.exact(model, batch) >= 0.99
    hits = total = 0
    for pair, weights in zip(pairs, figures.cross_weights(model, batch.src, batch.tgt_in), strict=True):
        T_t, T_s = len(pair.alignment), len(pair.english.split())
        found = blocks.alignment(weights[:, :T_t, :T_s]).tolist()
        hits += sum(a == b for a, b in zip(found, pair.alignment, strict=True))
        total += T_t
    assert hits / total >= 0.9


def test_the_executed_notebook_prints_the_promised_numbers(trained):
    notebook, _ = trained
    text = " ".join(outputs(notebook))
    assert "1000 of 1000 new words are reversed correctly" in text
    exact, total = map(int, re.search(r"(\d+) of (\d+) unseen sentences exactly right", text).groups())
    assert exact >= 0.99 * total
    share = float(re.search(r"aligned with the word that they come from: ([\d.]+)%", text)[1])
    assert share >= 90
    loss = float(re.search(r"training the translator .*?loss ([\d.]+)", text)[1])
    assert "la vieille femme peint souvent une maison blanche en septembre" in text  # printed during training
    assert 0.85 < loss < 0.90  # slightly above the entropy of the smoothed target
    assert "greedy equals a beam of 1: True" in text
    numbers, words = map(
        float, re.search(r"correlation (-?[\d.]+); cosines of English words: correlation ([\d.]+)", text).groups()
    )
    assert abs(numbers) < 0.1 and 0.25 < words < 0.6


@pytest.mark.full
def test_training_takes_less_than_a_minute():
    """Measures the processor time of 30 steps of the lesson's size and scales it to all steps."""
    torch.manual_seed(0)
    model, generator, pairs = Transformer(*translator.SIZES), random.Random(0), corpus.training_pairs()[:2000]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps = int(re.search(r"STEPS = \d+ if quick\(\) else (\d+)", text_of(LESSON))[1])

    def one():
        batch = evaluation.as_batch(generator.sample(pairs, 64))
        loss = blocks.label_smoothed_loss(model(batch.src, batch.tgt_in), batch.tgt_out, 0.1, PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    one()
    start = time.process_time()
    for _ in range(30):
        one()
    assert (time.process_time() - start) / 30 * steps < 60


def test_the_explorer_draws_cross_attention_of_any_sentence(trained):
    _, model = trained
    looks = pictures_of(explore.cross_attention, model)
    alts = [looks(i).alt for i in range(8)]
    for alt in alts:
        pair = corpus.translate(re.match("“(.*?)”", alt)[1])
        assert f"of {len(pair.alignment)} attend to the word" in alt
    assert "visite to visits" in looks(0).alt
    typed = looks(0, "My young queen often forgets the blue door.").alt
    assert "“ma jeune reine oublie souvent la porte bleue”: exactly right" in typed
    assert "there is no reference" in looks(0, "jane visits a red apple").alt
    assert "does not know the word 'yung'" in looks(0, "my yung queen").alt
    assert looks(1, "my yung queen").alt == alts[1]  # the slider was moved afterwards
    named = Transformer(*translator.SIZES)
    named.words = named.unembed  # with other names the figure has nothing to compare, but does not fail
    del named.blocks
    assert "other names" in figures.two_runs(named).alt


def test_a_model_with_other_names_also_shows_its_attention(trained):
    _, model = trained

    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def encode(self, src):
            return self.inner.encode(src)

        def decode(self, tgt, memory, src):
            return self.inner.decode(tgt, memory, src)

    batch = evaluation.as_batch(corpus.unseen_pairs()[:3])
    mine = figures.cross_weights(Own(), batch.src, batch.tgt_in)
    assert torch.equal(mine, figures.cross_weights(model, batch.src, batch.tgt_in))
    same_width = evaluation.as_batch([corpus.translate("jane visits africa in september")])
    src = torch.cat([same_width.src, torch.zeros(1, 2, dtype=torch.long)], dim=1)  # as long as the target
    weights = figures.cross_weights(model, src, same_width.tgt_in)
    assert weights.shape[-2:] == (7, 7) and not weights[..., 5:].any()


def ends(kind, name):
    return [run["curve"][-1] for run in RUNS[kind][name]]


def test_effect_of_the_warm_up():
    text = text_of(LESSON)
    assert sum(len(runs) for kind in RUNS.values() for runs in kind.values()) == 18
    assert [round(x, 2) for x in ends("warmup", "0.005, 60")] == [0.15, 0.20]
    assert [round(x, 2) for x in ends("warmup", "0.005, 1")] == [0.13, 0.20]
    assert "peak 0.005: 0.15 and 0.20 with, 0.13 and 0.20 without" in text
    assert [round(x, 1) for x in ends("warmup", "0.02, 60")] == [0.7, 0.8] and "0.7 and 0.8 with" in text
    assert [round(x, 1) for x in ends("warmup", "0.02, 1")] == [4.5, 4.5] and "4.5 twice without" in text
    assert round(ends("start", "1.0")[0], 2) == 0.49 and "0.15 instead of 0.49 at step 150" in text


def test_learning_rates_and_messages_of_failed_training_runs():
    text = text_of(LESSON)
    rate = lambda step: 0.3 * blocks.noam_lr(step, 64, 60) * min(1, (701 - step) / 200)  # noqa: E731
    assert "return 0.3 * schedule(step, translator.D_MODEL, 60) * min(1, (STEPS + 1 - step) / 200)" in text
    assert [float(f"{rate(step):.1g}") for step in (1, 60, 700)] == [0.00008, 0.005, 0.000007]
    assert "about `0.00008`, `0.005` and `0.000007`" in text
    assert "nothing was saved" in text and "nothing was kept" in inspect.getsource(checkpoint.checkpoint)
    assert RUNS["broken"]["mask leaks"][0]["writes"].split() == ["le"] * 11


def test_effect_of_label_smoothing():
    runs, text = RUNS["smoothing"], text_of(LESSON)
    assert [run["exact"] for run in runs["0.0"]] == [0.985, 0.985]
    assert [run["exact"] for run in runs["0.1"]] == [0.99, 0.98]
    assert "98.5 and 98.5% without, 99 and 98% with" in text
    mean = lambda name, key: sum(run[key] for run in runs[name]) / 2  # noqa: E731
    assert round(mean("0.0", "certainty"), 2) == 0.99 and round(mean("0.1", "certainty"), 2) == 0.88


def test_effects_of_bugs_in_training_and_of_beams():
    text, broken = text_of(LESSON), {name: runs[0] for name, runs in RUNS["broken"].items()}
    leak, right = broken["mask leaks"], broken["right"]
    assert round(leak["nats"], 3) == 0.016 and round(leak["accuracy"], 3) == 0.999 and leak["exact"] == 0
    assert round(right["nats"], 2) == 0.10 and right["exact"] == 0.88
    assert 5 < right["nats"] / leak["nats"] < 7.5 and "a sixth of the correct run's loss" in text
    assert broken["not shifted"]["curve"][6] < 0.05  # after 70 steps
    assert len(set(broken["not shifted"]["writes"].split())) == 1 and broken["not shifted"]["exact"] == 0
    alt = figures.runs_with_bugs().alt
    assert all(run["writes"] in alt for run in broken.values())
    better = [name for name, run in broken.items() if run["curve"][-1] < right["curve"][-1]]
    assert sorted(better) == ["mask leaks", "not shifted"]
    widths = RUNS["beams"]["150 steps"][0]["exact by width"]
    assert widths == {"1": 0.625, "2": 0.65, "4": 0.65, "8": 0.65} and "one more exact sentence of 40" in text


@pytest.mark.full
def test_sizes_of_the_language_and_the_translator():
    assert len(corpus.english_words()) == 165 and len(corpus.french_words()) == 191
    assert "165 English and 191 French words (194 with" in text_of(LESSON)
    assert len(corpus.training_pairs()) == 20_000 and len(corpus.unseen_pairs()) == 500
    assert sum(p.reorderings >= 2 for p in corpus.unseen_pairs()) >= 500 // 3
    assert math.log(194) == pytest.approx(5.27, abs=0.005) and 26**8 > 200e9
    assert sum(p.numel() for p in Transformer(*translator.SIZES).parameters()) == 206_146


@pytest.mark.full
def test_figures_state_their_numbers():
    assert "l' from africa" in figures.word_by_word().alt and "blanche from white" in figures.word_by_word().alt
    assert "tgt_out: jane dort <eos> <pad>" in figures.batch_of_three().alt
    assert "peak 0.01614 at step 60" in pictures_of(explore.rates)(60, 64).alt
    smoothed = pictures_of(explore.smoothed_target)
    assert "a loss of 0.85 nats" in smoothed(0.1).alt and "infinite margin" in smoothed(0.0).alt
    assert {"rates", "smoothed_target", "cross_attention"} <= set(dir(explore))


def test_live_plot_counts_steps_and_prints_one_line(capsys):
    live = Live(4, "counting")
    seen = []
    for step in live:
        seen.append(step)
        live(loss=1 / step, accuracy=step / 4)
    assert seen == [1, 2, 3, 4] and live.history["accuracy"] == [0.25, 0.5, 0.75, 1.0]
    line = capsys.readouterr().out
    assert line.count("\n") == 1 and "4 of 4" in line and "loss 0.521" in line and "accuracy 62.5%" in line
    assert "loss from 1.00 to 0.521" in live.picture().alt and "25% to 62.5%" in live.picture().alt
    assert smoothed([1.0, 3.0, 5.0], 2) == [1.0, 2.0, 4.0]


def test_live_plot_keeps_only_new_sentences(capsys):
    words = iter(["", "le", "le", "le chat", "le chat"])
    live = Live(33, "learning", says=lambda: next(words))
    for _ in live:
        pass
    assert live.texts == [(10, "(nothing)"), (15, "le"), (30, "le chat")]  # asked after 10, 15, 20, 30 and 33
    assert capsys.readouterr().out.endswith("step 10   (nothing)\nstep 15   le\nstep 30   le chat\n")
