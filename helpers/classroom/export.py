"""`course export LESSON --format moodle|canvas|brightspace|csv`: totals and feedback as a platform takes them back.

- moodle: for one lesson, the *grading worksheet* of an assignment (for *Upload grading worksheet*, which identifies
  lines by participant number); for all lessons, a file for *Grades → Import → CSV file*, which goes by e-mail address.
- canvas: the columns of *How do I import grades in the Gradebook?*, and a second line with the points possible.
- brightspace: the columns of *Importing grades*: the user, `<Item> Points Grade`, and `End-of-Line Indicator`.
- csv: for spreadsheets and all other platforms.

If a lesson was collected with the platform's own list as roster, its grades go back in the form of that list, with its
headings, language, names and delimiter. From the list of a whole gradebook, only the columns that identify students and
the lesson's own column go back, so that no old grade of another assignment replaces a newer one.

In a platform's file, a total that still waits for a person is an empty cell; csv has the total so far, and a status.
A submission that could not be read never has a total.
"""

import argparse
import re
from dataclasses import dataclass, field
from pathlib import Path

from helpers.classroom.collected import Source, kept_roster, read_sources
from helpers.classroom.give_back import write_feedback_zip
from helpers.classroom.platforms import NAMES
from helpers.classroom.roster import IDENTIFIER, Person, english_headings, is_no_student, known_students
from helpers.classroom.sheet import Sheet, read_sheet
from helpers.errors import CourseError
from helpers.grading.class_scores import Row, number, read_class
from helpers.grading.folders import Folders, load, shown, write_atomically
from helpers.grading.nbgrader_insides import open_gradebook
from helpers.grading.safe_text import as_table, one_line

FORMATS = ("moodle", "canvas", "brightspace", "csv")
BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"  # Excel needs it to recognize UTF-8; Canvas doesn't want it
SHOWN = 12
# The columns of Canvas's gradebook that identify a student.
CANVAS = {"student", "lastname", "firstname", "id", "sis user id", "sis login id", "integration id", "root account"}
CANVAS |= {"section"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", metavar="LESSON", nargs="?", help="such as 04_scaling")
    parser.add_argument("--all", action="store_true", help="all lessons that were graded, and a total")
    parser.add_argument("--format", choices=FORMATS, required=True, help="the platform that will read it")
    parser.add_argument("--feedback", action="store_true", help="also write a zip of the feedback for the platform")
    parser.add_argument("--gradebook", metavar="FOLDER", help="another class's folder (default: gradebook)")


def run(args: argparse.Namespace) -> int:
    if bool(args.lesson) == args.all:
        raise CourseError("Name one lesson, or give --all for all of them.")
    folders, _ = load(args.gradebook)
    lessons = [folders.lesson(args.lesson)] if args.lesson else folders.lessons()
    table = read_totals(folders, lessons, args.all)
    name = "all" if args.all else lessons[0]
    write = {"moodle": as_moodle, "canvas": as_canvas, "brightspace": as_brightspace, "csv": as_csv}[args.format]
    ending = "" if args.format == "csv" else f".{args.format}"
    path = folders.gradebook / "exported" / f"{name}{ending}.csv"
    form = roster_form(folders, table, args.format)
    worth, above = next(iter(table.worth.values())), []
    if args.format == "moodle" and not args.all:  # an assignment there takes no grade above its maximum
        above = [row.student for row in table.rows[name].values() if (row.total or 0.0) > worth]
    for student in above:
        table.rows[name][student].total = worth
    write_atomically(path, write(table) if form is None else filled_in(table, form, args.format))
    for line in summary(table, path, args.format, form):
        print(line)
    if above:
        print(f"  written as {worth:g}, because an assignment in Moodle takes no more: {_names(above)}")
    if form and possible(form, args.format) not in (None, worth):
        theirs = f"{NAMES[args.format]} gives {possible(form, args.format):g} points for this lesson"
        print(f"  {theirs}, and the course {worth:g}. Change it to {worth:g} there before you import.")
    for lesson in table.worth if args.feedback else ():
        target = folders.gradebook / "exported" / f"{lesson}{ending}.feedback.zip"
        count, unplaced = write_feedback_zip(folders, lesson, args.format, target)
        print(f"{shown(target)}: feedback for {count}" if count else f"No feedback for {lesson} was written:")
        if unplaced:
            print(
                f"  left out, because they were not collected from {NAMES[args.format]}: {_names(unplaced)}. "
                f"Their pages lie in {shown(folders.feedback)}."
            )
    return 0


@dataclass
class Table:
    """The results of a class. rows: lesson -> student -> row of the class report, for each lesson that was graded."""

    people: list[Person]
    several: bool  # whether all lessons are exported, with a total
    worth: dict[str, float] = field(default_factory=dict)  # lesson -> points possible, without bonus
    rows: dict[str, dict[str, Row]] = field(default_factory=dict)
    missing: dict[str, list[str]] = field(default_factory=dict)
    sources: dict[str, dict[str, Source]] = field(default_factory=dict)

    def status(self, lesson: str, student: str) -> str:
        row = self.rows[lesson].get(student)
        return row.status if row else "nothing handed in" if student in self.missing[lesson] else "not graded yet"

    def points(self, lesson: str, student: str, finished: bool = True) -> float | None:
        """The total of a lesson. With `finished`, a total that still waits for a person is None."""
        row = self.rows[lesson].get(student)
        return row.total if row and (row.status == "graded" or not finished) else None

    def cells(self, student: str, finished: bool = True) -> list[str]:
        return [number(self.points(lesson, student, finished)) for lesson in self.worth]

    def total(self, student: str) -> float | None:
        """The total of all lessons, where a missing submission counts 0; None while a lesson is not fully graded."""
        statuses = {self.status(lesson, student) for lesson in self.worth}
        if statuses - {"graded", "nothing handed in"} or "graded" not in statuses:
            return None
        return sum(self.points(lesson, student) or 0.0 for lesson in self.worth)


def read_totals(folders: Folders, lessons: list[str], several: bool = False) -> Table:
    """Read the class's results in those lessons that were graded. Raises CourseError if none of them was."""
    from nbgrader.api import MissingEntry

    folders.gradebook.mkdir(parents=True, exist_ok=True)
    with open_gradebook(folders) as gradebook:
        people = sorted(known_students(gradebook), key=lambda one: (one.last_name.casefold(), one.student.casefold()))
    table = Table(people, several)
    for lesson in lessons:
        try:
            report = read_class(folders, lesson)
        except MissingEntry:
            continue
        if report.rows:
            table.worth[lesson] = report.worth
            table.rows[lesson] = {row.student: row for row in report.rows}
            table.missing[lesson] = report.missing
            table.sources[lesson] = read_sources(folders, lesson)
    if not table.worth:
        which = f"Of {lessons[0]}, nothing" if len(lessons) == 1 else "Nothing"
        raise CourseError(f"{which} is graded yet. Run `course grade {lessons[0]}` first.")
    return table


@dataclass
class Form:
    """A platform's list. headings: in English and lower case. rows: student -> index of the row. grade: index of the
    lesson's column, or None if the list has none."""

    sheet: Sheet
    headings: list[str]
    rows: dict[str, int]
    grade: int | None


def roster_form(folders: Folders, table: Table, platform: str) -> Form | None:
    """The lesson's roster if it came from this platform, else None (also if several lessons are exported).

    Raises CourseError if the column of grades is ambiguous.
    """
    lesson = next(iter(table.worth))
    path = kept_roster(folders, lesson)
    if table.several or platform == "csv" or not path.is_file():
        return None
    sheet = read_sheet(path)
    headings = english_headings(sheet, path)
    typical = {"moodle": IDENTIFIER, "canvas": "sis login id", "brightspace": "end-of-line indicator"}
    if typical[platform] not in headings:
        return None
    key = {"moodle": IDENTIFIER, "canvas": "id"}.get(platform) or next(
        name for name in ("username", "orgdefinedid") if name in headings
    )
    id_getters = {"moodle": lambda one: _participant(table, one.student), "canvas": lambda one: one.platform_id}
    id_of = id_getters.get(platform, lambda one: one.student)
    students = {own_id: person.student for person in table.people if (own_id := id_of(person))}
    rows = {}
    for index, row in enumerate(sheet.rows[1:], 1):
        cells = dict(zip(headings, map(str.strip, row), strict=True))
        own_id = re.sub(r"^\D*(?=\d+$)", "", cells[key]) if platform == "moodle" else cells[key].removeprefix("#")
        if own_id in students and not is_no_student(cells):
            rows[students[own_id]] = index
    return Form(sheet, headings, rows, _grade_column(sheet, headings, lesson, platform, path))


def _grade_column(sheet: Sheet, headings: list[str], lesson: str, platform: str, path: Path) -> int | None:
    """The index of the column that the platform reads the lesson's points from."""
    if platform != "moodle":
        columns = [n for n, name in enumerate(headings) if re.match(rf"{lesson}\b(?! *text)", name, re.IGNORECASE)]
        return columns[0] if len(columns) == 1 else None
    if "grade" in headings:
        return headings.index("grade")
    # In another language, the grade is followed by its maximum, which is the same number in all lines.
    maxima = [
        index
        for index, column in enumerate(zip(*sheet.rows[1:], strict=True))
        if index > 2 and len(set(column)) == 1 and re.fullmatch(r"\d+([.,]\d+)?", column[0].strip())
    ]
    if len(maxima) != 1:
        raise CourseError(
            f"In {path.name} the column of grades is ambiguous. Switch Moodle to English, download the worksheet "
            "again, and collect with it."
        )
    return maxima[0] - 1


def possible(form: Form, platform: str) -> float | None:
    """The maximum points of the lesson on the platform, if the list has them."""
    if form.grade is None:
        return None
    heading, *rows = form.sheet.rows
    cells = [heading[form.grade].partition("MaxPoints:")[2]]
    cells += [row[form.grade + 1] for row in rows if platform == "moodle"]
    cells += [row[form.grade] for row in rows if platform == "canvas" and row[0].startswith(" ")]
    found = filter(None, (re.match(r"\s*(\d+(?:[.,]\d+)?)", cell) for cell in cells))
    return next((float(match[1].replace(",", ".")) for match in found), None)


def filled_in(table: Table, form: Form, platform: str) -> bytes:
    """The platform's own list, with the lesson's points filled in."""
    (lesson,) = table.worth
    rows = [list(row) for row in form.sheet.rows]
    kept, grade = list(range(len(form.headings))), form.grade
    if platform != "moodle":
        people = CANVAS if platform == "canvas" else {"orgdefinedid", "username"}  # enough for Brightspace
        kept = [column for column in kept if form.headings[column] in people]
        if grade is None:
            grade = len(form.headings)
            item = lesson if platform == "canvas" else f"{lesson} Points Grade"
            for row in rows:
                maximum = is_no_student(dict(zip(form.headings, row, strict=False))) and row[0].startswith(" ")
                row.append(number(table.worth[lesson]) if maximum else "")
            rows[0][-1] = item
        kept.append(grade)
        if platform == "brightspace":
            kept.append(form.headings.index("end-of-line indicator"))
    decimal_sign = "," if any(re.search(r"\d,\d", cell) for row in rows for cell in row[grade - 1 : grade + 2]) else "."
    students = {index: student for student, index in form.rows.items()}
    for index, row in enumerate(rows):
        if index in students:
            row[grade] = number(table.points(lesson, students[index])).replace(".", decimal_sign)
        elif index and platform != "moodle" and not is_no_student(dict(zip(form.headings, row, strict=False))):
            row[grade] = ""
    return form.sheet.encoded([[row[column] for column in kept] for row in rows])


def as_brightspace(table: Table) -> str:
    """A file for Brightspace's import of grades, which goes by user name."""
    heading = ["Username", *(f"{lesson} Points Grade" for lesson in table.worth), "End-of-Line Indicator"]
    return as_table([heading, *([f"#{person.student}", *table.cells(person.student), "#"] for person in table.people)])


def as_csv(table: Table) -> str:
    """One line per student, with ids, e-mail, totals, points possible and the status of the totals."""
    end = ["total", "maximum", "status"] if table.several else ["maximum", "bonus", "days late", "status"]
    lines = [["student", "last_name", "first_name", "email", "lms_user_id", *table.worth, *end]]
    for person in table.people:
        line = [person.student, person.last_name, person.first_name, person.email, person.platform_id]
        line += table.cells(person.student, finished=False)
        statuses = {lesson: table.status(lesson, person.student) for lesson in table.worth}
        worth = number(sum(table.worth.values()))
        if table.several:
            waiting = [f"{lesson}: {status}" for lesson, status in statuses.items() if status != "graded"]
            status = "; ".join(waiting) or "graded"
            line += [number(table.total(person.student)), worth, status]
        else:
            ((lesson, status),) = statuses.items()
            row = table.rows[lesson].get(person.student)
            bonus = number(row.bonus) if row and row.total is not None else ""
            line += [worth, bonus, str(row.days_late) if row else "", status]
        lines.append(line)
    return BOM + as_table(lines)


def as_moodle(table: Table) -> str:
    """A grading worksheet for one lesson; a file for the import of grades for several."""
    if table.several:
        lines = [["Student", "First name", "Last name", "Email address", *table.worth, "Total"]]
        for person in table.people:
            identity = [person.student, person.first_name, person.last_name, person.email]
            lines.append([*identity, *table.cells(person.student), number(table.total(person.student))])
        return BOM + as_table(lines)
    ((lesson, worth),) = table.worth.items()
    lines = [["Identifier", "Full name", "Email address", "Grade", "Maximum grade", "Last modified (grade)"]]
    for person in table.people:
        if participant := _participant(table, person.student):
            name = f"{person.first_name} {person.last_name}".strip() or table.sources[lesson][person.student].name
            identity = [f"Participant {participant}", name, person.email]
            lines.append([*identity, *table.cells(person.student), number(worth), ""])
    return BOM + as_table(lines)


def _participant(table: Table, student: str) -> str:
    source = table.sources[next(iter(table.worth))].get(student)
    return source.id if source and source.platform == "moodle" else ""


def as_canvas(table: Table) -> str:
    """A file for Canvas's gradebook, which adds up its own total and ignores ours."""
    end = ["Final Points"] if table.several else []
    lines = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *table.worth, *end]]
    possible = map(number, table.worth.values())
    lines.append(["    Points Possible", "", "", "", "", *possible, *["(read only)" for _ in end]])
    for person in table.people:
        name = f"{person.last_name}, {person.first_name}".strip(", ") or person.student
        total = [number(table.total(person.student)) for _ in end]
        lines.append([name, person.platform_id, "", person.student, "", *table.cells(person.student), *total])
    return as_table(lines)


def summary(table: Table, path: Path, platform: str, form: Form | None) -> list[str]:
    """The lines for the terminal: where the file is, and which totals are missing in it and why."""
    students = [person.student for person in table.people]
    lines = [f"{shown(path)}: {len(students)} students, {', '.join(table.worth)}"]
    for lesson in table.worth:
        for status in ("waits for a person", "not graded", "not graded yet", "nothing handed in"):
            named = [student for student in students if table.status(lesson, student) == status]
            if named:
                lines.append(f"  {lesson}, {status}: {_names(named)}")
    named, words = [], ""
    if form is not None:
        (lesson,) = table.worth
        named = sorted(table.rows[lesson].keys() - form.rows.keys())
        words = f"left out, because the list from {NAMES[platform]} does not have them: {{}}. Collect again, with a "
        words += "newer list as --roster, or enter their points by hand."
    elif platform == "moodle" and not table.several:
        named = [student for student in students if not _participant(table, student)]
        words = "left out, because Moodle's participant number is not known: {}. Collect again, with the assignment's "
        words += "grading worksheet as --roster."
    elif platform == "canvas":
        named = [person.student for person in table.people if not person.platform_id]
        words = "without Canvas's id, so Canvas will look for the name: {}"
    lines += ["  " + words.format(_names(named))] if named else []
    return lines


def _names(students: list[str]) -> str:
    rest = f" and {len(students) - SHOWN} more" if len(students) > SHOWN else ""
    return ", ".join(one_line(student, 60) for student in students[:SHOWN]) + rest
