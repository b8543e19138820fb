"""BERT's (uncased) tokenizer: from a sentence to words, WordPiece tokens, ids, and batches with padding."""

import re
import unicodedata

from helpers.pretrained.weights import vocab

LONGEST_WORD = 100  # letters; for BERT any longer word is [UNK]
CHINESE = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f]"
)


def words(sentence: str) -> list[str]:
    """BERT's (uncased) split before WordPiece: lower case, without accents, each punctuation mark by itself."""
    spaced = "".join(" " if x in "\t\n\r" or unicodedata.category(x) == "Zs" else x for x in sentence)
    cleaned = "".join(x for x in spaced if x != "\ufffd" and not unicodedata.category(x).startswith("C"))
    letters = unicodedata.normalize("NFD", CHINESE.sub(r" \g<0> ", cleaned))
    plain = "".join(x for x in letters if unicodedata.category(x) != "Mn")
    return "".join(f" {x} " if _is_mark(x) else x for x in plain.lower()).split()


def _is_mark(letter: str) -> bool:
    """Whether BERT treats a character as punctuation, which includes ASCII symbols such as $ and +."""
    ascii_sign = letter.isascii() and letter.isprintable() and not letter.isalnum() and letter != " "
    return ascii_sign or unicodedata.category(letter).startswith("P")


def pieces(sentence: str, wordpiece) -> list[str]:
    """[CLS], the sentence's tokens, [SEP]. wordpiece: the function of lesson 1, (word, vocab) -> list of tokens."""
    vocabulary = vocab()
    split = (wordpiece(word, vocabulary) if len(word) <= LONGEST_WORD else ["[UNK]"] for word in words(sentence))
    return ["[CLS]", *(piece for word in split for piece in word), "[SEP]"]


def batch(sentences: list[str], wordpiece):
    """(ids (B, T), mask (B, T)): a LongTensor padded with 0 on the right, and True wherever there is a token."""
    import torch

    rows = [[vocab()[piece] for piece in pieces(sentence, wordpiece)] for sentence in sentences]
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    return ids, torch.arange(longest) < torch.tensor([len(row) for row in rows])[:, None]
