"""A table as a platform exports it, read so that it can be written back in the form that it came in.

Canvas, Excel and Moodle choose the delimiter by the country, Excel adds a line `sep=;`, and each quotes other cells.
"""

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

from helpers.errors import CourseError

DELIMITERS = ",;\t|"
BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
# Which cells are quoted besides those that have to be: none, those with a space (as PHP, and so Moodle), or all.
QUOTED = {"needed": r"(?!)", "spaces": r"\s", "all": r""}


@dataclass
class Sheet:
    """rows: all lines, the heading first, each as long as the heading. lines: where each row begins in the file."""

    rows: list[list[str]]
    lines: list[int]
    encoding: str = "utf-8"
    delimiter: str = ","
    quoted: str = "needed"
    end: str = "\r\n"
    mark: str = ""  # a first line such as `sep=;`

    @property
    def heading(self) -> list[str]:
        return self.rows[0]

    def text(self, rows: list[list[str]]) -> str:
        """Rows as this table writes them."""
        must = re.compile(rf'["\r\n{re.escape(self.delimiter)}]|{QUOTED[self.quoted]}')
        return self.mark + "".join(self.delimiter.join(_cell(cell, must) for cell in row) + self.end for row in rows)

    def encoded(self, rows: list[list[str]]) -> bytes:
        return self.text(rows).encode(self.encoding)


def _cell(text: str, must: re.Pattern) -> str:
    return '"' + text.replace('"', '""') + '"' if must.search(text) else text


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
    delimiter = first[1] if first else _delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows, lines, begin = [], [], 1 + bool(mark)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append(row)
                lines.append(begin)
            begin = reader.line_num + 1 + bool(mark)
    except csv.Error as error:
        raise CourseError(
            f"{path}, line {begin}: its quotation marks cannot be read ({error}). Export the file again, and don't "
            "change it in an editor."
        ) from None
    width = len(rows[0]) if rows else 0
    for row, line in zip(rows, lines, strict=True):
        if any(cell.strip() for cell in row[width:]):
            raise CourseError(
                f"{path}, line {line}: it has {len(row)} cells where the heading has {width}, so a cell holds a "
                "delimiter without quotation marks. Export the file again, or put quotation marks around that cell."
            )
        row[width:] = [""] * (width - len(row))
    end = "\r\n" if "\r\n" in text else "\n"
    sheet = Sheet(rows, lines, encoding, delimiter, end=end, mark=mark)
    for quoted in QUOTED:
        sheet.quoted = quoted
        if mark + text in (sheet.text(rows), sheet.text(rows).removesuffix(end)):
            return sheet
    sheet.quoted = "spaces" if text.startswith('"') or ' "' in text else "needed"
    return sheet


def _delimiter(text: str) -> str:
    """The delimiter that the heading has most of, outside of quotation marks."""
    heading = re.sub(r'"(?:[^"]|"")*"', "", text).lstrip("\r\n").split("\n")[0]
    return max(DELIMITERS, key=heading.count)


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
