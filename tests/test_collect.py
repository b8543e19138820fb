"""`course collect`: it reads every platform's download, loses nothing, and lists who is missing."""

import functools
import io
import json
import os
import stat
import unicodedata
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.__main__ import main
from helpers.classroom import unpack
from helpers.classroom.collect import collect, summary
from helpers.classroom.collected import read_sources
from helpers.classroom.platforms import submissions
from helpers.classroom.roster import folder_name, read_roster
from helpers.classroom.unpack import find_files
from helpers.errors import CourseError
from helpers.grading.folders import ROOT, load
from helpers.grading.intake import name_problem, read_submission
from helpers.grading.lesson_release import read_release
from helpers.grading.nbgrader_insides import open_gradebook, register_lesson

LESSON, OTHER = "04_scaling", "03_query_key"


@functools.cache
def notebook(answer: str, lesson: str = LESSON) -> bytes:
    """Return a submission: the released notebook with a comment in its first answer cell."""
    cells = json.loads((ROOT / "notebooks" / lesson / f"{lesson}.ipynb").read_text(encoding="utf-8"))
    first = next(c for c in cells["cells"] if c["metadata"].get("nbgrader", {}).get("solution"))
    first["source"] = f"# {answer}"
    return json.dumps(cells).encode()


def zipped(files: dict[str, bytes]) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return whole.getvalue()


def local_time(text: str, form: str) -> datetime:
    """Convert a time in this computer's zone to UTC without a zone."""
    return datetime.strptime(text, form).astimezone(UTC).replace(tzinfo=None)


class Class:
    """A class in its own folder."""

    def __init__(self, tmp_path: Path):
        self.tmp, self.folders = tmp_path, load(tmp_path / "class")[0]

    def take(self, files: dict[str, bytes], lesson: str | None = LESSON, roster: str = "", name: str = "got.zip"):
        """Collect a zip of these files; return the outcome of the lesson, or of all lessons, and the notes."""
        path = self.tmp / name
        path.write_bytes(zipped(files))
        return self.take_path(path, lesson, roster)

    def take_path(self, path: Path, lesson: str | None = LESSON, roster: str = ""):
        people = []
        if roster:
            (self.tmp / "roster.csv").write_text(roster, encoding="utf-8")
            people = read_roster(self.tmp / "roster.csv")
        room = self.tmp / f"room-{len(list(self.tmp.iterdir()))}"
        room.mkdir()
        outcomes, notes = collect(self.folders, path, lesson, people, room)
        return (outcomes[0] if lesson else outcomes), notes

    def has(self, student: str, lesson: str = LESSON) -> bytes:
        return (self.folders.submitted / student / lesson / f"{lesson}.ipynb").read_bytes()

    def students(self) -> set[str]:
        return {path.name for path in self.folders.submitted.iterdir()}

    def all_bytes(self) -> set[bytes]:
        return {path.read_bytes() for path in self.folders.gradebook.rglob("*") if path.is_file()}


@pytest.fixture
def group(tmp_path) -> Class:
    return Class(tmp_path)


def test_moodle_downloads_with_folders_and_with_flat_names(group):
    outcome, notes = group.take(
        {
            "Ada Lovelace_101_assignsubmission_file_/04_scaling.ipynb": notebook("ada"),
            "Ada Lovelace_101_assignsubmission_file_/translator.safetensors": b"numbers",
            "Ada Lovelace_101_assignsubmission_onlinetext_/onlinetext.html": b"<p>see the file</p>",
            "Ben O'Neill-Smith_102_assignsubmission_file/my answer.ipynb": notebook("ben"),  # Moodle 4.1 and later
            "Cyd Dorn_103_assignsubmission_file_04_scaling.ipynb": notebook("cyd"),
        }
    )
    assert set(outcome.status.values()) == {"new"} and notes == []
    for student, answer in (("Ada Lovelace", "ada"), ("Ben O Neill-Smith", "ben"), ("Cyd Dorn", "cyd")):
        assert group.has(student) == notebook(answer)
    assert (group.folders.submitted / "Ada Lovelace" / LESSON / "translator.safetensors").read_bytes() == b"numbers"
    assert read_sources(group.folders, LESSON)["Ada Lovelace"].place == "Ada Lovelace_101_assignsubmission_file_"
    read = read_submission(
        group.folders.submitted, "Ada Lovelace", read_release(group.folders.notebook(LESSON)), group.folders.release
    )
    assert read.problem is None and "# ada" in read.code()


def test_canvas_downloads_with_late_and_repeated_submissions(group):
    outcome, _ = group.take(
        {
            "lovelaceada_11_501_04_scaling.ipynb": notebook("checkpoint('translator.safetensors', 'model-2.txt')"),
            "lovelaceada_11_502_translator-1.safetensors": b"numbers",
            "lovelaceada_11_503_model-2.txt": b"text",
            "müllerjörg_LATE_12_503_04_scaling-1.ipynb": notebook("jörg"),
            "anon_x7Yz_504_04_scaling.ipynb": notebook("anonymous"),
        }
    )
    assert group.students() == {"lovelaceada-11", "müllerjörg-12", "anon_x7Yz"}
    there = {path.name for path in (group.folders.submitted / "lovelaceada-11" / LESSON).iterdir()}
    assert there == {"04_scaling.ipynb", "translator.safetensors", "model-2.txt"}
    assert outcome.late == {"müllerjörg-12": "says Canvas"}
    assert group.has("müllerjörg-12") == notebook("jörg")
    assert read_sources(group.folders, LESSON)["müllerjörg-12"].place == "müllerjörg_LATE_12_503_04_scaling-1.ipynb"


@pytest.mark.parametrize("file", ["/04_scaling.ipynb", " - 04 - scaling (1).ipynb", " - work.zip"])
def test_brightspace_downloads_where_the_newest_submission_counts(group, file):
    def handed_in(answer: str) -> bytes:
        return zipped({"04_scaling.ipynb": notebook(answer)}) if file.endswith(".zip") else notebook(answer)

    folder = "7-4242 - Ada Lovelace - {}" + file
    outcome, _ = group.take(
        {
            folder.format("Nov 10, 2026 930 AM"): handed_in("newest"),
            folder.format("Nov 3, 2026 1030 PM"): handed_in("first"),
            "index.html": b"<p>of the platform</p>",
        }
    )
    assert outcome.status == {"Ada Lovelace-7": "new"} and group.has("Ada Lovelace-7") == notebook("newest")
    assert notebook("first") in group.all_bytes() and list(outcome.twice) == ["Ada Lovelace-7"]
    source = read_sources(group.folders, LESSON)["Ada Lovelace-7"]
    assert source.time == local_time("Nov 10, 2026 9:30 AM", "%b %d, %Y %I:%M %p").isoformat()


METADATA = b"""---
submission_900:
  :submitters:
  - :name: Ada Lovelace
    :sid: '17'
    :email: ada@example.org
  - :name: Ben Berg
    :sid: '18'
    :email: ben@example.org
  :created_at: 2026-11-03 10:30:00.123456789 Z
  :history: !ruby/hash:ActiveSupport::HashWithIndifferentAccess
    a: 1
submission_901:
  :submitters: []
"""


def test_gradescope_downloads_with_groups_and_times(group):
    outcome, _ = group.take(
        {
            "assignment_1_export/submission_metadata.yml": METADATA,
            "assignment_1_export/submission_900/04_scaling.ipynb": notebook("both"),
            "assignment_1_export/submission_901/04_scaling.ipynb": notebook("nobody's"),
        }
    )
    assert set(outcome.status) == {"ada@example.org", "ben@example.org", "901"}
    assert group.has("ada@example.org") == group.has("ben@example.org") == notebook("both")
    stamp = group.folders.submitted / "ada@example.org" / LESSON / "timestamp.txt"
    assert stamp.read_text() == "2026-11-03 10:30:00 UTC"


def test_other_downloads_with_named_files_and_folders(group):
    outcome, notes = group.take(
        {
            "ada_04_scaling.ipynb": notebook("ada"),
            "Copy of ben_04_scaling (1).ipynb": notebook("ben"),
            "cyd/Untitled.ipynb": notebook("cyd"),
            "dan/04_scaling/04_scaling.ipynb": notebook("dan"),
            "dan/translator.safetensors": b"numbers",
            "eva/work.rar": b"Rar!",
            "04_scaling.ipynb": notebook("whose?"),
        }
    )
    assert (group.folders.submitted / "dan" / LESSON / "translator.safetensors").is_file()
    assert group.students() == {"ada", "ben", "cyd", "dan"} and group.has("cyd") == notebook("cyd")
    assert notes == [
        "04_scaling.ipynb does not say whose it is; put it into a folder with the student's name.",
        "eva/work.rar was not collected: no notebook lies there.",
    ]


def test_a_folder_is_collected_like_a_zip_and_so_are_zips_in_it(group):
    root = group.tmp / "download"
    (root / "ada").mkdir(parents=True)
    (root / "ada" / "04_scaling.ipynb").write_bytes(notebook("ada"))
    (root / "ben.zip").write_bytes(zipped({"work/04_scaling.ipynb": notebook("ben")}))
    outcome, _ = group.take_path(root)
    assert outcome.status == {"ada": "new", "ben": "new"} and group.has("ben") == notebook("ben")


def test_the_lesson_is_recognized_by_the_notebook(group):
    outcomes, _ = group.take({"ada/a.ipynb": notebook("4"), "ben/b.ipynb": notebook("3", OTHER)}, lesson=None)
    assert [(outcome.lesson, list(outcome.status)) for outcome in outcomes] == [(OTHER, ["ben"]), (LESSON, ["ada"])]
    assert group.has("ben", OTHER) == notebook("3", OTHER)


@pytest.mark.parametrize("lesson", [LESSON, None])
def test_a_notebook_of_another_lesson_is_reported_and_replaces_nothing(group, lesson):
    own = group.folders.submitted / "Ben B" / OTHER / f"{OTHER}.ipynb"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"his real one")
    folder = "{}_{}_assignsubmission_file_/work.ipynb"
    files = {folder.format(name, n): notebook(name) for n, name in enumerate(("Ada A", "Cyd C"))}
    outcome, _ = group.take(files | {folder.format("Ben B", 9): notebook("old", OTHER)}, lesson)
    outcome = outcome if lesson else outcome[0]
    assert list(outcome.misplaced) == ["Ben B"] and OTHER in outcome.misplaced["Ben B"]
    assert own.read_bytes() == b"his real one" and notebook("old", OTHER) in group.all_bytes()


ROSTER = "id,first_name,last_name,email,lms_user_id\nada,Ada,Lovelace,a@x.org,11\nben,Ben,Berg,b@x.org,12\n"


def test_a_notebook_of_a_second_lesson_is_kept_beside_the_first(group):
    folder = "Ada A_1_assignsubmission_file_/"
    outcome, _ = group.take({folder + "a.ipynb": notebook("4"), folder + "b.ipynb": notebook("3", OTHER)})
    assert outcome.misplaced == {} and group.has("Ada A") == notebook("4")
    assert (group.folders.submitted / "Ada A" / LESSON / "b.ipynb").read_bytes() == notebook("3", OTHER)


def test_the_roster_names_students_and_shows_who_is_missing(group):
    outcome, _ = group.take(
        {"lovelaceada_11_501_04_scaling.ipynb": notebook("ada"), "zoe_99_502_x.ipynb": notebook("zoe")}, roster=ROSTER
    )
    assert group.students() == {"ada", "zoe-99"}
    assert outcome.missing == ["ben"] and outcome.unlisted == ["zoe-99"]
    later, _ = group.take({"bergben_12_601_04_scaling.ipynb": notebook("ben")})  # the gradebook knows the class
    assert later.status == {"ben": "new"} and later.missing == []
    with open_gradebook(group.folders) as gradebook:
        assert gradebook.find_student("ben").email == "b@x.org"


MOODLE_SHEET = """\ufeffIdentifier,Full name,Email address,Status,Grade,Last modified (submission)
Participant 101,Ada Lovelace,ada1@x.org,Submitted,,"Tuesday, 3 November 2026, 10:30 AM"
Participant 102,Ada Lovelace,ada2@x.org,Submitted,,"Tuesday, 3 November 2026, 11:30 AM"
Participant 103,Jörg Müller,jm@x.org,No submission,,-
"""


@pytest.mark.parametrize(
    "text, student",
    [
        (MOODLE_SHEET, "ada1@x.org"),
        ('Student,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,\n"L, Ada",11,s1,ada,A\n', "ada"),
        ("OrgDefinedId,Username,Last Name,First Name,Email\n#1,#ada,L,Ada,a@x.org\n", "ada"),
        ("First Name;Last Name;SID;Email\nAda;L;17;a@x.org\n", "a@x.org"),
        ("First name,Surname,ID number\nAda,L,17\n", "17"),
        (ROSTER, "ada"),
        ("Name\nAda Lovelace\n", "Ada Lovelace"),
    ],
)
def test_lists_of_all_platforms_can_be_rosters(tmp_path, text, student):
    for encoding in ("utf-8", "utf-16"):
        (tmp_path / "list.csv").write_bytes(text.removeprefix("\ufeff").encode(encoding))
        people = read_roster(tmp_path / "list.csv")
        assert people[0].student == student and people[0].first_name == "Ada"


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "it is empty"), ("a,b\n1,2\n", "line 2 names no student"), ("id\nada\nada\n", "Two lines of .* 'ada'")],
)
def test_a_list_that_is_not_a_roster_is_refused_with_a_message(tmp_path, text, message):
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(CourseError, match=message):
        read_roster(tmp_path / "list.csv")


def test_two_students_of_the_same_name_are_kept_apart(group):
    folder = "Ada Lovelace_{}_assignsubmission_file_/04_scaling.ipynb"
    files = {folder.format(101): notebook("first"), folder.format(102): notebook("second")}
    outcome, notes = group.take(files)
    assert group.students() == {"Ada Lovelace-101", "Ada Lovelace-102"} and "grading worksheet" in notes[0]
    again, _ = group.take(files)
    assert set(again.status.values()) == {"unchanged"} and len(group.students()) == 2


def test_a_later_student_of_the_same_name_does_not_replace_the_first(group):
    for number in (101, 102):
        group.take({f"Ada Lovelace_{number}_assignsubmission_file_/04_scaling.ipynb": notebook(str(number))})
    assert group.has("Ada Lovelace") == notebook("101") and group.has("Ada Lovelace-102") == notebook("102")


def test_brightspaces_numbers_in_a_roster_tell_equal_names_apart(group):
    files = {f"{n}-42 - Ada Lovelace - Nov 3, 2026 930 AM/x.ipynb": notebook(str(n)) for n in (7, 8)}
    roster = "id,first_name,last_name,lms_user_id\nada,Ada,Lovelace,{}\nada2,Ada,Lovelace,{}\n"
    outcome, notes = group.take(files, roster=roster.format("", ""))
    assert set(outcome.status) == {"Ada Lovelace-7", "Ada Lovelace-8"} and outcome.missing == ["ada", "ada2"]
    assert "more than one Ada Lovelace, so this one is Ada Lovelace-7" in notes[0] and "lms_user_id" in notes[0]
    outcome, _ = group.take(files, roster=roster.format("8", "7"))
    assert set(outcome.status) == {"ada", "ada2"} and group.has("ada") == notebook("8")


def test_moodles_worksheet_tells_equal_names_apart_and_gives_times(group):
    folder = "Ada Lovelace_{}_assignsubmission_file_/04_scaling.ipynb"
    outcome, notes = group.take(
        {folder.format(101): notebook("first"), folder.format(102): notebook("second")}, roster=MOODLE_SHEET
    )
    assert group.students() == {"ada1@x.org", "ada2@x.org"} and notes == [] and outcome.missing == ["jm@x.org"]
    assert group.has("ada2@x.org") == notebook("second")
    source = read_sources(group.folders, LESSON)["ada1@x.org"]
    assert source.time == local_time("Tue 3 11 2026 10:30", "%a %d %m %Y %H:%M").isoformat()


def test_a_later_roster_keeps_known_students_or_reports_their_new_ids(group):
    folder = "{}_{}_assignsubmission_file_/04_scaling.ipynb"
    files = {folder.format("Jörg Müller", 103): notebook("j")}
    files |= {folder.format("Ada Lovelace", n): notebook(str(n)) for n in (101, 102)}
    group.take(files)
    two_downloads = {f"{download}/{name}": content for download in "ab" for name, content in files.items()}
    outcome, notes = group.take(two_downloads, roster=MOODLE_SHEET)
    assert outcome.status["Jörg Müller"] == "unchanged" and outcome.unlisted == outcome.missing == []
    assert "Ada Lovelace-101 is called ada1@x.org" in notes[0] and "Ada Lovelace-102 is called ada2@x.org" in notes[1]
    students = {"Jörg Müller", "ada1@x.org", "ada2@x.org"}
    with open_gradebook(group.folders) as gradebook:
        assert set(read_sources(group.folders, LESSON)) == {student.id for student in gradebook.students} == students


def test_a_worksheet_of_another_assignment_still_gives_names(group):
    sheet = MOODLE_SHEET.replace("Participant 10", "Participant 77")
    outcome, _ = group.take({"Jörg Müller_5_assignsubmission_file_/x.ipynb": notebook("j")}, roster=sheet)
    assert outcome.status == {"jm@x.org": "new"}


def test_a_submission_is_replaced_only_by_a_newer_one_and_kept(group):
    folder = "7-4242 - Ada Lovelace - Nov {}, 2026 1030 AM/04_scaling.ipynb"
    first, second = {folder.format(3): notebook("first")}, {folder.format(5): notebook("second")}
    group.take(first)
    outcome, _ = group.take(second)
    assert outcome.status == {"Ada Lovelace-7": "newer"} and group.has("Ada Lovelace-7") == notebook("second")
    kept = outcome.twice["Ada Lovelace-7"]
    assert (kept / f"{LESSON}.ipynb").read_bytes() == notebook("first")
    outcome, _ = group.take(first)  # yesterday's download again
    assert outcome.status == {"Ada Lovelace-7": "unchanged"} and group.has("Ada Lovelace-7") == notebook("second")


def test_an_old_download_without_times_does_not_restore_old_submissions(group):
    first, second = {"ada.ipynb": notebook("first")}, {"ada.ipynb": notebook("second")}
    for files in (first, second, first):
        group.take(files)
    assert group.has("ada") == notebook("second") and notebook("first") in group.all_bytes()


def test_a_submission_fixed_by_the_teacher_is_not_overwritten(group):
    group.take({"ada.ipynb": notebook("broken")})
    place = group.folders.submitted / "ada" / LESSON / f"{LESSON}.ipynb"
    place.write_bytes(notebook("mended by the teacher"))
    group.take({"ada.ipynb": notebook("broken")})
    assert place.read_bytes() == notebook("mended by the teacher")


def test_lateness_follows_nbgraders_due_date_and_extensions(group):
    due = local_time("2026-11-03 23:59", "%Y-%m-%d %H:%M")
    with open_gradebook(group.folders) as gradebook:
        register_lesson(gradebook, group.folders, LESSON)
        gradebook.update_or_create_assignment(LESSON, duedate=due)
        gradebook.update_or_create_student("Ben B-8")
        with gradebook.db.no_autoflush:
            gradebook.update_or_create_submission(LESSON, "Ben B-8")
        gradebook.grant_extension(LESSON, "Ben B-8", days=2)
    folder = "{} - Nov {}, 2026 1030 AM/04_scaling.ipynb"
    outcome, _ = group.take(
        {
            folder.format("7-1 - Ada A", 5): notebook("a"),
            folder.format("8-1 - Ben B", 5): notebook("b"),
            folder.format("9-1 - Cyd C", 3): notebook("c"),
        }
    )
    assert outcome.late == {"Ada A-7": "1 day 10 hours"}


def test_a_learners_own_timestamp_file_is_ignored(group):
    group.take({"ada/04_scaling.ipynb": notebook("a"), "ada/timestamp.txt": b"2020-01-01 00:00:00 UTC"})
    there = group.folders.submitted / "ada" / LESSON
    assert not (there / "timestamp.txt").exists()
    assert b"2020-01-01 00:00:00 UTC" in {path.read_bytes() for path in there.iterdir()}


def test_nested_zips_are_unpacked_and_damaged_ones_are_reported_and_kept(group):
    deep = zipped({"a/b/04_scaling.ipynb": notebook("deep")})
    outcome, notes = group.take(
        {
            "Ada A_1_assignsubmission_file_/work.zip": zipped({"inner.zip": deep}),
            "Ben B_2_assignsubmission_file_/work.zip": b"PK\x03\x04 no zip at all",
            "Cyd C_3_assignsubmission_file_/work.rar": b"Rar!",
        }
    )
    assert group.has("Ada A") == notebook("deep") and set(outcome.status) == {"Ada A", "Ben B", "Cyd C"}
    assert [note for note in notes if "Ben B" in note and "damaged" in note]
    assert {b"PK\x03\x04 no zip at all", b"Rar!"} <= group.all_bytes()


def test_a_zip_bomb_is_not_unpacked(group, monkeypatch):
    monkeypatch.setattr(unpack, "LARGEST_FILE", 1 << 20)
    monkeypatch.setattr(unpack, "LARGEST_INSIDE", 3 << 19)
    bombs = {
        "Ada A_1_assignsubmission_file_/one.zip": zipped({"04_scaling.ipynb": bytes(4 << 20)}),
        "Ben B_2_assignsubmission_file_/many.zip": zipped({f"{n}.txt": bytes(1 << 19) for n in range(8)}),
        "Cyd C_3_assignsubmission_file_/files.zip": zipped({f"{n}.txt": b"" for n in range(501)}),
        "Dan D_4_assignsubmission_file_/deep.zip": zipped({"a.zip": zipped({"b.zip": zipped({"c.zip": b""})})}),
        "Eva E_5_assignsubmission_file_/plain.ipynb": bytes(2 << 20),
        "Gus G_7_assignsubmission_file_/zips.zip": zipped(
            {f"{n}.zip": zipped({"a.txt": bytes(1 << 19), "b.txt": bytes(1 << 19)}) for n in range(4)}
        ),
        "Hal H_8_assignsubmission_file_/names.zip": zipped(
            {f"{n}.zip": zipped({f"{m}.txt": b"" for m in range(200)}) for n in range(4)}
        ),
        "Fay F_6_assignsubmission_file_/04_scaling.ipynb": notebook("fine"),
    }
    outcome, notes = group.take(bombs)
    assert group.has("Fay F") == notebook("fine")
    for name in ("Ada A", "Ben B", "Cyd C", "Dan D", "Eva E", "Gus G", "Hal H"):
        assert [note for note in notes if name in note], name
    assert [note for note in notes if "Ben B" in note and "more than 1 MB" in note]  # the limit, not the rest of it
    assert max(len(content) for content in group.all_bytes()) < 1 << 20
    assert sum(len(content) for content in group.all_bytes()) < 1 << 20 and len(group.all_bytes()) < 20


def test_paths_in_a_zip_cannot_leave_the_folder(group):
    outcome, _ = group.take(
        {
            "../../../evil.ipynb": notebook("a"),
            "/etc/ada_04_scaling.ipynb": notebook("b"),
            "..\\..\\cyd\\04_scaling.ipynb": notebook("c"),
            "__MACOSX/ada/._04_scaling.ipynb": b"junk",
            "dan/.DS_Store": b"junk",
        }
    )
    assert group.students() == {"evil", "ada", "cyd"} or group.students() == {"evil", "etc", "cyd"}
    outside = [path for path in group.tmp.iterdir() if path.name not in ("class", "got.zip")]
    assert all(path.name.startswith("room-") for path in outside) and b"junk" not in group.all_bytes()


def test_a_symbolic_link_in_a_zip_becomes_a_plain_file(group):
    path = group.tmp / "got.zip"
    with zipfile.ZipFile(path, "w") as archive:
        entry = zipfile.ZipInfo("ada/04_scaling.ipynb")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    group.take_path(path)
    assert group.has("ada") == b"/etc/passwd"  # the link's text, which is not a notebook


def test_a_symbolic_link_in_a_folder_is_not_followed(group):
    root = group.tmp / "download" / "ada"
    root.mkdir(parents=True)
    (group.tmp / "secret.ipynb").write_bytes(notebook("not theirs"))
    os.symlink(group.tmp / "secret.ipynb", root / "04_scaling.ipynb")
    (root / "own.ipynb").write_bytes(notebook("own"))
    _, notes = group.take_path(group.tmp / "download")
    assert group.has("ada") == notebook("own") and "is a link" in notes[0]


def test_a_submission_without_a_notebook_is_reported(group):
    moodle = "Ben B_2_assignsubmission_file_"
    files = {"Ada A_1_assignsubmission_file_/04_scaling.ipynb": notebook("a"), f"{moodle}/answers.pdf": b"%PDF-1.7"}
    outcome, notes = group.take(files)
    assert notes == [f"{moodle}: no notebook was handed in; {LESSON}.ipynb was expected."]
    assert set(outcome.status) == {"Ada A", "Ben B"}


def test_of_several_notebooks_the_answered_one_counts_and_all_are_kept(group):
    blank = (ROOT / "notebooks" / LESSON / f"{LESSON}.ipynb").read_bytes()
    group.take({"ada/04_scaling (1).ipynb": notebook("answered"), "ada/04_scaling.ipynb": blank})
    assert group.has("ada") == notebook("answered") and blank in group.all_bytes()


def test_equal_file_names_of_one_learner_do_not_overwrite_each_other(group):
    group.take({"ada/04_scaling.ipynb": notebook("a"), "ada/n.txt": b"1", "ada/x/n.txt": b"2", "ada/y/N.txt": b"3"})
    assert {b"1", b"2", b"3", notebook("a")} <= group.all_bytes()


def test_umlauts_from_a_mac_and_from_windows_are_the_same_student(group):
    name = "Jörg Müller_5_assignsubmission_file_/04_scaling.ipynb"
    group.take({unicodedata.normalize("NFD", name): notebook("j")})
    outcome, _ = group.take({name: notebook("j")})
    assert outcome.status == {"Jörg Müller": "unchanged"}


def test_utf8_names_without_the_utf8_flag_are_read(group):
    whole = zipped({"J____rg_04_scaling.ipynb": notebook("j")})
    path = group.tmp / "mac.zip"
    path.write_bytes(whole.replace(b"J____rg", "Jö__rg".encode()))
    group.take_path(path)
    assert group.students() == {"Jö__rg"}


# Without null characters, which end a name in a zip.
NAME = st.text(min_size=1, max_size=40).filter(lambda text: not {"_", "\0"} & set(text) and text.strip())


@given(NAME)
def test_any_name_gives_a_safe_folder_name(name):
    folder = folder_name(name)
    assert not folder or (name_problem(folder) is None and Path(folder).name == folder and not folder.startswith("."))


@given(st.lists(NAME, min_size=1, max_size=4, unique=True))
def test_submissions_of_students_of_any_name_are_found(tmp_path_factory, names):
    tmp = tmp_path_factory.mktemp("names")
    flat = [name.replace("/", " ").replace("\\", " ") for name in names]  # both separate folders in a zip
    content = {f"{name}_{n}_assignsubmission_file_/a.ipynb": b"%d" % n for n, name in enumerate(flat)}
    (tmp / "got.zip").write_bytes(zipped(content))
    (tmp / "room").mkdir()
    found, _ = submissions(find_files(tmp / "got.zip", tmp / "room").found, [LESSON])
    assert {one.id: one.files[0][1].path.read_bytes() for one in found} == {
        str(n): b"%d" % n for n in range(len(names))
    }


def test_the_summary_in_the_terminal(group, capsys):
    path = group.tmp / "got.zip"
    path.write_bytes(zipped({"lovelaceada_LATE_11_501_04_scaling.ipynb": notebook("ada")}))
    (group.tmp / "roster.csv").write_text(ROSTER)
    command = ["collect", str(path), "4", "--roster", str(group.tmp / "roster.csv")]
    assert main([*command, "--gradebook", str(group.folders.gradebook)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "04_scaling: 1 submission from Canvas, 1 new",
        "  1 missing: ben",
        "  1 late: ada (says Canvas)",
        "  next: course grade 04_scaling",
    ]


@pytest.mark.parametrize("what", ["nothing.zip", "broken.zip", "empty.zip", "text.zip"])
def test_a_download_that_cannot_be_collected_is_refused_with_a_message(group, capsys, what):
    (group.tmp / "broken.zip").write_bytes(b"no zip")
    (group.tmp / "empty.zip").write_bytes(zipped({}))
    (group.tmp / "text.zip").write_bytes(zipped({"readme.txt": b"hello"}))
    assert main(["collect", str(group.tmp / what), "--gradebook", str(group.folders.gradebook)]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1 and what in printed.err
    assert not group.folders.submitted.exists()


def test_long_lists_are_shortened_in_the_terminal(group):
    outcome, notes = group.take({f"s{n}.ipynb": notebook("x") for n in range(3)})
    outcome.missing = [f"student-{n}" for n in range(40)]
    assert "and 28 more" in "\n".join(summary([outcome], notes))
