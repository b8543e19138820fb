"""Sentences of lesson 1, in which words of the same group have the same neighbors."""

import random

# No sentence contains two words of a group; they only have their neighbors in common.
COMPANY = {
    "places": ("africa", "kenya", "peru", "norway", "japan"),
    "foods": ("apples", "bread", "soup", "dessert", "rice"),
    "animals": ("cat", "dog", "horse", "cow", "sheep"),
}
_PEOPLE = ("jane", "tom", "anna", "she", "he")
_PATTERNS = {
    "places": (("visits", "leaves", "crosses"), "{who} {verb} {noun} by {rest}", ("train", "boat", "plane")),
    "foods": (("eats", "cooks", "tastes"), "{who} {verb} {noun} for {rest}", ("lunch", "dinner", "breakfast")),
    "animals": (("feeds", "brushes", "chases"), "{who} {verb} the {noun} in the {rest}", ("barn", "garden", "field")),
}


def company_sentences(count: int, generator: random.Random) -> list[str]:
    """`count` sentences such as "jane visits africa by train", drawn with `generator`.

    Each sentence is about one group of COMPANY and contains exactly one of its words.
    """
    sentences = []
    for _ in range(count):
        group = generator.choice(list(COMPANY))
        verbs, pattern, rests = _PATTERNS[group]
        who, verb, noun, rest = map(generator.choice, (_PEOPLE, verbs, COMPANY[group], rests))
        sentences.append(pattern.format(who=who, verb=verb, noun=noun, rest=rest))
    return sentences


def index_words(sentences: list[str]) -> tuple[list[str], list[list[int]]]:
    """The sorted distinct words of lower-case sentences without punctuation, and each sentence as a list of ids."""
    words = sorted({word for sentence in sentences for word in sentence.split()})
    index = {word: i for i, word in enumerate(words)}
    return words, [[index[word] for word in sentence.split()] for sentence in sentences]
