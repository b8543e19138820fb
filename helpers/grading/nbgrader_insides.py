"""Everything that relies on nbgrader's internals. The rest of the course uses only what nbgrader documents.

Each function states what it relies on. tests/test_nbgrader_insides.py fails if nbgrader changes that.
"""

import contextlib
import importlib

from helpers.grading.folders import Folders
from helpers.grading.pool import GradingStopped
from helpers.grading.safe_text import one_line
from helpers.released import released_notebook


def replace_converter(name: str, app: str, converter: type) -> None:
    """Make nbgrader's command `app` and Formgrader's button use `converter` instead of nbgrader's converter `name`.
    There is no setting for this, but both look up the name in their own module when they start."""
    for module in (importlib.import_module(f"nbgrader.apps.{app}"), importlib.import_module("nbgrader.apps.api")):
        if not issubclass(converter, getattr(module, name)):
            raise TypeError(f"{converter.__name__} is not a subclass of {name}")
        setattr(module, name, converter)


def open_gradebook(folders: Folders):
    """nbgrader's gradebook of a class. Raises GradingStopped if it cannot be used. For a new one, nbgrader would look
    up the current schema version by starting a program (get_alembic_version). That takes a third of the CPU time of
    grading one submission, so alembic's Python interface is called instead."""
    import nbgrader.api
    from sqlalchemy.exc import SQLAlchemyError

    nbgrader.api.get_alembic_version = newest_version
    try:
        gradebook = nbgrader.api.Gradebook(folders.db_url, folders.course_id)
        if not folders.course_id and gradebook.db.get(nbgrader.api.Course, "") is None:
            gradebook.db.add(nbgrader.api.Course(id=""))  # assignments refer to it; only SQLite accepts a missing one
            gradebook.db.commit()
    except SQLAlchemyError as error:
        raise not_usable(folders, error) from None
    return gradebook


def not_usable(folders: Folders, error: Exception) -> GradingStopped:
    """The error message for a database that cannot be opened, without the password in its address."""
    reason = one_line(str(getattr(error, "orig", None) or error), 150)
    address = one_line(folders.db_url.removeprefix("sqlite:///").split("@")[-1])
    return GradingStopped(f"The gradebook {address} cannot be used ({reason}). Nothing was changed.")


def newest_version() -> str | None:
    """The schema version of a gradebook that the installed nbgrader creates."""
    from alembic.script import ScriptDirectory
    from nbgrader.dbutil import ALEMBIC_DIR

    return ScriptDirectory(ALEMBIC_DIR).get_current_head()


@contextlib.contextmanager
def one_commit(gradebook):
    """nbgrader calls `gradebook.db.commit` after each of its steps and waits for the disk each time. In this context it
    only flushes, and the caller commits all steps at once, so that a gradebook never holds half a submission."""
    session = gradebook.db
    commit, session.commit = session.commit, session.flush
    try:
        with session.no_autoflush:
            yield
    finally:
        session.commit = commit


def register_lesson(gradebook, folders: Folders, lesson: str) -> None:
    """Put the lesson's cells into the gradebook, as `nbgrader generate_assignment` does. Its preprocessor takes lesson
    and database from `resources`. Raises GradingStopped if there are submissions to other graded cells."""
    import nbformat
    from nbgrader.preprocessors import SaveCells

    gradebook.update_or_create_assignment(lesson)
    notebook = nbformat.from_dict(released_notebook(folders.executed(lesson)))
    try:
        SaveCells().preprocess(notebook, _resources(folders, lesson))
    except RuntimeError as error:
        raise GradingStopped(
            f"The graded cells of {lesson} differ from those in the gradebook, which already has "
            f"submissions to the old ones ({error}). Grade with the released version, or start a new gradebook."
        ) from None
    gradebook.db.expire_all()


def assign_late_penalty(gradebook, folders: Folders, lesson: str, student: str, notebook, config) -> None:
    """Apply the late policy that the teacher's configuration names. This preprocessor, too, relies on `resources`."""
    from nbgrader.preprocessors import AssignLatePenalties

    gradebook.db.commit()
    AssignLatePenalties(config=config).preprocess(notebook, _resources(folders, lesson, student=student))
    gradebook.db.expire_all()


def _resources(folders: Folders, lesson: str, **extra) -> dict:
    return {"nbgrader": {"notebook": lesson, "assignment": lesson, "db_url": folders.db_url, **extra}}
