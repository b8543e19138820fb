"""Reads a notebook file of any encoding and format version into a list of plain cells.

Only regular files of limited size are read. Whatever is wrong with a file raises Unreadable with a sentence for the
teacher.
"""

import json
import re
import stat
from pathlib import Path

LARGEST = 20 * 10**6  # bytes of a submitted notebook
MOST_CELLS = 5000
MOST_CODE = 1_000_000  # characters of all its code
MOST_STATEMENTS = 20_000  # estimated from lines and semicolons; checking one takes 0.3 ms
MOST_ATTACHMENTS = 50  # of one cell
MOST_OUTPUTS = 200  # of one cell that are searched for an error and for the result of the check
PASSED = re.compile(r"(?m)^✓ (\w{1,80})   ")  # the beginning of the report of a check that passed
CONFLICT = re.compile(rb"(?m)^<{7} ")  # what git writes into a file that two people have changed
ENDINGS = (".ipynb", ".json", ".ipynb.txt")  # the last two from browsers that save a notebook


class Unreadable(Exception):
    """A submission cannot be graded. The message is a sentence for the teacher."""


def read_cells(path: Path) -> list[dict]:
    """The cells of the notebook at `path`, each with cell_type, source, metadata, attachments, ran, passed and id."""
    return parse_cells(read_file(path), path.name)


def read_file(path: Path) -> bytes:
    try:
        return read_regular(path, LARGEST)
    except Unreadable as problem:
        raise Unreadable(f"{path.name} was not read: {problem}. Ask for the notebook again.") from None


def read_regular(path: Path, most: int) -> bytes:
    """The content of a regular file that is no link and has at most `most` bytes. Otherwise raises Unreadable with a
    clause that gives the reason."""
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            raise Unreadable("it is a link, not a file")
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("it is a folder" if stat.S_ISDIR(status.st_mode) else "it is not a regular file")
        if status.st_size > most:
            raise Unreadable(f"it is larger than {most / 10**6:g} MB")
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(f"it cannot be opened ({error.strerror})") from None


def parse_cells(content: bytes, name: str) -> list[dict]:
    """The cells of a notebook from the bytes of its file, as in `read_cells`. name: the file's, for messages."""
    try:
        notebook = json.loads(_decode(content))
        if not isinstance(notebook, dict):
            raise ValueError("it is not a notebook")
        cells = notebook.get("cells")
        if cells is None and isinstance(notebook.get("worksheets"), list):  # notebook format 3
            cells = [cell for sheet in notebook["worksheets"] for cell in sheet.get("cells", [])]
        if not isinstance(cells, list):
            raise ValueError("it has no cells")
        if len(cells) > MOST_CELLS:
            raise ValueError(f"it has {len(cells)} cells")
        cells = [_plain_cell(cell) for cell in cells if isinstance(cell, dict)]
        code = "".join(cell["source"] for cell in cells if cell["cell_type"] == "code")
        if len(code) > MOST_CODE:
            raise ValueError(f"it has {len(code):,} characters of code")
        if (count := code.count("\n") + code.count(";")) > MOST_STATEMENTS:
            raise ValueError(f"it has {count:,} lines of code")
        return cells
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:120]
        reason = reason if content.strip() else "it is empty"
        reason = "it has the marks of a merge conflict (<<<<<<<)" if CONFLICT.search(content) else reason
        raise Unreadable(f"{name} cannot be read as a notebook: {reason}. Ask for the notebook again.") from None


def grade_id_of(cell: dict) -> str | None:
    """A cell's grade_id from nbgrader's metadata, or None."""
    nbgrader = cell["metadata"].get("nbgrader")
    grade_id = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    return grade_id if isinstance(grade_id, str) and grade_id else None


def joined_text(source) -> str:
    """A cell's source, a string or a list of strings in the file, as one string with \\n as line ends."""
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    return re.sub(r"\r\n?", "\n", _clean(source)) if isinstance(source, str) else ""


def squeezed(text: str) -> str:
    """The text with each run of white space replaced by one space."""
    return " ".join(text.split())


def _decode(content: bytes) -> str:
    """Decode UTF-8, UTF-16 or UTF-32, with or without a byte order mark, or else Latin-1."""
    try:
        return content.decode(json.detect_encoding(content))
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _plain_cell(cell: dict) -> dict:
    metadata, outputs, bundles = cell.get("metadata"), cell.get("outputs"), cell.get("attachments")
    metadata = metadata if isinstance(metadata, dict) else {}
    outputs = [item for item in outputs[:MOST_OUTPUTS] if isinstance(item, dict)] if isinstance(outputs, list) else []
    bundles = list(bundles.items())[:MOST_ATTACHMENTS] if isinstance(bundles, dict) else []
    kind, cell_id = cell.get("cell_type"), cell.get("id", metadata.get("id"))  # Colab keeps ids in the metadata
    ran: bool | None = True if isinstance(cell.get("execution_count"), int) else None
    if any(output.get("output_type") in ("error", "pyerr") for output in outputs):
        ran = False
    rich = (output["data"].get("text/plain") for output in outputs if isinstance(output.get("data"), dict))
    texts = [joined_text(text) for text in (*(output.get("text") for output in outputs), *rich)]
    return {
        "cell_type": {"heading": "markdown"}.get(kind, kind) if kind in ("code", "markdown", "heading") else "raw",
        "source": joined_text(cell.get("source", cell.get("input", ""))),
        "metadata": metadata,
        "attachments": {_clean(name)[:200]: bundle for name, bundle in bundles},
        "ran": ran,  # on the learner's computer, without an error, as far as the outputs show
        "passed": {name for text in texts for name in PASSED.findall(text)},  # exercises whose check passed there
        "id": cell_id if isinstance(cell_id, str) else None,
    }


def _clean(text: str) -> str:
    """The text with a question mark in place of each lone surrogate, so that it can be written as UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")
