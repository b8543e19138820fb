"""For authors: builds notebooks, answer keys, blocks and the web edition from the lessons' texts."""

import sys

from helpers.errors import CourseError

# jsonschema, which validates notebooks, tries to import this grammar of IRIs. That would take longer than all the rest,
# and no notebook needs it.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


class BuildError(CourseError):
    """A lesson cannot be built. The message says where, and what to do."""
