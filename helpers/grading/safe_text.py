"""Makes text from learners' computers safe to show in a terminal, a sentence, a table or a page."""

import csv
import io
import re
from collections.abc import Iterable
from unicodedata import category

MOST = 400  # characters of a line


def one_line(text: str, most: int = MOST) -> str:
    """Text on one line of at most `most` characters, without control characters and other invisible ones."""
    text = text[: 4 * most].encode("utf-8", "replace").decode("utf-8")
    text = "".join(" " if char in "\t\n\r" else char for char in text)
    unknown = "\N{REPLACEMENT CHARACTER}"
    printable = "".join(char if char.isprintable() or category(char) == "Zs" else unknown for char in text)
    return printable if len(printable) <= most else printable[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def inert(cell: str) -> str:
    """A cell that no spreadsheet runs as a formula: an apostrophe marks it as text, unless it is a number."""
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", cell):
        return cell
    return "'" + cell if cell.lstrip(" ")[:1] in ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%") else cell


def template(name: str, package: str = "helpers.grading", **filters):
    """A package's Jinja template, which escapes all values that are inserted."""
    from jinja2 import Environment, PackageLoader

    pages = Environment(loader=PackageLoader(package, "."), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    pages.filters |= filters
    return pages.get_template(name)


def as_table(rows: Iterable[Iterable[str]]) -> str:
    """The rows as CSV for spreadsheets, in which no cell is run as a formula."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\r\n").writerows([inert(cell) for cell in row] for row in rows)
    return file.getvalue()
