"""Code that uses private names of matplotlib; tests/test_matplotlib_insides.py fails if one disappears or changes."""


def keep_title(axes) -> None:
    """Keep the title where it is, as if its y had been given when it was set.

    Only this attribute does that afterwards, because setting the title again would reset its font.
    """
    axes._autotitlepos = False
