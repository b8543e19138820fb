"""The students of a class: reads a platform's roster, enrolls students in the gradebook, finds a submission's owner.

Supported are nbgrader's own list (`nbgrader db student import`: id, first_name, last_name, email, lms_user_id),
Moodle's grading worksheet and list of participants, the gradebooks that Canvas and Brightspace export, and Gradescope's
roster.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from pathlib import Path

from helpers.classroom.platforms import Upload
from helpers.classroom.sheet import Sheet, read_sheet
from helpers.classroom.times import cell_time
from helpers.errors import CourseError
from helpers.grading.due import zone_of
from helpers.grading.intake import name_problem
from helpers.grading.nbgrader_insides import one_commit
from helpers.grading.safe_text import one_line

# Headings in lower case. The first one that exists and has a value counts.
STUDENT = ("username", "sis login id", "email address", "email", "sid", "id number", "orgdefinedid", "sis user id")
FIRST = ("first_name", "first name", "firstname")
LAST = ("last_name", "last name", "lastname", "surname")
NAME = ("full name", "fullname", "first name / last name", "student", "name")
EMAIL = ("email", "email address", "e-mail", "e-mail address")
IDENTIFIER, TIME, ROLE = "identifier", "last modified (submission)", ("role", "roles")
LONGEST = 128  # characters of a value in nbgrader's tables; PostgreSQL rejects longer ones
NO_STUDENT = re.compile(r"(points possible|student, test|test student)?")
TEST_STUDENT = re.compile(r"[0-9a-f]{40}")  # Canvas's test student has such a login id in every language
ENGLISH = "Switch the platform to English, and export the file again."


@dataclass(frozen=True)
class Person:
    """One student. student: the name of the folder, and the id in the gradebook. platform_id: the same for all lessons.

    participant: Moodle's number in one assignment. submitted: the time of the submission there, in UTC.
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
        """The orders in which platforms write the name, in lower case and without spaces."""
        first, last = _squeezed(self.first_name), _squeezed(self.last_name)
        return {first + last, last + first} if first + last else {_squeezed(self.student)}


def read_roster(path: Path, zone: tzinfo | None = None, notes: list[str] | None = None) -> list[Person]:
    """Read the students of a list. Raises CourseError if the list is ambiguous or names a student twice.

    zone: the time zone of its times. notes: sentences about lines that were left out are appended here.
    """
    sheet = read_sheet(path)
    headings = english_headings(sheet, path)
    notes = [] if notes is None else notes
    if sheet.encoding == "cp1252":
        notes.append(f"{path.name} is not in UTF-8 and was read as Windows-1252. Look at the names.")
    people, other_roles, canvas_lines = [], [], []
    for row, line in zip(sheet.rows[1:], sheet.lines[1:], strict=True):
        cells = dict(zip(headings, map(str.strip, row), strict=True))
        role = _first(cells, ROLE)
        if is_no_student(cells):
            name = _first(cells, NAME) or ", ".join(filter(None, (_first(cells, LAST), _first(cells, FIRST))))
            canvas_lines += [] if NO_STUDENT.fullmatch(name.casefold()) else [name]
        elif role and not re.search("student|learner", role.casefold()):
            other_roles.append(f"{_first(cells, (*NAME, *FIRST, *STUDENT))} ({role})")
        else:
            people.append(_person(cells, zone or zone_of(""), f"{path}, line {line}"))
    if other_roles:
        notes.append(f"{path.name}: left out, because their role is not Student: {', '.join(other_roles)}.")
    if canvas_lines:
        notes.append(f"{path.name}: left out, because they are Canvas's own lines: {', '.join(canvas_lines)}.")
    if people and IDENTIFIER not in headings and not any(person.first_name or person.last_name for person in people):
        notes.append(f"{path.name} has no known column of names, so students go by their ids. {ENGLISH}")
    if not people:
        lines = f"lines with one of id, {', '.join(STUDENT)} or a name"
        raise CourseError(f"{path} cannot be read as a roster: it needs a heading, and {lines}.")
    for student, count in Counter(person.student for person in people).items():
        if count > 1:
            advice = "Give each student a separate id or e-mail."
            raise CourseError(f"Two lines of {path} are the student {student!r}. {advice}")
    for person in people:
        if problem := name_problem(person.student):
            raise CourseError(problem.replace("The folder", f"In {path}, the student") + " Nothing was collected.")
    return people


def english_headings(sheet: Sheet, path: Path) -> list[str]:
    """The headings in lower case; those of Moodle's worksheet in English, whatever its language."""
    if not sheet.rows:
        raise CourseError(f"{path} cannot be read as a roster: it is empty.")
    headings = [heading.strip().casefold() for heading in sheet.heading]
    for name in {heading for heading in headings if headings.count(heading) > 1} & {*STUDENT, *FIRST, *LAST, *NAME}:
        raise CourseError(f"{path} has two columns {name!r}. Remove one of them.")
    headings = [heading if headings.index(heading) == index else "" for index, heading in enumerate(headings)]
    english = {*STUDENT, *FIRST, *LAST, *NAME, *EMAIL, IDENTIFIER} - {"id"}
    columns = [[cell.strip() for cell in column] for column in zip(*sheet.rows[1:], strict=True)]
    if english & set(headings) or len(columns) < 4:
        return headings
    numbered = [re.fullmatch(r"(\D+)\d+", cell) for cell in columns[0]]
    if not all(numbered) or len({match[1] for match in numbered if match}) != 1:
        return headings
    # Moodle names its columns in the teacher's language, but their order is fixed: number, name, other facts about the
    # person, status, ..., grade, ..., time of the submission, ..., time of the grade.
    emails = [index for index, column in enumerate(columns) if _all_match(column, r"[^@\s]+@[^@\s]+")]
    form, least = r"-|.*20\d\d.*\d.*", r".*20\d\d.*|-"
    times = [index for index, column in enumerate(columns) if _all_match(column, form, least)]
    empty = [index for index in times if set(columns[index]) <= {"-", ""}]
    ambiguous = times and times[0] in empty and len(empty) < len(times)  # the only real time may be that of the grade
    if len(emails) != 1 or emails[0] < 2 or len(times) > 2 or ambiguous:
        raise CourseError(f"{path} is a worksheet in a language whose columns are not known. {ENGLISH}")
    renamed = {0: IDENTIFIER, 1: "full name", emails[0]: "email address"} | dict.fromkeys(times[:1], TIME)
    return [renamed.get(index, heading) for index, heading in enumerate(headings)]


def _all_match(column: list[str], form: str, least: str = ".+") -> bool:
    """Whether all cells that are not empty match `form`, and at least one of them matches `least`."""
    filled = [cell for cell in column if cell]
    return all(re.fullmatch(form, cell, re.DOTALL) for cell in filled) and any(re.fullmatch(least, c) for c in filled)


def is_no_student(cells: dict[str, str]) -> bool:
    """Whether a line is one of Canvas's own: points possible, manual posting, or the test student."""
    name = _first(cells, (*NAME, *LAST)).casefold()
    if "section" in cells and "id" in cells and not cells["id"]:  # in every language, Canvas writes the id of a student
        return True
    return bool(TEST_STUDENT.fullmatch(cells.get("sis login id", "")) or name and NO_STUDENT.fullmatch(name))


def _person(cells: dict[str, str], zone: tzinfo, where: str) -> Person:
    canvas = "sis login id" in cells or "student" in cells
    list_id = "" if canvas else cells.get("id", "")
    first, last, name = _first(cells, FIRST), _first(cells, LAST), _first(cells, NAME)
    if not first + last and "," in name and (canvas or len(name.split()) == 2):
        last, first = (part.strip() for part in name.split(",", 1))
    elif not first + last:
        # It is not certain where a longer name splits, so it stays in one piece.
        first, last = name.split() if len(name.split()) == 2 else (name, "")
    identifier = cells.get(IDENTIFIER, "")
    number = re.search(r"\d+$", identifier)
    anonymous = re.sub(r"\s*(\d+)$", r"-\1", identifier)
    student = list_id or _first(cells, STUDENT) or (cells.get("id", "") if canvas else "") or name or f"{first} {last}"
    student = folder_name(student.removeprefix("#")) or folder_name(anonymous)  # Brightspace writes # before ids
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
        cell_time(cells.get(TIME, ""), zone, where),
    )


def _first(cells: dict[str, str], headings: Iterable[str]) -> str:
    return next((cells[heading] for heading in headings if cells.get(heading)), "")


def _squeezed(name: str) -> str:
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", name).casefold())


def folder_name(name: str) -> str:
    """The name in a form that suits a folder and a row of the gradebook."""
    name = one_line(unicodedata.normalize("NFC", name))
    name = re.sub(r"""[\s/\\<>\[\]:"'|?*\N{REPLACEMENT CHARACTER}]+""", " ", name)
    return name.strip(" .").encode()[:100].decode("utf-8", "ignore").strip(" .")


def known_students(gradebook) -> list[Person]:
    """The students in the gradebook."""
    return [
        Person(one.id, one.first_name or "", one.last_name or "", one.email or "", one.lms_user_id or "")
        for one in gradebook.students
    ]


def enroll(gradebook, people: list[Person]) -> list[Person]:
    """Add people to the gradebook, and return them. Students who are there under another id keep that id."""
    old = known_students(gradebook)
    ids = {person.student for person in old}
    enrolled = []
    for person in people:
        if person.student not in ids:
            same = [other for other in old if person.platform_id and other.platform_id == person.platform_id]
            same = same or [other for other in old if other.names & person.names and not other.email]
            namesakes = sum(bool(other.names & person.names) for other in people)
            if len(same) == 1 and (namesakes == 1 or same[0].platform_id):
                person = replace(person, student=same[0].student)
        enrolled.append(person)
    with one_commit(gradebook):
        for person in enrolled:
            facts = {"first_name": person.first_name, "last_name": person.last_name, "email": person.email}
            facts["lms_user_id"] = person.platform_id
            if not person.last_name and any(one.student == person.student and one.names & person.names for one in old):
                del facts["first_name"]  # the gradebook has it already, split into first and last name
            facts = {key: one_line(value, LONGEST) for key, value in facts.items() if value}
            gradebook.update_or_create_student(person.student, **facts)
    gradebook.db.commit()
    return enrolled


def owner_of(upload: Upload, people: list[Person]) -> tuple[Person | None, bool]:
    """The person whose submission it is, and whether an id or e-mail proves it (otherwise, a unique name was found).
    The person is None if several people, or nobody, could be the owner."""
    id_field = "participant" if upload.platform == "moodle" else "platform_id"
    owners = [one for one in people if upload.id and getattr(one, id_field) == upload.id]
    if not owners and upload.email:
        owners = [one for one in people if one.email.casefold() == upload.email.casefold()]
    if not owners and upload.platform in ("files", "gradescope"):
        login = (upload.id or upload.name).casefold()
        owners = [one for one in people if login in (one.student.casefold(), one.email.casefold())]
        owners = owners or [one for one in people if login and login == one.email.casefold().split("@")[0]]
    if len(owners) == 1:
        return owners[0], True
    candidates = [one for one in people if not (upload.id and getattr(one, id_field))]  # not those with another id
    owners = [one for one in candidates if upload.name and _squeezed(upload.name) in one.names]
    return (owners[0] if len(owners) == 1 else None), False


def unlisted_name(upload: Upload, numbered: bool) -> str:
    """The name for a student who is on no list. numbered: whether to add the platform's id, if names are not unique."""
    if upload.platform == "gradescope" and upload.email:
        return folder_name(upload.email)
    names = [upload.name, upload.id] if numbered or not upload.name else [upload.name]
    return folder_name("-".join(name for name in names if name)) or folder_name(upload.place) or "nameless"
