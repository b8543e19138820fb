"""What leans on matplotlib's private names; tests/test_matplotlib_insides.py fails when they go or change."""


def keep_title(axes) -> None:
    """Let the title stay where it is. A title whose place was given does; only this name says so afterwards, and giving
    the place anew would set its letters back."""
    axes._autotitlepos = False
