"""nbgrader's settings for this course, which `nbgrader` reads from the course's root folder.

COURSE_GRADEBOOK can name a folder other than gradebook/, for example that of the sample class (`make grade`).
"""

import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821  (given by traitlets)
root = Path(__file__).resolve().parent
if str(root) not in sys.path:
    sys.path.insert(0, str(root))
gradebook = os.environ.get("COURSE_GRADEBOOK", "gradebook")
# To set up its database, nbgrader runs `alembic`, which lies beside this Python even if its environment is not active.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

# Folders: sources and released notebooks; everything that is created at run time lies in the gradebook folder.
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
    "*.py",  # the lesson's text and answer key are not released
]
(root / gradebook).mkdir(parents=True, exist_ok=True)

# Release: the text that replaces solutions is defined where `course build` finds it too, so that both create the same.
if (root / "helpers" / "authoring").is_dir():
    from helpers.authoring.release import configure

    configure(c)

# Grading: `nbgrader autograde` and Formgrader's button use the course's judge instead of running the notebook in its
# kernel, and feedback pages are always rewritten.
if (root / "helpers" / "grading").is_dir():  # the learners' edition cannot grade
    from helpers.grading import converters

    converters.install()
