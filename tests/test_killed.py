"""A grader that is killed at random moments and started again gives the same scores. COURSE_KILLS=10: ten times."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from helpers.grading.batch import batch_seed, grade_lesson
from helpers.grading.folders import ROOT, load
from tests.sample_class import hand_in
from tests.test_grading import LESSON, WRONG, full_answers, needs_bubblewrap, points, scores

pytestmark = needs_bubblewrap
MOMENTS = int(os.environ.get("COURSE_KILLS", "2"))


def graded(folders):
    folder = folders.result(LESSON, "x").parent
    return len(list(folder.glob("*.json"))) if folder.is_dir() else 0


@pytest.mark.full
@pytest.mark.timeout(3000)
def test_a_grader_killed_at_random_moments_gives_the_same_scores(lesson, tmp_path):
    folders, config = load(tmp_path)
    seed, deserved = batch_seed(folders, LESSON), {}
    for number in range(12):
        wrong = {"scaled_scores": WRONG} if number % 3 == 1 else {}
        deserved[f"s{number:02d}"] = points(lesson, **({"scaled_scores": 0.0} if wrong else {}))
        hand_in(folders, lesson, f"s{number:02d}", full_answers(lesson, wrong))
    generator = random.Random(seed)
    command = [sys.executable, "-m", "helpers", "grade", LESSON, "--gradebook", str(tmp_path), "--jobs", "1"]
    longest = None
    for moment in range(MOMENTS):
        began = time.monotonic()
        grader = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if longest is None or moment % 2 == 0:  # while it records, which is the shortest part
            while grader.poll() is None and graded(folders) == 0 and not (tmp_path / "autograded").is_dir():
                time.sleep(0.005)
            time.sleep(generator.uniform(0, 0.6))
        else:
            time.sleep(generator.uniform(0, longest))
        grader.send_signal(signal.SIGKILL)
        grader.wait()
        longest = max(longest or 0.0, time.monotonic() - began)
    outcome = grade_lesson(folders, LESSON, config=config)
    assert outcome.new + outcome.unchanged == 12 and not any(result.problem for result in outcome.results)
    assert scores(folders) == deserved and batch_seed(folders, LESSON) == seed
