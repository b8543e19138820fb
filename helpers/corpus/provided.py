"""Stored data instead of the code that generates it.

If the answers of a lesson learn from a corpus, the grader's sandbox does not contain the code that generates it,
because that code knows every correct answer. Instead, its training data is stored in this package. A lesson gets its
data from one function of helpers.corpus, which works in both cases, because it calls `provided`.

helpers/grading/sandbox_files.py lists, for each lesson, the files that are absent and the functions of helpers.corpus
whose results are stored. These functions take no arguments, and their results are trees of helpers/checking/codec.py.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from helpers.errors import CourseError

FOLDER = Path(__file__).parent / "provided"


class Pair(NamedTuple):
    """One sentence in both languages.

    alignment: for every French word, the index of the English word that it comes from. The article of a country, which
    English doesn't have, comes from the country.
    reorderings: how many English words change their order in French.
    described: the adjective-noun pairs of the sentence, in English.
    """

    english: str
    french: str
    alignment: tuple[int, ...]
    reorderings: int
    described: tuple[tuple[str, str], ...]


def provided(name: str, make: Callable[[], object]):
    """The data stored under a name, or else the result of `make()`."""
    path = FOLDER / f"{name}.tree"
    if not path.is_file():
        return make()
    from helpers.checking.codec import loads

    return loads(path.read_bytes())


def lay_down(name: str, tree, folder: Path) -> None:
    """Store a tree where `provided` finds it. folder: FOLDER in the sandbox's copy of the course."""
    from helpers.checking.codec import dumps

    folder.mkdir(exist_ok=True)
    (folder / f"{name}.tree").write_bytes(dumps(tree))


# Replacements of the functions of helpers/corpus/translation.py and lexicon.py where those are absent.


def _absent(what: str):
    def absent(*_args, **_kwargs):
        raise CourseError(f"{what} is not here while a notebook is graded: learn from helpers.corpus.training_pairs().")

    return absent


def english_words() -> list[str]:
    return provided("english_words", _absent("The English vocabulary"))


def french_words() -> list[str]:
    return provided("french_words", _absent("The French vocabulary"))


translate = _absent("The grammar that translates")


def sentence_pairs(count: int, generator: random.Random, unseen: bool = False) -> list[Pair]:
    """`count` of the stored sentence pairs, drawn with `generator`."""
    lines = provided("unseen_lines" if unseen else "training_lines", _absent("The grammar that makes sentences"))
    return generator.choices(from_lines(lines), k=count)


def as_lines(pairs: list[Pair]) -> str:
    """Sentence pairs as text, one line of JSON per pair."""
    return "\n".join(map(json.dumps, pairs))


def from_lines(text: str) -> list[Pair]:
    """The sentence pairs that `as_lines` wrote."""
    rows = map(json.loads, text.split("\n"))
    return [Pair(*texts, tuple(alignment), moved, tuple(map(tuple, pairs))) for *texts, alignment, moved, pairs in rows]
