"""All that leans on how nbgrader works inside; what else the course uses of it, its documentation names.

Each function says what it takes for granted. tests/test_nbgrader_insides.py fails when nbgrader changes that.
"""

import contextlib
import importlib

from helpers.grading.folders import Folders
from helpers.grading.pool import GradingStopped
from helpers.grading.safe_text import one_line
from helpers.released import released_notebook


def replace_converter(name: str, app: str, converter: type) -> None:
    """Let nbgrader's command and Formgrader's button use this converter in place of nbgrader's own of that name: both
    look it up in their own module when they start, and there is no setting for it."""
    for module in (importlib.import_module(f"nbgrader.apps.{app}"), importlib.import_module("nbgrader.apps.api")):
        if not issubclass(converter, getattr(module, name)):
            raise TypeError(f"{converter.__name__} is no {name}")
        setattr(module, name, converter)


def open_gradebook(folders: Folders):
    """nbgrader's gradebook of a class; GradingStopped where it cannot be used. To mark a new one with its version,
    nbgrader.api.get_alembic_version starts a program, which takes a third of the processor time of grading one
    submission; here alembic is asked directly."""
    import nbgrader.api
    from sqlalchemy.exc import SQLAlchemyError

    nbgrader.api.get_alembic_version = newest_version
    try:
        gradebook = nbgrader.api.Gradebook(folders.db_url, folders.course_id)
        if not folders.course_id and gradebook.db.get(nbgrader.api.Course, "") is None:
            gradebook.db.add(nbgrader.api.Course(id=""))  # assignments name it, and only SQLite lets them name nothing
            gradebook.db.commit()
    except SQLAlchemyError as error:
        raise not_usable(folders, error) from None
    return gradebook


def not_usable(folders: Folders, error: Exception) -> GradingStopped:
    """What a teacher is told of a database that does not open, without the password of its address."""
    reason = one_line(str(getattr(error, "orig", None) or error), 150)
    place = one_line(folders.db_url.removeprefix("sqlite:///").split("@")[-1])
    return GradingStopped(f"The gradebook {place} cannot be used ({reason}). Nothing was changed.")


def newest_version() -> str | None:
    """The version of a gradebook that nbgrader makes now."""
    from alembic.script import ScriptDirectory
    from nbgrader.dbutil import ALEMBIC_DIR

    return ScriptDirectory(ALEMBIC_DIR).get_current_head()


@contextlib.contextmanager
def one_commit(gradebook):
    """nbgrader commits after each of its steps, through `gradebook.db.commit`, and waits for the disk each time. Here
    its steps share one commit, so that a gradebook never holds half a submission."""
    session = gradebook.db
    commit, session.commit = session.commit, session.flush
    try:
        with session.no_autoflush:
            yield
    finally:
        session.commit = commit


def register_lesson(gradebook, folders: Folders, lesson: str) -> None:
    """Put the lesson's cells into the gradebook, as `nbgrader generate_assignment` does: its preprocessor takes what it
    works on from `resources`. Raises GradingStopped if they are other cells than those that were handed in."""
    import nbformat
    from nbgrader.preprocessors import SaveCells

    gradebook.update_or_create_assignment(lesson)
    notebook = nbformat.from_dict(released_notebook(folders.executed(lesson)))
    try:
        SaveCells().preprocess(notebook, _resources(folders, lesson))
    except RuntimeError as error:
        raise GradingStopped(
            f"The graded cells of {lesson} are no longer those that the gradebook knows, and there are "
            f"submissions to the old ones ({error}). Grade with the released version, or start a new gradebook."
        ) from None
    gradebook.db.expire_all()


def assign_late_penalty(gradebook, folders: Folders, lesson: str, student: str, notebook, config) -> None:
    """Whatever late policy the teacher's configuration names: its preprocessor too works on what `resources` say."""
    from nbgrader.preprocessors import AssignLatePenalties

    gradebook.db.commit()
    AssignLatePenalties(config=config).preprocess(notebook, _resources(folders, lesson, student=student))
    gradebook.db.expire_all()


def _resources(folders: Folders, lesson: str, **more) -> dict:
    return {"nbgrader": {"notebook": lesson, "assignment": lesson, "db_url": folders.db_url, **more}}
