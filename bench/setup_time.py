"""What else a learner waits for: `python -m bench.setup_time [LESSON]`.

The set-up cell where the course is there already, `import helpers`, the first and a later `at_work`, and `progress()`:
each in fresh processes, as after a restart, with what Colab has done by then (torch, numpy and IPython are imported).
"""

import os
import statistics
import subprocess
import sys
import tempfile

from bench.check_time import import_seconds
from bench.written import keep
from helpers.authoring.setup_cell import set_up_source
from helpers.course import course

REPEATS = 5
NAMES = ("set-up cell", "import helpers", "progress()", "first at_work", "later at_work")
PROGRAM = """
import contextlib, io, time, numpy, IPython, torch
names = {{}}
def timed(code):
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, names)
    return time.perf_counter() - start
print("seconds", *[timed(code) for code in {codes!r}])
"""
ANSWER = "from helpers.blocks import softmax"
AT_WORK = "from helpers import at_work; at_work(softmax=softmax)"
PROGRESS = "from helpers import progress; progress()"


def seconds(*codes: str) -> list[float]:
    """Seconds of each piece of code, one after the other in one fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"COURSE_PROGRESS_FILE": f"{folder}/progress.json", "PYTHONPATH": str(course().root)}
        command = [sys.executable, "-c", PROGRAM.format(codes=codes)]
        said = subprocess.run(command, cwd=course().root, env=environment, capture_output=True, text=True, check=True)
    return [float(number) for number in said.stdout.rpartition("seconds")[2].split()]


def main() -> None:
    lesson = course().lesson(sys.argv[1] if len(sys.argv) > 1 else "04").name
    torch_seconds = import_seconds()
    runs = []
    for _ in range(REPEATS):
        set_up = seconds(set_up_source(course(), lesson))
        work = seconds(ANSWER, AT_WORK, AT_WORK)[1:]
        runs.append(set_up + seconds("import helpers", PROGRESS) + work)
    runs = dict(zip(NAMES, zip(*runs, strict=True), strict=True))
    middle = {name: statistics.median(times) for name, times in runs.items()}
    for name, one in middle.items():
        print(f"{name:<16}{one:6.2f} s (median of {REPEATS}), {max(runs[name]):.2f} s at most")
    says = (
        f"The set-up cell takes {middle['set-up cell']:.1f} s. The first `at_work` in a kernel takes "
        f"{middle['first at_work']:.1f} s, because it imports Matplotlib, and each later one "
        f"{middle['later at_work']:.1f} s. `progress()` takes {middle['progress()']:.1f} s. For comparison, importing "
        f"torch takes {torch_seconds:.1f} s."
    )
    print(says)
    keep("setup_time", says, {f"{name} over import torch": one / torch_seconds for name, one in middle.items()})


if __name__ == "__main__":
    main()
