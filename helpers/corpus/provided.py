"""Data in the place of the code that makes it.

In the grader's sandbox of a lesson whose answers learn from a corpus, the code that makes the corpus is absent (it
knows every truth), and what it gives to learn from lies here as data. Everywhere else the code makes it. A lesson takes
its data from one function, the same in both:

    def training_text():
        return provided("training_text", lambda: source.training_text())

helpers/grading/sandbox_files.py names, for each lesson, the files that are absent and the functions of helpers.corpus
whose results are laid down; these take no arguments, and their results are trees of helpers/checking/codec.py.
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

    alignment: for every French word the index of the English word that it comes from. The article of a country, which
    English does not say, comes from the country.
    reorderings: how many English words stand in another order in French.
    described: the adjective-noun pairs in it, in English.
    """

    english: str
    french: str
    alignment: tuple[int, ...]
    reorderings: int
    described: tuple[tuple[str, str], ...]


def provided(name: str, make: Callable[[], object]):
    """What lies here as data under a name, else what `make()` returns."""
    path = FOLDER / f"{name}.tree"
    if not path.is_file():
        return make()
    from helpers.checking.codec import loads

    return loads(path.read_bytes())


def lay_down(name: str, tree, folder: Path) -> None:
    """Write a tree where `provided` finds it."""
    from helpers.checking.codec import dumps

    folder.mkdir(exist_ok=True)
    (folder / f"{name}.tree").write_bytes(dumps(tree))


# What stands in for helpers/corpus/translation.py where that is absent.


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
    """`count` of the sentence pairs that are here, drawn with `generator`."""
    lines = provided("unseen_lines" if unseen else "training_lines", _absent("The grammar that makes sentences"))
    return generator.choices(from_lines(lines), k=count)


def as_lines(pairs: list[Pair]) -> str:
    """Sentence pairs as text, a line of JSON for each."""
    return "\n".join(map(json.dumps, pairs))


def from_lines(text: str) -> list[Pair]:
    """The sentence pairs that `as_lines` wrote."""
    rows = map(json.loads, text.split("\n"))
    return [Pair(*texts, tuple(places), moved, tuple(map(tuple, said))) for *texts, places, moved, said in rows]
