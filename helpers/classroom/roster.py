"""Who is in the class: lists of a platform, as nbgrader's gradebook keeps them, and which of them handed something in.

Known are nbgrader's own list (`nbgrader db student import`: id, first_name, last_name, email, lms_user_id), Moodle's
grading worksheet and list of participants, Canvas's and Brightspace's exported gradebook, Gradescope's roster.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from helpers.classroom.platforms import HandIn, local_time
from helpers.errors import CourseError
from helpers.grading.intake import name_problem
from helpers.grading.nbgrader_insides import one_commit
from helpers.grading.safe_text import one_line

# Headings, in small letters; the first that is there and filled counts.
STUDENT = ("username", "sis login id", "email address", "email", "sid", "id number", "orgdefinedid", "sis user id")
FIRST = ("first_name", "first name")
LAST = ("last_name", "last name", "surname")
NAME = ("full name", "student", "name")
EMAIL = ("email", "email address", "e-mail", "e-mail address")
MOODLE_TIME = "%A, %d %B %Y, %I:%M %p"
LONGEST = 128  # characters of a fact in nbgrader's tables: SQLite takes more, PostgreSQL does not
NOBODY = re.compile(r"\s*(points possible|student, test|test student)\s*")


@dataclass(frozen=True)
class Person:
    """One student. student: the name of folder and gradebook; platform_id: the platform's own, for all lessons.

    participant: Moodle's number in one assignment. submitted: when something was handed in there, in UTC.
    """

    student: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    platform_id: str = ""
    participant: str = ""
    submitted: datetime | None = None

    @property
    def names(self) -> set[str]:
        """The ways in which platforms write the name, without spaces and case."""
        first, last = _squeezed(self.first_name), _squeezed(self.last_name)
        return {first + last, last + first} if first + last else {_squeezed(self.student)}


def read_roster(path: Path) -> list[Person]:
    """The students of a list. CourseError where it cannot be read, or where two lines are the same student."""
    try:
        text = _decoded(path.read_bytes())
    except OSError as error:
        raise CourseError(f"The roster {path} cannot be read: {error.strerror}.") from None
    try:
        form = csv.Sniffer().sniff(text[:4000].split("\n")[0], ",;\t")
    except csv.Error:
        form = csv.excel
    people = []
    for row in csv.DictReader(io.StringIO(text, newline=""), dialect=form):
        cells = {(key or "").strip().lower(): value.strip() for key, value in row.items() if isinstance(value, str)}
        if any(cells.values()) and not NOBODY.fullmatch(_first(cells, NAME).lower()):
            people.append(_person(cells))
    if not people or not all(one.student for one in people):
        raise CourseError(
            f"{path} is no roster that can be read: it needs a heading, and in each line one of "
            f"id, {', '.join(STUDENT)} or a name."
        )
    twice = [name for name, count in Counter(one.student for one in people).items() if count > 1]
    if twice:
        raise CourseError(f"Two lines of {path} are the student {twice[0]!r}. Give each an id or e-mail of their own.")
    for one in people:
        if problem := name_problem(one.student):
            raise CourseError(problem.replace("The folder", f"In {path}, the student") + " Nothing was collected.")
    return people


def _person(cells: dict[str, str]) -> Person:
    canvas = "student" in cells
    own = "" if canvas else cells.get("id", "")
    first, last, name = _first(cells, FIRST), _first(cells, LAST), _first(cells, NAME)
    if not first + last and "," in name:
        last, first = (part.strip() for part in name.split(",", 1))
    elif not first + last:
        first, _, last = name.rpartition(" ")
    student = own or _first(cells, STUDENT) or (cells.get("id", "") if canvas else "") or name or f"{first} {last}"
    return Person(
        folder_name(student.removeprefix("#")),  # Brightspace marks ids so
        first,
        last,
        _first(cells, EMAIL),
        cells.get("lms_user_id") or (cells.get("id", "") if canvas else ""),
        re.sub(r"\D", "", cells.get("identifier", "")),
        local_time(cells.get("last modified (submission)", ""), MOODLE_TIME),
    )


def _first(cells: dict[str, str], headings: Iterable[str]) -> str:
    return next((cells[heading] for heading in headings if cells.get(heading)), "")


def _decoded(content: bytes) -> str:
    for encoding in ("utf-16",) if content[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "cp1252"):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    return content.decode("latin-1")


def _squeezed(name: str) -> str:
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", name).casefold())


def folder_name(name: str) -> str:
    """A name that can be a folder's and a row's of the gradebook."""
    name = re.sub(r"""[\s/\\<>:"'|?*\N{REPLACEMENT CHARACTER}]+""", " ", one_line(unicodedata.normalize("NFC", name)))
    return name.strip(" .").encode()[:100].decode("utf-8", "ignore").strip(" .")


def known(gradebook) -> list[Person]:
    """The students of the gradebook."""
    return [
        Person(one.id, one.first_name or "", one.last_name or "", one.email or "", one.lms_user_id or "")
        for one in gradebook.students
    ]


def enroll(gradebook, people: list[Person]) -> list[Person]:
    """Put people into the gradebook, and return them. Whoever is there under another id keeps that one."""
    there = known(gradebook)
    ids = {one.student for one in there}
    found = []
    for one in people:
        if one.student not in ids:
            same = [other for other in there if one.platform_id and other.platform_id == one.platform_id]
            same = same or [other for other in there if other.names & one.names and not other.email]
            alike = sum(bool(other.names & one.names) for other in people)
            if len(same) == 1 and (alike == 1 or same[0].platform_id):
                one = replace(one, student=same[0].student)
        found.append(one)
    with one_commit(gradebook):
        for one in found:
            facts = {
                "first_name": one.first_name,
                "last_name": one.last_name,
                "email": one.email,
                "lms_user_id": one.platform_id,
            }
            facts = {key: one_line(value, LONGEST) for key, value in facts.items() if value}
            gradebook.update_or_create_student(one.student, **facts)
    gradebook.db.commit()
    return found


def who(hand_in: HandIn, people: list[Person]) -> tuple[Person | None, bool]:
    """The one person whose submission it is, and whether an id or e-mail says so; else it is a unique name.
    None where that is not sure."""
    mark = "participant" if hand_in.platform == "moodle" else "platform_id"
    theirs = [one for one in people if hand_in.id and getattr(one, mark) == hand_in.id]
    if not theirs and hand_in.email:
        theirs = [one for one in people if one.email.casefold() == hand_in.email.casefold()]
    if not theirs and hand_in.platform in ("files", "gradescope"):
        own = (hand_in.id or hand_in.name).casefold()
        theirs = [one for one in people if own in (one.student.casefold(), one.email.casefold())]
        theirs = theirs or [one for one in people if own and own == one.email.casefold().split("@")[0]]
    if len(theirs) == 1:
        return theirs[0], True
    others = [one for one in people if not (hand_in.id and getattr(one, mark))]  # these have an id, and another one
    theirs = [one for one in others if hand_in.name and _squeezed(hand_in.name) in one.names]
    return (theirs[0] if len(theirs) == 1 else None), False


def own_name(hand_in: HandIn, numbered: bool) -> str:
    """What a student is called whom no list knows. numbered: with the platform's id, as names are not unique."""
    if hand_in.platform == "gradescope" and hand_in.email:
        return folder_name(hand_in.email)
    names = [hand_in.name, hand_in.id] if numbered or not hand_in.name else [hand_in.name]
    return folder_name("-".join(name for name in names if name)) or folder_name(hand_in.place) or "nameless"
