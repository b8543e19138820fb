"""What a lesson says, for the tests of its claims: a sentence that is changed there must be measured again."""

from pathlib import Path

SOLUTIONS = Path(__file__).parents[2] / "solutions"


def text_of(lesson: str) -> str:
    """The text of `lesson` in one line."""
    lines = (SOLUTIONS / lesson / f"{lesson}.py").read_text(encoding="utf-8").splitlines()
    return " ".join(" ".join(line.removeprefix("#") for line in lines).split())


def says(lesson: str, *sentences: str) -> None:
    """AssertionError for a sentence that does not stand in the text of `lesson`, line breaks aside."""
    text = text_of(lesson)
    for sentence in sentences:
        assert " ".join(sentence.split()) in text, f"{lesson} no longer says: {sentence}"
