"""Measurements that the lessons show: JSON files in the folders of their figures, written by the programs in bench/."""

import json
from pathlib import Path


def measured(topic: str, name: str) -> dict:
    """The content of helpers/lessons/TOPIC/NAME.json. Its keys are strings, even those that were numbers."""
    return json.loads((Path(__file__).parents[1] / "lessons" / topic / f"{name}.json").read_text(encoding="utf-8"))
