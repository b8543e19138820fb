"""Lesson 1: the sources' numbers, and its blocks against torch's own functions and closed forms."""

import functools
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers import at_work, corpus, pretrained, translator
from helpers import blocks as lesson
from helpers.lessons.token_embedding import figures, word2vec
from helpers.lessons.token_embedding.figures import company
from helpers.pretrained import model_files
from helpers.translator import evaluation
from helpers.widgets.progress_bar import bar

torch.set_num_threads(1)
LESSON = "01_token_embedding"
LIFE = "Life is short, eat dessert first"


def test_vocabulary_and_ids_of_the_source():
    vocab = lesson.build_vocab([LIFE])
    assert vocab == {"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5}
    assert list(vocab) == sorted(vocab)
    assert lesson.encode(LIFE, vocab).tolist() == [0, 4, 5, 2, 1, 3]


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


@functools.cache
def of_the_lesson():
    words, ids = corpus.index_words(corpus.company_sentences(300, random.Random(1)))
    forces = lesson.negative_sampling_gradients
    return words, ids, word2vec.train(ids, len(words), torch.Generator().manual_seed(1), forces)


def test_numbers_of_the_training():
    words, ids, history = of_the_lesson()
    pairs = word2vec.all_pairs(ids, 2)
    assert (len(words), len(pairs), history.centers.shape) == (42, 5120, (21, 42, 16))
    between = [company(centers, words)[1] for centers in history.centers]
    assert max(between) == pytest.approx(0.84, abs=0.02)
    length = dict(zip(words, history.centers[-1].norm(dim=1).tolist(), strict=True))
    assert {word for word in words if length[word] > 3.1} == {"in", "for", "by"}
    assert {word for word in words if length[word] < 1.8} >= {"jane", "she"} and round(length["africa"], 1) == 1.9


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


def test_the_functions_find_neighbors_in_the_translators_own_table(capsys):
    batch = evaluation.unseen(evaluation.LOSS_SENTENCES)
    assert evaluation.nats_a_word(translator.machine(embed=lesson.embed), batch) < 0.0003
    encode, embed, cosine_similarity = lesson.encode, lesson.embed, lesson.cosine_similarity
    fixed_neighbors = lesson.fixed_neighbors
    at_work(encode, embed, cosine_similarity)
    at_work(fixed_neighbors)
    assert capsys.readouterr().out.count("nearest to africa: germany, asia") == 2


def test_a_sentence_becomes_rows():
    draw = figures.sentence_to_rows
    said = draw("Jane visits africa, in september!", 2).alt
    assert "jane 84, visits 156, africa 3, in 79, september 137" in said and "row of visits begins" in said
    assert "pizza has no id" in draw("jane visits pizza", 3).alt and "KeyError" in draw("jane visits pizza", 3).alt
    assert "empty" in draw("  ", 1).alt and "<pad> has no id" in draw("<pad>", 1).alt


def test_explorers_draw_every_setting():
    assert "Dot product -30.00, cosine -1.00" in figures.turned(180, 6.0).alt
    assert "projection of 0.00" in figures.turned(90, 0.5).alt
    same = figures.turned(0, 3.0).alt, figures.turned(60, 6.0).alt
    assert all("Dot product 15.00" in alt for alt in same) and "cosine 1.00" in same[0] and "cosine 0.50" in same[1]
    words, _, history = of_the_lesson()
    step = figures.TrainingStep(history, words)
    assert len({step(index).alt for index in range(len(history.steps))}) == len(history.steps)


def test_bar_passes_every_step_on_and_ends_with_one_line(capsys):
    assert list(bar(range(7), "loop")) == list(range(7))
    assert capsys.readouterr().out.splitlines() == ["loop " + "█" * 30 + " 100%  7 of 7"]
    assert list(bar([], "none")) == []
