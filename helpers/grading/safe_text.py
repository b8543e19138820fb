"""Words that came from a learner's machine, as they may stand in a terminal, a table or a sentence."""

import re
import unicodedata

MOST = 400  # characters of a sentence


def one_line(text: str, most: int = MOST) -> str:
    """Text in one line, without what steers a terminal, turns the direction of writing or has no place in UTF-8."""
    text = text[: 4 * most].encode("utf-8", "replace").decode("utf-8")
    text = "".join(" " if char in "\t\n\r" else char for char in text)
    printable = "".join(char if _is_seen(char) else "\N{REPLACEMENT CHARACTER}" for char in text)
    return printable if len(printable) <= most else printable[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def inert(cell: str) -> str:
    """Spreadsheets run a cell that begins like a formula; an apostrophe makes it text. Numbers stay numbers."""
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", cell):
        return cell
    return "'" + cell if cell.lstrip(" ")[:1] in ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%") else cell


def _is_seen(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"
