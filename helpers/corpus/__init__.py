"""The course's texts. Most come from seeded grammars, so every learner has the same sentences without a download.

company      lesson 1: sentences in which similar words have the same neighbors
lexicon      the words of the course's translator, English and French
translation  sentence pairs of those words, with the true alignment of every French word
provided     the same as stored data, in the grader's sandbox
source       lesson 12: a language whose entropy rate is known exactly
real_text    the standard library's sources, tiny Shakespeare, or any file, as characters

`training_pairs()` and `unseen_pairs()` are the data of lesson 11, `language_text()` and the functions after it those of
lesson 12. They are the same everywhere.
"""

import functools
import random

from helpers.corpus.company import COMPANY, company_sentences, index_words
from helpers.corpus.provided import Pair, as_lines, from_lines, provided
from helpers.corpus.real_text import library_text, real_text, shakespeare

try:
    from helpers.corpus.lexicon import english_words, french_words
    from helpers.corpus.translation import sentence_pairs, translate
except ModuleNotFoundError:  # in the grader's sandbox of a lesson that learns from these sentences
    from helpers.corpus.provided import english_words, french_words, sentence_pairs, translate

TRAINING_PAIRS, UNSEEN_PAIRS = 20_000, 500
LANGUAGE_TEXT, LANGUAGE_PASSAGES, PASSAGE = 300_000, 200, 64


def training_pairs() -> list[Pair]:
    """The 20,000 sentence pairs for training, without any of the held-out adjective-noun pairs."""
    return from_lines(training_lines())


def unseen_pairs() -> list[Pair]:
    """500 sentence pairs, each with an adjective-noun pair that no training sentence has.

    Answers are judged by other pairs of this kind.
    """
    return from_lines(unseen_lines())


def training_lines() -> str:
    return provided("training_lines", lambda: as_lines(sentence_pairs(TRAINING_PAIRS, random.Random(11))))


def unseen_lines() -> str:
    return provided("unseen_lines", lambda: as_lines(sentence_pairs(UNSEEN_PAIRS, random.Random(12), unseen=True)))


def language_text():
    """The training text of lesson 12's language, LongTensor (300000,), the same everywhere."""
    return provided("language_text", lambda: _source().text(LANGUAGE_TEXT, seed=12))


def language_symbols() -> str:
    """The tokens of lesson 12's language in the order of their ids, one character each."""
    return provided("language_symbols", lambda: _source().symbols)


def language_unseen() -> dict:
    """Test passages: "ids" (200, 64), each beginning with a full stop, and "nats" (200, 64).

    "nats" has -log p of each token under the source itself, and 0 for the first full stop. Answers are judged by other
    passages of this kind.
    """

    def make():
        ids = _source().passages(LANGUAGE_PASSAGES, PASSAGE, seed=13)
        return {"ids": ids, "nats": _source().nats(ids)}

    return provided("language_unseen", make)


def entropy_rate() -> float:
    """The exact entropy rate of lesson 12's language, in nats per token."""
    return provided("entropy_rate", lambda: _source().entropy_rate())


@functools.lru_cache(maxsize=1)
def _source():
    from helpers.corpus.source import Source

    return Source()
