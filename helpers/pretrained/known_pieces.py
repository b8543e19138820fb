"""The pieces that all-MiniLM-L6-v2 knows, and a subset of them for where its files are not at hand."""

import string

from helpers.pretrained import model_files

# A subset of the model's own pieces, chosen so that the lesson's words are cut as the full vocabulary cuts them.
_SPECIAL = "[PAD] [UNK] [CLS] [SEP] [MASK]"
_WORDS = """life is short eat dessert first jane visits africa i like to apples un token em transform transformers
    visiting revisited une soft pine playing word skip co attention snow apple visit visited happy happiness table
    forget re the a and of in on for by cat dog horse bank river money shortest shorter early later play played player
    lifeless lifetime translators"""
_ENDINGS = """##ha ##pp ##iness ##ization ##izer ##bed ##ding ##s ##er ##atable ##vis ##ited ##able ##max ##apple ##for
    ##get ##table ##ness ##piece ##gram ##sin ##sp ##oon ##boarding ##ve ##ed ##ing ##est ##ly"""


def wordpiece_vocab() -> dict[str, int]:
    """The pieces that the model knows, each with its id: 30,522 of them, or about 160 where the model is not at hand.

    Nothing is downloaded for it. The small vocabulary has ids of its own; it holds all letters and digits, so that
    every lower-case English word can be cut.
    """
    for folder in model_files.model_folders():
        file = folder / model_files.PIECES
        if file.is_file():
            return numbered(file.read_text(encoding="utf-8").split("\n"))
    letters = [*string.ascii_lowercase, *string.digits]
    pieces = [*_SPECIAL.split(), *letters, *("##" + x for x in letters), *_WORDS.split(), *_ENDINGS.split()]
    return numbered(list(dict.fromkeys(pieces)))


def numbered(pieces: list[str]) -> dict[str, int]:
    """Each piece's place in the list, its first one where it stands twice."""
    found: dict[str, int] = {}
    for index, piece in enumerate(pieces):
        if piece:
            found.setdefault(piece, index)
    return found
