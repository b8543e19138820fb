"""A progress bar for loops that take seconds: redrawn in place in JupyterLab and Colab, one line of text elsewhere."""

import os
import sys
from collections.abc import Callable, Collection, Iterator

WIDTH = 30


def bar(steps: Collection, label: str = "") -> Iterator:
    """Go through `steps` (anything with a length) and show how far the loop is.

    In a notebook the line is plain text that is updated in place, so an executed notebook keeps only the last state.
    In a terminal it is rewritten; where the output is a file nothing but the finished line is written.
    """
    total = len(steps)
    every, show = max(1, total // 100), _line()
    for done, step in enumerate(steps):
        if done % every == 0:
            show(_text(label, done, total), False)
        yield step
    show(_text(label, total, total), True)


def _text(label: str, done: int, total: int) -> str:
    full = WIDTH * done // max(total, 1)
    return f"{label} {'█' * full}{'░' * (WIDTH - full)} {100 * done // max(total, 1):3d}%  {done} of {total}".lstrip()


def _line():
    """A function (text, finished) that shows the text where the last one stood."""
    show = in_place()
    if show:
        return lambda text, _finished: show(text)

    def write(text: str, finished: bool):
        if sys.stdout.isatty():
            print(f"\r{text}", end="\n" if finished else "", flush=True)
        elif finished:
            print(text)

    return write


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
