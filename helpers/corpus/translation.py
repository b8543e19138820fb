"""English sentences and their French, from a seeded grammar that knows which word every French word comes from.

    jane visits africa in september    ->    jane visite l' afrique en septembre

Articles and adjectives agree with their noun, articles lose their vowel where French does so, most adjectives move
behind the noun, and an adverb moves behind the verb. French is written in tokens, so the shortened article is a word
of its own: "l'".
"""

import random

from helpers.corpus import lexicon
from helpers.corpus.provided import Pair


class _Sentence:
    """A sentence that grows from left to right in both languages."""

    def __init__(self):
        self.english: list[str] = []
        self.french: list[str] = []
        self.alignment: list[int] = []
        self.reorderings = 0
        self.described: list[tuple[str, str]] = []

    def say(self, english: str) -> int:
        """Add an English word and return its index."""
        self.english.append(english)
        return len(self.english) - 1

    def write(self, french: str, index: int) -> None:
        """Add a French word that comes from the English word at `index`."""
        self.french.append(french)
        self.alignment.append(index)

    def both(self, english: str, french: str) -> None:
        self.write(french, self.say(english))

    def pair(self) -> Pair:
        english, french = " ".join(self.english), " ".join(self.french)
        return Pair(english, french, tuple(self.alignment), self.reorderings, tuple(self.described))


def sentence_pairs(count: int, generator: random.Random, unseen: bool = False) -> list[Pair]:
    """`count` sentence pairs drawn with `generator`.

    unseen=False: sentences to learn from; no adjective in them describes a noun that is held out for it.
    unseen=True: sentences to test with; each has at least one held-out pair, and every third has two reorderings or
    more, the others at most one.
    """
    pairs = []
    while len(pairs) < count:
        pair = _draw(generator)
        held_out = any(is_held_out(*words) for words in pair.described)
        if not unseen and not held_out:
            pairs.append(pair)
        elif unseen and held_out and (pair.reorderings >= 2) == (len(pairs) % 3 == 0):
            pairs.append(pair)
    return pairs


def is_held_out(adjective: str, noun: str) -> bool:
    """Whether sentences to learn from never say this adjective of this noun: one pair in eight, fixed for ever."""
    return (3 * _ADJECTIVE_PLACE[adjective] + 5 * _NOUN_PLACE[noun]) % 8 == 0


def translate(english: str) -> Pair:
    """The pair of an English sentence of this grammar. ValueError where the grammar does not make it.

    Used to look things up in tests and figures; the course's network never sees it.
    """
    words = english.split()
    sentence = _Sentence()
    rest = _parse(words, sentence)
    if rest or " ".join(sentence.english) != english:
        raise ValueError(f"the grammar does not make {english!r}")
    return sentence.pair()


_ADJECTIVE_PLACE = {word: i for i, word in enumerate(lexicon.ADJECTIVES)}
_NOUN_PLACE = {word: i for i, word in enumerate(lexicon.NOUNS)}


def _draw(generator: random.Random) -> Pair:
    """One sentence: a subject, what it does or is, and perhaps with what and when."""
    sentence = _Sentence()
    if generator.random() < 0.4:
        name = generator.choice(list(lexicon.NAMES))
        gender, kind = _name(sentence, name), "people"
        noun = None
    else:
        noun = generator.choice(list(lexicon.BEINGS))
        gender, kind = _noun_phrase(sentence, noun, *_described(generator, noun, 0.5)), _kind(noun)
    adverb = generator.choice(list(lexicon.ADVERBS)) if generator.random() < 0.2 else None
    action = generator.choice(("thing", "thing", "thing", "place", "move", "state"))
    if action == "thing":
        _verb(sentence, *generator.choice(list(lexicon.VERBS.items())), adverb)
        target = generator.choice(list(lexicon.THINGS if generator.random() < 0.7 else lexicon.BEINGS))
        _noun_phrase(sentence, target, *_described(generator, target, 0.6))
    elif action == "place":
        _verb(sentence, *generator.choice(list(lexicon.PLACE_VERBS.items())), adverb)
        _country(sentence, generator.choice(list(lexicon.COUNTRIES)))
    elif action == "move":
        (verb, place), french = generator.choice(list(lexicon.MOVES.items()))
        _verb(sentence, verb, french, adverb)
        _to_country(sentence, place, generator.choice(list(lexicon.COUNTRIES)))
    else:
        if noun is None and generator.random() < 0.4:
            noun = generator.choice(list(lexicon.THINGS))  # "the house is white": start again with a thing
            sentence, kind = _Sentence(), "things"
            gender = _noun_phrase(sentence, noun, generator.choice(list(lexicon.DETERMINERS)), None)
        _state(sentence, gender, noun, _adjective_for(generator, kind), adverb)
    if action != "state" and generator.random() < 0.2:
        sentence.both("with", "avec")
        target = generator.choice(list(lexicon.NOUNS))
        _noun_phrase(sentence, target, *_described(generator, target, 0.6))
    if generator.random() < 0.35:
        _month(sentence, generator.choice(list(lexicon.MONTHS)))
    return sentence.pair()


def _described(generator: random.Random, noun: str, chance: float) -> tuple[str, str | None]:
    """A determiner, and an adjective or None."""
    determiner = generator.choice(list(lexicon.DETERMINERS))
    return determiner, _adjective_for(generator, _kind(noun)) if generator.random() < chance else None


def _kind(noun: str) -> str:
    return "people" if noun in lexicon.PEOPLE else "animals" if noun in lexicon.ANIMALS else "things"


def _adjective_for(generator: random.Random, kind: str) -> str:
    return generator.choice([word for word, (*_, said_of) in lexicon.ADJECTIVES.items() if kind in said_of.split()])


def _name(sentence: _Sentence, name: str) -> str:
    sentence.both(name, name)
    return lexicon.NAMES[name]


def _noun_phrase(sentence: _Sentence, noun: str, determiner: str, adjective: str | None) -> str:
    """Say "the red apple" and write "la pomme rouge". Returns the noun's gender."""
    french, gender = lexicon.NOUNS[noun]
    following = adjective or noun
    at_determiner = sentence.say("an" if determiner == "a" and following[0] in "aeiou" else determiner)
    if adjective:
        at_adjective = sentence.say(adjective)
        sentence.described.append((adjective, noun))
    at_noun = sentence.say(noun)
    words = [(french, at_noun)]
    if adjective and lexicon.ADJECTIVES[adjective][3]:
        words.insert(0, (_agreeing(adjective, gender, before=french), at_adjective))
    elif adjective:
        words.append((_agreeing(adjective, gender), at_adjective))
        sentence.reorderings += 1
    sentence.write(_determiner(determiner, gender, words[0][0]), at_determiner)
    for word, index in words:
        sentence.write(word, index)
    return gender


def _agreeing(adjective: str, gender: str, before: str | None = None) -> str:
    """The form of an adjective for a gender, and for the word that it stands before."""
    masculine, feminine, before_vowel, _, _ = lexicon.ADJECTIVES[adjective]
    if gender == "f":
        return feminine
    return before_vowel if before is not None and lexicon.starts_with_vowel(before) else masculine


def _determiner(determiner: str, gender: str, following: str) -> str:
    masculine, feminine, masculine_vowel, feminine_vowel = lexicon.DETERMINERS[determiner]
    if lexicon.starts_with_vowel(following):
        return masculine_vowel if gender == "m" else feminine_vowel
    return masculine if gender == "m" else feminine


def _verb(sentence: _Sentence, english: str, french: str, adverb: str | None) -> None:
    """Say "often visits" and write "visite souvent"."""
    at_adverb = sentence.say(adverb) if adverb else None
    sentence.both(english, french)
    if adverb:
        sentence.write(lexicon.ADVERBS[adverb], at_adverb)
        sentence.reorderings += 1


def _country(sentence: _Sentence, country: str) -> None:
    """Say "africa" and write "l' afrique"; the article comes from the country."""
    french, gender = lexicon.COUNTRIES[country]
    index = sentence.say(country)
    sentence.write(_determiner("the", gender, french), index)
    sentence.write(french, index)


def _to_country(sentence: _Sentence, preposition: str, country: str) -> None:
    """Say "to africa" or "in kenya" and write "en afrique" or "au kenya"."""
    french, gender = lexicon.COUNTRIES[country]
    sentence.both(preposition, "en" if gender == "f" or lexicon.starts_with_vowel(french) else "au")
    sentence.both(country, french)


def _month(sentence: _Sentence, month: str) -> None:
    sentence.both("in", "en")
    sentence.both(month, lexicon.MONTHS[month])


def _state(sentence: _Sentence, gender: str, noun: str | None, adjective: str, adverb: str | None) -> None:
    """Say "is often white" and write "est souvent blanche"."""
    sentence.both("is", "est")
    if adverb:
        sentence.both(adverb, lexicon.ADVERBS[adverb])
    sentence.both(adjective, _agreeing(adjective, gender))
    if noun:
        sentence.described.append((adjective, noun))


def _parse(words: list[str], sentence: _Sentence) -> list[str]:
    """Read an English sentence into both languages; returns the words that are left over."""
    words = list(words)
    noun, gender = None, None
    if words and words[0] in lexicon.NAMES:
        gender = _name(sentence, words.pop(0))
    else:
        noun, gender, words = _parse_phrase(words, sentence)
    adverb = words.pop(0) if words and words[0] in lexicon.ADVERBS else None
    verb = words.pop(0) if words else ""
    if verb == "is" and not adverb:
        adverb = words.pop(0) if words and words[0] in lexicon.ADVERBS else None
        adjective = words.pop(0) if words else ""
        if adjective not in lexicon.ADJECTIVES:
            raise ValueError(f"the grammar says no {adjective!r} after 'is'")
        _state(sentence, gender, noun, adjective, adverb)
    elif words and (verb, words[0]) in lexicon.MOVES and len(words) > 1 and words[1] in lexicon.COUNTRIES:
        _verb(sentence, verb, lexicon.MOVES[verb, words[0]], adverb)
        _to_country(sentence, *words[:2])
        words = words[2:]
    elif verb in lexicon.PLACE_VERBS and words and words[0] in lexicon.COUNTRIES:
        _verb(sentence, verb, lexicon.PLACE_VERBS[verb], adverb)
        _country(sentence, words.pop(0))
    elif verb in lexicon.VERBS:
        _verb(sentence, verb, lexicon.VERBS[verb], adverb)
        _, _, words = _parse_phrase(words, sentence)
    else:
        raise ValueError(f"the grammar has no place for {verb!r} there")
    if words[:1] == ["with"]:
        sentence.both("with", "avec")
        _, _, words = _parse_phrase(words[1:], sentence)
    if len(words) == 2 and words[0] == "in" and words[1] in lexicon.MONTHS:
        _month(sentence, words[1])
        words = []
    return words


def _parse_phrase(words: list[str], sentence: _Sentence) -> tuple[str, str, list[str]]:
    """Read "the red apple": (noun, gender, the words after it)."""
    adjective = words[1] if len(words) > 1 and words[1] in lexicon.ADJECTIVES else None
    size = 3 if adjective else 2
    phrase = words[:size]
    determiner = "a" if phrase[:1] == ["an"] else phrase[0] if phrase else ""
    if len(phrase) < size or determiner not in lexicon.DETERMINERS or phrase[-1] not in lexicon.NOUNS:
        raise ValueError(f"the grammar has no place for {' '.join(phrase)!r} there")
    gender = _noun_phrase(sentence, phrase[-1], determiner, adjective)
    return phrase[-1], gender, words[size:]
