"""Lesson 1: the sources' numbers, and its blocks against torch's own functions and closed forms."""

import functools
import random

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from helpers import at_work, corpus, pretrained, translator
from helpers import blocks as lesson
from helpers.lessons.token_embedding import figures, word2vec
from helpers.lessons.token_embedding.figures import company, unit
from helpers.pretrained import model_files
from helpers.translator import FINISHED_PARTS, evaluation
from helpers.translator.word_ids import english_list
from helpers.widgets.progress_bar import bar
from tests.judged import verdict_of
from tests.mutation_score import exercises

torch.set_num_threads(1)
LESSON = "01_token_embedding"
LIFE = "Life is short, eat dessert first"
PRINTED = """
0.3374 -0.1778 -0.3035 -0.5880 0.3486 0.6603 -0.2196 -0.3792 0.7671 -1.1925 0.6984 -1.4097 0.1794 1.8951
0.4954 0.2692 0.5146 0.9938 -0.2587 -1.0826 -0.0444 1.6236 -2.3229 1.0878 0.6716 0.6933 -0.9487 -0.0765
-0.1526 0.1167 0.4403 -1.4465 0.2553 -0.5496 1.0042 0.8272 -0.3948 0.4892 -0.2168 -1.7472 -1.6025 -1.0764
0.9031 -0.7218 -0.5951 -0.7112 0.6230 -1.3729 -1.3250 0.1784 -2.1338 1.0524 -0.3885 -0.9343 -0.4991 -1.0867
0.8805 1.5542 0.6266 -0.1755 0.0983 -0.0935 0.2662 -0.5850 -0.0770 -1.0205 -0.1690 0.9178 1.5810 1.3010 1.2753
-0.2010 0.4965 -1.5723 0.9666 -1.1481 -1.1589 0.3255 -0.6315 -2.8400 0.8768 1.6221 -1.4779 1.1331 -1.2203
1.3139 1.0533 0.1388 2.2473 -0.8036 -0.2808 0.7697 -0.6596 -0.7979 0.1838 0.2293
"""


def test_vocabulary_and_ids_of_the_source():
    vocab = lesson.build_vocab([LIFE])
    assert vocab == {"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5}
    assert list(vocab) == sorted(vocab)
    assert lesson.encode(LIFE, vocab).tolist() == [0, 4, 5, 2, 1, 3]


def test_embedded_sentence_of_the_source():
    torch.manual_seed(123)
    table = torch.nn.Embedding(6, 16).weight.detach()
    sentence = lesson.embed(torch.tensor([0, 4, 5, 2, 1, 3]), table)
    printed = torch.tensor([float(x) for x in PRINTED.split()]).view(6, 16)
    assert (sentence - printed).abs().max() < 5.1e-5


@given(st.lists(st.integers(0, 3), max_size=9), st.integers(0, 4))
def test_pairs_are_those_of_the_corpus_trainer(ids, window):
    pairs = lesson.skipgram_pairs(torch.tensor(ids, dtype=torch.long), window)
    assert all(type(x) is int for pair in pairs for x in pair)
    assert pairs == lesson.skipgram_pairs(ids, window)
    if ids:
        assert [list(pair) for pair in pairs] == word2vec.all_pairs([ids], window).tolist()


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("apples", "apples"),
        ("pineapples", "pine ##apple ##s"),
        ("unforgettable", "un ##for ##get ##table"),
        ("unhappiness", "un ##ha ##pp ##iness"),
        ("Dessert", "[UNK]"),
    ],
)
def test_cuts_that_the_lesson_shows(word, pieces):
    assert lesson.wordpiece(word, pretrained.wordpiece_vocab()) == pieces.split()


def test_small_vocabulary_numbers_its_pieces(monkeypatch):
    monkeypatch.setattr(model_files, "model_folders", list)
    vocab = pretrained.wordpiece_vocab()
    assert list(vocab.values()) == list(range(len(vocab)))
    assert "[UNK]" not in lesson.wordpiece("unpronounceable0123456789", vocab)


def test_vocabulary_of_the_model_is_read_where_it_is(monkeypatch, tmp_path):
    folder = tmp_path / "hub" / model_files.HUB_NAME / "snapshots" / "abc"
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("[PAD]\nvisits\n##s\n", encoding="utf-8")
    monkeypatch.setattr(model_files, "PACKAGE", "a_package_that_is_not_installed")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert pretrained.wordpiece_vocab() == {"[PAD]": 0, "visits": 1, "##s": 2}


def test_sentences_hold_one_word_of_one_group():
    known = {word for group in corpus.COMPANY.values() for word in group}
    sentences = corpus.company_sentences(200, random.Random(5))
    assert all(len(known & set(sentence.split())) == 1 for sentence in sentences)
    assert sentences == corpus.company_sentences(200, random.Random(5))
    words, ids = corpus.index_words(sentences)
    assert [words[i] for i in ids[0]] == sentences[0].split() and known <= set(words)


def trained(seed, forces=FINISHED_PARTS["negative_sampling_gradients"], count=300):
    words, ids = corpus.index_words(corpus.company_sentences(count, random.Random(1)))
    return words, ids, word2vec.train(ids, len(words), torch.Generator().manual_seed(seed), forces)


@functools.cache
def of_the_lesson():
    return trained(1, lesson.negative_sampling_gradients)


@pytest.mark.parametrize("seed", [2, 3])
def test_words_that_share_company_move_together(seed, capsys):
    words, _, history = trained(seed)
    (before, _), (within, between) = company(history.centers[0], words), company(history.centers[-1], words)
    assert abs(before) < 0.2 and within > 0.95 and between < 0.45
    assert capsys.readouterr().out.strip().endswith("5120 of 5120")


def test_numbers_of_the_training():
    words, ids, history = of_the_lesson()
    pairs = word2vec.all_pairs(ids, 2)
    assert (len(words), len(pairs), history.centers.shape) == (42, 5120, (21, 42, 16))
    between = [company(centers, words)[1] for centers in history.centers]
    assert history.steps[between.index(max(between))] == 627 and max(between) == pytest.approx(0.84, abs=0.02)
    across = [float((unit(c) @ unit(o).T).mean()) for c, o in zip(history.centers, history.contexts, strict=True)]
    assert min(across) == pytest.approx(-0.87, abs=0.01)
    length = dict(zip(words, history.centers[-1].norm(dim=1).tolist(), strict=True))
    assert {word for word in words if length[word] > 3.1} == {"in", "for", "by"}
    assert {word for word in words if length[word] < 1.8} >= {"jane", "she"} and round(length["africa"], 1) == 1.9


def buggy_neighbors(table, k):
    similarity = (table / table.norm()) @ (table / table.norm()).T
    return similarity.fill_diagonal_(-torch.inf).topk(k).indices


def test_the_buggy_neighbors_of_the_trained_table():
    words, _, history = of_the_lesson()
    table, group = history.centers[-1], {word: name for name, members in corpus.COMPANY.items() for word in members}
    found = {}
    for neighbors in (lesson.fixed_neighbors, buggy_neighbors):
        near = neighbors(table, 3)
        first = {word: words[near[words.index(word), 0]] for word in group}
        hub = int((near == words.index("by")).sum())
        found[neighbors] = sum(group.get(first[word]) == group[word] for word in group), hub
    assert list(found.values()) == [(15, 0), (4, 12)]
    changed = lesson.fixed_neighbors(table, 1) != buggy_neighbors(table, 1)
    assert int(changed.sum()) == 37


@pytest.mark.full
def test_each_force_alone():
    def only_pull(c, o, n):
        return *lesson.negative_sampling_gradients(c, o, 0 * n)[:2], 0 * n

    def only_push(c, o, n):
        moves = lesson.negative_sampling_gradients(c, 0 * o, n)
        return moves[0], 0 * o, moves[2]

    words, ids, history = of_the_lesson()
    pairs = word2vec.all_pairs(ids, 2)
    alone = {"pull": trained(1, only_pull)[2], "push": trained(1, only_push)[2]}
    assert figures.looks_true(alone["pull"], pairs) == pytest.approx((0.95, 0.79), abs=0.006)
    assert max(figures.looks_true(alone["push"], pairs)) < 0.01
    centers, contexts = unit(alone["push"].centers[-1]), unit(alone["push"].contexts[-1])
    assert (centers @ contexts.T).mean() < -0.97 and (centers @ centers.T).mean() > 0.97  # two opposite clusters
    assert (
        "probability of a positive pair 0.95"
        in figures.forces_alone({"only the pull": alone["pull"], "both": history}, pairs).alt
    )


def test_forces_on_paper():
    c, o, n = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 2.0]), torch.tensor([[2.0, 0.0]])
    rounded = [[round(x, 3) for x in part.flatten().tolist()] for part in lesson.negative_sampling_gradients(c, o, n)]
    assert rounded == [[1.762, -1.0], [-0.5, 0.0], [0.881, 0.0]]


def test_training_walks_against_what_it_is_given():
    words, ids, _ = of_the_lesson()
    still = word2vec.train(ids, len(words), torch.Generator().manual_seed(0), lambda c, o, n: (0 * c, 0 * o, 0 * n))
    assert torch.equal(still.centers[0], still.centers[-1]) and (still.contexts == 0).all()
    seen = []
    word2vec.train([[0, 1]], 2, torch.Generator().manual_seed(0), lambda *x: seen.append(x) or (x[0], x[1], x[2]))
    assert [tuple(x.shape for x in call) for call in seen] == [((16,), (16,), (5, 16))] * 2


def test_the_translators_own_table(capsys):
    table = translator.state()["encoder.tokens.weight"]
    mine, theirs = lesson.fixed_neighbors(table, 3), buggy_neighbors(table, 3)
    assert float((mine[:, 0] != theirs[:, 0]).float().mean()) == pytest.approx(0.25, abs=0.04)
    near = {
        word: [english_list[i] for i in mine[translator.english[word]].tolist()] for word in ("africa", "in", "visits")
    }
    assert (
        near["africa"][:2] == ["germany", "asia"]
        and near["in"][0] == "to"
        and {"peru", "canada"} <= set(near["visits"])
    )
    today = torch.randperm(len(table), generator=torch.Generator().manual_seed(0))

    def shuffled_embed(ids, table):
        return table[today[ids]] if len(table) == len(today) else table[ids]

    batch = evaluation.unseen(evaluation.LOSS_SENTENCES)
    assert evaluation.nats_a_word(translator.machine(embed=shuffled_embed), batch) == pytest.approx(9.2, abs=0.06)
    assert evaluation.nats_a_word(translator.machine(embed=lesson.embed), batch) < 0.0003
    encode, embed, cosine_similarity = lesson.encode, lesson.embed, lesson.cosine_similarity
    fixed_neighbors = lesson.fixed_neighbors
    at_work(encode, embed, cosine_similarity)
    at_work(fixed_neighbors)
    assert capsys.readouterr().out.count("nearest to africa: germany, asia") == 2


def test_a_sentence_becomes_rows():
    draw = figures.SentenceToRows()
    said = draw("Jane visits africa, in september!", 2).alt
    assert "jane 84, visits 156, africa 3, in 79, september 137" in said and "row of visits begins" in said
    assert "pizza has no id" in draw("jane visits pizza", 3).alt and "KeyError" in draw("jane visits pizza", 3).alt
    assert "empty" in draw("  ", 1).alt and "<pad> has no id" in draw("<pad>", 1).alt


def test_explorers_draw_every_setting():
    assert "Dot product -30.00, cosine -1.00" in figures.turned(180, 6.0).alt
    assert "projection of length 0.00" in figures.turned(90, 0.5).alt
    same = figures.turned(0, 3.0).alt, figures.turned(60, 6.0).alt
    assert all("Dot product 15.00" in alt for alt in same) and "cosine 1.00" in same[0] and "cosine 0.50" in same[1]
    words, _, history = of_the_lesson()
    step = figures.TrainingStep(history, words)
    assert len({step(index).alt for index in range(len(history.steps))}) == len(history.steps)


def _slope_of_sigmoid(c, o, n):
    s = torch.sigmoid(c @ o)
    right = lesson.negative_sampling_gradients(c, o, n)
    pull = s * (s - 1)
    return right[0] + (pull - (s - 1)) * o, pull * c, right[2]


def _opposite(c, o, n):
    return (
        lesson.negative_sampling_gradients(c, o, n)[0],
        (1 - torch.sigmoid(c @ o)) * o,
        -torch.sigmoid(n @ c)[:, None] * n,
    )


def _right_first(ids, window):
    ids, pairs = [int(i) for i in ids], []
    for t, center in enumerate(ids):
        pairs += [(center, o) for o in ids[t + 1 : t + window + 1]]
        pairs += [(center, o) for o in ids[max(0, t - window) : t]]
    return pairs


def _rooted(x):
    length = x.square().sum(dim=1, keepdim=True).sqrt()
    return x / torch.where(length > 0, length, 1)


# Answers that must not pass; the name of the mistake that the check may give them, None for none.
REFUSED = {
    "tokenize": [("split_on_single_spaces", lambda s: "".join(x for x in s if x not in ",.!?;:").split(" "))],
    "encode": [
        ("sentence_named", lambda s, vocab: _encode_or(s, vocab, s)),
        (None, lambda s, vocab: _encode_or(s, vocab, f"one of {lesson.tokenize(s)} is unknown")),
        (None, lambda s, vocab: _encode_or(s, vocab, "unknown token")),
        ("marks_left_on", lambda s, vocab: torch.tensor([vocab[token] for token in s.split()])),
    ],
    "one_hot": [
        (None, lambda ids, size: torch.eye(size)[ids].mT),
        ("counted_from_one", lambda ids, size: torch.eye(size)[ids - 1]),
    ],
    "embed": [
        (None, lambda ids, table: table[ids].squeeze(0)),
        ("one_hot_of_float32", lambda ids, table: torch.eye(len(table))[ids] @ table),
    ],
    "cosine_similarity": [
        ("epsilon_on_the_product", lambda a, b: a @ b.T / (a.norm(dim=1)[:, None] * b.norm(dim=1) + 1e-8)),
        (None, lambda a, b: a @ b.T / (a.norm(dim=1)[:, None] * b.norm(dim=1)).clamp_min(1e-5)),
        (None, lambda a, b: a @ b.T / (a.norm(dim=1) * b.norm(dim=1))),
        (None, lambda a, b: a @ b.T / (a.norm(dim=1, keepdim=True) * b.norm(dim=1, keepdim=True))),
        ("only_a_normalized", lambda a, b: a @ b.T / a.norm(dim=1, keepdim=True).clamp_min(1e-12)),
        (None, lambda a, b: _floored(a) @ (b / (b.norm() + 1e-12)).T),
        ("nan_on_the_way_back", lambda a, b: _rooted(a) @ _rooted(b).T),
        ("nan_on_the_way_back", lambda a, b: torch.nan_to_num(a @ b.T / (a.norm(dim=1)[:, None] * b.norm(dim=1)))),
    ],
    "negative_sampling_gradients": [
        (None, lambda c, o, n: [part for part in lesson.negative_sampling_gradients(c, o, n)]),
        (None, lambda c, o, n: tuple(part.float() for part in lesson.negative_sampling_gradients(c, o, n))),
        (None, _slope_of_sigmoid),
        (None, _opposite),
        ("all_negated", lambda c, o, n: tuple(-part for part in lesson.negative_sampling_gradients(c, o, n))),
        (None, lambda c, o, n: tuple(2 * part for part in lesson.negative_sampling_gradients(c, o, n))),
        (None, lambda c, o, n: torch.func.grad(_loss_of_one, (0, 1, 2))(c, o, n)),
        (None, lambda c, o, n: lesson.negative_sampling_gradients(c.clamp(-3, 3), o, n)),
    ],
    "fixed_neighbors": [
        ("first_dropped", lambda table, k: (_unit(table) @ _unit(table).T).topk(k + 1).indices[:, 1:]),
        ("lengths_in_a_row", lambda table, k: _nearest(table / table.norm(dim=1), k)),
        ("as_published", lambda table, k: _nearest(table, k)),
        (None, lambda table, k: _nearest(_unit(table), k).float()),
    ],
    "negative_sampling_loss": [
        ("mean_over_all_pairs", lambda c, o, n: lesson.negative_sampling_loss(c, o, n) / (1 + n.shape[1])),
        ("log_of_sigmoid", lambda c, o, n: _loss_in_steps(c, o, n, lambda x: (1 + (-x).exp()).log())),
        ("log_of_sigmoid", lambda c, o, n: _loss_in_steps(c, o, n, lambda x: -x.sigmoid().log())),
        ("epsilon_1e-8", lambda c, o, n: _loss_in_steps(c, o, n, lambda x: -(x.sigmoid() + 1e-8).log())),
    ],
    "skipgram_pairs": [(None, _right_first)],
    "wordpiece": [
        (
            "at_most_100_letters",
            lambda word, vocab, unk="[UNK]": [unk] if len(word) > 100 else lesson.wordpiece(word, vocab, unk),
        )
    ],
}


def _encode_or(sentence, vocab, message):
    if any(token not in vocab for token in lesson.tokenize(sentence)):
        raise KeyError(message)
    return lesson.encode(sentence, vocab)


def _unit(x):
    return x / x.norm(dim=-1, keepdim=True)


def _nearest(rows, k):
    return (rows @ rows.T).fill_diagonal_(-torch.inf).topk(k).indices


def _loss_of_one(c, o, n):
    return -F.logsigmoid(c @ o) - F.logsigmoid(-(n @ c)).sum()


def _loss_in_steps(c, o, n, surprise):
    return (surprise((c * o).sum(-1)) + surprise(-(n * c[:, None]).sum(-1)).sum(-1)).mean()


def _verdict(name, answer):
    return verdict_of(LESSON, name, answer, seed=7)


@pytest.mark.parametrize(
    ("exercise", "name", "answer"), [(exercise, *item) for exercise, items in REFUSED.items() for item in items]
)
def test_wrong_answers_are_refused_and_not_misnamed(exercise, name, answer):
    known = {mistake.name for item in exercises(LESSON) if item.name == exercise for mistake in item.mistakes}
    verdict = _verdict(exercise, answer)
    assert not verdict.passed
    assert verdict.mistake == name if name else verdict.mistake not in known, (verdict.mistake, verdict.message)


def test_an_unknown_token_that_is_not_refused_is_told_of_the_key_error():
    guessed = _verdict("encode", lambda s, vocab: torch.tensor([vocab.get(t, 0) for t in lesson.tokenize(s)]))
    said = next(part.detail for part in guessed.parts if not part.passed)
    assert said.startswith("expected a KeyError, but your code returned a value: torch.tensor([")
    unnamed = _verdict("encode", lambda s, vocab: _encode_or(s, vocab, "unknown token"))
    assert unnamed.message.startswith("the KeyError should name 'pizza'\nyours says: 'unknown token'")


def test_other_guards_and_messages_are_right():
    assert _verdict("encode", lambda s, vocab: _encode_first(s, vocab)).passed
    assert _verdict("wordpiece", _wordpiece_by_iterating).passed
    assert _verdict("cosine_similarity", lambda a, b: _floored(a) @ _floored(b).T).passed


def _encode_first(sentence, vocab):
    for token in lesson.tokenize(sentence):
        if token not in vocab:
            raise KeyError(f"{token!r} is not one of {sorted(vocab)}")
    return lesson.encode(sentence, vocab)


def _floored(x):
    return x / x.norm(dim=1, keepdim=True).clamp_min(1e-8)


def _wordpiece_by_iterating(word, vocab, unk="[UNK]"):
    found, rest = [], word
    while rest:
        fits = [p for p in vocab if p.startswith("##") == bool(found) and rest.startswith(p.removeprefix("##"))]
        fits = [p for p in fits if p != "##"]
        if not fits:
            return [unk]
        found.append(max(fits, key=len))
        rest = rest[len(found[-1].removeprefix("##")) :]
    return found


def test_bar_passes_every_step_on_and_ends_with_one_line(capsys):
    assert list(bar(range(7), "loop")) == list(range(7))
    assert capsys.readouterr().out.splitlines() == ["loop " + "█" * 30 + " 100%  7 of 7"]
    assert list(bar([], "none")) == []
