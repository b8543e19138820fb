"""Where bench programs put what they measured: JSON for lessons' figures, and a file for each in bench/results."""

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
    """Keep a measurement for a lesson's figures: a row of numbers stands in one line. Keys become strings."""
    return _store(folder / topic / f"{name}.json", value)


def keep(name: str, says: str, figures: dict, folder: Path = RESULTS) -> Path:
    """Keep what a program of bench/ measured, with the machine, the versions and the commit.

    says: a sentence or two with the figures that matter, in Markdown; README shows it (`course build`). figures: ratios
    of what was measured side by side in this run, and whatever else belongs to them.
    """
    told = {"says": says, "figures": figures, "machine": machine(), "commit": commit()}
    return _store(folder / f"{name}.json", told | {"versions": {item: version(item) for item in VERSIONS}})


def machine() -> str:
    """The processor and the number of its cores, and the version of Python."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}"


def commit() -> str:
    """The commit that was measured; "+" behind it says that files were changed since."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def _store(path: Path, value: dict) -> Path:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    text = re.sub(r"\[[^][{}]*\]", lambda row: re.sub(r"\s+", " ", row[0]).replace("[ ", "[").replace(" ]", "]"), text)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
    print(f"written to {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")
    return path
