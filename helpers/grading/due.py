"""Due dates of lessons in the class's time zone, and how late a submission is, with a grace period.

nbgrader stores the due dates themselves, in UTC. The time zone and the grace periods, for which it has no field, are
stored in `due.json` in the class's folder.
"""

import argparse
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dateutil.tz import tzlocal

from helpers.course import course
from helpers.errors import CourseError
from helpers.grading.folders import Folders, write_atomically

UNITS = {"m": 60, "h": 3600, "d": 86_400}


def zone_of(name: str) -> tzinfo:
    """A time zone by its IANA name or UTC offset; "" is this computer's. Raises CourseError for anything else, such as
    PST and IST, because each of these abbreviations means three zones."""
    if not name:
        return tzlocal()
    if name in ("UTC", "GMT", "Z"):
        return UTC
    try:
        return ZoneInfo(name) if "/" in name else datetime.strptime(name, "%z").tzinfo
    except (ZoneInfoNotFoundError, ValueError):
        hint = "Write its IANA name, such as Europe/Berlin, or its offset, such as +02:00."
        raise CourseError(f"{name!r} is not a known time zone. {hint}") from None


def class_zone(folders: Folders | None = None) -> tzinfo:
    """The time zone that was set for the class, or else in course.toml, or else this computer's."""
    return zone_of((_facts(folders).get("timezone") if folders else "") or course().timezone)


@dataclass(frozen=True)
class Due:
    """When a lesson is due. moment: in UTC and without tzinfo, as in nbgrader; None if the lesson is never due."""

    moment: datetime | None
    grace: timedelta
    zone: tzinfo

    def late(self, seconds: float) -> float:
        """By how much a submission is late, `seconds` after the due date: 0 if that is within the grace period."""
        return seconds if seconds > self.grace.total_seconds() else 0.0

    def __str__(self) -> str:
        if self.moment is None:
            return ""
        local = self.moment.replace(tzinfo=UTC).astimezone(self.zone)
        zone = getattr(self.zone, "key", "") or local.tzname()
        minutes = round(self.grace.total_seconds() / 60)
        grace = f", {minutes} minutes of grace" if minutes else ""
        return f"due {local:%a} {local.day} {local:%b %Y, %H:%M} ({zone}{grace})"


def lateness(seconds: float) -> str:
    """How late something is, in words: `1 minute`, `3 hours 20 minutes`, `2 days 5 hours`."""
    if seconds < 60:
        return "less than a minute"
    minutes = round(seconds / 60)
    days, hours = divmod(minutes // 60, 24)
    units = [(days, "day"), (hours, "hour"), (minutes % 60, "minute")]
    first = next(i for i, (count, _) in enumerate(units) if count)
    return " ".join(f"{count} {unit}{'s' * (count != 1)}" for count, unit in units[first : first + 2] if count)


def read_due(folders: Folders, gradebook, lesson: str) -> Due:
    """When a lesson is due. gradebook: nbgrader's, open."""
    from nbgrader.api import MissingEntry

    try:
        moment = gradebook.find_assignment(lesson).duedate
    except MissingEntry:
        moment = None
    grace = _facts(folders).get("grace", {}).get(lesson, 0)
    return Due(moment, timedelta(seconds=grace), class_zone(folders))


def add_due_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--due", metavar="TIME", help='when the lesson is due, as in "2026-11-03 23:59"')
    parser.add_argument("--grace", metavar="TIME", help="how much later still counts as on time, as in 15m, 2h or 1d")
    parser.add_argument(
        "--timezone", metavar="ZONE", help="the class's zone, as in Europe/Berlin or +02:00 (default: course.toml's)"
    )


def store_due(folders: Folders, lesson: str | None, args: argparse.Namespace) -> None:
    """Store the due date, grace period and time zone of the command line, until another command changes them.

    A time without an offset, such as 2026-11-03 23:59, is in the class's time zone.
    """
    if not (args.due or args.grace or args.timezone):
        return
    if lesson is None and (args.due or args.grace):
        raise CourseError("Name the lesson that --due and --grace are for, as in: course collect PATH 04_scaling")
    facts = _facts(folders)
    if args.timezone:
        zone_of(args.timezone)
        facts["timezone"] = args.timezone
    if args.grace:
        if not (match := re.fullmatch(r"(\d{1,4})([mhd])", args.grace.strip())):
            raise CourseError(f"--grace {args.grace!r} is not a duration. Write 15m, 2h or 1d.")
        facts.setdefault("grace", {})[lesson] = int(match[1]) * UNITS[match[2]]
    moment = None
    if args.due:
        zone = zone_of(facts.get("timezone") or course().timezone)
        try:
            moment = datetime.fromisoformat(args.due.strip() if ":" in args.due else "")
        except ValueError:
            raise CourseError(f'--due {args.due!r} is not a time. Write it as "2026-11-03 23:59".') from None
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC).replace(tzinfo=None)
    write_atomically(folders.gradebook / "due.json", json.dumps(facts, indent=1, sort_keys=True))
    if moment is not None:
        from helpers.grading.nbgrader_insides import open_gradebook

        with open_gradebook(folders) as gradebook:
            gradebook.update_or_create_assignment(lesson, duedate=moment)


def _facts(folders: Folders) -> dict:
    path = folders.gradebook / "due.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise CourseError(f"{path} cannot be read. Move it away, and give --timezone and --grace again.") from None
