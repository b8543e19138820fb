"""Store measurements as JSON: data for the lessons' figures, and one file per program in bench/results."""

import json
import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
LESSONS = ROOT / "helpers" / "lessons"
RESULTS = ROOT / "bench" / "results"
VERSIONS = ("torch", "numpy", "matplotlib", "ipywidgets", "nbgrader")


def write(topic: str, name: str, value: dict, folder: Path = LESSONS) -> Path:
    """Store a measurement for a lesson's figures, with each list of numbers on one line. Keys become strings."""
    return _store(folder / topic / f"{name}.json", value)


def keep(name: str, says: str, figures: dict, folder: Path = RESULTS) -> Path:
    """Store the results of a program of bench/, with the computer, the versions of packages, and the commit.

    says: a sentence or two with the most important figures, in Markdown, which `course build` puts into
    docs/measurements.md. figures: ratios of measurements in this run, and other data.
    """
    result = {"says": says, "figures": figures, "machine": machine(), "commit": commit()}
    return _store(folder / f"{name}.json", result | {"versions": {item: version(item) for item in VERSIONS}})


def machine() -> str:
    """The processor, the number of its cores, and Python's version."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}"


def commit() -> str:
    """The commit that was measured; a "+" at its end means that files had been changed."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def _store(path: Path, value: dict) -> Path:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    text = re.sub(r"\[[^][{}]*\]", lambda row: re.sub(r"\s+", " ", row[0]).replace("[ ", "[").replace(" ]", "]"), text)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
    print(f"written to {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")
    return path
