"""One writer puts what the judge found into nbgrader's gradebook, the autograded notebook and the result file.

For each submission the notebook is written first, then the gradebook in one transaction, then the result file: a
grader that is killed anywhere in between grades this submission again, with the same inputs, and finds the same.
"""

from __future__ import annotations

import base64
import json
import os
import re
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell

from helpers.grading.folders import Folders
from helpers.grading.intake import IntakeCell, Release, Submission
from helpers.grading.judges import Graded, GradingStopped

LARGEST_OUTPUT = 400_000  # characters of one text or picture kept from a learner's output
PICTURES = ("image/png", "image/jpeg", "image/gif")
SVG_TAGS = ("data:image/svg+xml,", "data:image/svg+xml;base64,")  # in an <img>, where it runs nothing and loads nothing


@dataclass
class Result:
    """One submission's result file: what the class report is made of, and how a finished submission is known."""

    student: str
    sha: str
    fingerprint: str
    points: dict[str, float]  # by exercise; a bonus exercise's points are on top
    bonus: dict[str, float]
    mistakes: dict[str, list[str]]  # exercise -> [name, label]
    flags: list[str]
    problem: str | None
    unsafe: bool


def read_result(folders: Folders, lesson: str, student: str) -> Result | None:
    """The result of an earlier run, or None where there is none that can be read."""
    try:
        return Result(**json.loads(folders.result(lesson, student).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """The whole file or nothing, whenever the process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        if os.path.exists(name):
            os.unlink(name)
        raise


class Recorder:
    """The one writer of a batch. Use as a context manager."""

    def __init__(self, folders: Folders, release: Release, fingerprint: str, unsafe: bool = False, config=None):
        self.folders, self.release, self.lesson = folders, release, release.lesson
        self.fingerprint, self.unsafe, self.config = fingerprint, unsafe, config

    def __enter__(self) -> Recorder:
        from nbgrader.api import Gradebook

        self.folders.gradebook.mkdir(parents=True, exist_ok=True)
        self.gradebook = Gradebook(self.folders.db_url, self.folders.course_id)
        try:
            self._announce()
        except BaseException:
            self.gradebook.close()
            raise
        return self

    def __exit__(self, *exc) -> None:
        self.gradebook.close()

    def finished(self, submission: Submission) -> bool:
        """Whether exactly this submission was graded against exactly this lesson and all of it was kept."""
        from nbgrader.api import MissingEntry

        result = read_result(self.folders, self.lesson, submission.student)
        if result is None or (result.sha, result.fingerprint) != (submission.sha, self.fingerprint):
            return False
        if not self.folders.autograded_notebook(self.lesson, submission.student).is_file():
            return False
        try:
            self.gradebook.find_submission(self.lesson, submission.student)
        except MissingEntry:
            return False
        return True

    def record(self, submission: Submission, graded: Graded | None) -> Result:
        """Write one submission. graded: None where the submission has a `problem`."""
        notebook = finished_notebook(submission, graded, self.release)
        before = read_result(self.folders, self.lesson, submission.student)
        self._write_notebook(submission, notebook)
        scores = graded.scores if graded else {}
        points, bonus = {}, {}
        for exercise, worth in self.release.checks.items():
            score = scores.get(exercise)
            earned = score.points if score else 0.0
            (points if worth > 0 else bonus)[exercise] = min(earned, worth) if worth > 0 else earned
        self._write_gradebook(submission, notebook, bonus, before)
        result = Result(
            submission.student,
            submission.sha,
            self.fingerprint,
            points,
            bonus,
            {name: [s.mistake, s.label] for name, s in scores.items() if s.mistake},
            [*submission.flags, *(graded.flags if graded else [])],
            submission.problem,
            self.unsafe,
        )
        text = json.dumps(asdict(result), ensure_ascii=False, indent=1)
        write_atomically(self.folders.result(self.lesson, submission.student), text)
        return result

    def _announce(self) -> None:
        """Put the lesson's cells into the gradebook, as `nbgrader generate_assignment` does."""
        from nbgrader.preprocessors import SaveCells

        self.gradebook.update_or_create_assignment(self.lesson)
        notebook = nbformat.read(self.folders.notebook(self.lesson), as_version=4)
        resources = {"nbgrader": {"notebook": self.lesson, "assignment": self.lesson, "db_url": self.folders.db_url}}
        try:
            SaveCells().preprocess(notebook, resources)
        except RuntimeError as error:
            raise GradingStopped(
                f"The graded cells of {self.lesson} are no longer those that the gradebook knows, and there are "
                f"submissions to the old ones ({error}). Grade with the released version, or start a new gradebook."
            ) from None
        self.gradebook.db.expire_all()

    def _write_notebook(self, submission: Submission, notebook) -> None:
        path = self.folders.autograded_notebook(self.lesson, submission.student)
        write_atomically(path, nbformat.writes(notebook) + "\n", mode=0o444)
        if submission.timestamp:
            write_atomically(path.parent / "timestamp.txt", submission.timestamp)

    def _write_gradebook(self, submission: Submission, notebook, bonus: dict[str, float], before: Result | None):
        from nbgrader import utils

        facts = {"timestamp": submission.timestamp} if submission.timestamp else {}
        self.gradebook.update_or_create_student(submission.student)
        with self.gradebook.db.no_autoflush:
            handed_in = self.gradebook.update_or_create_submission(self.lesson, submission.student, **facts)
        recorded = next(n for n in handed_in.notebooks if n.name == self.lesson)
        grades = {grade.name: grade for grade in recorded.grades}
        comments = {comment.name: comment for comment in recorded.comments}
        for cell in notebook.cells:
            grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
            if utils.is_grade(cell):
                grade = grades[grade_id]
                grade.auto_score, _ = utils.determine_grade(cell)
                # as nbgrader's SaveAutoGrades: a person's score stays, and is looked at again
                grade.needs_manual_grade = (
                    grade.manual_score is not None or grade.auto_score is None or submission.problem is not None
                )
                exercise = grade_id.removeprefix("check_")
                if exercise in bonus and grade.extra_credit in (None, (before.bonus.get(exercise) if before else None)):
                    grade.extra_credit = bonus[exercise] or None
            if utils.is_solution(cell) and grade_id in comments:
                blank = cell.metadata.nbgrader.get("checksum") == utils.compute_checksum(cell)
                comments[grade_id].auto_comment = "No response." if blank else None
        self.gradebook.db.commit()
        recorded.late_submission_penalty = None
        if handed_in.total_seconds_late > 0:
            self._penalty(submission, notebook)
        self.gradebook.db.commit()

    def _penalty(self, submission: Submission, notebook) -> None:
        """Whatever late policy the teacher's configuration names."""
        from nbgrader.preprocessors import AssignLatePenalties

        resources = {
            "nbgrader": {
                "notebook": self.lesson,
                "assignment": self.lesson,
                "student": submission.student,
                "db_url": self.folders.db_url,
            }
        }
        self.gradebook.db.commit()
        AssignLatePenalties(config=self.config).preprocess(notebook, resources)
        self.gradebook.db.expire_all()


def finished_notebook(submission: Submission, graded: Graded | None, release: Release):
    """The autograded notebook: the learner's cells and outputs, the pristine check cells with report and points.

    A check cell always ends in a plain number: nbgrader reads one without output as full marks.
    """
    cells = []
    if submission.problem:
        note = f"**This submission needs a person.** {_no_tags(submission.problem)}"
        cells.append(new_markdown_cell(note, id="problem"))
    for cell in submission.cells:
        cells.append(_notebook_cell(cell, graded, release))
    notebook = new_notebook(cells=cells, metadata=_release_metadata(release))
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def _release_metadata(release: Release) -> dict:
    return {key: release.metadata[key] for key in ("kernelspec", "language_info") if key in release.metadata}


def _notebook_cell(cell: IntakeCell, graded: Graded | None, release: Release):
    metadata = cell.metadata if cell.grade_id else {}
    if cell.kind == "check":
        made = new_code_cell(cell.source, metadata=metadata, id=cell.id)
        made.outputs = _check_outputs(cell, graded)
    elif cell.kind in ("code", "answer"):
        made = new_code_cell(cell.source, metadata=metadata, id=cell.id)
        if cell.kind == "code" and cell.source in release.shown:
            made.outputs = [nbformat.from_dict(output) for output in release.shown[cell.source]]
        else:
            outputs = graded.outputs.get(cell.id, []) if graded else []
            made.outputs = [safe for output in outputs if (safe := safe_output(output))]
    elif cell.kind == "raw":
        made = new_raw_cell(cell.source, metadata=metadata, id=cell.id)
    else:
        source = cell.source if cell.trusted else _no_tags(cell.source)
        made = new_markdown_cell(source, metadata=metadata, id=cell.id)
        if attachments := _pictures_only(cell.attachments):
            made.attachments = attachments
    return made


def _check_outputs(cell: IntakeCell, graded: Graded | None) -> list:
    worth = float(cell.metadata["nbgrader"]["points"])
    if graded is None:
        points, data = 0.0, {"text/plain": f"{cell.name}: not graded by the machine"}
    else:
        score = graded.scores[cell.name]
        points = min(max(score.points, 0.0), worth)  # a bonus exercise is worth 0 here and earns extra credit
        data = {"text/plain": score.text, "text/html": score.html}
    return [
        new_output("display_data", data=data),
        new_output("execute_result", data={"text/plain": plain_number(points)}, execution_count=None),
    ]


def plain_number(points: float) -> str:
    """Points as nbgrader reads them without a doubt: 12 or 12.5."""
    points = float(points)
    return str(int(points)) if points == int(points) else repr(points)


def safe_output(output: dict):
    """A learner's output as text, pictures and harmless HTML only; None if nothing is left of it."""
    kind = output.get("output_type")
    if kind == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        return new_output("stream", name=name, text=_short(output.get("text")))
    if kind == "error":
        return new_output(
            "error",
            ename=_short(output.get("ename")),
            evalue=_short(output.get("evalue")),
            traceback=[_short(line) for line in _list(output.get("traceback"))],
        )
    if kind not in ("display_data", "execute_result") or not isinstance(output.get("data"), dict):
        return None
    data = {}
    for mime, value in output["data"].items():
        if mime == "text/plain":
            data[mime] = _short(value)
        elif mime == "text/html" and len(text := _joined(value)) <= LARGEST_OUTPUT:
            data[mime] = clean_html(text)
        elif mime in PICTURES and (picture := _picture(value)):
            data[mime] = picture
    return new_output("display_data", data=data) if data else None


def _list(value) -> list:
    return value if isinstance(value, list) else []


def _joined(value) -> str:
    text = "".join(str(part) for part in value) if isinstance(value, list) else str(value if value is not None else "")
    return text.encode("utf-8", "replace").decode("utf-8")


def _short(value) -> str:
    text = _joined(value)
    return text if len(text) <= LARGEST_OUTPUT else text[:LARGEST_OUTPUT] + "\n... (cut)"


def _picture(value) -> str | None:
    text = re.sub(r"\s", "", _joined(value))
    if len(text) > 10 * LARGEST_OUTPUT:
        return None
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return text


def _pictures_only(attachments: dict) -> dict:
    kept = {}
    for name, bundle in attachments.items():
        if isinstance(bundle, dict):
            pictures = {mime: p for mime, value in bundle.items() if mime in PICTURES and (p := _picture(value))}
            if pictures:
                kept[str(name)] = pictures
    return kept


def _no_tags(markdown: str) -> str:
    """Markdown in which no HTML tag can begin: `<` is followed by a space, which reads the same in text and in math."""
    return re.sub(r"<(?=[A-Za-z/!?])", "< ", markdown)


TAGS = {
    "a",
    "abbr",
    "b",
    "blockquote",
    "br",
    "caption",
    "code",
    "details",
    "div",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "img",
    "li",
    "ol",
    "p",
    "pre",
    "s",
    "small",
    "span",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "u",
    "ul",
}
STYLES = {
    "background-color",
    "border-collapse",
    "color",
    "font-family",
    "font-size",
    "font-weight",
    "max-width",
    "padding",
    "text-align",
    "white-space",
}


def clean_html(html: str) -> str:
    """A learner's HTML without anything that runs, loads or poses as part of the page around it."""
    import bleach
    from bleach.css_sanitizer import CSSSanitizer

    def allowed(tag: str, name: str, value: str) -> bool:
        if tag == "img" and name == "src":
            return value.startswith((*(f"data:{mime};base64," for mime in PICTURES), *SVG_TAGS))
        if tag == "a" and name == "href":
            return value.startswith(("https://", "http://", "#"))
        return name in ("alt", "title", "colspan", "rowspan", "width", "height", "style")

    return bleach.clean(
        html,
        tags=TAGS,
        attributes=allowed,
        protocols={"http", "https", "data"},
        strip=True,
        css_sanitizer=CSSSanitizer(allowed_css_properties=STYLES),
    )
