"""nbgrader's settings for this course. `nbgrader` reads this file from the course's root.

COURSE_GRADEBOOK names another folder than gradebook/, such as that of the sample class (`make grade`).
"""

import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821  (given by traitlets)
root = Path(__file__).resolve().parent
if str(root) not in sys.path:
    sys.path.insert(0, str(root))
gradebook = os.environ.get("COURSE_GRADEBOOK", "gradebook")
# nbgrader calls `alembic` by name to set up its database; it stands beside this Python, active environment or not.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

# Folders: what is edited, what is handed out, and everything made at run time in one place.
c.CourseDirectory.root = str(root)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "notebooks"
c.CourseDirectory.submitted_directory = os.path.join(gradebook, "submitted")
c.CourseDirectory.autograded_directory = os.path.join(gradebook, "autograded")
c.CourseDirectory.feedback_directory = os.path.join(gradebook, "feedback")
c.CourseDirectory.solution_directory = os.path.join(gradebook, "solution")
c.CourseDirectory.db_url = f"sqlite:///{root / gradebook / 'gradebook.db'}"
c.CourseDirectory.ignore = [
    ".ipynb_checkpoints",
    "*.pyc",
    "__pycache__",
    "feedback",
    "*.py",  # the lesson's text and answer key stay here
]
(root / gradebook).mkdir(parents=True, exist_ok=True)

# Release: what a learner sees where the solution was, set where `course build` sets it, so that both make the same.
if (root / "helpers" / "authoring").is_dir():
    from helpers.authoring.release import configure

    configure(c)

# Grading: `nbgrader autograde` and Formgrader's button take the course's own judge, not the notebook's kernel;
# feedback pages are written anew each time.
if (root / "helpers" / "grading").is_dir():  # the learner edition has no grading wing
    from helpers.grading import converters

    converters.install()
