"""Seconds to grade 1, 24 and 120 hand-ins, beside stock nbgrader, in one run: `python bench/grading_time.py`.

    --lesson 04_scaling      another lesson
    --sizes 1 24 120         other sizes; `--sizes 1000 --no-stock --memory` shows that memory stays flat
    --stock 3                how many hand-ins stock nbgrader grades; more are extrapolated from these and from one

Wall-clock seconds, and processor seconds of all processes together, with start-up and self tests. Hand-ins are made
as in the sample class, but for the endless loop: right ones, known mistakes, odd ones. Stock nbgrader gets right ones.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

from helpers.grading.folders import ROOT, load
from helpers.grading.sample_class import Lesson, hand_in, make_class

STOCK = """\
import os
c = get_config()
exec(open({config!r}).read().split("# Grading:")[0], dict(get_config=lambda: c, __file__={config!r}))
c.CourseDirectory.root = {root!r}  # where nbgrader looks for a configuration too
c.CourseDirectory.source_directory = {source!r}
c.CourseDirectory.release_directory = {release!r}
"""


class Meter(threading.Thread):
    """Looks at a process and all below it: seconds of processor time, and the most memory of the first one."""

    def __init__(self, pid: int):
        super().__init__(daemon=True)
        self.process, self.seen, self.memory = psutil.Process(pid), {}, []
        self.start()

    def run(self):
        while self.process.is_running():
            try:
                family = [self.process, *self.process.children(recursive=True)]
                self.memory.append(self.process.memory_info().rss)
            except psutil.Error:
                return
            for one in family:
                try:
                    times = one.cpu_times()
                    self.seen[one.pid, one.create_time()] = times.user + times.system
                except psutil.Error:
                    continue
            time.sleep(0.05)

    def processor(self) -> float:
        return sum(self.seen.values())


def timed(command: list[str], folder: Path, gradebook: Path) -> tuple[float, Meter]:
    """Seconds that a command took, and what was seen of it."""
    began = time.monotonic()
    environment = os.environ | {"COURSE_GRADEBOOK": str(gradebook), "PYTHONPATH": str(ROOT)}
    with open(gradebook / "said.txt", "wb") as said:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=said, stderr=said)
        meter = Meter(process.pid)
        code = process.wait()
    if code != 0:
        sys.exit(f"{' '.join(command)} ended with {code}:\n{(gradebook / 'said.txt').read_text()[-2000:]}")
    return time.monotonic() - began, meter


def ours(place: Path, lesson: str, size: int) -> tuple[float, Meter]:
    folders, _ = load(place / f"ours-{size}")
    made = Lesson(folders, lesson)
    if size < 10:
        for number in range(size):
            answers = {name: made.solutions[name] for name in made.exercises}
            hand_in(folders, made, f"student-{number}", answers)
    else:
        for one in make_class(folders, made, size):
            if one.odd == "an endless loop":  # which takes a minute of any grader, whatever else that does
                hand_in(folders, made, one.student, made.solutions)
    return timed([sys.executable, "-m", "helpers", "grade", lesson, "--gradebook", folders.gradebook], ROOT, place)


def stock(place: Path, lesson: str, size: int) -> tuple[float, float]:
    """Seconds of nbgrader's own autograde, by the clock and of processor time. It has no sandbox."""
    gradebook = place / f"stock-{size}"
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
    seconds, meter = timed([sys.executable, "-m", "nbgrader", "autograde", lesson, "--create"], gradebook, gradebook)
    if folders.result(lesson, "student-0").exists():
        sys.exit("This was not stock nbgrader, but the course's own way.")
    return seconds, meter.processor()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lesson", default="04_scaling")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 24, 120])
    parser.add_argument("--stock", type=int, default=3)
    parser.add_argument("--no-stock", action="store_true")
    parser.add_argument("--memory", action="store_true", help="the grader's memory, by quarters of its time")
    args = parser.parse_args()
    (ROOT / "gradebook").mkdir(exist_ok=True)  # below the course, so that stock's kernels find it
    place = Path(tempfile.mkdtemp(prefix="bench-", dir=ROOT / "gradebook"))
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    spent = os.times()
    print(f"{args.lesson}; importing torch takes {spent.children_user + spent.children_system:.1f} s of processor time")
    try:
        first = each = (0.0, 0.0)
        if not args.no_stock:
            first, more = stock(place, args.lesson, 1), stock(place, args.lesson, args.stock)
            each = tuple((all_of - one) / (args.stock - 1) for one, all_of in zip(first, more, strict=True))
            print(f"stock nbgrader: {first[0]:.1f} s for 1 ({first[1]:.1f} s of processor time), ", end="")
            print(f"{each[0]:.1f} s ({each[1]:.1f} s) for each one more, from {args.stock}", flush=True)
        for size in args.sizes:
            seconds, meter = ours(place, args.lesson, size)
            line = f"{size:5} hand-ins: {seconds:7.1f} s, {meter.processor():6.1f} s of processor time"
            if each[0]:
                other, busy = (one + step * (size - 1) for one, step in zip(first, each, strict=True))
                line += f"; stock {other:7.1f} s, {busy:6.1f} s{'' if size in (1, args.stock) else ' (extrapolated)'}: "
                line += f"{other / seconds:.1f} and {busy / meter.processor():.1f} times as much"
            print(line, flush=True)
            if args.memory:
                parts = [meter.memory[len(meter.memory) * k // 4 :][: len(meter.memory) // 4] for k in range(4)]
                print("      MB by quarters: " + ", ".join(f"{max(part) >> 20}" for part in parts if part))
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
