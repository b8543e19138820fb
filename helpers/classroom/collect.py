"""`course collect PATH [LESSON]`: what a platform gave, to where `course grade` reads it, and who is missing."""

import argparse
import contextlib
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from helpers.classroom.collected import Source, kept_roster, named, put_aside, read_sources, store, write_sources
from helpers.classroom.platforms import AGAIN, NAMES, HandIn, submissions
from helpers.classroom.roster import LONGEST, Person, enroll, known, own_name, read_roster, who
from helpers.classroom.unpack import Found, find_files
from helpers.errors import CourseError
from helpers.grading.due import Due, add_due_arguments, class_zone, keep_due, lateness, read_due
from helpers.grading.folders import Folders, load, shown
from helpers.grading.intake import find_submissions, lesson_of
from helpers.grading.lesson_release import course_release
from helpers.grading.nbgrader_insides import open_gradebook
from helpers.grading.notebook_file import ENDINGS
from helpers.grading.safe_text import one_line
from helpers.grading.submission import Release

SHOWN = 12  # names in one line of the terminal


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
    keep_due(folders, lesson, args)
    notes: list[str] = []
    roster = read_roster(args.roster, class_zone(folders), notes) if args.roster else []
    try:
        with tempfile.TemporaryDirectory() as room:
            outcomes, more = collect(folders, args.path, lesson, roster, Path(room))
        notes += more
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
    """What became of the submissions of one lesson, by student."""

    lesson: str
    platforms: set[str] = field(default_factory=set)
    became: dict[str, str] = field(default_factory=dict)  # "new", "unchanged", "newer" or "older"
    twice: dict[str, Path] = field(default_factory=dict)  # where the one lies that does not count
    misplaced: dict[str, str] = field(default_factory=dict)
    late: dict[str, str] = field(default_factory=dict)
    due: str = ""  # in the class's own time
    missing: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)  # whom the roster does not name


@dataclass
class _Part:
    """What a submission holds of one lesson. lesson: what the notebook says; target: for which it was handed in."""

    hand_in: HandIn
    lesson: str
    target: str
    notebook: Found | None
    files: list[tuple[str, Found]]
    student: str = ""


def collect(
    folders: Folders, path: Path, lesson: str | None, roster: list[Person], room: Path
) -> tuple[list[Outcome], list[str]]:
    """Collect what lies at `path`, and return an outcome for each lesson and sentences on what a person should see.

    lesson: None where the notebooks tell. room: an empty folder for what is unpacked.
    """
    lessons = folders.lessons()
    releases = [course_release(folders.executed(name)) for name in lessons]
    files = find_files(path, room)
    hand_ins, notes = submissions(files.found, lessons, class_zone(folders))
    notes = [*files.notes, *notes]
    parts = list(_parts(hand_ins, lesson, releases, notes))
    if not parts:
        raise CourseError(" ".join([f"Nothing was collected: {path} holds no submission of a lesson.", *notes[:3]]))
    folders.gradebook.mkdir(parents=True, exist_ok=True)
    with open_gradebook(folders) as gradebook:
        enrolled = enroll(gradebook, roster) if roster else []
        ids = {person.student for person in enrolled}
        people = enrolled + [person for person in known(gradebook) if person.student not in ids]
        numbers = {part.hand_in.id for part in parts if part.hand_in.platform == "moodle"}
        if numbers and not numbers & {person.participant for person in people}:
            # Moodle's numbers are those of one assignment: a worksheet of another one tells names only.
            people = [replace(person, participant="", submitted=None) for person in people]
        outcomes = []
        for target in sorted({part.target for part in parts}):
            outcome = Outcome(target)
            sources = read_sources(folders, target)
            parts_of_lesson = [part for part in parts if part.target == target]
            before = set(sources)
            _name(parts_of_lesson, people, sources, notes)
            _forget(gradebook, before - set(sources))
            submitted = {person.student: person.submitted for person in people if person.submitted}
            parts_of_lesson.sort(key=lambda part: (part.hand_in.time or datetime.min, part.hand_in.order))
            for part in parts_of_lesson:
                part.hand_in.time = part.hand_in.time or submitted.get(part.student)
                _keep(folders, part, sources, outcome)
            for person in enrolled:
                if person.participant and person.student not in sources:
                    sources[person.student] = Source("moodle", person.participant)
            write_sources(folders, target, sources)
            _register(gradebook, sources, people)
            due = read_due(folders, gradebook, target)
            outcome.due = str(due)
            _late(gradebook, sources, outcome, due)
            handed_in = set(find_submissions(folders.submitted, target))
            outcome.missing = sorted({person.student for person in known(gradebook)} - handed_in)
            if enrolled:
                outcome.strangers = sorted((set(outcome.became) | set(outcome.misplaced)) - ids)
            outcomes.append(outcome)
    return outcomes, notes


def _parts(hand_ins: list[HandIn], lesson: str | None, releases: list[Release], notes: list[str]) -> Iterator[_Part]:
    """Submissions, lesson by lesson. One download of a platform is of one lesson, whatever single notebooks are of."""
    notebooks_of = [file for hand_in in hand_ins for name, file in hand_in.files if name.lower().endswith(ENDINGS)]
    lessons_of = {file.path: lesson_of(file.path, releases) for file in notebooks_of}
    hand_ins = [replace(hand_in, files=_without_other_lessons(hand_in, lessons_of, lesson)) for hand_in in hand_ins]
    of_download: dict[tuple, Counter] = defaultdict(Counter)
    for hand_in in hand_ins:
        if hand_in.platform != "files":
            found = {lessons_of[file.path][0] for _, file in hand_in.files if file.path in lessons_of}
            of_download[hand_in.download].update(found - {None})
    for hand_in in hand_ins:
        common = of_download[hand_in.download].most_common(1)
        target = lesson or (common[0][0] if common else None)
        notebooks: dict[str | None, list[Found]] = {}
        for name, file in hand_in.files:
            of, _ = lessons_of.get(file.path, (None, -1))
            if of is not None or name.lower().endswith(".ipynb"):
                by_name = next((r.lesson for r in releases if r.lesson.lower() in "/".join(file.names).lower()), None)
                notebooks.setdefault(of or target or by_name, []).append(file)
        others = [(name, file) for name, file in hand_in.files if not any(file in them for them in notebooks.values())]
        if target is None and None in notebooks:
            notes.append(f"{hand_in.place}: its notebook does not say which lesson it belongs to; name the lesson.")
        if not notebooks:
            expected = f"; {target}.ipynb was expected" if target else ""
            notes.append(f"{hand_in.place}: no notebook was handed in{expected}.")
        chosen = [target] if target in notebooks or not notebooks else [name for name in notebooks if name]
        for of in chosen:
            mine = notebooks.get(of, [])
            best = max(mine, key=lambda file: lessons_of[file.path][1], default=None)
            if hand_in.platform != "files":  # what else was handed in here is kept beside, where the grader names it
                mine = [file for them in notebooks.values() for file in them]
            named_so = [(name, file) for name, file in hand_in.files if file in mine]
            if of or target:
                yield _Part(hand_in, of or target, target or of, best, named_so + others)


def _without_other_lessons(
    hand_in: HandIn, lessons_of: dict[Path, tuple[str | None, int]], lesson: str | None
) -> list[tuple[str, Found]]:
    """The files of a submission; of a whole clone the notebooks of `lesson`, or else those that hold answers."""
    cloned = [file for _, file in hand_in.files if file.of_clone and file.path in lessons_of]
    kept = [file for file in cloned if (lessons_of[file.path][0] == lesson if lesson else lessons_of[file.path][1] > 0)]
    left = {file.path for file in cloned if file not in kept} if kept else set()
    return [(name, file) for name, file in hand_in.files if file.path not in left]


def _name(parts: list[_Part], people: list[Person], sources: dict[str, Source], notes: list[str]) -> None:
    """Say of each part who the student is. Two learners of one name never become one student."""
    before = {(source.platform, source.id): student for student, source in sources.items() if source.id}
    by_name: dict[str, list[_Part]] = {}
    for part in parts:
        hand_in = part.hand_in
        person, sure = who(hand_in, people)
        if person is not None and sure:
            part.student = person.student
            old = before.get((hand_in.platform, hand_in.id), part.student)
            if old != part.student:
                del sources[old]
                notes.append(
                    f"{old} is called {part.student} now; remove the folder of the old name from submitted, "
                    "or both are graded."
                )
        elif (hand_in.platform, hand_in.id) in before:
            part.student = before[hand_in.platform, hand_in.id]
        else:
            names = Person("", hand_in.name).names
            alike = person is None and sum(bool(names & one.names) for one in people) > 1
            numbered = hand_in.platform in ("canvas", "brightspace") or alike
            part.student = person.student if person else own_name(hand_in, numbered)
            by_name.setdefault(part.student, []).append(part)
    sure_ids = {part.student: part.hand_in.id for part in parts if part.student not in by_name}
    for student, same_name in by_name.items():
        ids = {part.hand_in.id for part in same_name} | ({sure_ids[student]} if student in sure_ids else set())
        source = sources.get(student)
        if source is not None and source.platform == same_name[0].hand_in.platform and source.sha:
            ids.add(source.id)
        if len(ids - {""}) > 1:
            for part in same_name:
                part.student = own_name(part.hand_in, numbered=True)
            students = " · ".join(sorted({part.student for part in same_name}))
            notes.append(
                f"More than one learner is called {same_name[0].hand_in.name}; they are distinguished by number: "
                f"{students}. A roster with the platform's ids (of Moodle, this assignment's grading worksheet) gives "
                "them permanent names."
            )


def _keep(folders: Folders, part: _Part, sources: dict[str, Source], outcome: Outcome) -> None:
    """Store one part, and write down what became of it."""
    hand_in, student = part.hand_in, part.student
    files = named(_as_called(part), part.notebook, part.lesson)
    if part.lesson != part.target:
        aside = put_aside(folders, part.target, student, files)
        outcome.misplaced[student] = f"handed in {part.lesson} (kept in {shown(aside)})"
        return
    outcome.platforms.add(hand_in.platform)
    place = hand_in.place
    if hand_in.platform == "canvas":  # it takes a file back under its whole name
        last = part.notebook or part.files[0][1]
        place = last.names[len(hand_in.download)]
    time = hand_in.time.isoformat() if hand_in.time else ""
    new = Source(hand_in.platform, hand_in.id, place, hand_in.name, hand_in.email, hand_in.late, "", time)
    became, place_of_other = store(folders, part.lesson, student, files, new, sources.get(student))
    if became in ("older", "newer"):
        outcome.twice[student] = place_of_other
    if became == "older":
        outcome.became.setdefault(student, "unchanged")
        return
    if outcome.became.get(student) != "new":
        outcome.became[student] = became
    if became != "unchanged" or student not in sources or not sources[student].place:
        sources[student] = new


def _as_called(part: _Part) -> list[tuple[str, Found]]:
    """Files under the names that the notebook's code reads: Canvas writes `-1` behind what was handed in again."""
    if part.hand_in.platform != "canvas" or part.notebook is None:
        return part.files
    code = part.notebook.path.read_bytes()
    return [
        (plain if (plain := AGAIN.sub("", name)).encode() in code and name.encode() not in code else name, file)
        for name, file in part.files
    ]


def _register(gradebook, sources: dict[str, Source], people: list[Person]) -> None:
    """Put whoever handed in into the gradebook, with e-mail and id where the platform's holds for all lessons."""
    has = {person.student: person.platform_id for person in people}
    for student, source in sources.items():
        numbered = source.platform in ("canvas", "brightspace") and source.id.isdigit()
        facts = {"lms_user_id": source.id} if numbered and not has.get(student) else {}
        facts |= {"email": one_line(source.email, LONGEST)} if source.email and student not in has else {}
        if facts or student not in has:
            gradebook.update_or_create_student(student, **facts)


def _forget(gradebook, students: set[str]) -> None:
    """Take old names out of the gradebook, where nothing was graded under them."""
    for student in [student for student in gradebook.students if student.id in students and not student.submissions]:
        gradebook.remove_student(student.id)


def _late(gradebook, sources: dict[str, Source], outcome: Outcome, due: Due) -> None:
    """Who came after nbgrader's due date, extensions and grace included; without a time, who is late by the platform's
    word."""
    from nbgrader.api import MissingEntry

    for student in outcome.became:
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
    lines = []
    for outcome in outcomes:
        counts = Counter(outcome.became.values())
        told = [f"{counts[word]} {word}" for word in ("new", "newer", "unchanged") if counts[word]]
        source = " and ".join(sorted(NAMES[name] for name in outcome.platforms if name in NAMES))
        total = len(outcome.became)
        what = f"{'submission' if total == 1 else 'submissions'}{f' from {source}' if source else ''}"
        lines.append(", ".join([f"{outcome.lesson}: {total} {what}", *told]))
        lines += _row("missing", outcome.missing)
        lines += _row("not in the roster", outcome.strangers)
        lines += _row("misplaced", [" ".join(told) for told in outcome.misplaced.items()])
        lines += [f"  {outcome.due}"] if outcome.due else []
        lines += _row("late", [f"{student} ({told})" for student, told in outcome.late.items()])
        twice = [f"{student} (the other one: {shown(place)})" for student, place in outcome.twice.items()]
        lines += _row("twice", twice)
        lines.append(f"  next: course grade {outcome.lesson}")
    lines += ["To look at:", *(f"  {one_line(note)}" for note in dict.fromkeys(notes))] if notes else []
    return lines


def _row(title: str, entries: list[str]) -> list[str]:
    if not entries:
        return []
    more = [f"and {len(entries) - SHOWN} more"] if len(entries) > SHOWN else []
    return [f"  {len(entries)} {title}: " + " · ".join([one_line(entry) for entry in entries[:SHOWN]] + more)]
