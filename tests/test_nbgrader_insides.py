"""nbgrader's internals still behave as helpers/grading/nbgrader_insides.py assumes."""

import datetime
import subprocess
import sys

import nbformat
import pytest
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.dbutil import _temp_alembic_ini
from nbgrader.plugins import BasePlugin
from sqlalchemy import text
from traitlets.config import Config

from helpers.grading import nbgrader_insides
from helpers.grading.folders import load
from helpers.grading.lesson_release import read_release
from helpers.grading.nbgrader_insides import (
    assign_late_penalty,
    newest_version,
    one_commit,
    open_gradebook,
    register_lesson,
    replace_converter,
)
from helpers.grading.pool import GradingStopped

LESSON = "04_scaling"


@pytest.fixture
def folders(tmp_path):
    return load(tmp_path)[0]


@pytest.fixture
def gradebook(folders):
    with open_gradebook(folders) as gradebook:
        yield gradebook


def test_only_a_subclass_may_replace_a_converter():
    with pytest.raises(TypeError, match="is no"):
        replace_converter("Autograde", "autogradeapp", dict)


@pytest.mark.full
def test_a_new_gradebook_has_nbgraders_newest_database_version(folders, monkeypatch):
    with _temp_alembic_ini(folders.db_url) as place:
        result = subprocess.run([sys.executable, "-m", "alembic", "-c", place, "heads"], capture_output=True, text=True)
    assert result.stdout.split()[0] == newest_version()
    monkeypatch.setattr(nbgrader_insides, "newest_version", lambda: "one like it")
    with open_gradebook(folders) as gradebook:
        version = gradebook.db.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
    assert version == "one like it"


def test_steps_share_one_commit(folders, gradebook):
    gradebook.update_or_create_assignment(LESSON)
    with Gradebook(folders.db_url, folders.course_id) as other:
        with one_commit(gradebook):
            gradebook.update_or_create_student("a")
            gradebook.update_or_create_submission(LESSON, "a")
            with pytest.raises(MissingEntry):
                other.find_student("a")
        gradebook.db.commit()
        other.db.rollback()
        assert other.find_submission(LESSON, "a").student.id == "a"


def test_a_registered_lesson_may_not_change_its_graded_cells(folders, gradebook, tmp_path):
    register_lesson(gradebook, folders, LESSON)
    cells = {cell.name for cell in gradebook.find_notebook(LESSON, LESSON).grade_cells}
    assert {f"check_{name}" for name in read_release(folders.notebook(LESSON)).checks} < cells
    gradebook.update_or_create_student("a")
    gradebook.update_or_create_submission(LESSON, "a")
    changed = nbformat.read(folders.executed(LESSON), as_version=4)
    changed.cells = [cell for cell in changed.cells if "grade_id" not in cell.metadata.get("nbgrader", {})]
    folder = tmp_path / "source" / LESSON
    folder.mkdir(parents=True)
    nbformat.write(changed, folder / f"{LESSON}.ipynb")
    with pytest.raises(GradingStopped, match="differ from those in the gradebook"):
        register_lesson(gradebook, type(folders)(**vars(folders) | {"source": tmp_path / "source"}), LESSON)


class TwoAnHour(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return 2 * total_seconds_late / 3600


def test_a_late_penalty_of_the_configuration_is_applied(folders, gradebook):
    due = datetime.datetime(2026, 3, 1, 12)
    gradebook.update_or_create_assignment(LESSON, duedate=due)
    register_lesson(gradebook, folders, LESSON)
    gradebook.update_or_create_student("a")
    gradebook.update_or_create_submission(LESSON, "a", timestamp=due + datetime.timedelta(hours=3))
    for grade in gradebook.find_submission_notebook(LESSON, LESSON, "a").grades:
        grade.auto_score = grade.max_score
    config = Config({"LateSubmissionPlugin": {}, "AssignLatePenalties": {"plugin_class": f"{__name__}.TwoAnHour"}})
    notebook = nbformat.read(folders.notebook(LESSON), as_version=4)
    assign_late_penalty(gradebook, folders, LESSON, "a", notebook, config)
    assert gradebook.find_submission_notebook(LESSON, LESSON, "a").late_submission_penalty == 6
