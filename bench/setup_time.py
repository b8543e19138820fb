"""How long a notebook's set-up cell takes where the course is there already: `python bench/setup_time.py [LESSON]`.

In a fresh process each time, as after a restart, with what Colab has done by then (numpy and IPython are imported).
"""

import statistics
import subprocess
import sys
import time

from helpers.authoring.setup_cell import set_up_source
from helpers.course import course

REPEATS = 5
PROGRAM = """
import time, numpy, IPython
start = time.perf_counter()
exec({source!r})
print("seconds", time.perf_counter() - start)
"""


def seconds(lesson: str) -> float:
    """Seconds of one run of the cell."""
    program = PROGRAM.format(source=set_up_source(course(), lesson))
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, cwd=course().root, capture_output=True, text=True, check=True)
    return float(result.stdout.split("seconds")[1])


def main() -> None:
    lesson = course().lesson(sys.argv[1] if len(sys.argv) > 1 else "04").name
    began = time.perf_counter()
    runs = [seconds(lesson) for _ in range(REPEATS)]
    print(f"{lesson}: set-up {statistics.median(runs):.2f} s (median), {max(runs):.2f} s at most, of {REPEATS} runs")
    print(f"all in all {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
