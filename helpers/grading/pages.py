"""Pages and tables that a teacher opens: what learners wrote is escaped in the one and inert in the other."""

import csv
import io
from collections.abc import Iterable

from helpers.grading.safe_text import inert


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
