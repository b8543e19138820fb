"""Find the owner of each file in a download, by the file names of Moodle, Canvas, Brightspace and Gradescope.

The platforms document their formats:

- Moodle, *Assignment activity: Download all submissions*: `Full Name_12345_assignsubmission_file_/work.ipynb`, or the
  same in one name. The number is the participant's in this assignment and differs in other assignments.
- Canvas, *How do I download all student submissions for an assignment?*: `lastfirst_LATE_123_456_work.ipynb`, with the
  ids of the user and of the file; `LATE` only if it was late; `-1` at the end of the name of a resubmission.
- Brightspace, *Download assignment submissions*: `123-456 - First Last - Nov 3, 2026 1030 AM/work.ipynb`, one folder
  per submission, or the same in one name, `... 1030 AM - work.ipynb`, with the time in the zone of the person who
  downloads.
- Gradescope, *Export submissions*: `submission_123/work.ipynb`; `submission_metadata.yml` next to it has the rest.

The patterns of the first two suit `FileNameCollectorPlugin.named_regexp` of `nbgrader zip_collect`, with its group
names. We don't run `zip_collect` itself, because it stops at a student's second submission, empties folders and unpacks
without a limit.
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
    "brightspace": re.compile(
        r"(?P<place>(?P<student_id>\d+)-\d+ - (?P<name>.+?) - (?P<timestamp>(?:(?! - ).)*\d{4}(?:(?! - ).)*)(?: - )?)"
        r"(?P<file_id>.*)"
    ),
    "gradescope": re.compile(r"(?P<place>submission_(?P<student_id>\d+))(?P<file_id>)"),
}
NAMES = {"moodle": "Moodle", "canvas": "Canvas", "brightspace": "Brightspace", "gradescope": "Gradescope"}
METADATA = "submission_metadata.yml"
# The words that Colab, Windows, macOS and JupyterLab put before or after the name of a copy, in common languages.
COPY = re.compile(
    r"(?i)^(?:(?:copy[ _]of|kopie[ _](?:von|van)|copie[ _]de|copia[ _]d[ei]|cópia[ _]de|kopia[ _](?:av)?|kopi[ _]a[fv]|"
    r"kopya|копия)(?![^\W_])[ _]*)+|"
    r"[ _.–-]*(?:\(\d+\)|(?<![^\W_])(?:copy|kopie|copie|copia|cópia|kopia|kopi|kopya|копия)[ _]?\d*|"
    r"の?コピー|的?副本|의?[ _]?사본)(?:[ _]?\d+)?$"
)
AGAIN = re.compile(r"-\d{1,2}(?=\.\w+$)")  # Canvas's mark of a resubmission


@dataclass
class Upload:
    """One submission of one learner. files: (the learner's own name for the file, the file).

    id: the learner's id on the platform, or "". name, email: as the platform writes them. place: the folder or file
    name that the platform knows the submission by. time: in UTC, as a naive datetime; None if the download has none.
    """

    platform: str  # one of NAMES, or "files"
    place: str
    id: str = ""
    name: str = ""
    email: str = ""
    late: bool = False  # according to the platform
    time: datetime | None = None
    order: int = 0  # if two submissions have no time, the one with the larger order is newer
    download: tuple[str, ...] = ()  # the folders above the platform's own; each download is of one assignment
    files: list[tuple[str, Found]] = field(default_factory=list)


def submissions(
    found: Sequence[Found], lessons: Sequence[str], zone: tzinfo | None = None
) -> tuple[list[Upload], list[str]]:
    """Group files into submissions. The notes name each file without an owner or with an unreadable time.

    lessons: the names of all lessons. zone: the time zone of times in file names.
    """
    time_notes = []
    uploads: dict[tuple, Upload] = {}
    loose: list[Found] = []
    for file in found:
        if (recognized := _recognize(file)) is None:
            loose.append(file)
            continue
        platform, depth, match = recognized
        facts = match.groupdict()
        number, name, download = facts["student_id"], facts.get("name") or "", file.names[:depth]
        key = (*download, number if platform in ("moodle", "canvas") else facts["place"])
        upload = uploads.setdefault(key, Upload(platform, facts["place"], number, name, download=download))
        if "_assignsubmission_file" in facts["place"]:  # rather than the folder of text typed online
            upload.place = facts["place"]
        upload.late = upload.late or bool(facts.get("late"))
        if upload.time is None and facts.get("timestamp"):
            try:
                upload.time = read_time(facts["timestamp"], zone or zone_of(""))
            except (ValueError, OverflowError):
                time_notes.append(f"{upload.place}: the time in its name is not certain, so it never counts as late.")
        upload.order = max(upload.order, int(facts.get("order") or 0))
        rest = file.names[depth + 1 :]
        upload.files.append((rest[-1] if rest else facts["file_id"], file))
    taken = _with_metadata(uploads, [file for file in loose if file.names[-1] == METADATA])
    loose = [file for file in loose if file.names[-1] != METADATA]
    unnamed, notes = _loose(loose, lessons)
    return taken + unnamed, time_notes + notes


def _recognize(file: Found) -> tuple[str, int, re.Match] | None:
    """Find the first folder or file name that a platform made. Returns the platform, the depth and the match."""
    for depth, name in enumerate(file.names):
        last = depth == len(file.names) - 1
        for platform, pattern in PATTERNS.items():
            match = pattern.fullmatch(name)
            if match and (match["file_id"] or not last):
                return platform, depth, match
    return None


class _Metadata(yaml.SafeLoader):
    """Loads plain data and ignores the Ruby tags that Gradescope's exporter puts into it."""


_Metadata.add_multi_constructor("!ruby/", lambda loader, _, node: loader.construct_mapping(node, deep=True))


def _with_metadata(uploads: dict[tuple, Upload], files: list[Found]) -> list[Upload]:
    """All submissions, with names and times added to Gradescope's. A group's submission counts for each member."""
    metadata: dict[tuple, dict] = {}
    for file in files:
        with contextlib.suppress(yaml.YAMLError, ValueError):  # without metadata, submissions go by their numbers
            facts = yaml.load(file.path.read_text(encoding="utf-8"), Loader=_Metadata)
            metadata |= {(*file.names[:-1], str(folder)): fact for folder, fact in _as(dict, facts).items()}
    completed = []
    for key, upload in uploads.items():
        facts = _as(dict, metadata.get(key)) if upload.platform == "gradescope" else {}
        upload.time = upload.time or _gradescope_time(facts.get(":created_at"))
        upload.order = upload.order or (int(upload.id) if upload.platform in ("brightspace", "gradescope") else 0)
        members = [member for member in _as(list, facts.get(":submitters")) if isinstance(member, dict)]
        for member in members:
            number, name, email = (str(member.get(fact) or "") for fact in (":sid", ":name", ":email"))
            completed.append(replace(upload, id=number, name=name, email=email))
        completed += [] if members else [upload]
    return completed


def _as(cls: type, value):
    """The value if it is an instance of this class, else an empty instance."""
    return value if isinstance(value, cls) else cls()


def _gradescope_time(value) -> datetime | None:
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = datetime.fromisoformat(re.sub(r"(\.\d{1,6})\d*", r"\1", value).replace(" UTC", "+00:00"))
    if not isinstance(value, datetime):
        return None
    return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value


def _loose(files: list[Found], lessons: Sequence[str]) -> tuple[list[Upload], list[str]]:
    """Submissions without a platform's names: each is a folder or a notebook that has the student's name."""
    notebooks = [file for file in files if file.names[-1].lower().endswith(".ipynb")]
    folders = [file.names[:-1] for file in notebooks]
    shared = 0  # folders that all paths share don't tell whose notebook it is
    while len(set(folders)) > 1 and all(folder[: shared + 1] == folders[0][: shared + 1] for folder in folders):
        shared += 1
    uploads: dict[str, Upload] = {}
    folder_owners: dict[tuple[str, ...], str] = {}  # a student's folder -> the student
    notes = []
    for file in notebooks:
        above = file.names[:-1]
        depths = [*range(shared, len(above)), *reversed(range(shared))]
        depth = next((depth for depth in depths if _student(above[depth], lessons)), None)
        student = _student(file.names[-1], lessons)
        if depth is not None and (depth >= shared or not student):
            student = folder_owners[above[: depth + 1]] = _student(above[depth], lessons)
        if student:
            uploads.setdefault(student, Upload("files", student, name=student)).files.append((file.names[-1], file))
        else:
            place = "/".join(file.names)
            notes.append(f"{place} does not say whose it is; put it into a folder with the student's name.")
    for file in (file for file in files if file not in notebooks):
        parents = (file.names[:n] for n in range(len(file.names), 0, -1))
        owner = next((folder_owners[folder] for folder in parents if folder in folder_owners), None)
        if owner:
            uploads[owner].files.append((file.names[-1], file))
        else:
            notes.append(f"{'/'.join(file.names)} was not collected: no notebook lies there.")
    return list(uploads.values()), notes


def _student(name: str, lessons: Sequence[str]) -> str:
    """The student that a folder or file is named after; "" if it only has the lesson's name."""
    stem = COPY.sub("", re.sub(r"(?i)\.(zip|ipynb|json)(?![^\W_])", "", name))
    for lesson in lessons:
        stem = re.sub(rf"(?i)(?<![^\W_]){re.escape(lesson)}(?![^\W_])", " ", stem)
    return COPY.sub("", re.sub(r"\s+", " ", stem).strip(" _-.")).strip(" _-.")
