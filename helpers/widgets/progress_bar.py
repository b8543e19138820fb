"""A progress bar for loops that take seconds: redrawn in place in JupyterLab and Colab, one line of text elsewhere."""

import os
import sys
from collections.abc import Callable, Collection, Iterator
from functools import partial

WIDTH = 30


def bar(steps: Collection, label: str = "") -> Iterator:
    """Go through `steps` (anything with a length) and show how far the loop is.

    In a notebook the line is plain text that is updated in place, so an executed notebook keeps only the last state.
    In a terminal it is rewritten; where the output is a file nothing but the finished line is written.
    """
    total, show = len(steps), in_place()
    every = max(1, total // 100)
    on_the_way = show or (partial(print, end="\r", flush=True) if sys.stdout.isatty() else lambda _text: None)
    for done, step in enumerate(steps):
        if done % every == 0:
            on_the_way(_text(label, done, total))
        yield step
    (show or print)(_text(label, total, total))


def _text(label: str, done: int, total: int) -> str:
    full = WIDTH * done // max(total, 1)
    return f"{label} {'█' * full}{'░' * (WIDTH - full)} {100 * done // max(total, 1):3d}%  {done} of {total}".lstrip()


def in_place() -> Callable[..., None] | None:
    """A function (text, page="") that shows a text, or the HTML of a page that says it, where it showed the last one.
    None in a script."""
    if not in_notebook():
        return None
    from IPython.display import display

    handle = display({"text/plain": ""}, raw=True, display_id=True)
    return lambda text, page="": handle.update({"text/plain": text} | ({"text/html": page} if page else {}), raw=True)


def in_notebook() -> bool:
    """Whether this runs in a kernel, whose outputs can be redrawn in place."""
    ipython = sys.modules.get("IPython")  # a kernel has imported it
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def static_page() -> bool:
    """Whether the notebook is being executed to a page on disk, where nothing can be redrawn or moved."""
    return os.environ.get("COURSE_STATIC_PAGE") == "1"
