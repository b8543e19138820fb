"""English sentences with their French translations, from a seeded grammar that knows the alignment of every word.

    jane visits africa in september    ->    jane visite l' afrique en septembre

Articles and adjectives agree with their noun, articles are shortened as in French, most adjectives move behind the
noun, and adverbs move behind the verb. The French is tokenized, so the shortened article "l'" is a word of its own.
"""

import random
import re

from helpers.corpus import lexicon
from helpers.corpus.provided import Pair

# The kind of each word. Verbs have different kinds for a noun, a country, or either as their object.
KIND = {
    word: kind
    for kind, words in {
        "name": lexicon.NAMES,
        "determiner": [*lexicon.DETERMINERS, "an"],
        "adjective": lexicon.ADJECTIVES,
        "noun": lexicon.NOUNS,
        "adverb": lexicon.ADVERBS,
        "country": lexicon.COUNTRIES,
        "month": lexicon.MONTHS,
        "sees": lexicon.VERBS.keys() - lexicon.PLACE_VERBS,
        "visits": lexicon.PLACE_VERBS.keys() - lexicon.VERBS,
        "loves": lexicon.VERBS.keys() & lexicon.PLACE_VERBS,
        "goes": [verb for verb, preposition in lexicon.MOVES if preposition == "to"],
        "lives": [verb for verb, preposition in lexicon.MOVES if preposition == "in"],
        **{word: [word] for word in ("is", "with", "in", "to")},
    }.items()
    for word in words
}
PHRASE = "determiner (adjective )?noun "
ACTION = f"(sees|loves) {PHRASE}|(visits|loves) country |goes to country |lives in country "
SENTENCE = re.compile(f"(name |{PHRASE})(is (adverb )?adjective |(adverb )?({ACTION}))(with {PHRASE})?(in month )?")
FRENCH = {name: name for name in lexicon.NAMES} | {"is": "est", "with": "avec"}
FRENCH |= lexicon.MONTHS | lexicon.ADVERBS | lexicon.VERBS | lexicon.PLACE_VERBS
FRENCH |= {verb: french for (verb, _), french in lexicon.MOVES.items()}

ADJECTIVES_OF = {
    kind: [word for word, (*_, said_of) in lexicon.ADJECTIVES.items() if kind in said_of.split()]
    for kind in ("people", "animals", "things")
}
ADJECTIVE_INDEX = {word: i for i, word in enumerate(lexicon.ADJECTIVES)}
NOUN_INDEX = {word: i for i, word in enumerate(lexicon.NOUNS)}


def sentence_pairs(count: int, generator: random.Random, unseen: bool = False) -> list[Pair]:
    """`count` sentence pairs drawn with `generator`.

    unseen=False: sentences for training, without any held-out adjective-noun pair.
    unseen=True: sentences for testing; each has at least one held-out pair, and every third has two or more
    reorderings, the others at most one.
    """
    pairs: list[Pair] = []
    while len(pairs) < count:
        pair = translate(" ".join(_draw(generator)))
        held_out = any(is_held_out(*words) for words in pair.described)
        if held_out == unseen and (not unseen or (pair.reorderings >= 2) == (len(pairs) % 3 == 0)):
            pairs.append(pair)
    return pairs


def is_held_out(adjective: str, noun: str) -> bool:
    """Whether training sentences never have this adjective-noun pair; this is a fixed set of one pair in eight."""
    return (3 * ADJECTIVE_INDEX[adjective] + 5 * NOUN_INDEX[noun]) % 8 == 0


def _draw(generator: random.Random) -> list[str]:
    """The words of a random English sentence: a subject, a predicate, and perhaps "with ..." and a month."""

    def pick(words) -> str:
        return generator.choice(list(words))

    def phrase(noun: str, chance: float = 0.0) -> list[str]:
        determiner = pick(lexicon.DETERMINERS)
        described = [pick(ADJECTIVES_OF[_kind(noun)])] if chance and generator.random() < chance else []
        following = [*described, noun]
        return ["an" if determiner == "a" and following[0][0] in "aeiou" else determiner, *following]

    if generator.random() < 0.4:
        kind, subject = "people", [pick(lexicon.NAMES)]
    else:
        noun = pick(lexicon.BEINGS)
        kind, subject = _kind(noun), phrase(noun, 0.5)
    adverb = [pick(lexicon.ADVERBS)] if generator.random() < 0.2 else []
    action = pick(("thing", "thing", "thing", "place", "move", "state"))
    if action == "thing":
        words = [*subject, *adverb, pick(lexicon.VERBS)]
        words += phrase(pick(lexicon.THINGS if generator.random() < 0.7 else lexicon.BEINGS), 0.6)
    elif action == "place":
        words = [*subject, *adverb, pick(lexicon.PLACE_VERBS), pick(lexicon.COUNTRIES)]
    elif action == "move":
        words = [*subject, *adverb, *pick(lexicon.MOVES), pick(lexicon.COUNTRIES)]
    else:
        if len(subject) == 1 and generator.random() < 0.4:  # a thing instead of a name: "the house is white"
            kind, subject = "things", phrase(pick(lexicon.THINGS))
        words = [*subject, "is", *adverb, pick(ADJECTIVES_OF[kind])]
    if action != "state" and generator.random() < 0.2:
        words += ["with", *phrase(pick(lexicon.NOUNS), 0.6)]
    if generator.random() < 0.35:
        words += ["in", pick(lexicon.MONTHS)]
    return words


def _kind(noun: str) -> str:
    return "people" if noun in lexicon.PEOPLE else "animals" if noun in lexicon.ANIMALS else "things"


def translate(english: str) -> Pair:
    """The Pair of an English sentence of this grammar. Raises ValueError for any other sentence.

    Figures and tests use it as the reference; the course's network never uses it.
    """
    words = english.split(" ")
    kinds = [KIND.get(word, "?") for word in words]
    if not SENTENCE.fullmatch(" ".join(kinds) + " "):
        raise ValueError(f"the grammar does not make {english!r}")
    french: list[tuple[str, int]] = []  # each word with the index of the English one that it comes from
    described, reorderings, gender, subject = [], 0, "", ""
    for at, (word, kind, before) in enumerate(zip(words, kinds, ["", *kinds], strict=False)):
        if kind == "determiner":
            if word in ("a", "an") and (word == "an") != (words[at + 1][0] in "aeiou"):
                raise ValueError(f"the grammar does not make {english!r}")
        elif kind == "noun":
            noun, gender = lexicon.NOUNS[word]
            subject, phrase = word, [(noun, at)]
            if before == "adjective":
                adjective, moves = words[at - 1], not lexicon.ADJECTIVES[words[at - 1]][3]
                form = _agreeing(adjective, gender, vowel=not moves and lexicon.starts_with_vowel(noun))
                phrase.insert(moves, (form, at - 1))
                reorderings += moves
                described.append((adjective, word))
            first = at - len(phrase)
            french += [(_determiner(words[first], gender, phrase[0][0]), first), *phrase]
        elif kind == "adjective" and before in ("is", "adverb"):
            french.append((_agreeing(word, gender), at))
            described += [(word, subject)] if subject else []
        elif kind == "country":
            country, its_gender = lexicon.COUNTRIES[word]
            preposition = "en" if its_gender == "f" or lexicon.starts_with_vowel(country) else "au"
            moved = before in ("to", "in")
            article = (preposition, at - 1) if moved else (_determiner("the", its_gender, country), at)
            french += [article, (country, at)]
        elif kind == "month":
            french += [("en", at - 1), (FRENCH[word], at)]
        elif kind == "adverb" and before != "is":
            reorderings += 1  # its French follows the verb, which adds it
        elif kind not in ("adjective", "in", "to"):
            french.append((FRENCH[word], at))
            if before == "adverb":
                french.append((FRENCH[words[at - 1]], at - 1))
            gender = lexicon.NAMES.get(word, gender)
    text, alignment = zip(*french, strict=True)
    return Pair(english, " ".join(text), alignment, reorderings, tuple(described))


def _agreeing(adjective: str, gender: str, vowel: bool = False) -> str:
    """The form of an adjective for a gender. vowel: whether it is followed by a vowel."""
    masculine, feminine, before_vowel, _, _ = lexicon.ADJECTIVES[adjective]
    return feminine if gender == "f" else before_vowel if vowel else masculine


def _determiner(english: str, gender: str, following: str) -> str:
    forms = lexicon.DETERMINERS["a" if english == "an" else english]
    return forms[(gender == "f") + 2 * lexicon.starts_with_vowel(following)]
