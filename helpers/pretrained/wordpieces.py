"""From a sentence to ids, as BERT (uncased) does it: its words, their pieces, and batches with padding."""

import unicodedata

from helpers.pretrained.weights import vocab

LONGEST_WORD = 100  # letters; BERT takes a longer word as unknown without trying to cut it


def words(sentence: str) -> list[str]:
    """What BERT (uncased) makes of a sentence before it cuts words: small letters, accents off, marks apart."""
    cleaned = []
    for letter in sentence:
        kind = unicodedata.category(letter)
        if letter in "\t\n\r" or kind == "Zs":
            cleaned.append(" ")
        elif letter in "\x00\ufffd" or kind.startswith("C"):
            continue
        elif _is_chinese(letter):
            cleaned += [" ", letter, " "]
        else:
            cleaned.append(letter)
    plain = "".join(x for x in unicodedata.normalize("NFD", "".join(cleaned)) if unicodedata.category(x) != "Mn")
    return "".join(f" {x} " if _is_mark(x) else x for x in plain.lower()).split()


def _is_mark(letter: str) -> bool:
    """Punctuation in BERT's sense: also ASCII's signs, such as $ and +."""
    ascii_sign = letter.isascii() and letter.isprintable() and not letter.isalnum() and letter != " "
    return ascii_sign or unicodedata.category(letter).startswith("P")


def _is_chinese(letter: str) -> bool:
    ranges = (
        (0x4E00, 0x9FFF),
        (0x3400, 0x4DBF),
        (0x20000, 0x2A6DF),
        (0x2A700, 0x2B73F),
        (0x2B740, 0x2B81F),
        (0x2B820, 0x2CEAF),
        (0xF900, 0xFAFF),
        (0x2F800, 0x2FA1F),
    )
    return any(low <= ord(letter) <= high for low, high in ranges)


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
