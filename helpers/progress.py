"""The learner's progress: the answers that passed in this kernel, and the best result of every exercise, in a file."""

import contextlib
import json
import os
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / ".progress.json"
SOLUTIONS = FILE.with_name("solutions")
KEYS = Path(__file__).with_name("answer_keys")
PASSED: set[str] = set()  # exercises that passed in this kernel without a finished block in place of earlier answers


def _file() -> Path:
    """The progress file, which the environment variable COURSE_PROGRESS_FILE can change."""
    return Path(os.environ.get("COURSE_PROGRESS_FILE") or FILE)


def _read() -> dict:
    try:
        stored = json.loads(_file().read_text("utf-8"))
        if all(_is_result(entry) for entries in stored.values() for entry in entries.values()):
            return stored
    except OSError:
        return {}
    except (ValueError, AttributeError):
        pass
    _set_aside()
    return {}


def _is_result(entry) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("points", 0), (int, float))


def _set_aside() -> None:
    """Report that the file is damaged, and rename it, so that the next verdict does not overwrite it."""
    path = _file()
    damaged = path.with_name(f"{path.name}.damaged")
    try:
        path.replace(damaged)
    except OSError:
        damaged = path
    print(f"Your progress so far cannot be read, because {damaged} is damaged. New checks are recorded in a new file.")


def remember(lesson: str, exercise: str, points: float, max_points: float, passed: bool) -> float:
    """Record the result of a check, unless an earlier one was better. Returns the points of the best one so far.

    Nothing is recorded in solutions/, because those answers are not a learner's, or if the file cannot be written.
    """
    with contextlib.suppress(OSError):  # the kernel's working directory may have been deleted
        if SOLUTIONS in (Path.cwd(), *Path.cwd().parents):
            return points
    done = _read()
    best = done.get(lesson, {}).get(exercise, {})
    earlier = (bool(best.get("passed")), min(best.get("points", 0), max_points))
    if earlier > (passed, points):
        return earlier[1]
    done.setdefault(lesson, {})[exercise] = {"points": points, "of": max_points, "passed": passed}
    path = _file()
    try:
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_text(json.dumps(done, indent=1, sort_keys=True), "utf-8")
        fresh.replace(path)
    except FileNotFoundError:
        print("This check could not be noted for progress(): the course's folder is gone. Restart the kernel.")
    except OSError:
        pass
    return points


def remember_passed(name: str, passed: bool) -> None:
    """Record for this kernel whether an answer passed without a finished block in place of earlier answers."""
    (PASSED.add if passed else PASSED.discard)(name)


def progress() -> None:
    """Print one line per lesson, with its points and the exercises that are still open.

    For each exercise, the best check counts.
    """
    from helpers.answer_keys import contents

    done = _read()
    lines = []
    for lesson, rows in contents(KEYS).items():
        results = done.get(lesson, {})
        solved = [row.name for row in rows if results.get(row.name, {}).get("passed")]
        still = [row.name for row in rows if row.name not in solved]
        total = sum(row.points for row in rows if not row.bonus)
        points = _points(rows, results) if total else f"{len(solved)} of {len(rows)} done"
        fraction = _earned(rows, results, bonus=False) / total if total else len(solved) / max(len(rows), 1)
        bar = "█" * max(round(12 * fraction), fraction > 0)
        more = f" and {len(still) - 1} more" if len(still) > 1 else ""
        rest = f"open: {still[0]}{more}" if still else "all done"
        lines.append(f"{lesson:<22}{bar:·<12}  {points:<20}{rest}")
    notes = ["The best of your checks counts here; what you hand in is graded as it stands then."] if done else []
    notes += ["A person reads your written answer: another 15 points in each lesson from 1 on."] if done else []
    print("\n".join(lines + notes) if lines else "No lesson is built yet: run course build.")


def _points(rows, results: dict) -> str:
    """ "85 of 85 + 28 bonus"."""
    total, bonus = sum(row.points for row in rows if not row.bonus), _earned(rows, results, bonus=True)
    return f"{_earned(rows, results, bonus=False):g} of {total:g}{f' + {bonus:g} bonus' if bonus else ''}"


def _earned(rows, results: dict, bonus: bool) -> float:
    """The points earned in a lesson, at most the points that each exercise has now."""
    return sum(min(results.get(row.name, {}).get("points", 0), row.points) for row in rows if row.bonus is bonus)
