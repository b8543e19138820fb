"""The other times that a learner waits: `python -m bench.setup_time [LESSON]`.

Measured are the set-up cell (if the course is already there), `import helpers`, the first and a later `at_work`, and
`progress()`, each in fresh processes, as after a restart. As in Colab, torch, numpy and IPython are already imported.
"""

import math
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
    """The seconds of each piece of code, executed in order in one fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"COURSE_PROGRESS_FILE": f"{folder}/progress.json", "PYTHONPATH": str(course().root)}
        command = [sys.executable, "-c", PROGRAM.format(codes=codes)]
        run = subprocess.run(command, cwd=course().root, env=environment, capture_output=True, text=True, check=True)
    return [float(number) for number in run.stdout.rpartition("seconds")[2].split()]


def main() -> None:
    lesson = course().lesson(sys.argv[1] if len(sys.argv) > 1 else "04").name
    torch_seconds = import_seconds()
    runs = []
    for _ in range(REPEATS):
        set_up = seconds(set_up_source(course(), lesson))
        work = seconds(ANSWER, AT_WORK, AT_WORK)[1:]
        runs.append(set_up + seconds("import helpers", PROGRESS) + work)
    runs = dict(zip(NAMES, zip(*runs, strict=True), strict=True))
    medians = {name: statistics.median(times) for name, times in runs.items()}
    for name, median in medians.items():
        print(f"{name:<16}{median:6.2f} s (median of {REPEATS}), {max(runs[name]):.2f} s at most")
    tenths = math.floor(10 * max(medians["set-up cell"], medians["progress()"])) + 1
    says = (
        f"The set-up cell and `progress()` take less than {tenths / 10} s each. The first `at_work` in a kernel takes "
        f"{medians['first at_work']:.1f} s, because it imports Matplotlib, and each later one "
        f"{medians['later at_work']:.1f} s. For comparison, importing torch takes {torch_seconds:.1f} s."
    )
    print(says)
    keep("setup_time", says, {f"{name} over import torch": median / torch_seconds for name, median in medians.items()})


if __name__ == "__main__":
    main()
