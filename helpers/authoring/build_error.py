"""What goes wrong while a lesson is built."""

from __future__ import annotations

from helpers.errors import CourseError


class BuildError(CourseError):
    """A lesson that cannot be built. The text says where and what to do."""
