"""Text that the course makes itself: seeded grammars, so that every learner has the same sentences and no download.

company      lesson 1: words that share company
lexicon      the words of the course's translator, English and French
translation  sentence pairs of those words, with the true alignment of every French word
"""

from helpers.corpus.company import COMPANY, company_sentences, index_words
from helpers.corpus.translation import Pair, english_words, french_words, sentence_pairs, translate

__all__ = [
    "COMPANY",
    "company_sentences",
    "index_words",
    "Pair",
    "english_words",
    "french_words",
    "sentence_pairs",
    "translate",
]
