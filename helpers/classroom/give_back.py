"""Write the zip of feedback that a platform accepts, in which feedback has the name of the submission there.

- Moodle, *Upload multiple feedback files in a zip*: the feedback page, in the submission's folder of the download.
- Canvas, *How do I upload all student submissions for an assignment?*: files under their names in the download. Canvas
  shows them to the learner under the submission's name, so the feedback on a notebook has to be a notebook.
- Brightspace, *Add feedback files*: the same, or beside the submission, if the download has no folders.
- csv: a feedback page for each student, under the student's name.
"""

import io
import zipfile
from pathlib import Path

import nbformat

from helpers.classroom.collected import Source, read_sources
from helpers.errors import CourseError
from helpers.grading.folders import Folders
from helpers.grading.nbgrader_insides import open_gradebook
from helpers.grading.notebook_file import ENDINGS
from helpers.grading.record import plain_number


def write_feedback_zip(folders: Folders, lesson: str, platform: str, path: Path) -> tuple[int, list[str]]:
    """Write the zip, unless it would be empty. Raises CourseError if no feedback was written yet.

    Returns the number of students in it, and the students whose submissions did not come from this platform.
    """
    pages = sorted(folders.feedback.glob(f"*/{lesson}/{lesson}.html"))
    if not pages:
        raise CourseError(f"There is no feedback for {lesson} yet. Run `course grade {lesson} --feedback` first.")
    sources = read_sources(folders, lesson)
    count, unplaced = 0, []
    part = path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive, open_gradebook(folders) as gradebook:
            for page in pages:
                student = page.parts[-3]
                source = sources.get(student, Source("files"))
                if platform == "csv":
                    archive.write(page, f"{student}/{lesson}.html")
                elif source.platform != platform or not source.place:
                    unplaced.append(student)
                    continue
                elif platform in ("moodle", "brightspace"):
                    folder = source.place if source.place.endswith(" - ") else f"{source.place}/"
                    archive.write(page, f"{folder}{lesson}_feedback.html")
                else:
                    archive.writestr(source.place, _for_canvas(folders, gradebook, lesson, student, source.place, page))
                count += 1
        if count:
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return count, unplaced


def _for_canvas(folders: Folders, gradebook, lesson: str, student: str, place: str, page: Path) -> bytes:
    """Feedback in the format of the submission: a notebook, a zip with the feedback page, or else this page."""
    if place.lower().endswith(".zip"):
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(page, f"{lesson}_feedback.html")
        return whole.getvalue()
    if not place.lower().endswith(ENDINGS):
        return page.read_bytes()
    notebook = nbformat.read(folders.autograded_notebook(lesson, student), as_version=4)
    graded = gradebook.find_submission_notebook(lesson, lesson, student)
    points = {grade.name: grade for grade in graded.grades}
    comments = {comment.name: comment.comment for comment in graded.comments}
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        paragraphs = []
        if name in points:
            waits = points[name].needs_manual_grade and points[name].manual_score is None
            score = "not graded yet" if waits else plain_number(round(points[name].score, 2))
            paragraphs.append(f"**{score} of {plain_number(points[name].max_score)} points**")
        if comments.get(name):
            paragraphs.append(f"> {comments[name]}".replace("\n", "\n> "))
        if paragraphs:
            own = {"id": f"feedback-{len(cells)}", "metadata": {"tags": ["feedback"]}}
            cells.append(nbformat.v4.new_markdown_cell("\n\n".join(paragraphs), **own))
    notebook.cells = cells
    return nbformat.writes(notebook).encode()
