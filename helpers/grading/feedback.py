"""Feedback pages, from `course grade --feedback`, `nbgrader generate_feedback` and Formgrader alike."""

from __future__ import annotations

import glob
import logging
import os
import re
from pathlib import Path

from nbgrader.converters import GenerateFeedback

from helpers.grading.folders import from_coursedir
from helpers.grading.nbgrader_insides import take_over
from helpers.grading.pool import GradingStopped
from helpers.grading.record import read_result, write_atomically

NO_POINTS = re.compile(r"\bScore: 0\.0 / (?=\d)")


class CourseFeedback(GenerateFeedback):
    """nbgrader's own pages, except that they are written anew each time, for names with `[` too, and that a hand-in
    which nobody could read has no points in them."""

    def init_notebooks(self) -> None:
        """As nbgrader's; that takes a student's folder for a pattern."""
        names = self.coursedir
        places = names.format_path(names.autograded_directory, names.student_id, names.assignment_id)
        self.notebooks, self.assignments = [], {}
        for place in [places] if os.path.isdir(places) else glob.glob(places):
            if found := glob.glob(os.path.join(glob.escape(place), f"{names.notebook_id}.ipynb")):
                self.assignments[place] = found
        if not self.assignments:
            super().init_notebooks()  # which says so

    def init_destination(self, assignment_id: str, student_id: str) -> bool:
        self.force = True  # else nbgrader keeps a page that is older than its points
        return super().init_destination(assignment_id, student_id)

    def convert_single_notebook(self, notebook_filename: str) -> None:
        super().convert_single_notebook(notebook_filename)
        notebook = Path(notebook_filename)
        lesson, student = notebook.parts[-2], notebook.parts[-3]
        folders = from_coursedir(self.coursedir)
        result = read_result(folders, lesson, student)
        if result is not None and result.problem:
            page = folders.feedback / student / lesson / f"{notebook.stem}.html"
            write_atomically(page, NO_POINTS.sub("not graded, of ", page.read_text(encoding="utf-8")))


def write_feedback(config, lesson: str) -> None:
    """Feedback pages for everybody who was graded: the converter is started without its program."""
    from nbgrader.converters.base import NbGraderException
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
    """Let nbgrader's command and Formgrader use this converter; called by nbgrader_config.py."""
    take_over("GenerateFeedback", "generatefeedbackapp", CourseFeedback)
