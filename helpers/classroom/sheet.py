"""Read a platform's table (CSV) so that it can be written back in the same format.

Canvas, Excel and Moodle choose the delimiter by country, and Excel may add a first line `sep=;`.
"""

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

from helpers.errors import CourseError

DELIMITERS = ",;\t|"
BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


@dataclass
class Sheet:
    """A table. rows: the heading and all other rows, all of the same length. lines: the line number of each row."""

    rows: list[list[str]]
    lines: list[int]
    encoding: str = "utf-8"
    delimiter: str = ","
    end: str = "\r\n"
    separator_line: str = ""  # such as `sep=;`

    @property
    def heading(self) -> list[str]:
        return self.rows[0]

    def encoded(self, rows: list[list[str]]) -> bytes:
        """Other rows in the format of this table."""
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=self.delimiter, lineterminator=self.end).writerows(rows)
        return (self.separator_line + file.getvalue()).encode(self.encoding)


def read_sheet(path: Path) -> Sheet:
    """Read the table at `path`. Raises CourseError, which says what to change, if it is ambiguous or unreadable."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CourseError(f"The roster {path} cannot be read: {error.strerror}.") from None
    text, encoding = _decoded(content, path)
    first = re.match(r"sep=(.)\r?\n", text, re.IGNORECASE)
    separator_line = first[0] if first else ""
    text = text[len(separator_line) :]
    heading = re.sub(r'"(?:[^"]|"")*"', "", text).lstrip("\r\n").split("\n")[0]  # without quoted text
    delimiter = first[1] if first else max(DELIMITERS, key=heading.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    lines, begin = [], 1 + bool(separator_line)
    try:
        for row in reader:
            width = len(rows[0]) if rows else len(row)
            if any(map(str.strip, row[width:])):
                raise CourseError(
                    f"{path}, line {begin}: it has {len(row)} cells where the heading has {width}, so a cell holds a "
                    "delimiter without quotation marks. Export the file again, or put quotation marks around that cell."
                )
            if any(map(str.strip, row)):
                rows.append(row[:width] + [""] * (width - len(row)))
                lines.append(begin)
            begin = reader.line_num + 1 + bool(separator_line)
    except csv.Error as error:
        raise CourseError(
            f"{path}, line {begin}: its quotation marks cannot be read ({error}). Export the file again, and don't "
            "change it in an editor."
        ) from None
    end = "\r\n" if "\r\n" in text else "\n"
    return Sheet(rows, lines, encoding, delimiter, end, separator_line)


def _decoded(content: bytes, path: Path) -> tuple[str, str]:
    if content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise CourseError(f"{path} is a spreadsheet. Save it as CSV (UTF-8), and name that file.")
    encodings = [BOMS[bom] for bom in BOMS if content.startswith(bom)] or ["utf-8", "cp1252"]
    for encoding in encodings:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text, encoding
    raise CourseError(f"{path} has an unknown encoding. Save it as CSV (UTF-8).")
