"""The translator's vocabularies: word -> id; special tokens come first, then the words in code-point order."""

import itertools

from helpers.corpus import english_words, french_words

PAD, BOS, EOS = 0, 1, 2
english: dict[str, int] = {word: i for i, word in enumerate(["<pad>", *english_words()])}
french: dict[str, int] = {word: i for i, word in enumerate(["<pad>", "<bos>", "<eos>", *french_words()])}
english_list, french_list = list(english), list(french)


def english_ids(sentence: str) -> list[int]:
    """The ids of an English sentence. Raises KeyError with the first word that is not in the vocabulary."""
    return [english[word] for word in sentence.split()]


def french_ids(sentence: str) -> list[int]:
    """The ids of a French sentence, without special tokens."""
    return [french[word] for word in sentence.split()]


def french_sentence(ids: list[int]) -> str:
    """The words of the ids up to the first <eos>, without <bos> and <pad>."""
    written = itertools.takewhile(lambda i: i != EOS, ids)
    return " ".join(french_list[i] for i in written if i not in (PAD, BOS))
