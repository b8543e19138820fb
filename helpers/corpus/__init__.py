"""Text that the course makes itself: seeded grammars, so that every learner has the same sentences and no download.

company      lesson 1: words that share company
lexicon      the words of the course's translator, English and French
translation  sentence pairs of those words, with the true alignment of every French word
provided     the same as data, in the grader's sandbox
source       lesson 12: a language whose entropy rate is known exactly
real_text    the standard library's sources, tiny Shakespeare, or any file, as characters

`training_pairs()` and `unseen_pairs()` are the sentences that lesson 11 learns from and looks at: the same ones
everywhere. `language_text()` and its kin are what lesson 12 learns from and is shown.
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


def language_text():
    """300,000 tokens of lesson 12's language to learn from, LongTensor (300000,): the same everywhere."""
    return provided("language_text", lambda: _source().text(LANGUAGE_TEXT, seed=12))


def language_symbols() -> str:
    """The tokens of lesson 12's language, in the order of their ids: one character each."""
    return provided("language_symbols", lambda: _source().symbols)


def language_unseen() -> dict:
    """200 passages of 64 tokens that are not in the text to learn from, "ids" (200, 64); each begins with a full stop.

    "nats": -log of the source's own probability of each of these tokens, (200, 64), 0 for the full stop in front.
    Answers are judged by others of this kind.
    """

    def make():
        ids = _source().passages(LANGUAGE_PASSAGES, PASSAGE, seed=13)
        return {"ids": ids, "nats": _source().nats(ids)}

    return provided("language_unseen", make)


def entropy_rate() -> float:
    """Nats a token that nobody can beat in the long run, exactly."""
    return provided("entropy_rate", lambda: _source().entropy_rate())


@functools.lru_cache(maxsize=1)
def _source():
    from helpers.corpus.source import Source

    return Source()
