"""All that leans on private names of matplotlib; tests/test_figures.py fails when one of them goes or changes."""

from __future__ import annotations


def pin_title(ax) -> None:
    """The title stays where it is. `_autotitlepos`: to look for its place anew, matplotlib measures all letters of the
    axes in each drawing, a third of its time, and no public setting keeps both the place and the title's font."""
    ax._autotitlepos = False


def drawn_ticks(axis) -> list:
    """The ticks that a drawing shows. `_update_ticks`: `get_major_ticks` has those beyond the limits too."""
    return axis._update_ticks()
