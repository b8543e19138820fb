"""`course collect PATH [LESSON]`: put a platform's download where `course grade` reads it, and list who is missing."""

import argparse
import contextlib
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from helpers.classroom.collected import Source, kept_roster, put_aside, read_sources, store, unique_names, write_sources
from helpers.classroom.platforms import AGAIN, NAMES, Upload, submissions
from helpers.classroom.roster import LONGEST, Person, enroll, known_students, owner_of, read_roster, unlisted_name
from helpers.classroom.unpack import Found, find_files
from helpers.errors import CourseError
from helpers.grading.due import Due, add_due_arguments, class_zone, lateness, read_due, store_due
from helpers.grading.folders import Folders, load, shown
from helpers.grading.intake import find_submissions, lesson_of
from helpers.grading.lesson_release import course_release
from helpers.grading.nbgrader_insides import open_gradebook
from helpers.grading.notebook_file import ENDINGS
from helpers.grading.safe_text import one_line
from helpers.grading.submission import Release

PERMANENT = (
    "A roster with the platform's ids gives them permanent names (for Moodle, this assignment's grading worksheet; for "
    "Brightspace, a list with the first number of its file names as lms_user_id)."
)
SHOWN = 12  # the most names in one line of the terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", type=Path, help="a zip or folder from a platform, or of your own")
    parser.add_argument(
        "lesson", metavar="LESSON", nargs="?", help="such as 04_scaling (default: found from the notebooks)"
    )
    parser.add_argument("--roster", metavar="FILE", type=Path, help="the class as your platform exports it (CSV)")
    add_due_arguments(parser)
    parser.add_argument("--gradebook", metavar="FOLDER", help="another class's folder (default: gradebook)")


def run(args: argparse.Namespace) -> int:
    folders, _ = load(args.gradebook)
    lesson = folders.lesson(args.lesson) if args.lesson else None
    store_due(folders, lesson, args)
    notes: list[str] = []
    roster = read_roster(args.roster, class_zone(folders), notes) if args.roster else []
    try:
        with tempfile.TemporaryDirectory() as scratch:
            outcomes, more_notes = collect(folders, args.path, lesson, roster, Path(scratch))
        notes += more_notes
        for outcome in outcomes if args.roster else ():
            shutil.copyfile(args.roster, kept_roster(folders, outcome.lesson))
    except OSError as error:
        where = f" ({one_line(str(error.filename))})" if error.filename else ""
        raise CourseError(
            f"Collecting stopped: {error.strerror or error}{where}. What was collected so far stays; collect again."
        ) from None
    for line in summary(outcomes, notes):
        print(line)
    return 0


@dataclass
class Outcome:
    """The result of collecting one lesson, by student."""

    lesson: str
    platforms: set[str] = field(default_factory=set)
    status: dict[str, str] = field(default_factory=dict)  # "new", "newer" or "unchanged"
    twice: dict[str, Path] = field(default_factory=dict)  # folder of the submission that does not count
    misplaced: dict[str, str] = field(default_factory=dict)
    late: dict[str, str] = field(default_factory=dict)
    due: str = ""  # in the class's own time
    missing: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)  # not in the roster


@dataclass
class _Part:
    """The part of an upload that belongs to one lesson.

    lesson: as the notebook itself says. target: the lesson that it was submitted for.
    """

    upload: Upload
    lesson: str
    target: str
    notebook: Found | None
    files: list[tuple[str, Found]]
    student: str = ""


def collect(
    folders: Folders, path: Path, lesson: str | None, roster: list[Person], scratch: Path
) -> tuple[list[Outcome], list[str]]:
    """Collect the submissions at `path`. Returns an outcome for each lesson, and notes that a person should read.

    lesson: None if the notebooks say which lesson they belong to. scratch: an empty folder to unpack into.
    """
    lessons = folders.lessons()
    releases = [course_release(folders.executed(name)) for name in lessons]
    files = find_files(path, scratch)
    uploads, notes = submissions(files.found, lessons, class_zone(folders))
    notes = [*files.notes, *notes]
    parts = list(_parts(uploads, lesson, releases, notes))
    if not parts:
        raise CourseError(" ".join([f"Nothing was collected: {path} holds no submission of a lesson.", *notes[:3]]))
    folders.gradebook.mkdir(parents=True, exist_ok=True)
    with open_gradebook(folders) as gradebook:
        enrolled = enroll(gradebook, roster) if roster else []
        ids = {person.student for person in enrolled}
        of_platform = {person.platform_id for person in enrolled} - {""}
        known = [one for one in known_students(gradebook) if one.student not in ids]
        people = enrolled + [one for one in known if one.platform_id not in of_platform]
        numbers = {part.upload.id for part in parts if part.upload.platform == "moodle"}
        if numbers and not numbers & {person.participant for person in people}:
            # Moodle numbers participants per assignment, so a worksheet of another assignment identifies nobody.
            people = [replace(person, participant="", submitted=None) for person in people]
        outcomes = []
        for target in sorted({part.target for part in parts}):
            outcome = Outcome(target)
            sources = read_sources(folders, target)
            parts_of_lesson = [part for part in parts if part.target == target]
            before = set(sources)
            _identify_students(parts_of_lesson, people, sources, notes)
            _remove_old_names(gradebook, before - set(sources))
            submitted = {person.student: person.submitted for person in people if person.submitted}
            parts_of_lesson.sort(key=lambda part: (part.upload.time or datetime.min, part.upload.order))
            for part in parts_of_lesson:
                part.upload.time = part.upload.time or submitted.get(part.student)
                _store(folders, part, sources, outcome)
            for person in enrolled:
                if person.participant and person.student not in sources:
                    sources[person.student] = Source("moodle", person.participant)
            write_sources(folders, target, sources)
            _register(gradebook, sources, people)
            due = read_due(folders, gradebook, target)
            outcome.due = str(due)
            _note_late(gradebook, sources, outcome, due)
            handed_in = set(find_submissions(folders.submitted, target))
            outcome.missing = sorted({person.student for person in known_students(gradebook)} - handed_in)
            if enrolled:
                outcome.unlisted = sorted((set(outcome.status) | set(outcome.misplaced)) - ids)
            outcomes.append(outcome)
    return outcomes, notes


def _parts(uploads: list[Upload], lesson: str | None, releases: list[Release], notes: list[str]) -> Iterator[_Part]:
    """Split uploads by lesson. A platform's download is for one lesson, even if single notebooks are of another one."""
    all_notebooks = [file for upload in uploads for name, file in upload.files if name.lower().endswith(ENDINGS)]
    lessons_of = {file.path: lesson_of(file.path, releases) for file in all_notebooks}  # (lesson, changed answers)
    uploads = [replace(upload, files=_own_files(upload, lessons_of, lesson)) for upload in uploads]
    lessons_of_download: dict[tuple, Counter] = defaultdict(Counter)
    for upload in uploads:
        if upload.platform != "files":
            found = {lessons_of[file.path][0] for _, file in upload.files if file.path in lessons_of}
            lessons_of_download[upload.download].update(found - {None})
    for upload in uploads:
        common = lessons_of_download[upload.download].most_common(1)
        target = lesson or (common[0][0] if common else None)
        notebooks: dict[str | None, list[Found]] = {}
        for name, file in upload.files:
            own_lesson, _ = lessons_of.get(file.path, (None, -1))
            if own_lesson is not None or name.lower().endswith(".ipynb"):
                by_name = next((r.lesson for r in releases if r.lesson.lower() in "/".join(file.names).lower()), None)
                notebooks.setdefault(own_lesson or target or by_name, []).append(file)
        all_of_upload = [file for files in notebooks.values() for file in files]
        others = [(name, file) for name, file in upload.files if file not in all_of_upload]
        if target is None and None in notebooks:
            notes.append(f"{upload.place}: its notebook does not say which lesson it belongs to; name the lesson.")
        if not notebooks:
            expected = f"; {target}.ipynb was expected" if target else ""
            notes.append(f"{upload.place}: no notebook was handed in{expected}.")
        chosen = [target] if target in notebooks or not notebooks else [name for name in notebooks if name]
        for own_lesson in chosen:
            mine = notebooks.get(own_lesson, [])
            best = max(mine, key=lambda file: lessons_of[file.path][1], default=None)
            if upload.platform != "files":  # keep the other notebooks too, because the grader's report names them
                mine = all_of_upload
            with_names = [(name, file) for name, file in upload.files if file in mine]
            if own_lesson or target:
                yield _Part(upload, own_lesson or target, target or own_lesson, best, with_names + others)


def _own_files(
    upload: Upload, lessons_of: dict[Path, tuple[str | None, int]], lesson: str | None
) -> list[tuple[str, Found]]:
    """The files of an upload, without the unrelated notebooks of a whole clone.

    Related are those of `lesson` or, if it is None, those with answers. If there are none, all notebooks are kept.
    """
    cloned = [file for _, file in upload.files if file.of_clone and file.path in lessons_of]
    kept = [file for file in cloned if (lessons_of[file.path][0] == lesson if lesson else lessons_of[file.path][1] > 0)]
    dropped = {file.path for file in cloned if file not in kept} if kept else set()
    return [(name, file) for name, file in upload.files if file.path not in dropped]


def _identify_students(parts: list[_Part], people: list[Person], sources: dict[str, Source], notes: list[str]) -> None:
    """Set each part's student. Two learners with the same name never become one student."""
    before = {(source.platform, source.id): student for student, source in sources.items() if source.id}
    by_name: dict[str, list[_Part]] = {}
    for part in parts:
        upload = part.upload
        person, sure = owner_of(upload, people)
        if person is not None and sure:
            part.student = person.student
            old = before.get((upload.platform, upload.id), part.student)
            if old != part.student:
                sources.pop(old, None)  # it is gone already if a folder holds two downloads
                notes.append(
                    f"{old} is called {part.student} now; remove the folder of the old name from submitted, "
                    "or both are graded."
                )
        elif (upload.platform, upload.id) in before:
            part.student = before[upload.platform, upload.id]
        else:
            names = Person("", upload.name).names
            ambiguous = person is None and sum(bool(names & other.names) for other in people) > 1
            numbered = upload.platform in ("canvas", "brightspace") or ambiguous
            part.student = person.student if person else unlisted_name(upload, numbered)
            by_name.setdefault(part.student, []).append(part)
            if ambiguous and upload.id:
                notes.append(f"The class has more than one {upload.name}, so this one is {part.student}. {PERMANENT}")
    sure_ids = {part.student: part.upload.id for part in parts if part.student not in by_name}
    for student, same_name in by_name.items():
        ids = {part.upload.id for part in same_name} | ({sure_ids[student]} if student in sure_ids else set())
        source = sources.get(student)
        if source is not None and source.platform == same_name[0].upload.platform and source.sha:
            ids.add(source.id)
        if len(ids - {""}) > 1:
            for part in same_name:
                part.student = unlisted_name(part.upload, numbered=True)
            students = " · ".join(sorted({part.student for part in same_name}))
            notes.append(
                f"More than one learner is called {same_name[0].upload.name}; they are distinguished by number: "
                f"{students}. {PERMANENT}"
            )


def _store(folders: Folders, part: _Part, sources: dict[str, Source], outcome: Outcome) -> None:
    """Store one part, and note the result in `sources` and `outcome`."""
    upload, student = part.upload, part.student
    files = unique_names(_without_canvas_marks(part), part.notebook, part.lesson)
    if part.lesson != part.target:
        aside = put_aside(folders, part.target, student, files)
        outcome.misplaced[student] = f"handed in {part.lesson} (kept in {shown(aside)})"
        return
    outcome.platforms.add(upload.platform)
    place = upload.place
    if upload.platform == "canvas":  # Canvas takes feedback back under the full file name
        file = part.notebook or part.files[0][1]
        place = file.names[len(upload.download)]
    time = upload.time.isoformat() if upload.time else ""
    new = Source(upload.platform, upload.id, place, upload.name, upload.email, upload.late, "", time)
    status, folder = store(folders, part.lesson, student, files, new, sources.get(student))
    if status in ("older", "newer"):
        outcome.twice[student] = folder
    if status == "older":
        outcome.status.setdefault(student, "unchanged")
        return
    if outcome.status.get(student) != "new":
        outcome.status[student] = status
    if status != "unchanged" or student not in sources or not sources[student].place:
        sources[student] = new


def _without_canvas_marks(part: _Part) -> list[tuple[str, Found]]:
    """The part's files under the names that the notebook's code reads, because Canvas appends `-1` to resubmissions."""
    if part.upload.platform != "canvas" or part.notebook is None:
        return part.files
    code = part.notebook.path.read_bytes()
    return [
        (plain if (plain := AGAIN.sub("", name)).encode() in code and name.encode() not in code else name, file)
        for name, file in part.files
    ]


def _register(gradebook, sources: dict[str, Source], people: list[Person]) -> None:
    """Add everyone who submitted to the gradebook, with e-mail, and with the platform's id if all lessons share it."""
    ids = {person.student: person.platform_id for person in people}
    for student, source in sources.items():
        numbered = source.platform in ("canvas", "brightspace") and source.id.isdigit()
        facts = {"lms_user_id": source.id} if numbered and not ids.get(student) else {}
        facts |= {"email": one_line(source.email, LONGEST)} if source.email and student not in ids else {}
        if facts or student not in ids:
            gradebook.update_or_create_student(student, **facts)


def _remove_old_names(gradebook, students: set[str]) -> None:
    """Remove old names from the gradebook, unless something was graded under them."""
    for student in [student for student in gradebook.students if student.id in students and not student.submissions]:
        gradebook.remove_student(student.id)


def _note_late(gradebook, sources: dict[str, Source], outcome: Outcome, due: Due) -> None:
    """Note who submitted after nbgrader's due date, with extensions and the grace period taken into account. If a
    submission has no time, the platform's own mark decides."""
    from nbgrader.api import MissingEntry

    for student in outcome.status:
        source = sources[student]
        if due.moment is not None and source.time:
            seconds = (datetime.fromisoformat(source.time) - due.moment).total_seconds()
            with contextlib.suppress(MissingEntry):
                extension = gradebook.find_submission(outcome.lesson, student).extension
                seconds -= extension.total_seconds() if extension else 0
            if late := due.late(seconds):
                outcome.late[student] = lateness(late)
        elif source.late:
            outcome.late[student] = f"says {NAMES[source.platform]}"


def summary(outcomes: list[Outcome], notes: list[str]) -> list[str]:
    """The lines that the terminal shows."""
    lines = []
    for outcome in outcomes:
        counts = Counter(outcome.status.values())
        counted = [f"{counts[word]} {word}" for word in ("new", "newer", "unchanged") if counts[word]]
        source = " and ".join(sorted(NAMES[name] for name in outcome.platforms if name in NAMES))
        total = len(outcome.status)
        what = f"{'submission' if total == 1 else 'submissions'}{f' from {source}' if source else ''}"
        lines.append(", ".join([f"{outcome.lesson}: {total} {what}", *counted]))
        lines += _names_line("missing", outcome.missing)
        lines += _names_line("not in the roster", outcome.unlisted)
        lines += _names_line("misplaced", [" ".join(entry) for entry in outcome.misplaced.items()])
        lines += [f"  {outcome.due}"] if outcome.due else []
        lines += _names_line("late", [f"{student} ({how_late})" for student, how_late in outcome.late.items()])
        twice = [f"{student} (the other one: {shown(place)})" for student, place in outcome.twice.items()]
        lines += _names_line("twice", twice)
        lines.append(f"  next: course grade {outcome.lesson}")
    lines += ["To look at:", *(f"  {one_line(note)}" for note in dict.fromkeys(notes))] if notes else []
    return lines


def _names_line(title: str, entries: list[str]) -> list[str]:
    if not entries:
        return []
    rest = [f"and {len(entries) - SHOWN} more"] if len(entries) > SHOWN else []
    return [f"  {len(entries)} {title}: " + " · ".join([one_line(entry) for entry in entries[:SHOWN]] + rest)]
