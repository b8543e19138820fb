"""Text that the course makes itself: seeded grammars, so that every learner has the same sentences and no download.

company      lesson 1: words that share company
lexicon      the words of the course's translator, English and French
translation  sentence pairs of those words, with the true alignment of every French word
provided     the same as data, in the grader's sandbox

`training_pairs()` and `unseen_pairs()` are the sentences that lesson 11 learns from and looks at: the same ones
everywhere.
"""

from __future__ import annotations

import random

from helpers.corpus.company import COMPANY, company_sentences, index_words
from helpers.corpus.provided import as_lines, from_lines, provided

try:
    from helpers.corpus.translation import Pair, english_words, french_words, sentence_pairs, translate
except ModuleNotFoundError:  # in the grader's sandbox of a lesson that learns from these sentences
    from helpers.corpus.provided import Pair, english_words, french_words, sentence_pairs, translate

TRAINING_PAIRS, UNSEEN_PAIRS = 20_000, 500


def training_pairs() -> list[Pair]:
    """The 20,000 sentence pairs to learn from; no adjective in them describes a noun that is held out for it."""
    return from_lines(training_lines())


def unseen_pairs() -> list[Pair]:
    """Sentence pairs to look at, 500 of them, each with an adjective that no training sentence puts beside its noun.

    Answers are judged by others of this kind.
    """
    return from_lines(unseen_lines())


def training_lines() -> str:
    return provided("training_lines", lambda: as_lines(sentence_pairs(TRAINING_PAIRS, random.Random(11))))


def unseen_lines() -> str:
    return provided("unseen_lines", lambda: as_lines(sentence_pairs(UNSEEN_PAIRS, random.Random(12), unseen=True)))


__all__ = [
    "COMPANY",
    "company_sentences",
    "index_words",
    "Pair",
    "english_words",
    "french_words",
    "sentence_pairs",
    "training_pairs",
    "translate",
    "unseen_pairs",
]
