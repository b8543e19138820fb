"""The times to grade 1, 24 and 120 submissions, compared with stock nbgrader: `python -m bench.grading_time`.

    --lesson 04_scaling      another lesson
    --sizes 1 24 120         other sizes; `--sizes 1000 --no-stock --memory` shows that memory does not grow
    --stock 3                the number of submissions for stock nbgrader; larger classes are extrapolated

The times of a first check, and of Formgrader's button, are measured in the same run. Times are wall-clock seconds, and
processor seconds of all processes together, including start-up and self tests. Submissions are those of the sample
class (correct, mistaken and odd ones) without its endless loop; stock nbgrader gets correct ones. The button is pressed
in a server that has loaded nbgrader, as Jupyter has: for the first submission of a class (when the inputs are drawn),
for the first one after the server's start, and for the next one.
"""

import argparse
import contextlib
import ctypes
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

from bench.check_time import FIRST_CHECKS, first_check
from bench.written import keep
from helpers.grading.folders import ROOT, load
from tests.sample_class import Lesson, hand_in, make_class

STOCK = """\
import os
c = get_config()
exec(open({config!r}).read().split("# Grading:")[0], dict(get_config=lambda: c, __file__={config!r}))
c.CourseDirectory.root = {root!r}  # nbgrader looks for a configuration here too
c.CourseDirectory.source_directory = {source!r}
c.CourseDirectory.release_directory = {release!r}
"""


BUTTON = """\
import os, time
import nbgrader.server_extensions.formgrader.apihandlers
from nbgrader.apps.api import NbGraderAPI
from helpers.grading.folders import load
folders, config = load({gradebook!r})
api = NbGraderAPI(config=config)
loading, began = sum(os.times()[:2]), time.monotonic()
for student in {students!r}:
    answer = api.autograde({lesson!r}, student)
    assert answer["success"], answer
print(time.monotonic() - began, loading)
"""
PR_SET_CHILD_SUBREAPER = 36


class Meter(threading.Thread):
    """The processor seconds of all processes that this one starts, and the memory of the first one over time.

    Orphans, such as the processes in the sandbox, become children of this process, so that none is missed.
    """

    def __init__(self, pid: int, before: float):
        super().__init__(daemon=True)
        self.process, self.before, self.memory = psutil.Process(pid), before, []
        self.start()

    def run(self):
        with contextlib.suppress(psutil.Error):
            while self.process.is_running():
                self.memory.append(self.process.memory_info().rss)
                time.sleep(0.05)

    def processor(self) -> float:
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()
        return children_seconds() - self.before


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(command: list[str], folder: Path, gradebook: Path) -> tuple[float, float, Meter]:
    """Run a command. Returns wall-clock and processor seconds, and the meter that watched it."""
    began, before = time.monotonic(), children_seconds()
    environment = os.environ | {"COURSE_GRADEBOOK": str(gradebook), "PYTHONPATH": str(ROOT)}
    with open(gradebook / "output.txt", "wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
        meter = Meter(process.pid, before)
        code = process.wait()
    seconds = time.monotonic() - began
    if code != 0:
        sys.exit(f"{' '.join(command)} ended with {code}:\n{(gradebook / 'output.txt').read_text()[-2000:]}")
    return seconds, meter.processor(), meter


def handed_in(folder: Path, lesson: str, size: int):
    """Make a class of this size, and return its folders."""
    folders, _ = load(folder)
    made = Lesson(folders, lesson)
    if size < 10:
        for number in range(size):
            answers = {name: made.solutions[name] for name in made.exercises}
            hand_in(folders, made, f"student-{number}", answers)
    else:
        for member in make_class(folders, made, size):
            if member.odd == "an endless loop":  # takes every grader a minute, so it would hide the rest
                hand_in(folders, made, member.student, made.solutions)
    for drawn in folders.drawn(lesson).parent.glob("*.npz"):
        drawn.unlink()
    return folders


def ours(folder: Path, lesson: str, size: int) -> tuple[float, float, Meter]:
    folders = handed_in(folder / f"ours-{size}", lesson, size)
    return timed([sys.executable, "-m", "helpers", "grade", lesson, "--gradebook", folders.gradebook], ROOT, folder)


def press(folders, lesson: str, *students: str) -> tuple[float, float]:
    """Press the button for each student, one after the other in one server. Returns wall-clock and processor seconds,
    without those of the server's start."""
    program = BUTTON.format(gradebook=str(folders.gradebook), lesson=lesson, students=students)
    _, processor, _ = timed([sys.executable, "-c", program], ROOT, folders.gradebook)
    pressed, loading = map(float, (folders.gradebook / "output.txt").read_text().split()[-2:])
    return pressed, processor - loading


def stock(folder: Path, lesson: str, size: int) -> tuple[float, float]:
    """Wall-clock and processor seconds of nbgrader's own autograde, which has no sandbox."""
    gradebook = folder / f"stock-{size}"
    folders, _ = load(gradebook)
    made = Lesson(folders, lesson)
    for number in range(size):
        answers = {name: made.solutions[name] for name in made.exercises}
        hand_in(folders, made, f"student-{number}", answers)
    (gradebook / "nbgrader_config.py").write_text(
        STOCK.format(
            config=str(ROOT / "nbgrader_config.py"),
            root=str(gradebook),
            source=str(ROOT / "solutions"),
            release=str(gradebook / "release"),
        )
    )
    release = [sys.executable, "-m", "nbgrader", "generate_assignment", lesson, "--create", "--force"]
    subprocess.run(
        release, cwd=gradebook, env=os.environ | {"COURSE_GRADEBOOK": str(gradebook)}, capture_output=True, check=True
    )
    seconds, processor, _ = timed(
        [sys.executable, "-m", "nbgrader", "autograde", lesson, "--create"], gradebook, gradebook
    )
    if folders.result(lesson, "student-0").exists():
        sys.exit("This was not stock nbgrader, but the course's own grader.")
    return seconds, processor


def print_presses(folder: Path, lesson: str, stock_first: tuple[float, float]) -> None:
    """Measure presses of the button. stock_first: stock's times for one submission, or (0, 0) if it was not run."""
    class_of_two = handed_in(folder / "button", lesson, 2)
    drawing = press(class_of_two, lesson, "student-0")
    starting = press(class_of_two, lesson, "student-0")
    both = press(class_of_two, lesson, "student-0", "student-1")
    again = both[0] - starting[0], both[1] - starting[1]
    presses = {
        "first press of a class": drawing,
        "first press of a server": starting,
        "next press in that server": again,
    }
    for name, (pressed, processor) in presses.items():
        line = f"{name}: {pressed:.1f} s, {processor:.1f} s of processor time"
        if stock_first[0]:
            times = stock_first[0] / pressed, stock_first[1] / processor
            line += f"; stock: {times[0]:.1f} and {times[1]:.1f} times as much"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lesson", default="04_scaling")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 24, 120])
    parser.add_argument("--stock", type=int, default=3)
    parser.add_argument("--no-stock", action="store_true")
    parser.add_argument("--memory", action="store_true", help="print the grader's peak memory by quarters of its time")
    args = parser.parse_args()
    (ROOT / "gradebook").mkdir(exist_ok=True)  # below the course, so that stock nbgrader's kernels find it
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=ROOT / "gradebook"))
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    torch_seconds = children_seconds()
    print(f"{args.lesson}; importing torch takes {torch_seconds:.1f} s of processor time")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        for lesson, name in FIRST_CHECKS:
            seconds, processor = first_check(lesson, name)
            print(f"first check of {name:<14}{seconds:5.2f} s, {processor:5.2f} s of processor time", end="")
            print(f": {processor / torch_seconds:.2f} of importing torch", flush=True)
        first = each = (0.0, 0.0)
        if not args.no_stock:
            first, several = stock(folder, args.lesson, 1), stock(folder, args.lesson, args.stock)
            each = tuple((many - one) / (args.stock - 1) for one, many in zip(first, several, strict=True))
            print(f"stock nbgrader: {first[0]:.1f} s for 1 ({first[1]:.1f} s of processor time), ", end="")
            print(f"{each[0]:.1f} s ({each[1]:.1f} s) for each further one, from {args.stock}", flush=True)
        print_presses(folder, args.lesson, first)
        times = {}
        for size in args.sizes:
            seconds, processor, meter = ours(folder, args.lesson, size)
            line = f"{size:5} submissions: {seconds:7.1f} s, {processor:6.1f} s of processor time"
            if each[0]:
                other, busy = (one + step * (size - 1) for one, step in zip(first, each, strict=True))
                line += f"; stock {other:7.1f} s, {busy:6.1f} s{'' if size in (1, args.stock) else ' (extrapolated)'}: "
                line += f"{other / seconds:.1f} and {busy / processor:.1f} times as much"
                times[size] = {"stock over ours": round(other / seconds, 1), "processor": round(busy / processor, 1)}
                times[size]["seconds"] = round(seconds, 1)
            print(line, flush=True)
            if args.memory:
                parts = [meter.memory[len(meter.memory) * k // 4 :][: len(meter.memory) // 4] for k in range(4)]
                print("      MB by quarters: " + ", ".join(f"{max(part) >> 20}" for part in parts if part))
        if times:
            size = max(times)
            says = (
                f"{size} submissions of {args.lesson} are graded in {times[size]['seconds']:.0f} s, "
                f"{times[size]['stock over ours']:.0f} times as fast as with nbgrader alone, which has no sandbox "
                f"(timed with {args.stock} submissions)."
            )
            print(says)
            keep("grading_time", says, times)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
