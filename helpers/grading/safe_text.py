"""What came from a learner's machine, as it may stand in a terminal, a sentence, a table or a page."""

import csv
import io
import re
from collections.abc import Iterable
from unicodedata import category

MOST = 400  # characters of a sentence


def one_line(text: str, most: int = MOST) -> str:
    """Text in one line, without what steers a terminal, turns the direction of writing or has no place in UTF-8."""
    text = text[: 4 * most].encode("utf-8", "replace").decode("utf-8")
    text = "".join(" " if char in "\t\n\r" else char for char in text)
    unseen = "\N{REPLACEMENT CHARACTER}"
    printable = "".join(char if char.isprintable() or category(char) == "Zs" else unseen for char in text)
    return printable if len(printable) <= most else printable[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def inert(cell: str) -> str:
    """Spreadsheets run a cell that begins like a formula; an apostrophe makes it text. Numbers stay numbers."""
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", cell):
        return cell
    return "'" + cell if cell.lstrip(" ")[:1] in ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%") else cell


def template(name: str, package: str = "helpers.grading", **filters):
    """A template of a package, in which all that is put in is escaped text."""
    from jinja2 import Environment, PackageLoader

    pages = Environment(loader=PackageLoader(package, "."), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    pages.filters |= filters
    return pages.get_template(name)


def as_table(rows: Iterable[Iterable[str]]) -> str:
    """CSV as spreadsheets read it; no cell can be read as a formula."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\r\n").writerows([inert(cell) for cell in row] for row in rows)
    return file.getvalue()
