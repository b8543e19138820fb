"""Who is in the class: lists of a platform, as nbgrader's gradebook keeps them, and which of them handed something in.

Known are nbgrader's own list (`nbgrader db student import`: id, first_name, last_name, email, lms_user_id), Moodle's
grading worksheet and list of participants, Canvas's and Brightspace's exported gradebook, Gradescope's roster.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from pathlib import Path

from helpers.classroom.platforms import HandIn
from helpers.classroom.sheet import Sheet, read_sheet
from helpers.classroom.times import known_time
from helpers.errors import CourseError
from helpers.grading.due import zone_of
from helpers.grading.intake import name_problem
from helpers.grading.nbgrader_insides import one_commit
from helpers.grading.safe_text import one_line

# Headings, in small letters; the first that is there and filled counts.
STUDENT = ("username", "sis login id", "email address", "email", "sid", "id number", "orgdefinedid", "sis user id")
FIRST = ("first_name", "first name", "firstname")
LAST = ("last_name", "last name", "lastname", "surname")
NAME = ("full name", "fullname", "first name / last name", "student", "name")
EMAIL = ("email", "email address", "e-mail", "e-mail address")
IDENTIFIER, TIME, ROLE = "identifier", "last modified (submission)", ("role", "roles")
LONGEST = 128  # characters of a fact in nbgrader's tables: SQLite takes more, PostgreSQL does not
NOBODY = re.compile(r"(points possible|student, test|test student)?")
TEST_STUDENT = re.compile(r"[0-9a-f]{40}")  # the login id that Canvas gives it, whatever its name in the language
ENGLISH = "Switch the platform to English, and export the file again."


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


def read_roster(path: Path, zone: tzinfo | None = None, notes: list[str] | None = None) -> list[Person]:
    """The students of a list. CourseError where it cannot be read for certain, or where two lines are the same student.

    zone: of the times in it. notes: takes a sentence for whatever was left out.
    """
    sheet = read_sheet(path)
    headings = english_headings(sheet, path)
    notes = [] if notes is None else notes
    if sheet.encoding == "cp1252":
        notes.append(f"{path.name} is not in UTF-8 and was read as Windows-1252. Look at the names.")
    people, left, nobody = [], [], []
    for row, line in zip(sheet.rows[1:], sheet.lines[1:], strict=True):
        cells = dict(zip(headings, map(str.strip, row), strict=True))
        role = _first(cells, ROLE)
        if is_nobody(cells):
            called = _first(cells, NAME) or ", ".join(filter(None, (_first(cells, LAST), _first(cells, FIRST))))
            nobody += [] if NOBODY.fullmatch(called.casefold()) else [called]
        elif role and not re.search("student|learner", role.casefold()):
            left.append(f"{_first(cells, (*NAME, *FIRST, *STUDENT))} ({role})")
        else:
            people.append(_person(cells, zone or zone_of(""), f"{path}, line {line}"))
    if left:
        notes.append(f"{path.name}: left out, because their role is not Student: {', '.join(left)}.")
    if nobody:
        notes.append(f"{path.name}: left out, because they are Canvas's own lines: {', '.join(nobody)}.")
    if people and IDENTIFIER not in headings and not any(one.first_name or one.last_name for one in people):
        notes.append(f"{path.name} has no known column of names, so students go by their ids. {ENGLISH}")
    if not people:
        lines = f"lines with one of id, {', '.join(STUDENT)} or a name"
        raise CourseError(f"{path} cannot be read as a roster: it needs a heading, and {lines}.")
    for student, count in Counter(one.student for one in people).items():
        if count > 1:
            advice = "Give each student a separate id or e-mail."
            raise CourseError(f"Two lines of {path} are the student {student!r}. {advice}")
    for one in people:
        if problem := name_problem(one.student):
            raise CourseError(problem.replace("The folder", f"In {path}, the student") + " Nothing was collected.")
    return people


def english_headings(sheet: Sheet, path: Path) -> list[str]:
    """The headings in small letters; those of Moodle's worksheet in English, whatever language it is in."""
    if not sheet.rows:
        raise CourseError(f"{path} cannot be read as a roster: it is empty.")
    headings = [heading.strip().casefold() for heading in sheet.heading]
    for name in {heading for heading in headings if headings.count(heading) > 1} & {*STUDENT, *FIRST, *LAST, *NAME}:
        raise CourseError(f"{path} has two columns {name!r}. Remove one of them.")
    headings = [heading if headings.index(heading) == place else "" for place, heading in enumerate(headings)]
    known = {*STUDENT, *FIRST, *LAST, *NAME, *EMAIL, IDENTIFIER} - {"id"}
    columns = [[cell.strip() for cell in column] for column in zip(*sheet.rows[1:], strict=True)]
    if known & set(headings) or len(columns) < 4:
        return headings
    numbered = [re.fullmatch(r"(\D+)\d+", cell) for cell in columns[0]]
    if not all(numbered) or len({match[1] for match in numbered if match}) != 1:
        return headings
    # Moodle names its columns in the teacher's language, but their order is in its code: number, name, what else is
    # shown of a person, status, ..., grade, ..., the submission's time, ..., the grade's time.
    mail = [place for place, column in enumerate(columns) if _are(column, r"[^@\s]+@[^@\s]+")]
    times = [place for place, column in enumerate(columns) if _are(column, r"-|.*20\d\d.*\d.*", r".*20\d\d.*|-")]
    never = [place for place in times if set(columns[place]) <= {"-", ""}]
    doubtful = times and times[0] in never and len(never) < len(times)  # the one real time may be the grade's
    if len(mail) != 1 or mail[0] < 2 or len(times) > 2 or doubtful:
        raise CourseError(f"{path} is a worksheet in a language whose columns are not known. {ENGLISH}")
    for place, name in [(0, IDENTIFIER), (1, "full name"), (mail[0], "email address"), *((n, TIME) for n in times[:1])]:
        headings[place] = name
    return headings


def _are(column: list[str], form: str, least: str = ".+") -> bool:
    """Whether all cells that hold something have a form, and one of them at least the other."""
    filled = [cell for cell in column if cell]
    return all(re.fullmatch(form, cell, re.DOTALL) for cell in filled) and any(re.fullmatch(least, c) for c in filled)


def is_nobody(cells: dict[str, str]) -> bool:
    """Whether a line is one of Canvas's own: points possible, manual posting, or the student that tries things."""
    name = _first(cells, (*NAME, *LAST)).casefold()
    if "section" in cells and "id" in cells and not cells["id"]:  # in any language: of students Canvas writes the id
        return True
    return bool(TEST_STUDENT.fullmatch(cells.get("sis login id", "")) or name and NOBODY.fullmatch(name))


def _person(cells: dict[str, str], zone: tzinfo, where: str) -> Person:
    canvas = "sis login id" in cells or "student" in cells
    list_id = "" if canvas else cells.get("id", "")
    first, last, name = _first(cells, FIRST), _first(cells, LAST), _first(cells, NAME)
    if not first + last and "," in name and (canvas or len(name.split()) == 2):
        last, first = (part.strip() for part in name.split(",", 1))
    elif not first + last:
        # Where a longer name splits, nobody can tell from here: it stays in one piece.
        first, last = name.split() if len(name.split()) == 2 else (name, "")
    identifier = cells.get(IDENTIFIER, "")
    number = re.search(r"\d+$", identifier)
    anonymous = re.sub(r"\s*(\d+)$", r"-\1", identifier)
    student = list_id or _first(cells, STUDENT) or (cells.get("id", "") if canvas else "") or name or f"{first} {last}"
    student = folder_name(student.removeprefix("#")) or folder_name(anonymous)  # Brightspace marks ids so
    if not student:
        names = f"it needs one of id, {', '.join(STUDENT)} or a name"
        raise CourseError(f"{where} names no student: {names}. {ENGLISH}")
    return Person(
        student,
        first,
        last,
        _first(cells, EMAIL),
        cells.get("lms_user_id") or (cells.get("id", "") if canvas else ""),
        number[0] if number else "",
        known_time(cells.get(TIME, ""), zone, where),
    )


def _first(cells: dict[str, str], headings: Iterable[str]) -> str:
    return next((cells[heading] for heading in headings if cells.get(heading)), "")


def _squeezed(name: str) -> str:
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", name).casefold())


def folder_name(name: str) -> str:
    """A name that can be a folder's and a row's of the gradebook."""
    name = one_line(unicodedata.normalize("NFC", name))
    name = re.sub(r"""[\s/\\<>\[\]:"'|?*\N{REPLACEMENT CHARACTER}]+""", " ", name)
    return name.strip(" .").encode()[:100].decode("utf-8", "ignore").strip(" .")


def known(gradebook) -> list[Person]:
    return [
        Person(one.id, one.first_name or "", one.last_name or "", one.email or "", one.lms_user_id or "")
        for one in gradebook.students
    ]


def enroll(gradebook, people: list[Person]) -> list[Person]:
    """Put people into the gradebook, and return them. Whoever is there under another id keeps that one."""
    there = known(gradebook)
    ids = {one.student for one in there}
    enrolled = []
    for one in people:
        if one.student not in ids:
            same = [other for other in there if one.platform_id and other.platform_id == one.platform_id]
            same = same or [other for other in there if other.names & one.names and not other.email]
            alike = sum(bool(other.names & one.names) for other in people)
            if len(same) == 1 and (alike == 1 or same[0].platform_id):
                one = replace(one, student=same[0].student)
        enrolled.append(one)
    with one_commit(gradebook):
        for one in enrolled:
            facts = {"first_name": one.first_name, "last_name": one.last_name, "email": one.email}
            facts["lms_user_id"] = one.platform_id
            if not one.last_name and any(old.student == one.student and old.names & one.names for old in there):
                del facts["first_name"]  # it is there already, and split
            facts = {key: one_line(value, LONGEST) for key, value in facts.items() if value}
            gradebook.update_or_create_student(one.student, **facts)
    gradebook.db.commit()
    return enrolled


def who(hand_in: HandIn, people: list[Person]) -> tuple[Person | None, bool]:
    """The one person whose submission it is, and whether an id or e-mail says so; else it is a unique name.
    None where that is not sure."""
    mark = "participant" if hand_in.platform == "moodle" else "platform_id"
    theirs = [one for one in people if hand_in.id and getattr(one, mark) == hand_in.id]
    if not theirs and hand_in.email:
        theirs = [one for one in people if one.email.casefold() == hand_in.email.casefold()]
    if not theirs and hand_in.platform in ("files", "gradescope"):
        login = (hand_in.id or hand_in.name).casefold()
        theirs = [one for one in people if login in (one.student.casefold(), one.email.casefold())]
        theirs = theirs or [one for one in people if login and login == one.email.casefold().split("@")[0]]
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
