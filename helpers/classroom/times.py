"""Parse times as platforms write them: in many languages, with 12 or 24 hours, with or without a time zone.

The names of months and days come from Unicode's CLDR (babel). Ambiguous times are rejected, such as `3/11/2026`, or a
month's name that means another month in another language, unless the day of the week decides.
"""

import functools
import re
import unicodedata
from datetime import UTC, datetime, tzinfo

from helpers.errors import CourseError
from helpers.grading.due import zone_of

CLOCK = re.compile(r"(?<!\d)(\d{1,2})(?:[:.h]|(?=\d\d(?!\d)))(\d\d)(?::(\d\d))?(?!\d)")
NUMBERS = (
    r"(?P<y>\d{4})[-/](?P<m>\d\d?)[-/](?P<d>\d\d?)",
    r"(?P<d>\d\d?)\. ?(?P<m>\d\d?)\. ?(?P<y>\d{4})",
    r"(?P<y>\d{4})[年년] ?(?P<m>\d\d?)[月월] ?(?P<d>\d\d?)[日일]",
)
SUFFIXES = {"h", "uhr", "hrs", "", "utc", "gmt", "z"}  # what may follow a 24-hour time
# The languages that platforms are used in. A short word of a rarer language (de, pm) would make others ambiguous.
LANGUAGES = (
    "en af ar az be bg bn bs ca cs cy da de el es et eu fa fi fil fr ga gl gu he hi hr hu hy id is it ja ka kk km kn "
    "ko ky lo lt lv mk ml mn mr ms my nb ne nl nn no pa pl ps pt ro ru si sk sl sq sr sv sw ta te th tr uk ur uz vi zh"
)


def read_time(text: str, zone: tzinfo) -> datetime:
    """Parse a time. Returns a naive datetime in UTC. zone: used if the text names none. ValueError if ambiguous."""
    text = unicodedata.normalize("NFKC", text).casefold()
    if iso := _iso(text):
        return _utc(iso, zone)
    date = next(filter(None, (re.search(form, text) for form in NUMBERS)), None)
    if date:
        day = datetime(int(date["y"]), int(date["m"]), int(date["d"]))
        rest = text[: date.start()] + " " + text[date.end() :]
    else:
        year = re.search(r"(?<!\d)(20\d\d)(?!\d)", text)
        number = re.search(r"(?<!\d)([1-3]?\d)(?![\d:h])", text)
        if not year or not number:
            raise ValueError(text)
        words = set(re.findall(r"[^\W\d_]{2,}", text))
        day = _day_in_words(words, int(year[1]), int(number[1]))
        rest = text.replace(year[1], " ", 1).replace(number[1], " ", 1)
    clocks = list(CLOCK.finditer(rest))
    if len(clocks) != 1:
        raise ValueError(text)
    hour, minute, second = (int(part or 0) for part in clocks[0].groups())
    suffix = re.sub(r"[().,\s]+", "", rest[clocks[0].end() :])
    offset = re.fullmatch(r"(.*?)(?:utc|gmt)?([+-]\d\d:?\d\d)", suffix)
    suffix, named = (offset[1], zone_of(offset[2])) if offset else (suffix, None)
    if suffix in ("utc", "gmt", "z"):
        named = UTC
    half = _half(suffix, rest[: clocks[0].start()])
    if suffix not in SUFFIXES if half is None else not 1 <= hour <= 12:
        raise ValueError(text)
    hour = hour if half is None else hour % 12 + 12 * half
    return _utc(day.replace(hour=hour, minute=minute, second=second), named or zone)


def _iso(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.strip().upper().removesuffix(" UTC")) if "-" in text else None
    except ValueError:
        return None


def _utc(moment: datetime, zone: tzinfo) -> datetime:
    moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
    return moment.astimezone(UTC).replace(tzinfo=None)


@functools.cache
def _languages() -> list[tuple[dict[str, int], dict[str, int], dict[str, int]]]:
    """For each language, its words for months, for days of the week (Monday is 0), and for am (0) and pm (1)."""
    from babel import Locale

    def numbers(kinds) -> dict[str, int]:
        tables = [kinds[form][width] for form in ("format", "stand-alone") for width in ("wide", "abbreviated")]
        return {_bare(word): number for table in tables for number, word in table.items()}

    def halves(periods) -> dict[str, int]:
        tables = [periods["format"].get(width, {}) for width in ("wide", "abbreviated", "narrow")]
        return {_bare(table[key]): half for table in tables for half, key in enumerate(("am", "pm")) if key in table}

    locales = map(Locale.parse, LANGUAGES.split())
    return [(numbers(one.months), numbers(one.days), halves(one.day_periods)) for one in locales]


def _bare(word: str) -> str:
    return re.sub(r"[.\s]", "", unicodedata.normalize("NFKC", word).casefold())


def _day_in_words(words: set[str], year: int, number: int) -> datetime:
    """The day, if all languages that contain the most of these words agree on it. Otherwise, raises ValueError."""
    readings: dict[int, set[datetime | None]] = {}
    for months, days, _ in _languages():
        for word in words & months.keys():
            of_week = {days[day_word] for day_word in words - {word} if day_word in days}
            recognized = len(words & (months.keys() | days.keys()))
            try:
                day = datetime(year, months[word], number)
            except ValueError:
                continue
            if recognized == 1 + len(of_week):
                readings.setdefault(recognized, set()).add(day if of_week <= {day.weekday()} else None)
    best = readings[max(readings)] if readings else set()
    if len(best) != 1 or None in best:
        raise ValueError("no day")
    return best.pop()


def _half(suffix: str, prefix: str) -> int | None:
    """0 for am, 1 for pm, None for a 24-hour time. In East Asia, the word may be in front of the time."""
    word = re.findall(r"[^\W\d_]+", prefix)[-1:]
    word = word if word != ["de"] else []  # morning in Hungarian, but *of* in Spanish
    readings = {halves[text] for _, _, halves in _languages() for text in (suffix, *word) if text and text in halves}
    return readings.pop() if len(readings) == 1 else None


def cell_time(text: str, zone: tzinfo, where: str) -> datetime | None:
    """Parse the time in a cell of a roster; None if the cell is empty. Raises CourseError if it is ambiguous."""
    if text.strip() in ("", "-", "–"):
        return None
    try:
        return read_time(text, zone)
    except (ValueError, OverflowError):
        raise CourseError(
            f"{where}: the time {text!r} cannot be read for certain. Switch the platform to English, and export again."
        ) from None
