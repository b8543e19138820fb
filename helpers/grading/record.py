"""Writes what the judge found into nbgrader's gradebook, the autograded notebook and the result file.

For each submission the notebook is written first, then the gradebook in one transaction, then the result file. If the
grader is killed in between, it later grades this submission again, with the same inputs and therefore the same result.
"""

import base64
import errno
import hashlib
import json
import re
from dataclasses import asdict, dataclass, field

import nbformat
from nbformat import from_dict

from helpers.grading import nbgrader_insides
from helpers.grading.due import read_due
from helpers.grading.folders import Folders, write_atomically
from helpers.grading.merge_cells import merge_cells
from helpers.grading.pool import GradingStopped
from helpers.grading.safe_text import one_line
from helpers.grading.sanitize import PICTURES, as_code, clean_html, no_tex_links, safe_markdown
from helpers.grading.submission import Cell, Release, Submission, SubmissionReport

MOST_FLAGS = 60  # of one submission; a person has to read them
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
LARGEST_SOURCE = 100_000  # characters of a learner's cell on pages; the submission itself keeps all
LONGEST_SPACE, LONGEST_CHAIN = 80, 200  # characters of white space in a row; names joined by dots or asterisks
MOST_COLORS, COLOR = 1_000, re.compile("\x1b(?:\\[[0-9;]*+[@-~]?)?")  # escape sequences in one text
LARGEST_OUTPUT = 400_000  # characters of one text or picture in a learner's output


@dataclass
class Result:
    """The content of a submission's result file, for the class report and to recognize submissions that are finished.
    sha: hash of the submission. fingerprint: hash of everything that it was graded with."""

    student: str
    sha: str
    fingerprint: str
    points: dict[str, float]  # by exercise, bonus exercises excluded
    bonus: dict[str, float]  # by bonus exercise; its points are extra
    mistakes: dict[str, list[str]]  # exercise -> [name, label]
    flags: list[str]
    problem: str | None
    unsafe: bool
    again: bool = False  # the problem is the grader's, so the submission is graded again next time
    answers: dict[str, str] = field(default_factory=dict)  # grade_id -> digest of the answer that it grades
    changed: dict[str, float] = field(default_factory=dict)  # grade_id -> a person's points for an earlier answer
    failed: dict[str, list[str]] = field(default_factory=dict)  # exercise -> its failed parts


def read_result(folders: Folders, lesson: str, student: str) -> Result | None:
    """The result of an earlier run, or None if there is none or it cannot be read."""
    try:
        return Result(**json.loads(folders.result(lesson, student).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def unrecorded(student: str, problem: str) -> Result:
    """A result for a submission of which nothing could be recorded."""
    return Result(one_line(student, 60), "", "", {}, {}, {}, [], problem, False, True)


def answers_of(submission: Submission) -> dict[str, str]:
    """grade_id -> digest of the answer that this cell grades; empty if the submission has a problem."""
    if submission.problem:
        return {}
    parts: dict[str, list] = {}
    for cell in submission.cells:
        if cell.kind == "answer":
            parts.setdefault(f"check_{cell.exercise}", []).append(cell.source)
        elif cell.kind == "written":
            parts.setdefault(cell.grade_id, []).append([cell.source, cell.attachments])
    texts = {grade_id: json.dumps(part, sort_keys=True, default=str) for grade_id, part in parts.items()}
    return {name: hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16] for name, text in texts.items()}


class Recorder:
    """The only writer of a batch. Use as a context manager."""

    def __init__(self, folders: Folders, release: Release, fingerprint: str, unsafe: bool = False, config=None):
        self.folders, self.release, self.lesson = folders, release, release.lesson
        self.fingerprint, self.unsafe, self.config = fingerprint, unsafe, config

    def __enter__(self) -> "Recorder":
        from sqlalchemy.exc import SQLAlchemyError

        self.folders.gradebook.mkdir(parents=True, exist_ok=True)
        self.gradebook = nbgrader_insides.open_gradebook(self.folders)
        try:
            nbgrader_insides.register_lesson(self.gradebook, self.folders, self.lesson)
        except SQLAlchemyError as error:
            self.gradebook.close()
            raise nbgrader_insides.not_usable(self.folders, error) from None
        except BaseException:
            self.gradebook.close()
            raise
        return self

    def __exit__(self, *exc) -> None:
        self.gradebook.close()

    def finished(self, submission: Submission) -> bool:
        """Whether this same submission was already graded with the same fingerprint and completely recorded."""
        from nbgrader.api import MissingEntry

        result = read_result(self.folders, self.lesson, submission.student)
        if result is None or result.again or (result.sha, result.fingerprint) != (submission.sha, self.fingerprint):
            return False
        if not self.folders.autograded_notebook(self.lesson, submission.student).is_file():
            return False
        try:
            self.gradebook.find_submission(self.lesson, submission.student)
        except MissingEntry:
            return False
        return True

    def record(self, submission: Submission, graded: SubmissionReport | None) -> Result:
        """Write one submission. graded: None if it could not be judged. A submission that cannot be written waits for a
        person. Raises GradingStopped if nothing more can be written at all."""
        from sqlalchemy.exc import OperationalError

        try:
            return self._record(submission, graded)
        except Exception as error:
            self.gradebook.db.rollback()
            if isinstance(error, OperationalError) or getattr(error, "errno", None) in NO_ROOM:
                raise GradingStopped(
                    f"Stopped: nothing more can be written ({one_line(str(getattr(error, 'orig', error)), 150)}). "
                    "What was recorded so far stays; grade again when there is room."
                ) from None
            reason = f"{type(error).__name__}: {one_line(str(error), 100)}"
        submission.problem = f"This submission could not be recorded ({reason}); grade it by hand."
        submission.cells, submission.flags = merge_cells([], self.release, []), []
        submission.timestamp = None
        try:
            return self._record(submission, None)
        except Exception:
            self.gradebook.db.rollback()
            return unrecorded(submission.student, submission.problem)

    def _record(self, submission: Submission, graded: SubmissionReport | None) -> Result:
        notebook = finished_notebook(submission, graded, self.release)
        previous = read_result(self.folders, self.lesson, submission.student)
        self._write_notebook(submission, notebook)
        scores = graded.verdicts if graded else {}
        for cell in submission.cells:
            if cell.kind == "check" and cell.waits and cell.exercise in scores and scores[cell.exercise].passed:
                cell.waits = False
        points, bonus = {}, {}
        for exercise, worth in self.release.checks.items():
            score = scores.get(exercise)
            earned = score.points if score else 0.0
            (points if worth > 0 else bonus)[exercise] = min(earned, worth) if worth > 0 else earned
        flags = [*submission.flags, *(graded.flags if graded else [])]
        if len(flags) > MOST_FLAGS:
            flags = [*flags[:MOST_FLAGS], f"{len(flags) - MOST_FLAGS} more flags are left out"]
        result = Result(
            submission.student,
            submission.sha,
            self.fingerprint,
            points,
            bonus,
            {name: [score.mistake, score.label] for name, score in scores.items() if score.mistake},
            flags,
            submission.problem,
            self.unsafe,
            submission.again,
            answers_of(submission),
            dict(previous.changed) if previous else {},
            {name: list(score.failed) for name, score in scores.items() if score.failed},
        )
        self._write_gradebook(submission, notebook, result, previous)
        text = json.dumps(asdict(result), ensure_ascii=False, indent=1)
        write_atomically(self.folders.result(self.lesson, submission.student), text)
        return result

    def _write_notebook(self, submission: Submission, notebook) -> None:
        path = self.folders.autograded_notebook(self.lesson, submission.student)
        # On one line, because nbformat's indented format takes ten times as long.
        write_atomically(path, json.dumps(notebook, ensure_ascii=False) + "\n", mode=0o444)
        if submission.timestamp:
            write_atomically(path.parent / "timestamp.txt", submission.timestamp)

    def _write_gradebook(self, submission: Submission, notebook, result: Result, previous: Result | None) -> None:
        """Write the points. A person's points for an answer that has changed since move to `result.changed`."""
        from nbgrader import utils

        timestamp = {"timestamp": submission.timestamp} if submission.timestamp else {}
        with nbgrader_insides.one_commit(self.gradebook):
            self.gradebook.update_or_create_student(submission.student)
            entry = self.gradebook.update_or_create_submission(self.lesson, submission.student, **timestamp)
        recorded = next(n for n in entry.notebooks if n.name == self.lesson)
        grades = {grade.name: grade for grade in recorded.grades}
        comments = {comment.name: comment for comment in recorded.comments}
        waiting = {cell.grade_id for cell in submission.cells if cell.waits}
        for cell in notebook.cells:
            grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
            if utils.is_grade(cell):
                score, _ = utils.determine_grade(cell)
                score = None if grade_id in waiting or submission.problem is not None else score
                same_answer = self._is_same_answer(grades[grade_id], score, cell.cell_type, result, previous)
                _write_grade(grades[grade_id], score, same_answer, result, previous)
            if utils.is_solution(cell) and grade_id in comments:
                blank = cell.metadata.nbgrader.get("checksum") == utils.compute_checksum(cell)
                comments[grade_id].auto_comment = "No response." if blank and grade_id not in waiting else None
        recorded.late_submission_penalty = None
        if read_due(self.folders, self.gradebook, self.lesson).late(entry.total_seconds_late):
            nbgrader_insides.assign_late_penalty(
                self.gradebook, self.folders, self.lesson, submission.student, notebook, self.config
            )
        self.gradebook.db.commit()

    def _is_same_answer(self, grade, score, cell_type: str, result: Result, previous: Result | None) -> bool:
        """Whether the cell still grades the same answer as when this student was last recorded."""
        if previous is None:
            return True
        if previous.fingerprint == self.fingerprint and cell_type == "code" and score != grade.auto_score:
            return False  # something that the answer calls may have changed
        if previous.answers and result.answers:
            return previous.answers.get(grade.name) == result.answers.get(grade.name)
        return previous.sha == result.sha  # one of them could not be read, or an older grader wrote the result


def _write_grade(grade, score: float | None, same_answer: bool, result: Result, previous: Result | None) -> None:
    """Write the automatic score, or a bonus exercise's extra credit; keep a person's points for the same answer."""
    grade.auto_score = score
    if grade.manual_score is not None and not same_answer:
        result.changed[grade.name], grade.manual_score = grade.manual_score, None
    elif grade.manual_score is not None:
        result.changed.pop(grade.name, None)
    grade.needs_manual_grade = grade.manual_score is None and (score is None or grade.name in result.changed)
    exercise = grade.name.removeprefix("check_")
    if exercise in result.bonus:
        is_automatic = grade.extra_credit in (None, 0.0, previous.bonus.get(exercise) if previous else None)
        if not is_automatic and not same_answer:
            result.changed[grade.name], grade.needs_manual_grade = grade.extra_credit, True
        if is_automatic or not same_answer:
            grade.extra_credit = result.bonus[exercise] or None


def finished_notebook(submission: Submission, graded: SubmissionReport | None, release: Release):
    """The autograded notebook: the learner's cells and outputs, and the pristine check cells with report and points.

    A check cell's last output is always a number, because nbgrader gives full points to a check cell without output.
    """
    cells = [_notebook_cell(cell, graded, release) for cell in submission.cells]
    if submission.problem:
        note = f"**This submission was not graded automatically.** {safe_markdown(submission.problem)}"
        cells.insert(0, {"cell_type": "markdown", "id": "problem", "metadata": {}, "source": note})
    metadata = {key: release.metadata[key] for key in ("kernelspec", "language_info") if key in release.metadata}
    notebook = from_dict({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})
    nbformat.validate(notebook)
    return notebook


# Not nbformat's functions for new cells and outputs: they validate each one, which takes half the time of recording.
def _notebook_cell(cell: Cell, graded: SubmissionReport | None, release: Release) -> dict:
    fields = {"cell_type": "code", "id": cell.id, "metadata": cell.metadata if cell.grade_id else {}}
    if cell.kind == "check":
        return {**fields, "source": cell.source, "execution_count": None, "outputs": _check_outputs(cell, graded)}
    if cell.kind in ("code", "answer"):
        ran = graded.outputs if graded else {}
        outputs = [safe for output in ran.get(cell.id, []) if (safe := safe_output(output))]
        if cell.kind == "code" and cell.id not in ran:
            outputs = release.shown.get(cell.source, [])
        return {**fields, "source": _shown(cell.source), "execution_count": None, "outputs": outputs}
    if cell.kind == "raw" and cell.trusted:
        return {**fields, "cell_type": "raw", "source": cell.source}
    fields["cell_type"] = "markdown"
    if cell.kind == "raw":  # pages show a raw cell unchanged
        return {**fields, "source": as_code(cell.source)}
    if attachments := _pictures_only(cell.attachments):
        fields["attachments"] = attachments
    return {**fields, "source": cell.source if cell.trusted else safe_markdown(cell.source, attachments)}


def _shown(source: str) -> str:
    """A learner's code for pages. Long white space is shortened and long chains `a.b.c` are split, because highlighting
    takes quadratic time in their length."""
    if len(source) > LARGEST_SOURCE:
        source = source[:LARGEST_SOURCE] + "\n# ... (cut; the submission has all of it)"
    source = re.sub(r"\s++", lambda match: match[0][:LONGEST_SPACE], source)
    return re.sub(r"[\w.*]{400,}+", _with_spaces, source)


def _with_spaces(chain: re.Match) -> str:
    """A chain of names with a space after every LONGEST_CHAIN of them."""
    links = re.findall(r"[^.*]*+[.*]|[^.*]++", chain[0])
    return " ".join("".join(links[i : i + LONGEST_CHAIN]) for i in range(0, len(links), LONGEST_CHAIN))


def _check_outputs(cell: Cell, graded: SubmissionReport | None) -> list:
    worth = float(cell.metadata["nbgrader"]["points"])
    if graded is None:
        points, data = 0.0, {"text/plain": f"{cell.exercise}: not graded automatically"}
    else:
        score = graded.verdicts[cell.exercise]
        points = min(max(score.points, 0.0), worth)  # 0 for a bonus exercise, which earns extra credit
        data = {"text/plain": score.text, "text/html": no_tex_links(score.html)}
    number = {"output_type": "execute_result", "data": {"text/plain": plain_number(points)}, "execution_count": None}
    return [{"output_type": "display_data", "metadata": {}, "data": data}, {**number, "metadata": {}}]


def plain_number(points: float) -> str:
    """Points in a form that nbgrader parses reliably: 12 or 12.5."""
    points = float(points)
    return str(int(points)) if points == int(points) else repr(points)


def safe_output(output: dict) -> dict | None:
    """A learner's output reduced to text, pictures and sanitized HTML; None if nothing of it remains."""
    kind = output.get("output_type")
    if kind == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        return {"output_type": "stream", "name": name, "text": _short(output.get("text"))}
    if kind == "error":
        error = {key: _short(output.get(key)) for key in ("ename", "evalue")}
        lines = output.get("traceback")
        return {"output_type": "error", **error, "traceback": [*map(_short, lines if isinstance(lines, list) else [])]}
    if kind not in ("display_data", "execute_result") or not isinstance(output.get("data"), dict):
        return None
    data = {}
    for mime, value in output["data"].items():
        if mime == "text/plain":
            data[mime] = _short(value)
        elif mime == "text/html" and len(text := joined(value)) <= LARGEST_OUTPUT:
            data[mime] = clean_html(text)
        elif mime in PICTURES and (picture := _picture(value)):
            data[mime] = picture
    return {"output_type": "display_data", "metadata": {}, "data": data} if data else None


def joined(value) -> str:
    """An output's text, which may be a list of lines in the file, as one string that can be written as UTF-8."""
    text = "".join(str(part) for part in value) if isinstance(value, list) else str(value if value is not None else "")
    return text.encode("utf-8", "replace").decode("utf-8")


def _short(value) -> str:
    """A text for pages, not too long, and without colors if it has many, because each copies the rest of the text."""
    text = joined(value)
    if text.count("\x1b") > MOST_COLORS:
        text = COLOR.sub("", text)
    return text if len(text) <= LARGEST_OUTPUT else text[:LARGEST_OUTPUT] + "\n... (cut)"


def _picture(value) -> str | None:
    text = re.sub(r"\s", "", joined(value))
    if len(text) > 10 * LARGEST_OUTPUT:
        return None
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return text


def _pictures_only(attachments: dict) -> dict:
    allowed = {}
    for name, bundle in attachments.items():
        kept = {mime: _picture(bundle[mime]) for mime in PICTURES if isinstance(bundle, dict) and mime in bundle}
        if pictures := {mime: picture for mime, picture in kept.items() if picture}:
            allowed[joined(name)] = pictures
    return allowed
