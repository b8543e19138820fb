"""What learner code may import, copied for the sandbox: the learner's wing without this lesson's answers."""

import contextlib
import os
import shutil
from pathlib import Path

from helpers import corpus
from helpers.corpus.provided import lay_down
from helpers.grading import inside

HELPERS = Path(__file__).resolve().parents[1]
PROJECT = HELPERS.parent
INSIDE = Path(inside.__file__).parent
OTHER_WINGS = ("authoring", "grading", "classroom")


# What the answers of a lesson must learn and not look up. Files of the learner's wing that its sandbox lacks, and
# functions of helpers.corpus without arguments whose results lie there instead (helpers/corpus/provided.py).
WITHHELD_FILES = {
    "11": ("corpus/translation.py", "corpus/lexicon.py", "translator/weights.safetensors"),
    "12": ("corpus/source.py",),
}
WITHHELD_DATA = {
    "11": ("training_lines", "unseen_lines", "english_words", "french_words"),
    "12": ("language_text", "language_symbols", "language_unseen", "entropy_rate"),
}


def stage_wing(target: Path, lesson: str, fonts: bool = False) -> None:
    """Copy what runs in the sandbox, and what learner code may import: the learner's wing, with blocks and keys of
    earlier lessons only.

    fonts: lend matplotlib's list of this machine's fonts too, which takes it long to make.
    """
    number = lesson[:2]
    hidden = {HELPERS / file for file in (*OTHER_WINGS, *WITHHELD_FILES.get(number, ()))}

    def left_out(folder: str, names: list[str]) -> set[str]:
        place = Path(folder)
        if place.name == "__pycache__":  # what Python has compiled of a staged module spares the worker doing so
            sources = {name: name.partition(".")[0] + ".py" for name in names}
            there = {source for source in sources.values() if (place.parent / source).is_file()}
            kept = there - left_out(str(place.parent), list(there))
            return {name for name, source in sources.items() if source not in kept}
        by_lesson = place in (HELPERS / "blocks", HELPERS / "answer_keys")
        later = {name for name in names if by_lesson and name[:2].isdigit() and name[:2] >= number}
        return later | {name for name in names if place / name in hidden}

    shutil.copytree(HELPERS, target / "helpers", ignore=left_out)
    shutil.copytree(INSIDE, target / "inside", ignore=left_out)
    for name in WITHHELD_DATA.get(number, ()):
        lay_down(name, getattr(corpus, name)(), target / "helpers" / "corpus" / "provided")
    if fonts:
        lent = target / "matplotlib"
        lent.mkdir()
        for file in font_lists():
            with contextlib.suppress(OSError):
                shutil.copyfile(file, lent / file.name)
    toml = PROJECT / "course.toml"
    if toml.is_file():
        shutil.copyfile(toml, target / "course.toml")
    os.chmod(target, 0o755)
    for path in target.rglob("*"):
        os.chmod(path, 0o755 if path.is_dir() else 0o644)


def font_lists() -> list[Path]:
    """What matplotlib has written of this machine's fonts, where it keeps such (importing it to ask takes longer)."""
    home = Path(os.path.expanduser("~"))
    places = [os.environ.get("MPLCONFIGDIR"), home / ".matplotlib"]
    places.append(Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "matplotlib")
    return [file for place in places if place for file in Path(place).glob("fontlist-*.json")]
