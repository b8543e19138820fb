"""The grammar's French sentences and alignments are right."""

import functools
import itertools
import random

import pytest

from helpers.corpus import english_words, french_words, sentence_pairs, translate
from helpers.corpus.lexicon import ADJECTIVES, BEINGS, COUNTRIES, DETERMINERS, NAMES, NOUNS, starts_with_vowel
from helpers.corpus.translation import is_held_out

GENDER = {french: gender for french, gender in (NOUNS | COUNTRIES).values()}


@pytest.mark.parametrize(
    "english, french, alignment",
    [
        ("jane visits africa in september", "jane visite l' afrique en septembre", (0, 1, 2, 2, 3, 4)),
        ("jane visits kenya in april", "jane visite le kenya en avril", (0, 1, 2, 2, 3, 4)),
        ("tom travels to kenya", "tom voyage au kenya", (0, 1, 2, 3)),
        ("tom travels to africa", "tom voyage en afrique", (0, 1, 2, 3)),
        ("paul lives in norway in may", "paul habite en norvège en mai", (0, 1, 2, 3, 4, 5)),
        ("the black cat sees a red apple", "le chat noir voit une pomme rouge", (0, 2, 1, 3, 4, 6, 5)),
        ("an old man loves my orange", "un vieil homme aime mon orange", (0, 1, 2, 3, 4, 5)),
        ("this man finds an expensive clock", "cet homme trouve une horloge chère", (0, 1, 2, 3, 5, 4)),
        ("the owl sees the owl", "le hibou voit le hibou", (0, 1, 2, 3, 4)),
        ("the new tree is big", "le nouvel arbre est grand", (0, 1, 2, 3, 4)),
        ("this house is often white", "cette maison est souvent blanche", (0, 1, 2, 3, 4)),
        ("jane is happy", "jane est heureuse", (0, 1, 2)),
        ("tom is happy", "tom est heureux", (0, 1, 2)),
        ("jane often visits egypt", "jane visite souvent l' égypte", (0, 2, 1, 3, 3)),
        ("the beautiful plane is blue", "le bel avion est bleu", (0, 1, 2, 3, 4)),
        ("my beautiful star is old", "ma belle étoile est vieille", (0, 1, 2, 3, 4)),
        ("my star is old", "mon étoile est vieille", (0, 1, 2, 3)),
    ],
)
def test_the_grammar_translates_like_a_person(english, french, alignment):
    pair = translate(english)
    assert (pair.french, pair.alignment) == (french, alignment)


@functools.cache
def seen():
    return sentence_pairs(3000, random.Random(1))


@functools.cache
def unseen():
    return sentence_pairs(900, random.Random(2), unseen=True)


def test_the_language_has_the_stated_words_and_seeds_repeat_sentences():
    assert len(NOUNS) >= 60 and len(ADJECTIVES) >= 20
    assert {gender for _, gender in NOUNS.values()} == {"m", "f"}
    assert {gender for _, gender in COUNTRIES.values()} == {"m", "f"}
    assert sentence_pairs(50, random.Random(3)) == sentence_pairs(50, random.Random(3))
    assert sentence_pairs(50, random.Random(3)) != sentence_pairs(50, random.Random(4))
    spoken = {word for pair in seen() + unseen() for word in pair.english.split()}
    assert spoken == set(english_words())
    assert {word for pair in seen() + unseen() for word in pair.french.split()} == set(french_words())


def test_translating_a_generated_sentence_gives_the_same_pair():
    assert all(translate(pair.english) == pair for pair in seen() + unseen())
    for text in (
        "",
        "jane",
        "jane visits",
        "cat the sees jane",
        "a apple is red",
        "jane visits africa often",
        "jane eats",
    ):
        with pytest.raises(ValueError):
            translate(text)


def test_articles_are_elided_exactly_before_a_vowel():
    for pair in seen() + unseen():
        for word, following in itertools.pairwise(pair.french.split()):
            if word in ("le", "la", "ce", "ma"):
                assert not starts_with_vowel(following), pair.french
            if word in ("l'", "cet"):
                assert starts_with_vowel(following), pair.french


def test_articles_and_adjectives_agree_with_their_noun():
    feminine = {"la", "une", "cette", "ma"} | {f for m, f, *_ in ADJECTIVES.values() if f != m}
    masculine = {"le", "un", "ce", "cet"} | {form for m, f, v, *_ in ADJECTIVES.values() if f != m for form in (m, v)}
    for pair in seen() + unseen():
        english, french = pair.english.split(), pair.french.split()
        for word, index in zip(french, pair.alignment, strict=True):
            noun = _noun_of(english, index)
            if noun is not None and (word in feminine or word in masculine):
                gender = NAMES.get(noun) or GENDER[(NOUNS | COUNTRIES)[noun][0]]
                assert gender == ("f" if word in feminine else "m"), (word, noun, pair.french)


def _noun_of(english: list[str], index: int) -> str | None:
    """Return the noun of the determiner, adjective or country at `index`."""
    word = english[index]
    if word in COUNTRIES:
        return word
    if "is" in english[:index] and word in ADJECTIVES:
        return next(w for w in english if w in NOUNS or w in NAMES)
    if word in ADJECTIVES or word in DETERMINERS or word == "an":
        return next(w for w in english[index:] if w in NOUNS)
    return None


def test_reorderings_are_counted():
    for pair in seen() + unseen():
        falls = sum(a > b for a, b in itertools.pairwise(pair.alignment))
        assert falls == pair.reorderings, pair


def test_held_out_pairs_occur_only_in_unseen_sentences():
    assert not any(is_held_out(*words) for pair in seen() for words in pair.described)
    assert all(any(is_held_out(*words) for words in pair.described) for pair in unseen())
    two = sum(pair.reorderings >= 2 for pair in unseen())
    assert two == len(unseen()) / 3
    for adjective in ADJECTIVES:  # every adjective also occurs with other nouns
        assert any(not is_held_out(adjective, noun) for noun in BEINGS)


def test_no_person_has_a_color():
    people = {
        noun
        for noun in BEINGS
        if BEINGS[noun][0] not in ("chat", "chien", "cheval", "oiseau", "hibou", "vache", "souris")
    }
    assert not any(
        adjective in ("black", "white", "gray", "red", "yellow") and noun in people
        for pair in seen() + unseen()
        for adjective, noun in pair.described
    )
