"""The author's wing: from the texts of lessons to notebooks, answer keys, blocks and the web edition."""

import sys

from helpers.errors import CourseError

# Notebooks are validated with jsonschema, which looks for this grammar of IRIs first: importing it takes longer than
# all the rest, and no notebook needs it.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


class BuildError(CourseError):
    """A lesson that cannot be built. The text says where and what to do."""
