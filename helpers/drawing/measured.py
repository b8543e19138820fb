"""Measured numbers of the lessons: JSON beside the figures that show them, written by the programs in bench/."""

import json
from pathlib import Path


def measured(topic: str, name: str) -> dict:
    """What helpers/lessons/TOPIC/NAME.json holds. Its keys are strings, whatever they were when they were measured."""
    return json.loads((Path(__file__).parents[1] / "lessons" / topic / f"{name}.json").read_text(encoding="utf-8"))
