"""`course pack gradescope LESSON`: the grader of one lesson as Gradescope takes it.

Gradescope unpacks the zip into /autograder/source, runs setup.sh once, and run_autograder for each submission:
https://gradescope-autograders.readthedocs.io/en/latest/specs/
"""

from pathlib import Path

from helpers.course import Lesson

SETUP = """\
#!/usr/bin/env bash
# Once, when Gradescope makes the image: bubblewrap, a Python that is new enough, and the grader's packages.
set -eu
cd "${AUTOGRADER:-/autograder}/source"
apt-get update
apt-get install -y --no-install-recommends bubblewrap python3 python3-venv
python=python3
if ! $python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  python=python3.11
  apt-get install -y --no-install-recommends $python $python-venv
fi
$python -m venv venv
venv/bin/python -m pip install -q -c requirements.lock -e ".[grade]"
"""
# There is a results.json whatever happens: Gradescope's own words for a missing one tell a learner nothing.
RUN = """\
#!/usr/bin/env bash
# For each submission. Answers run in a sandbox; where the container allows none, nothing is graded, and the page
# says so.
home="${{AUTOGRADER:-/autograder}}"
mkdir -p "$home/results"
cd "$home/source"
"${{PYTHON:-venv/bin/python}}" -m helpers grade {lesson} --gradescope "$home"{unsafe}
if [ ! -s "$home/results/results.json" ]; then
  echo '{{"score": 0, "output": "Not graded: the grader did not start. Please tell your teacher."}}' \\
    > "$home/results/results.json"
fi
"""


def scripts(lesson: Lesson, unsafe: bool) -> dict[str, bytes]:
    """What Gradescope runs: contents by name. unsafe: answers run without a sandbox."""
    run = RUN.format(lesson=lesson.name, unsafe=" --unsafe" if unsafe else "")
    return {"setup.sh": SETUP.encode(), "run_autograder": run.encode()}


def grader_files(root: Path, lesson: Lesson) -> list[str]:
    """What the grader of a lesson needs besides the learner edition, as paths from the course's root."""
    grader = [path for path in (root / "helpers" / "grading").rglob("*") if "__pycache__" not in path.parts]
    return [
        *(path.relative_to(root).as_posix() for path in grader if path.is_file()),
        *("pyproject.toml", "requirements.lock", "README.md", f"helpers/blocks/{lesson.name}.py"),
        *(f"solutions/{lesson.name}/{name}" for name in ("answer_key.py", f"{lesson.name}.ipynb")),
    ]
