"""Where bench programs put what they measured: JSON that helpers/drawing/measured.py reads."""

from __future__ import annotations

import json
import re
from pathlib import Path

LESSONS = Path(__file__).parents[1] / "helpers" / "lessons"


def write(topic: str, name: str, value: dict, folder: Path = LESSONS) -> Path:
    """Keep a measurement for a lesson's figures: a row of numbers stands in one line. Keys become strings."""
    path = folder / topic / f"{name}.json"
    text = json.dumps(value, indent=1, ensure_ascii=False)
    text = re.sub(r"\[[^][{}]*\]", lambda row: re.sub(r"\s+", " ", row[0]).replace("[ ", "[").replace(" ]", "]"), text)
    path.write_text(text + "\n", encoding="utf-8")
    print(f"written to {path}")
    return path
