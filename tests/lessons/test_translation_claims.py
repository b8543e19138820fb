"""The claims of lesson 11, measured again; the lesson has to contain each sentence that is quoted here."""

import functools
import random

import pytest
import torch
from torch import nn

from helpers import blocks, corpus, translator
from helpers.authoring.keys import load_answer_key
from helpers.blocks import Transformer, cross_entropy, greedy_decode, make_batch
from helpers.checking.make_keys import make_key
from helpers.checking.messages import decide
from helpers.checking.observe import observe_all
from helpers.corpus import lexicon
from helpers.course import course
from helpers.lessons.translation import figures, own
from helpers.lessons.translation.figures import RUNS
from helpers.translator import BOS, EOS, PAD, english, evaluation, french
from tests.lessons.lesson_text import says
from tests.mutation_score import accepted_variants

LESSON = "11_translation"
says = functools.partial(says, LESSON)


def test_how_often_the_word_order_changes():
    says("In a third of them the word order differs from the English at two or three points")
    pairs = corpus.unseen_pairs()
    assert sum(pair.reorderings in (2, 3) for pair in pairs) / len(pairs) == pytest.approx(1 / 3, abs=0.01)

    def moved(pair):
        links = list(enumerate(pair.alignment))
        return sum(any((i - j) * (s - t) < 0 for j, t in links) for i, s in links)

    assert sum(moved(pair) >= 2 for pair in pairs) / len(pairs) > 0.7  # a claim that would be wrong


def test_smoothing_raises_the_plain_loss():
    says("ten and seventeen times as high (0.14 and 0.13 instead of 0.014 and 0.0075)")
    smooth, plain = ([run["nats"] for run in RUNS["smoothing"][share]] for share in ("0.1", "0.0"))
    assert [round(a / b) for a, b in zip(smooth, plain, strict=True)] == [17, 10]
    assert [round(x, 2) for x in smooth] == [0.13, 0.14] and plain == [0.0075, 0.0144]


@pytest.mark.full
def test_three_changes_of_the_weights_leave_the_translator_unchanged():
    found = figures.same_function_scores()
    nats, exact = zip(*found.values(), strict=True)
    assert exact[:3] == (1, 1, 1) and max(nats[:3]) - min(nats[:3]) < 1e-6
    assert exact[3] == 0 and nats[3] == pytest.approx(3.3, abs=0.05)
    says("a loss of 3.3 nats per word instead of 0.0002")


@pytest.mark.full
def test_with_wrongly_sorted_pairs_the_model_still_uses_the_english():
    says("with another sentence's English its loss on unseen sentences rises from 1.96 to 3.35")
    says("39% in batches of 32, a fifth in batches of 64")
    (run,) = RUNS["broken"]["sorted apart"]
    assert (round(run["nats"], 2), round(run["other source"], 2)) == (1.96, 3.35)
    assert run["writes"] in figures.runs_with_bugs().alt and round(run["curve"][-1], 1) == 2.2
    draw, pairs = random.Random(0), corpus.training_pairs()
    for size, share in ((32, 0.39), (64, 0.21)):  # by chance 1 of 32 and 1 of 64
        same = 0
        for _ in range(100):
            batch = figures.evaluation.as_batch(draw.sample(pairs, size))
            orders = [(rows != PAD).sum(dim=1).argsort(stable=True) for rows in (batch.src, batch.tgt_out)]
            same += int((orders[0] == orders[1]).sum())
        assert same / (100 * size) == pytest.approx(share, abs=0.02)


GENDERS = {"un": "une", "le": "la", "mon": "ma"}
GENDERS |= {feminine: masculine for masculine, feminine in GENDERS.items()}


@torch.no_grad()
def test_the_gender_of_an_article_comes_mostly_through_the_encoder():
    says("the gender stays right in about 95% of the cases")
    says("If we ablate the encoder's attention, it stays right in about 73%, whereas guessing gives 50%")
    pairs = corpus.sentence_pairs(300, random.Random(evaluation.UNSEEN_SEED), unseen=True)
    batch, network, places = evaluation.as_batch(pairs), translator.model(), []
    for i, pair in enumerate(pairs):
        words = pair.english.split()
        for row, (article, position) in enumerate(zip(pair.french.split(), pair.alignment, strict=True)):
            noun = next((n for n in range(position + 1, len(words)) if words[n] in lexicon.NOUNS), None)
            if article in GENDERS and words[position] in (*lexicon.DETERMINERS, "an") and noun is not None:
                places.append((i, row, noun, french[article], french[GENDERS[article]]))

    def right():
        logits = network(batch.src, batch.tgt_in)
        return sum((logits[i, row, a] > logits[i, row, b]).item() for i, row, _, a, b in places) / len(places)

    assert right() == 1 and len(places) > 300
    seen = (batch.src != PAD)[:, None, None].repeat(1, 1, batch.tgt_in.shape[1], 1)  # (B, 1, T_t, T_s)
    for i, row, noun, _, _ in places:
        seen[i, 0, row, noun] = False
    hooks = [
        block.cross_attention.register_forward_pre_hook(lambda _m, a, k: (a, k | {"mask": seen}), with_kwargs=True)
        for block in network.blocks
    ]
    assert right() == pytest.approx(0.95, abs=0.025)  # 0.93 to 0.97 in five draws of sentences
    for hook in hooks:
        hook.remove()
    for block in network.encoder.blocks:
        block.attention.register_forward_hook(lambda _module, _args, out: (0 * out[0], out[1]))
    assert right() == pytest.approx(0.73, abs=0.03)  # 0.70 to 0.76


@pytest.mark.full
@torch.no_grad()
def test_a_wider_beam_gives_the_same_translations():
    says("For ten unseen sentences, the course's translator writes the same with a beam of 4")
    network = translator.model()
    for pair in corpus.unseen_pairs()[:10]:
        src = batch_of([pair.english])
        memory = network.encode(src)
        for width in (1, 4):
            ids, _ = blocks.beam_search(lambda y: network.decode(y, memory, src)[:, -1], BOS, EOS, 20, width)  # noqa: B023
            assert " ".join(words_of[i] for i in ids[1:-1]) == pair.french


@pytest.mark.slow
def test_words_longer_than_those_of_training_are_not_reversed():
    says("With nine letters and more, none is correct")
    says("from none to most of the words", "correct in 0, 6, 20, 38, 56, 56, 76 and 86% of the cases, in eight runs")
    for seed, two in ((1, 0.76), (7, 0.0)):
        draw = random.Random(seed)

        def words(count, least, most, draw=draw):
            rows = [[draw.randrange(3, 29) for _ in range(draw.randint(least, most))] for _ in range(count)]
            return [(row, row[::-1]) for row in rows]

        torch.manual_seed(seed)
        model = Transformer(29, 29, 32, 4, 64, 1, 16)
        for part in model.modules():
            if isinstance(part, nn.Embedding):
                part.weight.data.mul_(0.02)
        optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
        for step in range(1, 301):
            batch = make_batch(words(64, 3, 8), PAD, BOS, EOS)
            optimizer.param_groups[0]["lr"] = 6e-3 * (1 - step / 301)
            loss = cross_entropy(model(batch["src"], batch["tgt_in"]), batch["tgt_out"], PAD)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        right = {}
        for length in (2, 3, 8, 9, 12):
            pairs = words(200, length, length)
            src = make_batch(pairs, PAD, BOS, EOS)["src"]
            written = translator.greedy(model.eval(), src, 14).tolist()
            right[length] = sum(
                row[1 : length + 2] == [*target, EOS] for row, (_, target) in zip(written, pairs, strict=True)
            )
        assert right[3] >= 198 and right[8] >= 198 and right[9] == right[12] == 0
        assert right[2] / 200 == pytest.approx(two, abs=0.1)


def test_the_learners_transformer_is_trained_if_it_passes_the_check(capsys):
    mine = next(form for form in accepted_variants("10_decoder_block")["Transformer"])
    assert own.transformer({"Transformer": mine}) is mine
    assert "your own Transformer" in capsys.readouterr().out
    assert own.transformer({}) is blocks.Transformer
    assert "the course's Transformer. Paste yours" in capsys.readouterr().out


def test_a_transformer_that_does_not_pass_is_replaced(capsys):
    class Transformer(nn.Module):
        def __init__(self, src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers, max_len, pad_id=0):
            super().__init__()
            self.out = nn.Linear(d_model, tgt_vocab)

    assert own.transformer({"Transformer": Transformer}) is blocks.Transformer
    assert "Yours does not pass lesson 10's check" in capsys.readouterr().out


words_of = {index: word for word, index in french.items()}
model = Transformer(*translator.SIZES)
model.load_state_dict(translator.state())


def batch_of(sentences):
    rows = [torch.tensor([english[word] for word in text.split()]) for text in sentences]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def greedy_until_eos(sentences, first=BOS, masked=True):
    """Translate all sentences at once and cut each at its first eos. `first` begins the target; the course's model
    also works with eos there. Without `masked`, attention includes the padding of the source."""
    src, tgt = batch_of(sentences), torch.full((len(sentences), 1), first)
    with torch.no_grad():
        memory = model.encode(src)
        visible = src if masked else torch.ones_like(src)
        while tgt.shape[1] < 24 and not (tgt[:, 1:] == EOS).any(dim=1).all():
            tgt = torch.cat([tgt, model.decode(tgt, memory, visible)[:, -1:].argmax(-1)], dim=1)
    rows = [[*row[1:], EOS] for row in tgt.tolist()]
    return [" ".join(words_of[i] for i in row[: row.index(EOS)]) for row in rows]


def from_eos(sentences):
    return greedy_until_eos(sentences, EOS)


def without_the_source_mask(sentences):
    return greedy_until_eos(sentences, masked=False)


def one_by_one(sentences):
    return [greedy_until_eos([text])[0] for text in sentences]


def with_helpers(sentences):
    """Use the finished greedy search with a step of its own, as in lesson 10."""

    def search(text):
        src = batch_of([text])
        memory = model.encode(src)
        return greedy_decode(lambda prefix: model.decode(prefix, memory, src)[:, -1], BOS, EOS, 24)

    with torch.no_grad():
        return [" ".join(words_of[i] for i in search(text) if i > EOS) for text in sentences]


by_hand = {}  # English to French, instead of a grammar


def by_rules(sentences):
    return [by_hand.get(text, "je ne sais pas") for text in sentences]


def by_rules_after_running_the_model(sentences):
    greedy_until_eos(sentences)
    return by_rules(sentences)


@functools.cache
def forty_sentences():
    """Return the key of `translate` with forty sentences."""
    listed = load_answer_key(course(), course().lesson(LESSON)).exercises
    exercise = next(item for item in listed if item.name == "translate")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(exercise.cases.__globals__, "SENTENCES", 40)
        return make_key(LESSON, exercise, 22, False, None, 3)


@pytest.mark.parametrize(
    ("answer", "points", "mistake"),
    [
        (greedy_until_eos, 22, None),
        (one_by_one, 22, None),
        (with_helpers, 22, None),
        (from_eos, 11, "does_not_begin_with_bos"),
        (without_the_source_mask, 0, "says_too_much"),
        (by_rules_after_running_the_model, 0, "model_not_repeated"),
        (by_rules, 22, None),  # the grader flags it, because no model ran
    ],
)
def test_an_answer_has_to_return_the_models_words_until_eos(answer, points, mistake):
    key = forty_sentences()
    by_hand.update(zip(key.cases[0].args[0], key.expected[0].output, strict=True))
    verdict = decide(key, observe_all(answer, key.cases, key.facts))
    assert (verdict.passed, verdict.points, verdict.mistake) == (mistake is None, points, mistake)
