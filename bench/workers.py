"""How long grading takes with more and more workers, and why it stops scaling: `python -m bench.workers`.

    --lesson 04_scaling      another lesson
    --draw                   measure nothing, and draw the picture of docs/teaching.md from the stored results

A simple model of helpers/grading/cluster: workers get portions, with a self test before and after each, and a single
process reads, sends and records submissions. The times of these steps are measured first, with one judge, on the sample
class without its endless loop; classes are then sampled from them. Judging is timed by the wall clock, because the
processor time of a sandbox is lost with its processes, so run nothing else on the computer. Each worker has its own
core, and waiting for disk or network is left out.
"""

import argparse
import heapq
import json
import random
import tempfile
import time
from pathlib import Path

from bench.written import RESULTS, keep
from helpers.grading.batch import batch_seed
from helpers.grading.cluster.client import PORTION
from helpers.grading.folders import load
from helpers.grading.intake import read_submission
from helpers.grading.lesson_release import course_release
from helpers.grading.pool import WORTH_A_JUDGE, Batch, Pool, judge_message, report_of_answer
from helpers.grading.record import Recorder
from tests.sample_class import Lesson, make_class

WORKERS = (1, 2, 3, 4, 6, 8, 16, 32, 64)
CLASSES = (100, 1_000, 10_000)
PICTURE = Path(__file__).parents[1] / "docs" / "workers.webp"


def measured(name: str) -> dict:
    """The seconds to start a judge, for its self test, and to judge and to record each submission."""
    with tempfile.TemporaryDirectory() as folder:
        folders, config = load(folder)
        lesson, release = Lesson(folders, name), course_release(folders.executed(name))
        students = [member.student for member in make_class(folders, lesson) if member.odd != "an endless loop"]
        judged, written = [], []
        began = time.monotonic()
        with Pool(Batch(name, batch_seed(folders, name), cell_seconds=20), 1) as pool:
            pool.exercises()
            start = time.monotonic() - began
            pool.self_test("of the measurement")
            tested = time.monotonic() - began - start
            with Recorder(folders, release, "measured", config=config) as recorder:
                for student in students:
                    began_recording = time.process_time()
                    submission = read_submission(folders.submitted, student, release, folders.source)
                    message = (*judge_message(submission, release), False, False)
                    sent = time.monotonic()
                    [(_, kind, answer)] = pool.answers([message], lambda item: item)
                    judged.append(round(time.monotonic() - sent, 3))
                    if kind != "judged":
                        raise SystemExit(f"{student} was not judged: {answer}")
                    recorder.record(submission, report_of_answer(submission, kind, answer))
                    written.append(round(time.process_time() - began_recording, 3))
    return {"start": round(start, 2), "self_test": round(tested, 2), "judged": judged, "written": written}


def simulated(seconds: dict, submissions: int, workers: int, seed: int = 0) -> dict:
    """Simulate a class: the seconds until all is recorded, and the fractions that workers and the recorder are busy."""
    judging = iter(random.Random(seed).choices(seconds["judged"], k=submissions))
    writing = sum(seconds["written"]) / len(seconds["written"])
    unread = unwritten = submissions
    now = busy = 0.0
    away: list[tuple[float, int]] = []  # when a worker finishes its portion, and the portion's size
    while unwritten:
        came = []
        while away and away[0][0] <= now:
            came.append(heapq.heappop(away)[1])
        while unread and len(away) < workers:
            portion = min(unread, max(WORTH_A_JUDGE, min(PORTION, -(-unwritten // workers))))
            unread -= portion
            took = 2 * seconds["self_test"] + sum(next(judging) for _ in range(portion))
            heapq.heappush(away, (max(now, seconds["start"]) + took, portion))
            busy += took
        unwritten -= sum(came)
        now = now + sum(came) * writing if came else away[0][0]
    return {
        "seconds": round(now, 1),
        "workers_busy": round(busy / now / workers, 3),
        "writer_busy": round(submissions * writing / now, 3),
    }


def draw(facts: dict) -> None:
    """Plot minutes over workers, with one line per class."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8.4, 3.6), dpi=130)
    for submissions, rows in facts["classes"].items():
        axes.plot(
            [int(count) for count in rows],
            [row["seconds"] / 60 for row in rows.values()],
            marker="o",
            label=f"{int(submissions):,} submissions",
        )
    largest = facts["classes"][str(CLASSES[-1])]
    recording = CLASSES[-1] * sum(facts["measured"]["written"]) / len(facts["measured"]["written"]) / 60
    axes.axhline(recording, color="gray", linestyle=":", label=f"to record {CLASSES[-1]:,}")
    axes.set(xscale="log", yscale="log", xlabel="workers, a core each", ylabel="minutes (model)")
    axes.set_xticks([int(count) for count in largest], list(largest))
    axes.minorticks_off()
    axes.set_yticks([0.2, 0.5, 1, 2, 5, 10, 20, 50], ["0.2", "0.5", "1", "2", "5", "10", "20", "50"])
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.tight_layout()
    figure.savefig(PICTURE)
    print(f"written to {PICTURE}")


def summary(classes: dict) -> str:
    """The sentence for docs/measurements.md."""
    one, six, most = (classes[str(CLASSES[-1])][count]["seconds"] / 60 for count in ("1", "6", "64"))
    return (
        f"Computed from measured seconds, {CLASSES[-1]:,} submissions take {one:.0f} minutes with one worker, "
        f"{six:.0f} with six and {most:.0f} with 64, where the one process that records the results is the limit."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lesson", default="04_scaling")
    parser.add_argument("--draw", action="store_true")
    args = parser.parse_args()
    if args.draw:
        draw(json.loads((RESULTS / "workers.json").read_text(encoding="utf-8"))["figures"])
        return
    seconds = measured(args.lesson)
    classes = {str(size): {str(n): simulated(seconds, size, n) for n in WORKERS} for size in CLASSES}
    for size, rows in classes.items():
        for count, row in rows.items():
            print(
                f"{int(size):6,} submissions, {count:>2} workers: {row['seconds'] / 60:6.1f} min, "
                f"{rows['1']['seconds'] / row['seconds']:4.1f} times one; workers busy {row['workers_busy']:4.0%}, "
                f"writer {row['writer_busy']:4.0%}"
            )
    keep("workers", summary(classes), {"lesson": args.lesson, "measured": seconds, "classes": classes})


if __name__ == "__main__":
    main()
