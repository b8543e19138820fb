"""How long a check takes, compared with importing torch in the same run: `python -m bench.check_time`.

For each exercise, the median time of a few checks of its finished block, and its ratio to the import of torch. For some
exercises also the first check in a fresh kernel, including its imports.
"""

import contextlib
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from bench.written import keep
from helpers.authoring.blocks import load_blocks
from helpers.checking.key import load_keys
from helpers.checking.messages import decide
from helpers.checking.observe import observe_all
from helpers.checking.rendering import as_html
from helpers.course import course

ROOT = Path(__file__).resolve().parents[1]
REPEATS = 15
FIRST_CHECKS = (
    ("04_scaling", "scaled_scores"),
    ("06_softmax", "softmax"),
    ("07_value_weighting", "attention"),
    ("09_encoder_block", "EncoderBlock"),
    ("12_language_model", "GPT"),
)
# The state of a learner's kernel before the first check: torch, `helpers`, the lesson's name, and the answer in a cell.
FRESH = """\
import linecache, time
import torch
from helpers import check, setup
import importlib
blocks = importlib.import_module("helpers.blocks.{lesson}")
source = open(blocks.__file__).read()
linecache.cache["<cell>"] = (len(source), None, source.splitlines(True), "<cell>")
cell = {{"__name__": "__main__"}}
exec(compile(source, "<cell>", "exec"), cell)
setup._lesson, answer = {lesson!r}, cell[{name!r}]
clock, busy = time.perf_counter(), time.process_time()
check(answer)
print(time.perf_counter() - clock, time.process_time() - busy)
"""


def import_seconds() -> float:
    """The seconds that a fresh process needs to import torch, minus those of an empty process."""

    def one(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    return statistics.median(one("import torch") - one("pass") for _ in range(3))


def first_check(lesson: str, name: str) -> tuple[float, float]:
    """Wall-clock and processor seconds of the first check in a fresh process, without importing torch."""
    program = FRESH.format(lesson=lesson, name=name)
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"COURSE_PROGRESS_FILE": f"{folder}/progress.json", "PYTHONPATH": str(ROOT)}
        run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    seconds, processor = map(float, run.stdout.split()[-2:])
    return seconds, processor


def check_seconds(key, answer) -> float:
    """The median seconds of a check: observe, decide, and write the report."""
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
                if key.kind == "exercise" and not key.metric:
                    rows.append((check_seconds(key, getattr(blocks, key.name)), lesson.name, key.name))
    for seconds, lesson, name in rows:
        print(f"{lesson:<20}{name:<26}{1000 * seconds:7.1f} ms")
    slowest, median = max(rows), statistics.median(seconds for seconds, _, _ in rows)
    first = {}
    for lesson, name in FIRST_CHECKS:
        first[name], processor = first_check(lesson, name)
        print(f"first check of {name:<14}{first[name]:6.2f} s, {processor:5.2f} s of processor time")
    says = (
        f"A check takes {1000 * median:.0f} ms (median of {len(rows)} exercises). The slowest, of `{slowest[2]}`, "
        f"takes {slowest[0]:.1f} s, and the first one in a fresh kernel, of `softmax`, {first['softmax']:.1f} s. For "
        f"comparison, importing torch takes {torch_seconds:.1f} s."
    )
    print(says)
    ratios = {name: round(seconds / torch_seconds, 4) for seconds, _, name in rows}
    firsts = {name: round(seconds / torch_seconds, 3) for name, seconds in first.items()}
    keep("check_time", says, {"seconds of import torch": torch_seconds, "over it": ratios, "first over it": firsts})


if __name__ == "__main__":
    main()
