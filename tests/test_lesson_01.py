"""Lesson 1: the sources' numbers, and its blocks against torch's own functions and closed forms."""

import random

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import corpus, pretrained, word2vec
from helpers.bar import bar
from helpers.blocks import lesson_01 as lesson

torch.set_num_threads(1)
LIFE = "Life is short, eat dessert first"
DTYPES = st.sampled_from([torch.float32, torch.float64])
SIZE = st.integers(1, 7)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C", "P")), min_size=1, max_size=6)
quick = settings(deadline=None, max_examples=60)


def normal(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def test_vocabulary_and_ids_of_the_source():
    vocab = lesson.build_vocab([LIFE])
    assert vocab == {"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5}
    assert list(vocab) == sorted(vocab)
    assert lesson.encode(LIFE, vocab).tolist() == [0, 4, 5, 2, 1, 3]


def test_embedded_sentence_of_the_source():
    torch.manual_seed(123)
    table = torch.nn.Embedding(6, 16).weight.detach()
    sentence = lesson.embed(torch.tensor([0, 4, 5, 2, 1, 3]), table)
    printed = torch.tensor(
        [
            [
                0.3374,
                -0.1778,
                -0.3035,
                -0.5880,
                0.3486,
                0.6603,
                -0.2196,
                -0.3792,
                0.7671,
                -1.1925,
                0.6984,
                -1.4097,
                0.1794,
                1.8951,
                0.4954,
                0.2692,
            ],
            [
                0.5146,
                0.9938,
                -0.2587,
                -1.0826,
                -0.0444,
                1.6236,
                -2.3229,
                1.0878,
                0.6716,
                0.6933,
                -0.9487,
                -0.0765,
                -0.1526,
                0.1167,
                0.4403,
                -1.4465,
            ],
            [
                0.2553,
                -0.5496,
                1.0042,
                0.8272,
                -0.3948,
                0.4892,
                -0.2168,
                -1.7472,
                -1.6025,
                -1.0764,
                0.9031,
                -0.7218,
                -0.5951,
                -0.7112,
                0.6230,
                -1.3729,
            ],
            [
                -1.3250,
                0.1784,
                -2.1338,
                1.0524,
                -0.3885,
                -0.9343,
                -0.4991,
                -1.0867,
                0.8805,
                1.5542,
                0.6266,
                -0.1755,
                0.0983,
                -0.0935,
                0.2662,
                -0.5850,
            ],
            [
                -0.0770,
                -1.0205,
                -0.1690,
                0.9178,
                1.5810,
                1.3010,
                1.2753,
                -0.2010,
                0.4965,
                -1.5723,
                0.9666,
                -1.1481,
                -1.1589,
                0.3255,
                -0.6315,
                -2.8400,
            ],
            [
                0.8768,
                1.6221,
                -1.4779,
                1.1331,
                -1.2203,
                1.3139,
                1.0533,
                0.1388,
                2.2473,
                -0.8036,
                -0.2808,
                0.7697,
                -0.6596,
                -0.7979,
                0.1838,
                0.2293,
            ],
        ]
    )
    assert (sentence - printed).abs().max() < 5.1e-5


@quick
@given(st.lists(WORDS, min_size=1, max_size=6), st.lists(st.sampled_from(list(",.!?;:")), max_size=4))
def test_tokenize_and_encode_undo_a_join(words, marks):
    sentence = " \t".join(word + mark for word, mark in zip(words, [*marks, *[""] * 6], strict=False))
    assert lesson.tokenize(sentence) == words
    vocab = lesson.build_vocab([sentence])
    assert sorted(vocab.values()) == list(range(len(set(words))))
    assert [sorted(vocab)[i] for i in lesson.encode(sentence, vocab)] == words


@pytest.mark.parametrize("sentence", ["3.14", "a , b", "!?", "don't, (you)"])
def test_marks_are_deleted_and_not_replaced(sentence):
    expected = {"3.14": ["314"], "a , b": ["a", "b"], "!?": [], "don't, (you)": ["don't", "(you)"]}
    assert lesson.tokenize(sentence) == expected[sentence]


def test_unknown_token_is_named():
    with pytest.raises(KeyError, match="pizza"):
        lesson.encode("eat pizza!", {"eat": 0})


@quick
@given(st.lists(SIZE, max_size=3), SIZE, st.integers(0, 99), DTYPES)
def test_one_hot_and_embed_agree_with_torch(shape, width, seed, dtype):
    ids = torch.randint(5, shape, generator=torch.Generator().manual_seed(seed))
    table = normal(seed, 5, width, dtype=dtype).requires_grad_()
    hot = lesson.one_hot(ids, 5)
    assert hot.dtype == torch.float32 and torch.equal(hot.long(), F.one_hot(ids, 5))
    rows = lesson.embed(ids, table)
    assert torch.equal(rows, F.embedding(ids, table)) and torch.equal(rows, hot.to(dtype) @ table)
    (gradient,) = torch.autograd.grad(rows.sum(), table)
    assert torch.equal(gradient[:, 0], torch.bincount(ids.flatten(), minlength=5).to(dtype))


@quick
@given(SIZE, SIZE, SIZE, st.integers(0, 99), st.sampled_from([1e-3, 1.0, 1e3]), DTYPES)
def test_cosine_agrees_with_torch_at_every_length(n, m, d, seed, length, dtype):
    a, b = (F.normalize(normal(seed + i, k, d, dtype=dtype)) * length for i, k in ((0, n), (1000, m)))
    limit = 2e-5 if dtype == torch.float32 else 1e-9
    expected = F.cosine_similarity(a[:, None], b[None], dim=-1, eps=1e-30)
    assert (lesson.cosine_similarity(a, b) - expected).abs().max() < limit
    a[0] = 0
    assert (lesson.cosine_similarity(a, b)[0] == 0).all() and lesson.cosine_similarity(a, b).dtype == dtype


@quick
@given(st.integers(2, 8), st.integers(2, 5), st.integers(0, 99))
def test_neighbors_are_the_best_by_cosine(size, width, seed):
    table = normal(seed, size, width) * torch.arange(1.0, size + 1)[:, None]
    found = lesson.fixed_neighbors(table, size - 1)
    cosines = F.cosine_similarity(table[:, None], table[None], dim=-1)
    for i, row in enumerate(found.tolist()):
        assert sorted([*row, i]) == list(range(size))
        assert (cosines[i, row].diff() <= 1e-12).all()


@quick
@given(st.lists(st.integers(0, 3), max_size=9), st.integers(0, 4))
def test_pairs_are_those_of_the_corpus_trainer(ids, window):
    pairs = lesson.skipgram_pairs(torch.tensor(ids, dtype=torch.long), window)
    assert all(type(x) is int for pair in pairs for x in pair)
    assert pairs == lesson.skipgram_pairs(ids, window)
    if ids:
        assert [list(pair) for pair in pairs] == word2vec.all_pairs([ids], window).tolist()


@quick
@given(SIZE, SIZE, SIZE, st.integers(0, 99), st.sampled_from([0.3, 1.0, 10.0]), DTYPES)
def test_loss_is_binary_cross_entropy_and_its_gradient_the_two_forces(batch, k, width, seed, scale, dtype):
    shapes = [(batch, width), (batch, width), (batch, k, width)]
    c, o, n = (normal(seed + i, *shape, dtype=dtype) * scale for i, shape in enumerate(shapes))
    c.requires_grad_()
    loss = lesson.negative_sampling_loss(c, o, n)
    logits = torch.cat(((c * o).sum(-1)[:, None], (n * c[:, None]).sum(-1)), 1)
    truth = F.one_hot(torch.zeros(batch, dtype=torch.long), 1 + k).to(dtype)
    expected = F.binary_cross_entropy_with_logits(logits, truth, reduction="none").sum(1).mean()
    limit = 1e-4 if dtype == torch.float32 else 1e-9
    torch.testing.assert_close(loss, expected, rtol=limit, atol=limit)
    (gradient,) = torch.autograd.grad(loss, c)
    forces = ((truth - logits.sigmoid())[..., None] * torch.cat((o[:, None], n), 1)).sum(1)
    torch.testing.assert_close(-gradient * batch, forces.detach(), rtol=limit, atol=limit * max(1, scale))


def test_loss_is_exact_at_a_hundred():
    ten = torch.full((1, 1), 10.0)
    assert lesson.negative_sampling_loss(ten, -ten, ten[:, None]).item() == 200.0
    assert lesson.negative_sampling_loss(ten, ten, -ten[:, None]).item() < 1e-30


@quick
@given(st.text("ab", min_size=1, max_size=12), st.sets(st.text("ab", min_size=1, max_size=3), min_size=1))
def test_wordpiece_takes_the_longest_and_never_goes_back(word, stems):
    vocab = stems | {"##" + stem for stem in stems}
    pieces = lesson.wordpiece(word, vocab, "?")
    rest = word
    while rest and (fits := [stem for stem in stems if rest.startswith(stem)]):
        rest = rest[len(max(fits, key=len)) :]
    if rest:
        assert pieces == ["?"]
    else:
        assert "".join(piece.removeprefix("##") for piece in pieces) == word


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
    monkeypatch.setattr(pretrained, "_model_folders", list)
    vocab = pretrained.wordpiece_vocab()
    assert list(vocab.values()) == list(range(len(vocab)))
    assert "[UNK]" not in lesson.wordpiece("unpronounceable0123456789", vocab)


def test_vocabulary_of_the_model_is_read_where_it_is(monkeypatch, tmp_path):
    folder = tmp_path / "hub" / pretrained.HUB_NAME / "snapshots" / "abc"
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("[PAD]\nvisits\n##s\n", encoding="utf-8")
    monkeypatch.setattr(pretrained, "PACKAGE", "a_package_that_is_not_installed")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert pretrained.wordpiece_vocab() == {"[PAD]": 0, "visits": 1, "##s": 2}


def test_sentences_hold_one_word_of_one_group():
    known = {word for group in corpus.COMPANY.values() for word in group}
    sentences = corpus.company_sentences(200, random.Random(5))
    assert all(len(known & set(sentence.split())) == 1 for sentence in sentences)
    assert sentences == corpus.company_sentences(200, random.Random(5))
    words, ids = corpus.index_words(sentences)
    assert [words[i] for i in ids[0]] == sentences[0].split() and known <= set(words)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_words_that_share_company_move_together(seed, capsys):
    from helpers.figures.token_embedding import company

    words, ids = corpus.index_words(corpus.company_sentences(600, random.Random(seed)))
    history = word2vec.train(ids, len(words), torch.Generator().manual_seed(seed))
    (before, _), (within, between) = company(history.centers[0], words), company(history.centers[-1], words)
    assert abs(before) < 0.2 and within > 0.95 and between < 0.45
    assert history.losses[-1] < 0.5 * history.losses[0]
    assert capsys.readouterr().out.strip().endswith("1000 of 1000")


def test_explorers_draw_every_setting():
    from helpers.figures import token_embedding as figures

    assert "Dot product -30.00, cosine -1.00" in figures.turned(180, 6.0).alt
    assert "shadow of length 0.00" in figures.turned(90, 0.5).alt
    words, ids = corpus.index_words(corpus.company_sentences(300, random.Random(0)))
    history = word2vec.train(ids, len(words), torch.Generator().manual_seed(0), steps=40)
    titles = {figures.training_step(history, words, place).alt for place in range(len(history.steps))}
    assert len(titles) == len(history.steps)


def test_one_step_moves_along_the_gradient_of_the_loss():
    generator = torch.Generator().manual_seed(0)
    center, context = (torch.randn(6, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    picked, good, bad = torch.tensor([0, 2, 2]), torch.tensor([1, 3, 5]), torch.tensor([[4, 1], [0, 0], [3, 3]])
    leaves = center.clone().requires_grad_(), context.clone().requires_grad_()
    loss = lesson.negative_sampling_loss(leaves[0][picked], leaves[1][good], leaves[1][bad])
    moved = word2vec.Words(center.clone(), context.clone())
    value = word2vec.pull_and_push(moved, picked, good, bad, rate=0.5)
    slopes = torch.autograd.grad(loss * 3, leaves)
    assert value == pytest.approx(loss.item())
    torch.testing.assert_close(moved.center, center - 0.5 * slopes[0])
    torch.testing.assert_close(moved.context, context - 0.5 * slopes[1])


def test_bar_passes_every_step_on_and_ends_with_one_line(capsys):
    assert list(bar(range(7), "loop")) == list(range(7))
    assert capsys.readouterr().out.splitlines() == ["loop " + "█" * 30 + " 100 %  7 of 7"]
    assert list(bar([], "none")) == []
