"""The text of a lesson, for the tests of its claims. If a sentence changes, its claim has to be measured again."""

from pathlib import Path

SOLUTIONS = Path(__file__).parents[2] / "solutions"


def text_of(lesson: str) -> str:
    """Return the text of `lesson` as one line."""
    lines = (SOLUTIONS / lesson / f"{lesson}.py").read_text(encoding="utf-8").splitlines()
    return " ".join(" ".join(line.removeprefix("#") for line in lines).split())


def says(lesson: str, *sentences: str) -> None:
    """Raise AssertionError if a sentence is missing from the text of `lesson`; line breaks do not matter."""
    text = text_of(lesson)
    for sentence in sentences:
        assert " ".join(sentence.split()) in text, f"{lesson} no longer says: {sentence}"
