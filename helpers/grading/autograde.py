"""nbgrader's `autograde`, and Formgrader's button, take the course's way: intake, sandbox, judge, record."""

from fnmatch import fnmatchcase

from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from traitlets import Bool, Float, Integer

from helpers.errors import CourseError
from helpers.grading.folders import from_coursedir
from helpers.grading.intake import find_submissions
from helpers.grading.nbgrader_insides import replace_converter


class CourseAutograde(Autograde):
    """In place of nbgrader's own converter, with its options --force, --student and create_student."""

    unsafe = Bool(False, help="Run learner code without a sandbox where there is no bubblewrap.").tag(config=True)
    jobs = Integer(0, help="How many judges work side by side; 0: one for each core, at most two.").tag(config=True)
    cell_seconds = Float(0, help="What one cell of a notebook may take; 0: the sandbox's own limit.").tag(config=True)

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


def install() -> None:
    """Let nbgrader's command and Formgrader use this converter; called by nbgrader_config.py."""
    replace_converter("Autograde", "autogradeapp", CourseAutograde)
