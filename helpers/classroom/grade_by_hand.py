"""`course hand LESSON`: grade a lesson's written question by hand, with all answers of the class on one web page.

The page is served to this computer only. Points and comments go into nbgrader's own gradebook, from which Formgrader,
`course grade`, the report and the feedback pages read them.
"""

import argparse
import contextlib
import hashlib
import json
import math
import re
import secrets
import threading
import webbrowser
from collections import Counter
from dataclasses import asdict, dataclass, replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from helpers.grading.class_scores import alphabetical, called, full_name
from helpers.grading.folders import Folders, load
from helpers.grading.grade import write_pages
from helpers.grading.lesson_release import course_release
from helpers.grading.nbgrader_insides import open_gradebook
from helpers.grading.notebook_page import as_html
from helpers.grading.pool import GradingStopped
from helpers.grading.record import read_result
from helpers.grading.safe_text import one_line, template
from helpers.grading.sanitize import safe_markdown

LARGEST = 100_000  # bytes of one request from the page
LONGEST = 5_000  # characters of a comment
# How lessons write an item of a marking scheme: `| text | 4 |`, `| 4 | text |`, `4: text.` or `text (4),`.
ITEMS = [
    re.compile(r"^\| *(?P<text>.+?) *\| *(?P<points>[\d.]+) *\|$", re.MULTILINE),
    re.compile(r"^\| *(?P<points>[\d.]+) *\| *(?P<text>.+?) *\|$", re.MULTILINE),
    re.compile(r"(?:^|(?<=\s))(?P<points>\d+):\s(?P<text>.+?)(?=\s(?:- )?\d+:\s|\Z)", re.DOTALL),
    re.compile(r"(?P<text>[^()]+(?:\([^\d()][^()]*\)[^()]*)*)\((?P<points>\d+)\)"),
]
SCHEME = re.compile(r"marking scheme\b", re.IGNORECASE)
POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; connect-src 'self'; script-src 'nonce-{nonce}'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY"}
HEADERS |= {"X-Content-Type-Options": "nosniff"}


class Refused(Exception):
    """A request of the page that cannot be fulfilled. The message is a sentence for the teacher."""


@dataclass(frozen=True)
class Answer:
    """One student's answer. called: the student's name and id. html: sanitized. points: a person's, or None. was: a
    person's points for an earlier version of the answer. digest: identifies the version of the answer, so that points
    only go to the version that was read."""

    student: str
    called: str
    html: str
    points: float | None
    comment: str
    was: float | None
    digest: str


@dataclass(frozen=True)
class Item:
    """One item of the marking scheme. text: for comments. html: sanitized."""

    worth: float
    text: str
    html: str


@dataclass(frozen=True)
class Question:
    """A question with all its answers. text and scheme: sanitized HTML. items: of the scheme, or [] if their points
    don't add up to the points of the question. blank: the number of students without an answer, who got 0 points from
    nbgrader. unread: the number of unreadable submissions."""

    lesson: str
    name: str
    worth: float
    text: str
    scheme: str
    items: list[Item]
    answers: list[Answer]
    blank: int
    unread: int

    @property
    def reasons(self) -> list[str]:
        """The lines of all comments so far, most common first, without the items of the marking scheme."""
        lines = Counter(line.strip() for answer in self.answers for line in answer.comment.splitlines() if line.strip())
        items = {item.text for item in self.items}
        return [line for line, _ in lines.most_common() if line.partition(": ")[2] not in items]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", metavar="LESSON", help="such as 04_scaling")
    parser.add_argument("--gradebook", metavar="FOLDER", help="another class's folder (default: gradebook)")
    parser.add_argument("--anonymous", action="store_true", help="hide names and ids, and shuffle the answers")
    parser.add_argument("--no-browser", action="store_true", help="print the page's address and open nothing")


def run(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl+C or its Done button; then write the report and the feedback pages again."""
    folders, config = load(args.gradebook)
    lesson = folders.lesson(args.lesson)
    read_question(folders, lesson)
    with serving(folders, lesson, args.anonymous) as (server, address):
        print(f"Grading {lesson} by hand: {address}")
        print("Each change is saved at once. Done, or Ctrl+C, ends it.", flush=True)
        if not args.no_browser:
            webbrowser.open(address)
        with contextlib.suppress(KeyboardInterrupt):
            server.done.wait()
    report = write_pages(folders, config, lesson)
    count = report.written_waiting
    waits = f"{count} still {'waits' if count == 1 else 'wait'}"
    print(f"{waits if count else 'All are graded'}; the report has your points.")
    return 0


def read_question(folders: Folders, lesson: str) -> Question:
    """Read the lesson's written question and all answers. Raises GradingStopped without a question or answers."""
    release = course_release(folders.executed(lesson))
    if not release.written:
        raise GradingStopped(f"{lesson} has no written question; all of it is graded by `course grade {lesson}`.")
    name = next(iter(release.written))
    answers, blank, unread = _answers(folders, lesson, name)
    if not answers and not blank:
        raise GradingStopped(f"No answer of {lesson} can be read yet. Run `course grade {lesson}` first.")
    text, scheme = release.above[name], release.solved[name]
    items = scheme_items(scheme, release.written[name])
    shown = as_html(text), as_html(scheme).replace("<details", "<details open")
    return Question(lesson, name, release.written[name], *shown, items, answers, blank, unread)


def _answers(folders: Folders, lesson: str, name: str) -> tuple[list[Answer], int, int]:
    """The answers to a question in the order of the students' names, and the numbers of blank and unreadable ones."""
    from nbgrader import api

    answers, blank, unread = [], 0, 0
    with open_gradebook(folders) as gradebook:
        try:
            handed_in = gradebook.assignment_submissions(lesson)
        except api.MissingEntry:
            handed_in = []
        for person in sorted((submission.student for submission in handed_in), key=alphabetical):
            result = read_result(folders, lesson, person.id)
            if result is None or result.problem:
                unread += 1
                continue
            grade = gradebook.find_grade(name, lesson, lesson, person.id)
            if grade.manual_score is None and not grade.needs_manual_grade:
                blank += 1
                continue
            comment = gradebook.find_comment(name, lesson, lesson, person.id).manual_comment or ""
            was = result.changed.get(name) if grade.manual_score is None else None
            shown = _answer(folders.autograded_notebook(lesson, person.id), name)
            facts = (shown, grade.manual_score, comment, was, result.answers.get(name, ""))
            answers.append(Answer(person.id, called(person.id, full_name(person)), *facts))
    return answers, blank, unread


def without_names(question: Question, secret: str) -> tuple[Question, dict[str, str]]:
    """Replace names and ids by numbers, and shuffle the answers (always in the same order for the same secret).

    Returns the question, and a mapping from each number to the student.
    """

    def pseudonym(answer: Answer) -> str:
        return hashlib.sha256(f"{secret} {answer.student}".encode("utf-8", "replace")).hexdigest()

    answers = sorted(question.answers, key=pseudonym)
    hidden = [replace(old, student=pseudonym(old)[:12], called=f"Answer {i}") for i, old in enumerate(answers, 1)]
    students = {new.student: old.student for new, old in zip(hidden, answers, strict=True)}
    return replace(question, answers=hidden), students


def scheme_items(scheme: str, worth: float) -> list[Item]:
    """Parse the items of a marking scheme, which is Markdown. [] if their points don't add up to `worth`."""
    text = SCHEME.split(scheme)[-1].partition("</details>")[0]
    text = re.sub(r"\A[^\n]*?\*\*", "", text)
    for form in ITEMS:
        items = [(float(item["points"]), " ".join(item["text"].split()).strip(" .,;:")) for item in form.finditer(text)]
        if items and math.isclose(sum(points for points, _ in items), worth):
            return [Item(*item, as_html(item[1]).strip().removeprefix("<p>").removesuffix("</p>")) for item in items]
    return []


def _answer(path: Path, name: str) -> str:
    """A learner's answer as HTML. It is sanitized again, because someone may have edited the recorded file."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == name:
            attached = cell.get("attachments", {})
            return as_html(safe_markdown("".join(cell["source"]), attached), attached)
    return ""


def save(folders: Folders, lesson: str, name: str, change: dict) -> None:
    """Write one answer's points and comment as Formgrader does. change: student, points (None to leave it ungraded),
    comment, digest. Raises Refused if the change is invalid, or if the answer is not the version that was read."""
    from nbgrader import api

    student, points, comment = (change.get(key) for key in ("student", "points", "comment"))
    result = read_result(folders, lesson, student) if isinstance(student, str) and "/" not in student else None
    if result is None or not isinstance(comment, str) or len(comment) > LONGEST:
        raise Refused("This could not be saved: no such answer, or a comment that is too long.")
    if result.answers.get(name, "") != change.get("digest"):
        raise Refused("This answer was submitted again and graded in the meantime. Load the page again to read it.")
    with api.Gradebook(folders.db_url, folders.course_id) as gradebook:
        try:
            grade = gradebook.find_grade(name, lesson, lesson, student)
        except api.MissingEntry:
            raise Refused("This could not be saved: the gradebook has no such answer.") from None
        if points is not None:
            number = isinstance(points, (int, float)) and not isinstance(points, bool) and math.isfinite(points)
            if not number or not 0 <= points <= grade.max_score:
                raise Refused(f"Points go from 0 to {grade.max_score:g}.")
        grade.manual_score = points
        grade.needs_manual_grade = points is None and (grade.auto_score is None or name in result.changed)
        gradebook.find_comment(name, lesson, lesson, student).manual_comment = comment.strip() or None
        gradebook.db.commit()


class Server(ThreadingHTTPServer):
    """Serves the page of one lesson on the loopback address, to those who know the token.

    anonymous: hide names and ids.
    """

    daemon_threads = True

    def __init__(self, folders: Folders, lesson: str, anonymous: bool = False):
        self.folders, self.lesson, self.anonymous = folders, lesson, anonymous
        self.pseudonyms: dict[str, str] = {}  # pseudonym on an anonymous page -> student
        self.token, self.done, self.writing = secrets.token_urlsafe(16), threading.Event(), threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def page(self) -> tuple[str, str]:
        """The page, and the nonce of its script."""
        question = read_question(self.folders, self.lesson)
        if self.anonymous:
            question, pseudonyms = without_names(question, self.token)
            self.pseudonyms |= pseudonyms
        return as_page(question)

    def save(self, question: str, change: dict) -> None:
        """Write a change that the page sent. Raises Refused."""
        if self.anonymous:
            change["student"] = self.pseudonyms.get(str(change.get("student")))
        with self.writing:
            save(self.folders, self.lesson, question, change)


@contextlib.contextmanager
def serving(folders: Folders, lesson: str, anonymous: bool = False):
    """Serve the page until the end of the `with` block. Yields the server and the page's address."""
    with Server(folders, lesson, anonymous) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            yield server, f"http://{server.host}/{server.token}/"
        finally:
            server.shutdown()


class Handler(BaseHTTPRequestHandler):
    """GET /TOKEN/: the page. POST /TOKEN/QUESTION: save. POST /TOKEN/: done."""

    server: Server

    def do_GET(self) -> None:
        if self._path_after_token() is None:
            return
        try:
            page, nonce = self.server.page()
        except GradingStopped as stopped:
            self._reply(HTTPStatus.NOT_FOUND, str(stopped))
        else:
            self._reply(HTTPStatus.OK, page, "text/html", {"Content-Security-Policy": POLICY.format(nonce=nonce)})

    def do_POST(self) -> None:
        question = self._path_after_token()
        if question is None:
            return
        if not question:
            self._reply(HTTPStatus.OK, "")
            self.server.done.set()
            return
        try:
            size = int(self.headers.get("Content-Length") or 0)
            change = json.loads(self.rfile.read(size)) if size <= LARGEST else None
            if not isinstance(change, dict):
                raise Refused("This could not be saved: it is too long, or no change at all.")
            self.server.save(question, change)
        except (Refused, ValueError) as refused:
            self._reply(HTTPStatus.BAD_REQUEST, str(refused))
        except Exception as error:  # for example, a locked gradebook; the page keeps the input
            reason = one_line(str(getattr(error, "orig", error)), 150)
            self._reply(HTTPStatus.INTERNAL_SERVER_ERROR, f"This could not be saved ({reason}). Try again.")
        else:
            self._reply(HTTPStatus.OK, "")

    def _path_after_token(self) -> str | None:
        """The path after the token. If the token or the host is wrong, sends a reply and returns None."""
        token, _, rest = self.path.removeprefix("/").partition("/")
        authorized = secrets.compare_digest(token.encode(), self.server.token.encode())
        if authorized and self.headers.get("Host") == self.server.host:
            return rest
        self._reply(HTTPStatus.NOT_FOUND, "Not here.")
        return None

    def _reply(self, status: HTTPStatus, text: str, kind: str = "text/plain", extra: dict | None = None) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body)), **HEADERS}
        for name, value in (headers | (extra or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments) -> None:
        """Log nothing, so that the terminal stays quiet."""


def as_page(question: Question) -> tuple[str, str]:
    """The page, and the nonce of its one script."""
    nonce, answers = secrets.token_urlsafe(12), [asdict(answer) for answer in question.answers]
    for answer in answers:
        del answer["html"], answer["called"]
    facts = {"question": question, "answers": answers, "items": list(map(asdict, question.items)), "nonce": nonce}
    return template("grade_by_hand.html.jinja", "helpers.classroom").render(facts), nonce
