"""Make nbgrader's commands and Formgrader's buttons use the course's judge and the course's feedback pages."""

import logging
from fnmatch import fnmatchcase

from nbconvert.exporters import Exporter
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.preprocessors import GetGrades
from traitlets import Bool, Float, Integer, List

from helpers.errors import CourseError
from helpers.grading.class_scores import called, full_name
from helpers.grading.due import lateness, read_due
from helpers.grading.folders import from_coursedir
from helpers.grading.intake import find_submissions
from helpers.grading.nbgrader_insides import replace_converter
from helpers.grading.notebook_page import as_page, facts
from helpers.grading.pool import GradingStopped
from helpers.grading.record import read_result


class CourseAutograde(Autograde):
    """Grades with the course's judge, and has the options --force, --student and create_student of the original."""

    unsafe = Bool(False, help="Run learner code without a sandbox, for computers without bubblewrap.").tag(config=True)
    jobs = Integer(0, help="Number of parallel judges; 0: one per core, at most two.").tag(config=True)
    cell_seconds = Float(0, help="Seconds that one cell may take; 0: the sandbox's limit.").tag(config=True)

    def start(self) -> None:
        from helpers.grading.batch import GradingOptions, LoggedProgress, grade_lesson
        from helpers.grading.class_report import write_report

        folders = from_coursedir(self.coursedir)
        lesson = self.coursedir.assignment_id
        seconds = self.cell_seconds or None
        options = GradingOptions(self.jobs or None, self.force, self.unsafe, seconds, keep_judges=True)
        try:
            students = self._students(folders, lesson)
            outcome = grade_lesson(folders, lesson, students, options, self.config, LoggedProgress(self.log))
        except CourseError as stopped:
            self.log.error(str(stopped))
            raise NbGraderException(str(stopped)) from None
        write_report(folders, lesson)
        for result in outcome.results:
            if result.problem:
                self.log.warning("%s: %s", result.student, result.problem)
            for flag in result.flags:
                self.log.warning("%s: %s", result.student, flag)
        self.log.info("%s: %d graded, %d unchanged", lesson, outcome.new, outcome.unchanged)

    def _students(self, folders, lesson: str) -> list[str] | None:
        pattern = self.coursedir.student_id
        excluded = [name.strip() for name in self.coursedir.student_id_exclude.split(",") if name.strip()]
        if pattern == "*" and not excluded:
            return None
        names = find_submissions(folders.submitted, lesson)
        matching = [name for name in names if fnmatchcase(name, pattern) and name not in excluded]
        return matching or [pattern]


class FeedbackPage(Exporter):
    """A learner's notebook with points, reports and comments, made from the facts in `resources["nbgrader"]`."""

    file_extension = ".html"

    def from_notebook_node(self, nb, resources=None, **kwargs):
        nb, resources = super().from_notebook_node(nb, resources, **kwargs)
        nbgrader = resources["nbgrader"]
        return as_page(nb.cells, nbgrader["facts"], nbgrader["notebook"]), resources


class CourseFeedback(GenerateFeedback):
    """Writes the course's feedback pages (grading/notebook_page.py), then the class report, which links to them."""

    preprocessors = List([GetGrades])

    def _exporter_class_default(self) -> type:
        return FeedbackPage

    def init_destination(self, assignment_id: str, student_id: str) -> bool:
        self.force = True  # Otherwise nbgrader would keep pages that are older than the points.
        return super().init_destination(assignment_id, student_id)

    def init_single_notebook_resources(self, notebook_filename: str) -> dict:
        from nbgrader.api import Gradebook

        resources = super().init_single_notebook_resources(notebook_filename)
        nbgrader = resources["nbgrader"]
        lesson, student = nbgrader["assignment"], nbgrader["student"]
        result = read_result(from_coursedir(self.coursedir), lesson, student)
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            recorded = gradebook.find_submission_notebook(nbgrader["notebook"], lesson, student)
            submitted = recorded.assignment
            name = called(student, full_name(submitted.student))
            seconds = read_due(from_coursedir(self.coursedir), gradebook, lesson).late(submitted.total_seconds_late)
            late = lateness(seconds) if seconds else ""
            nbgrader["facts"] = facts(recorded.grades, result, name, recorded.late_submission_penalty or 0.0, late)
        return resources

    def start(self) -> None:
        from helpers.grading.class_report import write_report

        super().start()
        write_report(from_coursedir(self.coursedir), self.coursedir.assignment_id)


def write_feedback(config, lesson: str) -> None:
    """Write feedback pages for all students who were graded. This calls nbgrader's converter without its program."""
    from nbgrader.coursedir import CourseDirectory

    coursedir = CourseDirectory(config=config)
    coursedir.assignment_id = lesson
    converter = CourseFeedback(coursedir=coursedir, config=config)
    converter.log.setLevel(logging.ERROR)
    try:
        converter.start()
    except NbGraderException as error:
        raise GradingStopped(f"The scores are recorded, but the feedback pages could not be written: {error}") from None


def install() -> None:
    """Replace nbgrader's converters in its commands and in Formgrader. Called by nbgrader_config.py."""
    replace_converter("Autograde", "autogradeapp", CourseAutograde)
    replace_converter("GenerateFeedback", "generatefeedbackapp", CourseFeedback)
