"""Whose each file of a download is, from the names that Moodle, Canvas, Brightspace and Gradescope give.

The formats, as the platforms document them:

- Moodle, *Assignment activity: Download all submissions*: `Full Name_12345_assignsubmission_file_/work.ipynb`, or the
  same in one name. The number is the participant's in this assignment; another assignment has others.
- Canvas, *How do I download all student submissions for an assignment?*: `lastfirst_LATE_123_456_work.ipynb`, the
  user's id and the file's; `LATE` only where it was; `-1` behind the name where it was handed in again.
- Brightspace, *Download assignment submissions*: `123-456 - First Last - Nov 3, 2026 1030 AM/work.ipynb`, one folder
  a submission, in the time of the person who downloads.
- Gradescope, *Export submissions*: `submission_123/work.ipynb`, and `submission_metadata.yml` beside with the rest.

The first two are what `nbgrader zip_collect` takes as `FileNameCollectorPlugin.named_regexp`, with its names of groups;
its own program stops at two submissions of one student, empties folders and unpacks without a limit, so it is not run.
"""

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo

import yaml

from helpers.classroom.times import read_time
from helpers.classroom.unpack import Found
from helpers.grading.due import zone_of

PATTERNS = {
    "moodle": re.compile(
        r"(?P<place>(?P<name>.+?)_(?P<student_id>\d+)_assignsubmission_(?:file|onlinetext)_?)(?P<file_id>.*)"
    ),
    "canvas": re.compile(
        r"(?P<place>(?P<name>.*?)_?(?P<late>LATE_)?(?P<student_id>(?:(?<![^_])anon_\w+?|(?<![^_])\d+))_"
        r"(?P<order>[1-9]\d*)_)(?P<file_id>.+\..+)"
    ),
    "brightspace": re.compile(r"(?P<place>(?P<student_id>\d+)-\d+ - (?P<name>.+) - (?P<timestamp>.+))(?P<file_id>)"),
    "gradescope": re.compile(r"(?P<place>submission_(?P<student_id>\d+))(?P<file_id>)"),
}
NAMES = {"moodle": "Moodle", "canvas": "Canvas", "brightspace": "Brightspace", "gradescope": "Gradescope"}
METADATA = "submission_metadata.yml"
# What Colab, Windows, macOS and JupyterLab call a copy, before a name and behind it, in the languages of most.
COPY = re.compile(
    r"(?i)^(?:(?:copy[ _]of|kopie[ _](?:von|van)|copie[ _]de|copia[ _]d[ei]|cópia[ _]de|kopia[ _](?:av)?|kopi[ _]a[fv]|"
    r"kopya|копия)(?![^\W_])[ _]*)+|"
    r"[ _.–-]*(?:\(\d+\)|(?<![^\W_])(?:copy|kopie|copie|copia|cópia|kopia|kopi|kopya|копия)[ _]?\d*|"
    r"の?コピー|的?副本|의?[ _]?사본)(?:[ _]?\d+)?$"
)
AGAIN = re.compile(r"-\d{1,2}(?=\.\w+$)")  # Canvas's mark of a file that was handed in again


@dataclass
class HandIn:
    """What one learner handed in at one time. files: the learner's own name for each file -> the file.

    id: the platform's own for the learner ("" where there is none), name and email as it writes them. place: the
    folder or file name that it knows the submission by. time: in UTC, without a zone; None where the download has none.
    """

    platform: str  # one of NAMES, or "files"
    place: str
    id: str = ""
    name: str = ""
    email: str = ""
    late: bool = False  # by the platform's word
    time: datetime | None = None
    order: int = 0  # of two without a time, the larger is the newer
    download: tuple[str, ...] = ()  # where its platform's folder lies: one download is one assignment
    files: list[tuple[str, Found]] = field(default_factory=list)


def submissions(
    found: Sequence[Found], lessons: Sequence[str], zone: tzinfo | None = None
) -> tuple[list[HandIn], list[str]]:
    """Files as submissions, and a sentence for each file without an owner or without a time that can be read.

    lessons: names of all lessons. zone: of times in names.
    """
    timeless = []
    hand_ins: dict[tuple, HandIn] = {}
    loose: list[Found] = []
    for file in found:
        if (place := _place(file)) is None:
            loose.append(file)
            continue
        platform, depth, match = place
        facts = match.groupdict()
        number, name, download = facts["student_id"], facts.get("name") or "", file.names[:depth]
        key = (*download, number if platform in ("moodle", "canvas") else facts["place"])
        hand_in = hand_ins.setdefault(key, HandIn(platform, facts["place"], number, name, download=download))
        if "_assignsubmission_file" in facts["place"]:  # and not the folder of a text that was typed in
            hand_in.place = facts["place"]
        hand_in.late = hand_in.late or bool(facts.get("late"))
        if hand_in.time is None and facts.get("timestamp"):
            try:
                hand_in.time = read_time(facts["timestamp"], zone or zone_of(""))
            except (ValueError, OverflowError):
                timeless.append(f"{hand_in.place}: the time in its name is not certain, so it never counts as late.")
        hand_in.order = max(hand_in.order, int(facts.get("order") or 0))
        rest = file.names[depth + 1 :]
        hand_in.files.append((rest[-1] if rest else facts["file_id"], file))
    taken = _with_metadata(hand_ins, [file for file in loose if file.names[-1] == METADATA])
    if taken and len(taken) < len(loose):  # pages and lists that the platform puts beside the submissions
        loose = [file for file in loose if file.names[-1].lower().endswith(".ipynb")]
    loose = [file for file in loose if file.names[-1] != METADATA]
    unnamed, notes = _loose(loose, lessons)
    return taken + unnamed, timeless + notes


def _place(file: Found) -> tuple[str, int, re.Match] | None:
    """Platform, depth and match of the first of a file's names that a platform made."""
    for depth, name in enumerate(file.names):
        last = depth == len(file.names) - 1
        for platform, pattern in PATTERNS.items():
            match = pattern.fullmatch(name)
            if match and (match["file_id"] or not last):
                return platform, depth, match
    return None


class _Metadata(yaml.SafeLoader):
    """Plain data; Gradescope's exporter marks some of it with names of its own program, which are passed over."""


_Metadata.add_multi_constructor("!ruby/", lambda loader, _, node: loader.construct_mapping(node, deep=True))


def _with_metadata(hand_ins: dict[tuple, HandIn], files: list[Found]) -> list[HandIn]:
    """All submissions, those from Gradescope with names and times; a group's submission counts for each member."""
    metadata: dict[tuple, dict] = {}
    for file in files:
        with contextlib.suppress(yaml.YAMLError, ValueError):  # then the submissions go by their numbers
            facts = yaml.load(file.path.read_text(encoding="utf-8"), Loader=_Metadata)
            metadata |= {(*file.names[:-1], str(folder)): fact for folder, fact in _as(dict, facts).items()}
    all_of_them = []
    for key, hand_in in hand_ins.items():
        facts = _as(dict, metadata.get(key)) if hand_in.platform == "gradescope" else {}
        hand_in.time = hand_in.time or _gradescope_time(facts.get(":created_at"))
        hand_in.order = hand_in.order or (int(hand_in.id) if hand_in.platform in ("brightspace", "gradescope") else 0)
        members = [member for member in _as(list, facts.get(":submitters")) if isinstance(member, dict)]
        for member in members:
            number, name, email = (str(member.get(fact) or "") for fact in (":sid", ":name", ":email"))
            all_of_them.append(replace(hand_in, id=number, name=name, email=email))
        all_of_them += [] if members else [hand_in]
    return all_of_them


def _as(kind: type, value):
    """A value if it is of this kind, else an empty one."""
    return value if isinstance(value, kind) else kind()


def _gradescope_time(value) -> datetime | None:
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = datetime.fromisoformat(re.sub(r"(\.\d{1,6})\d*", r"\1", value).replace(" UTC", "+00:00"))
    if not isinstance(value, datetime):
        return None
    return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value


def _loose(files: list[Found], lessons: Sequence[str]) -> tuple[list[HandIn], list[str]]:
    """Submissions that no platform named: a folder or notebook with the student's name, and what lies in it."""
    notebooks = [file for file in files if file.names[-1].lower().endswith(".ipynb")]
    folders = [file.names[:-1] for file in notebooks]
    shared = 0  # folders that all have in common say nothing about whose a notebook is
    while len(set(folders)) > 1 and all(folder[: shared + 1] == folders[0][: shared + 1] for folder in folders):
        shared += 1
    hand_ins: dict[str, HandIn] = {}
    homes: dict[tuple[str, ...], str] = {}  # a student's folder -> the student
    notes = []
    for file in notebooks:
        above = file.names[:-1]
        depths = [*range(shared, len(above)), *reversed(range(shared))]
        depth = next((depth for depth in depths if _student(above[depth], lessons)), None)
        student = _student(file.names[-1], lessons)
        if depth is not None and (depth >= shared or not student):
            student = homes[above[: depth + 1]] = _student(above[depth], lessons)
        if student:
            hand_ins.setdefault(student, HandIn("files", student, name=student)).files.append((file.names[-1], file))
        else:
            place = "/".join(file.names)
            notes.append(f"{place} does not say whose it is; put it into a folder with the student's name.")
    for file in (file for file in files if file not in notebooks):
        home = next((homes[file.names[:n]] for n in range(len(file.names), 0, -1) if file.names[:n] in homes), None)
        if home:
            hand_ins[home].files.append((file.names[-1], file))
        else:
            notes.append(f"{'/'.join(file.names)} was not collected: no notebook lies there.")
    return list(hand_ins.values()), notes


def _student(name: str, lessons: Sequence[str]) -> str:
    """Who a folder or file is named after; "" where it has the lesson's name and no other."""
    stem = COPY.sub("", re.sub(r"(?i)\.(zip|ipynb|json)(?![^\W_])", "", name))
    for lesson in lessons:
        stem = re.sub(rf"(?i)(?<![^\W_]){re.escape(lesson)}(?![^\W_])", " ", stem)
    return COPY.sub("", re.sub(r"\s+", " ", stem).strip(" _-.")).strip(" _-.")
