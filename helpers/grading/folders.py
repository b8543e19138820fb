"""Where the files of a class are, according to nbgrader_config.py."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from helpers.course import course

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Folders:
    """The folders and the database of one class."""

    source: Path
    release: Path
    submitted: Path
    autograded: Path
    feedback: Path
    gradebook: Path  # the folder that contains all of these except `source` and `release`
    db_url: str
    course_id: str

    def notebook(self, lesson: str) -> Path:
        """The working copy of a lesson's notebook. The release is made from the solution (helpers/released)."""
        return self.release / lesson / f"{lesson}.ipynb"

    def executed(self, lesson: str) -> Path:
        """The solution notebook, with its figures."""
        return self.source / lesson / f"{lesson}.ipynb"

    def autograded_notebook(self, lesson: str, student: str) -> Path:
        return self.autograded / student / lesson / f"{lesson}.ipynb"

    def batch(self, lesson: str) -> Path:
        """Facts about the batch: its seed, so that a regrade draws the same inputs."""
        return self.gradebook / "batches" / f"{lesson}.json"

    def drawn(self, lesson: str) -> Path:
        """The inputs of the batch and the correct results for them, which are drawn once for all judges."""
        return self.gradebook / "batches" / f"{lesson}.drawn.npz"

    def result(self, lesson: str, student: str) -> Path:
        """The result of one submission. It is written last, so a submission that has it is finished."""
        return self.gradebook / "batches" / lesson / f"{student}.json"

    def report(self, lesson: str, kind: str) -> Path:
        return self.gradebook / "reports" / f"{lesson}.{kind}"

    def submission_page(self, lesson: str, student: str) -> Path:
        """The page that shows one submission, to which the class report links."""
        return self.gradebook / "reports" / lesson / f"{student}.html"

    def lesson(self, name: str) -> str:
        """The name of a lesson, from its name or number. If there is none, CourseError lists all lessons."""
        return course().lesson(name).name

    def lessons(self) -> list[str]:
        return sorted(path.stem for path in self.source.glob("*/*.ipynb") if path.stem == path.parent.name)


def from_coursedir(coursedir) -> Folders:
    """The folders that nbgrader's CourseDirectory names."""
    root = Path(coursedir.root)
    submitted = root / coursedir.submitted_directory
    return Folders(
        source=root / coursedir.source_directory,
        release=root / coursedir.release_directory,
        submitted=submitted,
        autograded=root / coursedir.autograded_directory,
        feedback=root / coursedir.feedback_directory,
        gradebook=submitted.parent,
        db_url=coursedir.db_url,
        course_id=coursedir.course_id,
    )


def load(gradebook: str | Path | None = None):
    """The folders, and nbgrader's full configuration. gradebook: another class's folder than the configured one."""
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config.loader import PyFileConfigLoader

    previous = os.environ.get("COURSE_GRADEBOOK")
    if gradebook is not None:
        os.environ["COURSE_GRADEBOOK"] = str(Path(gradebook).resolve())
    try:
        config = PyFileConfigLoader("nbgrader_config.py", path=str(ROOT)).load_config()
    finally:
        if gradebook is not None:
            os.environ.pop("COURSE_GRADEBOOK")
            os.environ.update({} if previous is None else {"COURSE_GRADEBOOK": previous})
    return from_coursedir(CourseDirectory(config=config)), config


def shown(path: Path | str) -> str:
    """A path relative to the current directory, as a person would type it."""
    return os.path.relpath(path)


def write_atomically(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a file completely or not at all, even if the process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        if os.path.exists(name):
            os.unlink(name)
        raise
