"""What a lesson says, for the tests of its claims: a sentence that is changed there must be measured again."""

from pathlib import Path

SOLUTIONS = Path(__file__).parents[2] / "solutions"


def says(lesson: str, *sentences: str) -> None:
    """AssertionError for a sentence that does not stand in the text of `lesson`, line breaks aside."""
    lines = (SOLUTIONS / lesson / f"{lesson}.py").read_text(encoding="utf-8").splitlines()
    text = " ".join(" ".join(line.removeprefix("#") for line in lines).split())
    for sentence in sentences:
        assert " ".join(sentence.split()) in text, f"{lesson} no longer says: {sentence}"
