"""What is done over all lessons, kept in one small local file."""

from __future__ import annotations

import json
import os
from pathlib import Path

FILE = Path(__file__).parents[1] / ".progress.json"


def _file() -> Path:
    """The file, or another one that COURSE_PROGRESS_FILE names."""
    return Path(os.environ.get("COURSE_PROGRESS_FILE") or FILE)


def _read() -> dict:
    try:
        stored = json.loads(_file().read_text("utf-8"))
        if all(isinstance(entry, dict) for own in stored.values() for entry in own.values()):
            return stored
    except OSError:
        return {}
    except (ValueError, AttributeError):
        pass
    _set_aside()
    return {}


def _set_aside() -> None:
    """Say that the file is damaged, and keep it under another name, so that the next verdict does not overwrite it."""
    path = _file()
    damaged = path.with_name(f"{path.name}.damaged")
    try:
        path.replace(damaged)
    except OSError:
        damaged = path
    print(
        f"What was done so far cannot be read: {damaged} is damaged. The list starts anew; what you check counts again."
    )


def remember(lesson: str, exercise: str, points: float, max_points: float, passed: bool) -> None:
    """Note the latest verdict on an exercise. Where the file cannot be written, nothing is kept and nothing breaks."""
    done = _read()
    done.setdefault(lesson, {})[exercise] = {"points": points, "of": max_points, "passed": passed}
    path = _file()
    try:
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_text(json.dumps(done, indent=1, sort_keys=True), "utf-8")
        fresh.replace(path)
    except OSError:
        return


def progress() -> None:
    """Show what is done: a line for each lesson, with its points and the exercises that are still open."""
    from helpers.checking.key import FOLDER, load_keys

    done = _read()
    lines = []
    for path in sorted(FOLDER.glob("*.npz")):
        keys = load_keys(path.stem, path).values()
        own = done.get(path.stem, {})
        solved = [key.name for key in keys if own.get(key.name, {}).get("passed")]
        still = [key.name for key in keys if key.name not in solved]
        points = _points(keys, own) if any(key.points for key in keys) else f"{len(solved)} of {len(keys)} done"
        bar = "█" * round(12 * len(solved) / max(len(keys), 1))
        more = f" and {len(still) - 2} more" if len(still) > 2 else ""
        rest = f"open: {', '.join(still[:2])}{more}" if still else "all done"
        lines.append(f"{path.stem:<22}{bar:·<12}  {points:<24}{rest}")
    print("\n".join(lines) or "No lesson is built yet: run course build.")


def _points(keys, own: dict) -> str:
    """ "85 of 85 + 28 bonus": never more than there is."""

    def earned(bonus: bool) -> float:
        return sum(min(own.get(k.name, {}).get("points", 0), k.points) for k in keys if bool(k.bonus) is bonus)

    total = sum(key.points for key in keys if not key.bonus)
    extra = f" + {earned(True):g} bonus" if earned(True) else ""
    return f"{earned(False):g} of {total:g}{extra}"
