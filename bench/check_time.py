"""How long a check takes, beside importing torch in the same run: `python bench/check_time.py`.

For each exercise the median of some checks of its finished block, and the slowest as a share of torch's import.
"""

import contextlib
import io
import statistics
import subprocess
import sys
import time
from dataclasses import replace

from helpers.authoring.blocks import load_blocks
from helpers.checking.key import load_keys
from helpers.checking.observe import observe_all
from helpers.checking.report import as_html
from helpers.checking.verdict import decide
from helpers.course import course

REPEATS = 15


def import_seconds() -> float:
    """Seconds that a fresh process needs to import torch, less those of an empty one."""

    def one(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    return statistics.median(one("import torch") - one("pass") for _ in range(3))


def check_seconds(key, answer) -> float:
    """Median seconds of one check: observe, decide, and write the report."""
    key.facts = replace(key.facts, lesson="99_bench")
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            as_html(decide(key, observe_all(answer, key.cases, key.facts)))
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    torch_seconds = import_seconds()
    rows = []
    for lesson in course().lessons:
        with contextlib.suppress(FileNotFoundError):
            blocks = load_blocks(course(), lesson)
            for key in load_keys(lesson.name).values():
                if key.kind == "exercise":
                    rows.append((check_seconds(key, getattr(blocks, key.name)), lesson.name, key.name))
    for seconds, lesson, name in rows:
        print(f"{lesson:<20}{name:<26}{1000 * seconds:7.1f} ms")
    slowest, median = max(rows), statistics.median(seconds for seconds, _, _ in rows)
    shares = f"{median / torch_seconds:.3f} of that (median), {slowest[0] / torch_seconds:.3f} at most ({slowest[2]})"
    print(f"importing torch {torch_seconds:.2f} s; a check takes {shares}")


if __name__ == "__main__":
    main()
