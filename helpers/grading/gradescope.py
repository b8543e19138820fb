"""`course grade LESSON --gradescope /autograder`: the submission in Gradescope's folder, and the results.json for it.

The format is https://gradescope-autograders.readthedocs.io/en/latest/specs/.
"""

from __future__ import annotations

import json
from pathlib import Path

from helpers.course import course
from helpers.errors import CourseError
from helpers.grading.one_notebook import JudgedNotebook, judge_notebook
from helpers.grading.record import write_atomically


def grade_folder(autograder: Path, lesson: str, unsafe: bool) -> int:
    """Grade submission/ and write results/results.json, whatever happens. 0: graded; 2: not, and the page says why."""
    try:
        results = as_results(judge_notebook(course().lesson(lesson).name, autograder / "submission", unsafe), unsafe)
    except (CourseError, OSError) as error:
        results = {"score": 0, "output": f"Not graded, so these points do not count: {error}", "output_format": "text"}
    write_atomically(autograder / "results" / "results.json", json.dumps(results, ensure_ascii=False, indent=1))
    return 0 if "tests" in results else 2


def as_results(judged: JudgedNotebook, unsafe: bool = False) -> dict:
    """What Gradescope shows: one test an exercise, with its report. Flags stand where only instructors see them."""
    output = [f"The written question ({judged.waiting:g} points) is graded by a person."] if judged.waiting else []
    if unsafe:
        output.append("Judged without a sandbox.")
    return {
        "score": judged.points + judged.bonus,
        "output": " ".join(output),
        "output_format": "text",
        "test_output_format": "text",
        "visibility": "visible",
        "extra_data": {"flags": judged.flags},
        "tests": [
            {
                "name": item.name if item.worth else f"{item.name} (bonus)",
                "score": item.points,
                "max_score": item.worth,
                "status": "passed" if item.report.passed else "failed",
                "output": item.report.text,
                "output_format": "text",
            }
            for item in judged.scored
        ],
    }
