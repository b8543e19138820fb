"""A table as a platform exports it, read so that it can be written back in the form that it came in.

Canvas, Excel and Moodle choose the delimiter by the country, and Excel adds a line `sep=;`.
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
    """rows: all lines, the heading first, each as long as the heading. lines: where each row begins in the file."""

    rows: list[list[str]]
    lines: list[int]
    encoding: str = "utf-8"
    delimiter: str = ","
    end: str = "\r\n"
    mark: str = ""  # a first line such as `sep=;`

    @property
    def heading(self) -> list[str]:
        return self.rows[0]

    def encoded(self, rows: list[list[str]]) -> bytes:
        """Rows as this table writes them."""
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=self.delimiter, lineterminator=self.end).writerows(rows)
        return (self.mark + file.getvalue()).encode(self.encoding)


def read_sheet(path: Path) -> Sheet:
    """The table at `path`. CourseError, with what to change, where it cannot be read for certain."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CourseError(f"The roster {path} cannot be read: {error.strerror}.") from None
    text, encoding = _decoded(content, path)
    first = re.match(r"sep=(.)\r?\n", text, re.IGNORECASE)
    mark = first[0] if first else ""
    text = text[len(mark) :]
    heading = re.sub(r'"(?:[^"]|"")*"', "", text).lstrip("\r\n").split("\n")[0]  # without what quotation marks hold
    delimiter = first[1] if first else max(DELIMITERS, key=heading.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    lines, begin = [], 1 + bool(mark)
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
            begin = reader.line_num + 1 + bool(mark)
    except csv.Error as error:
        raise CourseError(
            f"{path}, line {begin}: its quotation marks cannot be read ({error}). Export the file again, and don't "
            "change it in an editor."
        ) from None
    end = "\r\n" if "\r\n" in text else "\n"
    return Sheet(rows, lines, encoding, delimiter, end, mark)


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
