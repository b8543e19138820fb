"""Rosters, times and due dates in the formats of platforms, and grades that go back in the same format."""

import csv
import io
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.__main__ import main
from helpers.classroom.export import Form, filled_in, possible, read_totals, roster_form
from helpers.classroom.platforms import _student
from helpers.classroom.roster import read_roster
from helpers.classroom.sheet import read_sheet
from helpers.classroom.times import read_time
from helpers.errors import CourseError
from helpers.grading.due import Due, class_zone, read_due, zone_of
from helpers.grading.folders import load
from helpers.grading.nbgrader_insides import open_gradebook
from tests.test_collect import LESSON, Class, notebook
from tests.test_export import give_points, record, total_of, written

BERLIN = ZoneInfo("Europe/Berlin")
CELL = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r\n\ufeff", exclude_categories=("Cc", "Cs")), max_size=20
)


def roster(tmp_path, text: str | bytes, notes: list[str] | None = None):
    path = tmp_path / "roster.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_roster(path, BERLIN, notes)


@given(
    st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5),
    st.sampled_from(",;\t"),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    st.permutations(["First name", "Last name", "Email address", "Feedback comments"]),
    st.booleans(),
)
def test_a_roster_with_any_cell_contents_is_read_and_written_unchanged(
    tmp_path, names, delimiter, code, quoting, order, sep
):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting)
    writer.writerow(order)
    for number, (first, last) in enumerate(names):
        cells = {"First name": first, "Last name": last, "Feedback comments": f'<p>"{last}", see\n{first}</p>'}
        writer.writerow([(cells | {"Email address": f"s{number}@x.org"})[name] for name in order])
    content = (f"sep={delimiter}\r\n" * sep + file.getvalue()).encode(code)
    people = roster(tmp_path, content)
    assert [(one.first_name, one.last_name) for one in people] == [(a.strip(), b.strip()) for a, b in names]
    assert [one.email for one in people] == [f"s{number}@x.org" for number in range(len(names))]
    sheet = read_sheet(tmp_path / "roster.csv")
    back = sheet.encoded(sheet.rows)
    assert back == content or quoting == csv.QUOTE_ALL  # superfluous quotation marks may go
    (tmp_path / "roster.csv").write_bytes(back)
    assert read_sheet(tmp_path / "roster.csv") == sheet


GERMAN = (
    '\ufeffID,"Vollständiger Name",E-Mail-Adresse,Status,Bewertung,Bestwertung,"Bewertung kann geändert werden",'
    '"Zuletzt geändert (Abgabe)","Zuletzt geändert (Bewertung)","Feedback als Kommentar"\n'
    'Teilnehmer/in101,"Eve Van der Berg",eve@x.org,"Zur Bewertung abgegeben",,"100,00",Ja,'
    '"Dienstag, 3. November 2026, 22:30",-,"Sie sagt ""gut"""\n'
    'Teilnehmer/in102,"Jörg Müller",jm@x.org,"Keine Abgabe",,"100,00",Ja,-,-,\n'
)


def test_a_worksheet_in_german_is_read(tmp_path):
    eve, jm = roster(tmp_path, GERMAN)
    assert (eve.student, eve.participant, eve.submitted) == ("eve@x.org", "101", datetime(2026, 11, 3, 21, 30))
    assert (eve.first_name, eve.last_name) == ("Eve Van der Berg", "")  # nothing shows where they divide
    assert (jm.first_name, jm.last_name, jm.submitted) == ("Jörg", "Müller", None)


def test_grades_are_written_into_the_german_worksheet(tmp_path, capsys):
    classroom = Class(tmp_path)
    folder = "{}_{}_assignsubmission_file_/04_scaling.ipynb"
    (tmp_path / "got").mkdir()
    for name, number in (("Eve Van der Berg", 101), ("Jörg Müller", 102)):
        path = tmp_path / "got" / folder.format(name, number)
        path.parent.mkdir()
        path.write_bytes(written(name))
    (tmp_path / "list.csv").write_text(GERMAN, encoding="utf-8")
    command = ["collect", str(tmp_path / "got"), LESSON, "--roster", str(tmp_path / "list.csv")]
    assert main([*command, "--gradebook", str(classroom.folders.gradebook)]) == 0
    record(classroom)
    give_points(classroom, "eve@x.org")
    capsys.readouterr()
    assert main(["export", LESSON, "--format", "moodle", "--gradebook", str(classroom.folders.gradebook)]) == 0
    assert "before you import" not in capsys.readouterr().out
    back = (classroom.folders.gradebook / "exported" / f"{LESSON}.moodle.csv").read_bytes().decode()
    points = total_of(classroom, "eve@x.org").replace(".", ",")
    form = GERMAN.replace('abgegeben",,', f'abgegeben","{points}",')
    assert list(csv.reader(io.StringIO(back))) == list(csv.reader(io.StringIO(form)))
    assert back.startswith("\ufeff") and "\r" not in back


@pytest.mark.parametrize(
    "platform, text, most",
    [
        ("moodle", GERMAN, 100), ("moodle", GERMAN.replace("100,00", "10,5"), 10.5),
        ("canvas", "Student,ID,SIS Login ID,Section,04_scaling (7)\n    Points Possible,,,,85\n", 85),
        ("brightspace", "Username,04_scaling Points Grade <Numeric MaxPoints:20 Weight:1>,End-of-Line Indicator\n", 20),
        ("brightspace", "Username,04_scaling Points Grade,End-of-Line Indicator\n", None),
    ],
)  # fmt: skip
def test_the_maximum_points_of_a_platform_are_read(tmp_path, platform, text, most):
    (tmp_path / "list.csv").write_text(text, encoding="utf-8")
    sheet = read_sheet(tmp_path / "list.csv")
    grade = {"moodle": 4, "canvas": 4, "brightspace": 1}[platform]
    assert possible(Form(sheet, sheet.heading, {}, grade), platform) == most


CANVAS = (
    "\ufeffLastName;FirstName;ID;SIS User ID;SIS Login ID;Section;03_query_key (6);04_scaling (7);Final Score\n"
    ";;;;;;;Manual Posting (scores hidden from instructors);\n"
    "    Points Possible;;;;;;100;100;(read only)\n"
    "Van der Berg;Eve;101;900101;eve;S1;55;;\n"
    f"Student;Probe;102;;{'0a' * 20};S1;;;\n"
)


def test_canvas_grades_keep_its_own_lines_names_and_headings(tmp_path):
    classroom = Class(tmp_path)
    assert [(p.student, p.first_name, p.last_name) for p in roster(tmp_path, CANVAS)] == [
        ("eve", "Eve", "Van der Berg")
    ]
    classroom.take({"bergeve_101_501_04_scaling.ipynb": written("eve")}, roster=CANVAS)
    record(classroom)
    give_points(classroom, "eve")
    path = classroom.folders.gradebook / "collected" / f"{LESSON}.roster.csv"
    path.write_text(CANVAS, encoding="utf-8")
    table = read_totals(classroom.folders, [LESSON])
    back = filled_in(table, roster_form(classroom.folders, table, "canvas"), "canvas").decode().splitlines()
    assert back[0] == "\ufeffLastName;FirstName;ID;SIS User ID;SIS Login ID;Section;04_scaling (7)"
    assert back[1:3] == [";;;;;;Manual Posting (scores hidden from instructors)", "    Points Possible;;;;;;100"]
    assert back[3] == f"Van der Berg;Eve;101;900101;eve;S1;{total_of(classroom, 'eve')}"  # of this lesson alone


def test_canvas_own_lines_in_another_language_are_skipped_and_reported(tmp_path):
    notes: list[str] = []
    text = (
        "Student,ID,SIS User ID,SIS Login ID,Section,Final Score\n,,,,,(solo lectura)\n    Puntos posibles,,,,,\n"
        f'"García Márquez, Gabriel",55,,gabo,S1,\n"Estudiante, Prueba",9,,{"0a" * 20},S1,\n'
    )
    assert [one.student for one in roster(tmp_path, text, notes)] == ["gabo"]
    assert [note.partition("lines: ")[2] for note in notes] == ["Puntos posibles, Estudiante, Prueba."]
    notes.clear()
    roster(tmp_path, CANVAS.replace("Student;Probe", "Student;Test"), notes)
    assert notes == []


def test_names_in_an_unknown_column_are_reported_as_missing(tmp_path):
    notes: list[str] = []
    text = "OrgDefinedId,Username,Nom,Prénom,Indicateur de fin de ligne\n#1,#ada,Lovelace,Ada,#\n"
    assert [(one.student, one.last_name) for one in roster(tmp_path, text, notes)] == [("ada", "")]
    assert "no known column of names" in notes[0] and "English" in notes[0]


def test_the_time_of_a_grade_is_not_taken_for_that_of_a_submission(tmp_path):
    never = GERMAN.replace('"Dienstag, 3. November 2026, 22:30"', "-")
    assert all(one.submitted is None for one in roster(tmp_path, never))
    with pytest.raises(CourseError, match="not known"):
        roster(tmp_path, never.replace('-,-,"Sie', '-,"Mittwoch, 4. November 2026, 09:15","Sie'))


def test_brightspace_grades_keep_its_last_column_and_name_those_left_out(tmp_path, capsys):
    text = (
        "OrgDefinedId,Username,Last Name,First Name,Email,End-of-Line Indicator\n#1,#eve,Van der Berg,Eve,e@x.org,#\n"
    )
    classroom = Class(tmp_path)
    classroom.take({"eve/04_scaling.ipynb": written("eve"), "guest/04_scaling.ipynb": written("guest")}, roster=text)
    record(classroom)
    give_points(classroom, "eve")
    (classroom.folders.gradebook / "collected" / f"{LESSON}.roster.csv").write_text(text)
    table = read_totals(classroom.folders, [LESSON])
    back = filled_in(table, roster_form(classroom.folders, table, "brightspace"), "brightspace").decode().splitlines()
    assert back == [
        f"OrgDefinedId,Username,{LESSON} Points Grade,End-of-Line Indicator",
        f"#1,#eve,{total_of(classroom, 'eve')},#",
    ]
    assert main(["export", LESSON, "--format", "brightspace", "--gradebook", str(classroom.folders.gradebook)]) == 0
    assert "because the list from Brightspace does not have them: guest. Collect again" in capsys.readouterr().out


def test_staff_are_skipped_and_reported(tmp_path):
    notes: list[str] = []
    text = "First Name,Last Name,SID,Email,Role\nAda,L,1,ada@x.org,Student\nTom,T,2,tom@x.org,TA\n"
    assert [one.student for one in roster(tmp_path, text, notes)] == ["ada@x.org"]
    assert "tom@x.org" in notes[0] or "Tom (TA)" in notes[0]


def test_anonymous_participants_are_named_by_their_numbers(tmp_path):
    text = "Identifier,Status,Grade,Maximum grade\nParticipant 11,Submitted,,100\nParticipant 12,Submitted,,100\n"
    assert [(one.student, one.participant) for one in roster(tmp_path, text)] == [
        ("Participant-11", "11"), ("Participant-12", "12"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text, message",
    [
        ("Name,Email\nAda, Jr.,ada@x.org\n", "line 2: it has 3 cells"),
        ('Name,Email\n"Ada"x,ada@x.org\n', "quotation marks"),
        (b"PK\x03\x04 a spreadsheet", "Save it as CSV"),
        ("ID,Status,Bewertung,Bestwertung\nTeilnehmer/in11,da,,100\n", "Switch the platform to English"),
        ("Name,Email,Email\nAda,a@x.org,b@x.org\n", "two columns"),
        (GERMAN.replace("3. November 2026, 22:30", "3/11/2026, 22:30"), "line 2: the time"),
    ],
)
def test_an_ambiguous_roster_is_refused_with_advice(tmp_path, text, message):
    with pytest.raises(CourseError, match=message):
        roster(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "Tuesday, November 3, 2026, 10:30 PM",
        "Tuesday, 3 November 2026, 22:30",
        "Dienstag, 3. November 2026, 22:30",
        "mardi 3 novembre 2026, 22:30",
        "mar. 3 nov. 2026, 22:30",
        "martes, 3 de noviembre de 2026, 22:30",
        "wtorek, 3 listopada 2026, 22:30",
        "вторник, 3 ноября 2026, 22:30",
        "2026年11月3日(火曜日) 22:30",
        "2026年11月3日 午後10:30",
        "Nov 3, 2026 1030 PM",
        "2026-11-03 22:30 +0100",
        "Tuesday, 3 November 2026, 21:30 UTC",
    ],
)
def test_a_time_is_read_in_many_formats_and_languages(text):
    assert read_time(text, BERLIN) == datetime(2026, 11, 3, 21, 30)


@pytest.mark.parametrize(
    "text",
    [
        "3/11/2026 10:30",
        "Monday, 3 November 2026, 10:30",
        "3 November 2026, 10:30 CEST",
        "3 listopad 2026, 10:30",
        "soon",
    ],
)
def test_an_ambiguous_time_is_refused(text):
    with pytest.raises(ValueError):
        read_time(text, BERLIN)


@pytest.mark.parametrize(
    "name",
    ["Kopie von ada", "Copie de ada", "Copia di ada", "ada のコピー"]
    + ["ada - Kopie (2)", "ada-Copy1", "ada copy 2", "Copy of ada (1)"],
)
def test_a_file_called_copy_in_any_language_belongs_to_the_same_student(name):
    assert _student(f"{name}.ipynb", [LESSON]) == "ada"


@pytest.mark.parametrize("name", ["Kopier", "Copious", "copyright"])
def test_a_name_that_begins_like_copy_is_kept(name):
    assert _student(f"{name}.ipynb", [LESSON]) == name


@pytest.mark.parametrize("name", ["CEST", "PST", "JST", "IST", "EST", "Mars/Olympus"])
def test_an_ambiguous_time_zone_is_refused(name):
    with pytest.raises(CourseError, match="Europe/Berlin"):
        zone_of(name)


@pytest.mark.parametrize(("name", "minutes"), [("+05:30", 330), ("-0330", -210), ("UTC", 0)])
def test_an_offset_is_read_with_its_sign(name, minutes):
    assert zone_of(name).utcoffset(None) == timedelta(minutes=minutes)


@pytest.mark.parametrize("role", ["Student", "StudentEnrollment", "Learner"])
def test_students_are_recognized_by_several_role_names(tmp_path, role):
    assert [one.student for one in roster(tmp_path, f"id,Name,Role\nada,Ada L,{role}\ntom,Tom T,Teacher\n")] == ["ada"]


def test_due_date_and_grace_are_applied_and_shown_in_local_time(tmp_path, capsys):
    classroom = Class(tmp_path)
    folder = tmp_path / "got" / "7-1 - Ada A - Jul 4, 2026 1210 AM"
    folder.mkdir(parents=True)
    (folder / "04_scaling.ipynb").write_bytes(notebook("ada"))
    command = ["collect", str(tmp_path / "got"), LESSON, "--gradebook", str(classroom.folders.gradebook)]
    assert main([*command, "--due", "2026-07-03 23:59", "--timezone", "Europe/Berlin"]) == 0
    output = capsys.readouterr().out
    assert "due Fri 3 Jul 2026, 23:59 (Europe/Berlin)" in output and "1 late: Ada A-7 (11 minutes)" in output
    with open_gradebook(classroom.folders) as gradebook:
        assert gradebook.find_assignment(LESSON).duedate == datetime(2026, 7, 3, 21, 59)
    assert main([*command, "--grace", "15m"]) == 0
    output = capsys.readouterr().out
    assert "15 minutes of grace" in output and " late" not in output
    with open_gradebook(load(classroom.folders.gradebook)[0]) as gradebook:
        assert read_due(classroom.folders, gradebook, LESSON).grace == timedelta(minutes=15)
    assert class_zone(classroom.folders) == BERLIN


@pytest.mark.parametrize("seconds, late", [(-5, 0), (0, 0), (900, 0), (901, 901)])
def test_after_the_grace_period_all_seconds_since_the_due_date_count(seconds, late):
    assert Due(datetime(2026, 1, 1), timedelta(minutes=15), BERLIN).late(seconds) == late


@pytest.mark.parametrize(
    "option", [["--due", "3.11.2026"], ["--due", "2026-11-03 23:59 CEST"], ["--grace", "15 sheep"]]
)
def test_an_ambiguous_due_date_is_refused(tmp_path, capsys, option):
    classroom = Class(tmp_path)
    assert main(["collect", str(tmp_path), LESSON, *option, "--gradebook", str(classroom.folders.gradebook)]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and not (classroom.folders.gradebook / "due.json").exists()
