"""A progress bar for slow loops, which is redrawn in place in JupyterLab and Colab and is a line of text elsewhere."""

import os
import sys
from collections.abc import Callable, Collection, Iterator
from functools import partial

WIDTH = 30


def bar(steps: Collection, label: str = "") -> Iterator:
    """Iterate over `steps` (any collection with a length) and show the progress of the loop.

    In a notebook the line is plain text that is updated in place, so an executed notebook contains only the last state.
    In a terminal the line is rewritten, and a file gets only the final line.
    """
    total, show = len(steps), in_place()
    every = max(1, total // 100)
    update = show or (partial(print, end="\r", flush=True) if sys.stdout.isatty() else lambda _text: None)
    for done, step in enumerate(steps):
        if done % every == 0:
            update(_text(label, done, total))
        yield step
    (show or print)(_text(label, total, total))


def _text(label: str, done: int, total: int) -> str:
    full = WIDTH * done // max(total, 1)
    return f"{label} {'█' * full}{'░' * (WIDTH - full)} {100 * done // max(total, 1):3d}%  {done} of {total}".lstrip()


def in_place() -> Callable[..., None] | None:
    """A function (text, page="") that replaces what it showed before by a text, or by the HTML `page` if viewers can
    show it. None in a script."""
    if not in_notebook():
        return None
    from IPython.display import display

    handle = display({"text/plain": ""}, raw=True, display_id=True)
    return lambda text, page="": handle.update({"text/plain": text} | ({"text/html": page} if page else {}), raw=True)


def in_notebook() -> bool:
    """Whether this runs in a kernel, whose outputs can be redrawn in place."""
    ipython = sys.modules.get("IPython")  # every kernel has imported it
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def static_page() -> bool:
    """Whether the notebook is being executed to a page on disk, where nothing can be redrawn or moved."""
    return os.environ.get("COURSE_STATIC_PAGE") == "1"
