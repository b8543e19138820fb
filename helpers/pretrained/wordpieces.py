"""From a sentence to ids, as BERT (uncased) does it: its words, their pieces, and batches with padding."""

import re
import unicodedata

from helpers.pretrained.weights import vocab

LONGEST_WORD = 100  # letters; BERT takes a longer word as unknown without trying to cut it
CHINESE = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f]"
)


def words(sentence: str) -> list[str]:
    """What BERT (uncased) makes of a sentence before it cuts words: small letters, accents off, marks apart."""
    spaced = "".join(" " if x in "\t\n\r" or unicodedata.category(x) == "Zs" else x for x in sentence)
    cleaned = "".join(x for x in spaced if x != "\ufffd" and not unicodedata.category(x).startswith("C"))
    letters = unicodedata.normalize("NFD", CHINESE.sub(r" \g<0> ", cleaned))
    plain = "".join(x for x in letters if unicodedata.category(x) != "Mn")
    return "".join(f" {x} " if _is_mark(x) else x for x in plain.lower()).split()


def _is_mark(letter: str) -> bool:
    """Punctuation in BERT's sense: also ASCII's signs, such as $ and +."""
    ascii_sign = letter.isascii() and letter.isprintable() and not letter.isalnum() and letter != " "
    return ascii_sign or unicodedata.category(letter).startswith("P")


def pieces(sentence: str, wordpiece) -> list[str]:
    """[CLS], the sentence's pieces, [SEP]. wordpiece(word, vocab) -> list of pieces, as lesson 1 wrote it."""
    known = vocab()
    cut = (wordpiece(word, known) if len(word) <= LONGEST_WORD else ["[UNK]"] for word in words(sentence))
    return ["[CLS]", *(piece for word in cut for piece in word), "[SEP]"]


def batch(sentences: list[str], wordpiece):
    """(ids (B, T), mask (B, T)): LongTensor padded with 0 on the right, and True where there is a token."""
    import torch

    rows = [[vocab()[piece] for piece in pieces(sentence, wordpiece)] for sentence in sentences]
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    return ids, torch.arange(longest) < torch.tensor([len(row) for row in rows])[:, None]
